"""A PU problem: samples, who is labelled, who is held out."""

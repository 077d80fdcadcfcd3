"""A trained model behind HTTP: samples in, scores out. Imports no torch by itself."""

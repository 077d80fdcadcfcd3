"""Buffers with verbs: what a method remembers between steps, in the checkpoint by design."""

"""One run: from a configuration to a folder that holds everything about it."""

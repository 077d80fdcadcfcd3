"""Tables with columns of several kinds: finding the kinds, and turning rows into vectors."""

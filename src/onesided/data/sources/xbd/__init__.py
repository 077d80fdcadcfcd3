"""xBD, the set of damaged buildings: its labels, its crops, and how both are prepared."""

"""The method of a run for which nobody names one. Imports no torch: `--help` must be fast."""

DEFAULT_METHOD = "auto"
"""Every door reads this: the command, Python, the estimator, the demonstration, the benchmarks."""

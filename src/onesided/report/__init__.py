"""The page a person shows to others, made from the files of a finished run."""

from onesided.report.page import is_fresh, write_report

__all__ = ["is_fresh", "write_report"]

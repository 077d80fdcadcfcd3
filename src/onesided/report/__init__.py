"""The page a person shows to others, made from the files of a finished run."""

from onesided.report.page import write_report

__all__ = ["write_report"]

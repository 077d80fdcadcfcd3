"""Progress of long work."""

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is."""

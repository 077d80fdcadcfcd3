"""Keep memory that a step frees in the process, for the next step."""

import os
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""The numbers of glibc's malloc.h."""
KEPT_BYTES = 2**30
"""Free memory that may stay at the end of the heap; a whole step of any preset needs less."""
LARGEST_BLOCKS = (2**28, 2**25)
"""Larger blocks come from the system and go back to it. Not every glibc accepts the first."""
CHOSEN_BY_USERS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
"""Variables by which users set the same; then nothing is changed."""


def keep_freed_memory() -> bool:
    """Set glibc to keep freed memory; return whether that worked.

    By default glibc gives blocks of a few megabytes back to the system after every step, and
    gets them again page by page, each filled with zeros: a tenth to a sixth of the time of a
    narrow network's step. The setting is for the whole process, so only our commands make it,
    never the library in another program.
    """
    if sys.platform != "linux" or any(name in os.environ for name in CHOSEN_BY_USERS):
        return False
    import ctypes

    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if set_option is None:
        return False
    kept = set_option(TRIM_THRESHOLD, KEPT_BYTES)
    return bool(kept and any(set_option(MMAP_THRESHOLD, most) for most in LARGEST_BLOCKS))

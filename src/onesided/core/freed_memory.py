"""Memory that a step frees stays with the process for the next step."""

import os
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""The numbers of glibc's malloc.h."""
KEPT_BYTES = 2**30
"""As much free memory may stay at the end of the heap; a whole step of any preset is less."""
LARGEST_PIECES = (2**28, 2**25)
"""Larger pieces come from the system and go back to it. Not every glibc takes the first."""
CHOSEN_BY_USERS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
"""Variables by which people set the same; then nothing is changed."""


def keep_freed_memory() -> bool:
    """Tell glibc to keep what is freed; return whether it is there and took it.

    By itself it gives maps of a few megabytes back to the system after every step, and gets
    them again page by page, each filled with zeros first: a tenth to a sixth of the time of a
    narrow network's step. It is a setting of the whole process, so only commands make it,
    never the library in somebody else's.
    """
    if sys.platform != "linux" or any(name in os.environ for name in CHOSEN_BY_USERS):
        return False
    import ctypes

    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if set_option is None:
        return False
    kept = set_option(TRIM_THRESHOLD, KEPT_BYTES)
    return bool(kept and any(set_option(MMAP_THRESHOLD, most) for most in LARGEST_PIECES))

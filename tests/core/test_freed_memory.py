"""Freed memory stays with a command's process; a library leaves the process as it is."""

import os
import platform
import subprocess
import sys

import pytest

from onesided.core.freed_memory import CHOSEN_BY_USERS, keep_freed_memory

PAGES = """
import resource, sys
import torch
from onesided.core.freed_memory import keep_freed_memory

def a_step():
    maps = [torch.ones(2**21) for _ in range(8)]  # 8 MB each

if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit("glibc did not take it")
for _ in range(3):
    a_step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    a_step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
needs_glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc has the setting to keep freed memory"
)


def pages_fetched(how: str) -> int:
    command = [sys.executable, "-c", PAGES, how]
    own = {key: value for key, value in os.environ.items() if key not in CHOSEN_BY_USERS}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=own)
    return int(done.stdout)


@needs_glibc
def test_a_step_after_the_first_gets_no_memory_from_the_system() -> None:
    # Ten steps touch 640 MB. Pages may be large ones, so that without the setting there are
    # fewer fetches than pages of 4 KB; with it there are next to none.
    kept = pages_fetched("keep")
    assert kept < 200
    # Without it a process may be lucky: glibc gives nothing back where a small block happens to
    # lie at the end of the heap. Not every one of eight is.
    assert any(pages_fetched("leave") > 2 * kept for _ in range(8))


@pytest.mark.parametrize("name", CHOSEN_BY_USERS)
def test_what_people_chose_themselves_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "131072")
    assert not keep_freed_memory()

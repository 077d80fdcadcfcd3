"""How much memory a process had at most, by Linux's own count."""

from pathlib import Path


def peak_megabytes(process: int | str = "self") -> int:
    """Return the most memory that a process had so far.

    Not by `getrusage`: its figure begins with what the parent had when it started the process.
    """
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return round(int(line.split()[1]) / 1024)

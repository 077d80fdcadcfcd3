"""`python -m onesided`, for torchrun."""

from onesided.cli import main

main()

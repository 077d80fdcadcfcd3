"""The loop, its memory, and what comes out of it."""

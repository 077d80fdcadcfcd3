"""The command `onesided` with chunks and pieces so small that a kill falls between two of them.

python -m tests.campaigns.small_pieces rank RUN ITEMS
"""

from unittest.mock import patch

from onesided.cli import main

CHUNK, PIECE = 64, 8

if __name__ == "__main__":
    with (
        patch("onesided.geo.scene.pieces.IN_A_PIECE", PIECE),
        patch("onesided.run.rank.chunk_length", return_value=CHUNK),
        patch("onesided.run.embed_chunks.chunk_length", return_value=CHUNK),
    ):
        main()

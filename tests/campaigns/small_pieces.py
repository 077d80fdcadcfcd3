"""The command `onesided` with chunks and pieces so small that a kill falls between two of them.

python -m tests.campaigns.small_pieces rank RUN ITEMS
"""

from onesided.cli import main
from onesided.geo.scene import pieces
from onesided.run import embed_chunks, rank

CHUNK = 64

if __name__ == "__main__":
    pieces.IN_A_PIECE = 8
    rank.chunk_length = embed_chunks.chunk_length = lambda shape: CHUNK
    main()

"""The colours of scores, the same on the page and in QGIS.

Ten steps of viridis: even steps for the eye, readable for colour-blind people and in grey print.
Viridis holds no grey, so grey is free for buildings without a score.
"""

Colour = tuple[int, int, int]

SCORE_COLOURS: tuple[Colour, ...] = (
    (68, 1, 84),
    (72, 40, 120),
    (62, 74, 137),
    (49, 104, 142),
    (38, 130, 142),
    (31, 158, 137),
    (53, 183, 121),
    (110, 206, 88),
    (181, 222, 43),
    (253, 231, 37),
)
"""Of scores from 0 to 0.1, from 0.1 to 0.2, and so on."""
NO_SCORE: Colour = (111, 119, 123)
"""Of buildings without a score."""

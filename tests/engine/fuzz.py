"""Damage of files, drawn from a seed: what disks, people and attackers leave."""

import numpy as np

MANY = 1000


def mutated(content: bytes, random: np.random.Generator) -> bytes:
    """Return the content after one of the usual accidents."""
    raw = bytearray(content)
    place = int(random.integers(0, max(1, len(raw))))
    length = int(random.integers(1, 200))
    match int(random.integers(0, 7)):
        case 0:
            raw[place : place + 1] = bytes([raw[place] ^ 1 << int(random.integers(0, 8))])
        case 1:
            raw[place : place + length] = random.bytes(min(length, len(raw) - place))
        case 2:
            del raw[place:]
        case 3:
            del raw[place : place + length]
        case 4:
            raw[place:place] = random.bytes(length)
        case 5:
            raw[place : place + length] = bytes(min(length, len(raw) - place))
        case _:
            other = int(random.integers(0, len(raw)))
            raw[place:place] = raw[other : other + length]
    return bytes(raw)

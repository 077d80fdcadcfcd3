"""Files as damage and malice leave them: a function of a sound file and a seed."""

import json
import random
from collections.abc import Callable, Sequence

ODD_NUMBERS = (
    *("0", "-1", "1e999", "-1e999", "NaN", "Infinity", "1e-400", "0x10", "1_000"),
    *(
        "9" * 20,
        "9" * 400,
        "9" * 5000,
        "2147483648",
        "-9223372036854775809",
        "1.7976931348623157e308",
    ),
)
ODD_VALUES: tuple[object, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        2**31,
        2**63,
        -(2**63) - 1,
        10**30,
        10**400,
        0.5,
        -0.0,
        1e308,
        1e-308,
    ),
    *("", " ", "x" * 5000, "\x00", "\ud800", "=1+1", "<script>", "../../etc/passwd", "nan"),
    *([], {}, [[]], [None], {"": None}, [1, 2], ["a"], {"name": 1}, [[[[[[]]]]]]),
    *(float("nan"), float("inf"), -float("inf")),
)
ODD_BYTES = (
    *(b"\x00", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\x80", b"\r\n", b"\n\n", b'"', b",", b";"),
    *(
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\x00\x00\x00\x00",
        b"\x00" * 64,
        b"{",
        b"[" * 3000,
    ),
)


def mutated(files: Sequence[bytes], draw: random.Random) -> bytes:
    """Return one of some sound files with one to four changes."""
    content = draw.choice(files)
    for _ in range(draw.choice((1, 1, 2, 4))):
        content = draw.choice(_CHANGES)(content, draw)
    if draw.random() < 0.05:
        other = draw.choice(files)
        at = draw.randrange(len(other) + 1)
        content = content[: draw.randrange(len(content) + 1)] + other[at:]
    return content


def mutated_json(files: Sequence[bytes], draw: random.Random) -> bytes:
    """Return a JSON file that is still JSON but for one to three values; at times mere bytes."""
    if draw.random() < 0.2:
        return mutated(files, draw)
    content = json.loads(draw.choice(files))
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        content = _with_odd_value(content, draw)
    return json.dumps(content).encode()


def mutated_text(files: Sequence[bytes], draw: random.Random) -> bytes:
    """Return a text file with odd numbers, lines and cells; at times mere bytes."""
    if draw.random() < 0.3:
        return mutated(files, draw)
    lines = draw.choice(files).split(b"\n")
    for _ in range(draw.choice((1, 1, 2, 5))):
        draw.choice(_LINE_CHANGES)(lines, draw)
    return b"\n".join(lines)


def _with_odd_value(content: object, draw: random.Random) -> object:
    """Return the content with one value, at any depth, replaced, removed or repeated."""
    if isinstance(content, dict) and content and draw.random() < 0.9:
        key = draw.choice(list(content))
        change = draw.random()
        if change < 0.1:
            return {other: value for other, value in content.items() if other != key}
        if change < 0.15:
            return {**content, draw.choice(("", "__proto__", key * 2)): content[key]}
        return {**content, key: _with_odd_value(content[key], draw)}
    if isinstance(content, list) and content and draw.random() < 0.9:
        place = draw.randrange(len(content))
        change = draw.random()
        if change < 0.1:
            return content[:place] + content[place + 1 :]
        if change < 0.2:
            return content * 2
        return [
            _with_odd_value(value, draw) if at == place else value
            for at, value in enumerate(content)
        ]
    return draw.choice(ODD_VALUES)


def _flip_bits(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 3, 10))):
        if changed:
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _cut_off(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content) + 1)]


def _cut_out(content: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(content) + 1)
    return content[:start] + content[start + draw.choice((1, 4, 50)) :]


def _insert(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(content) + 1)
    return content[:at] + draw.choice(ODD_BYTES) + content[at:]


def _overwrite(content: bytes, draw: random.Random) -> bytes:
    at, odd = draw.randrange(len(content) + 1), draw.choice(ODD_BYTES)
    return content[:at] + odd + content[at + len(odd) :]


def _repeat(content: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(content) + 1)
    part = content[start : start + draw.choice((1, 16, 300))]
    return content[:start] + part * draw.choice((2, 20)) + content[start:]


def _odd_number(content: bytes, draw: random.Random) -> bytes:
    """Put an odd number in the place of some digits, if there are any."""
    digits = [at for at, byte in enumerate(content[:20_000]) if 48 <= byte <= 57]
    if not digits:
        return _flip_bits(content, draw)
    start = end = draw.choice(digits)
    while end < len(content) and (48 <= content[end] <= 57 or content[end] == 46):
        end += 1
    return content[:start] + draw.choice(ODD_NUMBERS).encode() + content[end:]


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flip_bits, _flip_bits, _cut_off, _cut_out, _insert, _overwrite, _repeat, _odd_number),
)


def _drop_line(lines: list[bytes], draw: random.Random) -> None:
    if len(lines) > 1:
        lines.pop(draw.randrange(len(lines)))


def _repeat_line(lines: list[bytes], draw: random.Random) -> None:
    lines.insert(draw.randrange(len(lines) + 1), draw.choice(lines))


def _change_line(lines: list[bytes], draw: random.Random) -> None:
    at = draw.randrange(len(lines))
    lines[at] = draw.choice(_CHANGES)(lines[at], draw)


def _change_cell(lines: list[bytes], draw: random.Random) -> None:
    at = draw.randrange(len(lines))
    cells = lines[at].split(b",")
    odd = draw.choice((*ODD_NUMBERS, "", " ", '"', "a;b", "positive", "label", "\ufeff", "=1"))
    cells[draw.randrange(len(cells))] = odd.encode()
    lines[at] = b",".join(cells)


_LINE_CHANGES: tuple[Callable[[list[bytes], random.Random], None], ...] = (
    *(_drop_line, _repeat_line, _change_line, _change_line, _change_cell, _change_cell),
)

"""Names of items in text files: none is changed for good, none is run as a formula."""

import re
from pathlib import Path


def printable(name: str) -> str:
    r"""Return a name that can be written as text; `original_name` undoes it.

    Bytes that are not text become `\xNN`, and a backslash becomes two, so that two names
    stay different. Everything else stays, also quotes, commas and line breaks.
    """
    return without_surrogates(name.replace("\\", "\\\\"))


def shown_path(path: Path) -> str:
    """Return a path as messages show it."""
    return printable(path.as_posix())


def original_name(shown: str) -> str:
    """Undo `printable`."""
    return re.sub(r"\\(\\|x[0-9a-f]{2}|u[0-9a-f]{4})", _unescaped, shown)


def without_surrogates(text: str) -> str:
    """Return a text that UTF-8 can hold."""
    # Python carries byte NN of a name that is not UTF-8 as U+DCNN; Windows allows others.
    return re.sub("[\ud800-\udfff]", _escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if escape == "\\":
        return "\\"
    code = int(escape[1:], 16)
    return chr(0xDC00 + code if escape[0] == "x" else code)


# Spreadsheets skip what is invisible or separates cells, and some take the wide and the small
# forms of East Asian keyboards for the signs themselves. geo/output/web/review.js has the same.
_SKIPPED = r"[\s'\";,|\x00-\x1f\x7f-\x9f\u200b-\u200f\u2060\ufeff]*"
_SIGN = "[=+\\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b]"
_RUN_AS_FORMULA = re.compile(f"'*[\t\r\n]|{_SKIPPED}{_SIGN}")


def spreadsheet_safe(text: str) -> str:
    """Return the text with an apostrophe in front where a spreadsheet would run it.

    A cell that starts with = + - @, maybe after spaces or separators, is a formula to a
    spreadsheet; an apostrophe makes it text. Names that have such an apostrophe already get a
    second, so that names stay different.
    """
    return f"'{text}" if _RUN_AS_FORMULA.match(text) else text


def name_in_cell(cell: str) -> str:
    """Undo `spreadsheet_safe`."""
    return cell[1:] if cell.startswith("'") and _RUN_AS_FORMULA.match(cell) else cell

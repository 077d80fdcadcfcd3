"""Text files: how one is read, and why one cannot be."""

from pathlib import Path

from onesided.data.read.files import Unreadable

TEXT_ENDING = ".txt"
MOST_BYTES = 10 * 2**20
"""A larger file is no document that a person would rank."""


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, or raise `Unreadable`."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise Unreadable(path, "does not exist") from None
    except OSError as error:
        raise Unreadable(path, f"cannot be read ({error.strerror})") from None
    if len(content) > MOST_BYTES:
        raise Unreadable(path, f"is longer than {MOST_BYTES // 2**20} MB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = content[error.start]
        raise Unreadable(path, f"is not UTF-8 text (it holds the byte 0x{byte:02x})") from None
    if "\0" in text:
        raise Unreadable(path, "holds a zero byte, so it is no text")
    if not text.strip():
        raise Unreadable(path, "is empty")
    return text

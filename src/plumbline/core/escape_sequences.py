"""Takes out of a text what steers a terminal: colours, titles, links, moves of the cursor, letters taken back.

A program that thinks that it writes to a terminal puts them between a name and its number, where nobody sees them and
every pattern stumbles over them.
"""

from __future__ import annotations

import re

#: What ends a line in bytes that a program printed: its two characters, or a move of the cursor to another place.
LINE_END = re.compile(rb"[\r\n]|\x1b\[[0-9;]*[ABEFGHdf]")

# A byte from 80 to 9f that is no UTF-8 is decoded as a lone surrogate; behind another such byte it is half a letter of
# some other encoding, and steers nothing.
_RAW = r"(?<![\udc80-\udcff])"
_SEQUENCE = re.compile(
    # With parameters, up to a final letter: colours, erasing, moves.
    rf"(?:\x1b\[|\x9b|{_RAW}\udc9b)[0-?]*[ -/]*(?:[@-~]|\Z)"
    # Texts for the terminal itself, up to a bell or their end: titles, links.
    rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]|{_RAW}[\udc90\udc98\udc9d-\udc9f])"
    r"[^\x07\x1b\x80-\x9f\udc80-\udc9f]*(?:\x07|\x1b\\|[\x9c\udc9c])"
    # Of a letter or two: character sets, resets; also the begin of a sequence that is cut off.
    r"|\x1b[ -/]*[0-~]?"
    # Other control characters; tabs, line ends and what takes a letter back stay.
    rf"|[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]|{_RAW}[\udc80-\udc9f]"
)


def strip_escapes(text: str) -> str:
    """Take out escape sequences and control characters except for tabs and line ends, and what a backspace took back.

    Args:
        text: of any number of lines; bytes that are no UTF-8 as lone surrogates (`errors="surrogateescape"`), by which
            8-bit control characters are known.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCE.sub("", text)
    if "\b" not in text:
        return text
    letters: list[str] = []
    for letter in text:
        if letter != "\b":
            letters.append(letter)
        elif letters and letters[-1] not in "\r\n":
            letters.pop()
    return "".join(letters)


def decode(line: bytes) -> str:
    """Decode what a program printed, without its escape sequences; what is no UTF-8 becomes U+FFFD."""
    text = strip_escapes(line.decode(errors="surrogateescape"))
    return text if text.isascii() else text.encode(errors="surrogateescape").decode(errors="replace")

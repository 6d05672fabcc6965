"""Breaks lines between words where a terminal is too narrow for them."""

from __future__ import annotations

import os
import textwrap
from typing import TextIO


def fold_lines(text: str, stream: TextIO) -> str:
    """Break each line of `text` at the width of the terminal that `stream` is; in a file or a pipe lines stay whole."""
    if not stream.isatty():
        return text
    width = os.get_terminal_size(stream.fileno()).columns or 80
    wrap = textwrap.TextWrapper(width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrap.fill(line) for line in text.splitlines())

"""Prints warnings about what a plan does without, each once in a process."""

from __future__ import annotations

import sys
from functools import cache


@cache
def warn(words: str) -> None:
    """Print a warning on standard error, once in a process; `words` name a file and the remedy."""
    print(f"warning: {words}", file=sys.stderr)

"""Prints warnings about what a plan does without, each once in a process."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path


@cache
def warn(words: str) -> None:
    """Print a warning on standard error, once in a process; `words` name a file and the remedy."""
    print(f"warning: {words}", file=sys.stderr)


def warn_unread(path: Path, error: OSError) -> None:
    """Warn that a file could not be read, which says nothing of what is in it: the plan does without."""
    warn(f"{path} cannot be read ({error.strerror}) and is not used")

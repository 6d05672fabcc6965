"""What a plan goes on without is said, once in a process."""

from __future__ import annotations

import sys
from functools import cache


@cache
def warn(words: str) -> None:
    """Print a warning that names a file and the remedy."""
    print(f"warning: {words}", file=sys.stderr)

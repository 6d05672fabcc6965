"""Reads how far a run in progress states that it is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from plumbline.core.files import parse_json

#: The file in a run's state directory; `plumbline.train.monitoring.progress` writes it.
FILE = "progress.jsonl"
#: Bytes of its end that are read.
_TAIL = 65536


def events(state: Path) -> list[dict[str, Any]]:
    """Read the last events of a run's progress file in its state directory; lines that are not whole are left out."""
    rows = []
    for line in tail(state / FILE).splitlines():
        try:
            rows.append(parse_json(line))
        except json.JSONDecodeError:
            continue
    return [event for event in rows if isinstance(event, dict)]


def tail(path: Path) -> str:
    """Read the end of a text file, from within a line if it is long; empty if it cannot be read."""
    try:
        with open(path, "rb") as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - _TAIL))
            return handle.read().decode(errors="replace")
    except OSError:
        return ""

"""Reads the index of the probe checkpoints that a finished run left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import parse_json

#: The folder of probe checkpoints among a run's outputs, and the index in it.
FOLDER = "points"
INDEX = "index.json"


def read_index(run: Path) -> dict[str, Any]:
    """Read the index of the probe checkpoints in the folder `run` of a finished run.

    Raises:
        PlumblineError: there is none, or it is no index.
    """
    path = run / FOLDER / INDEX
    try:
        index = parse_json(path.read_text(encoding="utf-8"))
        if not all({"fraction", "step", "reached", "file", "sha256"} <= entry.keys() for entry in index["points"]):
            raise KeyError("an entry lacks a key")
    except FileNotFoundError as error:
        raise PlumblineError(f"there is no {path}; the run has not finished") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PlumblineError(
            f"{path} is not an index of probe points ({error}); delete {run} and pretrain again"
        ) from error
    return index

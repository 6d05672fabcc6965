"""Finds the folder whose trainer is meant; imports nothing, as every command that may be about one asks it."""

from __future__ import annotations

from pathlib import Path

#: What tells that a folder has a trainer of its own.
NAME = "plumbline.toml"


def find_trainer_folder() -> Path | None:
    """Find the working directory, or the nearest folder above it, that has a `plumbline.toml`."""
    start = Path.cwd()
    return next((folder for folder in (start, *start.parents) if (folder / NAME).is_file()), None)

"""Checks folders that several users share: this user must be able to write where jobs write, and others to continue."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plumbline.core import permissions
from plumbline.core.errors import PlumblineError


def require_writable_notes(directory: Path) -> None:
    """Check that this user may write `.snakemake`, where Snakemake keeps notes of every command, dry runs included.

    Where it cannot, Snakemake does not state why.

    Raises:
        PlumblineError: naming the folder that this user may not write.
    """
    notes = permissions.find_nearest(directory / ".snakemake")
    subfolders = sorted(path for path in notes.iterdir() if path.is_dir()) if notes.name == ".snakemake" else []
    closed = next((place for place in (notes, *subfolders) if not os.access(place, os.W_OK | os.X_OK)), None)
    if closed is not None:
        raise PlumblineError(permissions.explain_denial(closed))


def list_refusals(jobs: Iterable[Any]) -> list[str]:
    """Find where Snakemake's jobs would write and this user may not: the first such folder, and how many more."""
    folders = {Path(path).parent for job in jobs for path in (*job.output, *job.log)}
    places = sorted({permissions.find_nearest(folder) for folder in folders})
    closed = [place for place in places if not os.access(place, os.W_OK | os.X_OK)]
    more = f" (and {len(closed) - 1} more folders)" if len(closed) > 1 else ""
    return [f"{permissions.explain_denial(place)}{more}" for place in closed[:1]]


def warn_of_withheld(work: str, jobs: Iterable[Any]) -> list[str]:
    """Warn that files which jobs make in a shared folder could not be written by the other users."""
    message = permissions.explain_umask(permissions.find_nearest(work)) if any(job.output for job in jobs) else None
    return [message] if message else []

"""Compares the files of a finished run with the checksums that the trainer wrote into its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file

REMEDY = "delete the run's folder and pretrain again: what is whole in the run's state is not trained twice"


def require(folder: Path, manifest: Mapping[str, Any], name: str) -> str | None:
    """Compute the SHA-256 of a file in a run's folder, and compare it with the one that the trainer wrote down.

    None where the manifest, of an earlier version, has none.

    Raises:
        PlumblineError: it has not the bytes that the trainer wrote.
    """
    expected = manifest.get("files", {}).get(name, {}).get("sha256")
    if expected is None:
        return None
    found = sha256_file(folder / name)
    if found != expected:
        raise PlumblineError(
            f"{folder / name} is not what the trainer wrote: sha256 {found}, not {expected} as in manifest.json; "
            f"{REMEDY}"
        )
    return found

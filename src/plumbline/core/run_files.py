"""Compares a finished run's manifest with its own checksum and run id, and the run's files with the checksums in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, sha256_file, sha256_text

REMEDY = "delete the run's folder and pretrain again: what is whole in the run's state is not trained twice"


def require_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse the manifest of a run that says something else than was written, by its own SHA-256 where it has one (an
    earlier version's has none), and whose spec is not that of its run id.

    Raises:
        PlumblineError: naming the file and what differs.
    """
    fingerprint_file.require_as_written(path, manifest, REMEDY)
    spec, run_id = manifest.get("spec"), manifest.get("run_id")
    if isinstance(spec, dict) and run_id is not None and (found := id_of_spec(spec)) != run_id:
        raise PlumblineError(
            f"{path} was changed: its spec is that of run {found}, and its run_id is {run_id}; {REMEDY}"
        )


def id_of_spec(spec: Mapping[str, Any]) -> str:
    """Compute a run's id from its spec as a manifest has it, of this version or an earlier one."""
    return sha256_text(canonical_json(spec))[:16]


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

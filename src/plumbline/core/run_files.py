"""Compares a finished run's manifest with its own checksum and run id, and the run's files with the checksums in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, sha256_file, sha256_text

REMEDY = "delete the run's folder and pretrain again: what is whole in the run's state is not trained twice"

#: Keys that only versions write which write the manifest's own SHA-256 as well.
_BESIDE_ITS_SHA256 = ("environment", "float32_error")


def require_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse the manifest of a run that says something else than was written, by its own SHA-256 where it has one (an
    earlier version's has none), that has not the form which trainers write, or whose spec is not that of its run id.

    Raises:
        PlumblineError: naming the file and what differs.
    """
    fingerprint_file.require_as_written(path, manifest, REMEDY)
    if fingerprint_file.OF_THE_REST not in manifest:
        for key in _BESIDE_ITS_SHA256:
            if key in manifest:
                raise PlumblineError(
                    f"{path} was changed: it has {key!r}, and lacks {fingerprint_file.OF_THE_REST!r}, which every "
                    f"version that writes the one writes too; {REMEDY}"
                )
    spec, run_id, files = manifest.get("spec", {}), manifest.get("run_id"), manifest.get("files", {})
    if not isinstance(spec, dict):
        raise PlumblineError(f"{path} was changed: 'spec' is no object; {REMEDY}")
    if not isinstance(files, dict):
        raise PlumblineError(f"{path} was changed: 'files' is no object of files; {REMEDY}")
    for name, facts in files.items():
        if not isinstance(facts, dict) or not is_sha256(facts.get("sha256")):
            raise PlumblineError(f"{path} was changed: 'files' states no sha256 of {name!r:.80}; {REMEDY}")
    if spec and run_id is not None and (found := id_of_spec(spec)) != run_id:
        raise PlumblineError(
            f"{path} was changed: its spec is that of run {found}, and its run_id is {run_id}; {REMEDY}"
        )


def is_sha256(value: Any) -> bool:
    """Whether a value has the form of a SHA-256: 64 hexadecimal digits."""
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


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

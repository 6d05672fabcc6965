"""Names the files of a finished run and of its export, and compares them with what was written down of them.

That is a run's manifest (its own checksum and run id, the checksums of the run's files, the tokenizer), the index of
its probe checkpoints, and an export's record. Nothing here needs torch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, parse_json, sha256_file, sha256_text

#: The weights, in a run's folder and in a checkpoint.
MODEL = "model.safetensors"
#: The folder of probe checkpoints in a run's folder, and the index in it.
POINTS, POINTS_INDEX = "points", "index.json"
#: What an exported folder says of itself, the checksums of its other files among it.
EXPORT_RECORD = "export.json"
#: The key of a run's manifest that has the SHA-256 of the tokenizer.json that its packs were cut with.
TOKENIZER = "tokenizer_sha256"

#: How a run ended, or that it is not there.
COMPLETED, DIVERGED, MISSING = "completed", "diverged", "missing"

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
    if spec and run_id is not None and (spec_id := id_of_spec(spec)) != run_id:
        raise PlumblineError(
            f"{path} was changed: its spec is that of run {spec_id}, and its run_id is {run_id}; {REMEDY}"
        )


def is_sha256(value: Any) -> bool:
    """Whether a value has the form of a SHA-256: 64 hexadecimal digits."""
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


def id_of_spec(spec: Mapping[str, Any]) -> str:
    """Compute a run's id from its spec as a manifest has it, of this version or an earlier one."""
    return sha256_text(canonical_json(spec))[:16]


def require(folder: Path, manifest: Mapping[str, Any], name: str) -> str | None:
    """Compute the SHA-256 of a file in a run's folder, and compare it with the one that the trainer wrote down.

    None if the manifest, of an earlier version, has none.

    Raises:
        PlumblineError: it has not the bytes that the trainer wrote.
    """
    expected = manifest.get("files", {}).get(name, {}).get("sha256")
    if expected is None:
        return None
    sha256 = sha256_file(folder / name)
    if sha256 != expected:
        raise PlumblineError(
            f"{folder / name} is not what the trainer wrote: sha256 {sha256}, not {expected} as in manifest.json; "
            f"{REMEDY}"
        )
    return sha256


def require_tokenizer(folder: Path, manifest: Mapping[str, Any], tokenizer: Path) -> str:
    """Compute the SHA-256 of a tokenizer.json, and compare it with that of the tokenizer that a run was trained with.

    Args:
        folder: of the run.
        manifest: of the run.

    Raises:
        PlumblineError: it is another tokenizer, or nothing says which one it should be.
    """
    path, sha256, expected = folder / "manifest.json", sha256_file(tokenizer), manifest.get(TOKENIZER)
    if expected is None:
        raise PlumblineError(
            f"{path} has no {TOKENIZER!r}, so that nothing says which tokenizer the run was trained with; "
            "delete the run's folder and pretrain again"
        )
    if sha256 != expected:
        raise PlumblineError(
            f"{tokenizer} is not the tokenizer that {folder} was trained with: its sha256 is {sha256}, and {path} says "
            f"{expected}; give or restore that one (the rule `tokenizer` makes a corpus's again where it was deleted "
            "along with its .fingerprint.json)"
        )
    return sha256


def read_points_index(run: Path) -> dict[str, Any]:
    """Read the index of the probe checkpoints in the folder `run` of a finished run.

    Raises:
        PlumblineError: there is none, or it is no index.
    """
    path = run / POINTS / POINTS_INDEX
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


def read_export_record(folder: Path) -> dict[str, Any]:
    """Read what an earlier export says of itself; empty if there is none."""
    try:
        record = parse_json((folder / EXPORT_RECORD).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return record if isinstance(record, dict) and isinstance(record.get("files"), dict) else {}


def require_unchanged_export(folder: Path) -> None:
    """Refuse an exported folder of which a file is no longer the one that was exported; other folders pass.

    Raises:
        PlumblineError: naming the file and both hashes.
    """
    for name, expected in read_export_record(folder).get("files", {}).items():
        path = folder / name
        sha256 = sha256_file(path) if path.is_file() else "missing"
        if sha256 != expected:
            raise PlumblineError(
                f"{path} is not what was exported: sha256 {sha256}, not {expected} as in {EXPORT_RECORD}; export the "
                f"run again (plumbline export), or, where the change is meant, remove {folder / EXPORT_RECORD}: the "
                "folder is then one like any other"
            )

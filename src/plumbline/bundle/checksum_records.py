"""Reads the SHA-256 of other files and of themselves that files of work/, results/, records and boards state.

No format is defined here: manifests of runs, packs and documents, metadata of checkpoints, indices, the small
files next to products, provenance of tables, records of bundles and exports are read as their makers wrote them.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from plumbline.core import fingerprint_file, run_files
from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, parse_json, sha256_text
from plumbline.core.run_files import EXPORT_RECORD, POINTS, POINTS_INDEX
from plumbline.data.manifest import PACKS
from plumbline.project.paths import RESULTS

AS_WRITTEN: Final = "as written"
CHANGED: Final = "changed"
MISSING: Final = "missing"
NOT_KNOWN: Final = "not known"
Status = Literal["as written", "changed", "missing", "not known"]

#: The most bytes of a file that is read as a record: what lists the files of the largest corpus has a thousandth.
LARGEST = 256 << 20

#: The frames of scores and probes of a run, which say whose they are, and the small files next to them.
_FRAMES = ("scores.parquet", "examples.parquet", "probes.parquet")
_OF_FRAMES = (f"scores.{fingerprint_file.KEY}.json", f"probes.{fingerprint_file.KEY}.json")

#: Endings of the small file next to a product and of a table's provenance.
_BESIDE, _PROVENANCE = f".{fingerprint_file.KEY}.json", ".provenance.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedFile:
    """A file and its status; `why`: the record that states it, or the reason."""

    path: str
    status: Status
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ChecksumRecord:
    """A file that keeps the SHA-256 of other files, and its own status with the reason."""

    path: Path
    files: Mapping[Path, str]
    status: Status
    why: str = ""


def read_record(path: Path) -> ChecksumRecord | None:
    """Read a JSON file that keeps checksums; None if it keeps none.

    A file with the name of such a file that is not JSON or lacks what its maker writes was changed, if it lies where
    the maker writes it; elsewhere it is somebody else's.
    """
    if path.suffix != ".json" or path.stat().st_size > LARGEST:
        return None
    record = _parse_record(path, path.read_bytes(), os.path.exists)
    if record is None or path.name not in _OF_FRAMES:
        return record
    files = [path.with_name(name) for name in _FRAMES] + [_find_manifest(path)]
    try:
        _require_one_run({file: _read_run_ids(file, file.read_bytes()) for file in files if file.is_file()})
    except PlumblineError as error:
        return replace(record, status=CHANGED, why=str(error))
    return record


def is_compared(name: str) -> bool:
    """Whether `require_agreement` reads a file of an archive, by its name."""
    return name.endswith((".json", *_FRAMES))


def require_agreement(contents: Iterable[tuple[str, bytes]], hashes: Mapping[str, str]) -> int:
    """Read the JSON files of an archive as `read_record` does, and compare the files that they name with those in the
    archive. Weights and texts are not in it, products are.

    Args:
        contents: name there and content of each file that `is_compared`.
        hashes: name there -> SHA-256, of all files.

    Returns:
        The number of manifests of runs that have no SHA-256 of their own.

    Raises:
        PlumblineError: a record, or a file that it names, is not as it was written, or lies in the place of another.
    """
    unsealed, run_ids = 0, dict[Path, set[str]]()
    for name, content in contents:
        path = Path("/") / name
        run_ids[path] = _read_run_ids(path, content)
        record = _parse_record(path, content, lambda file_path: os.path.normpath(file_path)[1:] in hashes)
        if record is not None and record.status == CHANGED:
            raise PlumblineError(f"{name} was changed: {record.why}")
        for file_path, sha256 in record.files.items() if record else ():
            file = os.path.normpath(file_path)[1:]
            actual_sha256 = hashes.get(file)
            if actual_sha256 is None and file.startswith(f"{RESULTS}/"):
                raise PlumblineError(f"{file} is not there, and {name} names it; have both made again")
            if actual_sha256 not in (None, sha256):
                raise PlumblineError(
                    f"{file} was changed: its sha256 is {actual_sha256}, and {name} says {sha256}; restore it, or have "
                    "both made again"
                )
        unsealed += path.name == "manifest.json" and (record is None or record.status != AS_WRITTEN)
    _require_one_run(run_ids)
    return unsealed


def _find_manifest(path: Path) -> Path:
    """Find where the manifest of the run lies in whose place a file of scores or probes is."""
    parts = Path(os.path.abspath(path)).parts
    return Path(*parts[:-6], "runs", *parts[-5:-1], "manifest.json")


def _read_run_ids(path: Path, content: bytes) -> set[str]:
    """Read of which runs a manifest or a frame of scores or probes is: none of a frame without rows, and of one that
    cannot be read here (pyarrow may not be installed), for which its checksums stand."""
    try:
        if path.name == "manifest.json":
            return {str(parse_json(content)["run_id"])}
        if path.name in _FRAMES:
            import pyarrow.parquet

            return set(pyarrow.parquet.read_table(io.BytesIO(content), columns=["run_id"])["run_id"].to_pylist())
    except (ImportError, OSError, ValueError, KeyError, TypeError):  # which those of pyarrow are
        pass
    return set()


def _require_one_run(run_ids: Mapping[Path, set[str]]) -> None:
    """Refuse frames that lie in the place of another run: of its manifest, if that is among the files."""
    for path, frame_ids in run_ids.items():
        place_ids = run_ids.get(_find_manifest(path)) if path.name in _FRAMES else None
        if place_ids and frame_ids - place_ids:
            place = "/".join(path.parts[-5:-1])
            raise PlumblineError(
                f"{path.name} is of run {min(frame_ids - place_ids)}, and lies in the place of {place}, which is run "
                f"{min(place_ids)}; put both back, or have them made again"
            )


def _parse_record(path: Path, text: bytes, exists: Callable[[Path], bool]) -> ChecksumRecord | None:
    form, is_ours = _find_form_by_name(path, exists), _lies_where_makers_write(path, exists)
    try:
        content = parse_json(text)
        if not isinstance(content, dict):
            raise ValueError("holds no object")
        form = form or _find_form_by_content(content)
        if form is None:
            return None
        is_ours |= fingerprint_file.OF_THE_REST in content
        files = {path.parent / name: _require_sha256(name, value) for name, value in form(path, content).items()}
        if is_ours and path.name == "manifest.json" and form is _read_listed_files:
            _require_keys(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if form is None or not is_ours:
            return None
        return ChecksumRecord(path=path, files={}, status=CHANGED, why=f"it is not as its maker writes it ({error})")
    status, why = _check_own_sha256(path, content)
    if status == CHANGED and not is_ours:
        return None
    return ChecksumRecord(path=path, files=files, status=status, why=why)


def _require_sha256(name: str, value: Any) -> str:
    if not run_files.is_sha256(value):
        raise ValueError(f"it states no sha256 of {name!r:.80}")
    return str(value)


def _require_keys(manifest: dict[str, Any]) -> None:
    """Require the keys of a run's manifest; one without its own SHA-256 may be of a version that listed no files."""
    required_keys = ("run_id", "spec", "files") if fingerprint_file.OF_THE_REST in manifest else ("run_id", "spec")
    for key in required_keys:
        if manifest.get(key) in (None, {}):
            raise ValueError(f"{key!r} is missing")


def _require_place(path: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse the manifest of a run that lies in the place of another one, where tables would take it for that one."""
    *parents, study, scale, method, seed = Path(os.path.abspath(path)).parent.parts[-5:]
    spec = manifest.get("spec", {})
    values = [spec.get(name) for name in ("study", "scale", "method", "init_seed")]
    key, place = "{}/{}/{}/s{}".format(*values), f"{study}/{scale}/{method}/{seed}"
    if parents == ["runs"] and None not in values and key != place:
        raise PlumblineError(f"{path}: it is that of run {key}, and lies in the place of {place}; put both runs back")


def _lies_where_makers_write(path: Path, exists: Callable[[Path], bool]) -> bool:
    """Return whether a file lies where its maker writes files of its name, which others use for their own files too."""
    folder = path.absolute().parent
    folder_names = [parent.name for parent in (folder, *folder.parents)]
    neighbours = {
        "manifest.json": ("outcome.json", "model.safetensors"),
        "metadata.json": ("loop.json",),
        "items.json": (f"items.{fingerprint_file.KEY}.json",),
        POINTS_INDEX: ("../manifest.json",),
        EXPORT_RECORD: ("config.json", "model.safetensors"),
        "record.json": ("bundle.tar.xz",),
        "model.json": ("elimination.json",),
    }
    if any(exists(folder / name) for name in neighbours.get(path.name, ())):
        return True
    if path.name == "manifest.json":
        return folder_names[4:5] == ["runs"]
    if path.name == "metadata.json":
        return "state" in folder_names[5:7]
    if path.name == "documents.json":
        return folder_names[0] == "documents"
    if path.name == "items.json":
        return folder_names[1:2] == ["items"]
    if path.name.endswith(_PROVENANCE):
        return exists(path.with_name(f"{path.name.removesuffix(_PROVENANCE)}.csv"))
    return path.name.endswith(_BESIDE) or PACKS in folder_names[2:3] or folder_names[1:2] == ["measured"]


def _check_own_sha256(path: Path, content: dict[str, Any]) -> tuple[Status, str]:
    """Compare a record with its own SHA-256."""
    try:
        if path.name == "metadata.json":
            other_fields = {name: value for name, value in content.items() if name != "sha256"}
            is_equal = content.get("sha256") == sha256_text(canonical_json(other_fields))
            return (AS_WRITTEN, "") if is_equal else (CHANGED, "its own sha256 is another one")
        if path.name == "manifest.json":
            run_files.require_manifest(path, content)
            _require_place(path, content)
        is_sealed = path.name.endswith((_BESIDE, _PROVENANCE))
        require = fingerprint_file.require_sealed if is_sealed else fingerprint_file.require_as_written
        require(path, content, "have it made again")
    except PlumblineError as error:
        return CHANGED, str(error).partition(": ")[2] or str(error)
    if fingerprint_file.OF_THE_REST in content:
        return AS_WRITTEN, ""
    return NOT_KNOWN, "it has no sha256 of itself (an earlier version's, or of a kind that keeps none)"


_Form = Callable[[Path, dict[str, Any]], dict[str, str]]


def _find_form_by_name(path: Path, exists: Callable[[Path], bool]) -> _Form | None:
    if path.name.endswith(_BESIDE):
        return _read_product
    if path.name.endswith(_PROVENANCE):
        return _read_provenance
    if path.parent.parent.name.startswith("context") and path.parent.parent.parent.name == PACKS:
        return _read_shards
    if exists(path.with_suffix(".parquet")):
        return _read_frame
    if path.name == "metadata.json" and path.parent.name.lstrip(".").startswith("step-"):
        return _read_listed_files
    if path.name == POINTS_INDEX and path.parent.name == POINTS:
        return _read_points
    forms: dict[str, _Form] = {
        "manifest.json": _read_listed_files,
        "documents.json": _read_splits,
        "items.json": _read_items,
        EXPORT_RECORD: _read_listed_files,
        "record.json": _read_archive,
        "model.json": _read_weights,
    }
    return forms.get(path.name)


def _find_form_by_content(content: dict[str, Any]) -> _Form | None:
    if "shards" in content and "tokenizer_sha256" in content:
        return _read_shards
    return _read_nothing if fingerprint_file.OF_THE_REST in content else None


def _read_listed_files(path: Path, content: dict[str, Any]) -> dict[str, str]:
    """Read ``files`` of a run, a checkpoint or an export, with sizes or without."""
    files = content.get("files", {})
    if not isinstance(files, dict):
        raise ValueError("'files' is no object of files")
    return {name: entry["sha256"] if isinstance(entry, dict) else entry for name, entry in files.items()}


def _read_product(path: Path, content: dict[str, Any]) -> dict[str, str]:
    """Read the checksums of a product and of the files next to it. Earlier versions do not name the product."""
    sha256, frame = content.get(fingerprint_file.BYTES), f"{path.name.removesuffix(_BESIDE)}.parquet"
    frame_hashes = {frame: sha256} if sha256 and frame in ("scores.parquet", "probes.parquet") else {}
    return frame_hashes | dict(content.get(fingerprint_file.FILES, {}))


def _read_provenance(path: Path, content: dict[str, Any]) -> dict[str, str]:
    csv = f"{path.name.removesuffix(_PROVENANCE)}.csv"
    return dict(content.get(fingerprint_file.FILES, {})) | {csv: content["csv_sha256"]}


def _read_points(path: Path, content: dict[str, Any]) -> dict[str, str]:
    return {point["file"]: point["sha256"] for point in content["points"] if point["file"] is not None}


def _read_splits(path: Path, content: dict[str, Any]) -> dict[str, str]:
    return {split["file"]: split["sha256"] for split in content["splits"].values()}


def _read_shards(path: Path, content: dict[str, Any]) -> dict[str, str]:
    return {shard["file"]: shard["sha256"] for shard in content["shards"]}


def _read_frame(path: Path, content: dict[str, Any]) -> dict[str, str]:
    return {path.with_suffix(".parquet").name: content["frame_sha256"]}


def _read_items(path: Path, content: dict[str, Any]) -> dict[str, str]:
    checksums = {f"{task}.jsonl": entry["sha256"] for task, entry in content.items()}
    examples = {task: entry["few_shot_sha256"] for task, entry in content.items() if entry.get("few_shot_sha256")}
    return checksums | {f"{task}.few_shot.jsonl": sha256 for task, sha256 in examples.items()}


def _read_archive(path: Path, content: dict[str, Any]) -> dict[str, str]:
    for key in ("words", "commit", "products"):  # which a record has, unlike another program's file of that name
        content[key]
    return {"bundle.tar.xz": content["sha256"]}


def _read_weights(path: Path, content: dict[str, Any]) -> dict[str, str]:
    return {"model.safetensors": content["weights_sha256"]}


def _read_nothing(path: Path, content: dict[str, Any]) -> dict[str, str]:
    return {}

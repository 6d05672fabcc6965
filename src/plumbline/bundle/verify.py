"""Checks whether files are what their makers wrote, and whether a record comes out again.

    plumbline verify                     work/ and results/, by checksums
    plumbline verify results/demo        a folder, or one file
    plumbline verify records/evening     a record: its archive, and its files
    plumbline verify --rebuild           targets of all records made again
    plumbline verify --retrain 2 RECORD  two of its runs trained again

`--rebuild` takes the code of a record's commit, `--retrain` the present one for runs that it draws at random.
A file is `as written`, `changed`, `missing` (a checksum of it is there), or `not known` (no checksum of it was kept:
logs, what earlier versions made, a ledger whose end no page states, a folder that is a link).
Nothing is changed, and every file is read, even if it was verified before. A checksum shows damage and what was edited
or replaced, not a change by somebody who computes it anew; --retrain and a signature (--signers) show that. Of which
run scores and probes are is compared with the manifest in their place where pyarrow is installed. Exit codes:
0 if something was verified and nothing is changed, missing or different, 10 if something is, 16 if nothing was checked,
75 if stopped on request (the same command with the --seed that it printed continues), 2 for a command line that is not
valid, 1 after an error.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

from plumbline.bundle import archive, records
from plumbline.bundle.checksum_records import (
    AS_WRITTEN,
    CHANGED,
    MISSING,
    NOT_KNOWN,
    ChecksumRecord,
    Status,
    VerifiedFile,
    read_record,
)
from plumbline.bundle.rebuild import BROUGHT
from plumbline.bundle.signatures import ENDING, check_signatures
from plumbline.core.command_line import EXIT_DIFFERENT, EXIT_NOTHING_COMPARED, Parser, not_negative, positive, run
from plumbline.core.errors import PlumblineError, UsageError, visible
from plumbline.core.files import NOWHERE, sha256_file
from plumbline.data.pinned_packages import PINS
from plumbline.data.progress import ProgressCounter
from plumbline.project import packed_bundle
from plumbline.project.paths import RESULTS
from plumbline.verdict import ledger

#: The folders that are checked if none is named.
_FOLDERS = ("work", RESULTS)

#: Lines on files that are not known that are printed; `--json` has all.
_LINES = 20

_NO_CHECKSUM = "no checksum of it was kept"
_UNSEALED = "which has no sha256 of itself, so that it may have been edited with the file"


def verify(paths: Iterable[Path], signers: Path | None = None) -> list[VerifiedFile]:
    """Compare every file below some folders, or single files, with the checksums and signatures that were kept of them.

    Raises:
        PlumblineError: the file system fails, or `signers` are of no use (`check_signatures`).
    """
    files: dict[Path, VerifiedFile] = {}
    for path in paths:
        files |= {file: verified for file, verified in _verify_below(path).items() if file not in files}
    files = check_signatures(files, signers)
    return [files[file] for file in sorted(files)]


def exit_code(files: Iterable[VerifiedFile]) -> int:
    """Return the exit code of verified files: 0, 10 (changed or missing) or 16 (nothing could be compared)."""
    counts = Counter(file.status for file in files)
    if counts[CHANGED] or counts[MISSING]:
        return EXIT_DIFFERENT
    return 0 if counts[AS_WRITTEN] else EXIT_NOTHING_COMPARED


def _verify_below(root: Path) -> dict[Path, VerifiedFile]:
    """Verify one file or folder; the files next to it, or one folder higher, may keep its checksums."""
    own_paths = [root] if root.is_file() else list(_walk_files(root))
    parent_folders = [root.parent, root.parent.parent] if root.is_file() else [Path(os.path.normpath(root / ".."))]
    nearby_paths = [path for folder in parent_folders for path in _list_json(folder)]
    records = [
        record for path in {*own_paths, *nearby_paths} if _is_plain(path) and (record := read_record(path)) is not None
    ]
    hashes = _Hashes()
    checksums = _collect_checksums(records)
    records = [
        _check_by_others(record, checksums.get(Path(os.path.normpath(record.path)), []), hashes) for record in records
    ]
    checksums = _collect_checksums(records)
    own_records = {Path(os.path.normpath(record.path)): record for record in records}
    files: dict[Path, VerifiedFile] = {}
    with ProgressCounter(f"verify {root}", "files", len(own_paths)) as progress:
        for path in own_paths:
            place = Path(os.path.normpath(path))
            status, why = _verify_file(place, checksums.get(place, []), own_records.get(place), hashes)
            files[place] = VerifiedFile(path=str(path), status=status, why=why)
            progress.add()
    for place, file_checksums in checksums.items():
        if place not in files and Path(os.path.abspath(place)).is_relative_to(os.path.abspath(root)):
            status, why = _verify_file(place, file_checksums, own_records.get(place), hashes)
            if status != MISSING or not _is_left_out_of_bundle(place):
                files[place] = VerifiedFile(path=str(place), status=status, why=why)
    return _add_copies(files, hashes)


def _collect_checksums(records: Iterable[ChecksumRecord]) -> dict[Path, list[tuple[str, ChecksumRecord]]]:
    """Collect the checksums that records keep of each file."""
    checksums: dict[Path, list[tuple[str, ChecksumRecord]]] = {}
    for record in sorted(records, key=lambda record: record.path):
        for path, sha256 in record.files.items():
            checksums.setdefault(Path(os.path.normpath(path)), []).append((sha256, record))
    return checksums


def _check_by_others(
    record: ChecksumRecord, checksums: list[tuple[str, ChecksumRecord]], hashes: _Hashes
) -> ChecksumRecord:
    """Check a record that has no SHA-256 of itself by the records that name it (an index of points, a manifest)."""
    if record.status != NOT_KNOWN:
        return record
    for sha256, other in checksums:
        if hashes.of(record.path) != sha256:
            return replace(record, status=CHANGED, why=_describe_difference(record.path, sha256, other, hashes))
    is_sealed = any(other.status == AS_WRITTEN for _, other in checksums)
    return replace(record, status=AS_WRITTEN, why="") if is_sealed else record


class _Hashes:
    """SHA-256 of files, each content read once, however many names it has."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], str] = {}

    def of(self, path: Path) -> str:
        status = path.stat()
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if key not in self._known:
            self._known[key] = sha256_file(path)
        return self._known[key]


def _verify_file(
    path: Path, checksums: list[tuple[str, ChecksumRecord]], own_record: ChecksumRecord | None, hashes: _Hashes
) -> tuple[Status, str]:
    """Decide the status of a file by its checksums in records, and by `own_record`, the file read as a record."""
    if not _is_plain(path):
        if checksums:
            name = checksums[0][1].path.name
            is_there = os.path.exists(path)
            return (CHANGED, f"it is no file, and {name} names one") if is_there else (MISSING, f"{name} names it")
        return NOT_KNOWN, "a link, not entered; name it" if path.is_symlink() else "it is no plain file"
    if own_record is not None and own_record.status == CHANGED:
        return CHANGED, own_record.why
    for sha256, record in checksums:
        if hashes.of(path) != sha256:
            return CHANGED, _describe_difference(path, sha256, record, hashes)
    if path.name.endswith(".tar.xz"):
        return _verify_archive(path, checksums)
    trusted_records = [record for _, record in checksums if record.status != CHANGED]
    if trusted_records:
        sealed_record = next((record for record in trusted_records if record.status == AS_WRITTEN), None)
        name = (sealed_record or trusted_records[0]).path.name
        return AS_WRITTEN, f"by {name}" if sealed_record else f"by {name}, {_UNSEALED}"
    if checksums:
        return NOT_KNOWN, f"{checksums[0][1].path.name}, which names it, was changed"
    if own_record is not None:
        if path.name == records.SAYS:
            try:
                records.read_record(path.parent)
            except archive.ChangedArchive as error:
                return CHANGED, str(error)
            except PlumblineError:  # of another format, or without its archive, which is told of that
                pass
        return own_record.status, own_record.why or "by its own sha256"
    return _verify_without_record(path, hashes)


def _describe_difference(path: Path, sha256: str, record: ChecksumRecord, hashes: _Hashes) -> str:
    return f"its sha256 is {hashes.of(path)}, and {record.path.name} says {sha256}"


def _verify_ledger(path: Path) -> tuple[Status, str]:
    """Verify a ledger by its chain of hashes and by its length on the pages next to it: a cut tail breaks no chain."""
    try:
        entries, is_torn = ledger.read_unchanged(path)
        pages = {}
        for page in sorted(path.parent.glob("*.md")):
            statement = ledger.read_statement(page)
            if statement and os.path.normpath(page.parent / statement.name) == str(path):
                ledger.count_new_entries(entries, page, statement)
                pages[statement.length] = page.name
    except PlumblineError as error:
        return CHANGED, str(error)
    if is_torn:
        why = f"its last line is incomplete, as after a power cut; the {len(entries)} entries before it agree"
        return NOT_KNOWN, why
    if entries.hashes and len(entries) in pages:
        return AS_WRITTEN, f"by its chain of {len(entries)} hashes, and {pages[len(entries)]}, which states the last"
    why = f"{len(entries)} entries agree; whether later ones were removed is not known: no page beside it says"
    return NOT_KNOWN, why


def _verify_without_record(path: Path, hashes: _Hashes) -> tuple[Status, str]:
    """Verify a file that no record names: a ledger, which is a chain of hashes, or an archive that is pinned."""
    if path.name == "ledger.jsonl":
        return _verify_ledger(path)
    pin = PINS.get(path.stem) if path.parent.name == "packages" else None
    if pin is not None and path.suffix == pin.suffix:
        is_equal = hashes.of(path) == pin.sha256
        return (AS_WRITTEN, "by its pin") if is_equal else (CHANGED, f"its sha256 is not the pinned {pin.sha256}")
    return NOT_KNOWN, _NO_CHECKSUM


def _verify_archive(path: Path, checksums: list[tuple[str, ChecksumRecord]]) -> tuple[Status, str]:
    """Verify a bundle by the checksums that its crate has of every file in it."""
    try:
        compared = archive.compare_archive(path)
    except PlumblineError as error:
        if checksums or isinstance(error, archive.ChangedArchive):
            return CHANGED, str(error).removeprefix(f"{path}: ")
        return NOT_KNOWN, f"{_NO_CHECKSUM}, and it cannot be read as a bundle"
    reason = f"by {checksums[0][1].path.name}, and " if checksums else "by "
    reason += f"its crate, which has the sha256 of each of its {compared.files} files"
    if compared.unsealed:
        reason += (
            f"; {compared.unsealed} manifests of runs in it have no sha256 of their own (an earlier version's): it is "
            f"{NOT_KNOWN} whether they were changed before they were packed, but each one's spec is that of its run id"
        )
    return AS_WRITTEN, reason


def _add_copies(files: dict[Path, VerifiedFile], hashes: _Hashes) -> dict[Path, VerifiedFile]:
    """Give a file without a checksum the status of a file as written that it is a copy of (``results/`` has copies of
    the requested preset)."""
    originals: dict[str, list[Path]] = {}
    for path, file in files.items():
        if file.status == AS_WRITTEN:
            originals.setdefault(path.name, []).append(path)
    copies = {}
    for path, file in files.items():
        if file.status != NOT_KNOWN or file.why != _NO_CHECKSUM or path.name not in originals:
            continue
        for original in originals[path.name]:
            if original.stat().st_size == path.stat().st_size and hashes.of(original) == hashes.of(path):
                copies[path] = VerifiedFile(path=file.path, status=AS_WRITTEN, why=f"as {original}")
                break
    return files | copies


def _walk_files(folder: Path) -> Iterator[Path]:
    """List all files below a folder, in order of their names, and the folders that are links, which are not entered."""
    for place, folders, names in os.walk(folder, onerror=_refuse):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        yield from (Path(place, name) for name in sorted([*names, *links]))


def _refuse(error: OSError) -> None:
    raise PlumblineError(f"{error.filename} cannot be read ({error.strerror}); nothing below it was compared")


def _list_json(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.json"))
    except OSError:
        return []


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        if error.errno not in NOWHERE:
            raise
        return False


def _is_left_out_of_bundle(path: Path) -> bool:
    """Return whether a file lies in the folder of a rebuilt bundle, which has all results and needs no weights."""
    absolute = Path(os.path.abspath(path))
    for folder in absolute.parents:
        if os.path.isdir(folder) and packed_bundle.read(folder) is not None:
            return absolute.relative_to(folder).parts[0] not in (RESULTS, BROUGHT)
    return False


def _format_lines(files: list[VerifiedFile]) -> Iterator[str]:
    for file in files:
        if file.status in (CHANGED, MISSING):
            yield f"{file.status:<11} {file.path}: {file.why}"
    paths_by_kind: dict[tuple[Path, str, str], list[str]] = {}
    for file in files:
        if file.status == NOT_KNOWN:
            path = Path(file.path)
            folder = Path(*path.parent.parts[: 4 if path.is_absolute() else 3])
            paths_by_kind.setdefault((folder, path.suffix, file.why), []).append(file.path)
    for (folder, ending, why), paths in sorted(paths_by_kind.items(), key=lambda entry: entry[1][0])[:_LINES]:
        more = f" and {len(paths) - 1} more files *{ending} in {folder} (--json names them)" if len(paths) > 1 else ""
        yield f"{NOT_KNOWN:<11} {paths[0]}{more}: {why}"
    if len(paths_by_kind) > _LINES:
        yield f"{NOT_KNOWN:<11} and {len(paths_by_kind) - _LINES} more kinds of files (--json names them)"
    for file in files:
        if file.status == AS_WRITTEN and file.path.endswith((".tar.xz", ENDING)):
            yield f"{AS_WRITTEN:<11} {file.path}: {file.why}"
    counts = Counter(file.status for file in files)
    kinds: tuple[Status, ...] = (AS_WRITTEN, CHANGED, MISSING, NOT_KNOWN)
    yield f"{len(files)} files: " + ", ".join(f"{counts[kind]} {kind}" for kind in kinds)
    if not counts[AS_WRITTEN]:
        yield "nothing was verified"


def arguments() -> Parser:
    """Build the command-line parser of `plumbline verify`."""
    parser = Parser(__doc__)
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="folders or files (default: work, results)")
    group = parser.add_mutually_exclusive_group()
    text = "make a record's tables and figures again, and compare byte by byte (PATH: records; default: records/*)"
    group.add_argument("--rebuild", action="store_true", help=text)
    text = "train N runs of a record again, and compare (PATH: one record, or a bundle)"
    group.add_argument("--retrain", type=positive, metavar="N", help=text)
    parser.add_argument("--seed", type=not_negative, help="with --retrain: of the draw (default: by chance, and told)")
    text = "with --retrain: as snakemake's, such as work=DIR with the packs"
    parser.add_argument("--config", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=text)
    text = "with --rebuild: targets at a time (default: 1)"
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help=text)
    text = "OpenSSH's file of allowed signers: each record has to be signed by one of them"
    parser.add_argument("--signers", type=Path, metavar="FILE", help=text)
    parser.add_argument("--json", action="store_true", help="print every file or run with its status as JSON")
    return parser


def main() -> int:
    """Run `plumbline verify`, and return its exit code."""
    options = arguments().parse_args()
    again = options.rebuild or options.retrain
    strays = {} if options.retrain else {"--seed": options.seed is not None, "--config": options.config}
    strays |= {"--signers": options.signers and again}
    strays |= {"--json": options.json} if options.rebuild else {"--jobs": options.jobs > 1}
    for name, is_there in strays.items():
        if is_there:
            raise UsageError(f"{name} does nothing here; leave it out (plumbline verify --help says what it goes with)")
    for path in options.paths:
        if not path.exists():
            raise UsageError(f"there is no {path}; name a folder or a file, such as work/demo")
    if options.retrain:
        if len(options.paths) != 1:
            raise UsageError(f"--retrain takes one record, such as {records.FOLDER}/NAME, not {len(options.paths)}")
        return _retrain(options.paths[0], options.retrain, options.seed, options.config, options.json)
    if options.rebuild:
        return _rebuild(options.paths, options.jobs)
    paths = options.paths or [path for name in _FOLDERS if (path := Path(name)).is_dir()]
    if not paths:
        raise UsageError(f"here is neither {' nor '.join(_FOLDERS)}; name a folder or a file")
    files = verify(paths, options.signers)
    code = exit_code(files)
    if options.json:
        counts = Counter(file.status for file in files)
        print(json.dumps({"exit_code": code, "counts": counts, "files": [asdict(file) for file in files]}, indent=1))
    else:
        for line in _format_lines(files):
            print(visible(line))
    return code


def _rebuild(paths: list[Path], jobs: int) -> int:
    """Rebuild records; one that cannot be is told, and does not stop the others."""
    folders = paths or [records.FOLDER / name for name in records.list_records()]
    if not folders:
        raise UsageError(f"{records.FOLDER} has no record; name one")
    codes = set()
    for folder in folders:
        try:
            result = records.rebuild_record(folder, jobs)
            codes.add(0 if result.whole else EXIT_DIFFERENT if result.verdicts else EXIT_NOTHING_COMPARED)
        except PlumblineError as error:
            print(f"error: {folder.name}: {error}", file=sys.stderr, flush=True)
            codes.add(1)
    return next(code for code in (EXIT_DIFFERENT, 1, EXIT_NOTHING_COMPARED, 0) if code in codes)


def _retrain(path: Path, count: int, seed: int | None, config: list[str], as_json: bool) -> int:
    from plumbline.operate import recorded_run, retrain  # which train, and so need more than the verb else does

    with tempfile.TemporaryDirectory() as scratch:
        preset, folder = records.unpack_runs(path, Path(scratch))
        runs = recorded_run.read_runs(folder)
    return retrain.retrain_runs(path.name, preset, runs, count, seed=seed, changes=config, as_json=as_json)


if __name__ == "__main__":
    run(main)

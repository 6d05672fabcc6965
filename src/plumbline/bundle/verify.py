"""Compares every file below a folder with the checksum that its maker kept there.

    plumbline verify                  work/ and results/
    plumbline verify results/demo     a folder, or one file
    plumbline verify records/evening  a record: its archive, and the files in it

A file is `as written`, `changed`, `missing` (a checksum of it is there), or `not known` (no checksum of it was kept:
logs, what earlier versions made, a ledger whose end no page states, a folder that is a link).
Nothing is changed, and every file is read, whenever it was last verified. A checksum shows damage, and what was edited
or replaced; it does not show somebody who computed it again. Exit codes: 0 if files were verified and none is changed
or missing, 10 if one is, 16 if nothing was checked, 2 for a wrong command line, 1 after an error.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from plumbline.bundle import archive
from plumbline.bundle.checksum_records import (
    AS_WRITTEN,
    CHANGED,
    MISSING,
    NOT_KNOWN,
    ChecksumRecord,
    Status,
    read_record,
)
from plumbline.bundle.rebuild import BROUGHT
from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError, UsageError, visible
from plumbline.core.files import sha256_file
from plumbline.data.pinned_packages import PINS
from plumbline.data.progress import ProgressCounter
from plumbline.project import packed_bundle
from plumbline.project.paths import RESULTS
from plumbline.verdict import ledger

#: What is looked at where nothing is named.
_FOLDERS = ("work", RESULTS)
EXIT_CHANGED, EXIT_NOTHING_CHECKED = 10, 16

#: Lines of files that are not known which are printed; `--json` has all.
_LINES = 20

_NO_CHECKSUM = "no checksum of it was kept"
_UNSEALED = "which has no sha256 of itself, so that it may have been edited with the file"


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedFile:
    """A file and what is known of it; `why`: by which record, or the reason."""

    path: str
    status: Status
    why: str


def verify(paths: Iterable[Path]) -> list[VerifiedFile]:
    """Compare every file below some folders, or single files, with the checksums that were kept of them.

    Raises:
        PlumblineError: the file system fails.
    """
    found: dict[Path, VerifiedFile] = {}
    for path in paths:
        found |= {file: said for file, said in _verified(path).items() if file not in found}
    return [found[file] for file in sorted(found)]


def exit_code(found: Iterable[VerifiedFile]) -> int:
    """The exit code of what was found: 0, 10 (changed or missing) or 16 (nothing could be compared)."""
    counted = Counter(file.status for file in found)
    if counted[CHANGED] or counted[MISSING]:
        return EXIT_CHANGED
    return 0 if counted[AS_WRITTEN] else EXIT_NOTHING_CHECKED


def _verified(root: Path) -> dict[Path, VerifiedFile]:
    """Of one file or folder; what stands beside it, or one folder higher, may keep its checksums."""
    inside = [root] if root.is_file() else list(_files(root))
    higher = [root.parent, root.parent.parent] if root.is_file() else [Path(os.path.normpath(root / ".."))]
    around = [path for folder in higher for path in _json_in(folder)]
    records = [record for path in {*inside, *around} if _is_plain(path) and (record := read_record(path)) is not None]
    hashes = _Hashes()
    wanted = _wanted(records)
    records = [_by_others(record, wanted.get(Path(os.path.normpath(record.path)), []), hashes) for record in records]
    wanted = _wanted(records)
    own = {Path(os.path.normpath(record.path)): record for record in records}
    found: dict[Path, VerifiedFile] = {}
    with ProgressCounter(f"verify {root}", "files", len(inside)) as progress:
        for path in inside:
            place = Path(os.path.normpath(path))
            status, why = _of_file(place, wanted.get(place, []), own.get(place), hashes)
            found[place] = VerifiedFile(path=str(path), status=status, why=why)
            progress.add()
    for place, kept in wanted.items():
        if place not in found and Path(os.path.abspath(place)).is_relative_to(os.path.abspath(root)):
            status, why = _of_file(place, kept, own.get(place), hashes)
            if status != MISSING or not _left_out_of_bundle(place):
                found[place] = VerifiedFile(path=str(place), status=status, why=why)
    return _with_copies(found, hashes)


def _wanted(records: Iterable[ChecksumRecord]) -> dict[Path, list[tuple[str, ChecksumRecord]]]:
    """The checksums that records keep of each file."""
    wanted: dict[Path, list[tuple[str, ChecksumRecord]]] = {}
    for record in sorted(records, key=lambda record: record.path):
        for named, sha256 in record.files.items():
            wanted.setdefault(Path(os.path.normpath(named)), []).append((sha256, record))
    return wanted


def _by_others(record: ChecksumRecord, kept: list[tuple[str, ChecksumRecord]], hashes: _Hashes) -> ChecksumRecord:
    """A record that has no SHA-256 of itself, with what those say that name it (an index of points, a manifest)."""
    if record.status != NOT_KNOWN:
        return record
    for sha256, other in kept:
        if hashes.of(record.path) != sha256:
            return replace(record, status=CHANGED, why=_differs(record.path, sha256, other, hashes))
    sealed = any(other.status == AS_WRITTEN for _, other in kept)
    return replace(record, status=AS_WRITTEN, why="") if sealed else record


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


def _of_file(
    path: Path, kept: list[tuple[str, ChecksumRecord]], own: ChecksumRecord | None, hashes: _Hashes
) -> tuple[Status, str]:
    """What is known of a file: `kept` are the checksums of it, `own` what it says of itself as a record."""
    if not _is_plain(path):
        if kept:
            name = kept[0][1].path.name
            return (
                (CHANGED, f"it is no file, and {name} names one")
                if os.path.exists(path)
                else (MISSING, f"{name} names it")
            )
        return NOT_KNOWN, "a link, not entered; name it" if path.is_symlink() else "it is no plain file"
    if own is not None and own.status == CHANGED:
        return CHANGED, own.why
    if path.name.endswith(".tar.xz"):
        return _of_archive(path, kept, hashes)
    for sha256, record in kept:
        if hashes.of(path) != sha256:
            return CHANGED, _differs(path, sha256, record, hashes)
    trusted = [record for _, record in kept if record.status != CHANGED]
    if trusted:
        sealed = next((record for record in trusted if record.status == AS_WRITTEN), None)
        name = (sealed or trusted[0]).path.name
        return AS_WRITTEN, f"by {name}" if sealed else f"by {name}, {_UNSEALED}"
    if kept:
        return NOT_KNOWN, f"{kept[0][1].path.name}, which names it, was changed"
    if own is not None:
        return own.status, own.why or "by its own sha256"
    return _by_its_maker(path, hashes)


def _differs(path: Path, sha256: str, record: ChecksumRecord, hashes: _Hashes) -> str:
    return f"its sha256 is {hashes.of(path)}, and {record.path.name} says {sha256}"


def _of_ledger(path: Path) -> tuple[Status, str]:
    """Of a ledger: its chain of hashes, which a cut tail leaves whole, and how long it was for the pages beside it."""
    try:
        entries, torn = ledger.read_unchanged(path)
        pages = {}
        for page in sorted(path.parent.glob("*.md")):
            if (said := ledger.stated(page)) and os.path.normpath(page.parent / said.name) == str(path):
                ledger.compare(entries, page, said)
                pages[said.length] = page.name
    except PlumblineError as error:
        return CHANGED, str(error)
    if torn:
        return (
            NOT_KNOWN,
            f"its last line is incomplete, as after a power cut; the {len(entries)} entries before it agree",
        )
    if entries.hashes and len(entries) in pages:
        return AS_WRITTEN, f"by its chain of {len(entries)} hashes, and {pages[len(entries)]}, which states the last"
    return (
        NOT_KNOWN,
        f"{len(entries)} entries agree; whether later ones were removed is not known: no page beside it says",
    )


def _by_its_maker(path: Path, hashes: _Hashes) -> tuple[Status, str]:
    """Of a ledger, which is a chain of hashes, and of an archive that is pinned."""
    if path.name == "ledger.jsonl":
        return _of_ledger(path)
    pin = PINS.get(path.stem) if path.parent.name == "packages" else None
    if pin is not None and path.suffix == pin.suffix:
        right = hashes.of(path) == pin.sha256
        return (AS_WRITTEN, "by its pin") if right else (CHANGED, f"its sha256 is not the pinned {pin.sha256}")
    return NOT_KNOWN, _NO_CHECKSUM


def _of_archive(path: Path, kept: list[tuple[str, ChecksumRecord]], hashes: _Hashes) -> tuple[Status, str]:
    """Of a bundle: the checksum that was kept of it, and those that its crate has of every file in it."""
    for sha256, record in kept:
        if hashes.of(path) != sha256:
            return CHANGED, _differs(path, sha256, record, hashes)
    try:
        compared = archive.compare(path)
    except PlumblineError as error:
        return (CHANGED, str(error)) if kept else (NOT_KNOWN, f"{_NO_CHECKSUM}, and it cannot be read as a bundle")
    said = f"by {kept[0][1].path.name}, and " if kept else "by "
    said += f"its crate, which has the sha256 of each of its {compared.files} files"
    if compared.unsealed:
        said += (
            f"; {compared.unsealed} manifests of runs in it have no sha256 of their own (an earlier version's): it is "
            f"{NOT_KNOWN} whether they were changed before they were packed, but each one's spec is that of its run id"
        )
    return AS_WRITTEN, said


def _with_copies(found: dict[Path, VerifiedFile], hashes: _Hashes) -> dict[Path, VerifiedFile]:
    """Of a file without a checksum that is a copy of one that is as written (``results/`` has copies of the preset
    asked for) the same is known."""
    written: dict[str, list[Path]] = {}
    for path, said in found.items():
        if said.status == AS_WRITTEN:
            written.setdefault(path.name, []).append(path)
    copies = {}
    for path, said in found.items():
        if said.status != NOT_KNOWN or said.why != _NO_CHECKSUM or path.name not in written:
            continue
        for original in written[path.name]:
            if original.stat().st_size == path.stat().st_size and hashes.of(original) == hashes.of(path):
                copies[path] = VerifiedFile(path=said.path, status=AS_WRITTEN, why=f"as {original}")
                break
    return found | copies


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder, in order of their names, and the folders that are links, which are not entered."""
    for place, folders, names in os.walk(folder, onerror=_refuse):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        yield from (Path(place, name) for name in sorted([*names, *links]))


def _refuse(error: OSError) -> None:
    raise PlumblineError(f"{error.filename} cannot be read ({error.strerror}); nothing below it was compared")


def _json_in(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.json"))
    except OSError:
        return []


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _left_out_of_bundle(path: Path) -> bool:
    """Whether a file lies in a folder that a bundle was rebuilt in, which has no weights and need not: of its results
    it has all."""
    absolute = Path(os.path.abspath(path))
    for folder in absolute.parents:
        if os.path.isdir(folder) and packed_bundle.read(folder) is not None:
            return absolute.relative_to(folder).parts[0] not in (RESULTS, BROUGHT)
    return False


def _in_words(found: list[VerifiedFile]) -> Iterator[str]:
    for file in found:
        if file.status in (CHANGED, MISSING):
            yield f"{file.status:<11} {file.path}: {file.why}"
    alike: dict[tuple[Path, str, str], list[str]] = {}
    for file in found:
        if file.status == NOT_KNOWN:
            path = Path(file.path)
            folder = Path(*path.parent.parts[: 4 if path.is_absolute() else 3])
            alike.setdefault((folder, path.suffix, file.why), []).append(file.path)
    for (folder, ending, why), paths in sorted(alike.items(), key=lambda entry: entry[1][0])[:_LINES]:
        more = f" and {len(paths) - 1} more files *{ending} in {folder} (--json names them)" if len(paths) > 1 else ""
        yield f"{NOT_KNOWN:<11} {paths[0]}{more}: {why}"
    if len(alike) > _LINES:
        yield f"{NOT_KNOWN:<11} and {len(alike) - _LINES} more kinds of files (--json names them)"
    for file in found:
        if file.status == AS_WRITTEN and file.path.endswith(".tar.xz"):
            yield f"{AS_WRITTEN:<11} {file.path}: {file.why}"
    counted = Counter(file.status for file in found)
    kinds: tuple[Status, ...] = (AS_WRITTEN, CHANGED, MISSING, NOT_KNOWN)
    yield f"{len(found)} files: " + ", ".join(f"{counted[kind]} {kind}" for kind in kinds)
    if not counted[AS_WRITTEN]:
        yield "nothing was verified"


def arguments() -> Parser:
    """Build the command-line parser of `plumbline verify`."""
    parser = Parser(__doc__)
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="folders or files (default: work, results)")
    parser.add_argument("--json", action="store_true", help="print every file with its state as JSON")
    return parser


def main() -> int:
    """Run `plumbline verify`, and return its exit code."""
    given = arguments().parse_args()
    paths = given.paths or [path for name in _FOLDERS if (path := Path(name)).is_dir()]
    for path in given.paths:
        if not path.exists():
            raise UsageError(f"there is no {path}; name a folder or a file, such as work/demo")
    if not paths:
        raise UsageError(f"here is neither {' nor '.join(_FOLDERS)}; name a folder or a file")
    found = verify(paths)
    code = exit_code(found)
    if given.json:
        counted = Counter(file.status for file in found)
        print(json.dumps({"exit_code": code, "counts": counted, "files": [asdict(file) for file in found]}, indent=1))
    else:
        for line in _in_words(found):
            print(visible(line))
    return code


if __name__ == "__main__":
    run(main)

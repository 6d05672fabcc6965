"""Writes and reads the archive of a bundle: a tar of plain files under one folder, compressed with xz.

The same files give the same bytes. An archive is read with distrust: nothing is written outside the requested folder,
only what its crate lists is taken, and each file's size and SHA-256 must be those that the crate has.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import re
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Self

from plumbline.bundle import ro_crate
from plumbline.bundle.checksum_records import is_compared, require_agreement
from plumbline.core.errors import PlumblineError
from plumbline.core.files import make_folder, name_in_errors, open_atomically, parse_json, sha256_file

#: The folder that everything lies in: an archive unpacked by hand does not scatter.
TOP = "bundle"

#: The most bytes that a crate may have: twenty thousand files are 10 MB.
LARGEST_CRATE = 32 << 20

#: The most bytes that one of tar's own headers may have: they hold long names.
LARGEST_HEADER = 1 << 20

#: How often an archive may hold its own size, beyond the first gigabyte: a bundle holds it three to seven times, and
#: what was made to fill a disk thousands of times.
MOST_TIMES, FREELY = 200, 1 << 30

_PIECE = 1 << 20

#: Types of headers that describe the next one.
_OF_OTHERS = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)


class ChangedArchive(PlumblineError):
    """A bundle that can be read, and holds something else than was written."""


def write(out: Path, files: Mapping[str, bytes | Path], crate: ro_crate.CrateMetadata) -> None:
    """Write an archive of `files` (name within the archive -> content, or where it lies).

    Their crate comes first, then they by name, without times, owners and modes of this machine.

    Raises:
        PlumblineError: a file was changed meanwhile, is not as another one has it, has a name that no archive may have,
            or holds gigabytes of next to nothing, which nobody would unpack.
    """
    if unsafe_names := [name for name in sorted(files) if not _is_safe(name)]:
        raise PlumblineError(
            f"{unsafe_names[0]!r} is no name that can be unpacked everywhere; rename the file, and pack again"
        )
    entries = [_make_entry(name, files[name]) for name in sorted(files)]
    contents = ((name, _read_content(files[name])) for name in sorted(files) if is_compared(name))
    require_agreement(contents, {entry.name: entry.sha256 for entry in entries})
    metadata = ro_crate.to_json(ro_crate.build_crate(entries, crate)).encode()
    with open_atomically(out) as raw:
        with (
            lzma.open(raw, "wb", format=lzma.FORMAT_XZ, preset=6) as stream,
            tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            _add_file(tar, ro_crate.NAME, len(metadata), io.BytesIO(metadata))
            for entry in entries:
                content = files[entry.name]
                with io.BytesIO(content) if isinstance(content, bytes) else open(content, "rb") as handle:
                    hashed_file = _Hashed(handle)
                    _add_file(tar, entry.name, entry.size, hashed_file)
                if hashed_file.sha256 != entry.sha256:
                    raise PlumblineError(f"{entry.name} was changed while it was packed; pack again when nothing runs")
        _require_believable(entries, raw.tell(), out)


def unpack(archive: Path, folder: Path, new_names: Mapping[str, str]) -> dict[str, ro_crate.ArchivedFile]:
    """Unpack an archive into a folder that is new or empty; nothing of it stays if anything is wrong.

    Args:
        new_names: first part of a name -> another one that it gets in the folder.

    Returns:
        Name within the archive -> the file's entry in its crate.

    Raises:
        PlumblineError: there is something in the folder; the archive is damaged, cut short, not a bundle, or would
            write elsewhere.
    """
    was_there = folder.exists()
    if was_there and (not folder.is_dir() or any(folder.iterdir())):
        raise PlumblineError(f"--into {folder}: there is something already; name a new folder, or an empty one")
    make_folder(folder)
    try:
        return _unpack(archive, folder, new_names)
    except BaseException:
        empty_folder(folder)
        if not was_there:
            folder.rmdir()
        raise


def empty_folder(folder: Path) -> None:
    """Remove everything in a folder that was unpacked into, and keep the folder."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def read_file(archive: Path, name: str) -> bytes:
    """Read one file of an archive, whose size and SHA-256 must be those of the crate.

    Raises:
        PlumblineError: as `unpack`; or there is no such file.
    """
    file_bytes = None
    with _open_archive(archive) as (_, files):
        for entry, content in files:
            if entry.name == name:
                if entry.size > LARGEST_CRATE:
                    raise PlumblineError(f"{archive}: {name} has {entry.size:,} bytes; it is not a Plumbline bundle")
                file_bytes = content.read()
    if file_bytes is None:
        raise PlumblineError(f"{archive} has no {name}, so it is not a Plumbline bundle")
    return file_bytes


@dataclass(frozen=True, slots=True)
class ComparedArchive:
    """An archive whose files are all as its crate lists them: their number, and that of the manifests of runs without
    their own SHA-256 (`unsealed`)."""

    files: int
    unsealed: int


def compare_archive(archive: Path) -> ComparedArchive:
    """Read every file of an archive and compare it with its crate, and the crate with the checksums in manifests of
    runs, fingerprints and provenance.

    Raises:
        PlumblineError: as `unpack`; or a file was changed, or a run put in another one's place, before it was packed.
    """
    with _open_archive(archive) as (entries, files):
        contents = (
            (entry.name, content.read())
            for entry, content in files
            if is_compared(entry.name) and entry.size <= LARGEST_CRATE
        )
        try:
            unsealed = require_agreement(contents, {name: entry.sha256 for name, entry in entries.items()})
        except ChangedArchive:
            raise
        except PlumblineError as error:
            raise ChangedArchive(f"{archive}: {error}") from error
    return ComparedArchive(files=len(entries), unsealed=unsealed)


def _unpack(archive: Path, folder: Path, new_names: Mapping[str, str]) -> dict[str, ro_crate.ArchivedFile]:
    with _open_archive(archive) as (entries, files):
        total_bytes, free_bytes = sum(entry.size for entry in entries.values()), shutil.disk_usage(folder).free
        if total_bytes > free_bytes:
            raise PlumblineError(
                f"--into {folder}: the {len(entries)} files of {archive} take {total_bytes:,} bytes, and "
                f"{free_bytes:,} are free there; name a folder on a larger disk"
            )
        for entry, content in files:
            first, _, rest = entry.name.partition("/")
            place = folder / new_names.get(first, first) / rest if rest else folder / first
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with name_in_errors(place, others=True), open(place, "xb") as file:
                    shutil.copyfileobj(content, file, _PIECE)
            except (FileExistsError, NotADirectoryError) as error:
                raise PlumblineError(f"{archive}: {entry.name} would overwrite another of its files") from error
    return entries


@contextmanager
def _open_archive(
    archive: Path,
) -> Iterator[tuple[dict[str, ro_crate.ArchivedFile], Iterator[tuple[ro_crate.ArchivedFile, _Hashed]]]]:
    """Open an archive, with a clear error for a damaged one: the files that its crate lists, and each with its content,
    one after the other."""
    if not archive.is_file():
        raise PlumblineError(f"there is no bundle {archive}")
    entries: dict[str, ro_crate.ArchivedFile] = {}
    try:
        with open(archive, "rb") as raw:
            stream = _Stream(raw)
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as tar:  # type: ignore[call-overload]
                entries = _read_crate(tar, tar.next(), archive)
                yield entries, _read_files(tar, stream, entries, archive)
    except (lzma.LZMAError, EOFError, tarfile.TarError) as error:
        raise (ChangedArchive if entries else PlumblineError)(
            f"{archive} cannot be read ({error}): it is damaged, was not copied to its end, or is not a bundle; "
            "copy it "
            "again and compare its SHA-256 with that of where it comes from"
        ) from error


def _read_files(
    tar: tarfile.TarFile, stream: _Stream, entries: Mapping[str, ro_crate.ArchivedFile], archive: Path
) -> Iterator[tuple[ro_crate.ArchivedFile, _Hashed]]:
    """Give the files after the crate, and refuse one that is not as it is listed once its turn is over. What follows
    the last one is read too: for the stream's checksum, and because nothing may."""
    names: set[str] = set()
    while member := tar.next():
        entry = _find_entry(member, entries, archive)
        if entry.name in names:
            raise ChangedArchive(f"{archive}: {entry.name} is in it twice; it is not a Plumbline bundle")
        names.add(entry.name)
        content = _Hashed(_open_member(tar, member))
        yield entry, content
        while content.read(_PIECE):
            pass
        _require_listed_bytes(entry, entry.size, content.sha256, archive)
    stream.read_to_its_end(tar.offset)
    if missing_names := sorted(entries.keys() - names):
        raise ChangedArchive(
            f"{archive} lacks {len(missing_names)} of its {len(entries)} files ({missing_names[0]}); copy it again"
        )


def _read_crate(tar: tarfile.TarFile, first: tarfile.TarInfo | None, archive: Path) -> dict[str, ro_crate.ArchivedFile]:
    """Read the list of files in the crate, which is the archive's first file."""
    if first is None or first.name != f"{TOP}/{ro_crate.NAME}" or not first.isreg() or first.size > LARGEST_CRATE:
        raise PlumblineError(f"{archive} does not begin with {TOP}/{ro_crate.NAME}, so it is not a Plumbline bundle")
    try:
        document = parse_json(_open_member(tar, first).read())
    except ValueError as error:
        raise PlumblineError(
            f"{archive}: {ro_crate.NAME} is not JSON ({error}); it is not a Plumbline bundle"
        ) from error
    entries = ro_crate.read_crate(document, str(archive))
    _require_believable(entries.values(), archive.stat().st_size, archive)
    if unsafe_names := [name for name in entries if not _is_safe(name)]:
        raise PlumblineError(
            f"{archive}: {unsafe_names[0]!r} would be written outside of the folder; nothing was unpacked"
        )
    return entries


def _is_safe(name: str) -> bool:
    """Whether a name is a plain one below the folder on any system, and UTF-8."""
    path = PurePosixPath(name)
    return not (
        path.is_absolute() or ".." in path.parts or str(path) != name or re.search(r"[\\\0\ud800-\udfff]", name)
    )


def _require_believable(entries: Iterable[ro_crate.ArchivedFile], size: int, archive: Path) -> None:
    """Refuse an archive of so many bytes that would become too many.

    Raises:
        PlumblineError: naming the largest file.
    """
    entries = list(entries)
    total_bytes = sum(entry.size for entry in entries)
    if total_bytes > FREELY + MOST_TIMES * size:
        largest = max(entries, key=lambda entry: entry.size)
        raise PlumblineError(
            f"{archive}: its {size:,} bytes would become {total_bytes:,} ({largest.name} {largest.size:,}), as nothing "
            "does that was measured; it is no bundle"
        )


def _find_entry(
    member: tarfile.TarInfo, entries: Mapping[str, ro_crate.ArchivedFile], archive: Path
) -> ro_crate.ArchivedFile:
    """Find the crate's entry of a member, which must be a plain file that it lists, of that size."""
    parts = PurePosixPath(member.name).parts
    if member.name.startswith("/") or ".." in parts:
        raise ChangedArchive(f"{archive}: {member.name!r} would be written outside of the folder; it was not unpacked")
    name = member.name.removeprefix(f"{TOP}/")
    is_plain = member.isreg() and not member.issparse()
    if not is_plain or name == member.name or name not in entries:
        problem = "not listed in its crate" if is_plain else "not a plain file"
        raise ChangedArchive(f"{archive}: {member.name!r} is {problem}; it was changed after it was made")
    if member.size != entries[name].size:
        _require_listed_bytes(entries[name], member.size, "", archive)
    return entries[name]


def _require_listed_bytes(entry: ro_crate.ArchivedFile, size: int, sha256: str, archive: Path) -> None:
    if (size, sha256) != (entry.size, entry.sha256):
        raise ChangedArchive(
            f"{archive}: {entry.name} is not the file that {ro_crate.NAME} describes ({size} bytes of {entry.size}, "
            "another SHA-256): it is damaged, or was changed after it was made"
        )


def _read_content(content: bytes | Path) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()


def _make_entry(name: str, content: bytes | Path) -> ro_crate.ArchivedFile:
    if isinstance(content, bytes):
        return ro_crate.ArchivedFile(name, len(content), hashlib.sha256(content).hexdigest())
    return ro_crate.ArchivedFile(name, os.path.getsize(content), sha256_file(content))


def _add_file(tar: tarfile.TarFile, name: str, size: int, content: IO[bytes] | _Hashed) -> None:
    info = tarfile.TarInfo(f"{TOP}/{name}")
    info.size, info.mode = size, 0o644
    tar.addfile(info, content)  # type: ignore[arg-type]


def _open_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(member)
    assert content is not None, "a plain file has a content"
    return content


class _Member(tarfile.TarInfo):
    """A header of the archive. The content of tar's own headers is read into memory before anything can check it."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read one block; a header for what comes after it may not be large."""
        header = super().frombuf(buf, encoding, errors)
        if header.type in _OF_OTHERS and header.size > LARGEST_HEADER:
            raise tarfile.ReadError(f"a header of {header.size:,} bytes")
        return header


class _Stream:
    """The content of a file that is one xz stream."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self._xz = raw, lzma.LZMADecompressor(lzma.FORMAT_XZ)
        self._begin, self._last = 0, b""

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes; none at the stream's end."""
        self._begin += len(self._last)
        self._last = b""
        while not self._last and not self._xz.eof:
            piece = self._raw.read(_PIECE) if self._xz.needs_input else b""
            if self._xz.needs_input and not piece:
                raise EOFError("its end is missing")
            self._last = self._xz.decompress(piece, size)
        return self._last

    def read_to_its_end(self, end: int) -> None:
        """Read what is left after the last file, which ended at `end`: zeros and the stream's checksum.

        Raises:
            lzma.LZMAError: something else follows the last file, or the stream.
        """
        tail = self._last[max(0, end - self._begin) :]
        while not tail.strip(b"\0"):
            if not (tail := self.read(_PIECE)):
                break
        if tail:
            raise lzma.LZMAError("something follows its last file")
        if self._xz.unused_data or self._raw.read(1):
            raise lzma.LZMAError("something follows its end")


class _Hashed:
    """A file whose SHA-256 is computed as it is read."""

    def __init__(self, handle: IO[bytes]) -> None:
        self._handle, self._hash = handle, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        piece = self._handle.read(size)
        self._hash.update(piece)
        return piece

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

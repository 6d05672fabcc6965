"""Writes files that are either whole or absent, reads and writes JSON, and computes checksums."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from plumbline.core import temporary_files
from plumbline.core.errors import PlumblineError

#: What the kernel says where there is no room: no space, a quota, a file-size limit.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

#: What it says where a file system fails, is gone, or can only be read: no fault of the program or of the file.
FAILING = (errno.EIO, errno.EROFS, errno.ESTALE, errno.ENOTCONN)

#: What it says where a folder cannot be: nothing to be in (as in /proc), a file in its place, a name too long.
NOWHERE = (errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)


@contextmanager
def name_in_errors(path: str | Path, *, others: bool = False) -> Iterator[None]:
    """Give an error of the block that says that a disk is full or fails the name of the file: a failed write has
    none. What libraries in Rust (safetensors) say of a disk becomes an OSError.

    `others`: the block may read other files as well, whose disk may be the one that fails.
    """
    try:
        yield
    except Exception as error:
        disk_error = find_disk_error(error)
        if disk_error is None or disk_error.filename is not None:
            raise
        one_of = others and disk_error.errno in (errno.EIO, errno.ESTALE, errno.ENOTCONN)
        disk_error.filename = f"{path}, or a file that it is made from," if one_of else os.fspath(path)
        if disk_error is error:
            raise
        raise disk_error from error


def find_disk_error(error: BaseException) -> OSError | None:
    """The OSError that an error is, or tells of in the words of Rust, where it says that a disk is full or fails."""
    if isinstance(error, OSError):
        return error if error.errno in FULL + FAILING else None
    match = re.search(r"\(os error (\d+)\)", str(error))
    return OSError(int(match[1]), os.strerror(int(match[1]))) if match and int(match[1]) in FULL + FAILING else None


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, where they are not there.

    Raises:
        PlumblineError: there can be none of this name: a file is in the way, or the system allows none there.
        OSError: for another reason, such as a full disk.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in NOWHERE:
            raise
        raise PlumblineError(f"the folder {folder} cannot be made ({error.strerror}); name another one") from error


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces. NaN and infinities are refused: they are not JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def pretty_json(value: Any) -> str:
    """JSON with sorted keys, for people and for diffs."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text.

    Raises:
        json.JSONDecodeError: the text is not JSON, or is nested deeper than Python's parser can follow (where the
            parser itself raises a RecursionError), or has a key twice in one object.
    """
    try:
        return json.loads(text, object_pairs_hook=refuse_repeated_keys)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None


class RepeatedKey(json.JSONDecodeError):
    """A key that stands twice in one JSON object; the parser does not say where."""

    def __str__(self) -> str:
        return self.msg


def refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs, as `json.loads(text, object_pairs_hook=refuse_repeated_keys)`.

    Raises:
        RepeatedKey: a key stands there twice: Python's parser would take the last value without a word.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise RepeatedKey(f"the key {twice[:80]!r} is there twice in one object; leave one of them", "", 0)
    return content


def read_json(path: str | Path) -> Any:
    """A JSON file's content; None if it is not there or not whole."""
    try:
        with name_in_errors(path):
            return parse_json(Path(path).read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def sha256_text(text: str) -> str:
    """Hex SHA-256 of a text's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_file(path: str | Path) -> str:
    """Hex SHA-256 of a file's bytes, read in pieces."""
    with name_in_errors(path), open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def fsync_directory(directory: str | Path) -> None:
    """Make a rename inside `directory` survive a power cut, where the file system syncs folders (SMB, and some of FUSE,
    do not).
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with name_in_errors(directory):
            os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def fsync_file(path: str | Path) -> None:
    """Make a file's bytes survive a power cut; needed before it is renamed."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with name_in_errors(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def free_name(path: Path, suffix: str) -> Path:
    """``<name>.<suffix>`` next to `path`, or with a number where that is taken: what was put aside earlier stays."""
    names = itertools.chain([suffix], (f"{suffix}-{number}" for number in itertools.count(2)))
    return next(aside for name in names if not os.path.lexists(aside := path.with_name(f"{path.name}.{name}")))


def path_or_none(text: str) -> Path | None:
    """A command-line flag's path; None for an empty text, which as a path would be the working directory."""
    return Path(text) if text.strip() else None


def make_relative(path: str | Path, root: Path) -> Path:
    """`path` relative to `root` where it lies below it; any other path unchanged."""
    path = Path(path)
    for start in (root.absolute(), root.resolve()):
        if path.is_relative_to(start):
            return path.relative_to(start)
    return path


def format_path(path: str | Path, root: Path = Path()) -> str:
    """A path as it is written on pages that may be published.

    Relative to `root` where it lies below it; of an absolute path elsewhere only the last part, after an ellipsis.
    """
    path = make_relative(path, root)
    return f"…/{path.name}" if path.is_absolute() else path.as_posix()


def swap_paths(first: str | Path, second: str | Path) -> bool:
    """Swap two paths of one file system in a single step, so that neither is ever missing.

    Linux can do this on its own file systems (renameat2, called through ctypes); NFS cannot. Returns False, with
    nothing done, where the system or the file system cannot.
    """
    import ctypes

    call = getattr(ctypes.CDLL(None), "renameat2", None)
    if call is None:
        return False
    working_directory, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of linux/fcntl.h and linux/fs.h
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return bool(call(working_directory, os.fsencode(first), working_directory, os.fsencode(second), exchange) == 0)


def _is_stream(path: Path) -> bool:
    """Whether a path is a pipe or a device, or the name of an open file (`/dev/stdout`, `/dev/fd/3`)."""
    if path.parent.resolve().parts[1:2] in {("dev",), ("proc",)} and path.parent.resolve().name in {"dev", "fd"}:
        return True
    return path.is_char_device() or path.is_fifo() or path.is_socket()


@contextmanager
def open_atomically(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file of bytes that becomes `path` when the block ends without an error: whole, synced, or not at all.

    It is written next to `path` under another name and renamed: a reader sees the old file or the new one, never half
    of one, also after a power cut. What processes of this machine that were killed were writing in the folder is
    removed first (`plumbline.core.temporary_files`). An error in the block leaves `path` as it was. The mode is what
    `open` gives a new file (0666 less the umask). A library that takes a name instead of a file is given the file's
    `name`; it may replace what lies there. A pipe, a device, `/dev/stdout`: written straight, for a rename would put a
    file in its place.
    """
    path = Path(path)
    if _is_stream(path):
        with name_in_errors(path), open(path, "wb") as stream:
            yield stream
        return
    make_folder(path.parent)
    temporary_files.remove_abandoned(path.parent)
    temporary = temporary_files.choose_path(path)
    try:
        with name_in_errors(path):
            with open(temporary, "xb") as file:
                # The kernel has applied the umask here: reading it would mean changing it for all threads.
                permissions = os.fstat(file.fileno()).st_mode & 0o7777
                with name_in_errors(path, others=True):
                    yield file
            # Again by its name: a library may have put a file of its own there, with a mode of its own.
            os.chmod(temporary, permissions)
            fsync_file(temporary)
            os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):  # where the file system fails, this fails as well
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and str(error.filename) == str(temporary):
            error.filename = os.fspath(path)
            del error.filename2  # None would be printed
        raise
    fsync_directory(path.parent)


def atomic_write_bytes(path: str | Path, content: bytes) -> None:
    """Write bytes through `open_atomically`."""
    with open_atomically(path) as file, name_in_errors(path):
        file.write(content)


def atomic_write_text(path: str | Path, text: str) -> None:
    """Write a text in UTF-8 through `open_atomically`."""
    atomic_write_bytes(path, text.encode())


def atomic_write_json(path: str | Path, value: Any) -> None:
    """Write a value as `pretty_json` through `open_atomically`."""
    atomic_write_text(path, pretty_json(value))

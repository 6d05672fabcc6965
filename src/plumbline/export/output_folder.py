"""Prepares the folder that an export is written to: whole or absent, and never one with other files in it."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import free_name, fsync_directory, make_folder, sha256_file
from plumbline.core.run_files import EXPORT_RECORD, read_export_record


def require_free(folder: Path, run_id: str, force: bool) -> None:
    """Refuse an output folder in which something would be lost.

    An earlier export of the same run is replaced. With `force` one of another run is replaced too, and one with a file
    that was changed since; a file that no export wrote is never removed.

    Raises:
        PlumblineError: naming what lies there.
    """
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        raise PlumblineError(f"--out: {folder} is not a folder; name another folder")
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir()}
    if not there:
        return
    record = read_export_record(folder)
    foreign = sorted(set(there) - set(record.get("files", {})) - {EXPORT_RECORD})
    if not record or foreign:
        raise PlumblineError(
            f"--out: {folder} holds {(foreign or sorted(there))[0]}, which no export wrote; name another folder"
        )
    if force:
        return
    if record.get("run_id") != run_id:
        raise PlumblineError(
            f"--out: {folder} holds an export of run {record.get('run_id')}, and this is {run_id}; name another "
            "folder, or give --force to replace it"
        )
    changed = [name for name, sha256 in record["files"].items() if name in there and sha256_file(there[name]) != sha256]
    if changed:
        raise PlumblineError(
            f"--out: {folder / changed[0]} was changed after it was exported; keep a copy and give --force, or name "
            "another folder"
        )


@contextmanager
def replace_folder(folder: Path, record: dict[str, Any]) -> Iterator[Path]:
    """Yield a temporary folder to write into, which takes the place of `folder` when the block ends without an error.

    The record, with the checksums of all that was written, is added last, together with what the block adds to
    `record`.
    """
    folder = folder.absolute()
    make_folder(folder.parent)
    temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    temporary.mkdir()
    try:
        yield temporary
        files = {path.name: sha256_file(path) for path in sorted(temporary.iterdir())}
        fingerprint_file.write_facts(temporary / EXPORT_RECORD, record | {"files": files})
        before = None
        if folder.exists() and any(folder.iterdir()):
            before = free_name(folder, "replaced")
            os.rename(folder, before)
        os.rename(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    fsync_directory(folder.parent)
    if before is not None:
        shutil.rmtree(before)

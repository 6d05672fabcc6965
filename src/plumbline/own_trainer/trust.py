"""Remembers which `plumbline.toml` this user has agreed to run on this machine: its command is somebody's code."""

from __future__ import annotations

import json
import os
from pathlib import Path

from plumbline.core.files import make_folder, naming, sha256_file, sha256_text
from plumbline.core.process_record import now
from plumbline.own_trainer.trainer_file import NAME, TrainerFile


def is_trusted(folder: Path, file: TrainerFile) -> bool:
    """Whether this user has run this folder's command before, as it is now."""
    try:
        lines = _path().read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return False
    key = json.dumps(_key(folder, file))
    return any(line.startswith(f'{{"key": {key}') for line in lines)


def trust(folder: Path, file: TrainerFile) -> None:
    """Remember that this user agreed to run this folder's command."""
    path = _path()
    make_folder(path.parent)
    record = {"key": _key(folder, file), "folder": str(folder.resolve()), "command": file.run.command, "at": now()}
    with naming(path), open(path, "a", encoding="utf-8") as out:
        out.write(json.dumps(record | {"sha256": sha256_file(folder / NAME)}) + "\n")


def _key(folder: Path, file: TrainerFile) -> str:
    """The folder and what of its file is executed: another seed, level or metric is no other program."""
    return sha256_text(f"{folder.resolve()}\0{file.run.command}\0{file.where.profile}")


def _path() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "plumbline" / "trusted.jsonl"

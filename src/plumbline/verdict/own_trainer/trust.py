"""Remembers which `plumbline.toml` this user has agreed to run on this machine: its command is somebody's code."""

from __future__ import annotations

import json
import os
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.files import make_folder, sha256_file, sha256_text
from plumbline.core.permissions import home, nearest
from plumbline.core.process_record import now
from plumbline.verdict.own_trainer.trainer_file import NAME, TrainerFile

_REMEDY = "name a folder of yours for what is remembered: export XDG_STATE_HOME=FOLDER"


def is_trusted(folder: Path, file: TrainerFile) -> bool:
    """Whether this user has run this folder's command before, as it is now; not where that cannot be read."""
    try:
        lines = _path().read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, PlumblineError):
        return False
    key = json.dumps(_key(folder, file))
    return any(line.startswith(f'{{"key": {key}') for line in lines)


def trust(folder: Path, file: TrainerFile) -> str:
    """Remember that this user agreed to run this folder's command; returns why that is not remembered, mostly nothing.

    It was agreed to for now all the same, so that a user without a home folder (in a container, say) can go on.
    """
    record = {"key": _key(folder, file), "folder": str(folder.resolve()), "command": file.run.command, "at": now()}
    record["sha256"] = sha256_file(folder / NAME)
    try:
        path = _path()
        make_folder(path.parent)
        with open(path, "a", encoding="utf-8") as out:
            out.write(json.dumps(record) + "\n")
    except OSError as error:
        return f"{path} cannot be written ({error.strerror}); {_REMEDY}"
    except PlumblineError as error:
        return str(error)
    return ""


def obstacle() -> str:
    """Why nothing can be remembered for this user; empty where it can."""
    try:
        place = nearest(path := _path())
    except PlumblineError as error:
        return str(error)
    can = os.access(place, os.W_OK) and (place == path or place.is_dir())
    return "" if can else f"{path} cannot be written; {_REMEDY}"


def _key(folder: Path, file: TrainerFile) -> str:
    """The folder and what of its file is executed: another seed, level or metric is no other program."""
    return sha256_text(f"{folder.resolve()}\0{file.run.command}\0{file.where.profile}")


def _path() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    own = Path(state) if state else home()
    if own is None:
        raise PlumblineError(f"no home folder is known of user {os.geteuid()}, and HOME is not set; {_REMEDY}")
    return (own if state else own / ".local" / "state") / "plumbline" / "trusted.jsonl"

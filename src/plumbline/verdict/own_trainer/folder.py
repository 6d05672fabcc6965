"""Keeps what a trainer's folder knows below `.plumbline/`: runs, decisions, pages, logs, the baseline, `results.tsv`.

`results.tsv` lies in the folder itself, in the columns that autoresearch writes. Git is told to see neither, by a
file of its own (`.git/info/exclude`). Which `plumbline.toml` a user has agreed to run on this machine, as its command
is somebody's code, is remembered outside of the folder.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from plumbline.core import locks, process_record
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import atomic_write_json, make_folder, name_in_errors, read_json, sha256_file, sha256_text
from plumbline.core.permissions import find_home, find_nearest
from plumbline.core.process_record import now
from plumbline.verdict.decision import bank as banks
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.own_trainer.run_environment import remove_left
from plumbline.verdict.own_trainer.snapshot import FOLDER, ROWS, Arm, Repository
from plumbline.verdict.own_trainer.trainer_file import TrainerFile

#: The columns of `results.tsv`: the first five are those of autoresearch, the second is named as the metric is.
COLUMNS = ("commit", "val_bpb", "memory_gb", "status", "description", "seeds", "p")
_REMEDY = "name a folder of yours for what is remembered: export XDG_STATE_HOME=FOLDER"


@dataclass(frozen=True)
class Folder:
    """A trainer's folder: `root` is where its `plumbline.toml` lies."""

    root: Path

    @property
    def own(self) -> Path:
        """The folder of what Plumbline keeps."""
        return self.root / FOLDER

    @property
    def pages(self) -> Path:
        """The folder of pages."""
        return self.own / "pages"

    @property
    def ledger(self) -> Path:
        """The ledger, in the one format of all experiments."""
        return self.own / "decisions.jsonl"

    @property
    def runs(self) -> Path:
        """The folder of the requests and the results of runs."""
        return self.own / "runs"

    @property
    def bank_file(self) -> Path:
        """The bank's file."""
        return self.own / "runs.jsonl"

    def bank(self) -> Bank:
        """Read the bank."""
        return Bank(self.bank_file)

    def make(self) -> None:
        """Make the folder, which git is made to ignore first."""
        if not self.own.exists():
            Repository(self.root).leave_out(f"{FOLDER}/", ROWS)
            make_folder(self.own)
            self._set_up.touch()

    @property
    def set_up_at(self) -> float:
        """When the folder was made (seconds since the epoch); 0 where that is not known."""
        try:
            return self._set_up.stat().st_mtime
        except OSError:
            return 0.0

    @property
    def _set_up(self) -> Path:
        """An empty file, whose time is that."""
        return self.own / "set-up"

    @contextmanager
    def hold(self, command: str) -> Iterator[None]:
        """Hold the folder: one `try` at a time works in it.

        Raises:
            PlumblineError: another process holds it; it is named.
        """
        self.make()
        with banks.hold(self.own, command):
            yield

    def log(self, method: str, seed: int | str) -> Path:
        """Where the log of a run is kept."""
        return self.own / "logs" / method / f"seed-{seed}.log"

    def copy(self, run_id: str) -> Path:
        """Where the copy of an arm lies that a run is made in."""
        return self.own / "worktrees" / run_id

    def at_work(self, run_id: str) -> bool:
        """Whether a process makes this run: a job of a cluster may outlive all that waits for it.

        Raises:
            OSError: that is not known, and a copy is neither made anew nor removed (`locks.is_free` would say no).
        """
        try:
            with open(self.runs / f"{run_id}.result.lock", "rb") as file:
                locks.lock(file, shared=True)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def remove_copies(self, repository: Repository) -> None:
        """Take away the copies of arms in which no run is made."""
        for copy in (self.own / "worktrees").glob("*"):
            ours = re.fullmatch(r"[0-9a-f]{16}", copy.name) and (copy / ".git").is_file()
            if ours and not self.at_work(copy.name):
                repository.remove(copy)
                remove_left(self.runs / f"{copy.name}.result.tmp")

    @property
    def has_baseline(self) -> bool:
        """Whether something was tried here: candidates have a baseline from then on."""
        return (self.own / "baseline.json").exists()

    def hold_baseline(self, repository: Repository) -> Arm:
        """Return the arm that candidates are compared with: at first what HEAD is, and held from then on."""
        record = read_json(self.own / "baseline.json")
        if record is None:
            arm = repository.arm("HEAD", label="baseline")
            self.move_baseline(repository, arm)
            return arm
        try:
            return repository.recall(record)
        except (KeyError, TypeError):
            raise PlumblineError(
                f"{self.own / 'baseline.json'} names no commit; delete it, and HEAD becomes the baseline"
            ) from None

    def move_baseline(self, repository: Repository, arm: Arm) -> None:
        """Make an arm the baseline, and hold its commit."""
        self.make()
        repository.hold("baseline", arm.commit)
        atomic_write_json(self.own / "baseline.json", arm.record | {"at": process_record.now()})

    def has_rows(self) -> bool:
        """Whether `results.tsv` has a row below its head."""
        try:
            return len((self.root / ROWS).read_text(encoding="utf-8", errors="replace").splitlines()) > 1
        except FileNotFoundError:
            return False

    def append_row(self, metric: str, row: Sequence[str], known_as: Sequence[str] = ()) -> None:
        """Append a row to `results.tsv`: the values of `COLUMNS`; where the file has fewer columns, only those.

        No row is there twice, whichever of the commits `known_as` it names: a try that was killed writes its own again.
        """
        path = self.root / ROWS
        with name_in_errors(path), open(path, "a+", encoding="utf-8", newline="") as file:
            file.seek(0)
            content = file.read()
            if not content:
                content = "\t".join([COLUMNS[0], metric, *COLUMNS[2:]]) + "\n"
                file.write(content)
            elif not content.endswith("\n"):
                file.write("\n")
            columns = content.partition("\n")[0].count("\t") + 1
            line = "\t".join(visible(" ".join(cell.replace('"', "'").split())) for cell in row[:columns])
            rest = line.partition("\t")[2]
            if not {line, *(f"{commit}\t{rest}" for commit in known_as)} & {*content.splitlines()}:
                file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())


def is_trusted(file: TrainerFile) -> bool:
    """Whether this user has run this folder's command before, as it is now; not where that cannot be read."""
    try:
        lines = _find_trust_file().read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, PlumblineError):
        return False
    key = json.dumps(_trust_key(file))
    return any(line.startswith(f'{{"key": {key}') for line in lines)


def trust(file: TrainerFile) -> str:
    """Remember that this user agreed to run this folder's command; returns why that is not remembered, mostly nothing.

    It was agreed to for now all the same, so that a user without a home folder (in a container, say) can go on.
    """
    record = {"key": _trust_key(file), "folder": str(file.folder.resolve()), "command": file.run.command, "at": now()}
    record["sha256"] = sha256_file(file.path)
    try:
        path = _find_trust_file()
        make_folder(path.parent)
        with open(path, "a", encoding="utf-8") as out:
            out.write(json.dumps(record) + "\n")
    except OSError as error:
        return f"{path} cannot be written ({error.strerror}); {_REMEDY}"
    except PlumblineError as error:
        return str(error)
    return ""


def trust_obstacle() -> str:
    """Why nothing can be remembered for this user; empty if it can."""
    try:
        place = find_nearest(path := _find_trust_file())
    except PlumblineError as error:
        return str(error)
    can = os.access(place, os.W_OK) and (place == path or place.is_dir())
    return "" if can else f"{path} cannot be written; {_REMEDY}"


def _trust_key(file: TrainerFile) -> str:
    """The folder and what of its file is executed: another seed, level or metric is no other program."""
    return sha256_text(f"{file.folder.resolve()}\0{file.run.command}\0{file.where.profile}")


def _find_trust_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    base = Path(state) if state else find_home()
    if base is None:
        raise PlumblineError(f"no home folder is known of user {os.geteuid()}, and HOME is not set; {_REMEDY}")
    return (base if state else base / ".local" / "state") / "plumbline" / "trusted.jsonl"

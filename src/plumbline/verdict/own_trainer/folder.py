"""Keeps what a trainer's folder knows below `.plumbline/`: runs, decisions, pages, logs, the baseline, `results.tsv`.

`results.tsv` lies in the folder itself, in the columns that autoresearch writes. Git is told to see neither, by a
file of its own (`.git/info/exclude`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from plumbline.core import locks, process_record
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import atomic_write_json, make_folder, naming, read_json
from plumbline.verdict.decision import bank as banks
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.own_trainer.snapshot import FOLDER, ROWS, Arm, Repository

#: The columns of `results.tsv`: the first five are those of autoresearch, the second is named as the metric is.
COLUMNS = ("commit", "val_bpb", "memory_gb", "status", "description", "seeds", "p")


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

    def bank(self) -> Bank:
        """Read the bank."""
        return Bank(self.own / "runs.jsonl")

    def make(self) -> None:
        """Make the folder, which git is told to ignore first."""
        if not self.own.exists():
            Repository(self.root).leave_out(f"{FOLDER}/", ROWS)
            make_folder(self.own)

    @contextmanager
    def held(self, command: str) -> Iterator[None]:
        """Hold the folder: one `try` at a time works in it.

        Raises:
            PlumblineError: another process holds it; it is named.
        """
        self.make()
        with banks.hold(self.own, command):
            yield

    def log(self, method: str, seed: int) -> Path:
        """Where the log of a run is kept."""
        return self.own / "logs" / method / f"seed-{seed}.log"

    def copy(self, run_id: str) -> Path:
        """Where the copy of an arm lies that a run is made in."""
        return self.own / "worktrees" / run_id

    def at_work(self, run_id: str) -> bool:
        """Whether a process makes this run: a job of a cluster may outlive all that waits for it."""
        return not locks.is_free(self.runs / f"{run_id}.result.lock")

    def remove_copies(self, repository: Repository) -> None:
        """Take away the copies of arms in which no run is made."""
        for copy in (self.own / "worktrees").glob("*"):
            ours = re.fullmatch(r"[0-9a-f]{16}", copy.name) and (copy / ".git").is_file()
            if ours and not self.at_work(copy.name):
                repository.remove(copy)

    def baseline(self, repository: Repository) -> Arm:
        """The arm that candidates are compared with: at first what HEAD is, and held from then on."""
        said = read_json(self.own / "baseline.json")
        if said is None:
            arm = repository.arm("HEAD", words="baseline")
            self.move_baseline(repository, arm)
            return arm
        try:
            return repository.recalled(said)
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
        with naming(path), open(path, "a+", encoding="utf-8", newline="") as file:
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

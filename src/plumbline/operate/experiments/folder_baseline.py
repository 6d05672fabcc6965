"""Keeps what a folder's candidates are compared with: its baseline, the first one, the seeds of the bank; and writes
what was decided of them into `results.tsv`.

A keep moves the baseline only after the kept arm was run again with fresh seeds, and those runs confirmed it: the ones
that made it look good are no baseline. Which seeds are its fresh ones stands in `.plumbline/session.json` before the
first of them is run: only those count, a try that was stopped meanwhile goes on with them, and there is no second one
with other luck.
"""

from __future__ import annotations

import os
import shlex
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, NotRequired, TypedDict

import msgspec

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, canonical_json, read_json, sha256_text
from plumbline.operate.experiments.carry_out_experiment import describe_run
from plumbline.operate.experiments.profile_runs import ProfileRuns
from plumbline.verdict.decision import fix_design
from plumbline.verdict.decision.bank import LOOP, TRIED_AGAIN, Bank
from plumbline.verdict.decision.experiment import BASELINE, ArmRun, Decision
from plumbline.verdict.decision.loop import decide_by_fresh_runs
from plumbline.verdict.ledger import Ledger, LedgerEntry
from plumbline.verdict.own_trainer import fingerprint
from plumbline.verdict.own_trainer.command_trainer import CommandTrainer
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.own_trainer.git_call import index_kept
from plumbline.verdict.own_trainer.requests import read_result
from plumbline.verdict.own_trainer.snapshot import AUTO, FOLDER, ROWS, Arm, Repository
from plumbline.verdict.own_trainer.trainer_file import NAME, TrainerFile

#: What is to be done where means would cross machines.
ELSEWHERE = (
    "its runs were made elsewhere ({}), and means do not cross that: plumbline setup-trainer --again runs it here, "
    "with fresh seeds"
)


class _ArmRecord(TypedDict):
    """What is kept of an arm (`Arm.record`)."""

    commit: str
    flags: list[str]
    words: str


class _Request(TypedDict):
    """What kept an arm; `arm`: which, not known of what an older Plumbline kept."""

    message: str
    flags: list[str]
    page: str
    arm: NotRequired[_ArmRecord]


class _Keep(TypedDict):
    """A keep that made the baseline: what was kept, and what was the baseline before it."""

    words: str
    page: str
    before: _ArmRecord
    first_seed: int


class _Fresh(TypedDict):
    """The fresh runs of what the looks kept: their seeds and those of the baseline beside them, and the try that they
    are of, against which baseline.
    """

    seeds: list[int]
    baseline_seeds: NotRequired[list[int]]
    page: str
    message: str
    first_seed: int
    baseline: str


class _Session(TypedDict, total=False):
    """The content of `session.json`."""

    start: _ArmRecord
    first_seed: int
    kept: _Request
    keeps: list[_Keep]
    fresh_runs: dict[str, _Fresh]
    fixed: list[str]
    metrics: dict[str, dict[str, str]]


@dataclass
class FolderBaseline:
    """What a folder's candidates are compared with."""

    file: TrainerFile
    folder: Folder
    repository: Repository
    tell: Callable[[str], None]

    def __post_init__(self) -> None:
        path = self.folder.own / "session.json"
        self.session: dict[str, Any] = read_json(path) if path.exists() else {}
        try:
            msgspec.convert(self.session, _Session)
        except msgspec.ValidationError as error:
            raise PlumblineError(
                f"{path} is not what plumbline writes ({error}); restore it, or delete it: the baseline stays, and "
                "plumbline confirm no longer knows what the first one was"
            ) from None

    @property
    def arm(self) -> Arm:
        """The arm itself; what HEAD is, until the folder has one."""
        if (self.folder.own / "baseline.json").exists():
            return self.folder.hold_baseline(self.repository)
        return self.repository.arm("HEAD", label="baseline")

    @property
    def first(self) -> Arm:
        """What was the baseline before anything was kept.

        Raises:
            PlumblineError: nothing was kept yet.
        """
        if "start" not in self.session:
            raise PlumblineError(f"{self.folder.root}: nothing was kept yet; plumbline try -m WORDS")
        return self.repository.recall(self.session["start"])

    @property
    def labels_kept_since_first(self) -> tuple[str, ...]:
        """What was kept since then, in its users' words, the first keep first."""
        return tuple(keep["words"] for keep in self.session.get("keeps", ()))

    @property
    def first_seed(self) -> int:
        """The first seed of the bank: runs of the baseline with lower ones were made for something else."""
        return int(self.session.get("first_seed", self.file.decide.first_seed))

    def trainer(self, candidate: Arm | None = None, baseline: Arm | None = None) -> CommandTrainer:
        """Make what trains the arms; `baseline` is another than the folder's, for once."""
        arms = {BASELINE: baseline or self.arm} | ({candidate.words: candidate} if candidate else {})
        return CommandTrainer(
            file=self.file,
            repository=self.repository,
            folder=self.folder,
            arms=arms,
            tell=self.tell,
            profile_jobs=ProfileRuns,
            compared_with="" if candidate else self.arm.method,
        )

    def list_runs(self, trainer: CommandTrainer, bank: Bank) -> list[ArmRun]:
        """List the baseline's runs that are there, from its first seed on."""
        return [run for run in bank.list_runs(trainer.group, trainer.method(BASELINE)) if run.seed >= self.first_seed]

    def take_bank(self, trainer: CommandTrainer, bank: Bank, size: int) -> list[ArmRun]:
        """Have the baseline's runs made that are not there, and return all of them."""
        runs = self.list_runs(trainer, bank)
        seeds = [run.seed for run in runs if run.outcome not in TRIED_AGAIN]
        retry_seeds = [run.seed for run in runs if run.outcome in TRIED_AGAIN]
        used = bank.list_seeds(trainer.group)
        new = islice((seed for seed in count(self.first_seed) if seed not in used), size)
        seeds += [*retry_seeds, *new][: max(0, size - len(seeds))]
        return self._take_runs(trainer, bank, [(BASELINE, seed) for seed in seeds])

    def _take_runs(self, trainer: CommandTrainer, bank: Bank, pairs: Sequence[tuple[str, int]]) -> list[ArmRun]:
        """Have the runs of these arms and seeds made that are not there, up to the first that has no value."""
        existing = {
            (arm, run.seed): run.rename(arm)
            for arm in {arm for arm, _ in pairs}
            for run in bank.list_runs(trainer.group, trainer.method(arm))
            if run.outcome not in TRIED_AGAIN
        }
        runs = [existing[pair] for pair in pairs if pair in existing]
        for run in trainer.run([pair for pair in pairs if pair not in existing]):
            bank.append(trainer.group, trainer.method(run.arm), run, LOOP)
            runs.append(run)
            name = trainer.arms[run.arm].words
            self.tell(f"{name}, seed {run.seed}: {describe_run(run)}; run {len(runs)} of {len(pairs)}")
            if not run.has_value:
                break
        return runs

    def beside_next(self, bank: Bank, ledger: Ledger) -> dict[str, int]:
        """Count the baseline's runs that the next try is compared with, by the trainer's group in the bank."""
        trainer = self.trainer()
        base, least = trainer.method(BASELINE), self.file.decide.baseline_runs
        next_one = LedgerEntry(kind="try", name="", fingerprint="", baseline=base, metric=trainer.metric, test="")
        since = fix_design.count_runs_at_last_keep(next_one, ledger)
        size = fix_design.count_next_baseline_runs(
            bank, trainer.group, base, first_seed=self.first_seed, since=since, least=least
        )
        return {trainer.group: size}

    def move_where_broken(self, bank: Bank) -> str:
        """Let HEAD be the baseline where a run of what was it has no value and nothing was kept yet; reports it."""
        arm, head = self.arm, self.repository.arm("HEAD", label="baseline")
        runs = bank.list_runs(self.trainer().group, arm.method)
        if arm.method == head.method or "start" in self.session or all(run.has_value for run in runs):
            return ""
        self.folder.move_baseline(self.repository, head)
        return f"the baseline is the commit {head.commit[:7]} now, since {arm.commit[:7]} had no run of every seed"

    def take_again(self, bank: Bank) -> None:
        """Let the bank begin with seeds that nothing has used: for another machine, say."""
        self.record_session(first_seed=max(bank.list_seeds(self.trainer().group), default=self.first_seed - 1) + 1)

    def require_only_try(self, trainer: CommandTrainer, arm: str, bank: Bank, page: str) -> None:
        """Refuse a try whose code has fresh runs already, for another try against this baseline.

        On another machine than theirs, to which no mean crosses, it is a new try.

        Args:
            trainer: of the arms.
            arm: the candidate.
            bank: of the folder.
            page: of the try that is requested.

        Raises:
            PlumblineError: it has some; the try that they belong to is named.
        """
        entry = self.session.get("fresh_runs", {}).get(_make_key(trainer, arm))
        if entry is None or entry["page"] == page or entry["baseline"] != trainer.method(BASELINE):
            return
        arm_machines = {run.fingerprint for run in bank.list_runs(trainer.group, trainer.method(arm))}
        bank_machines = {run.fingerprint for run in self.list_runs(trainer, bank)}
        if arm_machines & bank_machines or not bank_machines:
            first = f"plumbline try -m {shlex.quote(entry['message'])} --first-seed {entry['first_seed']}"
            raise PlumblineError(
                f"{arm}: this code was kept by another try, whose fresh runs were begun: they decide, and the same "
                f"code has no second try, by other seeds or another rule. Finish that one: {first}, and what else it "
                f"was asked with ({entry['page']})"
            )

    def run_again(
        self, decision: Decision, trainer: CommandTrainer, bank: Bank, message: str, asked_first_seed: int
    ) -> Decision:
        """Run what the looks of a decision kept again with fresh seeds, in turn with the baseline, and return what is
        decided with them.

        The seeds are those of the first time that this code was kept, so that no second try has other luck. Where the
        looks are newer than they are, since the baseline is another one, they are new too: what was examined is
        neither fresh nor, by a higher seed, a run of the next baseline. In turn, since the baseline's runs that were
        there before are older: where all runs get better with time, they would lose against any.

        Args:
            decision: that of the looks.
            trainer: of the arms.
            bank: of the folder.
            message: the message of the try.
            asked_first_seed: the first seed of the request.
        """
        arm, fresh_runs = decision.terms.candidate, self.session.get("fresh_runs", {})
        key, entry = _make_key(trainer, arm), fresh_runs.get(_make_key(trainer, arm), {})
        seeds, theirs = (list[int](entry.get(name, ())) for name in ("seeds", "baseline_seeds"))
        page, against = decision.terms.name, trainer.method(BASELINE)
        last_seed = max(run.seed for run in decision.runs if run.arm != BASELINE)
        if min(seeds, default=0) <= last_seed or entry.get("baseline") != against or not theirs:
            unused = count(max({*bank.list_seeds(trainer.group), *seeds, *theirs}) + 1)
            seeds, theirs = (list(islice(unused, decision.terms.fresh_runs)) for _ in range(2))
        entry = _Fresh(
            seeds=seeds,
            baseline_seeds=theirs,
            page=page,
            message=message,
            first_seed=asked_first_seed,
            baseline=against,
        )
        self.record_session(fresh_runs=fresh_runs | {key: entry})
        self.tell(f"{arm}: runs again with fresh seeds before it becomes the baseline")
        in_turn = [pair for their_seed, seed in zip(theirs, seeds) for pair in ((BASELINE, their_seed), (arm, seed))]
        return decide_by_fresh_runs(decision, self._take_runs(trainer, bank, in_turn))

    def forget_fresh_runs(self, trainer: CommandTrainer, arm: str) -> None:
        """Let the next try of this code have other fresh runs, since these could not be judged."""
        key, fresh_runs = _make_key(trainer, arm), self.session.get("fresh_runs", {})
        self.record_session(fresh_runs={name: fresh for name, fresh in fresh_runs.items() if name != key})

    def find_page_that_kept(self, message: str, flags: list[str]) -> str | None:
        """The page of the try that made the baseline, where these are its words and the working tree is its code."""
        keep = self.session.get("kept", {})
        if (keep.get("message"), keep.get("flags")) != (message, flags):
            return None
        arm = self._kept_arm
        return str(keep["page"]) if self.repository.candidate(arm.flags).method == arm.method else None

    @property
    def _kept_arm(self) -> Arm:
        """What was kept last: the baseline, or what a kill left to be it."""
        record = self.session["kept"].get("arm")
        return self.arm if record is None else self.repository.recall(record)

    def finish_move(self) -> None:
        """Let what was kept last be the baseline, where a kill came between its record and that."""
        if self._kept_arm.method != self.arm.method:
            self.folder.move_baseline(self.repository, self._kept_arm)

    def is_head(self, arm: Arm) -> bool:
        """Whether an arm's code is what was committed last."""
        return self.repository.arm("HEAD").tree == arm.tree

    def move(self, arm: Arm, decision: Decision, request: dict[str, Any]) -> str:
        """Let what was kept be the baseline, with its fresh runs for a bank; reports it. `request`: what kept it."""
        if "start" not in self.session:
            self.repository.hold("start", self.arm.commit)
            self.record_session(start=self.arm.record)
        keeps = self.session.get("keeps", [])
        if not keeps or keeps[-1]["page"] != request["page"]:  # else it was killed before the baseline was moved
            previous_state = {"before": self.arm.record, "first_seed": self.first_seed}
            keep = {"words": arm.words, "page": request["page"], **previous_state}
            first_seed = min((run.seed for run in decision.fresh if run.arm != BASELINE), default=self.first_seed)
            self.record_session(first_seed=first_seed, kept=request | {"arm": arm.record}, keeps=[*keeps, keep])
        self.folder.move_baseline(self.repository, arm)
        flags = f", with {' '.join(arm.flags)} from now on" if arm.flags else ""
        if decision.equal_seeds:
            return f"It is the baseline now{flags}; its runs have the values of the last one's."
        mean = statistics.fmean(decision.fresh_values)
        return f"It is the baseline now{flags}: the mean of its {len(decision.fresh_values)} fresh runs is {mean:.6g}."

    def forget(self, page: str, withdraw: Callable[[str], None]) -> Arm:
        """Take the newest keep back, and return what is the baseline again; `withdraw` is given the page of the try.

        Raises:
            PlumblineError: this try made no baseline, or another was kept after it.
        """
        keeps = self.session.get("keeps", [])
        if not keeps or keeps[-1]["page"] != page:
            newest = f"the newest is {keeps[-1]['page']}" if keeps else "nothing is kept"
            raise PlumblineError(f"{page} did not make the baseline; keeps are taken back the newest first: {newest}")
        arm = self.repository.recall(keeps[-1]["before"])
        self.folder.move_baseline(self.repository, arm)
        withdraw(page)
        self.session.pop("kept", None)
        if len(keeps) == 1:
            del self.session["start"]
        self.record_session(keeps=keeps[:-1], first_seed=keeps[-1]["first_seed"])
        return arm

    def require_same_machine(self, bank: Bank) -> None:
        """Refuse a candidate where the bank was made on another machine than this one.

        Raises:
            PlumblineError: it was; the parts that differ are named.
        """
        runs = self.list_runs(self.trainer(), bank)
        if not runs or self.file.where.profile:
            return
        machine: dict[str, str] = dict(fingerprint.read_machine(self.file.where.devices[0]))
        result = read_result(self.folder.runs / f"{runs[-1].run_id}.result.json")
        bank_machine = dict(result.fingerprint) if result is not None else machine
        data = self.file.run.data
        if self.repository.list_tracked(*(name for name in data if not os.path.isabs(name))):
            bank_machine.pop("data", None)  # of a commit, whatever the working tree has
        elif digest := fingerprint.hash_data(self.file.folder, data):
            machine["data"] = digest
        names = sorted({*machine, "gpu", "driver", "data"} & {*machine, *bank_machine})
        differ = [f"{key}: {bank_machine.get(key, 'none')}, {machine.get(key, 'none')}" for key in names]
        if differ := [label for label, key in zip(differ, names) if bank_machine.get(key) != machine.get(key)]:
            raise PlumblineError(f"the baseline cannot be compared with: {ELSEWHERE.format('; '.join(differ))}")

    def record_session(self, **more: Any) -> None:
        """Keep these parts of the session."""
        self.session |= more
        self.folder.make()
        atomic_write_json(self.folder.own / "session.json", self.session)


def _make_key(trainer: CommandTrainer, arm: str) -> str:
    """What fresh runs are kept by: the code, and what trains it in which metric."""
    return f"{trainer.method(arm)}-{sha256_text(canonical_json(trainer.group))[:8]}"


def commit(repository: Repository, arm: Arm) -> str:
    """Commit what was kept, by the user's own git with the user's hooks; reports what was done.

    Raises:
        PlumblineError: a commit would not be what was tried, or git refuses.
    """
    repository.require_committable(arm)
    # What is untracked of these, git ignores; it refuses to leave out by name what it ignores.
    new = not repository.list_tracked(NAME)
    names = [*repository.list_tracked(FOLDER, ROWS, AUTO), *repository.of_a_loop(), *repository.list_left_out()]
    left_out = [f":(top,exclude,literal){name}" for name in names]
    with index_kept(repository.top) as keep:
        for command in (["add", "--all", "--", ":/", *left_out], ["commit", "--message", arm.words]):
            process = subprocess.run(
                ["git", *command], cwd=repository.top, capture_output=True, text=True, errors="replace"
            )
            if process.returncode:
                output = (process.stderr or process.stdout).strip() or "nothing; a hook may have refused it"
                raise PlumblineError(f"nothing was committed: git {command[0]} says: {output.splitlines()[-1]}")
        keep()
    return f"Committed: {arm.words}{f' (with {NAME}, which was new)' if new else ''}"

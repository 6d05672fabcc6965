"""Runs a folder's trainer as the arms of an experiment: `CommandTrainer` is what the decision loop asks for runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Protocol

import msgspec

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, canonical_json, read_json, sha256_text
from plumbline.core.formats import format_count
from plumbline.verdict.decision.experiment import BASELINE, CRASHED, FINISHED, TIMEOUT, ArmRun
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.outcome import CannotBeJudgedError
from plumbline.verdict.own_trainer import fingerprint, first_values, run_end, written_files
from plumbline.verdict.own_trainer.fixed_files import list_fixed
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.own_trainer.git_call import LEAST_FREE, free_bytes
from plumbline.verdict.own_trainer.processes import REPORT, TOKEN, kill_carriers, pool
from plumbline.verdict.own_trainer.requests import (
    NO_COMMAND,
    Request,
    Result,
    fill_command,
    interruption_file,
    read_result,
    seed_variables,
)
from plumbline.verdict.own_trainer.run_budget import RunBudget
from plumbline.verdict.own_trainer.snapshot import Arm, Repository
from plumbline.verdict.own_trainer.trainer_file import TrainerFile

#: Name of a printed metric -> the measure of a run that it is, and in which unit it is counted.
PRINTED = {
    "num_steps": ("step", 1),
    "total_tokens_M": ("tokens", 1e6),
    "num_params_M": ("parameters", 1e6),
    "peak_vram_mb": ("memory_bytes", 2**20),
}


class ProfileJobs(Protocol):
    """Makes runs as jobs of a cluster's profile."""

    @property
    def at_once(self) -> int:
        """The number of runs that may run concurrently."""

    def wait_for_killed_command(self) -> None:
        """Wait for the jobs of a command that was killed, so that their results can be read."""

    def __call__(self, requests: Sequence[Path], tell: Callable[[str], None]) -> Iterator[Path]:
        """Have requests made, and yield each one when its job has ended."""


def name_rerun(run_id: str) -> str:
    """Name the run that was made once more of what a run was."""
    return sha256_text(f"{run_id} again")[:16]


@dataclass(kw_only=True)
class CommandTrainer:
    """The arms of a folder's trainer.

    Attributes:
        arms: by name, the baseline's among them.
        tell: is given a line now and then while runs are made.
        profile_jobs: makes the runs' jobs where `plumbline.toml` names a profile.
        compared_with: the method with whose runs the ends of others are compared; the baseline's if empty.
        again: runs are made once more, beside those of the same seeds.
        budget: what every run is given as its budget; None leaves that to the command.
    """

    file: TrainerFile
    repository: Repository
    folder: Folder
    arms: Mapping[str, Arm]
    tell: Callable[[str], None]
    profile_jobs: Callable[[TrainerFile, Folder], ProfileJobs]
    held_out: bool = False
    compared_with: str = ""
    again: bool = False
    budget: RunBudget | None = None
    _results_by_method: dict[str, dict[int, Result]] = field(default_factory=dict)
    _begun: bool = False
    _touched: set[str] = field(default_factory=set)
    _unseen: bool = False

    def __post_init__(self) -> None:
        if sum(arm.method == self.arms[BASELINE].method for arm in self.arms.values()) > 1:
            raise PlumblineError(
                f"{self.folder.root} is the baseline's code with the same flags: nothing is there to try; change the "
                "code, or give flags after --"
            )

    def at_budget(self, budget: RunBudget) -> CommandTrainer:
        """The same trainer at another budget, which knows no runs yet."""
        return replace(self, budget=budget, _results_by_method={}, _touched=set())

    @cached_property
    def group(self) -> str:
        """Trainer and budget: the command, how it is given its seed, and its metric."""
        metric = self.file.metric
        identity = [self.file.run.command, self.file.run.seed, metric.pattern, metric.json, metric.file, self.metric]
        identity += [self.budget.text] if self.budget else []
        command = f"{self.file.run.command} {self.budget.text}" if self.budget else self.file.run.command
        return f"{command} ({self.metric}) #{sha256_text(canonical_json(identity))[:8]}"

    @cached_property
    def fixed(self) -> tuple[str, ...]:
        """The files that measure, as the top has them."""
        return list_fixed(self.file, self.repository, self.arms[BASELINE]) or ()

    @property
    def metric(self) -> str:
        """The metric that decides."""
        return self.file.metric.held_out if self.held_out else self.file.metric.called

    @property
    def at_once(self) -> int:
        """The number of concurrent runs."""
        return self._jobs.at_once if self._jobs else len(self.file.where.devices)

    def method(self, arm: str) -> str:
        """An arm's code and flags."""
        return self.arms[arm].method

    def run_id(self, arm: str, seed: int) -> str:
        """Name a run: trainer, code, flags, seed."""
        identity = [self.group, self.arms[arm].tree, list(self.arms[arm].flags), seed]
        name = sha256_text(canonical_json(identity))[:16]
        return name_rerun(name) if self.again else name

    def run(self, requests: Sequence[tuple[str, int]]) -> Iterator[ArmRun]:
        """Make these runs, and give each one as it ends; one that was finished before is read.

        Raises:
            PlumblineError: a run was not made for a reason that is not its arm's, or seeds have no effect.
        """
        if not self._begun:
            self._end_leftovers()
            self._begun = True
        todo: dict[Path, tuple[str, int]] = {}
        ended: list[tuple[str, Result]] = []
        for arm, number in requests:
            result = self._find_finished(arm, number)
            if result is None:
                todo[self.write_request(arm, number)] = (arm, number)
            elif arm == BASELINE:
                yield self._make_arm_run(arm, result)
            else:
                ended.append((arm, result))
        yield from self._yield_comparable_runs(ended, todo)
        make = self._jobs or partial(pool, self.file.where.devices)
        for path in make(list(todo), self.tell) if todo else ():
            arm, number = todo.pop(path)
            result = self._result_of(self.run_id(arm, number))
            if result is None:
                kill_carriers(f"{TOKEN}={self.run_id(arm, number)}:")
                raise self._describe_interrupted(arm, number)
            copy = self.folder.copy(self.run_id(arm, number))
            written_files.note(self.folder.own, copy)
            if arm != BASELINE:
                untracked = self.repository.list_untracked()
                written_files.refuse_state(self.folder.own, copy, untracked, self.arms[arm].words)
            self.repository.remove(copy)
            self.tell_of_shared(arm, result)
            if arm == BASELINE:
                yield self._make_arm_run(arm, result)
            else:
                ended.append((arm, result))
            yield from self._yield_comparable_runs(ended, todo)

    def _yield_comparable_runs(
        self, ended: list[tuple[str, Result]], todo: Mapping[Path, tuple[str, int]]
    ) -> Iterator[ArmRun]:
        """Give runs once none of the baseline is left to be made, without which they cannot be compared."""
        while ended and all(arm != BASELINE for arm, _ in todo.values()):
            yield self._make_arm_run(*ended.pop(0))

    def tell_of_shared(self, arm: str, result: Result) -> None:
        """Report once each shared file that changed, and shared files that were not checked."""
        if new := [path for path in result.touched if path not in self._touched]:
            self._touched.update(new)
            self.tell(
                f"mind: while seed {result.seed} of {self.arms[arm].words or arm} ran, {', '.join(new[:3])} "
                "changed, which all runs share: those after it may not be what they would have been; give each "
                "run its own (run.output), or have no run write there"
            )
        if result.unseen and not self._unseen:
            self._unseen = True
            self.tell(
                f"mind: {self.file.path}: run.share has more files than can be looked at before and after each run: "
                f"what a run changes is noticed in {format_count(result.looked_at, 'file')} of them, and not in the "
                "others"
            )

    def evidence(self, run: ArmRun) -> RunEvidence:
        """Collect what is known of a run: what it printed under the names of autoresearch, and what was seen of it."""
        if (result := self._result_of(run.run_id)) is None:
            return run.evidence
        printed = {
            measure: result.others[name] * unit for name, (measure, unit) in PRINTED.items() if name in result.others
        }
        if result.memory_gb is not None:
            printed.setdefault("memory_bytes", result.memory_gb * 2**30)
        rerun = self._result_of(name_rerun(run.run_id))
        began = datetime.fromtimestamp(result.began, UTC).isoformat() if result.began else None
        written_paths = None if result.written_outside is None else tuple(result.written_outside)
        files = {
            "step": result.last.place.get("step", result.place.get("step")),
            "rerun_value": None if rerun is None else rerun.value,
            "started": began,
            "read_outside": result.read_outside,
            "written_outside": written_paths,
            "printed_first": None if result.printed_first is None else tuple(result.printed_first),
        }
        return replace(
            run.evidence,
            file=Path(result.log),
            changed_fixed=(*result.changed_fixed, *result.changed_records),
            readers=result.readers,
            **{**files, **printed},  # type: ignore[arg-type]
        )

    def memory_gb(self, runs: Sequence[ArmRun]) -> float | None:
        """The largest memory of a GPU in these runs: `peak_vram_mb` of the other metrics, or what torch counted."""
        sizes = (self.evidence(run).memory_bytes for run in runs)
        return max((size / 2**30 for size in sizes if size is not None), default=None)

    def list_machine_changes(self, runs: Sequence[ArmRun]) -> list[str]:
        """State in what the machines differ on which runs were made: `torch: 2.5.1, 2.6.0`."""
        parts = [result.fingerprint for result in self._results_of(runs)]
        keys = sorted({key for prints in parts for key in prints})
        values_by_key = ((key, list(dict.fromkeys(prints.get(key, "none") for prints in parts))) for key in keys)
        return [f"{key}: {', '.join(values)}" for key, values in values_by_key if len(values) > 1]

    def write_request(self, arm: str, number: int) -> Path:
        """Write the request of a run, with the copy that it is made in."""
        arm_entry, run, run_id = self.arms[arm], self.file.run, self.run_id(arm, number)
        flags, variables = (self.budget.flags, self.budget.variables) if self.budget else ((), {})
        self.folder.make()
        for stale in ("result", "progress"):
            self._file(arm, number, stale).unlink(missing_ok=True)
        copy = self.folder.copy(run_id)
        folder: Path = copy / self.repository.prefix
        if not self.folder.at_work(run_id):
            folder = self.repository.check_out(arm_entry.commit, copy, run.share, run.output)
        request = Request(
            run_id=run_id,
            seed=number,
            words=arm_entry.words or arm,
            command=fill_command(run.command, run.seed, number, (*arm_entry.flags, *flags)),
            folder=str(folder),
            top=str(self.repository.top),
            copy=str(copy),
            result=str(self._file(arm, number, "result")),
            log=str(self.folder.log(arm_entry.method, f"{number}-again" if self.again else number)),
            progress=str(self._file(arm, number, "progress")),
            metric=self.file.metric,
            environment=seed_variables(run.seed, number) | variables,
            timeout=self._timeout_seconds,
            shared=[str(self.file.folder / name) for name in run.share],
            since=self.folder.set_up_at,
            fixed=list(self.fixed),
            fingerprint={"data": data} if (data := fingerprint.hash_data(folder, run.data, self.file.folder)) else {},
        )
        path = self._file(arm, number, "request")
        atomic_write_json(path, msgspec.to_builtins(request))
        return path

    @property
    def _timeout_seconds(self) -> float | None:
        """The longest that a run may take, as the file has it for 1x; None if it may take as long as it likes."""
        seconds = self.file.run.timeout_seconds
        return seconds if seconds is None or self.budget is None else seconds * max(1.0, self.budget.times)

    def _file(self, arm: str, number: int, kind: str) -> Path:
        return self.folder.runs / f"{self.run_id(arm, number)}.{kind}.json"

    def _result_of(self, run_id: str) -> Result | None:
        return read_result(self.folder.runs / f"{run_id}.result.json")

    def _find_finished(self, arm: str, number: int) -> Result | None:
        """The result of a run that was made before; one that crashed is made again, as its cause may be gone."""
        result = self._result_of(self.run_id(arm, number))
        return None if result is None or result.outcome in (CRASHED, TIMEOUT) else result

    def _make_arm_run(self, arm: str, result: Result) -> ArmRun:
        """A run as the loop knows it."""
        if result.borrowed:
            raise PlumblineError(
                f"{', '.join(result.borrowed[:3])}: came from {self.repository.top} and not from the arm's own copy, "
                "so that both arms were the same code; give the command paths below its own folder "
                "(PYTHONPATH=src:$PYTHONPATH)"
            )
        value = result.others.get(self.metric) if self.held_out else result.value
        outcome, why, end = result.outcome, result.why, self._compare_end(arm, result)
        if end.why:
            outcome, why = CRASHED, end.why
            result = msgspec.structs.replace(result, outcome=outcome, why=why)
            # So that it is made again when it is requested again, as other crashes are.
            atomic_write_json(self._file(arm, result.seed, "result"), msgspec.to_builtins(result))
        for remark in end.remarks:
            self.tell(f"mind: seed {result.seed} of {self.arms[arm].words or arm}: {remark}")
        if (broken := self._explain_no_effect(arm, result)) or result.exit_code in NO_COMMAND:
            if not self._others_vary(arm):  # what the baseline can, a candidate that cannot has undone
                error = CannotBeJudgedError if broken else PlumblineError
                raise error(f"{self.file.path}: {broken or f'run.command: {why}'}")
            outcome, why = CRASHED, broken or why
        if outcome == FINISHED and (value is None or not math.isfinite(value)):
            outcome, why = CRASHED, f"it never said {self.metric}"
        return ArmRun(
            arm=arm,
            seed=result.seed,
            value=value if outcome == FINISHED else None,
            outcome=outcome,
            seconds=result.seconds,
            run_id=result.run_id,
            others=result.others,
            why=why,
            fingerprint=fingerprint.of_parts(result.fingerprint),
            remarks=tuple(end.remarks),
        )

    def _compare_end(self, arm: str, result: Result) -> run_end.ComparedEnd:
        """Compare the end of a run that has a value with those of the baseline."""
        base, called = self.compared_with or self.arms[BASELINE].method, self.metric
        if result.outcome != FINISHED:
            return run_end.ComparedEnd(remarks=result.remarks)
        if self.arms[arm].method == base:
            return run_end.tell_of_baseline(result)
        base_runs = [run for run in self._results(base).values() if run.run_id != result.run_id]
        shorter = self.file.run.fewer_steps
        return run_end.compare(result, base_runs, called, may_be_shorter=shorter, held_out=self.held_out)

    def _results(self, method: str) -> dict[int, Result]:
        """The finished runs of a method by their seeds: those of earlier tries, and those that were given."""
        if method not in self._results_by_method:
            self._results_by_method[method] = self._read_banked(method)
        return self._results_by_method[method]

    def _explain_no_effect(self, arm: str, result: Result) -> str:
        if result.outcome != FINISHED:
            return ""
        results = self._results(self.arms[arm].method)
        results[result.seed] = result
        return first_values.explain_no_effect(self.file.run.seed, result, results)

    def _read_banked(self, method: str) -> dict[int, Result]:
        """The finished runs of an arm that an earlier try made, by their seeds."""
        runs = [row.run for row in self.folder.bank().runs if (row.group, row.method) == (self.group, method)]
        return {result.seed: result for result in self._results_of([run for run in runs if run.has_value])}

    def _results_of(self, runs: Sequence[ArmRun]) -> list[Result]:
        return [result for run in runs if (result := self._result_of(run.run_id)) is not None]

    def _others_vary(self, arm: str) -> bool:
        """Whether runs of another arm have gone well here, and differ by their seeds."""
        runs: dict[str, list[ArmRun]] = {}
        for row in self.folder.bank().runs:
            if row.group == self.group and row.method != self.method(arm) and row.run.has_value:
                runs.setdefault(row.method, []).append(row.run)
        return any(
            len({run.value for run in each}) > 1
            and not first_values.are_one_run(*(result.printed_first for result in self._results_of(each)))
            for each in runs.values()
        )

    def _describe_interrupted(self, arm: str, number: int) -> PlumblineError:
        note = read_json(interruption_file(self._file(arm, number, "result"))) or {}
        full = free_bytes(self.folder.runs) < LEAST_FREE  # where it is full, the reason could not be written
        why = note.get("why") or ("the disk is full" if full else "its process ended without a word")
        self.repository.remove(self.folder.copy(self.run_id(arm, number)))
        return PlumblineError(
            f"{self.arms[arm].words or arm}, seed {number}, was not made, for a reason of this machine and not of the "
            f"arm: {why}; put that right and repeat the command: what is finished is used"
        )

    @cached_property
    def _jobs(self) -> ProfileJobs | None:
        """What makes the runs where a profile is named."""
        return self.profile_jobs(self.file, self.folder) if self.file.where.profile else None

    def _end_leftovers(self) -> None:
        """End what a try that was killed has left running here: it holds a device, and writes where new runs do.

        Jobs of a profile are waited for, and what they gave is read.
        """
        if self._jobs:
            self._jobs.wait_for_killed_command()
        elif ended := kill_carriers(f"{REPORT}={self.folder.runs.absolute()}/"):
            self.tell(f"{format_count(ended, 'process', 'processes')} of an earlier try still ran here, and had to end")
        self.folder.remove_copies(self.repository)

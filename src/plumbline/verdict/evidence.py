"""Holds what every source of values returns: its values, where each stands, and what the source says beside them.

Sources are tables, logs, records, samples of items, the runs of a study and those of a folder's own trainer.

A field that is None is not known, since the source does not say it; an empty one is known to be empty.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from statistics import median

from plumbline.core.errors import PlumblineError, nearest

#: How a run ended; keep and discard are what a search says of one that finished.
KEEP, DISCARD, CRASH, RUNNING, FINISHED = "keep", "discard", "crash", "running", "finished"
#: Field of `RunEvidence` that tells what a run took -> its name on a page.
MEASURES = {
    "seconds": "time",
    "step": "last step",
    "tokens": "tokens",
    "parameters": "parameters",
    "memory_bytes": "peak memory",
}


def parse_measures(names: Iterable[str], place: str) -> tuple[str, ...]:
    """Read the measures that have to be equal; `place`: the key or the flag that names them.

    Raises:
        PlumblineError: one is none of `MEASURES`; the nearest is named.
    """
    measures = tuple(dict.fromkeys(name.strip() for name in names))
    if unknown := [name for name in measures if name not in MEASURES]:
        raise PlumblineError(
            f"{place}: {unknown[0]!r} is none of the measures {', '.join(MEASURES)}{nearest(unknown[0], MEASURES)}"
        )
    return measures


@dataclass(frozen=True, kw_only=True, slots=True)
class RunsSummary:
    """Mean and standard deviation (n - 1 below the line) of n runs, as printed.

    Attributes:
        mean_rounding, std_rounding: half a unit of the last printed digit: the true number is this near.
    """

    mean: float
    std: float
    n: int
    mean_rounding: float = 0.0
    std_rounding: float = 0.0

    def ends(self) -> tuple[RunsSummary, RunsSummary]:
        """Return it with the smallest and the largest standard deviation that would be printed so."""
        low = max(0.0, self.std - self.std_rounding)
        return replace(self, std=low), replace(self, std=self.std + self.std_rounding)

    def divide_by_n(self) -> RunsSummary:
        """Return what it is if the printed standard deviation has n below the line, as that of a population has."""
        return replace(self, std=self.std * math.sqrt(self.n / (self.n - 1)))


#: Method -> what is printed of its runs.
Summaries = Mapping[str, RunsSummary]


def pool_summaries(*sides: RunsSummary) -> tuple[float, float]:
    """Sigma of one run, pooled over the sides, and its degrees of freedom."""
    freedom = sum(side.n - 1 for side in sides)
    largest = max(side.std for side in sides) or 1.0  # so that 1e200 can be squared
    return largest * math.sqrt(sum((side.n - 1) * (side.std / largest) ** 2 for side in sides) / freedom), freedom


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedTexts:
    """How much of what a run is evaluated on its training texts hold as well.

    Attributes:
        held_out, shared: its held-out texts, and those of them that are in training too, byte for byte.
        unit: what a text is, "documents" or "pieces" of them.
        option: the key of a configuration that leaves copies out.
        items, items_shared: items of its tasks, and those that have 13 words in a row with a training text; None
            where that was not counted, or no task is asked.
    """

    held_out: int
    shared: int
    unit: str
    option: str
    items: int | None = None
    items_shared: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEvidence:
    """What a source says of one run.

    Attributes:
        value: None where the run has none: it was lost, has not ended, or its cell is empty.
        file, line: where it stands, and in which line, or entry of an array; place: of several runs of a log, which.
        status: `CRASH`, `RUNNING` or `FINISHED`; word: how the source says that a run was lost or has not ended.
        step: of the value; steps: at which there were values; planned: at which the run was to end.
        settings, evaluation: what is printed of its settings, and of how much its evaluations cover: name -> values.
        started: when it began (ISO 8601, UTC); order: its place in the order in which runs were made, from 0.
        fresh: whether it was made since runs of its arm had looked good.
        seconds, tokens, parameters, memory_bytes: wall time, tokens that it read, size of its model, its peak memory.
        remarks: what is to be told of how it ended, though it counts.
        curve: step -> value of the metric, without step 0, where it was evaluated more than once.
        printed_first: the first values that it printed, as printed.
        rerun_value: of another run of the same seed and code.
        read_outside: file that it read, of those that its copy and its own temporary folder do not hold -> when that
            was last written before (seconds since the epoch); `written_outside`: those that it wrote.
        whole_model: whether its model had every weight that it needs, and no other, when its value was computed.
        shared_texts: how much of its evaluation is in its training texts.
        changed_fixed: files that measure, and records of Plumbline's own, that changed while it ran.
        readers: program of it -> the files of its copy that it read.
        others: further metrics that it stated, none of which decides.
    """

    value: float | None
    file: Path | None = None
    line: int | None = None
    status: str | None = None
    word: str = ""
    step: float | None = None
    place: int | None = None
    seed: str | None = None
    steps: tuple[int, ...] | None = None
    planned: int | None = None
    settings: Mapping[str, Sequence[str]] | None = None
    evaluation: Mapping[str, Sequence[str]] | None = None
    started: str | None = None
    order: int | None = None
    fresh: bool = False
    seconds: float | None = None
    tokens: float | None = None
    parameters: float | None = None
    memory_bytes: float | None = None
    remarks: tuple[str, ...] | None = None
    curve: Mapping[int, float] | None = None
    printed_first: tuple[str, ...] | None = None
    rerun_value: float | None = None
    read_outside: Mapping[str, float] | None = None
    written_outside: tuple[str, ...] | None = None
    whole_model: bool | None = None
    shared_texts: SharedTexts | None = None
    changed_fixed: tuple[str, ...] | None = None
    readers: Mapping[str, Sequence[str]] | None = None
    others: Mapping[str, float] | None = None

    @property
    def start_time(self) -> float | None:
        """When it began, in seconds since the epoch; None if that is not known. A time without a zone is of UTC."""
        try:
            time = datetime.fromisoformat(self.started) if self.started else None
        except ValueError:
            return None
        return None if time is None else (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def read_places(runs: Sequence[RunEvidence]) -> list[float] | None:
    """Read where runs stand in time, by their order or else by when they began; None where one does not say it."""
    readings: tuple[Callable[[RunEvidence], float | None], ...] = (lambda run: run.order, lambda run: run.start_time)
    for read_place in readings:
        places = [place for run in runs if (place := read_place(run)) is not None]
        if len(places) == len(runs):
            return places
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchLogEntry:
    """One run in the log of a search; `value` is None where it crashed or diverged.

    `status` is keep, discard or crash; `word` is what the log says.
    """

    line: int
    commit: str
    value: float | None
    status: str
    description: str
    word: str = ""

    @property
    def configuration(self) -> tuple[str, str]:
        """What was run: a commit and its description. A loop that edits without a commit has one commit for many."""
        return self.commit, re.sub(r"\s+", " ", self.description).strip()

    @property
    def label(self) -> str:
        """The configuration as a reader knows it, and as `Evidence.runs` has it."""
        return " ".join(self.configuration).strip()


@dataclass(frozen=True, slots=True)
class ItemEvidence:
    """An item's value, and what tells its document, its prompt and its target from others ("" where nothing does)."""

    value: float
    document: str
    prompt: str = ""
    target: str = ""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a source of numbers returns: values by run, printed summaries, the log of a search, or values by item.

    Attributes:
        runs: method -> seed -> run; the methods stand as the source has them. Of a search they are its configurations,
            and lines take the place of seeds.
        summaries: method -> what is printed of its runs; there are no single values then, and none was lost.
        log: the runs of a search, in the order of time.
        items: task -> item -> value, of one model.
        files: those that were read.
        without: method without any value -> the lines of its rows; it is none of `methods`.
        statuses: the columns that say how runs ended.
        model: the model's name, with its arguments.
        asked: task -> how its items were asked -> what the source says of that; what it does not say is not there.
        dates: how many runs of an evaluation the files are of, by their names.
        changed_files: file of the candidate that differs from the baseline -> lines added and removed (`+3 -1`).
        fixed_files: those that measure, which are the baseline's in both arms; None where nothing names them.
        left_out_files: untracked files that are no part of the candidate, since runs write files of that name.
        replaced_modules: new files of the candidate that are imported in place of a module that is installed.
        notes: sentences about how the source was read; told: those that stand next to the verdict, of what could say
            that a run does not count, or that methods were evaluated otherwise, and is not read so.
    """

    metric: str
    runs: Mapping[str, Mapping[str, RunEvidence]] = field(default_factory=dict)
    summaries: Summaries = field(default_factory=dict)
    log: Sequence[SearchLogEntry] = ()
    items: Mapping[str, Mapping[str, ItemEvidence]] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    without: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    statuses: tuple[str, ...] | None = None
    model: str | None = None
    asked: Mapping[str, Mapping[str, str]] | None = None
    dates: int | None = None
    changed_files: Mapping[str, str] | None = None
    fixed_files: tuple[str, ...] | None = None
    left_out_files: tuple[str, ...] | None = None
    replaced_modules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of which something is known, as the source has them."""
        return tuple(self.runs or self.summaries)

    @cached_property
    def values(self) -> dict[str, dict[str, float]]:
        """Method -> seed -> value, of the runs that have one."""
        values: dict[str, dict[str, float]] = {}
        for method, runs in self.runs.items():
            for seed, run in runs.items():
                if run.value is not None:
                    values.setdefault(method, {})[seed] = run.value
        return values

    @cached_property
    def lost(self) -> dict[str, dict[str, str]]:
        """Method -> the seeds that diverged or crashed -> the word for it."""
        return self._words(CRASH)

    @cached_property
    def unfinished(self) -> dict[str, dict[str, str]]:
        """Method -> the seeds that still run or wait -> the word for it, and its line."""
        return self._words(RUNNING)

    @property
    def medians(self) -> dict[str, dict[str, float | None]]:
        """What the runs took: measure -> method -> median over the runs that state it; None if it is not known."""
        return {
            measure: {
                method: _median(getattr(run, measure) for run in runs.values()) for method, runs in self.runs.items()
            }
            for measure in MEASURES
        }

    def _words(self, status: str) -> dict[str, dict[str, str]]:
        by_method = {
            method: {
                seed: run.word if status == CRASH else f"{run.word!r} in {f'line {run.line}' if run.line else run.file}"
                for seed, run in runs.items()
                if run.status == status
            }
            for method, runs in self.runs.items()
        }
        return {method: by_seed for method, by_seed in by_method.items() if by_seed}


def _median(amounts: Iterable[float | None]) -> float | None:
    stated = [amount for amount in amounts if amount is not None]
    return median(stated) if stated else None

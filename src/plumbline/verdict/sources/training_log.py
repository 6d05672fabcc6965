"""Reads a log of training: the code that it holds, its configuration and machine, and its runs' evaluations."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path

from msgspec import Struct

from plumbline.core.errors import PlumblineError
from plumbline.core.escape_sequences import strip_escapes
from plumbline.core.files import sha256_text
from plumbline.verdict.evidence import CRASH, RunEvidence
from plumbline.verdict.sources.bounded_reading import EVALUATIONS, LINE, RUNS, LineForm, parse_number, read_text
from plumbline.verdict.sources.printed_settings import PrintedSettings, read_settings

#: A line of this many equals signs, or more, divides a log: its code, what it says of the machine, its evaluations.
DIVIDER = 20
#: A line of code begins so, somewhere in a part that is code.
CODE = ("import ", "from ", "def ", "class ")
#: Evaluations that two files have to share to be of one run; or one value with so many digits.
SHARED, DIGITS = 3, 8

_MACHINE = re.compile(r"device_name=([^=\n]{2,60}?)(?: with |$)|\b(NVIDIA [A-Z][\w .-]{2,40}?)(?:\s{2,}|\s*\||$|,)")
_HARDWARE = re.compile(
    r"\b((?:NVIDIA )?(?:[AHBL]\d{2,3}S?|GB\d{3}|RTX ?\d{4}|MI\d{3}X?)(?: \d{2,3}GB)?(?: HBM\w{1,3})?)\b"
)
_WORLD = re.compile(r"world_size[=: ]{1,3}(\d{1,5})")
_TORCH = re.compile(
    r"(?:PyTorch|torch[= ]{1,2}|pytorch_version[=: ]{1,3}) ?(\d{1,2}\.\d{1,3}[\w.+]{0,40})", re.IGNORECASE
)
_CUDA = re.compile(r"CUDA(?: Version)?[: ]{1,3}(\d{1,2}\.\d{1,2})")
_SEED = re.compile(r"\bseed\s{0,3}[=:]\s{0,3}(\d{1,12})\b", re.IGNORECASE)
_SEED_NAME = re.compile(r"seed[-_=]?(\d{1,12})", re.IGNORECASE)
_SETTING = re.compile(r"\s{0,8}(?:Using )?([A-Za-z_][\w.-]{0,60})\s{0,3}[=:]\s{0,3}(\S.{0,200})")
_LABEL = re.compile(r"[A-Za-z][\w-]*")


class LogPart(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """How a log is read.

    Attributes:
        lines: an evaluation, as words with `{value}` and, where the line has them, `{step}`, `{steps}` and `{time}`;
            `{...}` stands for anything short. The first that fits counts.
        names: the ends of file names that are logs.
        others: further metrics of the same line, as words with `{value}`.
        others_count: whether a headline may be of one of them; where it is, that is said.
    """

    lines: tuple[str, ...]
    others: tuple[str, ...] = ()
    others_count: bool = False
    names: tuple[str, ...] = (".txt", ".log")

    @cached_property
    def forms(self) -> tuple[LineForm, ...]:
        """The forms of an evaluation's line."""
        return tuple(LineForm(text) for text in self.lines)

    @cached_property
    def other_forms(self) -> tuple[LineForm, ...]:
        """The forms of other metrics."""
        return tuple(LineForm(text) for text in self.others)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A value that a log prints: what stands before it, its step of so many, as printed, and the training time."""

    label: str
    step: int | None
    steps: int | None
    printed: str
    value: float
    time: float | None = None


@dataclass(kw_only=True)
class LoggedRun:
    """A run of a log.

    Attributes:
        lines: the places of its evaluations among the lines of the log that are not code.
        printed: its settings, and how much its evaluations cover.
    """

    file: Path
    place: int
    evaluations: list[Evaluation] = field(default_factory=list)
    seed: str = ""
    lines: list[int] = field(default_factory=list)
    printed: PrintedSettings = field(default_factory=PrintedSettings)

    @cached_property
    def values(self) -> dict[tuple[str, int | None], str]:
        """The printed values by label and step; step 0, at which nothing was learnt, is not among them."""
        return {(each.label, each.step): each.printed for each in self.evaluations if each.step != 0}

    @cached_property
    def by_value(self) -> list[Evaluation]:
        """The evaluations with a finite value, the smallest first."""
        return sorted((each for each in self.evaluations if math.isfinite(each.value)), key=attrgetter("value"))

    @cached_property
    def _ends(self) -> dict[tuple[str, bool], Evaluation]:
        return {(each.label, each.step is None): each for each in self.evaluations}

    def is_last(self, evaluation: Evaluation) -> bool:
        """Whether an evaluation is the last one of its label, of those with a step or of those without."""
        return self._ends[evaluation.label, evaluation.step is None] == evaluation

    @property
    def last_step(self) -> int:
        """The last step that was evaluated; 0 without any."""
        return max((each.step for each in self.evaluations if each.step is not None), default=0)

    @property
    def planned(self) -> int | None:
        """The step at which the run was to end; None if no line states it."""
        return next((each.steps for each in reversed(self.evaluations) if each.steps is not None), None)

    def evidence(self, evaluation: Evaluation, *, lost: bool = False) -> RunEvidence:
        """What it says next to the value of an evaluation; `lost`: it has none, since the run diverged."""
        lost = lost or not math.isfinite(evaluation.value)
        return RunEvidence(
            value=None if lost else evaluation.value,
            file=self.file,
            place=self.place,
            seed=self.seed or None,
            status=CRASH if lost else None,
            word="diverged" if lost else "",
            step=evaluation.step,
            steps=tuple(each.step for each in self.evaluations if each.step is not None),
            planned=self.planned,
            curve={each.step: each.value for each in self.evaluations if each.step and each.label == evaluation.label},
            settings=self.printed.settings,
            evaluation=self.printed.sizes,
        )

    def find_evaluations(self, step: int) -> list[Evaluation]:
        """The evaluations of a step."""
        return [each for each in self.evaluations if each.step == step]

    def same_as(self, other: LoggedRun) -> bool:
        """Whether two files hold this one run: every value that both print is the same, and these are enough."""
        shared = self.values.keys() & other.values.keys()
        if any(self.values[key] != other.values[key] for key in shared):
            return False
        return len(shared) >= SHARED or any(sum(map(str.isdigit, self.values[key])) >= DIGITS for key in shared)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingLog:
    """What a log holds; `code` is empty if it holds none."""

    file: Path
    code: str
    settings: Mapping[str, str]
    machine: str
    versions: tuple[str, ...]
    runs: tuple[LoggedRun, ...]

    @property
    def code_hash(self) -> str:
        """Tells the code from another's."""
        return sha256_text(self.code)[:12] if self.code else ""


def read_log(path: Path, part: LogPart) -> TrainingLog:
    """Read a log. A metric next to the one that counts has its form's own word as its label.

    Raises:
        PlumblineError: it cannot be read, or has too many evaluations.
    """
    parts: list[list[str]] = [[]]
    readings: list[list[tuple[int, str, dict[str, str]]]] = [[]]
    count = 0
    for line in strip_escapes(read_text(path)).split("\n"):
        if len(line) >= DIVIDER and not line.strip("="):
            parts.append([])
            readings.append([])
            continue
        line = line[:LINE]
        evaluations = _read_line(line, part)
        readings[-1] += [(len(parts[-1]), *evaluation) for evaluation in evaluations]
        parts[-1].append(line)
        count += bool(evaluations)
        if count > EVALUATIONS:
            raise PlumblineError(f"{path} has more than {EVALUATIONS:,} evaluations, and is not read")
    quiet_parts = [place for place in range(len(parts) - 1) if not readings[place]]
    code = max(quiet_parts, key=lambda index: len(parts[index]), default=None)
    if code is not None and not any(line.startswith(CODE) for line in parts[code]):
        code = None
    first_lines = [line for index, lines in enumerate(parts) if index != code for line in lines[:4000]]
    printed_lines, numbered_readings = list[str](), list[tuple[int, str, dict[str, str]]]()
    for index, lines in enumerate(parts):
        if index != code:
            first_line = len(printed_lines)
            numbered_readings += [(first_line + place, prefix, places) for place, prefix, places in readings[index]]
            printed_lines += lines
    runs = _divide_into_runs(path, numbered_readings)
    for run, printed in zip(runs, read_settings(printed_lines, [run.lines for run in runs])):
        run.printed = printed
    text = "\n".join(first_lines[:20_000])
    seed = find_seed(path, text)
    if len(runs) == 1 and seed:
        runs[0].seed = seed
    return TrainingLog(
        file=path,
        code="\n".join(line.rstrip() for line in parts[code]).strip() if code is not None else "",
        settings=_read_settings(parts, code),
        machine=_find_machine(text),
        versions=tuple(
            f"{name} {version[1]}"
            for name, pattern in (("torch", _TORCH), ("CUDA", _CUDA))
            if (version := pattern.search(text))
        ),
        runs=tuple(runs),
    )


def _read_line(line: str, part: LogPart) -> list[tuple[str, dict[str, str]]]:
    """The evaluation on a line, by the first form that fits, and behind it those in other metrics; none without it."""
    for form in part.forms:
        if (match := form.read(line)) is not None:
            readings = ((other_form.anchor, other_form.read(line)) for other_form in part.other_forms)
            return [match, *((label, match[1] | reading[1]) for label, reading in readings if reading is not None)]
    return []


def find_seed(path: Path, text: str) -> str:
    """The seed by a file's name or its folder's, or else by what the log says; empty if neither does."""
    for name in (path.name, path.parent.name):
        if name_match := _SEED_NAME.search(name):
            return name_match[1]
    text_match = _SEED.search(text)
    return text_match[1] if text_match else ""


def _divide_into_runs(path: Path, readings: Sequence[tuple[int, str, dict[str, str]]]) -> list[LoggedRun]:
    """Divide evaluations, each with its line, into runs: where the step goes back, another run begins."""
    runs: list[LoggedRun] = []
    last_step = -1
    for line, prefix, places in readings:
        value = parse_number(places["value"])
        assert value is not None
        step, steps = (int(places[name]) if name in places else None for name in ("step", "steps"))
        label = " ".join(word for word in prefix.split() if _LABEL.fullmatch(word))[:80]
        time = float(places["time"]) if "time" in places else None
        if (step is not None and step < last_step) or not runs:
            if len(runs) == RUNS:
                break
            runs.append(LoggedRun(file=path, place=len(runs)))
        last_step = step if step is not None else last_step
        evaluation = Evaluation(label=label, step=step, steps=steps, printed=places["value"], value=value, time=time)
        runs[-1].lines.append(line)
        if evaluation not in runs[-1].evaluations[-8:]:
            runs[-1].evaluations.append(evaluation)
    return runs


def _read_settings(parts: Sequence[Sequence[str]], code: int | None) -> dict[str, str]:
    """The settings that a log prints: between two dividers, or indented below a line ``Hyperparameters:``."""
    settings: dict[str, str] = {}
    for index in range(1, len(parts) - 1):
        if index != code:
            for line in parts[index][:400]:
                if line.startswith("Using ") and (match := _SETTING.fullmatch(line)):
                    settings[match[1]] = match[2]
    for index, lines in enumerate(parts):
        begins = next((place for place, line in enumerate(lines) if line.strip() == "Hyperparameters:"), None)
        if index == code or begins is None:
            continue
        for line in lines[begins + 1 : begins + 401]:
            match = _SETTING.fullmatch(line)
            if match is None or not line.startswith(" "):
                break
            settings[match[1]] = match[2]
    return settings


def _find_machine(text: str) -> str:
    match = _MACHINE.search(text)
    device = (match[1] or match[2]) if match else ""
    if not device and (hardware := _HARDWARE.search(text)):
        device = hardware[1]
    world = _WORLD.search(text)
    return f"{world[1]} x {device.strip()}" if world and device else device.strip()

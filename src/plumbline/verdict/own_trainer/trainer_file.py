"""Reads `plumbline.toml`: how a folder's trainer is run, what its metric is, and what decides.

Every value is a string, a number or a list of strings. Nothing in the file is executed but `command`.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, structs

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.formats import parse_duration
from plumbline.core.structs import convert
from plumbline.core.toml_keys import check_keys
from plumbline.verdict.decision.experiment import Session
from plumbline.verdict.evidence import MEASURES, parse_measures
from plumbline.verdict.guard_limit import parse_guard_limit
from plumbline.verdict.own_trainer.find_folder import NAME
from plumbline.verdict.own_trainer.run_budget import ENVIRONMENT, explain_wrong_budget

#: The places of a command that are filled in.
FLAGS, SEED = "{flags}", "{seed}"
#: As a seed, this shifts those that the code sets.
INJECT = "inject"

#: Variables that set what a shell, the linker or Python runs besides the command, and those that a run is given anyway.
_STEERING = re.compile(
    r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|IFS|PATH|HOME|LD_\w+|PYTHON(?!HASHSEED)\w*|PLUMBLINE_\w+|GIT_\w+"
)
#: What of a folder is neither shared nor made empty.
_NOT_A_RUNS = (".", ".git", ".plumbline")


class RunPart(Struct, frozen=True, forbid_unknown_fields=True):
    """How the trainer is run.

    Attributes:
        command: run by the shell in the folder of the arm's own copy; `{flags}` and `{seed}` are filled in.
        seed: words with `{seed}` that are given to the command, and mean nothing to the shell; `env:NAME`; or `inject`.
        share: what git ignores and a run needs, linked into each copy.
        output: what git ignores and a run writes into: a folder that is empty in each copy.
        timeout: the longest that a run may take, such as 15 min; none if empty.
        size: how large the model is and how long it trains, as a verdict is to state it; not stated if empty.
        data: files and folders whose content is part of what means do not cross.
        fewer_steps: a run may end at an earlier step than those of the baseline; else such a one was not finished.
        budget: words that give the command its budget, or `env:NAME={2000}`: numbers in braces are those of 1x, which
            `plumbline try --at` multiplies (`own_trainer.run_budget`); other commands do not give it.
    """

    command: str
    seed: str = "--seed {seed}"
    share: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    timeout: str = ""
    size: str = ""
    data: tuple[str, ...] = ()
    fewer_steps: bool = False
    budget: str = ""

    @property
    def timeout_seconds(self) -> float | None:
        """The timeout in seconds; None if a run may take as long as it likes."""
        return parse_duration(self.timeout) if self.timeout else None


class MetricPart(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a run writes its metric: by a pattern, in JSON lines, or as lines `METRIC name=value`.

    Attributes:
        pattern: a regular expression with one group; its last match counts.
        json: `FILE:KEY`, the last row of the file that has the key; dots lead into nested keys.
        name: of the metric; needed where lines `METRIC name=value` are read.
        file: where the pattern is looked for, in place of what the command prints.
        others: further metrics by name, each a pattern or a `FILE:KEY` as the primary one is.
        held_out: one of `others`, which decides of what `plumbline confirm` runs again.
        fixed: patterns of the files that measure, which no candidate may change (`own_trainer.fixed_files`).
    """

    pattern: str = ""
    json: str = ""
    name: str = ""
    file: str = ""
    direction: Literal["lower", "higher"] = "lower"
    unit: str = ""
    others: dict[str, str] = {}
    held_out: str = ""
    fixed: tuple[str, ...] = ()

    @property
    def files(self) -> list[str]:
        """The files in which a run writes its metrics, below the trainer's folder."""
        rows = [place.rpartition(":")[0] for place in (self.json, *self.others.values())] if self.json else []
        return [*dict.fromkeys(rows), *([self.file] if self.file else [])]

    @property
    def called(self) -> str:
        """The metric's name: as the file states, or the last word of the key or of the pattern."""
        if self.name:
            return self.name
        names = re.findall(r"[A-Za-z][A-Za-z0-9_/.-]*", self.json.rpartition(":")[2] or _strip_pattern(self.pattern))
        return names[-1] if names else "metric"

    @property
    def of_held_out(self) -> MetricPart:
        """The further metric that `held_out` names, read as the primary one is."""
        key = "json" if self.json else "pattern"
        place = {key: self.others[self.held_out]} if self.json or self.pattern else {}
        return structs.replace(self, name=self.held_out, held_out="", **place)


class DecidePart(Struct, frozen=True, forbid_unknown_fields=True):
    """What decides, as the options of `plumbline try` of the same names do for once.

    Attributes:
        alpha: the one-sided level.
        minimum_gain: a gain must exceed this, in the metric's units.
        max_runs: of the candidate; `baseline_runs` of the baseline.
        target_gain_sigmas: a gain not to miss.
        session: what alpha holds for; `planned_tries` are those of the session, none if 0.
        paired, interleave_baseline: the order of the runs, where it is not the baseline's first.
        first_seed: of the baseline.
        equal: measures of a run in which the arms may not differ, or there is no verdict: seconds, step, tokens, ...
    """

    alpha: float = 0.05
    minimum_gain: float = 0.0
    max_runs: int = 8
    baseline_runs: int = 5
    target_gain_sigmas: float = 2.0
    session: Session = "each"
    planned_tries: int = 0
    paired: bool = False
    interleave_baseline: bool = False
    first_seed: int = 42
    equal: tuple[str, ...] = ()


class WherePart(Struct, frozen=True, forbid_unknown_fields=True):
    """Where runs are made.

    Attributes:
        gpus: a run a device, such as `0,1`; `0+1,2+3` is two devices a run.
        at_once: concurrent runs where no devices are named: one, or as many as the profile's jobs, if 0.
        profile: a Snakemake profile, whose jobs the runs are.
    """

    gpus: str = ""
    at_once: int = 0
    profile: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        """What each concurrent run sees as CUDA_VISIBLE_DEVICES; an empty text leaves it alone."""
        groups = [group.strip().replace("+", ",") for group in self.gpus.split(",") if group.strip()]
        return tuple(groups) or ("",) * max(1, self.at_once)


class TrainerFile(Struct, frozen=True, forbid_unknown_fields=True):
    """What `plumbline.toml` states; `path` is where it lies, `guard` the limits of what may not get worse, by name."""

    run: RunPart
    metric: MetricPart
    decide: DecidePart = DecidePart()
    where: WherePart = WherePart()
    guard: dict[str, str] = {}
    path: Path = Path(NAME)

    @property
    def folder(self) -> Path:
        """The folder of the trainer."""
        return self.path.parent


_PARTS = {"run": RunPart, "metric": MetricPart, "decide": DecidePart, "where": WherePart, "guard": dict[str, str]}


def load(folder: Path) -> TrainerFile:
    """Read a folder's `plumbline.toml`.

    Raises:
        PlumblineError: there is none, or something in it cannot be meant; the key, the file and the remedy are named.
    """
    path = folder.absolute() / NAME
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin UTF-8 with a mark
        check_keys(text)
        content = tomllib.loads(text)
    except FileNotFoundError:
        raise PlumblineError(f"{folder} has no {NAME}; plumbline setup-trainer COMMAND writes one") from None
    except (ValueError, RecursionError) as error:  # decoding, TOML, and keys that would take hours
        raise PlumblineError(f"{path} is not TOML ({error}); regular expressions go in 'single quotes'") from None
    return parse(content, path)


def parse(content: dict[str, object], path: Path) -> TrainerFile:
    """Check what a `plumbline.toml` states.

    Raises:
        PlumblineError: as `load`.
    """
    if unknown := sorted(set(content) - set(_PARTS)):
        raise PlumblineError(
            f"{path}: there is no part [{unknown[0]}]{nearest(unknown[0], _PARTS)} (there are {sorted(_PARTS)})"
        )
    parts: dict[str, Any] = {}
    for name, kind in _PARTS.items():
        part = content.get(name, {})
        if not isinstance(part, dict):
            raise PlumblineError(f"{path}: {name}: is a part, not a value; write [{name}]")
        if name in content or name in ("run", "metric"):
            parts[name] = convert(kind, part, f"{path}: {name}")
    if "guard" in parts:
        parts["guard"] = _read_guards(parts["guard"], parts["metric"], path)
    file = TrainerFile(**parts, path=path)
    _check_run(file.run, path)
    _check_metric(file.metric, path)
    for name in file.metric.files:
        if (file.folder / name).is_dir():
            keys = {"file": file.metric.file, "json": file.metric.json}
            keys |= {f"others.{other_name}": text for other_name, text in file.metric.others.items()}
            key, place = next(item for item in keys.items() if item[1] == name or item[1].startswith(f"{name}:"))
            raise PlumblineError(
                f"{path}: metric.{key}: {name} is a folder; name the file in it, such as "
                f"{name}/log.jsonl{place.removeprefix(name)}"
            )
        if shared := [folder for folder in file.run.share if Path(name).is_relative_to(folder)]:
            raise PlumblineError(
                f"{path}: metric: {name} lies in {shared[0]}, which run.share gives to all runs, so that each would "
                f"read what another wrote; write {shared[0]} to run.output, which is a run's own"
            )
    _check_decide(file.decide, path)
    _check_where(file.where, path)
    return file


def _is_below(name: str) -> bool:
    return not Path(name).is_absolute() and ".." not in Path(name).parts


def _strip_pattern(pattern: str) -> str:
    """A pattern without its escapes, groups and classes: what a reader would call it."""
    return re.sub(r"\\.|\(.*?\)|\[.*?\]", " ", pattern)


def _check_run(run: RunPart, path: Path) -> None:
    if not run.command.strip():
        raise PlumblineError(f"{path}: run.command: is empty; write what trains, such as 'python train.py {{flags}}'")
    by_words = not run.seed.startswith(ENVIRONMENT) and run.seed != INJECT
    if by_words and SEED not in run.seed:
        raise PlumblineError(
            f"{path}: run.seed: {run.seed!r} is neither words with {{seed}}, such as '--seed {{seed}}', nor "
            "'env:NAME', nor 'inject'"
        )
    if "\0" in run.command + run.seed:
        raise PlumblineError(f"{path}: run: command or seed has a null character, which no command can; take it out")
    for key, way, example in (("seed", run.seed, "env:SEED"), ("budget", run.budget, "env:STEPS={2000}")):
        name = way.removeprefix(ENVIRONMENT).partition("=")[0]
        if way.startswith(ENVIRONMENT) and _STEERING.fullmatch(name):
            raise PlumblineError(
                f"{path}: run.{key}: {name} says what is run, or is set for each run anyway; write a variable that the "
                f"trainer alone reads, such as '{example}'"
            )
    if run.budget and (wrong := explain_wrong_budget(run.budget)):
        raise PlumblineError(f"{path}: run.budget: {wrong}")
    if run.seed.startswith(ENVIRONMENT) and not re.fullmatch(r"[A-Za-z_]\w*", run.seed.removeprefix(ENVIRONMENT)):
        raise PlumblineError(f"{path}: run.seed: {run.seed!r} names no variable; write 'env:SEED'")
    try:
        shlex.split(run.seed)
    except ValueError as error:
        raise PlumblineError(f"{path}: run.seed: {run.seed!r} has {str(error).lower()}") from None
    for key, names in (("share", run.share), ("output", run.output), ("data", run.data)):
        for entry in names:
            if not entry.strip() or (key != "data" and not _is_below(entry)):
                raise PlumblineError(f"{path}: run.{key}: {entry!r} is no path below the folder")
            if key != "data" and (Path(entry).parts or (".",))[0] in _NOT_A_RUNS:
                raise PlumblineError(
                    f"{path}: run.{key}: {entry!r} is what git or Plumbline keeps, or all of the folder; name what a "
                    "run reads or writes"
                )
    try:
        _ = run.timeout_seconds
    except PlumblineError as error:
        raise PlumblineError(f"{path}: run.timeout: {error}") from None


def _check_metric(metric: MetricPart, path: Path) -> None:
    if metric.pattern and metric.json:
        raise PlumblineError(f"{path}: metric: says both pattern and json; one names the metric")
    if not (metric.pattern or metric.json or metric.name):
        raise PlumblineError(
            f"{path}: metric: names no metric; write pattern = '^val_bpb:\\s+(\\S+)', json = \"run.jsonl:val_bpb\", or "
            'name = "val_bpb" for lines METRIC val_bpb=0.99'
        )
    other_texts = {f"metric.others.{name}": text for name, text in metric.others.items()}
    patterns = {"metric.pattern": metric.pattern} if metric.pattern else {}
    for key, text in (patterns if metric.json else patterns | other_texts).items():
        try:
            groups = re.compile(text).groups
        except (re.error, OverflowError, RecursionError) as error:
            raise PlumblineError(f"{path}: {key}: {text!r} is no regular expression ({error})") from None
        if re.search(r"\x1b|\\(?:x1b|033|u001b)", text, re.IGNORECASE):
            raise PlumblineError(
                f"{path}: {key}: {text!r} has an escape character, and lines are matched without their escape "
                "sequences (colours); leave them out of the pattern"
            )
        if groups != 1:
            raise PlumblineError(f"{path}: {key}: {text!r} has {groups} groups; put the number, and only it, in (...)")
    for key, text in ({"metric.json": metric.json} | other_texts if metric.json else {}).items():
        if not all(text.rpartition(":")[::2]) or not _is_below(text.rpartition(":")[0]):
            raise PlumblineError(f"{path}: {key}: {text!r} is no FILE:KEY below the folder, such as run.jsonl:val_bpb")
    if metric.file and not _is_below(metric.file):
        raise PlumblineError(f"{path}: metric.file: {metric.file!r} is no path below the folder")
    for entry in metric.fixed:
        if not entry.strip() or not _is_below(entry) or not Path(entry).parts:
            raise PlumblineError(
                f"{path}: metric.fixed: {entry!r} is no path below the folder; name the files that measure, such as "
                '"evaluate.py" or "data/val*"'
            )
    if metric.held_out and metric.held_out not in metric.others:
        hint = nearest(metric.held_out, metric.others)
        raise PlumblineError(f"{path}: metric.held_out: {metric.held_out!r} is none of metric.others{hint}")


def _check_decide(decide: DecidePart, path: Path) -> None:
    for key, value, allowed in (
        ("alpha", decide.alpha, 0 < decide.alpha < 0.5),
        ("minimum_gain", decide.minimum_gain, 0 <= decide.minimum_gain < float("inf")),
        ("max_runs", decide.max_runs, 1 <= decide.max_runs <= 100),
        ("baseline_runs", decide.baseline_runs, 2 <= decide.baseline_runs <= 100),
        ("target_gain_sigmas", decide.target_gain_sigmas, 0 < decide.target_gain_sigmas < 100),
        ("planned_tries", decide.planned_tries, 0 <= decide.planned_tries <= 10**6),
        ("first_seed", decide.first_seed, 0 <= decide.first_seed < 10**9),
    ):
        if not allowed:
            default = next(each.default for each in structs.fields(DecidePart) if each.name == key)
            raise PlumblineError(f"{path}: decide.{key}: {value} cannot be meant; without the key it is {default}")
    parse_measures(decide.equal, f"{path}: decide.equal")
    if decide.paired and decide.interleave_baseline:
        raise PlumblineError(f"{path}: decide: says both paired and interleave_baseline; one is the order of the runs")
    if (decide.session == "fwer") != bool(decide.planned_tries):
        raise PlumblineError(
            f'{path}: decide: session = "fwer" needs planned_tries = N, and session = "each" takes none'
        )


def _read_guards(limits: dict[str, str], metric: MetricPart, path: Path) -> dict[str, str]:
    """Read the limits of guards, and write them in one way; each name is of a measure, or of a further metric."""
    guards = {}
    for name, text in limits.items():
        place = f"{path}: guard.{name}"
        limit = parse_guard_limit(name, text, place)
        if limit.is_ratio and name not in MEASURES and name in metric.others:
            raise PlumblineError(f"{place}: {text!r} is of a measure; a metric has a margin in its units, '>= -0.002'")
        if not limit.is_ratio and name in MEASURES and name not in metric.others:
            raise PlumblineError(f"{place}: {text!r} is of a metric; a measure has times the baseline's, '<= 1.05x'")
        by_line = not (limit.is_ratio or metric.pattern or metric.json)  # what lines METRIC name is not known before
        if name not in (MEASURES if limit.is_ratio else metric.others) and not by_line:
            names = [*MEASURES, *metric.others]
            raise PlumblineError(
                f"{path}: guard: {name!r} is none of the measures {', '.join(MEASURES)}, nor of metric.others"
                f"{nearest(name, names)}"
            )
        guards[name] = limit.text
    return guards


def _check_where(where: WherePart, path: Path) -> None:
    if not re.fullmatch(r"[\w:,+ -]*", where.gpus):
        raise PlumblineError(f"{path}: where.gpus: {where.gpus!r} is no list of devices; write '0,1'")
    if len(set(where.devices)) < len(where.devices) and where.gpus:
        raise PlumblineError(f"{path}: where.gpus: {where.gpus!r} names a device twice")
    if not 0 <= where.at_once <= 1024:
        raise PlumblineError(f"{path}: where.at_once: {where.at_once} cannot be meant; write how many runs fit")
    if where.gpus and where.profile:
        raise PlumblineError(f"{path}: where: says both gpus and profile; a profile's jobs are given their devices")

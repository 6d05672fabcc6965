"""Finds what fits a time: scale, seeds and tokens of a trial, as a configuration to paste, and which gain that
resolves.

Everything here is found from the machine's own speed, by the same price as in a plan, and is then said: the pasted
words hold each number, and nothing else decides what is run.
"""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from plumbline.core.errors import PlumblineError, nearest
from plumbline.experiment.comparison_terms import ALPHA, POWER
from plumbline.experiment.power import ComparisonDesign
from plumbline.plan import data_stage
from plumbline.plan.estimate import Estimator
from plumbline.plan.seed_noise import SeedNoise
from plumbline.specs.study_config import Run, Study
from plumbline.specs.trial import Trial, load

#: The share of the time that is planned for; the rest is for what a plan does not know.
SHARE = 0.9
#: Seeds of each method that are compared, and how many there are where none are asked for. Beyond these a seed more
#: lowers what is resolved by less than a tenth.
SEEDS, USUAL_SEEDS = (3, 4, 6, 8, 12), 6
#: Seeds that a gain is sought with.
MOST_SEEDS = 64
#: The longest time that is planned for: ten years.
LONGEST = 87_600 * 3600.0
#: Of scales whose runs read at least so many tokens a parameter the largest is taken.
TOKENS_A_PARAMETER = 1.0
#: Fewer steps are no training.
FEWEST_STEPS = 10
#: The first seed; the others follow.
FIRST_SEED = 42

_UNITS = {"h": 3600.0, "hour": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0}


def seconds_of(text: str) -> float:
    """Read a time such as ``2h``, ``90min``, ``1h30m`` or ``45s``, in seconds.

    Raises:
        PlumblineError: the text is no time.
    """
    parts = re.findall(r"([0-9.]+) *(hours?|h|minutes?|min|m|seconds?|s)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text.replace(" ", ""):
        raise PlumblineError(f"--fit {text!r} is not a time; write 2h, 90min or 1h30m")
    try:
        found = sum(float(number) * _UNITS.get(unit, _UNITS[unit[0]]) for number, unit in parts)
    except ValueError:
        raise PlumblineError(f"--fit {text!r} is not a time; write 2h, 90min or 1h30m") from None
    if not found > 0:
        raise PlumblineError(f"--fit {text!r}: nothing fits into no time")
    if found > LONGEST:
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise PlumblineError(f"--fit {shown!r} is more than ten years; write less than {LONGEST / 3600:.0f}h")
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class FitQuestion:
    """The question of `plumbline plan --fit`: which `method` is to be compared with which baseline (`against`), in
    how many seconds.

    `scale`, `seeds`: None where they are to be found. `gain`: the smallest gain in validation loss (nats) that is to be
    resolved, stated beforehand; 0 if none is.
    """

    seconds: float
    study: str
    method: str
    against: str
    scale: str | None = None
    seeds: int | None = None
    gain: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FitOption:
    """One answer to the question: so many seeds of each method at a scale, and the steps that then fit the time."""

    fit: BudgetFit
    scale: str
    seeds: int
    steps: int

    @property
    def tokens(self) -> int:
        """Training tokens of one run."""
        return self.steps * int(self.fit.train(self.scale)["batch_tokens"])

    @property
    def per_parameter(self) -> float:
        """Training tokens of one run for each parameter of the baseline."""
        return self.tokens / self.fit.parameters(self.scale)

    @cached_property
    def noise(self) -> SeedNoise | None:
        """The seed noise of runs of this many tokens; None where nothing is known of it."""
        return self.fit.noise(self.scale, self.tokens)

    @property
    def resolved(self) -> float:
        """The smallest gain in nats that these seeds find with a chance of POWER; NaN where the noise is not known."""
        if self.noise is None:
            return math.nan
        return self.noise.sigma * ComparisonDesign(math.sqrt(2 / self.seeds), 2 * self.seeds - 2, ALPHA).resolved(POWER)

    @cached_property
    def given(self) -> dict[str, Any]:
        """The key `trial` of the configuration that asks for this option."""
        return self.fit.given(self.scale, self.steps, self.seeds)

    @property
    def passes(self) -> float:
        """How often a run reads its whole pack; NaN where the pack is all of a corpus of unknown size."""
        size = self.fit.packs[self.given["pack"]]
        return math.nan if size is None else self.tokens / (size * self.fit.context(self.scale))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Price:
    """Seconds of the longest run: `fixed`, and for each `step`; how many of a trial's `runs`, one of each method, stand
    `beside` each other; and the baseline's parameters."""

    fixed: float
    step: float
    beside: int
    runs: tuple[Run, ...]
    parameters: int


@dataclass(frozen=True, kw_only=True)
class BudgetFit:
    """Finds the options that fit the time of `asked`, priced by `estimator`.

    `sigmas`: what finished runs say of the baseline's seed noise.
    """

    estimator: Estimator
    asked: FitQuestion
    sigmas: tuple[SeedNoise, ...] = ()

    @cached_property
    def study(self) -> Study:
        """The study that the question names."""
        return self.estimator.project.study(self.asked.study)

    @cached_property
    def packs(self) -> dict[str, int | None]:
        """The packs of the study's corpus: name -> number of sequences, None for all that there are."""
        return self.estimator.project.corpora[self.study.corpus].packs

    @cached_property
    def scales(self) -> list[str]:
        """The scales to choose from: all that the study has at this preset, or the one that is asked for.

        Raises:
            PlumblineError: the scale that is asked for is not there.
        """
        known = [name for name, presets in self.study.definition["scales"].items() if self.study.preset in presets]
        if self.asked.scale is None:
            return known
        if self.asked.scale not in known:
            raise PlumblineError(
                f"--scale {self.asked.scale!r}: there is no such scale at preset {self.study.preset!r}"
                f"{nearest(self.asked.scale, known)} (there are {known})"
            )
        return [self.asked.scale]

    def parts(self, scale: str) -> dict[str, Any]:
        """Look up what the study's YAML says of a scale at this preset."""
        parts: dict[str, Any] = self.study.definition["scales"][scale][self.study.preset]
        return parts

    def train(self, scale: str) -> dict[str, Any]:
        """Look up the settings of training at a scale, steps and tokens of a batch among them."""
        recipe: dict[str, Any] = self.study.definition["recipe"].get("train", {})
        return recipe | self.parts(scale).get("train", {})

    def context(self, scale: str) -> int:
        """Look up the context length at a scale: tokens of a sequence."""
        return int(self.parts(scale)["model"]["context"])

    def parameters(self, scale: str) -> int:
        """Look up the number of parameters of the baseline at a scale."""
        return self._prices[scale].parameters

    def given(self, scale: str, steps: int, seeds: int) -> dict[str, Any]:
        """Spell the key `trial` of the configuration for a trial of so many steps and seeds.

        It has the scale's own share of warm-up, the scale's own pack or the smallest that holds what a run reads, and
        the whole held-out pack where its size is stated.
        """
        parts, recipe = self.parts(scale), self.study.definition["recipe"]
        train, schedule = self.train(scale), recipe.get("schedule", {}) | parts.get("schedule", {})
        own = (recipe.get("data", {}) | parts.get("data", {}))["pack"]
        read = steps * train["batch_tokens"] / self.context(scale)
        held_out = self.estimator.project.corpora[self.study.corpus].validation
        return {
            "study": self.asked.study,
            "scale": scale,
            "method": self.asked.method,
            "against": self.asked.against,
            "pack": _pack(self.packs, own, read),
            "steps": steps,
            "warmup_steps": min(steps, math.ceil(schedule["warmup_steps"] * steps / train["steps"])),
            "validation_sequences": held_out or train["validation_sequences"],
            "seeds": list(range(FIRST_SEED, FIRST_SEED + seeds)),
        }

    def trial(self, scale: str, steps: int, seeds: int) -> Trial:
        """Load the trial of so many steps and seeds at a scale, with its runs."""
        project = self.estimator.project
        return load(self.given(scale, steps, seeds), self.study, project.root, project.config["data"]["source"])

    def noise(self, scale: str, tokens: int) -> SeedNoise | None:
        """Choose the seed noise measured at this scale whose runs are nearest in tokens.

        Where none was measured at this scale it is the assumed one; None without that.
        """
        mine = [one for one in self.sigmas if one.scale == scale] or [one for one in self.sigmas if not one.scale]
        return min(mine, key=lambda one: abs(math.log(one.tokens / tokens)), default=None)

    def option(self, scale: str, seeds: int) -> FitOption | None:
        """Find the steps that fit the time with so many seeds at a scale; None if fewer than FEWEST_STEPS do."""
        steps = self._steps(scale, seeds, SHARE * self.asked.seconds)
        if steps >= FEWEST_STEPS and (stage := self._data(scale, steps)):
            steps = self._steps(scale, seeds, SHARE * self.asked.seconds - stage)
        return FitOption(fit=self, scale=scale, seeds=seeds, steps=steps) if steps >= FEWEST_STEPS else None

    def _steps(self, scale: str, seeds: int, room: float) -> int:
        """Steps of runs that are done in so many seconds. A run is not spread over what others leave idle, so that
        each round lasts as long as its longest run."""
        price = self._prices[scale]
        return math.floor((room / math.ceil(2 * seeds / price.beside) - price.fixed) / price.step)

    def _data(self, scale: str, steps: int) -> float:
        """Seconds of the data stage for runs of so many steps: the pack that they read may be none that is there."""
        pack = self.given(scale, steps, 2)["pack"]
        runs = [
            dataclasses.replace(
                run, spec=msgspec.structs.replace(run.spec, data=msgspec.structs.replace(run.spec.data, pack=pack))
            )
            for run in self._prices[scale].runs
        ]
        return data_stage.seconds(self.estimator.project, runs) or 0.0

    def options(self) -> list[FitOption]:
        """Find every option that fits: each scale with each number of seeds, or those that are asked for."""
        counts = SEEDS if self.asked.seeds is None else (self.asked.seeds,)
        found = [self.option(scale, seeds) for scale in self.scales for seeds in counts]
        return [one for one in found if one is not None]

    def chosen(self) -> FitOption:
        """Choose the option to propose: the largest scale with TOKENS_A_PARAMETER tokens a parameter, else the
        smallest.

        It has the seeds that are asked for, those that resolve the gain that is asked for, or the usual number.

        Raises:
            PlumblineError: nothing fits, or nothing that resolves the gain.
        """
        found = [one for scale in self.scales if (one := self._at(scale)) is not None]
        if not found:
            raise PlumblineError(self._nothing())
        found.sort(key=lambda one: self.parameters(one.scale))
        return next((one for one in reversed(found) if one.per_parameter >= TOKENS_A_PARAMETER), found[0])

    def _nothing(self) -> str:
        """Why nothing fits, and what would."""
        gain, sought = self.asked.gain, self.asked.seeds is None and bool(self.asked.gain)
        most = [one for scale in self.scales if sought and (one := self.option(scale, MOST_SEEDS)) is not None]
        if most and all(one.noise is None for one in most):
            return f"--gain {gain:g}: the noise of a run is not known here; leave out --gain, or run make quick first"
        if most:  # so that time is not what is missing
            best = min(one.resolved for one in most if one.noise is not None)
            return (
                f"--gain {gain:g}: no more than {MOST_SEEDS} seeds are tried, and they resolve {best:.2g} nats with "
                "the known noise; ask for a larger --gain, or leave it out"
            )
        resolve = f" to resolve a gain of {gain:g} with the known noise" if sought else ""
        return (
            f"--fit: {roughly(self.asked.seconds)} is too short{resolve}: give more time, fewer --seeds, a smaller "
            f"scale (--scale) or preset (--preset){', or a larger --gain' * sought}"
        )

    def _at(self, scale: str) -> FitOption | None:
        if self.asked.seeds is not None or not self.asked.gain:
            return self.option(scale, self.asked.seeds or USUAL_SEEDS)
        found = (self.option(scale, seeds) for seeds in range(2, MOST_SEEDS + 1))
        return next((one for one in found if one is not None and one.resolved <= self.asked.gain), None)

    @cached_property
    def _prices(self) -> dict[str, _Price]:
        return {scale: self._price(scale) for scale in self.scales}

    def _price(self, scale: str) -> _Price:
        """A run's seconds grow with its steps along a line, by the plan's model: two points of it are enough."""
        low, high = (self._each(scale, steps) for steps in (10 * FEWEST_STEPS, 20 * FEWEST_STEPS))
        first, second = ([self.estimator.pretrain_seconds(run) for run in runs] for runs in (low, high))
        slopes = [(more - less) / (10 * FEWEST_STEPS) for less, more in zip(first, second, strict=True)]
        step = max(slopes)  # of two methods the slower one is the longer run: their starts are alike
        machine = self.estimator.machine
        return _Price(
            fixed=max(less - 10 * FEWEST_STEPS * slope for less, slope in zip(first, slopes, strict=True)),
            step=step,
            beside=max(1, machine.devices_at_once // max(machine.devices_of(run) for run in low)),
            runs=low,
            parameters=self.estimator.size(low[0]).parameters,
        )

    def _each(self, scale: str, steps: int) -> tuple[Run, ...]:
        """One run of each method, the baseline's first."""
        return tuple({run.spec.method: run for run in self.trial(scale, steps, 2).runs.values()}.values())


def roughly(seconds: float) -> str:
    """Write seconds as minutes or hours for people."""
    if seconds < 5400:
        return f"{seconds / 60:.3g} minutes"
    return f"{number(seconds / 3600, 3)} hours"


def number(value: float, digits: int) -> str:
    """Write a number with so many significant digits, and without an exponent where it is large."""
    return f"{value:.{digits}g}" if value < 10**digits - 0.5 else f"{value:,.0f}"


def _pack(packs: dict[str, int | None], own: str, sequences: float) -> str:
    """The scale's own pack if it holds so many sequences, else the smallest that does, else the largest."""
    sizes = {name: math.inf if size is None else size for name, size in packs.items()}
    if sizes[own] >= sequences:
        return own
    holding = [name for name, size in sizes.items() if size >= sequences]
    return min(holding, key=sizes.__getitem__) if holding else max(sizes, key=sizes.__getitem__)

"""Reads a study's small.yaml: what is stated of small models before any of their runs; and its small_rates.yaml: which
learning rates the tuning seeds chose, written before the runs at these rates (`plumbline.report.small_rates`).

A size is one of the study's scales at an existing preset with the changes that the file states; its runs are of the
preset `evening`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import canonical_json, sha256_text
from plumbline.core.structs import Absent, ClosedStruct, Fault
from plumbline.specs import study_folders
from plumbline.specs.field_types import (
    Count,
    Fraction,
    Label,
    Name,
    NotNegative,
    Positive,
    Preset,
    Seeds,
    Text,
    WholeNumber,
    require_once,
)
from plumbline.specs.study_files import Parts
from plumbline.specs.yaml_files import ROOT, read_struct

#: The preset that the runs of small models belong to.
SMALL_PRESET = "evening"
#: Of `runs`, the loss that a diverged run has, too (`Measure.column`).
CAPPED_LOSS = "capped_loss"
#: The numbers of frames that all runs have; a probe's and an intervention's are an arm's (`small_measures`).
NUMBERS = {
    "runs": ("validation_loss", "last_finite_loss", "last_finite_step", "step", "steps", "parameters"),
    "scores": ("acc", "acc_norm", "logprob_gold", "bits_per_byte"),
}
#: How many seeds of each arm are run first, and tell the noise.
PILOT_SEEDS = 3


class SmallSize(Parts, frozen=True, kw_only=True):
    """A size: the study's `scale` at the preset `sizes_of`, with changes."""

    scale: Name
    label: Label


class Noise(ClosedStruct, frozen=True, kw_only=True):
    """A standard deviation of an arm over seeds that kept runs have, and how many degrees of freedom it has.

    Attributes:
        runs: which runs of which record it is from.
    """

    sigma: Positive
    df: Count
    runs: Text


class Measure(ClosedStruct, frozen=True, kw_only=True):
    """A number of one run.

    Attributes:
        frame: `runs` for a column of a run's outcome, `interventions` for a number that an intervention reports there,
            `probes` for a probe's mean over layers and heads, `scores` for a metric's mean over tasks.
        column: of `runs` and `scores` one of `NUMBERS`; of `runs` also `capped_loss`: the final validation loss, or
            that of equal chances for every token where the run diverged or ends above it.
        at: the fraction of training at which a probe is read.
        layers: those whose mean is taken, of a probe.
        less_layers: those whose mean is subtracted.
        less: a column of the same frame that is subtracted.
        over_rates: how the values at several learning rates become one: the lowest of the runs that complete, the mean
            less the lowest (`sensitivity`, of `capped_loss` alone, as in Wortsman et al. 2023, arXiv:2309.14322), or
            the decimal logarithm of the largest rate, as a multiple, whose run completes and ends within
            `trained_within` of the arm's lowest.
    """

    frame: Literal["runs", "probes", "scores", "interventions"]
    column: Name
    at: Absent[Fraction] = None
    layers: Absent[Literal["all", "lower", "upper", "early", "middle", "final"]] = None
    less_layers: Absent[Literal["early", "middle", "final"]] = None
    less: Absent[Name] = None
    over_rates: Absent[Literal["lowest", "sensitivity", "largest_trained"]] = None
    trained_within: Absent[Positive] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("at", "layers"):
            if (self.frame == "probes") != (getattr(self, key) is not None):
                raise Fault("a probe needs `at` and `layers`, and nothing else has them; add or remove it", key)
        if self.less_layers is not None and self.frame != "probes":
            raise Fault("only a probe is read in layers; remove it", "less_layers")
        if self.column == CAPPED_LOSS and (self.frame != "runs" or self.less is not None):
            raise Fault("is of the frame `runs`, and nothing is subtracted from it; change that", "column")
        for key, other in (("less", "column"), ("less_layers", "layers")):
            if getattr(self, key) is not None and getattr(self, key) == getattr(self, other):
                raise Fault(f"is the measure's own `{other}`, so that nothing is left; name another one", key)
        for key in ("column", "less"):
            name, numbers = getattr(self, key), NUMBERS.get(self.frame)
            if numbers and name not in (None, *numbers) and (key, name) != ("column", CAPPED_LOSS):
                raise Fault(
                    f"{name!r} is no number of {self.frame}{nearest(name, numbers)} (there are {[*numbers]})", key
                )
        if self.over_rates == "sensitivity" and self.column != CAPPED_LOSS:
            raise Fault(f"a mean over rates has to say what a diverged run counts as; write {CAPPED_LOSS}", "column")
        if (self.over_rates == "largest_trained") != (self.trained_within is not None):
            raise Fault("goes with `over_rates: largest_trained`, which needs it; add or remove it", "trained_within")


class Tuning(ClosedStruct, frozen=True, kw_only=True):
    """How each arm gets its learning rate: the rate with the lowest mean validation loss over `seeds`, which the test
    does not use; whatever the measure is.

    Attributes:
        own_seeds: of the test `order`, the seeds at the arms' own rates. They choose nothing: an arm that is lucky at
            its own rate keeps it, so that the order of the very runs that choose agrees with the tuned one by luck.
    """

    seeds: Seeds
    own_seeds: Absent[Seeds] = None


class Statement(ClosedStruct, frozen=True, kw_only=True):
    """A sentence of a paper as a test on small models, fixed before their runs.

    Attributes:
        place: where the paper has it.
        idea: what it says, in our words.
        statistic: the gain that is tested, in words.
        contrasts: name -> arm -> weight; the gain of a contrast is the weighted sum of the arms' measures, positive
            where the paper is right. `level` is divided by their number.
        rates: multiples of the arm's own learning rate, at each of which it is run.
        test: `t`, one-sided, on means of arms whose spread is pooled; `paired_t`, on the seeds' own gains; `sign`, on
            how many seeds have a gain above the minimum; `order`, on Kendall's tau between the contrasts' order at the
            arms' own rates, by `tuning.own_seeds`, and at the tuned ones, by the test's: none of them chooses a rate.
        minimum_gain: what must be exceeded; negative where an arm has to be as good as another one.
        target_gain: the true gain for which power is stated; of `sign`, the chance that a seed has one; of `order`, the
            correlation of true gains.
        target_from: where the target is from.
        noise: an entry of the file's `noise`; without one it is not known, and `pilot` says which runs tell it.
        spread: of `order`, the standard deviation of true gains over methods.
        counts_against: which outcome speaks against it.
    """

    id: Name
    place: Text
    idea: Text
    statistic: Text
    measure: Measure
    contrasts: Annotated[dict[Name, dict[Text, float]], Meta(min_length=1)]
    test: Literal["t", "paired_t", "sign", "order"]
    minimum_gain: float
    target_gain: float
    target_from: Text
    level: Annotated[float, Meta(gt=0, lt=0.5)]
    sizes: Annotated[list[Name], Meta(min_length=2)]
    seeds: Annotated[list[WholeNumber], Meta(min_length=2)]
    counts_against: Text
    rates: Absent[Annotated[list[Positive], Meta(min_length=2)]] = None
    tuning: Absent[Tuning] = None
    noise: Absent[dict[Name, Name]] = None
    pilot: Absent[Text] = None
    spread: Absent[NotNegative] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.noise is None) == (self.pilot is None) and self.test != "sign":
            raise Fault("name the `noise` of each size, or the `pilot` that tells it, one of the two", "noise")
        if (self.rates is not None) != (self.measure.over_rates is not None) + (self.tuning is not None):
            raise Fault("go with one of `measure.over_rates` and `tuning`, and neither without; add or remove", "rates")
        if self.tuning is not None and (shared := set(self.tuning.seeds) & set(self.seeds)):
            raise Fault(f"seed {min(shared)} is also one of the test's `seeds`; choose on others", "tuning.seeds")
        if (self.test == "order") != (self.spread is not None) or (self.test == "order" and self.tuning is None):
            raise Fault("the test `order` needs `spread` and `tuning`, and no other has a spread", "spread")
        own_seeds = self.tuning.own_seeds if self.tuning else None
        if (self.test == "order") != (own_seeds is not None):
            raise Fault(
                "the test `order` needs seeds at the arms' own rates, and no other has them", "tuning.own_seeds"
            )
        if self.tuning and own_seeds and (shared := {*own_seeds} & {*self.tuning.seeds, *self.seeds}):
            raise Fault(f"seed {min(shared)} also chooses a rate, or judges; name others", "tuning.own_seeds")
        if self.test == "order" and self.noise is None:
            raise Fault("the test `order` is one against chance with a known `noise`; name it", "noise")
        if self.test == "order" and self.minimum_gain:
            raise Fault("an order is tested against chance alone; write 0", "minimum_gain")
        if self.test == "order" and self.target_gain > 1:
            raise Fault("of an order it is a correlation; write one above 0, up to 1", "target_gain")
        least = {"sign": 0.5 ** len(self.seeds), "order": 1 / math.factorial(len(self.contrasts))}.get(self.test, 0.0)
        if least > self.level_of_contrast:
            key = "seeds" if self.test == "sign" else "contrasts"
            raise Fault(f"with so few no outcome has a p below {least:.2g}, which the level asks for; name more", key)
        if self.test == "sign" and not 0.5 < self.target_gain < 1:
            raise Fault("of a sign test it is a chance between 0.5 and 1; write one", "target_gain")
        if self.test != "sign" and self.target_gain <= self.minimum_gain:
            raise Fault(f"must be above `minimum_gain`, {self.minimum_gain:g}; raise it", "target_gain")
        if empty := [name for name, weights in self.contrasts.items() if not weights or 0 in weights.values()]:
            raise Fault(f"{empty[0]!r} weighs no arm, or one by 0; give each a weight other than 0", "contrasts")

    @property
    def arms(self) -> list[str]:
        """The arms of all contrasts, each once."""
        return list(dict.fromkeys(arm for weights in self.contrasts.values() for arm in weights))

    @property
    def level_of_contrast(self) -> float:
        """The level of one contrast: Bonferroni over the contrasts; the order is a single test."""
        return self.level if self.test == "order" else self.level / len(self.contrasts)

    @property
    def digest(self) -> str:
        """Of all that it states, by which a table is known to be of this text."""
        return sha256_text(canonical_json(msgspec.to_builtins(self)))[:16]


class NotAsked(ClosedStruct, frozen=True, kw_only=True):
    """A sentence of the paper that small models cannot speak to, and why."""

    place: Text
    idea: Text
    why: Text


class SmallFile(ClosedStruct, frozen=True, kw_only=True):
    """studies/<study>/small.yaml."""

    study: Name
    sizes_of: Preset
    sizes: Annotated[dict[Name, SmallSize], Meta(min_length=2)]
    statements: Annotated[list[Statement], Meta(min_length=3, max_length=8)]
    not_asked: Annotated[list[NotAsked], Meta(min_length=1)]
    noise: Absent[dict[Name, Noise]] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_once([statement.id for statement in self.statements], "id", "statements")
        require_once([size.label for size in self.sizes.values()], "label", "sizes")
        for number, statement in enumerate(self.statements):
            place = ("statements", number)
            for size in statement.sizes:
                if size not in self.sizes:
                    raise Fault(f"there is no size {size!r}{nearest(size, self.sizes)}", *place, "sizes")
            for name in (statement.noise or {}).values():
                if name not in (self.noise or {}):
                    raise Fault(f"there is no noise {name!r}{nearest(name, self.noise or {})}", *place, "noise")
            if statement.noise is not None and (odd_sizes := set(statement.sizes) ^ set(statement.noise)):
                raise Fault(
                    f"has an entry of each of the statement's sizes and no other; see to {min(odd_sizes)!r}",
                    *place,
                    "noise",
                )
        for key, entries, used_names in (
            ("sizes", self.sizes, {size for each in self.statements for size in each.sizes}),
            ("noise", self.noise or {}, {name for each in self.statements for name in (each.noise or {}).values()}),
        ):
            if unread_names := [name for name in entries if name not in used_names]:
                raise Fault("no statement names it; remove it, or name it in one", key, unread_names[0])
        if len({(*each.rates, *each.tuning.seeds) for each in self.statements if each.rates and each.tuning}) > 1:
            raise Fault(
                "tuned statements share `rates` and `tuning`, since an arm has one rate; make them equal", "statements"
            )

    @property
    def tuned_arms(self) -> dict[str, list[str]]:
        """Size -> the arms that have a rate chosen there, each once."""
        statements = [each for each in self.statements if each.tuning]
        return {
            size: list(dict.fromkeys(arm for each in statements if size in each.sizes for arm in each.arms))
            for size in self.sizes
            if any(size in each.sizes for each in statements)
        }


class SmallRates(ClosedStruct, frozen=True, kw_only=True):
    """studies/<study>/small_rates.yaml: size -> arm -> the chosen rate, as a multiple of the arm's own."""

    study: Name
    rates: dict[Name, dict[Text, Positive]]


def path_of(study: str, root: Path = ROOT) -> Path:
    """The file of a study."""
    return study_folders.folder(study, root) / study_folders.SMALL


def rates_path_of(study: str, root: Path = ROOT) -> Path:
    """The file of the rates that were chosen of a study's tuned arms."""
    return study_folders.folder(study, root) / study_folders.SMALL_RATES


def load_small(study: str, root: Path = ROOT) -> SmallFile:
    """Read a study's small.yaml; names of arms are checked where specs are made of them (`small_runs`).

    Raises:
        PlumblineError: there is no such file, or something in it cannot be meant.
    """
    path = path_of(study, root)
    small: SmallFile = read_struct(path, SmallFile)
    if small.study != study:
        raise PlumblineError(f"{path}: study: {small.study!r} must be the folder's name, {study!r}")
    return small


def load_rates(small: SmallFile, root: Path = ROOT) -> dict[str, dict[str, float]]:
    """Read the rates that were chosen of a study's tuned arms, of each size of which they are.

    Raises:
        PlumblineError: a size lacks a tuned arm, or the file names another one, or has a rate that was not tried.
    """
    path = rates_path_of(small.study, root)
    if not path.exists():
        return {}
    content: SmallRates = read_struct(path, SmallRates)
    arms = {size: sorted(names) for size, names in small.tuned_arms.items()}
    rated_arms = {size: sorted(rates) for size, rates in content.rates.items()}
    remedy = f"remove the lines, and choose anew: python -m plumbline.report.small_rates {small.study} --write"
    if content.study != small.study or not rated_arms.items() <= arms.items():
        raise PlumblineError(
            f"{path}: rates: has {rated_arms} of {content.study!r}, but the tuned arms of {path_of(small.study, root)} "
            f"are {arms}; {remedy}"
        )
    tried_rates = sorted({rate for each in small.statements if each.tuning for rate in each.rates or ()})
    for size, rates in content.rates.items():
        for arm, rate in rates.items():
            if rate not in tried_rates:
                raise PlumblineError(
                    f"{path}: rates.{size}.{arm}: {rate:g} was not tried ({tried_rates} were); {remedy}"
                )
    return content.rates

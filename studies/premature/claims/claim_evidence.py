"""Reads from the premature study's runs what its claims are about; every value notes the runs that gave it.

How near is near: a difference of paired perplexities within two of the paper's own standard deviations of one
(0.079 at 270M), which its other tables' pairs keep to as well (gains of 0.44, 0.49, 0.59); a level of perplexity
within a twentieth, and of loss within the same (0.049 nats: a twentieth of a loss would be a sixth of the perplexity,
and take the run at half the rate for the control), since nothing is printed of the held-out text; a readout within
what Tables 3 and 5 differ by for the same network (0.09 in logits of about 1, 0.034 in entropy); a standard deviation
of three runs within a factor of three.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property

from plumbline.published.printed_numbers import PaperClaim, PrintedNumbers
from plumbline.results.claims import claim_registry
from plumbline.results.claims.claim_checkers import ComputedValues, ranking
from plumbline.results.claims.claim_registry import MissingRun
from plumbline.results.claims.claim_tolerances import Near, factor, near
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from ..downstream_tasks import PairedTaskScores
from ..paired_runs import PairedRuns, Quantity
from ..release_rule_replay import RuleReplay
from ..run_values import BASE, CONTROL, EARLY, INTERVENTION, Part, RunValues, name_slowed_run
from ..tables.table8 import replay_rule

#: Levels of perplexity and loss; gains of perplexity and loss at the base scale; standard deviations of three.
LEVEL, LOSS_LEVEL, SPREAD = factor(1.05), near(math.log(1.05)), factor(3.0)
GAIN, LOSS_GAIN = near(2 * 0.0789), near(2 * 0.0030)

#: How far from zero the mean difference of three pairs comes in noise: two of its standard errors.
MEAN_GAIN, MEAN_LOSS_GAIN = GAIN.limit / math.sqrt(3), LOSS_GAIN.limit / math.sqrt(3)

#: Two of the paper's standard deviations of the saved share, in percent.
SAVED = near(2 * 1.41)

#: Readouts at 3 % and 20 %.
ENTROPY, LOGIT, WRITE, COPY = near(0.04), factor(1.15), factor(1.15), factor(1.25)

#: A fraction of training read off the evaluations: half a distance between two of them, in percent.
ON_THE_GRID = near(0.26)


def above(tolerance: Near, lower: float, higher: float) -> bool:
    """Whether a reading is above another one by more than two readings of one network are apart."""
    return higher > lower and not tolerance(lower, higher)


def rank(claim: PaperClaim, numbers: Mapping[str, float], tolerance: Near, *, highest_first: bool) -> ComputedValues:
    """Order names by their numbers, and say whether the ends of the printed order are apart by more than noise."""
    low, high = claim.values["order"][-1], claim.values["order"][0]
    if not highest_first:
        low, high = high, low
    values = {"order": ranking(numbers, highest_first=highest_first)}
    values["ends_apart"] = above(tolerance, numbers[low], numbers[high])
    return ComputedValues(values=values, shown=dict(numbers))


class Evidence(claim_registry.ClaimEvidence):
    """Accessors raise `MissingRun` where a run gave no value: the claim then has none here."""

    def __init__(self, frames: RunFrames, study: Study, published: PrintedNumbers) -> None:
        super().__init__(frames, study, published)
        self.run_values = RunValues(frames, study)

    @cached_property
    def base(self) -> PairedRuns:
        """The pairs of the base scale."""
        return PairedRuns(self.run_values, BASE)

    @cached_property
    def tasks(self) -> PairedTaskScores:
        """The pairs of the base scale on the suite."""
        return PairedTaskScores(self.run_values)

    @cached_property
    def replays(self) -> dict[str, RuleReplay]:
        """Every printed rule over the scores of the intervention's first seed: eight claims ask for them."""
        key, rules = self.run_values.key(INTERVENTION, BASE, None), self.published.table("table8")
        return {str(name): replay_rule(self.run_values, key, printed) for name, printed in rules.iterrows()}

    def key(self, method: str, scale: str = BASE, seed: int | None = None) -> str:
        """A run that is there, of the first seed unless one is named; it is used from here on."""
        key = self.run_values.key(method, scale, seed)
        word = self.run_values.word(key, otherwise="")
        if key is None or word == "missing":
            raise MissingRun("missing", key or f"{scale}/{method}")
        self.used.add(key)
        return key

    def require_number(self, value: float, *keys: str | None) -> float:
        """`value`, if it is a number.

        Raises:
            MissingRun: it is none; one of the runs is missing, diverged, or was not read.
        """
        expected = [key for key in keys if key is not None]
        self.used |= set(expected)
        if math.isnan(value):
            word = self.run_values.word(*keys, otherwise="without a value")
            blamed = [key for key in expected if self.run_values.outcome(key) == word]
            raise MissingRun(word, (blamed or expected or ["a run"])[0])
        return value

    def read(self, method: str, probe: str, fraction: float = EARLY, part: Part = "upper", scale: str = BASE) -> float:
        """A readout of the first seed's run."""
        key = self.key(method, scale)
        return self.require_number(self.run_values.value(key, probe, fraction, part), key)

    def entropy(self, method: str, fraction: float = EARLY) -> float:
        """Upper attention entropy."""
        return self.read(method, "entropy", fraction)

    def logit(self, method: str) -> float:
        """Upper logit magnitude at 3 %."""
        return self.read(method, "logit_mean_abs")

    def ppl(self, method: str) -> float:
        """Final perplexity of the first seed's run."""
        key = self.key(method)
        return self.require_number(self.run_values.perplexity(key), key)

    def loss(self, method: str) -> float:
        """Final loss of the first seed's run."""
        key = self.key(method)
        return self.require_number(self.run_values.loss(key), key)

    def gain(self, method: str, control: str = CONTROL) -> float:
        """Perplexity of a control less a run's, of the first seed."""
        return self.ppl(control) - self.ppl(method)

    def suppresses(self, method: str, than: str = CONTROL) -> bool:
        """Whether a run's upper logit is lower and its upper entropy higher than another's at 3 %, beyond noise."""
        logit, entropy = ((read(than), read(method)) for read in (self.logit, self.entropy))
        return above(LOGIT, logit[1], logit[0]) and above(ENTROPY, *entropy)

    def architecture_gain(self, architecture: str) -> float:
        """What the intervention gains in an architecture."""
        return self.gain(name_slowed_run(architecture), architecture)

    def percent_saved(self, method: str) -> float:
        """Percent of the budget that a run does not need to reach the control's loss; minus infinity: it never does."""
        control, key = self.key(CONTROL), self.key(method)
        self.loss(CONTROL), self.loss(method)
        value = self.run_values.tokens_saved_percent(control, key)
        return -math.inf if math.isnan(value) else value

    def moments(self, paired: PairedRuns, quantity: Quantity, setting: str) -> tuple[float, float]:
        """Mean and standard deviation over seeds; every seed must have a value."""
        for key in paired.keys(setting):
            if key is None:
                raise MissingRun("missing", f"{paired.scale}/{CONTROL}")
            self.require_number(self.run_values.loss(self._used(key)), key)
        mean, sigma, n = paired.moments(quantity, setting)
        if n < len(paired.pairs):
            # Every run is whole: the intervention of some pair never reaches its control's loss.
            return math.inf, math.nan
        return mean, sigma

    def _used(self, key: str) -> str:
        self.used.add(key)
        return key

    def by_seed(self, value: Callable[[str, str], float], scale: str = BASE) -> list[float]:
        """A number of each pair (control, intervention)."""
        values = []
        for seed, _, _ in self.run_values.pairs(scale):
            control, other = self.key(CONTROL, scale, seed), self.key(INTERVENTION, scale, seed)
            values.append(self.require_number(value(control, other), control, other))
        if not values:
            raise MissingRun("missing", f"{scale}/{CONTROL}")
        return values

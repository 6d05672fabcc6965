"""Reads the study's runs by name: their losses, what they are against the baseline, sizes and times. NaN is a value
that is not there, whatever the reason.

Source: query_free study, Table 2 and section 5.1; interpretations `same_loss`, `non_embedding` and `wall_time`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from functools import cache

from plumbline.core.files import canonical_json
from plumbline.core.run_files import DIVERGED, MISSING
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.spec import ModelSpec, RunSpec
from plumbline.specs.study_config import Study

SCALE = "base"

#: Table 2's configurations, by the names that they have there.
BASELINE, SMALL_MLP, SMALL_D = "baseline", "baseline_small_mlp", "baseline_small_d"
IDENTITY, LARGE_MLP = "wq_identity", "wq_identity_large_mlp"
CONFIGURATIONS = (SMALL_MLP, SMALL_D, IDENTITY, BASELINE, LARGE_MLP)

#: The queries that section 6 proposes.
NONLINEAR = ("residual_query", "residual_query_gelu")

#: Losses match within this share of the baseline's, in percent: half of the smallest difference that is called one.
SAME = 0.37 / 2


#: Roles of the four matrices of attention, and of the two of the feed-forward network.
ATTENTION, FEED_FORWARD = ("query", "key", "value", "output"), ("up", "down")


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Parameters of a model by role."""

    roles: dict[str, int]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.roles.values())

    @property
    def body(self) -> int:
        """Those that are no embeddings, of tokens or of positions, nor a head that is not tied to one."""
        return self.total - self.of("embedding", "head")

    def of(self, *roles: str) -> int:
        """Those of some roles."""
        return sum(self.roles.get(role, 0) for role in roles)


@cache
def _counts(model: str) -> ParameterCounts:
    from plumbline.model.decoder import on_meta  # a table that counts nothing waits for no torch

    decoder = on_meta(ModelSpec.from_dict(json.loads(model)))
    counts: Counter[str] = Counter()
    for name, value in decoder.named_parameters():
        counts[decoder.parameter_roles[name].role] += value.numel()
    return ParameterCounts(dict(counts))


def count_parameters(model: ModelSpec) -> ParameterCounts:
    """Parameters of a model, from its own modules."""
    return _counts(canonical_json(model.to_dict()))


def find_spec(study: Study, method: str) -> RunSpec:
    """What a method's first run is."""
    return next(run.spec for run in study.every_run.values() if (run.spec.scale, run.spec.method) == (SCALE, method))


def smallest_rate(spec: RunSpec) -> float:
    """The learning rate of the last step."""
    return spec.optimizer.learning_rate * float(spec.schedule.options["floor"])


def divisor(model: ModelSpec) -> float:
    """By what scores are divided in addition to sqrt(d_k)."""
    return float(model.slots["mixer"].get("divisor", 1.0))


@dataclass(frozen=True, slots=True)
class RunValues:
    """Numbers of the study's runs, by method."""

    frames: RunFrames
    study: Study

    def key(self, method: str) -> str | None:
        """The key of a method's run; None if none is expected."""
        return self.frames.key(SCALE, method)

    def keys(self, *methods: str) -> tuple[str, ...]:
        """The keys of those that are expected."""
        return tuple(key for key in map(self.key, methods) if key is not None)

    def outcome(self, method: str) -> str:
        """completed, diverged or missing."""
        key = self.key(method)
        return MISSING if key is None else str(self.frames.runs.loc[key, "outcome"])

    def word(self, *methods: str) -> str:
        """Why there is no value: one of the runs is missing, or diverged; nothing where all of them are whole."""
        outcomes = {self.outcome(method) for method in methods}
        return next((word for word in (MISSING, DIVERGED) if word in outcomes), "")

    def loss(self, method: str) -> float:
        """Final held-out loss, nats a token."""
        key = self.key(method)
        return math.nan if key is None else float(self.frames.runs.loc[key, "validation_loss"])

    def percent(self, method: str, other: str = BASELINE) -> float:
        """By how much a final loss is above another one, in percent of that."""
        return 100 * (self.loss(method) / self.loss(other) - 1)

    def seconds(self, method: str) -> float:
        """Wall time of a run, evaluations and checkpoints included."""
        manifest = self.frames.manifests.get(self.key(method) or "", {})
        return float(manifest.get("wall_seconds", math.nan))

    def step_seconds(self, method: str) -> float:
        """Wall time over steps."""
        key = self.key(method)
        return math.nan if key is None else self.seconds(method) / float(self.frames.runs.loc[key, "step"])

    def devices(self, *methods: str) -> list[str]:
        """What the runs were made on."""
        manifests = [self.frames.manifests[key] for key in self.keys(*methods) if key in self.frames.manifests]
        return sorted(
            {
                f"{manifest['device_name']}" if manifest.get("device_name") else manifest["device"]
                for manifest in manifests
            }
        )

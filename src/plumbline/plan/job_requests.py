"""Chooses the memory and the time limit that a job outside the data stage asks for, by the table of measured needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from plumbline.plan.evaluation_workload import amount
from plumbline.plan.job_needs import LEAST_MB, Need, need
from plumbline.plan.run_estimate import RunEstimator
from plumbline.specs.study_config import Run

#: Ranks that a node of several devices has.
NODE = 8
#: What a verdict holds of a model that it looks at: at most so many tokens' states of all layers, and no more numbers
#: than that (`plumbline.operate.preflight.method_checks`).
LOOKED_AT_TOKENS, LOOKED_AT_STATES = 8_192, 2**24
#: A training asks for so many times the memory that it needs, at every attempt: attempts are also its slices.
PRETRAIN_MARGIN = 2.0


def _states(run: Run) -> int:
    """Numbers of a token's states in all layers."""
    return run.spec.model.width * run.spec.model.layers


@dataclass(frozen=True)
class JobRequests:
    """What the jobs of one configuration ask for."""

    priced: RunEstimator
    _suites: dict[str, float] = field(default_factory=dict)

    def run_mb(self, rule: str, run: Run, attempt: int) -> int:
        """Choose the memory of a training, an evaluation or a probe job; on a cluster it is that of each node."""
        found = need(rule, self.units(run))
        if rule == "pretrain":
            return max(LEAST_MB, ceil(PRETRAIN_MARGIN * found.megabytes))
        return found.asked_mb(attempt, LEAST_MB)

    def product(self, rule: str) -> Need:
        """Estimate a job that makes items, or a product of all runs: by the largest suite that is asked for."""
        return need(rule, {"items_k": self._items_k(), "answers_k": self._items_k()})

    def verdict(self, runs: list[Run]) -> Need:
        """Estimate a verdict on runs: one of each arm and scale is looked at whole, and all are read again."""
        each = [(run.spec.scale, run.spec.method, self.priced.size(run).parameters / 1e6) for run in runs]
        arms = {(scale, method): millions for scale, method, millions in each}
        units = {
            "parameters_m": max((millions for *_, millions in each), default=0.0),
            "states_m": min(LOOKED_AT_STATES, LOOKED_AT_TOKENS * max(map(_states, runs), default=0)) / 1e6,
            "looked_at_m": sum(arms.values()),
            "all_runs_m": sum(millions for *_, millions in each),
        }
        return need("verdict", units)

    def measurement(self, on_gpu: bool) -> Need:
        """Estimate a measurement; its time is what its entry states."""
        return need("measure", {"devices": float(on_gpu)})

    def units(self, run: Run) -> dict[str, float]:
        """The size of a run as the table of needs names it: millions of parameters, processes of a node with a GPU
        each, and millions of parameters that these hold together.
        """
        millions = self.priced.size(run).parameters / 1e6
        gpu = self.priced.machine.device != "cpu"
        ranks = min(NODE, self.priced.machine.devices_of(run)) if gpu else 1
        return {
            "parameters_m": millions,
            "other_ranks": float(ranks - 1),
            "other_rank_parameters_m": (ranks - 1) * millions,
            "devices": float(gpu),
            "rank_devices": float(ranks if gpu else 0),
        }

    def _items_k(self) -> float:
        """Thousands of items of the largest suite; 50, more than any of the studies has, where none tells."""
        if not self._suites:
            of_suites = {run.suite: run for run in self.priced.project.scored_runs.values() if run.suite}
            for suite, run in of_suites.items():
                there = amount(self.priced.project, run)
                self._suites[suite] = 50.0 if there is None else there[0] / 1000
            self._suites.setdefault("", 0.0)
        return max(self._suites.values())

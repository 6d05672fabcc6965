"""Reads what the runs of a user's own file gave: values by metric, tasks, the larger scale, stability and cost."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_count
from plumbline.core.run_files import COMPLETED, DIVERGED, MISSING
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.compared_metrics import METRICS, ComparedMetric
from plumbline.specs.own_methods_file import OwnMethodsFile
from plumbline.stats.welch_and_stouffer import StoufferResult, stouffer, task_correlation, welch_per_task
from plumbline.verdict.comparability import every_check
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.comparability.every_check import Answers
from plumbline.verdict.evidence import FINISHED, Evidence, RunEvidence
from plumbline.verdict.formatting import quote
from plumbline.verdict.judge import BaselineComparison, judge
from plumbline.verdict.numbers.sentences import write_lost_sentence
from plumbline.verdict.own_method import ledger_costs
from plumbline.verdict.seed_values import Seeds
from plumbline.verdict.sources.study_runs import run_evidence

#: The share of a gain in losses averaged over a run's last part that its last evaluations have at least.
SHARE = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class LargerScaleComparison:
    """The comparison of a method and its baseline by the deciding metric at the larger scale.

    `gain` counts upwards. `comparison`: the test, where there are seeds enough.
    """

    mean: float
    mean_baseline: float
    gain: float
    seeds: int
    seeds_baseline: int
    comparison: BaselineComparison | None


@dataclass(frozen=True)
class FinishedRunReader:
    """Answers questions about the finished runs of a user's own file (`mine`)."""

    mine: OwnMethodsFile
    frames: RunFrames

    def require_there(self) -> None:
        """Refuse to judge where a run of the file is missing.

        Raises:
            PlumblineError: naming a run.
        """
        runs = self.frames.runs
        missing_runs = list(runs.index[runs["outcome"] == MISSING])
        if missing_runs:
            raise PlumblineError(
                f"{missing_runs[0]} is not there ({len(missing_runs)} of {len(runs)} runs are not): snakemake "
                f"results/verdict/{self.mine.name}.md --config mine={self.mine.path} preset={self.mine.study.preset}"
            )

    @property
    def metrics(self) -> list[ComparedMetric]:
        """The metrics that these runs have, the deciding one first."""
        metrics = [METRICS["validation_loss"]] if self.mine.study.suite is None else list(METRICS.values())
        return sorted(metrics, key=lambda metric: metric.name != self.mine.asked["decides"])

    @property
    def deciding(self) -> ComparedMetric:
        """The metric that decides the verdict, as the file states."""
        return METRICS[self.mine.asked["decides"]]

    def keys(self, scale: str, method: str) -> list[str]:
        """List the runs of a method at a scale.

        Of a method that is judged, not a reference, they are those of the file's own seeds alone.
        """
        return [run.key for run in self.mine.runs(scale, method)]

    def evidence(self, metric: ComparedMetric, scale: str) -> Evidence:
        """Collect what is known of the runs at a scale, by method and seed, with this metric as their value."""
        return self._gather(metric, scale, self.mine.compared)

    def _gather(self, metric: ComparedMetric, scale: str, methods: Iterable[str]) -> Evidence:
        seeds = self.frames.runs["seed"]
        runs = {
            method: {str(seeds[key]): self._run(metric, key) for key in self.keys(scale, method)} for method in methods
        }
        return Evidence(metric=metric.name, runs=runs)

    def _run(self, metric: ComparedMetric, key: str) -> RunEvidence:
        evidence = self._known_runs.get((metric.name, key))
        if evidence is None:
            value, folder = self._value(metric, key), self.frames.work / "runs" / key
            finite = value if math.isfinite(value) else None
            evidence = run_evidence(folder, self.frames.outcomes[key], self.frames.manifests[key], finite)
            self._known_runs[metric.name, key] = evidence
        return evidence

    @cached_property
    def _known_runs(self) -> dict[tuple[str, str], RunEvidence]:
        """(metric, key) -> what is known of a run: a page asks for each some forty times."""
        return {}

    def values(self, metric: ComparedMetric, scale: str, method: str) -> dict[str, float]:
        """Collect seed -> value of a metric, of the runs that completed and have one."""
        return self._gather(metric, scale, [method]).values.get(method, {})

    def list_diverged(self, scale: str, method: str) -> list[str]:
        """List the runs of a method at a scale that diverged."""
        return [key for key in self.keys(scale, method) if self.frames.runs.loc[key, "outcome"] == DIVERGED]

    def list_completed(self, scale: str, method: str) -> list[str]:
        """List the runs of a method at a scale that completed."""
        return [key for key in self.keys(scale, method) if self.frames.runs.loc[key, "outcome"] == COMPLETED]

    def explain_unjudged(self, method: str) -> str:
        """Explain why a method is not judged by its runs; empty if it is.

        A run that diverged has one rule. Of the method's, where none of its baseline did, it is the method's outcome.
        Of the baseline's, nothing can be judged unless the file states how many may; the method may then lose as many.
        """
        baseline = self.mine.against[method]
        ours, theirs = (self.list_diverged(self.mine.scale, side) for side in (method, baseline))
        if len(theirs) > self.mine.asked["allow_diverged"]:
            return (
                f"{quote(method)} cannot be judged: {format_count(len(theirs), 'run')} of {quote(baseline)} "
                f"diverged, and what they would have given is not known (`allow_diverged: {len(theirs)}`, said "
                "beforehand, allows it)."
            )
        if len(ours) > len(theirs):
            seeds = {str(self.frames.runs.loc[key, "seed"]): "diverged" for key in ours}
            return write_lost_sentence(method, seeds, len(self.keys(self.mine.scale, method)), baseline, len(theirs))
        refusal = every_check.describe_refusal(self.comparability[method])
        return f"{quote(method)} cannot be judged: {refusal}." if refusal else ""

    @cached_property
    def comparability(self) -> dict[str, Answers]:
        """What the checks of comparability answer of each method and its baseline, at the scale that decides."""
        evidence, deciding = self.evidence(self.deciding, self.mine.scale), self.deciding
        return {
            method: every_check.examine(
                ComparedArms(
                    evidence=evidence,
                    baseline=baseline,
                    candidate=method,
                    higher=deciding.higher,
                    paired=self.mine.asked["paired"],
                )
            )
            for method, baseline in self.mine.against.items()
        }

    def list_diverged_larger(self, method: str) -> list[str]:
        """List the runs of a method that diverged at the larger scale; none if the file asks for no larger scale."""
        return self.list_diverged(self.mine.larger, method) if self.mine.larger else []

    def _value(self, metric: ComparedMetric, key: str) -> float:
        if metric.scored_as:
            of_tasks = self.frames.metric_scores(key, metric.scored_as).astype(float)
            return float(of_tasks.mean()) if len(of_tasks) else math.nan
        if metric.name == "accuracy":
            return self.frames.runs["average"].astype(float)[key]
        return self._last_losses.get(key, math.nan)

    @cached_property
    def _last_losses(self) -> dict[str, float]:
        """The validation loss of each run, averaged over the evaluations in its last part."""
        means = {}
        for key, row in self.frames.runs.iterrows():
            metrics = self.frames.metrics(str(key))
            begin = (1 - self.mine.asked["last"]) * float(row["steps"])
            losses = metrics[(metrics["split"] == "validation") & (metrics["step"] >= begin)]["loss"].astype(float)
            means[str(key)] = float(losses.mean()) if len(losses) else float(row["validation_loss"])
        return means

    def compare(
        self, method: str, metric: ComparedMetric, *, tries: int = 1, scale: str | None = None
    ) -> BaselineComparison:
        """Judge a method against its baseline by one metric; `tries`: what p is multiplied by.

        Raises:
            PlumblineError: there is no noise to judge by.
        """
        scale = scale or self.mine.scale
        ours, theirs = (self.values(metric, scale, side) for side in (method, self.mine.against[method]))
        if not ours or not theirs:
            raise PlumblineError(f"{method}: no finished run has {metric.label}")
        terms = ledger_costs.make_terms(self.mine, higher=metric.higher)
        if metric.name != self.deciding.name:  # the gain that is requested is in the deciding metric's units
            terms = dataclasses.replace(terms, minimum_gain=0.0)
        return judge(method, ours, theirs, terms, tries=tries)

    def require_gains_at_the_end(self, comparisons: Mapping[str, BaselineComparison]) -> None:
        """Refuse a gain in averaged losses that is not there in the last evaluation of the runs.

        That one alone is computed again of the weights that a run left (`finished_run_checks`); the weights of those
        before it are gone.

        Raises:
            PlumblineError: naming the method.
        """
        last = self.mine.asked["last"]
        if self.deciding.name != "validation_loss" or not last:
            return
        losses = self.frames.runs["validation_loss"]
        for method, comparison in comparisons.items():
            ours, theirs = (
                float(losses.loc[self.list_completed(self.mine.scale, side)].astype(float).mean())
                for side in (method, self.mine.against[method])
            )
            if comparison.low > comparison.terms.minimum_gain and theirs - ours < SHARE * comparison.gain:
                raise PlumblineError(
                    f"{self.mine.path}: {method}: its gain is {comparison.gain:.3g} in the evaluations of the last "
                    f"{100 * last:g} % of its steps and {theirs - ours:.3g} in the last one alone, which is the only "
                    "one that its weights can be asked for again; it has no verdict: set `last: 0`, by which the last "
                    "evaluation decides"
                )

    def compare_tasks(self, method: str) -> tuple[pd.DataFrame, StoufferResult, StoufferResult | None] | None:
        """Compare a method with its baseline task by task: Welch's test of each, and Stouffer's sum of them.

        The second sum takes the tasks' correlation over seeds into account; None if that cannot be estimated. None
        in all without two finished seeds of both, or without a suite.
        """
        sides = [self._of_tasks(side) for side in (method, self.mine.against[method])]
        if any(len(side) < 2 for side in sides) or set(sides[0].columns) != set(sides[1].columns):
            return None
        each = welch_per_task(*sides)
        plain = stouffer(each["p_greater"])
        joint = None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="correlation of")  # the page states how few seeds it is from
            try:
                correlation = task_correlation(sides).loc[each.index, each.index]
                joint = stouffer(each["p_greater"], correlation.to_numpy())
            except PlumblineError:
                pass
        return each, plain, joint

    def _of_tasks(self, method: str) -> pd.DataFrame:
        """Seeds x tasks, of finished runs."""
        rows = {key: self.frames.task_scores(key).astype(float) for key in self.keys(self.mine.scale, method)}
        return pd.DataFrame({key: row for key, row in rows.items() if len(row)}).T

    def compare_larger_scale(self, method: str) -> LargerScaleComparison | None:
        """Compare a method with its baseline at the larger scale.

        None if no larger scale was requested, a side has no finished run, or a seed of either diverged: a gain of
        the others would choose among its runs.
        """
        scale = self.mine.larger
        if scale is None or self.list_diverged_larger(method) or self.list_diverged_larger(self.mine.against[method]):
            return None
        ours, theirs = (self.values(self.deciding, scale, side) for side in (method, self.mine.against[method]))
        if not ours or not theirs:
            return None
        mean, mean_baseline = _mean(ours), _mean(theirs)
        sign = 1 if self.deciding.higher else -1
        try:
            comparison = self.compare(method, self.deciding, scale=scale)
        except PlumblineError:
            comparison = None
        return LargerScaleComparison(
            mean=mean,
            mean_baseline=mean_baseline,
            gain=sign * (mean - mean_baseline),
            seeds=len(ours),
            seeds_baseline=len(theirs),
            comparison=comparison,
        )

    def hours(self, scale: str, method: str) -> float:
        """Compute the mean wall time of a method's completed runs at a scale, in hours."""
        runs = [run for run in self.evidence(self.deciding, scale).runs[method].values() if run.status == FINISHED]
        return sum(run.seconds or 0.0 for run in runs) / max(1, len(runs)) / 3600

    def spike(self, key: str) -> float:
        """The largest gradient norm of a run over its median one; NaN where none was recorded."""
        norms = self.frames.metrics(key)["grad_norm"].dropna().astype(float)
        return float(norms.max() / norms.median()) if len(norms) and norms.median() > 0 else math.nan


def _mean(values: Seeds) -> float:
    return sum(values[seed] for seed in sorted(values)) / len(values)

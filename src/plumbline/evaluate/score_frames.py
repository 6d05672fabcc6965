"""Makes our two frames of the harness's samples: a value per task and metric, and one per example.

Metrics (all of the evaluated items):

- `acc`, `acc_norm`: the harness's own, averaged over items; over subjects that is the harness's mean weighted by size.
- `logprob_gold`: mean log-probability in nats of the right answer after its context; where several answers are right,
  the mean over them.
- `bits_per_byte`: bits of the right answers over their UTF-8 bytes (the scored text, its leading blank included), a
  ratio of sums as in the harness; per example the ratio of that example. Its standard error is the linearised one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from lm_eval.api.task import ConfigurableTask

from plumbline.evaluate.harness_tasks import right_answers
from plumbline.specs.suites import Suite
from plumbline.specs.tasks import MetricPolicy, Task


@dataclass(frozen=True, slots=True)
class ItemScores:
    """One item's values; `bits` and `bytes` are of its right answers together."""

    item: str
    values: dict[str, float]
    bits: float
    bytes: int


def examples(task: Task, tasks: dict[str, ConfigurableTask], results: dict[str, Any]) -> list[ItemScores]:
    """The values of every item of `task`, whose harness tasks are `tasks`."""
    scores = []
    for name, leaf in tasks.items():
        prefix = "" if name == task.name else f"{name}/"
        for sample in results["samples"][name]:
            gold = right_answers(task, leaf, sample["doc"])
            logprobs = [float(sample["filtered_resps"][index][0]) for index in gold]
            sizes = [len(sample["arguments"][index][1].encode()) for index in gold]
            bits = -sum(logprobs) / math.log(2)
            values = {metric: float(sample[metric]) for metric in task.metrics}
            if math.isnan(values["acc"]):
                values["acc"] = _true_mass(sample, gold)
            values["logprob_gold"] = sum(logprobs) / len(logprobs)
            values["bits_per_byte"] = bits / sum(sizes)
            identity = f"{prefix}{sample['doc_id']}-{sample['doc_hash'][:16]}"
            scores.append(ItemScores(identity, values, bits, sum(sizes)))
    return scores


def frames(
    run_id: str,
    suite: Suite,
    scores_by_task: dict[str, list[ItemScores]],
    sources: dict[str, str],
    policy: MetricPolicy,
    harness_version: str,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The `scores` and `examples` frames of one run; the suite's average is the last row of the first."""
    rows, lines, primary = [], [], []
    for task in suite:
        chosen = task.primary_metric(policy)
        for metric in scores_by_task[task.name][0].values:
            value, error = _mean_and_error(scores_by_task[task.name], metric)
            rows.append(
                (task.name, metric, value, error, len(scores_by_task[task.name]), sources[task.name], metric == chosen)
            )
            if metric == chosen:
                primary.append((value, error))
            lines += [
                (task.name, example.item, metric, example.values[metric]) for example in scores_by_task[task.name]
            ]
    average = float(np.mean([value for value, _ in primary]))
    # The tasks' items are different ones, so their errors are independent.
    error = float(np.sqrt(np.sum(np.square([error for _, error in primary]))) / len(primary))
    source = "+".join(sorted(set(sources.values())))
    rows.append((suite.average, suite.average, average, error, sum(map(len, scores_by_task.values())), source, False))
    scores = pd.DataFrame(rows, columns=["task", "metric", "value", "stderr", "items", "task_source", "primary"])
    per_example = pd.DataFrame(lines, columns=["task", "item", "metric", "value"])
    return scores.assign(run_id=run_id, harness_version=harness_version), per_example.assign(run_id=run_id)


def _mean_and_error(scores: list[ItemScores], metric: str) -> tuple[float, float]:
    """Value and standard error; the error of a single item is NaN."""
    count = len(scores)
    if metric == "bits_per_byte":
        bits, sizes = np.array([example.bits for example in scores]), np.array([example.bytes for example in scores])
        ratio = bits.sum() / sizes.sum()
        deviations = (bits - ratio * sizes) / sizes.mean()
        value = ratio
    else:
        values = np.array([example.values[metric] for example in scores])
        value = values.mean()
        deviations = values - value
    error = np.sqrt(np.sum(deviations**2) / (count - 1) / count) if count > 1 else math.nan
    return float(value), float(error)


def _true_mass(sample: dict[str, Any], gold: list[int]) -> float:
    """Probability mass on the true answers, where the harness divided zero by zero: every answer's probability had
    underflowed. The same quantity from differences of log-probabilities."""
    logprobs = np.array([float(logprob) for logprob, _ in sample["filtered_resps"]])
    masses = np.exp(logprobs - logprobs.max())
    return float(masses[gold].sum() / masses.sum())

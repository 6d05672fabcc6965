"""Says in words what run specs ask for: how long runs train, how large their models are, in which keys two differ."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from plumbline.specs.spec import RunSpec

#: What names a run, the model with its code, which are what is compared, and probes, which only look.
_NO_RECIPE = ("study", "method", "init_seed", "model", "components", "probes", "numerics")


def describe_budget(runs: Iterable[RunSpec]) -> str:
    """State how long runs train; empty if they do not train alike."""
    budgets = {(run.train.steps, run.train.batch_tokens) for run in runs}
    if len(budgets) != 1:
        return ""
    ((steps, tokens),) = budgets
    return f"{steps:,} steps of {tokens:,} tokens"


def describe_size(label: str, preset: str, runs: Iterable[RunSpec]) -> str:
    """State how large the models of a scale are and how long they train; `label`: the scale's."""
    model = f"{label} parameters" if re.fullmatch(r"[\d.]+[kMB]", label) else f"scale {label}"
    budget = describe_budget(runs)
    return f"{model}{' and ' if budget else ''}{budget} (preset {preset})"


def list_differences(spec: RunSpec, baseline: RunSpec) -> list[str]:
    """Write a phrase for each key that differs, such as ```optimizer.learning_rate` is 0.1 (baseline: 0.01)``."""
    ours, theirs = _flatten(spec.to_dict()), _flatten(baseline.to_dict())
    keys = [key for key in ours | theirs if key.split(".")[0] not in _NO_RECIPE and ours.get(key) != theirs.get(key)]
    return [f"`{key}` is {ours.get(key, 'none')} (baseline: {theirs.get(key, 'none')})" for key in keys]


def _flatten(spec: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted key -> value."""
    values: dict[str, Any] = {}
    for key, value in spec.items():
        values |= _flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return values

"""Says at which size and training length runs were compared, as a verdict's sentence has it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from plumbline.specs.spec import RunSpec


def budget_words(runs: Iterable[RunSpec]) -> str:
    """Say how long runs train; empty where they do not train alike."""
    budgets = {(run.train.steps, run.train.batch_tokens) for run in runs}
    if len(budgets) != 1:
        return ""
    ((steps, tokens),) = budgets
    return f"{steps:,} steps of {tokens:,} tokens"


def size_words(label: str, preset: str, runs: Iterable[RunSpec]) -> str:
    """Say how large the models of a scale are and how long they train; `label`: the scale's."""
    model = f"{label} parameters" if re.fullmatch(r"[\d.]+[kMB]", label) else f"scale {label}"
    budget = budget_words(runs)
    return f"{model}{' and ' if budget else ''}{budget} (preset {preset})"

"""Writes what the pages of verdicts share, whichever program makes them: their form, the checks, size and recipe."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core.errors import visible
from plumbline.core.files import shown
from plumbline.verdict.formatting import join_with_and, quote

if TYPE_CHECKING:
    from plumbline.specs.spec import RunSpec

#: What names a run, the model with its code, which are what is compared, and probes, which only look.
_NO_RECIPE = ("study", "method", "init_seed", "model", "components", "probes", "numerics")


def join_sections(sections: Iterable[str]) -> str:
    """Write a page from its headings and paragraphs; those that are empty are left out."""
    return "\n\n".join(section for section in sections if section) + "\n"


def write_list(lines: Sequence[str]) -> str:
    """Write lines as a list; nothing without any."""
    return "\n".join(f"- {line}" for line in lines)


def escape_tags(text: str) -> str:
    """Write a sentence that quotes others: no tag but in code, where it is shown as it is."""
    parts = visible(text).split("`")
    return "`".join(part if place % 2 else part.replace("<", "&lt;") for place, part in enumerate(parts))


def write_repeat(begin: str, command: str, page: Path) -> str:
    """Write the commands that make a page again and that check it against its ledger; `begin`: the sentence before."""
    check = f"plumbline verdict --check-page {shlex.quote(shown(page))}"
    return f"{begin}\n\n```console\n$ {command}\n$ {check}\n```"


def describe_checks(report: Mapping[str, Any]) -> str:
    """State which checks held, of which methods, on models of which size."""
    size, methods = report["size"], report["methods"]
    starts = [quote(method) for method, entry in methods.items() if entry["starts_as"]]
    begins = f" Initialised with their baseline's logits: {', '.join(starts)}." if starts else ""
    trained = "".join(f" {sentence[0].upper()}{sentence[1:]}." for sentence in report["trained"]["words"])
    tried = f"tried on models of {size['layers']} layers and width {size['width']}"
    return (
        f"Before anything was trained, {', '.join(report['checks'])} held for "
        f"{join_with_and([quote(method) for method in methods])}, {tried} with inputs of 2 tokens up to their "
        f"context.{trained}{begins} Data: every run of a comparison reads the same sequences in the same order, and "
        "evaluates at the same steps; a method that does not is refused."
    )


def describe_repeats(report: Mapping[str, Any]) -> str:
    """State for which arms causality held again with the weights that they were trained to; empty if none was tried."""
    weights = report.get("trained_weights", {})
    if not weights:
        return ""
    phrases = [f"{quote(arm)} {visible(result)}" for arm, result in weights.items()]
    return f"With the weights that they were trained to, causality was looked at again: {'; '.join(phrases)}."


def list_implausible(report: Mapping[str, Any]) -> list[str]:
    """Write a line for each method whose gain no modification ever had: what to look at before it is believed."""
    return [f"Flagged: {quote(method)}: {reason}." for method, reason in report.get("implausible", {}).items()]


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

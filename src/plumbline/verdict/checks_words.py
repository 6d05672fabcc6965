"""Says on a page what was checked of a method before it was trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumbline.core.errors import visible
from plumbline.verdict.formatting import listed, name


def checked(report: Mapping[str, Any]) -> str:
    """Say which checks held, of which methods, on models of which size."""
    size, found = report["size"], report["methods"]
    starts = [name(method) for method, entry in found.items() if entry["starts_as"]]
    begins = f" Initialised with their baseline's logits: {', '.join(starts)}." if starts else ""
    trained = "".join(f" {words[0].upper()}{words[1:]}." for words in report["trained"]["words"])
    tried = f"tried on models of {size['layers']} layers and width {size['width']}"
    return (
        f"Before anything was trained, {', '.join(report['checks'])} held for "
        f"{listed([name(method) for method in found])}, {tried} with inputs of 2 tokens up to their context."
        f"{trained}{begins} Data: every run of a comparison reads the same sequences in the same order, and evaluates "
        "at the same steps; a method that does not is refused."
    )


def repeated(report: Mapping[str, Any]) -> str:
    """Say of which arms causality held again with the weights that they were trained to; empty where none was tried."""
    weights = report.get("trained_weights", {})
    if not weights:
        return ""
    held = [f"{name(arm)} {visible(words)}" for arm, words in weights.items()]
    return f"With the weights that they were trained to, causality was looked at again: {'; '.join(held)}."


def implausible(report: Mapping[str, Any]) -> list[str]:
    """Write a line for each method whose gain no modification ever had: what to look at before it is believed."""
    return [f"Flagged: {name(method)}: {words}." for method, words in report.get("implausible", {}).items()]

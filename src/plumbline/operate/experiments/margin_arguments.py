"""Reads the margin of `--as-good-as` from a command line, and states what a dry run says of it."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from typing import Any

from plumbline.core.errors import UsageError
from plumbline.verdict.decision import as_good_as
from plumbline.verdict.decision.experiment import Decision, ExperimentQuestion, ExperimentTerms


def add_margin(question: ExperimentQuestion, options: argparse.Namespace, order: str) -> ExperimentQuestion:
    """Add to a question the margin within which the candidate is to be as good, where one is named.

    Raises:
        UsageError: it is no margin, or another flag or order has no meaning with it.
    """
    if options.as_good_as is None:
        return question
    margin = str(as_good_as.parse_margin(options.as_good_as))
    for flag, value in (("minimum-gain", options.minimum_gain), ("target-gain-sigmas", options.target_gain_sigmas)):
        if value is not None:
            raise UsageError(f"--as-good-as {margin}: --{flag} asks for a gain; leave out one of the two")
    if order == "paired":
        raise UsageError(
            f"--as-good-as {margin}: values of equal seeds are compared first, and the others are no pairs; leave out "
            "--paired (or decide.paired)"
        )
    sizes_named = bool(options.baseline_runs or options.max_runs)
    return replace(question, as_good_as=margin, sizes_named=sizes_named)


def describe_plan(question: ExperimentQuestion) -> str:
    """State, of a question whether a candidate is as good, what its runs can show; empty of other questions."""
    if not question.as_good_as:
        return ""
    margin = as_good_as.parse_margin(question.as_good_as)
    first = " Equal seeds are compared first: where all values are equal, no other runs are made."
    sigmas = question.target_gain_sigmas if question.minimum_gain else margin.size
    if sigmas is None or not (question.minimum_gain or margin.in_sigmas):
        return f"{first} How many runs the margin needs is known when the baseline's are there."
    return f"{first} Else, {as_good_as.describe_chance(question.bank, question.most, question.alpha, sigmas)}."


def repeat_margin(terms: ExperimentTerms) -> dict[str, Any]:
    """Collect what a claim takes over from a try: the margin, and as many runs as that had; nothing of other tries."""
    if not terms.as_good_as:
        return {}
    return {"minimum_gain": terms.minimum_gain, "as_good_as": terms.as_good_as, "bank": terms.design.bank}


def name_claim(decision: Decision) -> str:
    """Name what makes a claim of what was kept; equal values need none."""
    name = f" {shlex.quote(decision.terms.candidate)}" if decision.terms.as_good_as else ""
    return "another change" if decision.equal_seeds else f"plumbline confirm{name} for the number to claim"

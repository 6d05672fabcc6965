"""Writes the plan of a screen, before its first run: the design, what falls on what, and how well effects are known."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from plumbline.core.files import atomic_write_text
from plumbline.core.formats import format_count
from plumbline.stats.factor_effects import WIDER_LEVEL
from plumbline.verdict.formatting import quote, write_grid
from plumbline.verdict.page import join_sections, write_list
from plumbline.verdict.screen.screen_design import (
    WITH,
    WITHOUT,
    ScreenDesign,
    describe_aliases,
    name_level,
    predict_errors,
)
from plumbline.verdict.screen.screen_terms import ScreenTerms

#: What each rule promises.
RULES = {
    "bh": "by Benjamini and Hochberg (1995), so that of what is chosen a share of {level:g} at most does nothing",
    "bonferroni": "by Bonferroni, so that anything that does nothing is chosen in a share of {level:g} at most",
}


def describe_plan(terms: ScreenTerms, design: ScreenDesign) -> str:
    """State the design, what falls on what and the standard error of each effect, for a terminal."""
    return "\n\n".join([_describe_design(terms, design), *describe_aliases(design)[:2], _describe_errors(design)])


def plan_to_json(terms: ScreenTerms, design: ScreenDesign) -> dict[str, Any]:
    """The design, its aliases and the standard errors as JSON has them."""
    errors = [[*level, error] for level, error in predict_errors(design).items()]
    return {
        "design": json.loads(msgspec.json.encode(design)),
        "first_seed": terms.first_seed,
        "aliases": describe_aliases(design),
        "standard_errors": errors,
    }


def write_plan(terms: ScreenTerms, design: ScreenDesign, page: Path) -> None:
    """Write the page as it is before the first run."""
    parts = [f"# A screen of {design.counted} beside {quote(terms.baseline)}", "Not decided yet: its runs are made."]
    rows = range(len(design.rows))
    parts += [
        "## What decides",
        describe_rule(terms),
        "## Design",
        write_design(terms, design, rows, value_places=rows),
    ]
    atomic_write_text(page, join_sections(parts))


def _describe_design(terms: ScreenTerms, design: ScreenDesign) -> str:
    carried = "each idea is in about half of them" if design.are_ideas else "each level is in its share of them"
    return (
        f"{len(design.rows)} runs of {format_count(len(design.factors), 'factor')}, {carried}. The design: "
        f"{design.construction}. Seeds {terms.first_seed} to {terms.first_seed + len(design.rows) - 1}."
    )


def _describe_errors(design: ScreenDesign) -> str:
    errors = predict_errors(design)
    by_error: dict[str, list[str]] = {}
    for level, error in errors.items():
        error_text = "not told" if math.isnan(error) else f"{error:.2f}"
        by_error.setdefault(error_text, []).append(name_level(level))
    if len(by_error) == 1 and "not told" not in by_error:
        return f"Standard error of every effect: {next(iter(by_error))} sigma of one run."
    listed = "; ".join(
        f"{error} for {', '.join(names) if len(names) < 5 else f'{len(names)} of them'}"
        for error, names in sorted(by_error.items())
    )
    return f"Standard error of the effects, in sigma of one run: {listed}."


def describe_rule(terms: ScreenTerms) -> str:
    """State what decides, and at which levels."""
    direction = "higher" if terms.higher else "lower"
    halfway = ""
    if terms.halfway:
        halfway = (
            " Half of that level is spent on a look after the first half of the design, which ends it where something "
            "is chosen and no other effect may still be as large."
        )
    left_out = " Meanwhile each of the set is taken out of it, with fresh seeds." if terms.leave_one_out else ""
    minimum = f" by more than {terms.minimum_gain:g}" if terms.minimum_gain else ""
    return (
        f"{quote(terms.metric)}, {direction} is better. An effect is what a level gains over its factor's first, as an "
        "average over all others (least squares). Sigma of a run is that of the residuals, with the baseline's other "
        f"runs unless those spread much less (F test at {WIDER_LEVEL:g}). One-sided p-values of all effects are "
        f"corrected {RULES[terms.rule].format(level=terms.level)}.{halfway} What is chosen is run together, "
        f"{terms.fresh_runs} times with fresh seeds, in turn with as many of the baseline: it is confirmed if it is "
        f"better{minimum} at {terms.alpha:g}, one-sided (Student's t).{left_out}"
    )


def write_design(
    terms: ScreenTerms, design: ScreenDesign, places: Sequence[int], *, value_places: Sequence[int]
) -> str:
    """Write the design as a matrix of the rows that are made (`places`); what it can tell is by those with a value
    (`value_places`).
    """
    names = {WITH: "+", WITHOUT: "."}
    heads = ("run", "seed", *(quote(factor.name) for factor in design.factors))
    rows = [
        (f"{place + 1}", f"{terms.first_seed + place}", *(names.get(level, quote(level)) for level in row))
        for place, row in enumerate(design.rows)
        if place in places
    ]
    forbidden = [f"{name_level(first)} with {name_level(second)}" for first, second in design.forbidden]
    parts = [_describe_design(terms, design)]
    if len(value_places) < len(design.rows):
        parts.append(f"{len(places)} of them were made, and {len(value_places)} have a value, of which holds:")
    if value_places:
        with_values = replace(design, rows=tuple(design.rows[place] for place in value_places))
        parts += [_describe_errors(with_values), write_list(describe_aliases(with_values))]
    if forbidden:
        parts.append(f"Never in one run: {'; '.join(forbidden)}.")
    parts.append(write_grid(heads, rows))
    return "\n\n".join(parts)

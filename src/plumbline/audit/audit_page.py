"""Writes the audit as a page for people: findings first, the most consequential on top, in short lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from tabulate import tabulate

from plumbline.audit.audit_csv import Row, as_markdown, counts, summary
from plumbline.audit.audit_rows import CLASSES, EDGE, MIDDLE, MISMATCH, VERDICTS, WITHIN
from plumbline.audit.coverage import AuditCoverage
from plumbline.audit.findings import BEARINGS, Finding
from plumbline.audit.sentences import REASONS, RULE, SentenceOfAudit, count_sentences
from plumbline.published.expression import FUNCTIONS
from plumbline.published.printed_number import THOUSANDS
from plumbline.specs.paper import Paper

#: Characters in a line.
WIDTH = 100

INTRODUCTION = (
    "Each row recomputes a printed number from other printed numbers, or from a stated configuration. "
    'A printed number means everything that rounds to its text: "0.4829" is 0.48285 to 0.48295. '
    "All rows, with inputs, class and finding, are in the CSV next to it."
)

#: Added to the introduction on the page of the studies' papers.
UNTRAINED = " Nothing was trained for this page: it is the same at every preset."

#: Introduction of the sections of rows that hold only with rounding.
KNIFE_EDGES = "These hold only if every number involved was rounded from the very end of its range."
WITHIN_ROUNDING = "These do not hold for the inputs as printed, and do for some numbers that round to them."

#: What "read" means of a sentence.
READ = (
    "Read: a number that stands in the sentence, named, with its digits and its section, is an input or the printed "
    "number of a row; an equal number elsewhere reads nothing. Each sentence is in sentences.yaml of its study: place "
    "and numbers, not words."
)


def to_markdown(
    rows: Sequence[Row],
    studies: Sequence[str],
    findings: Mapping[str, Sequence[Finding]],
    covered: Mapping[str, AuditCoverage],
    papers: Mapping[str, Paper | None],
    sentences: Mapping[str, Sequence[SentenceOfAudit]] | None = None,
    *,
    with_bearings: bool = True,
) -> str:
    """Write the page of the audit as Markdown.

    Args:
        rows: the audit's, as `audit_csv.build` makes them.
        studies: the studies shown, in this order within one bearing.
        findings: findings of each paper.
        covered: coverage of each paper.
        papers: the paper of each study.
        sentences: sentences with a number of each paper.
        with_bearings: whether each finding states what it bears on, as in the studies' papers. Else the findings are
            in one section, and the rows within rounding are shown.
    """
    parts = ["# Audit of the printed numbers", "", *_wrap(INTRODUCTION + UNTRAINED * with_bearings), ""]
    parts += [line for name, meaning in VERDICTS.items() for line in item(f"**{name}**: {meaning}.")]
    parts += ["", as_markdown(summary(rows, studies)), ""]
    parts += [
        line
        for study in studies
        for line in item(_summarize_study(study, rows, findings[study], covered[study], papers[study]))
    ]
    parts += [""]
    for bearing, meaning in BEARINGS.items():
        head = [f"## Findings: {bearing}", "", *_wrap(f"{meaning[0].upper()}{meaning[1:]}."), ""]
        parts += _list_findings(bearing, head if with_bearings else ["## Findings", ""], rows, studies, findings)
    parts += _list_unexplained(rows)
    parts += _list_rows(EDGE, "Knife edges", KNIFE_EDGES, rows)
    parts += [] if with_bearings else _list_rows(WITHIN, "Within rounding", WITHIN_ROUNDING, rows)
    parts += _format_classes(rows, studies) + _list_unread(studies, covered)
    parts += _format_sentences(sentences or {}) + _list_functions(rows)
    return "\n".join(parts).rstrip("\n") + "\n"


def _summarize_study(
    study: str, rows: Sequence[Row], findings: Sequence[Finding], covered: AuditCoverage, paper: Paper | None
) -> str:
    study_rows, name = _select(rows, study), f"`{study}`, {paper}" if paper else f"`{study}`"
    if not study_rows:
        return f"{name}: no checks yet (they go into `audit.py` of its folder)."
    broken_ids = {row["id"] for row in study_rows if row["verdict"] == MISMATCH}
    reasons = [finding.id for finding in findings if broken_ids.intersection(finding.rows)]
    result = (
        f"{len(broken_ids)} of {len(study_rows)} checks do not hold"
        if broken_ids
        else f"all {len(study_rows)} checks hold"
    )
    why = f" ({', '.join(reasons)})" if reasons else ""
    worded = sum(not finding.rows for finding in findings)
    about_words = f" Findings about words alone: {worded}." * bool(worded)
    left_out = covered.printed - covered.read - len(covered.missing)
    left_out_text = f"; left out with a reason: {left_out}" * bool(left_out)
    gap = f"; neither read nor left out: {len(covered.missing)}" * bool(covered.missing)
    coverage = f"Printed numbers that rows read: {covered.read} of {covered.printed}{left_out_text}{gap}."
    return f"{name}: {result}{why}. {coverage}{about_words}"


def _select(rows: Sequence[Row], study: str) -> list[Row]:
    return [row for row in rows if row["study"] == study]


def _list_findings(
    bearing: str,
    head: list[str],
    rows: Sequence[Row],
    studies: Sequence[str],
    findings: Mapping[str, Sequence[Finding]],
) -> list[str]:
    selected = [(study, finding) for study in studies for finding in findings[study] if finding.bears_on == bearing]
    if not selected:
        return []
    lines = head
    for study, finding in selected:
        study_rows = _select(rows, study)
        finding_rows = [row for row in study_rows if row["id"] in finding.rows]
        broken_rows = [row for row in finding_rows if row["verdict"] == MISMATCH]
        classes = ", ".join(dict.fromkeys(row["evidence_kind"] for row in broken_rows))
        count = f"{len(broken_rows)} of {len(study_rows)} checks" + f", {classes}" * bool(classes)
        basis = f"words: {finding.wording.kind}" if finding.wording else count
        lines += [f"### {study}: {finding.id} ({basis})", "", *_wrap(finding.text), ""]
        for row in finding_rows:
            lines += _format_row(row)
        for place in finding.wording.places if finding.wording else ():
            lines += item(f'{place.where}: "{place.says}"')
        for reply in finding.replies:
            lines += ["", *_wrap(f"**Reply of {reply.by}, {reply.date}**: {reply.text}", "> ")]
        lines += [""]
    return lines


def _list_unexplained(rows: Sequence[Row]) -> list[str]:
    untold = [row for row in rows if row["verdict"] == MISMATCH and not row["finding"]]
    if not untold:
        return []
    lines = ["## Mismatches that no finding explains", ""]
    for row in untold:
        lines += _format_row(row, f"{row['study']}: ")
    return [*lines, ""]


def _list_rows(verdict: str, head: str, introduction: str, rows: Sequence[Row]) -> list[str]:
    """Write a section of the rows with a verdict."""
    selected = [row for row in rows if row["verdict"] == verdict]
    if not selected:
        return []
    lines = [f"## {head}", "", *_wrap(introduction), ""]
    for row in selected:
        lines += _format_row(row, f"{row['study']}: ")
    return [*lines, ""]


def _format_row(row: Row, prefix: str = "") -> list[str]:
    """Write a row in two lines: the quantity and its source, and the printed number next to the recomputed one."""
    verdict = "" if row["verdict"] == MISMATCH else f" ({row['verdict']})"
    first = item(f"{prefix}`{row['id']}`: {row['quantity']}; {row['source']}")
    numbers = f"printed {row['printed']}, {format_recomputed(row)}{verdict}"
    return [*first, *_wrap(numbers, "  ")]


def _format_classes(rows: Sequence[Row], studies: Sequence[str]) -> list[str]:
    if not rows:
        return []
    table = counts(rows, sorted(study for study in studies if _select(rows, study)), "evidence_kind", list(CLASSES))
    meanings = [line for name, meaning in CLASSES.items() for line in item(f"**{name}**: {meaning}.")]
    return ["## Classes of rows", "", *meanings, "", as_markdown(table), ""]


def _list_unread(studies: Sequence[str], covered: Mapping[str, AuditCoverage]) -> list[str]:
    lines = []
    for study in studies:
        for reason, cells in covered[study].listed.items():
            lines += item(f"`{study}`, {len(cells)}: {reason}")
    return ["## Printed numbers that no row reads, and why", "", *lines, ""] if lines else []


def summarize_sentences(sentences: Mapping[str, Sequence[SentenceOfAudit]]) -> str:
    """Write in a line how many sentences with a number all papers have, and how many of them rows read."""
    all_counts = [count_sentences(entries) for entries in sentences.values() if entries]
    total, read_count = (sum(counts[name] for counts in all_counts) for name in ("sentences", "read"))
    return (
        f"Sentences with a number: {total}, of which rows read {read_count}; the page says why the others are left out."
    )


def _format_sentences(sentences: Mapping[str, Sequence[SentenceOfAudit]]) -> list[str]:
    """Write how many sentences with a number each paper has, how many are read and left out, as a table of Markdown."""
    counted = {study: count_sentences(of) for study, of in sentences.items() if of}
    if not counted:
        return []
    rows = [[name, *(of[name] for of in counted.values())] for name in next(iter(counted.values()))]
    table = tabulate(rows, ["", *counted], "pipe")
    meanings = [line for name, meaning in REASONS.items() for line in item(f"**{name}**: {meaning}.")]
    heads = ["## Sentences with a number", "", *_wrap(RULE), "", *_wrap(READ), "", table, ""]
    return [*heads, "Left out, because the numbers are of this kind:", "", *meanings, ""]


def _list_functions(rows: Sequence[Row]) -> list[str]:
    called = dict.fromkeys(name for row in rows for name in re.findall(r"\b(\w+)\(", row["formula"]))
    lines = [line for name in called if name in FUNCTIONS for line in item(f"`{name}`: {FUNCTIONS[name].meaning}")]
    return ["## Functions in formulas", "", *lines, ""] if lines else []


def _wrap(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def item(text: str) -> list[str]:
    """Write an entry of a list in lines of the page's width."""
    lines = _wrap(text, "  ")
    return [f"- {lines[0].removeprefix('  ')}", *lines[1:]]


def format_recomputed(row: Row) -> str:
    """Format a recomputed number, one digit longer than the printed one, in its unit, with its range if rounding leaves
    one."""
    printed = row["printed"].removeprefix("< ")
    unit = printed[-1:] if printed[-1:] in THOUSANDS else ""
    number = re.search(r"\d[\d.,]*|$", printed)[0]  # type: ignore[index]  # "2,304" of "2,304 h"
    digits = max(4, len(re.sub("[.,]", "", number).lstrip("0")) + 1)
    numbers = [row[name] / 10 ** THOUSANDS.get(unit, 0) for name in ("recomputed", "recomputed_low", "recomputed_high")]
    is_whole = not unit and "e" not in printed.lower() and all(number == round(number) for number in numbers)
    texts = (format(number, ".0f" if is_whole else f".{digits}g").replace("e+", "e") + unit for number in numbers)
    value, low, high = texts
    if row["recomputed_kind"] == MIDDLE:
        return f"possible from {low} to {high}" + f", so not {row['refuses']}" * (
            row.get("refuses", printed) != printed
        )
    return f"recomputed {value}" + f" ({low} to {high})" * (low != high)

"""Writes the tables of a verdict's page that do not decide: other metrics, tasks, the larger scale, cost, runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from plumbline.core.errors import PlumblineError
from plumbline.core.files import format_path
from plumbline.specs.compared_metrics import METRICS
from plumbline.verdict import formatting
from plumbline.verdict.formatting import quote, write_grid
from plumbline.verdict.judge import BaselineComparison
from plumbline.verdict.own_method.decision_accuracy import DecisionAccuracy
from plumbline.verdict.own_method.finished_run_reader import FinishedRunReader


def measures(seen: FinishedRunReader) -> str:
    """Write the table of the other metrics, which do not decide."""
    rows = []
    for method in seen.mine.against:
        for metric in seen.metrics:
            if seen.unjudged(method) or metric.name == seen.deciding.name:
                continue
            try:
                one = seen.judged(method, metric)
            except PlumblineError:
                rows.append((quote(method), metric.label, *["no noise floor"] * 6))
                continue
            means = [formatting.format_value(value, one.sigma) for value in (one.mean, one.mean_baseline, one.gain)]
            found = [f"{one.z:.2f}", formatting.format_p(one.p), formatting.format_value(one.resolved, one.sigma)]
            rows.append((quote(method), metric.label, *means, *found))
    nothing = "The study evaluates nothing else."
    if all(map(seen.unjudged, seen.mine.against)):
        nothing = "Diverged seeds leave nothing to compare."
    columns = ("method", "metric", "mean", "baseline's", "gain", "gain / sigma", "one-sided p, of this alone")
    return write_grid((*columns, "smallest gain that it resolves"), rows) if rows else nothing


def downstream(seen: FinishedRunReader) -> list[str]:
    """Write the table of tasks of each method, with Stouffer's sum."""
    sections = []
    for method in seen.mine.against:
        tasks = None if seen.unjudged(method) or seen.mine.study.suite is None else seen.tasks(method)
        if tasks is None:
            continue
        each, plain, correlated = tasks
        rows = [
            (
                str(task),
                seen.frames.task_sources.get(str(task), ""),
                f"{row['difference']:+.4f}",
                "none" if math.isnan(row["t"]) else f"{row['t']:.2f}",
                formatting.format_p(row["p_greater"]),
            )
            for task, row in each.iterrows()
        ]
        known = "cannot be estimated"
        if correlated is not None:
            known = f"Z = {correlated.z:.2f}, p = {formatting.format_p(correlated.p_one_sided)}"
        missing = f"; {plain.missing} without a test" if plain.missing else ""
        sections += [
            f"### {quote(method)}, task by task",
            write_grid(("task", "items", "accuracy more", "Welch's t", "one-sided p"), rows),
            f"Stouffer over {plain.tasks} tasks{missing}, one-sided: Z = {plain.z:.2f}, p = "
            f"{formatting.format_p(plain.p_one_sided)} if tasks were independent; with their correlation over these "
            f"few seeds {known}. It does not decide.",
        ]
    return sections


def larger(seen: FinishedRunReader) -> str:
    """Write what the larger scale gave."""
    rows = []
    if seen.mine.larger is None:
        path = quote(format_path(seen.mine.path))
        return f"None was asked for (`larger:` in {path}): nothing follows for other sizes."
    for method in seen.mine.against:
        one = seen.larger(method)
        if one is None:
            sides = (method, seen.mine.against[method])
            seeds = " / ".join(str(len(seen.mine.runs(seen.mine.larger, side))) for side in sides)
            gone = ["diverged" if seen.lost_larger(side) else "not compared" for side in sides]
            if not any(seen.lost_larger(side) for side in sides):
                gone = ["no finished run"] * 2
            rows.append((quote(method), seeds, *gone, "none", "none"))
            continue
        test = "no noise floor" if one.judged is None else formatting.format_p(one.judged.p)
        seeds = f"{one.seeds} / {one.seeds_baseline}"
        rows.append((quote(method), seeds, f"{one.mean:.5g}", f"{one.mean_baseline:.5g}", f"{one.gain:+.4g}", test))
    columns = ("method", "seeds / baseline's", seen.deciding.name, "baseline's", "gain", "one-sided p, of this alone")
    return f"`{seen.mine.larger}`, {seen.mine.study.scale_label(seen.mine.larger)}:\n\n{write_grid(columns, rows)}"


def cost(seen: FinishedRunReader) -> str:
    """Write the table of stability and cost."""
    rows = []
    for scale in (seen.mine.scale, *([seen.mine.larger] if seen.mine.larger else [])):
        evidence = seen.evidence(seen.deciding, scale)
        for method, runs in evidence.runs.items():
            keys, medians = seen.keys(scale, method), {key: each[method] for key, each in evidence.medians.items()}
            seconds = median((run.seconds or 0.0) / max(1, run.step or 0) for run in runs.values())
            size = medians["memory_bytes"]
            memory = f"{size / 1e6:,.0f}" if size else "not recorded"
            spike = max(map(seen.spike, keys))
            norm = "none" if math.isnan(spike) else f"{spike:.1f}"
            diverged = f"{len(seen.diverged(scale, method))} of {len(keys)}"
            parameters = f"{medians['parameters']:,.0f}" if medians["parameters"] else "not recorded"
            rows.append((quote(method), scale, diverged, norm, parameters, f"{seconds:.3g}", memory))
    columns = ("method", "scale", "diverged", "largest gradient norm / median", "parameters", "seconds a step")
    return (
        write_grid((*columns, "peak memory, MB"), rows)
        + "\n\nSeconds a step are wall time of whole runs, validation included, medians over seeds, next to whatever "
        "else the machine did: not a benchmark. Peak memory is, on a GPU, what torch allocated on it and, on a "
        "processor, what "
        "the trainer's process held; medians over the seeds that recorded it."
    )


def hours(seen: FinishedRunReader, judged: dict[str, BaselineComparison]) -> str:
    """What the seeds that would find the seen gain take, by what a run took here."""
    said = []
    for method, each in judged.items():
        if needed := each.seeds_to_decide:
            ours, theirs = (seen.hours(seen.mine.scale, side) for side in (method, seen.mine.against[method]))
            said.append(
                f"- {quote(method)}: {needed:,} seeds of each take about {needed * (ours + theirs):.3g} "
                "device-hours, if "
                f"a run takes the {ours:.3g} h, and one of the baseline the {theirs:.3g} h, that they took here."
            )
    return "\n".join(said)


def orders(found: Sequence[DecisionAccuracy]) -> str:
    """Write how often two scales order methods alike."""
    if not found:
        return "No table of the study's paper has the same methods at two scales, nor do these runs give two pairs."
    rows = [
        (
            one.source,
            one.metric,
            str(one.methods),
            f"{one.alike:g} of {one.pairs}",
            formatting.format_percent(one.share),
        )
        for one in found
    ]
    return (
        "Decision accuracy: of all pairs of methods with a value at both scales, those with the same order "
        "at both scales. Chance is 50 %.\n\n"
        + write_grid(("whose", "by", "methods", "pairs in the same order", "share"), rows)
    )


def published(seen: FinishedRunReader) -> list[str]:
    """Write the section of the numbers that somebody prints of these methods, each with the mean of the runs here.

    Raises:
        PlumblineError: as `OwnMethodsFile.printed`.
    """
    rows = []
    for row in seen.mine.printed():
        values = seen.values(METRICS[row["metric"]], row["scale"], row["method"])
        mean = sum(values.values()) / len(values) if values else math.nan
        rows.append((quote(row["method"]), row["metric"], row["scale"], row["value"], f"{mean:.5g}", str(len(values))))
    columns = ("method", "metric", "scale", "published", "reproduced here", "seeds")
    return ["### Published next to reproduced", write_grid(columns, rows)] if rows else []


def runs(seen: FinishedRunReader) -> str:
    """Write the table of every run with its id."""
    rows = []
    for key, row in seen.frames.runs.iterrows():
        value = seen.values(seen.deciding, row["scale"], row["method"]).get(str(row["seed"]))
        found = "none" if value is None else f"{value:.6g}"
        rows.append((f"`{key}`", f"`{row['run_id']}`", row["outcome"], found))
    return (
        write_grid(("run", "run id", "outcome", seen.deciding.name), rows)
        + f"\n\nEach is a folder below `{format_path(seen.frames.work)}/runs`, with its spec, commit and data in "
        "`manifest.json`."
    )

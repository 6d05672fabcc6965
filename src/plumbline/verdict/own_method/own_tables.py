"""Writes the tables of a verdict's page that do not decide: other metrics, tasks, the larger scale, cost, runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from plumbline.core.errors import PlumblineError
from plumbline.core.files import format_path
from plumbline.core.formats import format_percent
from plumbline.specs.compared_metrics import METRICS
from plumbline.verdict import formatting
from plumbline.verdict.formatting import quote, write_grid
from plumbline.verdict.judge import BaselineComparison
from plumbline.verdict.own_method.decision_accuracy import DecisionAccuracy
from plumbline.verdict.own_method.finished_run_reader import FinishedRunReader


def write_measures(reader: FinishedRunReader) -> str:
    """Write the table of the other metrics, which do not decide."""
    rows = []
    for method in reader.mine.against:
        for metric in reader.metrics:
            if reader.explain_unjudged(method) or metric.name == reader.deciding.name:
                continue
            try:
                each = reader.compare(method, metric)
            except PlumblineError:
                rows.append((quote(method), metric.label, *["no noise floor"] * 6))
                continue
            means = [formatting.format_value(value, each.sigma) for value in (each.mean, each.mean_baseline, each.gain)]
            test = [f"{each.z:.2f}", formatting.format_p(each.p), formatting.format_value(each.resolved, each.sigma)]
            rows.append((quote(method), metric.label, *means, *test))
    nothing = "The study evaluates nothing else."
    if all(map(reader.explain_unjudged, reader.mine.against)):
        nothing = "Diverged seeds leave nothing to compare."
    columns = ("method", "metric", "mean", "baseline's", "gain", "gain / sigma", "one-sided p, of this alone")
    return write_grid((*columns, "smallest gain that it resolves"), rows) if rows else nothing


def write_tasks(reader: FinishedRunReader) -> list[str]:
    """Write the table of tasks of each method, with Stouffer's sum."""
    sections = []
    for method in reader.mine.against:
        tasks = (
            None if reader.explain_unjudged(method) or reader.mine.study.suite is None else reader.compare_tasks(method)
        )
        if tasks is None:
            continue
        each, plain, correlated = tasks
        rows = [
            (
                str(task),
                reader.frames.task_sources.get(str(task), ""),
                f"{row['difference']:+.4f}",
                "none" if math.isnan(row["t"]) else f"{row['t']:.2f}",
                formatting.format_p(row["p_greater"]),
            )
            for task, row in each.iterrows()
        ]
        correlated_text = "cannot be estimated"
        if correlated is not None:
            correlated_text = f"Z = {correlated.z:.2f}, p = {formatting.format_p(correlated.p_one_sided)}"
        missing_text = f"; {plain.missing} without a test" if plain.missing else ""
        sections += [
            f"### {quote(method)}, task by task",
            write_grid(("task", "items", "accuracy more", "Welch's t", "one-sided p"), rows),
            f"Stouffer over {plain.tasks} tasks{missing_text}, one-sided: Z = {plain.z:.2f}, p = "
            f"{formatting.format_p(plain.p_one_sided)} if tasks were independent; with their correlation over these "
            f"few seeds {correlated_text}. It does not decide.",
        ]
    return sections


def write_larger(reader: FinishedRunReader) -> str:
    """Write what the larger scale gave."""
    rows, mine = [], reader.mine
    if mine.larger is None:
        path = quote(format_path(mine.path))
        return f"None was asked for (`larger:` in {path}): nothing follows for other sizes."
    for method in mine.against:
        each = reader.compare_larger_scale(method)
        if each is None:
            sides = (method, mine.against[method])
            seeds = " / ".join(str(len(mine.runs(mine.larger, side))) for side in sides)
            outcomes = ["diverged" if reader.list_diverged_larger(side) else "not compared" for side in sides]
            if not any(reader.list_diverged_larger(side) for side in sides):
                outcomes = ["no finished run"] * 2
            rows.append((quote(method), seeds, *outcomes, "none", "none"))
            continue
        test = "no noise floor" if each.comparison is None else formatting.format_p(each.comparison.p)
        seeds = f"{each.seeds} / {each.seeds_baseline}"
        rows.append((quote(method), seeds, f"{each.mean:.5g}", f"{each.mean_baseline:.5g}", f"{each.gain:+.4g}", test))
    columns = ("method", "seeds / baseline's", reader.deciding.name, "baseline's", "gain", "one-sided p, of this alone")
    return f"`{mine.larger}`, {mine.study.scale_label(mine.larger)}:\n\n{write_grid(columns, rows)}"


def write_cost(reader: FinishedRunReader) -> str:
    """Write the table of stability and cost."""
    rows = []
    for scale in (reader.mine.scale, *([reader.mine.larger] if reader.mine.larger else [])):
        evidence = reader.evidence(reader.deciding, scale)
        for method, runs in evidence.runs.items():
            keys, medians = reader.keys(scale, method), {key: each[method] for key, each in evidence.medians.items()}
            seconds = median((run.seconds or 0.0) / max(1, run.step or 0) for run in runs.values())
            size = medians["memory_bytes"]
            memory = f"{size / 1e6:,.0f}" if size else "not recorded"
            spike = max(map(reader.spike, keys))
            norm = "none" if math.isnan(spike) else f"{spike:.1f}"
            diverged = f"{len(reader.list_diverged(scale, method))} of {len(keys)}"
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


def write_needed_hours(reader: FinishedRunReader, comparisons: dict[str, BaselineComparison]) -> str:
    """What the seeds that would find the seen gain take, by what a run took here."""
    lines = []
    for method, each in comparisons.items():
        if seeds := each.seeds_to_decide:
            ours, theirs = (reader.hours(reader.mine.scale, side) for side in (method, reader.mine.against[method]))
            lines.append(
                f"- {quote(method)}: {seeds:,} seeds of each take about {seeds * (ours + theirs):.3g} "
                "device-hours, if "
                f"a run takes the {ours:.3g} h, and one of the baseline the {theirs:.3g} h, that they took here."
            )
    return "\n".join(lines)


def write_orders(accuracies: Sequence[DecisionAccuracy]) -> str:
    """Write how often two scales order methods alike."""
    if not accuracies:
        return "No table of the study's paper has the same methods at two scales, nor do these runs give two pairs."
    rows = [
        (
            order.source,
            order.metric,
            str(order.methods),
            f"{order.alike:g} of {order.pairs}",
            format_percent(order.share),
        )
        for order in accuracies
    ]
    return (
        "Decision accuracy: of all pairs of methods with a value at both scales, those with the same order "
        "at both scales. Chance is 50 %.\n\n"
        + write_grid(("whose", "by", "methods", "pairs in the same order", "share"), rows)
    )


def write_published(reader: FinishedRunReader) -> list[str]:
    """Write the section of the numbers that somebody prints of these methods, each with the mean of the runs here.

    Raises:
        PlumblineError: as `OwnMethodsFile.printed`.
    """
    rows = []
    for row in reader.mine.read_printed():
        values = reader.values(METRICS[row["metric"]], row["scale"], row["method"])
        mean = sum(values.values()) / len(values) if values else math.nan
        rows.append((quote(row["method"]), row["metric"], row["scale"], row["value"], f"{mean:.5g}", str(len(values))))
    columns = ("method", "metric", "scale", "published", "reproduced here", "seeds")
    return ["### Published next to reproduced", write_grid(columns, rows)] if rows else []


def write_runs(reader: FinishedRunReader) -> str:
    """Write the table of every run with its id."""
    rows = []
    for key, row in reader.frames.runs.iterrows():
        value = reader.values(reader.deciding, row["scale"], row["method"]).get(str(row["seed"]))
        value_text = "none" if value is None else f"{value:.6g}"
        rows.append((f"`{key}`", f"`{row['run_id']}`", row["outcome"], value_text))
    return (
        write_grid(("run", "run id", "outcome", reader.deciding.name), rows)
        + f"\n\nEach is a folder below `{format_path(reader.frames.work)}/runs`, with its spec, commit and data in "
        "`manifest.json`."
    )

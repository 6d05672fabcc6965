"""Shows a plan to people: a page of Markdown with everything, and tables for a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pandas as pd
from tabulate import tabulate

from plumbline.core.formats import format_duration, format_number
from plumbline.plan import job_needs
from plumbline.plan.run_estimate import RunEstimator
from plumbline.plan.target_costs import NODE, compare_published, describe_memory, describe_speed
from plumbline.specs.yaml_files import ROOT

WIDTH = 80
#: Columns of words, which are aligned to the left.
WORDS = ("study", "target", "run", "published", "estimated")
#: Room for words in a terminal; longer ones are wrapped.
WORD_WIDTH, PUBLISHED_WIDTH = 15, 28
#: Columns of numbers of the whole table: head -> the plan's own column, and how its values are written.
COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "runs to do": ("runs_to_do", str),
    "done": ("runs_done", str),
    "evaluations": ("evaluations_to_do", str),
    "probes": ("probes_to_do", str),
    "measurements": ("measurements_to_do", str),
    "tokens": ("tokens", lambda tokens: _format_tokens(tokens)),
    "training FLOPs": ("training_flops", lambda operations: f"{operations:.2e}" if operations else "0"),
    "device-hours": ("device_hours", format_number),
    "of these evaluation": ("evaluation_device_hours", format_number),
    "data, CPU-hours": ("data_cpu_hours", format_number),
    "longest path": ("longest_path_hours", lambda hours: format_duration(3600 * hours)),
    "wall time": ("wall_hours", lambda hours: format_duration(3600 * hours)),
    "disk, GB": ("disk_gb", format_number),
}


def markdown(prices: RunEstimator, frame: pd.DataFrame) -> str:
    """Write the plan as Markdown: what it rests on, the whole table rounded and with units, and the papers' own
    figures.
    """
    parts = [*list_notes(prices, frame), _grid(round_table(frame), "pipe"), compare_with_papers(prices)]
    return "\n\n".join(part for part in parts if part)


def compare_with_papers(prices: RunEstimator) -> str:
    """Write the section that compares what the papers state they cost with the plan; empty if none states it."""
    comparison = compare_published(prices, ROOT)
    if not len(comparison):
        return ""
    parts = [
        "## Next to the paper's own figures",
        _explain_published(prices),
        _grid(_format_published(comparison), "pipe"),
    ]
    return "\n\n".join(parts)


def terminal_of_targets(prices: RunEstimator, frame: pd.DataFrame) -> str:
    """Write rows of the plan for a terminal: few columns for each study; no line is longer than `WIDTH`."""
    parts = [textwrap.fill(note, WIDTH) for note in list_notes(prices, frame)]
    for study, rows in frame.groupby("study", sort=False):
        parts += [f"{study}\n{_grid(_select_narrow(rows), 'simple', [WORD_WIDTH])}"]
    return "\n\n".join(parts)


def terminal(prices: RunEstimator, frame: pd.DataFrame) -> str:
    """Write the whole plan for a terminal, and beside it what the papers say of their own runs."""
    parts = [terminal_of_targets(prices, frame)]
    comparison = compare_published(prices, ROOT)
    if len(comparison):
        widths = [WORD_WIDTH, PUBLISHED_WIDTH, WORD_WIDTH]
        parts += [
            textwrap.fill(_explain_published(prices), WIDTH),
            _grid(_format_published(comparison), "simple", widths),
        ]
    return "\n\n".join(parts)


def list_notes(prices: RunEstimator, frame: pd.DataFrame) -> list[str]:
    """Write in a few sentences what the plan rests on, and what its figures mean."""
    machine = prices.machine
    relative = f"Step times of methods: {machine.relative_in_words}."
    sentences = [
        f"Preset `{prices.project.name}` on {machine.label}, {machine.devices_at_once} at once; speed "
        f"{describe_speed(prices)}. {relative}",
        "Finished work costs nothing; disk is all that is written, documents twice. Targets share runs, so their rows "
        "do not add up. The longest path is data, one training and its evaluation; wall time is for that many devices, "
        "without waiting in queues. What is measured besides the runs takes the minutes that its study states.",
        _describe_preparation(frame),
    ]
    if memory := describe_memory(prices):
        sentences.append(f"Memory of a finished run at its most: {memory}, of {machine.memory_gib:g} GiB a device.")
    if frame["runs_estimated"].any():
        sentences.append(
            "Where a row says *about*, operations of some of its runs are not counted from the modules but estimated "
            "from the model's sizes, as if it were a baseline."
        )
    missing = sorted({name for names in frame["not_counted"] for name in names.split(", ") if name})
    if missing:
        sentences.append(f"Not counted, and in no sum: {', '.join(missing)}.")
    return sentences


def _describe_preparation(frame: pd.DataFrame) -> str:
    """Describe what the corpora that are not there yet take: of the row with most."""
    beginning = "Data preparation runs on processors and is in no device-hour"
    cpu_hours = frame["data_cpu_hours"].to_numpy()
    if not len(cpu_hours) or not cpu_hours.max():
        return f"{beginning}."
    row = frame.iloc[int(cpu_hours.argmax())]
    limits = f" Extrapolated from {describe_measured_jobs()} (benchmarks/job_resources.yaml)."
    delay = (
        f", {format_duration(3600 * row['data_hours'])} before the first training"
        if pd.notna(row["data_hours"])
        else ""
    )
    return (
        f"{beginning}: about {format_number(row['data_cpu_hours'])} CPU-hours{delay}, in jobs of one process that "
        f"take {row['data_memory_gb']:.2g} GB of memory at most, and {format_number(row['data_disk_gb'])} GB of disk."
        + limits
        * bool(row["data_extrapolated"])
    )


def describe_measured_jobs() -> str:
    """Describe up to which sizes the laws of the data stage were measured."""
    text, tokens = (job_needs.most_measured(*law) for law in (("documents", "text_mb"), ("pack", "tokens_m")))
    return f"jobs of up to {text:,.0f} MB of text and {tokens:,.0f} M tokens"


def round_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Round the plan's table for people, and name its columns with their units (`COLUMNS`)."""
    scoring = frame["evaluation_device_hours"] + frame["probe_device_hours"]
    frame = frame.assign(evaluation_device_hours=scoring)
    columns = {head: frame[column].map(write) for head, (column, write) in COLUMNS.items()}
    about = {head: _mark_estimated(frame, columns[head]) for head in ("training FLOPs", "device-hours")}
    return pd.DataFrame({"study": frame["study"], "target": frame["target"]} | columns | about | _price_column(frame))


def _select_narrow(frame: pd.DataFrame) -> pd.DataFrame:
    columns = {
        "target": frame["target"],
        "to do": frame["runs_to_do"],
        "done": frame["runs_done"],
        "device-hours": _mark_estimated(frame, frame["device_hours"].map(format_number)),
        "wall time": (3600 * frame["wall_hours"]).map(format_duration),
    }
    return pd.DataFrame(columns | (_price_column(frame) or {"disk, GB": frame["disk_gb"].map(format_number)}))


def _price_column(frame: pd.DataFrame) -> dict[str, pd.Series]:
    """The column of prices, where the machine has one."""
    has_price = frame["price"].notna().any()
    return {"price": _mark_estimated(frame, frame["price"].map(format_number))} if has_price else {}


def _mark_estimated(frame: pd.DataFrame, figures: pd.Series) -> pd.Series:
    """Write "about" before figures that rest on an estimated run."""
    return figures.where(~(frame["runs_estimated"] > 0), "about " + figures)


def _grid(frame: pd.DataFrame, form: str, widths: list[int] | None = None) -> str:
    """`widths`: of the first columns, whose cells are wrapped."""
    align = ["left" if name in WORDS else "right" for name in frame.columns]
    limits = None if widths is None else [*widths, *[None] * (len(frame.columns) - len(widths))]
    return tabulate(
        frame.to_dict("list"), headers="keys", tablefmt=form, disable_numparse=True, colalign=align, maxcolwidths=limits
    )


def _format_tokens(value: float) -> str:
    return f"{value / 1e9:.4g} B" if value >= 1e8 else f"{value / 1e6:.3g} M"


def _explain_published(prices: RunEstimator) -> str:
    return (
        f"The paper does not name its accelerators; {NODE} are on a node. `ratio` is estimated to published "
        f"device-hours; `implied MFU` is the share of the peak of {prices.machine.peak_tflops:g} TFLOP/s "
        f"({prices.machine.label}) that the published hours need."
    )


def _format_published(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "run": frame["run"],
            "published": [
                f"about {hours:g} h on {devices} ({where})"
                for hours, devices, where in zip(frame["published_hours"], frame["published_devices"], frame["where"])
            ],
            "estimated": [
                f"{hours:.1f} h on {devices}"
                for hours, devices in zip(frame["estimated_hours"], frame["estimated_devices"])
            ],
            "ratio": frame["ratio"].map("{:.2f}".format),
            "implied MFU": frame["implied_mfu"].map("{:.2f}".format),
        }
    )

"""Builds the page of one run (how it ended, its curve, scores, log and manifest) and the page of all runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.core import escape_sequences, fingerprint_file, process_record, run_files
from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_peak_memory
from plumbline.report import study_tables
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import ColumnHead, HtmlCell, PageTable, number_cell, text_cell
from plumbline.report.results_on_disk import (
    DIVERGED,
    MEASURED,
    NOT_RUN,
    OTHER_SPEC,
    UNFINISHED,
    FoundRun,
    ResultsOnDisk,
    RunCounts,
)
from plumbline.report.run_curve import Point, TrainingCurveLine, TrainingCurvePicture
from plumbline.results.measurements import measurement_file
from plumbline.specs.study_config import Run

METRICS, OUTCOME, _MANIFEST = "metrics.parquet", "outcome.json", "manifest.json"
UNREADABLE = "cannot be read"
#: How much of a log is shown.
LINES, CHARACTERS = 40, 6000

#: Facts of a manifest, in this order: key -> words.
FACTS = {
    "parameters": "parameters",
    "tokens": "tokens",
    "precision": "precision",
    "device_name": "device",
    "host": "host",
    "world_size": "processes",
    "wall_seconds": "wall time (s)",
    "peak_memory": "peak memory",
    "attempts": "starts",
    "resumed_from": "resumed from steps",
    "git_commit": "commit",
    "git_dirty": "uncommitted changes",
    "data_fingerprint": "data",
    "validation_fingerprint": "held-out data",
    "fingerprint": "made of",
    "options": "options",
    "seconds": "wall time (s)",
    "started": "started",
    "finished": "finished",
    "packages": "packages",
}


def build_index(results: ResultsOnDisk) -> ReportPage:
    """Build the page that lists all runs, planned or named by a page, in one table."""
    content = {"grid": build_table(results.runs, ""), "counts": RunCounts.of(results.runs)}
    return ReportPage(path="runs.html", title="Runs", template="runs.html.j2", content=content, nav="Runs")


def build_table(runs: Iterable[FoundRun], root: str) -> PageTable:
    """Build a table of runs, each row linked to the run's page; `root` leads from the page to the report's folder."""
    heads = [
        ColumnHead(text="run"),
        ColumnHead(text="outcome"),
        ColumnHead(text="method"),
        ColumnHead(text="step", numeric=True),
        ColumnHead(text="of", numeric=True),
        ColumnHead(text="validation loss", numeric=True),
        ColumnHead(text="parameters", numeric=True),
        ColumnHead(text="wall time (s)", numeric=True),
        ColumnHead(text="peak memory (MB)", numeric=True, short=False),
        ColumnHead(text="run id", short=False),
    ]
    rows = [_make_row(run, root) for run in runs]
    return PageTable(id="runs", title="Runs, as they ended.", heads=heads, rows=rows, files={})


def build_page(
    results: ResultsOnDisk, run: FoundRun, used_in: list[tuple[str, str]], compared: list[tuple[str, str]] | None = None
) -> ReportPage:
    """Build the page of a run or measurement.

    `used_in`: the tables that rest on it, as (name, path from the report's folder), and `compared` where it is drawn
    next to others.
    """
    scored_runs = [
        scored_run
        for scored_run in results.project.scored_runs.values()
        if run.planned and scored_run.key == run.key and scored_run.suite
    ]
    score_files = [Path(results.project.paths.scores(scored_run)) for scored_run in scored_runs]
    run_files_shown = (run.folder / OUTCOME, run.folder / METRICS, run.folder / _MANIFEST)
    content: dict[str, Any] = {
        "run": run,
        "wrong": [(path, why) for path in (*run_files_shown, *score_files) if (why := describe_damage(run, path))],
        "facts": _list_facts(run),
        "curves": [] if run.state == MEASURED else draw_curves(run),
        "scores": [
            grid for scored_run, path in zip(scored_runs, score_files) if (grid := _build_scores(run, scored_run, path))
        ],
        "log": read_tail(run.log),
        "manifest": _to_json(process_record.strip_local_facts(run.manifest)),
        "outcome": _to_json(_shorten_outcome(run.outcome)),
        "spec": _to_json(run.planned.spec.to_dict()) if run.planned and not run.manifest else "",
        "used_in": used_in,
        "compared": compared or [],
        "ended": _describe_end(run),
        "command": results.command(run.folder / "outcome.json")
        if run.planned and (run.other_spec or run.state in (NOT_RUN, UNFINISHED))
        else "",
        "measured": measurement_file.is_key(run.key),
    }
    study = run.planned.spec.study if run.planned else ""
    return ReportPage(path=run.page, title=run.key, template="run.html.j2", content=content, study=study)


def find_tables_by_run(results: ResultsOnDisk) -> dict[str, list[tuple[str, str]]]:
    """Map each run's key to the tables that rest on it, as (name, path from the report's folder)."""
    tables_by_run: dict[str, list[tuple[str, str]]] = {}
    for study in results.studies.values():
        for product in results.products(study):
            if product.kind == "table" and product.made and not study_tables.describe_problem(product.path):
                for key in study_tables.list_runs(product.path):
                    link = f"studies/{study.name}/tables.html#table-{product.name}"
                    tables_by_run.setdefault(key, []).append((f"{study.name}, {product.name}", link))
    return tables_by_run


def draw_curves(run: FoundRun) -> list[TrainingCurvePicture]:
    """Draw loss and gradient norm over steps of a run; none if nothing was logged."""
    path = run.folder / METRICS
    if not path.exists() or describe_damage(run, path):
        return []
    logged = pq.read_table(path, columns=["step", "split", "loss", "grad_norm"]).to_pydict()
    steps = run.outcome.get("steps") or max(logged["step"], default=0)
    ended = run.outcome.get("step") if run.state == DIVERGED else None
    training, held_out = (_select_points(logged, "loss", split) for split in ("train", "validation"))
    norms = _select_points(logged, "grad_norm", "train")
    pictures = []
    for title, lines in (
        (
            "Loss",
            [
                TrainingCurveLine(name="train", points=training),
                TrainingCurveLine(name="validation", points=held_out, dots=True),
            ],
        ),
        ("Gradient norm", [TrainingCurveLine(name="norm", points=norms)]),
    ):
        lines_drawn = [line for line in lines if any(math.isfinite(value) for _, value in line.points)]
        if lines_drawn:
            line_summaries = "; ".join(_describe_line(line) for line in lines_drawn)
            more = f" The run diverged at step {ended:,}." if ended is not None else ""
            description = f"{title} over {steps:,} steps: {line_summaries}.{more}"
            pictures.append(
                TrainingCurvePicture(title=title, lines=lines_drawn, steps=steps, description=description, ended=ended)
            )
    return pictures


def describe_damage(run: FoundRun, path: Path) -> str:
    """Describe what is wrong with a file of a run that is there: cut short, or not the one that was made. Empty if
    nothing is; the run's page shows it.
    """
    if not path.exists():
        return ""
    try:
        if path.suffix == ".parquet" and not pq.read_schema(path):
            return UNREADABLE
        fingerprint_file.read_verified(path)
        if path.name == _MANIFEST:
            run_files.require_manifest(path, run.manifest)
        elif path.parent == run.folder:
            run_files.require(run.folder, run.manifest, path.name)
    except PlumblineError:
        return "is not the file that was made"
    except (pa.ArrowException, OSError):
        return UNREADABLE
    return ""


def read_tail(log: Path) -> str:
    """Read the last lines of a log; empty if there is none."""
    if not log.is_file():
        return ""
    with open(log, "rb") as handle:
        handle.seek(max(0, log.stat().st_size - 4 * CHARACTERS))
        text = escape_sequences.decode(handle.read())
    lines = [line[:CHARACTERS] for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-LINES:])[-CHARACTERS:]


def _select_points(logged: dict[str, list[Any]], column: str, split: str) -> list[Point]:
    rows = zip(logged["step"], logged["split"], logged[column], strict=True)
    return [(step, math.nan if value is None else value) for step, split_of_row, value in rows if split_of_row == split]


def _describe_line(line: TrainingCurveLine) -> str:
    finite = [value for _, value in line.points if math.isfinite(value)]
    return f"{line.name} from {finite[0]:.4g} to {finite[-1]:.4g}, between {min(finite):.4g} and {max(finite):.4g}"


def _make_row(run: FoundRun, root: str) -> list[HtmlCell]:
    outcome = run.outcome
    loss = None if describe_damage(run, run.folder / OUTCOME) else outcome.get("validation_loss")
    wall = run.manifest.get("wall_seconds", run.manifest.get("seconds"))
    planned = outcome.get("steps") or (run.planned.spec.train.steps if run.planned else None)
    counts = [outcome.get("step"), planned, run.manifest.get("parameters")]
    step, total, parameters = (number_cell(count, "" if count is None else f"{count:,}") for count in counts)
    most = run.manifest.get("peak_memory_bytes")
    return [
        text_cell(run.key, href=root + run.page),
        text_cell(f"{run.state}, {OTHER_SPEC}" if run.other_spec else run.state),
        text_cell(run.label),
        step,
        total,
        number_cell(loss, "" if loss is None else f"{loss:.4f}"),
        parameters,
        number_cell(wall, "" if wall is None else f"{wall:,.1f}"),
        number_cell(most, "" if most is None else f"{most / 1e6:,.0f}"),
        text_cell(run.run_id, code=True),
    ]


def _describe_end(run: FoundRun) -> str:
    """Describe how a run ended in a sentence; empty if it did not, or is a measurement."""
    outcome = run.outcome
    if "step" not in outcome or run.state == MEASURED:
        return ""
    parts = [f"{run.state.capitalize()} at step {outcome['step']:,} of {outcome.get('steps') or outcome['step']:,}"]
    if outcome.get("validation_loss") is not None:
        parts.append(f"validation loss {outcome['validation_loss']:.4f}")
    if (seconds := run.manifest.get("wall_seconds")) is not None:
        parts.append(f"in {seconds:,.1f} s on {run.manifest.get('device_name', 'a device that is not recorded')}")
    return ", ".join(parts) + "."


def _list_facts(run: FoundRun) -> list[tuple[str, str]]:
    outcome = run.outcome
    facts = []
    if not measurement_file.is_key(run.key):
        facts = [("run id", run.run_id), ("study, scale, method, seed", run.key.replace("/", ", "))]
    if "step" in outcome:
        facts.append(("steps", f"{outcome['step']} of {outcome.get('steps', 'not known')}"))
    if outcome.get("validation_loss") is not None:
        facts.append(("validation loss", f"{outcome['validation_loss']:.5f}"))
    if outcome.get("reason"):
        facts.append(("reason", str(outcome["reason"])))
        facts.append(
            ("last finite loss", f"{outcome.get('last_finite_loss')} at step {outcome.get('last_finite_step')}")
        )
    manifest = run.manifest
    if "wall_seconds" in manifest:
        manifest = manifest | {"peak_memory": format_peak_memory(manifest)}
    facts += [(label, _format_value(manifest[name])) for name, label in FACTS.items() if name in manifest]
    return [*facts, ("folder", run.folder.as_posix())]


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_format_value(part)}" for name, part in sorted(value.items())) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


def _build_scores(run: FoundRun, scored: Run, path: Path) -> PageTable | None:
    """Its scores on one suite; nothing if they are not there."""
    if not path.exists() or run.state == MEASURED or describe_damage(run, path):
        return None
    rows = [
        [
            text_cell(score["task"]),
            text_cell(score["metric"]),
            number_cell(score["value"], f"{score['value']:.4f}"),
            number_cell(score["items"], f"{score['items']:,}"),
            text_cell(score["task_source"]),
        ]
        for score in pq.read_table(path).to_pylist()
        if score["primary"]
    ]
    heads = [
        ColumnHead(text="task"),
        ColumnHead(text="metric"),
        ColumnHead(text="value", numeric=True),
        ColumnHead(text="items", numeric=True),
    ]
    heads.append(ColumnHead(text="items are of"))
    study = scored.scores_key.partition("/")[0]
    title = f"Scores on the suite {scored.suite}, by which the study {study} judges the run."
    return PageTable(id=f"scores-{study}", title=title, heads=heads, rows=rows) if rows else None


def _shorten_outcome(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome without its hundreds of gradient norms, which are drawn."""
    tail = outcome.get("grad_norm_tail")
    return outcome | {"grad_norm_tail": f"{len(tail)} values, drawn above"} if tail else outcome


def _to_json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) if content else ""

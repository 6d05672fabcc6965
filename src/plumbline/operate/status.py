"""Lists every run that was ever started with its state: ``python -m plumbline.operate.status``.

Read from the state directories under ``work/<preset>/state`` and the outcomes under ``work/<preset>/runs``; nothing is
asked of Snakemake or SLURM, so it works on any machine that sees the files.
"""

from __future__ import annotations

import json
import textwrap
import time
from pathlib import Path
from typing import Any

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import read_json
from plumbline.core.formats import format_clock, format_peak_memory
from plumbline.operate.console.job_log import read_events
from plumbline.train.checkpoint import state_records
from plumbline.train.monitoring import peak_memory

#: What a run may be doing, in the order in which the table shows them.
STATES = ("running", "stale", "fault", "waiting", "diverged", "finished")
_STYLES = {"running": "green", "stale": "yellow", "fault": "red", "diverged": "magenta", "finished": "dim"}
#: Where the work of each preset is, unless told.
_WORK = Path("work")
#: Columns that everything printed fits in, and those of a run's name and its figures.
WIDTH = 80
_NAME = 35


def list_runs(work: Path) -> list[dict[str, Any]]:
    """Collect one row a run, by state and key.

    Times are in seconds, memory (the largest of starts that ended) in bytes; None if nothing is known.
    """
    rows = [make_row(state, _find_outputs(state, work)) for state in state_records.list_claimed(work)]
    listed_runs = {(entry["preset"], entry["run"]) for entry in rows}
    for path in sorted(work.glob("*/runs/*/*/*/*/outcome.json")):
        content = read_json(path)
        if content is None:
            continue
        key = "/".join(path.parent.parts[-4:])
        if (content["preset"], key) not in listed_runs:
            rows.append(_add_outcome(content, {"preset": content["preset"], "run": key, "state_directory": None}))
    return sorted(rows, key=lambda entry: (STATES.index(entry["state"]), entry["preset"], entry["run"]))


def make_row(state: Path, outputs: Path) -> dict[str, Any]:
    """Make the row of a run from its state directory and its outputs."""
    identity = state_records.read_identity(state) or {}
    starts = state_records.read_starts(state)
    last = starts[-1] if starts else {}
    events_read = read_events(state)
    step = next((event for event in reversed(events_read) if event["event"] == "step"), {})
    saved = state_records.read_save_time(state)
    entry: dict[str, Any] = {
        "preset": identity.get("preset"),
        "run": identity.get("key"),
        "run_id": identity.get("run_id"),
        "state": None,
        "step": events_read[-1]["step"] if events_read else 0,
        "steps": identity.get("steps"),
        "loss": step.get("loss"),
        "tokens_per_second": None,
        "eta_seconds": None,
        "checkpoint_age_seconds": None if saved is None else round(max(0.0, time.time() - saved), 1),
        "restarts": max(len(starts) - 1, 0),
        "host": last.get("host"),
        "slurm_job_id": last.get("slurm_job_id"),
        **peak_memory.find_largest_peak(starts),
        "reason": None,
        "state_directory": str(state),
    }
    holder = state_records.read_holder(state)
    outcome = read_json(outputs / "outcome.json")
    fault = state_records.read_fault(state)
    if holder is not None and state_records.is_alive(state, holder):
        entry["state"] = "running"
        entry["tokens_per_second"] = step.get("tokens_per_second")
        if "eta_seconds" in step:
            entry["eta_seconds"] = round(max(0.0, step["eta_seconds"] - max(0.0, time.time() - step["time"])), 1)
    elif outcome is not None and outcome.get("run_id") == identity.get("run_id"):
        return _add_outcome(outcome, entry)
    elif fault is not None:
        entry |= {"state": "fault", "reason": fault.get("reason")}
    elif holder is not None:
        entry |= {"state": "stale", "reason": f"no sign of {state_records.describe_holder(state)}"}
    else:
        fell = events_read[-1].get("reason") if events_read and events_read[-1]["event"] == "fault" else None
        entry |= {"state": "waiting", "reason": fell}
    return entry


def _add_outcome(outcome: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    return entry | {
        "run_id": outcome["run_id"],
        "state": "finished" if outcome["outcome"] == "completed" else "diverged",
        "step": outcome["step"],
        "steps": outcome["steps"],
        "loss": outcome["last_finite_loss"],
        "reason": outcome["reason"],
    }


def _find_outputs(state: Path, work: Path) -> Path:
    """``work/<preset>/runs/...`` for ``work/<preset>/state/...``."""
    preset, _, *run_parts = state.relative_to(work).parts
    return work.joinpath(preset, "runs", *run_parts)


def render_rows(rows: list[dict[str, Any]]) -> Any:
    """Write the rows as text of at most WIDTH columns: one or two lines a run, below its study and scale."""
    from rich.text import Text

    counts = {state: sum(entry["state"] == state for entry in rows) for state in STATES}
    summary = ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "no runs yet"
    text = Text(f"Plumbline runs: {summary}\n")
    if rows:
        text.append(f"{'':<{_NAME}}{_format_figures('step', 'loss', 'ETA', 'saved')}\n", style="bold")
    last_heading = ""
    for entry in rows:
        group, name = _split_title(entry)
        heading = f"{entry['state']}: {group}"
        if heading != last_heading:
            text.append(f"{heading}\n", style=_STYLES.get(entry["state"]))
            last_heading = heading
        # A name that leaves no room has a line of its own: people search for names, so they stay whole.
        text.append(f"  {name:<{_NAME - 2}}" if len(name) < _NAME - 2 else f"  {name}\n{'':<{_NAME}}")
        loss = entry.get("loss")
        figures = _format_figures(
            f"{entry['step']}/{entry['steps']}",
            "" if loss is None else f"{loss:.4f}",
            format_clock(entry.get("eta_seconds")),
            format_clock(entry.get("checkpoint_age_seconds")),
        )
        text.append(f"{figures.rstrip()}\n")
        for line in textwrap.wrap(_format_details(entry), WIDTH - 4, break_long_words=False, break_on_hyphens=False):
            text.append(f"    {line}\n", style="dim")
    text.rstrip()
    return text


def _format_figures(step: str, loss: str, eta: str, saved: str) -> str:
    return f"{step:>13}{loss:>10}{eta:>11}{saved:>11}"


def _split_title(entry: dict[str, Any]) -> tuple[str, str]:
    """What is above a run's method and seed, and these."""
    path = f"{entry['preset']}/{entry['run']}" if entry["run"] else str(entry["state_directory"])
    *parents, method, seed = path.split("/")
    return visible("/".join(parents)), visible(f"{method}/{seed}")


def _format_details(entry: dict[str, Any]) -> str:
    """What is worth a second line: where a run is running and how fast, how often it began, what it took of memory, why
    it does not go on."""
    facts = []
    if entry.get("tokens_per_second") is not None:
        facts.append(f"{entry['tokens_per_second']:,.0f} tokens/s")
    if entry["state"] in ("running", "stale") and entry.get("host"):
        job = f" (SLURM job {entry['slurm_job_id']})" if entry.get("slurm_job_id") else ""
        facts.append(f"on {entry['host']}{job}")
    if entry["state"] != "finished" and entry.get("restarts"):
        facts.append(f"started {entry['restarts'] + 1} times")
    if entry["state"] != "finished" and entry.get("peak_memory_bytes"):
        facts.append(f"at most {format_peak_memory(entry)}")
    if entry.get("reason"):
        facts.append(entry["reason"])
    return visible("; ".join(facts))


def arguments() -> command_line.Parser:
    """Build the command-line parser of `plumbline status`."""
    parser = command_line.Parser("Lists the runs and their progress.")
    parser.add_argument("--work", type=Path, default=_WORK, help="folder with the work of each preset (default: work)")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    return parser


def main() -> int:
    """Run `plumbline status`: print the runs, as a table or as JSON."""
    options = arguments().parse_args()
    if not options.work.is_dir() and options.work != _WORK:  # the default one is made by the first run
        raise PlumblineError(f"--work: there is no folder {options.work}; name the folder with the work of each preset")
    if options.json:
        print(json.dumps(list_runs(options.work), indent=2))
        return 0
    from rich.console import Console

    Console().print(render_rows(list_runs(options.work)), soft_wrap=True)
    return 0


if __name__ == "__main__":
    command_line.run(main)

"""``python -m plumbline.operate.status``: every run that was ever started, and how it is doing.

Read from the state directories under ``work/<preset>/state`` and the outcomes under ``work/<preset>/runs``; nothing is
asked of Snakemake or SLURM, so it works on any machine that sees the files.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

from plumbline import cli
from plumbline.train import lease
from plumbline.train.state import FAULT, IDENTITY, STARTS, read_json

#: What a run may be doing, in the order in which the table shows them.
STATES = ("running", "stale", "fault", "waiting", "diverged", "finished")
_STYLES = {"running": "green", "stale": "yellow", "fault": "red", "diverged": "magenta", "finished": "dim"}
#: Bytes of the progress file's end that are read.
_TAIL = 65536


def collect(work: Path) -> list[dict[str, Any]]:
    """One row a run, by state and key. Times are in seconds; None where nothing is known."""
    rows = [row(path.parent, _outputs(path.parent, work)) for path in _identities(work)]
    known = {(entry["preset"], entry["run"]) for entry in rows}
    for path in sorted(work.glob("*/runs/*/*/*/*/outcome.json")):
        content = read_json(path)
        if content is None:
            continue
        key = "/".join(path.parent.parts[-4:])
        if (content["preset"], key) not in known:
            rows.append(_ended(content, {"preset": content["preset"], "run": key, "state_directory": None}))
    return sorted(rows, key=lambda entry: (STATES.index(entry["state"]), entry["preset"], entry["run"]))


def row(state: Path, outputs: Path) -> dict[str, Any]:
    """What one state directory and the run's outputs tell."""
    identity = read_json(state / IDENTITY) or {}
    starts = read_json(state / STARTS) or []
    last = starts[-1] if starts else {}
    events = _events(state / "progress.jsonl")
    step = next((event for event in reversed(events) if event["event"] == "step"), {})
    saved = [path.stat().st_mtime for path in state.glob("step-*[0-9d]/metadata.json")]
    found: dict[str, Any] = {
        "preset": identity.get("preset"),
        "run": identity.get("key"),
        "run_id": identity.get("run_id"),
        "state": None,
        "step": events[-1]["step"] if events else 0,
        "steps": identity.get("steps"),
        "loss": step.get("loss"),
        "tokens_per_second": None,
        "eta_seconds": None,
        "checkpoint_age_seconds": round(max(0.0, time.time() - max(saved)), 1) if saved else None,
        "restarts": max(len(starts) - 1, 0),
        "host": last.get("host"),
        "slurm_job_id": last.get("slurm_job_id"),
        "reason": None,
        "state_directory": str(state),
    }
    holder = lease.read(state / lease.NAME)
    outcome = read_json(outputs / "outcome.json")
    fault = read_json(state / FAULT)
    if holder is not None and _alive(state, holder):
        found["state"] = "running"
        found["tokens_per_second"] = step.get("tokens_per_second")
        if "eta_seconds" in step:
            found["eta_seconds"] = round(max(0.0, step["eta_seconds"] - (time.time() - step["time"])), 1)
    elif outcome is not None and outcome.get("run_id") == identity.get("run_id"):
        return _ended(outcome, found)
    elif fault is not None:
        found |= {"state": "fault", "reason": fault.get("reason")}
    elif holder is not None:
        found |= {"state": "stale", "reason": f"no sign of {lease.describe(holder)}"}
    else:
        fell = events[-1].get("reason") if events and events[-1]["event"] == "fault" else None
        found |= {"state": "waiting", "reason": fell}
    return found


def _ended(outcome: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    return found | {
        "run_id": outcome["run_id"],
        "state": "finished" if outcome["outcome"] == "completed" else "diverged",
        "step": outcome["step"],
        "steps": outcome["steps"],
        "loss": outcome["last_finite_loss"],
        "reason": outcome["reason"],
    }


def _identities(work: Path) -> list[Path]:
    found = work.glob(f"*/state/*/*/*/*/{IDENTITY}")
    return sorted(path for path in found if ".set-aside-" not in path.parent.name)


def _outputs(state: Path, work: Path) -> Path:
    """``work/<preset>/runs/...`` for ``work/<preset>/state/...``."""
    preset, _, *rest = state.relative_to(work).parts
    return work.joinpath(preset, "runs", *rest)


def _alive(state: Path, holder: dict[str, Any]) -> bool:
    if holder and lease.dead(holder):
        return False
    try:
        silent = time.time() - (state / lease.NAME).stat().st_mtime
    except FileNotFoundError:
        return False
    return silent <= holder.get("limit", 120.0)


def _events(path: Path) -> list[dict[str, Any]]:
    """The last events; a line that is only half written, or half read, is not one."""
    try:
        with open(path, "rb") as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - _TAIL))
            lines = handle.read().splitlines()
    except FileNotFoundError:
        return []
    events = []
    for line in lines:
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return [event for event in events if isinstance(event, dict)]


def table(rows: list[dict[str, Any]]) -> Any:
    """The rows as a rich table."""
    from rich.table import Table

    counts = {state: sum(entry["state"] == state for entry in rows) for state in STATES}
    summary = ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "no runs yet"
    shown = Table(
        title=f"Plumbline runs: {summary}",
        title_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        collapse_padding=True,
    )
    shown.add_column("run", overflow="fold", min_width=16)  # the one that gives way on a narrow terminal
    shown.add_column("state", no_wrap=True)
    for name in ("step", "loss", "tokens/s", "ETA", "saved", "starts"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("host", no_wrap=True)
    for entry in rows:
        style = _STYLES.get(entry["state"], "")
        rate, loss, saved = (entry.get(key) for key in ("tokens_per_second", "loss", "checkpoint_age_seconds"))
        shown.add_row(
            f"{entry['preset']}/{entry['run']}" if entry["run"] else entry["state_directory"],
            f"[{style}]{entry['state']}[/]" if style else entry["state"],
            f"{entry['step']}/{entry['steps']}",
            "" if loss is None else f"{loss:.4f}",
            "" if rate is None else f"{rate:,.0f}",
            _duration(entry.get("eta_seconds")),
            _duration(saved),
            str(entry["restarts"] + 1 if "restarts" in entry else ""),
            ", ".join(str(entry[key]) for key in ("host", "slurm_job_id") if entry.get(key)),
        )
    return shown


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def main() -> int:
    """Run the verb."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.operate.status", description="The runs and how they do.")
    parser.add_argument("--work", type=Path, default=Path("work"), help="where presets keep their work (default: work)")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--watch", action="store_true", help="go on until interrupted")
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="with --watch (default: 2)")
    given = parser.parse_args()
    if given.json:
        print(json.dumps(collect(given.work), indent=2))
        return 0
    from rich.console import Console, Group
    from rich.live import Live

    def view() -> Any:
        rows = collect(given.work)
        reasons = [f"{entry['run']}: {entry['reason']}" for entry in rows if entry.get("reason")]
        return Group(table(rows), *reasons)

    console = Console()
    if not given.watch:
        console.print(view())
        return 0
    try:
        with Live(view(), console=console, auto_refresh=False) as live:
            while True:
                time.sleep(given.every)
                live.update(view(), refresh=True)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    cli.run(main)

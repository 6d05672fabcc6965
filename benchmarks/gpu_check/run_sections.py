"""Carries out the sections of one call in their order, each with its seconds, whatever becomes of those before."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.gpu_check import measured_rows, section_worker
from benchmarks.gpu_check.measured_rows import BEGUN, CONTINUES, FAILED
from benchmarks.gpu_check.section_worker import EXIT_FRESH_PROCESS
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.model.allocator import GPU_ALLOCATOR

TABLE = "benchmarks.gpu_check.sections"
FINISHED, OUT_OF_TIME = "finished", "out of time; the next call continues"
#: Seconds that a process may go beyond its time to finish its row, and then to end when it is told to.
GRACE = 12.0
#: A row that was cut off so often is given up.
TRIES = 2


def run_sections(
    names: list[str], path: Path, device: str, seconds: float, report: Callable[[str], None],
    *, table: str = TABLE, grace: float = GRACE,
) -> bool:  # fmt: skip
    """Go through the sections, at most `seconds` long (beyond that `grace` for the row at hand).

    A section has the seconds that its table states, and more where those before it, or finished ones, leave some over.

    Returns:
        Whether every row of every section has its end.
    """
    end, sections = time.time() + seconds, importlib.import_module(table).SECTIONS
    state = measured_rows.read(path)
    finished = [name for name in names if state.section(name).missing == []]
    reserved = sum(sections[name].seconds + grace for name in names if name not in finished)
    for name in names:
        if name in finished:
            report(f"{name}: finished before")
            continue
        reserved -= sections[name].seconds + grace
        until = min(end, max(time.time() + sections[name].seconds, end - reserved))
        ended = _run_section(name, table, path, device, until, grace) if time.time() < end else OUT_OF_TIME
        if ended is not None:
            measured_rows.end(path, name, ended)
        report(f"{name}: {measured_rows.read(path).section(name).ended}")
    return all(measured_rows.read(path).section(name).missing == [] for name in names)


def _run_section(name: str, table: str, path: Path, device: str, until: float, grace: float) -> str | None:
    """Run processes for one section until it is done or its time is out; how it ended, None where one wrote it."""
    while True:
        code = _run_process(name, table, path, device, until, grace)
        section = measured_rows.read(path).section(name)
        began = next(iter(section.having(BEGUN)), None)
        if began is not None:
            reason = "its section's time was out" if code is None else f"its process ended with {code}, see the log"
            final = code is not None or section.rows[began].tries >= TRIES
            measured_rows.record(path, name, began, FAILED if final else CONTINUES, reason=reason)
        elif code == 0:
            return FINISHED
        elif code == 1:
            return None
        elif code not in (None, EXIT_RUN_AGAIN, EXIT_FRESH_PROCESS):
            return f"failed: its process ended with {code}, see the log"
        if time.time() >= until or code in (None, EXIT_RUN_AGAIN):
            return FINISHED if measured_rows.read(path).section(name).missing == [] else OUT_OF_TIME


def _run_process(name: str, table: str, path: Path, device: str, until: float, grace: float) -> int | None:
    """Run the worker, whose output goes into a log next to the state; its exit code, or None if it had to be ended."""
    command = [sys.executable, "-m", section_worker.__name__, name, table, str(path), device, str(until)]
    with path.with_suffix(".log").open("a", encoding="utf-8") as log:
        print(f"== {name}", file=log, flush=True)
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=GPU_ALLOCATOR | os.environ)
        try:
            return process.wait(max(until - time.time(), 0) + grace)
        except subprocess.TimeoutExpired:
            process.terminate()
            return None
        finally:
            try:
                process.wait(grace)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

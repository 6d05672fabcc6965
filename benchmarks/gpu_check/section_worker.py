"""Carries out one section in a process of its own: the rows that are missing, until the time is out.

    python -m benchmarks.gpu_check.section_worker SECTION TABLE FILE DEVICE UNTIL [KEY ...]

TABLE: the module that lists the section; UNTIL: a second of the clock (time.time). Rows with these keys are carried out
once and forgotten, as several processes do side by side before the section's own rows: Triton and Inductor keep what
they compile in folders that processes share, which takes seconds of one core a kernel, and a machine with a GPU has
many cores.

Exit codes: 0, every row has its end; 75, out of time; 76, start another process for the rest (the device's context is
ruined); 1, the section cannot begin.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks.gpu_check import measured_rows
from benchmarks.gpu_check.measured_rows import BEGUN, FAILED, MEASURED
from benchmarks.gpu_check.sections import Section, SectionCall
from plumbline.core.command_line import EXIT_RUN_AGAIN

EXIT_FRESH_PROCESS = 76
#: Of what is left of a section's time, for its processes ahead.
AHEAD_SHARE = 0.5


def carry_out(name: str, section: Section, path: Path, call: SectionCall) -> int:
    """Measure the rows that are missing; the exit code."""
    rows = section.rows(call)
    state = measured_rows.read(path)
    state.section(name).planned = [*rows]
    measured_rows.write(path, state)
    missing = state.section(name).missing or []
    if section.processes and missing and not call.rehearsal:  # a processor has no kernels to compile
        _carry_out_ahead(missing, section.processes, call)
    for key in missing:
        # What is cut off is begun again from nothing: better not begun. Toy rows are quick.
        if time.time() >= call.until - (0.0 if call.rehearsal else section.least):
            return EXIT_RUN_AGAIN
        measured_rows.record(path, name, key, BEGUN)
        began = time.monotonic()
        try:
            values = rows[key]()
        except Exception as error:
            traceback.print_exc()
            measured_rows.record(path, name, key, FAILED, reason=format_error(error))
            # An illegal access leaves a context in which every later call fails.
            if "CUDA" in str(error) and "out of memory" not in str(error):
                return EXIT_FRESH_PROCESS
            traceback.clear_frames(error.__traceback__)
        else:
            took = round(time.monotonic() - began, 2)
            measured_rows.record(path, name, key, MEASURED, took_seconds=took, values=values)
        _free()
    return 0


def _carry_out_ahead(keys: list[str], processes: int, call: SectionCall) -> None:
    """Have processes go through the rows; those that have not ended in their share of the time are ended."""
    count = min(processes, len(os.sched_getaffinity(0)), len(keys))
    workers = [subprocess.Popen([sys.executable, *sys.orig_argv[1:], *keys[number::count]]) for number in range(count)]
    limit = time.time() + AHEAD_SHARE * max(call.until - time.time(), 0.0)
    try:
        for worker in workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(max(limit - time.time(), 0.0))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    print(f"ahead: {len(keys)} rows by {count} processes", flush=True)


def end_with_the_call() -> None:
    """Have the kernel send SIGTERM when the process dies that started this one: the device is the next call's then."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def format_error(error: BaseException) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def _free() -> None:
    """Give back what the last row has left on the device."""
    gc.collect()
    # What is there after the first row is what was imported: half a second to look through, and nothing of it goes.
    if not gc.get_freeze_count():
        gc.freeze()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def main() -> int:
    name, table, path, device, until, *ahead = sys.argv[1:]
    end_with_the_call()
    section, call = importlib.import_module(table).SECTIONS[name], SectionCall(device=device, until=float(until))
    if not ahead:
        try:
            return carry_out(name, section, Path(path), call)
        except Exception as error:  # of what plans the rows
            traceback.print_exc()
            measured_rows.end(Path(path), name, f"failed: {format_error(error)}")
            return 1
    rows = section.rows(call, ahead=True)
    for key in ahead:
        try:
            rows[key]()
        except Exception as error:  # its own turn says it
            print(f"ahead: {key}: {format_error(error)}", flush=True)
        _free()
    return 0


if __name__ == "__main__":
    sys.exit(main())

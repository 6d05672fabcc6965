"""Carries out one section in a process of its own: the rows that are missing, until the time is out.

    python -m benchmarks.gpu_check.section_worker SECTION TABLE FILE DEVICE UNTIL [KEY ...]

TABLE: the module that lists the section; UNTIL: a second of the clock (time.time). Rows with these keys are carried out
once and forgotten, as several processes do side by side before the section's own rows: Triton and Inductor keep what
they compile in folders that processes share, which takes seconds of one core a kernel, and a machine with a GPU has
many cores.

Exit codes: 0, every row has its end; 75, the rest is another process's: the time is out, or the device's context is
ruined.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
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
from benchmarks.gpu_check.measured_rows import FAILED, MEASURED
from benchmarks.gpu_check.sections import Section, SectionCall
from plumbline.core.command_line import EXIT_RUN_AGAIN

#: Of what is left of a section's time, for its processes ahead.
AHEAD_SHARE = 0.5


def carry_out(name: str, section: Section, path: Path, call: SectionCall) -> int:
    """Measure the rows that are missing; the exit code."""
    state = measured_rows.read(path)
    try:
        rows = section.rows(call)
    except Exception as error:  # as without a package: one row says it
        rows = {"all rows": functools.partial(_refuse, error)}
    state.section(name).planned = [*rows]
    measured_rows.write(path, state)
    missing = state.section(name).missing or []
    if section.processes and missing and not call.rehearsal:  # a processor has no kernels to compile
        _carry_out_ahead(missing, section.processes, call)
    for key in missing:
        if time.time() >= call.until:
            return EXIT_RUN_AGAIN
        began = time.monotonic()
        try:
            values = rows[key]()
        except Exception as error:
            traceback.print_exc()
            measured_rows.record(path, name, key, FAILED, reason=format_error(error))
            # An illegal access leaves a context in which every later call fails.
            if "CUDA" in str(error) and "out of memory" not in str(error):
                return EXIT_RUN_AGAIN
            traceback.clear_frames(error.__traceback__)
        else:
            took = round(time.monotonic() - began, 2)
            measured_rows.record(path, name, key, MEASURED, took_seconds=took, values=values)
        _free()
    return 0


def _refuse(error: Exception) -> dict[str, Any]:
    raise error


def _carry_out_ahead(keys: list[str], processes: int, call: SectionCall) -> None:
    """Have processes go through the rows; those that have not ended in their share of the time are ended."""
    count = min(processes, len(os.sched_getaffinity(0)), len(keys))
    workers = [subprocess.Popen([sys.executable, *sys.orig_argv[1:], *keys[number::count]]) for number in range(count)]
    limit = time.time() + AHEAD_SHARE * max(call.until - time.time(), 0.0)
    for worker in workers:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(max(limit - time.time(), 0.0))
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
    section = importlib.import_module(table).SECTIONS[name]
    call = SectionCall(device=device, until=float(until), ahead=bool(ahead))
    if not ahead:
        return carry_out(name, section, Path(path), call)
    rows = section.rows(call)
    for key in ahead:
        try:
            rows[key]()
        except Exception as error:  # its own turn says it
            print(f"ahead: {key}: {format_error(error)}", flush=True)
        _free()
    return 0


if __name__ == "__main__":
    sys.exit(main())

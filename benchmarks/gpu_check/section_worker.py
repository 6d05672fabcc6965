"""One section in a process of its own: the rows that are missing, until the time is out.

    python -m benchmarks.gpu_check.section_worker NAME MODULE --state-file FILE --section-call JSON

Exit codes: 0, every row has its end; 75, out of time or gone on with by the next call; 76, start another process for
the rest (the device's context is ruined); 1, the section cannot begin, which stands in the state.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
import time
import traceback
from pathlib import Path

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.compile_ahead import carry_out_ahead
from benchmarks.gpu_check.measured_rows import (
    FAILED,
    GOES_ON,
    MEASURED,
    NO_MEMORY,
    NOT_HERE,
    MeasuredRows,
    MissingOnThisMachine,
)
from benchmarks.gpu_check.section_processes import end_with_the_call, format_error, free
from plumbline.core.command_line import EXIT_RUN_AGAIN

EXIT_FRESH_PROCESS = 76


def carry_out(name: str, module: str, state: MeasuredRows, setting: SectionCall) -> int:
    """The exit code."""
    try:
        section = importlib.import_module(module)
        rows = section.rows(setting)
    except MissingOnThisMachine as error:
        state.end(name, f"{NOT_HERE}: {error}")
        return 1
    except Exception as error:
        traceback.print_exc()
        state.end(name, f"failed: {format_error(error)}")
        return 1
    state.plan(name, list(rows))
    missing = state.missing(name) or []
    # A processor has no kernels to compile.
    if (processes := getattr(section, "AHEAD", 0)) and missing and setting.device != "cpu":
        state.section(name)["ahead"] = carry_out_ahead(module, missing, setting, processes)
        state.write()
    # What is cut off is begun again from nothing: better not begun. Toy rows are quick.
    least = 0.0 if setting.rehearsal else getattr(section, "LEAST", 0.0)
    for key in state.missing(name) or []:
        if time.time() >= setting.until - least:
            return EXIT_RUN_AGAIN
        state.begin(name, key)
        began = time.monotonic()
        try:
            values = rows[key]()
        except Exception as error:
            traceback.print_exc()
            status = NO_MEMORY if out_of_memory(error) else FAILED
            state.record(name, key, status, reason=format_error(error))
            # An illegal access leaves a context in which every later call fails.
            if status == FAILED and "CUDA" in str(error):
                return EXIT_FRESH_PROCESS
            traceback.clear_frames(error.__traceback__)
        else:
            status = values.pop("status", MEASURED)
            if status == GOES_ON:  # by itself, which is not a try that has failed
                values["tries"] = 0
            state.record(name, key, status, took_seconds=round(time.monotonic() - began, 2), **values)
            if status == GOES_ON:
                return EXIT_RUN_AGAIN
        free()
    return 0


def out_of_memory(error: BaseException) -> bool:
    """Whether the device, or the host, has no room (torch's class by name: this file imports no torch)."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return bool(kinds & {"OutOfMemoryError", "MemoryError"}) or "out of memory" in str(error)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("module")
    parser.add_argument("--state-file", type=Path, required=True)
    parser.add_argument("--section-call", type=SectionCall.from_json, required=True)
    options = parser.parse_args()
    # As an exception, so that a row that has started a process of its own can end it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_RUN_AGAIN))
    end_with_the_call()
    return carry_out(options.name, options.module, MeasuredRows.read(options.state_file), options.section_call)


if __name__ == "__main__":
    sys.exit(main())

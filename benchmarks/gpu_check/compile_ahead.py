"""Rows carried out once, side by side, before they are measured one after another: what they compile is then there.

    python -m benchmarks.gpu_check.compile_ahead MODULE --section-call JSON KEY ...

Triton keeps what it compiles in a folder that processes share. A kernel takes it seconds of one core, a section has
dozens of them, and a machine with a GPU many cores. What rows return here, and what they raise, is forgotten: their own
turn says it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import subprocess
import sys
import time
from typing import Any

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.section_processes import end_with_the_call, format_error, free

#: Of what is left of the section's time.
SHARE = 0.5


def carry_out_ahead(module: str, keys: list[str], setting: SectionCall, most: int) -> dict[str, Any]:
    """Let at most `most` processes go through the rows `keys`; what has not ended in its share of the time is ended.

    Returns:
        `processes`, `rows`, `seconds`, and how many processes were `ended` or ended by themselves without finishing.
    """
    began = time.monotonic()
    many = min(most, len(os.sched_getaffinity(0)), len(keys))
    command = [
        sys.executable,
        "-m",
        "benchmarks.gpu_check.compile_ahead",
        module,
        "--section-call",
        setting.to_json(),
        "--",
    ]
    processes = [subprocess.Popen([*command, *keys[number::many]]) for number in range(many)]
    limit = time.time() + SHARE * max(setting.until - time.time(), 0.0)
    unfinished = 0
    try:
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(limit - time.time(), 0.0))
            unfinished += process.poll() != 0
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return {
        "processes": many,
        "rows": len(keys),
        "seconds": round(time.monotonic() - began, 1),
        "unfinished": unfinished,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("--section-call", type=SectionCall.from_json, required=True)
    parser.add_argument("keys", nargs="+")
    options = parser.parse_args()
    end_with_the_call()
    section = importlib.import_module(options.module)
    rows = getattr(section, "ahead_rows", section.rows)(options.section_call)
    for key in options.keys:
        try:
            rows[key]()
        except Exception as error:
            print(f"ahead: {key}: {format_error(error)}", flush=True)
        free()


if __name__ == "__main__":
    main()

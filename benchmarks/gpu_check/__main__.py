"""What a GPU does with Plumbline: correctness, speed next to what the device reaches, training steps.

    make gpu-check                                # on a machine with a GPU; again: continues
    python -m benchmarks.gpu_check --minutes 60   # the same with more time
    python -m benchmarks.gpu_check --rehearse     # toy sizes on a processor, some minutes

From the repository's root. Sections come in the order of their worth, each with its seconds (docs/gpu-box.md lists
them). Rows are written as they come into benchmarks/gpu_check_<device>.json, and the Markdown next to it shows them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.gpu_check import measured_rows
from benchmarks.gpu_check.measured_rows import FAILED, State
from benchmarks.gpu_check.run_sections import run_sections
from benchmarks.gpu_check.sections import MINUTES, SECTIONS
from plumbline.core import numeric_environment
from plumbline.core.command_line import EXIT_RUN_AGAIN, run
from plumbline.core.errors import PlumblineError


def describe_machine(device: str) -> dict[str, Any]:
    """The machine, asked of a process of its own: this one never takes memory of the device.

    Raises:
        PlumblineError: the device is not there.
    """
    command = [sys.executable, "-m", "benchmarks.gpu_check.device_under_test", device]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise PlumblineError(done.stderr.strip().splitlines()[-1].removeprefix("error: "))
    return json.loads(done.stdout)


def find_place(device: str, out: Path | None, *, rehearsal: bool) -> Path:
    """Where the state lies: by the device's name, so that two devices never share one; rehearsals where git ignores."""
    folder = out or Path("benchmarks/runs" if rehearsal else "benchmarks")
    short = re.sub(r"[^a-z0-9]+", "_", device.lower().replace("nvidia", "")).strip("_")
    return folder / f"gpu_check_{'rehearsal' if rehearsal else short}.json"


def open_state(path: Path, machine: dict[str, Any], *, rehearsal: bool, retry_failed: bool = False) -> None:
    """Begin the state, or continue it: without the rows that failed, if those are to be tried again.

    Raises:
        PlumblineError: it is of another device.
    """
    state = measured_rows.read(path) if path.exists() else State(rehearsal=rehearsal, machine=machine)
    if state.device != machine["device"] or state.rehearsal != rehearsal:
        raise PlumblineError(
            f"{path}: measured on {state.device}, and this call is for {machine['device']}; name another"
        )
    state.machine, commit = machine, str(machine.get("git_commit"))
    state.commits += [] if commit in state.commits else [commit]
    state.sections = {name: state.section(name) for name in SECTIONS} | state.sections
    for section in state.sections.values() if retry_failed else ():
        section.rows = {key: row for key, row in section.rows.items() if row.status != FAILED}
    measured_rows.write(path, state)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rehearse", action="store_true", help="toy sizes on a processor: nothing is measured")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of this call (default: %(default)s)")
    parser.add_argument("--retry-failed", action="store_true", help="try rows again that failed")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="of the files (default: benchmarks/)")
    options = parser.parse_args()
    numeric_environment.require_wide_products()  # else every row fails by it, finally
    device = "cpu" if options.rehearse else "cuda"
    machine = describe_machine(device)
    path = find_place(str(machine["device"]), options.out, rehearsal=options.rehearse)
    open_state(path, machine, rehearsal=options.rehearse, retry_failed=options.retry_failed)
    whole = run_sections([*SECTIONS], path, device, 60 * options.minutes)
    print(path.with_suffix(".md").read_text(encoding="utf-8"))
    print(f"{path}: {'whole' if whole else 'not whole: the same command continues'}")
    return 0 if whole else EXIT_RUN_AGAIN


if __name__ == "__main__":
    run(main)

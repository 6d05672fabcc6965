"""What the jobs of the stand-in workflow do: `show` what SLURM gave them, or `count` to a number, slowly.

`count` is a trainer without a model: it keeps its position in a state file, goes on from there, saves and exits 75
when it is told to end, and writes its output last; not before a file named `hold` is gone, if there is one.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def show(output: Path) -> None:
    """Write SLURM's own description of this job."""
    command = ["scontrol", "show", "job", "--oneliner", os.environ["SLURM_JOB_ID"]]
    output.write_text(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def count(output: Path, state: Path) -> None:
    """Count to STEPS at ten a second, resumably."""
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stop.append(number))
    position = int(state.read_text()) if state.exists() else 0
    with Path(f"{state}.starts").open("a") as starts:
        print(position, os.getpid(), os.environ["SLURM_JOB_ID"], os.environ["SLURMD_NODENAME"], file=starts)
    steps = int(os.environ.get("STEPS", "100"))
    while position < steps or Path("hold").exists():
        time.sleep(0.1)
        position = min(position + 1, steps)
        if position % 10 == 0 or stop:
            aside = state.with_suffix(".tmp")
            aside.write_text(str(position))
            aside.replace(state)
        if stop:
            print(f"told to end; saved at step {position}", flush=True)
            sys.exit(75)
    output.write_text(f"{position}\n")


def main() -> None:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["show", "count"])
    parser.add_argument("output", type=Path)
    parser.add_argument("--state", type=Path)
    arguments = parser.parse_args()
    if arguments.what == "show":
        show(arguments.output)
    else:
        count(arguments.output, arguments.state)


if __name__ == "__main__":
    main()

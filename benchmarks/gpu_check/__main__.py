"""What a GPU does with Plumbline: correctness, speed beside its floors and beside others, and a table, in ten minutes.

    make gpu-check                                                      # on a machine with a GPU; again: goes on
    python -m benchmarks.gpu_check --minutes 60                         # the same with more time
    python -m benchmarks.gpu_check --device cpu --sizes tiny            # a rehearsal without one, a minute

From the repository's root. Sections, each with its share of the time: the device's own ceilings; every mixer against
its reference in float64; DDP over NCCL on one rank; steps in which nothing waits for the device; attention's time
beside flash attention's and the floor; step time, memory and MFU at paper size; tokens a second beside Transformers and
nanoGPT; Table 2 at `mini` with what is left. Rows are written as they come into benchmarks/gpu_check_<device>.json, and
the Markdown beside it is drawn from that.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.gpu_check.conduct import conduct
from benchmarks.gpu_check.page import page
from benchmarks.gpu_check.sections import MODULES, ORDER
from benchmarks.gpu_check.setting import SIZES, Setting
from benchmarks.gpu_check.state import State
from plumbline.core.command_line import EXIT_RUN_AGAIN, run
from plumbline.core.errors import PlumblineError

FOLDER = Path("benchmarks")


def machine(device: str) -> dict[str, object]:
    """The machine, asked of a process of its own: this one never takes memory of the device.

    Raises:
        PlumblineError: the device is not there.
    """
    command = [sys.executable, "-m", "benchmarks.gpu_check.device", device]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise PlumblineError(done.stderr.strip().splitlines()[-1].removeprefix("error: "))
    return json.loads(done.stdout)


def place(setting: Setting, device: str) -> Path:
    """Where the state lies: by the device's name, so that two devices never share one; rehearsals where git ignores."""
    if setting.rehearsal:
        return FOLDER / "runs" / f"gpu_check_{setting.device}_{setting.sizes}.json"
    short = re.sub(r"[^a-z0-9]+", "_", device.lower().replace("nvidia", "")).strip("_")
    return FOLDER / f"gpu_check_{short}.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--sizes", choices=SIZES, default="paper", help="tiny: toy shapes, for a rehearsal")
    parser.add_argument("--minutes", type=float, help="of this call (9.5, or 0.9 at toy sizes); the next one goes on")
    parser.add_argument("--sections", nargs="+", choices=ORDER, default=ORDER)
    parser.add_argument(
        "--nanogpt", metavar="FOLDER", help="a checkout of nanoGPT, whose model.py is timed beside ours"
    )
    parser.add_argument("--again", action="store_true", help="try rows again that failed or found no memory")
    parser.add_argument("--afresh", action="store_true", help="forget what was measured before")
    parser.add_argument(
        "--out", type=Path, help="the JSON, the Markdown beside it; default: benchmarks/, by the device"
    )
    given = parser.parse_args()
    if given.device == "cpu" and given.sizes != "tiny":
        raise PlumblineError("--device cpu: paper shapes take a processor days; add --sizes tiny for a rehearsal")
    if given.minutes is not None and not given.minutes > 0:
        raise PlumblineError(f"--minutes {given.minutes:g}: nothing is measured in that; give some minutes")
    setting = Setting(device=given.device, sizes=given.sizes, nanogpt=given.nanogpt)
    here = machine(given.device)
    path = given.out or place(setting, str(here["device"]))
    if given.afresh:
        path.unlink(missing_ok=True)
    state = State.read(path)
    told = {"device": here["device"], "sizes": given.sizes, "rehearsal": setting.rehearsal}
    before = state.content.setdefault("told", told)
    if before != told:
        raise PlumblineError(
            f"{path}: measured on {before['device']} at {before['sizes']} sizes, and this call is for {here['device']} "
            f"at {given.sizes} ones; name another with --out"
        )
    state.content["machine"] = here
    commits = state.content.setdefault("commits", [])
    commits += [] if here.get("git_commit") in commits else [here.get("git_commit")]
    state.write()
    if given.again:
        state.again()
    minutes = setting.size.minutes if given.minutes is None else given.minutes
    modules = {name: MODULES[name] for name in ORDER if name in given.sections}
    whole = conduct(modules, path, setting, 60 * minutes, lambda words: print(words, flush=True))
    written = path.with_suffix(".md")
    written.write_text(page(State.read(path), setting, MODULES), encoding="utf-8")
    print(written.read_text(encoding="utf-8"))
    print(f"{written}" + ("" if whole else "; not whole: the same command goes on"))
    return 0 if whole else EXIT_RUN_AGAIN


if __name__ == "__main__":
    run(main)

"""What a GPU does with Plumbline: correctness, speed beside its floors and beside others, and runs, ten minutes a call.

    make gpu-check                                                      # on a machine with a GPU; again: goes on
    python -m benchmarks.gpu_check --minutes 60                         # the same with more time
    python -m benchmarks.gpu_check --out NEW --from OLD                 # goes on from what a call left in OLD
    python -m benchmarks.gpu_check --out NEW/gpu_check_x.json --page    # only the page, of what is there
    python -m benchmarks.gpu_check --device cpu --sizes tiny            # a rehearsal without a GPU, some minutes

From the repository's root; on a machine without an index by `benchmarks.gpu_check.bare`. Sections come in the order of
their worth, each with its share of the time (docs/gpu-box.md lists them). Rows are written as they come into
benchmarks/gpu_check_<device>.json, and the Markdown beside it is drawn from that after every section.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.gpu_check.conduct import conduct
from benchmarks.gpu_check.page import page
from benchmarks.gpu_check.places import RUNS
from benchmarks.gpu_check.sections import MODULES, ORDER
from benchmarks.gpu_check.setting import SIZES, Setting
from benchmarks.gpu_check.state import State
from plumbline.core.command_line import EXIT_RUN_AGAIN, run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_bytes, atomic_write_text

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


def place(setting: Setting, device: str, out: Path | None = None) -> Path:
    """Where the state lies: by the device's name, so that two devices never share one; rehearsals where git ignores.
    `out` is another folder, or the file itself."""
    if out is not None and out.suffix == ".json":
        return out
    if setting.rehearsal:
        return (out or FOLDER / "runs") / f"gpu_check_{setting.device}_{setting.sizes}.json"
    short = re.sub(r"[^a-z0-9]+", "_", device.lower().replace("nvidia", "")).strip("_")
    return (out or FOLDER) / f"gpu_check_{short}.json"


def brought(folder: Path, into: Path) -> None:
    """Copy what an earlier call left, of this device or another, where nothing of that name is yet: JSON last, so that
    what belongs to it is there.

    Raises:
        PlumblineError: there is no such folder.
    """
    if not folder.is_dir():
        raise PlumblineError(f"--from {folder}: no such folder; in a first call leave it out, or name an empty one")
    found = sorted(folder.glob("gpu_check*.*"), key=lambda one: one.suffix == ".json")
    for one in found:
        if not (into / one.name).exists():
            atomic_write_bytes(into / one.name, one.read_bytes())
    print(f"{folder}: " + (", ".join(one.name for one in found) or "nothing was measured before"), flush=True)


def draw(path: Path, nanogpt: str | None = None) -> Path:
    """Write the page of what is recorded; where it is."""
    state = State.read(path)
    told = state.content["told"]
    setting = Setting(device=told["kind"], sizes=told["sizes"], nanogpt=nanogpt)
    atomic_write_text(path.with_suffix(".md"), page(state, setting, MODULES))
    return path.with_suffix(".md")


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--sizes", choices=SIZES, default="paper", help="tiny: toy shapes, for a rehearsal")
    parser.add_argument("--minutes", type=float, help="of this call (9.5, or 3 at toy sizes); the next one goes on")
    parser.add_argument("--sections", nargs="+", choices=ORDER, default=ORDER)
    parser.add_argument(
        "--nanogpt", metavar="FOLDER", help="a checkout of nanoGPT, whose model.py is timed beside ours"
    )
    parser.add_argument("--again", action="store_true", help="try rows again that failed or found no memory")
    parser.add_argument("--afresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--out", type=Path, help="folder of the files, or the JSON (default: benchmarks/)")
    parser.add_argument(
        "--from", type=Path, dest="before", metavar="FOLDER", help="what an earlier call left: go on from its JSON"
    )
    parser.add_argument("--page", action="store_true", help="measure nothing: draw the page of the JSON that --out is")
    return parser


def main() -> int:
    given = arguments().parse_args()
    if given.page:
        if given.out is None or not given.out.is_file():
            raise PlumblineError("--page draws one JSON: name it with --out")
        print(draw(given.out))
        return 0
    if given.device == "cpu" and given.sizes != "tiny":
        raise PlumblineError("--device cpu: paper shapes take a processor days; add --sizes tiny for a rehearsal")
    if given.minutes is not None and not given.minutes > 0:
        raise PlumblineError(f"--minutes {given.minutes:g}: nothing is measured in that; give some minutes")
    setting = Setting(device=given.device, sizes=given.sizes, nanogpt=given.nanogpt)
    here = machine(given.device)
    path = place(setting, str(here["device"]), given.out)
    if given.afresh:
        path.unlink(missing_ok=True)
        shutil.rmtree(RUNS, ignore_errors=True)
    if given.before is not None:
        brought(given.before, path.parent)
    state = State.read(path)
    told = {
        "device": here["device"],
        "kind": given.device,
        "sizes": given.sizes,
        "rehearsal": setting.rehearsal,
    }
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

    def say(words: str) -> None:
        print(words, flush=True)
        draw(path, given.nanogpt)

    whole = conduct(modules, path, replace(setting, beside=str(path.with_suffix(""))), 60 * minutes, say)
    written = draw(path, given.nanogpt)
    print(written.read_text(encoding="utf-8"))
    print(f"{written}" + ("" if whole else "; not whole: the same command goes on"))
    return 0 if whole else EXIT_RUN_AGAIN


if __name__ == "__main__":
    run(main)

"""What a GPU does with Plumbline: correctness, speed next to its floors and to others, and runs, ten minutes a call.

    make gpu-check                                                      # on a machine with a GPU; again: goes on
    python -m benchmarks.gpu_check --minutes 60                         # the same with more time
    python -m benchmarks.gpu_check --out NEW --continue-from OLD        # the same, from what a call left in OLD
    python -m benchmarks.gpu_check --out NEW/gpu_check_x.json --write-page-only # only the page, of what is there
    python -m benchmarks.gpu_check --device cpu --sizes tiny            # a rehearsal without a GPU, some minutes

From the repository's root; on a machine without an index by `benchmarks.gpu_check.bare_machine`. Sections come in the
order of their worth, each with its seconds (docs/gpu-box.md lists them). Rows are written as they come into
benchmarks/gpu_check_<device>.json, and the Markdown next to it is drawn from that after every section.
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

from benchmarks.gpu_check.call_settings import SIZES, SectionCall
from benchmarks.gpu_check.measured_rows import NOT_HERE, MeasuredRows
from benchmarks.gpu_check.output_folders import RUNS
from benchmarks.gpu_check.results_page import page
from benchmarks.gpu_check.run_sections import conduct
from benchmarks.gpu_check.sections import FIRST_CALL, FIRST_MINUTES, MODULES, ORDER, SECOND_CALL, SECONDS
from plumbline.core.command_line import EXIT_RUN_AGAIN, run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_bytes, atomic_write_text

FOLDER = Path("benchmarks")


def machine(device: str) -> dict[str, object]:
    """The machine, asked of a process of its own: this one never takes memory of the device.

    Raises:
        PlumblineError: the device is not there.
    """
    command = [sys.executable, "-m", "benchmarks.gpu_check.device_under_test", device]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise PlumblineError(done.stderr.strip().splitlines()[-1].removeprefix("error: "))
    return json.loads(done.stdout)


def place(setting: SectionCall, device: str, out: Path | None = None) -> Path:
    """Where the state lies: by the device's name, so that two devices never share one; rehearsals where git ignores.
    `out` is another folder, or the file itself."""
    if out is not None and out.suffix == ".json":
        return out
    if setting.rehearsal:
        return (out or FOLDER / "runs") / f"gpu_check_{setting.device}_{setting.sizes}.json"
    short = re.sub(r"[^a-z0-9]+", "_", device.lower().replace("nvidia", "")).strip("_")
    return (out or FOLDER) / f"gpu_check_{short}.json"


def copy_earlier_call(folder: Path, path: Path, call: dict[str, object]) -> None:
    """Copy what an earlier call left that goes on in `path`, unless that is there: JSON last, so that what belongs to
    it is there. Files of other devices stay where they are.

    Raises:
        PlumblineError: there is no such folder, or what lies there cannot be gone on with.
    """
    if not folder.is_dir():
        raise PlumblineError(
            f"--continue-from {folder}: no such folder; in a first call leave it out, or name an empty one"
        )
    if path.exists():
        print(f"--continue-from {folder}: nothing is taken, {path} is there and is gone on with", flush=True)
        return
    own = re.compile(rf"{re.escape(path.stem)}(_({'|'.join(ORDER)})_.*)?\.\w+")
    there = sorted(folder.glob("gpu_check*"), key=lambda file: (file.suffix == ".json", file.name))
    own_files = [file for file in there if own.fullmatch(file.name)]
    untaken = ", ".join(file.name for file in there if file not in own_files)
    untaken = f"; not taken: {untaken}, of no call on this device" if untaken else ""
    if folder / path.name not in own_files:
        print(f"--continue-from {folder}: no {path.name}, nothing was measured before{untaken}", flush=True)
        return
    require_same_call(MeasuredRows.read(folder / path.name), call)
    for file in own_files:
        if not file.is_file():
            raise PlumblineError(f"{file}: not a file, as all are that a call leaves; move it away")
    for file in own_files:
        atomic_write_bytes(path.parent / file.name, file.read_bytes())
    print(f"--continue-from {folder}: taken: {', '.join(file.name for file in own_files)}{untaken}", flush=True)


def require_same_call(state: MeasuredRows, call: dict[str, object]) -> None:
    """Nothing, if the state is of calls like this one.

    Raises:
        PlumblineError: it is of another device, or of other sizes.
    """
    before = state.told()
    if before != call:
        raise PlumblineError(
            f"{state.path}: measured on {before['device']} at {before['sizes']} sizes, and this call is for "
            f"{call['device']} at {call['sizes']} ones; name another"
        )


def require_writable(path: Path) -> None:
    """Nothing, if the state can be written.

    Raises:
        PlumblineError: there is a file where a folder is needed, or a folder where the file is to be.
    """
    if path.is_dir():
        raise PlumblineError(f"--out {path}: a folder; name one without .json at its end, or a file in it")
    there = next(folder for folder in path.absolute().parents if folder.exists())
    if not there.is_dir():
        raise PlumblineError(f"--out: {there} is a file; name a folder, or a file that ends in .json")


def draw(path: Path) -> Path:
    """Write the page of what is recorded; where it is."""
    state = MeasuredRows.read(path)
    call = state.told()
    setting = SectionCall(device=call["kind"], sizes=call["sizes"])
    atomic_write_text(path.with_suffix(".md"), page(state, setting, MODULES))
    return path.with_suffix(".md")


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--sizes", choices=SIZES, default="paper", help="tiny: toy shapes, for a rehearsal")
    parser.add_argument("--minutes", type=float, default=FIRST_MINUTES, help="of this call; the next one goes on")
    parser.add_argument("--sections", nargs="+", choices=ORDER, default=(*FIRST_CALL, *SECOND_CALL))
    parser.add_argument("--retry-failed", action="store_true", help="try rows again that failed or found no memory")
    parser.add_argument("--restart", action="store_true", help="forget what was measured before")
    parser.add_argument("--out", type=Path, help="folder of the files, or the JSON (default: benchmarks/)")
    parser.add_argument(
        "--continue-from",
        type=Path,
        dest="before",
        metavar="FOLDER",
        help="what an earlier call left: go on from its JSON",
    )
    parser.add_argument(
        "--write-page-only", action="store_true", help="measure nothing: draw the page of the JSON that --out is"
    )
    return parser


def main() -> int:
    options = arguments().parse_args()
    if options.write_page_only:
        if options.out is None or not options.out.is_file():
            raise PlumblineError("--write-page-only draws one JSON: name it with --out")
        print(draw(options.out))
        return 0
    if options.device == "cpu" and options.sizes != "tiny":
        raise PlumblineError("--device cpu: paper shapes take a processor days; add --sizes tiny for a rehearsal")
    if not options.minutes > 0:
        raise PlumblineError(f"--minutes {options.minutes:g}: nothing is measured in that; give some minutes")
    setting = SectionCall(device=options.device, sizes=options.sizes)
    here = machine(options.device)
    path = place(setting, str(here["device"]), options.out)
    require_writable(path)
    usual = place(setting, str(here["device"])).name
    if options.before is not None and path.name != usual:
        raise PlumblineError(
            f"--continue-from goes on in a file of the same name, {usual}: give --out a folder, not {path}"
        )
    call: dict[str, object] = {
        "device": here["device"],
        "kind": options.device,
        "sizes": options.sizes,
        "rehearsal": setting.rehearsal,
    }
    if options.restart:
        path.unlink(missing_ok=True)
        shutil.rmtree(RUNS, ignore_errors=True)
    if options.before is not None:
        copy_earlier_call(options.before, path, call)
    state = MeasuredRows.read(path)
    if path.exists():
        require_same_call(state, call)
    state.content["told"] = call
    state.content["machine"] = here
    commits = state.content.setdefault("commits", [])
    commits += [] if here.get("git_commit") in commits else [here.get("git_commit")]
    state.write()
    if options.retry_failed:
        state.again()
    modules = {name: MODULES[name] for name in ORDER if name in options.sections}

    def say(text: str) -> None:
        print(text, flush=True)
        draw(path)

    beside = replace(setting, beside=str(path.with_suffix("")))
    whole = conduct(modules, SECONDS, path, beside, 60 * options.minutes, say)
    written = draw(path)
    print(written.read_text(encoding="utf-8"))
    state = MeasuredRows.read(path)
    lacking = [name for name in modules if state.lacking(name)]
    print(
        f"{written}"
        + (f"; {NOT_HERE}: {', '.join(lacking)}" if lacking else "")
        + ("" if whole else "; not whole: the same command goes on")
    )
    return 0 if whole else EXIT_RUN_AGAIN


if __name__ == "__main__":
    run(main)

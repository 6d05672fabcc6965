"""From nothing to a first verdict: how long the wheel alone takes to install, how large it is, how fast it starts.

    python benchmarks/wheel_to_first_verdict.py        # half a minute; needs a Python package index

The wheel is built from this repository and installed by pip, nothing cached, into an empty virtual environment of the
same Python; nothing else is importable there. Megabytes are those of the environment's packages, pip's own left out.
How long the index takes is its own affair: that of the committed table lay on the same machine.
A start is measured in a process of its own: seconds of CPU (its children included) and of the clock, the least of so
many; the imports are what it has loaded in the end.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine_description import command, describe

from plumbline.core.command_line import positive
from plumbline.core.files import atomic_write_text

#: Three seeds each, as a stranger brings them.
NUMBERS = "method,seed,val_loss\n" + "".join(
    f"{method},{seed},{loss:.4f}\n"
    for method, losses in {"baseline": (3.281, 3.2834, 3.2795, 3.2822), "mine": (3.2701, 3.2689, 3.2713)}.items()
    for seed, loss in enumerate(losses, start=1)
)
TERMS = ("--baseline", "baseline", "--metric", "val_loss", "--lower-is-better")
STARTS = {
    "plumbline --help": ("--help",),
    "plumbline verdict results.csv": ("verdict", "results.csv", *TERMS),
    "plumbline audit": ("audit", "--out", "audit.csv"),
    "plumbline train": ("train",),
}
#: What none of them may load.
HEAVY = ("pandas", "torch", "scipy.stats", "snakemake", "matplotlib", "pyarrow")


def time_command(command: list[str | Path], folder: Path, codes: tuple[int, ...] = (0,)) -> tuple[float, float, str]:
    """CPU seconds, seconds of the clock, and what a command printed."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=own, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    passed, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in codes:
        sys.exit(f"error: {command} ended with {done.returncode}: {done.stdout[-2000:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, passed, done.stdout


def megabytes(folder: Path) -> float:
    """What a folder takes, in megabytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def by_package(python: Path, folder: Path) -> dict[str, float]:
    """Distribution -> megabytes of its files."""
    code = (
        "from importlib.metadata import distributions as all\n"
        "for d in all(): print(d.name, sum(f.locate().stat().st_size for f in d.files if f.locate().is_file()) / 1e6)"
    )
    lines = (line.split() for line in time_command([python, "-c", code], folder)[2].splitlines())
    return {name: float(size) for name, size in lines if name not in ("pip", "setuptools")}


def install(folder: Path) -> tuple[Path, list[str]]:
    """The Python of an environment that has the wheel, and the rows of what it took."""
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        folder,
    ]
    time_command([*build, Path(__file__).parents[1]], folder)
    (wheel,) = folder.glob("*.whl")
    environment = time_command([sys.executable, "-m", "venv", folder / "environment"], folder)
    python = folder / "environment/bin/python"
    quietly = ("--quiet", "--disable-pip-version-check", "--no-cache-dir")
    installed = time_command([python, "-m", "pip", "install", *quietly, wheel], folder)
    time_command([python, "-m", "pip", "download", *quietly, "--dest", folder / "fetched", wheel], folder)
    sizes = by_package(python, folder)
    names = sorted(sizes, key=lambda name: -sizes[name])[:4]
    largest = ", ".join(f"{name} {sizes[name]:.0f}" for name in names)
    return python, [
        f"| the wheel itself | | | {wheel.stat().st_size / 1e6:.1f} |",
        f"| an empty environment | {environment[0]:.1f} | {environment[1]:.1f} | |",
        f"| `pip install` of the wheel: {len(sizes)} packages ({largest}) | {installed[0]:.1f} | {installed[1]:.1f} "
        f"| {sum(sizes.values()):.0f} |",
        f"| what of it pip fetches from an index | | | {megabytes(folder / 'fetched'):.0f} |",
    ]


def start(python: Path, folder: Path, arguments: tuple[str, ...], times: int) -> tuple[float, float, int, list[str]]:
    """The least CPU and clock seconds of a start, the number of modules it loads, and which of them are heavy."""
    program = [python.parent / "plumbline", *arguments]
    timings = [time_command(program, folder, (0, 1))[:2] for _ in range(times)]
    output = time_command([python, "-X", "importtime", *program], folder, (0, 1))[2]
    modules = re.findall(r"^import time: .*\| +(\S+)$", output, re.M)
    heavy = sorted({name for name in modules if name in HEAVY})
    return min(used for used, _ in timings), min(passed for _, passed in timings), len(modules), heavy


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=positive, default=5, help="starts of each command (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    head = describe(with_torch=False)
    with tempfile.TemporaryDirectory(prefix="plumbline-light-") as name:
        folder = Path(name)
        python, rows = install(folder)
        (folder / "results.csv").write_text(NUMBERS, encoding="utf-8")
        first = time_command([python.parent / "plumbline", *STARTS["plumbline verdict results.csv"]], folder)
        rows.append(f"| the first verdict | {first[0]:.2f} | {first[1]:.2f} | |")
        starts = {called: start(python, folder, arguments, options.repetitions) for called, arguments in STARTS.items()}
    lines = [
        "# The wheel alone",
        "",
        f"{head}. `{command()}`",
        "",
        "| from nothing | CPU seconds | seconds | MB |",
        "|---|---:|---:|---:|",
        *rows,
        "",
        f"| start, the least of {options.repetitions} | CPU seconds | seconds | modules | of {', '.join(HEAVY)} |",
        "|---|---:|---:|---:|---|",
        *(
            f"| `{called}` | {used:.2f} | {passed:.2f} | {modules} | {', '.join(heavy) or 'none'} |"
            for called, (used, passed, modules, heavy) in starts.items()
        ),
    ]
    atomic_write_text(options.out, "\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

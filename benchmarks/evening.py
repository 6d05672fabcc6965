"""Is an evening on this machine enough for a gain that is stated beforehand? Budget, prediction, outcome.

    python benchmarks/evening.py --fit 2h --gain 0.05 --helps softpick --nothing softmax_cap

For a method that is expected to help and one that is expected to do nothing: what `plumbline plan --fit` proposes, the
pasted command carried out and timed, and what `plumbline verdict` says of its numbers. The second is planned with the
noise and the speed that the first one's runs have shown. The ledger lies with the pages, and the second method is a
second try.
"""

from __future__ import annotations

import argparse
import re
import resource
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from machine import describe

from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.plan.fit import roughly, seconds_of
from plumbline.project import load
from plumbline.project.invocation import changed
from plumbline.specs.config import load_config

FOLDER = Path("work/evening")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Of one method: what was said beforehand, what it took (seconds, processor seconds), and what was found."""

    expected: str
    method: str
    proposed: str
    resolves: str
    to_do: str
    seconds: float
    cpu: float
    difference: str
    sentence: str


def verb(*words: str) -> str:
    """What a verb prints.

    Raises:
        PlumblineError: it failed.
    """
    done = subprocess.run([sys.executable, "-m", "plumbline", *words], capture_output=True, text=True)
    if done.returncode:
        raise PlumblineError(done.stderr.strip() or done.stdout.strip())
    return done.stdout


def carried_out(expected: str, method: str, fit: str, gain: str) -> Outcome:
    """Plan, run, judge."""
    page = verb("plan", "--fit", fit, "--method", method, "--gain", gain)
    print(page, flush=True)
    (command,) = (line.strip() for line in page.splitlines() if line.strip().startswith("snakemake "))
    given = load(changed(load_config(), shlex.split(command.partition("--config ")[2])))
    assert given.trial is not None
    done = sum((Path(given.paths.work) / "runs" / key / "outcome.json").exists() for key in given.trial.runs)
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "snakemake", *shlex.split(command)[1:]], check=True)
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    (seen,) = (part for part in Path("results/trial.md").read_text().split("\n\n") if " minus " in part)
    csv = FOLDER / f"{method}.csv"
    csv.parent.mkdir(parents=True, exist_ok=True)
    csv.write_bytes((Path(given.paths.results) / "trial" / given.trial.name / "trial.csv").read_bytes())
    against = ("--baseline", given.trial.against, "--metric", "validation_loss", "--lower-is-better")
    said = " ".join(page.split())
    return Outcome(
        expected=expected,
        method=method,
        proposed=re.search(r"Proposed: (.*? in all\.)", said)[1],  # type: ignore[index]
        resolves=re.search(r"It resolves (.*?)\. ", said)[0].strip(),  # type: ignore[index]
        to_do=f"{len(given.trial.runs) - done} of {len(given.trial.runs)}",
        seconds=took,
        cpu=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        difference=" ".join(seen.split()),
        sentence=verb("verdict", str(csv), *against).splitlines()[0],
    )


def written(outcomes: list[Outcome], fit: str, gain: str) -> str:
    """The page."""
    parts = [
        "# An evening",
        f"`python benchmarks/evening.py --fit {fit} --gain {gain} ...`; {describe(with_torch=False)}.",
        f"Stated beforehand: {roughly(seconds_of(fit))} for each method, a gain of {gain} nats of validation loss.",
    ]
    for one in outcomes:
        parts += [
            f"## `{one.method}`, expected to {one.expected}",
            f"- Proposed: {one.proposed}\n- {one.resolves}\n- Runs to do: {one.to_do}; they and the page took "
            f"{roughly(one.seconds)} ({one.cpu:,.0f} processor seconds).\n- Seen: {one.difference}\n"
            f"- The verdict: {one.sentence}",
        ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Both methods, and the page beside this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", default="2h", metavar="TIME", help="for each method (default: %(default)s)")
    parser.add_argument("--gain", default="0.05", help="nats of validation loss (default: %(default)s)")
    parser.add_argument("--helps", default="softpick", metavar="METHOD", help="default: %(default)s")
    parser.add_argument("--nothing", default="softmax_cap", metavar="METHOD", help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    given = parser.parse_args()
    outcomes = []
    for expected, method in (("help", given.helps), ("do nothing", given.nothing)):
        outcomes.append(carried_out(expected, method, given.fit, given.gain))
        given.out.write_text(written(outcomes, given.fit, given.gain))
    print(given.out.read_text())


if __name__ == "__main__":
    run(main)

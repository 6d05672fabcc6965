"""``python -m plumbline.trial``: the page of the trial that a configuration asks for, from its finished runs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from plumbline import record
from plumbline.cli import PlumblineError, run
from plumbline.files import atomic_write_text
from plumbline.project import plan
from plumbline.results.expected import Expected
from plumbline.results.runs import load
from plumbline.trial import page


def main() -> None:
    """Read the runs, write PAGE.csv and PAGE.md."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.trial", description=__doc__)
    parser.add_argument("--configuration", required=True, metavar="JSON", help="the whole configuration")
    parser.add_argument("--out", type=Path, required=True, metavar="PAGE.csv")
    parser.add_argument("--made-of", default="", help="what a plan says this is made of, to be recorded")
    given = parser.parse_args()
    planned = plan(json.loads(given.configuration))
    trial = planned.trial
    if trial is None:
        raise PlumblineError("--configuration: trial: is empty, so there is no page to make")
    expected = [Expected(key=key, run_id=one.spec.run_id) for key, one in trial.runs.items()]
    frames = load(expected, planned.work, scores=False)
    atomic_write_text(given.out.with_suffix(".md"), page.markdown(trial, frames, given.out))
    atomic_write_text(given.out, page.rows(trial, frames).to_csv(index=False))
    record.write(given.out, given.made_of)
    print(given.out)


if __name__ == "__main__":
    run(main)

"""Writes the page of the trial that a configuration asks for: ``python -m plumbline.experiment.trial``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from plumbline.core import fingerprint_file
from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text
from plumbline.experiment import trial_page
from plumbline.results.runs.expected_runs import ExpectedRun
from plumbline.results.runs.finished_runs import load
from plumbline.specs import study_config, trial


def main() -> None:
    """Read the trial's runs, and write the page as PAGE.csv and PAGE.md."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.experiment.trial", description=__doc__)
    parser.add_argument("--configuration", required=True, metavar="JSON", help="the whole configuration")
    parser.add_argument("--work", required=True, help="the folder of the preset's runs")
    parser.add_argument("--out", type=Path, required=True, metavar="PAGE.csv")
    parser.add_argument("--fingerprint", default="", help="fingerprint from the plan, to be recorded")
    given = parser.parse_args()
    configuration = json.loads(given.configuration)
    asked = trial.numbers(configuration.get("trial"))
    if not asked:
        raise PlumblineError("--configuration: trial: is empty, so there is no page to make")
    source = configuration["data"]["source"]
    of = study_config.load(asked["study"], configuration["preset"], source=source)
    found = trial.load(asked, of, source=source)
    expected = [ExpectedRun(key=key, run_id=one.spec.run_id) for key, one in found.runs.items()]
    frames = load(expected, given.work, scores=False)
    atomic_write_text(given.out.with_suffix(".md"), trial_page.markdown(found, frames, given.out))
    atomic_write_text(given.out, trial_page.rows(found, frames).to_csv(index=False))
    fingerprint_file.write(given.out, given.fingerprint)
    print(given.out)


if __name__ == "__main__":
    run(main)

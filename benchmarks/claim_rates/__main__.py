"""Draws how often each claim of a study would be reproduced, and writes it to studies/<study>/replication_rates.yaml.

python -m benchmarks.claim_rates --study transfer [--draws 2000] [--seed 0]

Two worlds: one where the paper's printed numbers are the truth and every run is trained once more (`perfect`), and one
where no model differs from its reference (`null`). Verdicts are those of the study's own checks. Of papers that print
neither losses nor spreads (quack, key_norms) nothing can be drawn. 2,000 draws take some 10 minutes of one core for
`transfer`, 40 for `premature` and 4 for `query_free`; run it again after a change of the checks.
"""

from __future__ import annotations

import argparse
from importlib import import_module

from benchmarks.claim_rates.drawn_worlds import DrawnStudy, counted
from plumbline.results.claims import replication_rates
from plumbline.specs import study_folders
from plumbline.specs.yaml_files import ROOT

STUDIES = ("transfer", "premature", "query_free")


def drawn_study(name: str) -> DrawnStudy:
    """Find how a study's runs are drawn."""
    found: DrawnStudy = import_module(f"benchmarks.claim_rates.{name}").study()
    return found


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", required=True, choices=STUDIES)
    parser.add_argument("--draws", type=int, default=2000, help="replications of each world (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws (default 0)")
    given = parser.parse_args()
    rates = counted(drawn_study(given.study), given.draws, given.seed)
    command = f"python -m benchmarks.claim_rates --study {given.study} --draws {given.draws} --seed {given.seed}"
    print(replication_rates.write(rates, study_folders.folder(given.study, ROOT), command))
    print("\n".join(rates.summary({})))


if __name__ == "__main__":
    main()

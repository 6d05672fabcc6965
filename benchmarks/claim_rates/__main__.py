"""Draws how often each claim of a study would be reproduced, and writes it to studies/<study>/replication_rates.yaml.

python -m benchmarks.claim_rates --study transfer [--draws 2000] [--seed 0]

Two worlds: one where the paper's printed numbers are the truth and every run is trained once more (`perfect`), and one
where no model differs from its reference (`null`). Verdicts are those of the study's own checks. Of papers that print
neither losses nor spreads (quack, key_norms) nothing can be drawn; their files say so. 2,000 draws take some 20 minutes
of one core for `transfer`, 8 for `premature` and 3 for `query_free`; run it again after a change of the checks.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

import yaml
from msgspec.structs import asdict

from benchmarks.claim_rates.drawn_worlds import DrawnStudy, count_verdicts
from plumbline.results.claims.claim_registry import ClaimChecks
from plumbline.results.claims.replication_rates import StudyRates
from plumbline.specs import study_folders
from plumbline.specs.yaml_files import ROOT

STUDIES = ("transfer", "premature", "query_free")

#: Studies of which nothing can be drawn, and why.
UNDRAWN = {
    "quack": "the summary prints no final loss of a run, no time of a step, and no spread",
    "key_norms": "the post prints one run's norms, each as a mean of two layers, and no spread",
}


def import_study(name: str) -> DrawnStudy:
    """Find how a study's runs are drawn."""
    study: DrawnStudy = import_module(f"benchmarks.claim_rates.{name}").study()
    return study


def list_undrawn_claims(name: str) -> StudyRates:
    """Say of each claim of trained models why it has no rate."""
    checks: ClaimChecks = import_module(f"plumbline.studies.{name}.claims").CHECKS
    trained = [claim for claim, check in checks.items() if check.function and check.scope == "training"]
    not_drawn = dict.fromkeys(trained, UNDRAWN[name])
    return StudyRates(draws=0, seed=0, noise=[], claims={}, not_drawn=not_drawn, null_agrees={})


def write_rates(rates: StudyRates, study_folder: Path, command: str) -> Path:
    """Write a study's rates; `command` is what makes the file again."""
    path = study_folder / study_folders.RATES
    lines = [
        "# How often each claim comes out as reproduced, or partly so, if the paper is right (`perfect`: its printed",
        "# numbers are the truth, every run is trained once more) and if no model differs from its reference (`null`).",
        f"# Made by `{command}`.",
        yaml.safe_dump({"draws": rates.draws, "seed": rates.seed, "noise": rates.noise}, sort_keys=False, width=118),
    ]
    listed = "".join(
        f"  {name}: {{{', '.join(f'{key}: {value:.4f}' for key, value in asdict(shares).items())}}}\n"
        for name, shares in rates.claims.items()
    )
    lines[-1] += f"claims:\n{listed}" if listed else "claims: {}\n"
    reasons = {"not_drawn": rates.not_drawn, "null_agrees": rates.null_agrees}
    lines[-1] += yaml.safe_dump(reasons, sort_keys=False, width=118)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", required=True, choices=(*STUDIES, *UNDRAWN))
    parser.add_argument("--draws", type=int, default=2000, help="replications of each world (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws (default 0)")
    options = parser.parse_args()
    command = f"python -m benchmarks.claim_rates --study {options.study}"
    if options.study in UNDRAWN:
        rates = list_undrawn_claims(options.study)
    else:
        rates = count_verdicts(import_study(options.study), options.draws, options.seed)
        command += f" --draws {options.draws} --seed {options.seed}"
    print(write_rates(rates, study_folders.folder(options.study, ROOT), command))
    print("\n".join(rates.summary({})))


if __name__ == "__main__":
    main()

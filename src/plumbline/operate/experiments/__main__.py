"""Runs the verbs of an experiment: is this change real?

`plumbline try METHOD` runs a method of a study, or a file of your own that says `extends:`, against its baseline until
that is decided: checks, runs, a page, one sentence. Exit codes: 0 keep, 10 discard, 11 undecided at the budget, 12 the
candidate crashed or diverged, 13 cannot be judged; 1 an error of Plumbline's own, 2 usage, 75 stopped on request, 130
interrupted. The same command continues what was stopped.
"""

from __future__ import annotations

import argparse
from typing import Any

from plumbline.core import command_line


def arguments() -> argparse.ArgumentParser:
    """Build the command-line parser of the verbs."""
    parser = argparse.ArgumentParser(
        prog=command_line.prog("python -m plumbline.operate.experiments"), description=command_line.described(__doc__)
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    _try(verbs)
    _confirm(verbs)
    for verb, words in (
        ("noise", "what is known of the noise of a run, and what so many seeds resolve"),
        ("log", "every decision, and what was tried without one"),
        ("page", "the page of an experiment again"),
    ):
        one = verbs.add_parser(verb, help=words, description=f"Prints {words}.")
        _where(one)
        one.add_argument("--json", action="store_true", help="print one object")
        if verb == "page":
            one.add_argument("name", nargs="?", help="as plumbline log lists it; default: the newest")
    return parser


def _try(verbs: Any) -> None:
    parser = verbs.add_parser(
        "try",
        help="a change against its baseline, run until it is decided",
        description=command_line.described(__doc__),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # `--worth` of `plumbline verdict` is in the metric's units
    )
    add = parser.add_argument
    add("what", metavar="METHOD|FILE.yaml", help="a method of the study (or METHOD.VARIANT), or a file of your own")
    add("--method", metavar="NAME", help="of a file with several methods: which one")
    add("--study", help="default: config/config.yaml's main_study")
    add("--scale", help="default: the study's first; with --fit the largest that reads a token per parameter")
    add("--baseline", metavar="METHOD", help="default: the study's reference, or what the file says")
    budget = parser.add_argument_group("budget; without one, runs are as long as the study's own")
    budget.add_argument(
        "--fit", metavar="TIME", help="as many steps as fit, such as 2h or 90min, if all runs are needed"
    )
    budget.add_argument("--steps", type=command_line.positive, metavar="N", help="steps of a run")
    budget.add_argument("--quick", action="store_true", help="a first look: 60 steps, 3 runs of each at most")
    decide = parser.add_argument_group("what decides; fixed before the first run")
    decide.add_argument("--bank", type=command_line.positive, metavar="M", help="runs of the baseline (default: 5)")
    decide.add_argument(
        "--most", type=command_line.positive, metavar="K", help="runs of the method at most (default: 8)"
    )
    decide.add_argument("--alpha", type=float, default=0.05, help="one-sided level (default: %(default)s)")
    decide.add_argument("--minimum-gain", type=float, metavar="GAIN", help="a gain must exceed this (default: 0)")
    decide.add_argument(
        "--worth-sigmas", type=float, default=2.0, metavar="SIGMAS", help="a gain not to miss, in sigma (default: 2)"
    )
    decide.add_argument(
        "--planned",
        type=command_line.positive,
        metavar="N",
        help="one of N candidates: the session fwer, each at alpha / N (default: each, every one at alpha)",
    )
    order = decide.add_mutually_exclusive_group()
    order.add_argument("--paired", action="store_true", help="both at each seed; their differences are tested")
    order.add_argument("--interleave", action="store_true", help="a run of the baseline after each of the method")
    decide.add_argument(
        "--vary", choices=("initialisation", "both"), default="initialisation", help="both: data order too"
    )
    decide.add_argument("--first-seed", type=command_line.not_negative, default=42, metavar="SEED", help="of the bank")
    _where(parser)
    add("--profile", action="append", default=[], metavar="PROFILE", help="as for snakemake: where the runs are made")
    add("--json", action="store_true", help="print one object instead of words")
    add("-n", "--dry-run", action="store_true", help="say what would be run, and run nothing")


def _confirm(verbs: Any) -> None:
    words = "what was kept against its baseline again, with fresh seeds only: the number to claim"
    parser = verbs.add_parser(
        "confirm", help=words, description=f"Runs {words}: five against five, one t test at .025."
    )
    parser.add_argument("name", nargs="?", help="as plumbline log lists it; default: the newest that was kept")
    _where(parser)
    parser.add_argument("--profile", action="append", default=[], metavar="PROFILE", help="as for snakemake")
    parser.add_argument("--json", action="store_true", help="print one object instead of words")


def _where(parser: argparse.ArgumentParser) -> None:
    from plumbline.specs.yaml_files import PRESETS

    parser.add_argument("--preset", choices=PRESETS, help="default: config/config.yaml's")
    words = "as snakemake --config"
    parser.add_argument("--config", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=words)


def main() -> int:
    """Run a verb, and return its exit code."""
    given = arguments().parse_args()
    from plumbline.operate.experiments import verbs

    return verbs.VERBS[given.verb](given)


if __name__ == "__main__":
    command_line.run(main)

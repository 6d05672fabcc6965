"""Runs the verbs of an experiment: is this change real?

`plumbline try METHOD` runs a method of a study, or a file of your own that says `extends:`, against its baseline until
that is decided: checks, runs, a page, one sentence. In a folder with a `plumbline.toml` (`plumbline setup-trainer`
writes one) `plumbline try -m WORDS` runs the working tree against the baseline's commit, with the trainer of that
folder; `plumbline try -m WORDS -- FLAGS` gives it other flags too. With `--at 1x,2x,4x` it asks whether the gain goes
on at other budgets, and keeps nothing. Exit codes: 0 keep (`--at`: holds), 10 discard (shrinks, turns), 11 undecided
at the budget, 12 the candidate crashed or diverged, 13 cannot be judged, 14 implausible, a gain that no modification
had, not kept before it is looked at; 1 an error of Plumbline's own, 2 usage, 75 stopped on request, 130 interrupted.
The same command continues what was stopped.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from plumbline.core import command_line
from plumbline.core.errors import UsageError, visible
from plumbline.operate.experiments.screen_arguments import add_screen
from plumbline.specs import name_completers as names
from plumbline.specs.field_types import Preset
from plumbline.verdict.own_trainer.find_folder import NAME as TRAINER_FILE
from plumbline.verdict.own_trainer.find_folder import find_trainer_folder

#: Words of `try` that only a method of a study takes, and those that only a folder's trainer takes.
OF_A_STUDY = (
    "method",
    "study",
    "scale",
    "time_budget",
    "steps",
    "quick",
    "vary_by_seed",
    "preset",
    "config",
    "profile",
)
OF_A_FOLDER = ("message", "commit", "trust", "flags")


def arguments() -> command_line.Parser:
    """Build the command-line parser of the verbs."""
    parser = command_line.Parser(__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    _try(verbs)
    _confirm(verbs)
    screen = add_screen(verbs)
    _add_project_options(screen)
    _add_accept_implausible(screen)
    for verb, purpose in (
        ("noise", "what is known of the noise of a run, and what so many seeds resolve"),
        ("log", "every decision, and what was tried without one"),
        ("page", "the page of an experiment again"),
    ):
        parser_of_verb = verbs.add_parser(verb, help=purpose, description=f"Prints {purpose}.")
        _add_project_options(parser_of_verb)
        parser_of_verb.add_argument("--json", action="store_true", help="print one object")
        if verb == "log":
            purpose = "take the newest keep back, a mistake: the baseline is again what it was, with its runs"
            parser_of_verb.add_argument("--long", action="store_true", help="with the sentence of each decision")
            parser_of_verb.add_argument("--forget", metavar="NAME", help=purpose)
        if verb == "noise":
            add = parser_of_verb.add_argument
            text = (
                "how often this rule keeps nothing and finds gains: a command, given runs as JSON, or module:function"
            )
            add("--rule", metavar="COMMAND", help=text)
            text = "made-up runs of the baseline and of a candidate that the rule is given (default: 5,5)"
            add("--rule-runs", metavar="M,K", help=text)
            text = "the command is given all made-up changes at once, an object a line, and prints a word for each"
            add("--rule-lines", action="store_true", help=text)
        if verb == "page":
            parser_of_verb.add_argument(
                "name", nargs="?", help="the words of -m, or a number or name in plumbline log; default: newest"
            )
    for parser_of_verb in verbs.choices.values():
        parser_of_verb.set_defaults(refuse=parser_of_verb.error)
    return parser


def _try(verbs: Any) -> None:
    parser = verbs.add_parser(
        "try",
        help="a change against its baseline, run until it is decided",
        description=__doc__,
        epilog="What follows -- is for the command of plumbline.toml: plumbline try -m 'lr 3e-3' -- --lr 3e-3",
        allow_abbrev=False,  # `--target-gain` of `plumbline verdict` is in the metric's units
    )
    add = parser.add_argument
    parser.set_defaults(flags=[])
    choice = "a method of the study (or METHOD.VARIANT), or a file of your own; none in a folder with plumbline.toml"
    add("what", nargs="?", metavar="METHOD|FILE.yaml", completer=names.or_files(names.methods), help=choice)
    folder = parser.add_argument_group("in a folder with plumbline.toml")
    folder.add_argument("-m", "--message", metavar="WORDS", help="what is tried, in a few words")
    folder.add_argument("--commit", action="store_true", help="commit what is kept (else nothing is ever committed)")
    folder.add_argument("--trust", action="store_true", help="run the command of a plumbline.toml from elsewhere")
    add("--method", metavar="NAME", help="of a file with several methods: which one")
    add("--study", completer=names.studies, help="default: config/config.yaml's main_study")
    add(
        "--scale",
        completer=names.scales,
        help="default: the study's first; with --time-budget the largest that reads a token per parameter",
    )
    text = "for once; default: the study's reference, what the file says, or what was kept last"
    add("--baseline", metavar="METHOD|COMMIT", completer=names.methods, help=text)
    budget = parser.add_argument_group("budget; without one, runs are as long as the study's own")
    budget.add_argument(
        "--time-budget", metavar="TIME", help="as many steps as fit, such as 2 hours or 90 min, if all runs are needed"
    )
    budget.add_argument("--steps", type=command_line.positive, metavar="N", help="steps of a run")
    budget.add_argument("--quick", action="store_true", help="a first look: 3 runs of each at most")
    text = "whether a gain goes on at other budgets: --max-runs of each arm at each, with fresh seeds; keeps nothing"
    budget.add_argument("--at", metavar="1x,2x,4x", help=text)
    decide = parser.add_argument_group("what decides; fixed before the first run")
    decide.add_argument(
        "--baseline-runs", type=command_line.positive, metavar="M", help="runs of the baseline (default: 5)"
    )
    decide.add_argument(
        "--max-runs", type=command_line.positive, metavar="K", help="runs of the method at most (default: 8)"
    )
    decide.add_argument("--alpha", type=float, help="one-sided level (default: 0.05)")
    decide.add_argument("--minimum-gain", type=float, metavar="GAIN", help="a gain must exceed this (default: 0)")
    text = "whether it is as good: worse by less than 0.01, in the metric's units, or 1sigma; a simplification, say"
    decide.add_argument("--as-good-as", metavar="MARGIN", help=text)
    decide.add_argument(
        "--target-gain-sigmas", type=float, metavar="SIGMAS", help="a gain not to miss, in sigma (default: 2)"
    )
    decide.add_argument(
        "--session",
        choices=("each", "fwer"),
        help="what alpha holds for: each candidate; any false keep of those planned",
    )
    text = "candidates of the session, over which fwer spreads alpha"
    decide.add_argument("--planned-tries", type=command_line.positive, metavar="N", help=text)
    text = "measures of a run in which the arms may not differ, or there is no verdict: seconds, step, tokens, ..."
    decide.add_argument("--equal", type=command_line.comma_list, default=[], metavar="MEASURE[,MEASURE]", help=text)
    order = decide.add_mutually_exclusive_group()
    order.add_argument("--paired", action="store_true", help="both at each seed; their differences are tested")
    order.add_argument(
        "--interleave-baseline", action="store_true", help="a run of the baseline after each of the method"
    )
    decide.add_argument("--vary-by-seed", choices=("initialisation", "both"), help="both: data order too")
    decide.add_argument("--first-seed", type=command_line.not_negative, metavar="SEED", help="of the bank")
    _add_project_options(parser)
    add("--profile", action="append", default=[], metavar="PROFILE", help="as for snakemake: where the runs are made")
    _add_accept_implausible(parser)
    add("--json", action="store_true", help="print one object instead of words")
    add("-n", "--dry-run", action="store_true", help="say what would be run, and run nothing")


def _confirm(verbs: Any) -> None:
    summary = "what was kept against its baseline again, with fresh seeds only: the number to claim"
    parser = verbs.add_parser(
        "confirm", help=summary, description=f"Runs {summary}: five against five, one t test at .025."
    )
    name = "as plumbline log lists it; default: the newest that was kept, or all that a folder kept against its start"
    parser.add_argument("name", nargs="?", help=name)
    parser.add_argument("--trust", action="store_true", help="run the command of a plumbline.toml from elsewhere")
    _add_project_options(parser)
    parser.add_argument("--profile", action="append", default=[], metavar="PROFILE", help="as for snakemake")
    _add_accept_implausible(parser)
    parser.add_argument("--json", action="store_true", help="print one object instead of words")


def _add_accept_implausible(parser: argparse.ArgumentParser) -> None:
    text = "keep a gain that no modification ever had: you have looked at what it does (else exit code 14)"
    parser.add_argument("--accept-implausible", action="store_true", help=text)


def _add_project_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", choices=get_args(Preset), help="default: config/config.yaml's")
    text = "as snakemake --config"
    parser.add_argument("--config", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=text)


def main() -> int:
    """Run a verb, and return its exit code."""
    with command_line.exit_on_sigterm():
        return _main(parse_line(sys.argv[1:]))


def _require_text(option: str, word: str) -> None:
    """Refuse a word of the command line that no file of a decision can hold.

    Raises:
        UsageError: it is no UTF-8.
    """
    try:
        word.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{option}: {visible(word)} is no UTF-8, which pages are written in; write it so") from None


def _main(options: argparse.Namespace) -> int:
    if options.verb == "noise" and (options.rule_runs or options.rule_lines) and not options.rule:
        raise UsageError("--rule-runs and --rule-lines are of --rule COMMAND; name the rule")
    if options.verb == "screen":
        return _screen(options)
    folder = folder_meant(options)
    if folder is not None and options.verb == "try" and options.message in (None, "", "baseline"):
        raise UsageError("say in a few words what is tried, other than baseline: plumbline try -m 'halve the batch'")
    if folder is not None and options.verb == "try":
        _require_text("-m", options.message)
        for flag in options.flags:
            _require_text("a flag of the trainer's", flag)
    if folder is not None:
        from plumbline.operate.experiments import folder_verbs

        if options.verb == "try":
            study = f"is of METHOD|FILE.yaml, and {folder / TRAINER_FILE} has a trainer of its own"
            _refuse(options, OF_A_STUDY, study)
        return folder_verbs.run(options, folder)
    if options.verb == "log" and options.forget:
        raise UsageError(f"--forget is of a folder with {TRAINER_FILE}: no keep of a study's method moves a baseline")
    if options.verb == "try":
        if options.what is None:
            raise UsageError(
                "try what? Name a method or a file (plumbline ls methods; plumbline try qknorm), or try the training "
                f"script of a folder with {TRAINER_FILE}, which neither this one nor one above it has: "
                'plumbline setup-trainer "python train.py" writes it'
            )
        if find_trainer_folder() is not None and (options.flags or " " in options.what):
            flags = f" -- {shlex.join(options.flags)}" if options.flags else ""
            raise UsageError(f"words go behind -m: plumbline try -m {shlex.quote(options.what)}{flags}")
        _refuse(options, OF_A_FOLDER, f"is of a folder with {TRAINER_FILE}, and {options.what!r} names a method")
    if options.verb in ("try", "confirm"):
        _require_pipeline()
    from plumbline.operate.experiments import study_verbs

    return study_verbs.run(options)


def _require_pipeline() -> None:
    for module in ("torch", "snakemake"):
        if find_spec(module) is None:
            raise ModuleNotFoundError(name=module)


def _screen_study(options: argparse.Namespace) -> int:
    """Screen the methods of a study."""
    _refuse(options, ("ideas", "trust"), f"is of a folder with {TRAINER_FILE}, and --study names a study")
    _require_pipeline()
    from plumbline.operate.experiments import study_screen

    return study_screen.run(options)


def _screen(options: argparse.Namespace) -> int:
    """Screen the ideas of a file, or the methods of a study."""
    if options.study:
        return _screen_study(options)
    of_a_study = ("scale", "baseline", "methods", "steps", "vary_by_seed", "profile", "preset", "config")
    _refuse(options, of_a_study, "is of --study, and a file of ideas has none")
    folder = find_trainer_folder()
    if options.ideas is None or folder is None:
        raise UsageError(
            f"plumbline screen FILE.toml screens the ideas of a file in a folder with {TRAINER_FILE}"
            + (
                ""
                if folder
                else ', which neither this one nor one above it has: plumbline setup-trainer "python '
                'train.py" writes it'
            )
        )
    from plumbline.operate.experiments import folder_screen

    return folder_screen.screen(options, folder)


def parse_line(line: list[str]) -> argparse.Namespace:
    """Read a command line; what follows `--` is the trainer's."""
    at = line.index("--") if "--" in line else len(line)
    options, unknown = arguments().parse_known_args(line[:at])
    if unknown:
        if options.verb == "try" and find_trainer_folder() is not None:
            _refuse_flags(line[:at], options, unknown)
        options.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    if at < len(line):
        options.flags = line[at + 1 :]
        if options.verb != "try":
            raise UsageError(f"plumbline {options.verb} takes no flags for the trainer's command")
    return options


def folder_meant(options: argparse.Namespace) -> Path | None:
    """The folder whose trainer is meant: the working directory, or the nearest above it, that has a plumbline.toml."""
    if getattr(options, "what", None) or options.preset or options.config:
        return None
    return find_trainer_folder()


def _refuse_flags(line: list[str], arguments: argparse.Namespace, unknown: list[str]) -> None:
    """Refuse flags of a trainer before `--`, with the command that was meant."""
    options = {option for option in unknown if option.startswith("-")}
    flags = []
    for word, following in zip(line, [*line[1:], "-"]):
        if word in options:
            flags += [word] if following.startswith("-") else [word, following]
    message = shlex.quote(arguments.message) if arguments.message else "WORDS"
    raise UsageError(
        f"plumbline try has no {unknown[0]}; flags of your script go behind --: plumbline try -m {message} -- "
        f"{shlex.join(flags or unknown)}"
    )


def _refuse(options: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if getattr(options, name):
            flag = {"flags": "--", "ideas": f"{options.verb} FILE.toml"}.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{flag} {why}; leave out one of the two")


if __name__ == "__main__":
    command_line.run(main)

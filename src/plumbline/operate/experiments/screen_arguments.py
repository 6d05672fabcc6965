"""Declares the options of `plumbline screen`."""

from __future__ import annotations

from typing import Any

from plumbline.core import command_line
from plumbline.specs import name_completers as names
from plumbline.verdict.screen.screen_terms import FRESH_RUNS, LEVEL

DESCRIPTION = """\
Judges many ideas in one design of runs. Each run has about half of them, so that every run tells of every idea, and
what is chosen is run again with fresh seeds against the baseline. In a folder with a plumbline.toml, FILE names the
ideas, each flags of the command, a patch or a branch:

    [ideas]
    warmup = { flags = "--warmup 200" }
    relu2 = { patch = "ideas/relu2.patch" }

With --study it is the methods of a study: each slot in which they differ is a factor, and a run has in each slot what
one of them has there. Nothing moves a baseline. Exit codes: 0 what was chosen is confirmed, 10
nothing was chosen, or its fresh runs are not better, 11 undecided, 13 cannot be judged, 14 one
gains more than any modification had, and is to be looked at; 1 an error of Plumbline's own,
2 usage, 75 stopped on request, 130 interrupted. The same command continues what was stopped.
"""


def add_screen(verbs: Any) -> command_line.Parser:
    """Add the verb to a parser's verbs."""
    parser: command_line.Parser = verbs.add_parser(
        "screen", help="many ideas in one design of runs, and what they gain together", description=DESCRIPTION
    )
    add = parser.add_argument
    add("ideas", nargs="?", metavar="FILE.toml", help="the ideas; in a folder with plumbline.toml")
    design = parser.add_argument_group("what decides; settled before the first run")
    text = "runs of the design (default: the next multiple of four with three runs or more to tell sigma from)"
    design.add_argument("--runs", type=command_line.positive, metavar="N", help=text)
    text = "what level holds for: the share of false ones among what is chosen, or any false one (default: bh)"
    design.add_argument("--rule", choices=("bh", "bonferroni"), default="bh", help=text)
    design.add_argument("--level", type=float, default=LEVEL, help=f"of the rule (default: {LEVEL:g})")
    text = f"of what was chosen and of the baseline, with fresh seeds, for one t test at .025 (default: {FRESH_RUNS})"
    design.add_argument("--fresh-runs", type=command_line.positive, default=FRESH_RUNS, metavar="M", help=text)
    text = "look at the effects after half of the runs too, for half of the level, and stop where that is clear"
    design.add_argument("--halfway", action="store_true", help=text)
    text = "run what was chosen without each of its parts too"
    design.add_argument("--leave-one-out", action="store_true", help=text)
    text = "measures of a run in which no idea may differ, or there is no verdict: seconds, step, tokens, ..."
    design.add_argument("--equal", type=command_line.comma_list, default=[], metavar="MEASURE[,MEASURE]", help=text)
    text = "of the design's first run, or the next that no run has; another one is another screen"
    design.add_argument("--first-seed", type=command_line.not_negative, metavar="SEED", help=text)
    _add_study_options(parser)
    add("--trust", action="store_true", help="run the command of a plumbline.toml from elsewhere")
    add("--json", action="store_true", help="print one object instead of words")
    add("-n", "--dry-run", action="store_true", help="print the design and its standard errors, and run nothing")
    return parser


def _add_study_options(parser: command_line.Parser) -> None:
    """Add what only the methods of a study need, as `plumbline try` has it."""
    add = parser.add_argument
    add("--study", completer=names.studies, help="screen the methods of this study, and no ideas of a file")
    add("--scale", completer=names.scales, help="of a study; default: its first")
    add("--baseline", metavar="METHOD", completer=names.methods, help="of a study; default: its reference")
    study = parser.add_argument_group("the methods of a study")
    text = "those that are screened, also METHOD.VARIANT (default: all that the study compares)"
    study.add_argument("--methods", type=command_line.comma_list, default=[], metavar="METHOD[,METHOD]", help=text)
    text = "steps of a run (default: the scale's own)"
    study.add_argument("--steps", type=command_line.positive, metavar="N", help=text)
    study.add_argument("--vary-by-seed", choices=("initialisation", "both"), help="both: data order too")
    text = "as for snakemake: where the runs are made"
    study.add_argument("--profile", action="append", default=[], metavar="PROFILE", help=text)

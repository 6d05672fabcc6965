"""Runs every verb through one command: ``plumbline VERB ...`` (``python -m plumbline`` is the same).

A verb is a module with ``arguments()``, which builds its parser, and ``main()``. It is imported only when it runs: the
list of verbs and their completion by a shell do not wait for torch.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from plumbline import __version__
from plumbline.core import command_line
from plumbline.core.errors import nearest

NAME = "plumbline"
DESCRIPTION = """\
Rebuilds pretraining studies from scratch and judges them against a noise floor. Tables and figures are targets of
Snakemake (snakemake results/table2.csv); for everything else there are these verbs.
plumbline VERB --help lists the options of a verb.
"""
EPILOG = """\
A shell completes verbs, options and names after this line (--shell fish for fish):

    eval "$(register-python-argcomplete plumbline)"
"""


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the command.

    Attributes:
        module: the module or package that runs it; several verbs of one module are its parser's subcommands.
        summary: its line in the list of verbs, which begins with a verb.
        needs: modules of the extra `[pipeline]` that it cannot run without; a missing one is reported before it starts.
    """

    module: str
    summary: str
    needs: tuple[str, ...] = ()

    @property
    def is_subcommand(self) -> bool:
        """Whether its module has other verbs too."""
        return sum(verb.module == self.module for verb in VERBS.values()) > 1

    def import_module(self) -> Any:
        """Import the module, or what the package runs."""
        spec = find_spec(self.module)
        is_package = spec is not None and spec.submodule_search_locations
        return import_module(f"{self.module}.__main__" if is_package else self.module)


#: The verbs by the questions that the README asks, and by what it leads on to.
GROUPS = {
    "Does a paper agree with itself?": {
        "audit": Verb("plumbline.audit", "recompute printed numbers that follow from others"),
        "gate": Verb("plumbline.verdict.gate", "check a community's record against its logs and its goal"),
        "board": Verb("plumbline.verdict.board", "write pages of records: claims, logs, what luck gives"),
    },
    "Is this change real?": {
        "try": Verb("plumbline.operate.experiments", "run a change and its baseline until that is decided"),
        "confirm": Verb("plumbline.operate.experiments", "repeat what was kept with fresh seeds: the number to claim"),
        "screen": Verb("plumbline.operate.experiments", "judge many changes in one design of runs, and confirm them"),
        "noise": Verb("plumbline.operate.experiments", "show the noise of a run, and what so many seeds resolve"),
        "log": Verb("plumbline.operate.experiments", "list every decision, and what was tried"),
        "page": Verb("plumbline.operate.experiments", "write the page of an experiment again"),
        "setup-trainer": Verb(
            "plumbline.operate.experiments.setup_trainer", "prepare any training script: plumbline.toml, its noise"
        ),
        "verdict": Verb("plumbline.verdict", "judge numbers from anywhere by the noise floor"),
    },
    "Rebuild a paper's table": {
        "ls": Verb("plumbline.cli.ls", "list studies, methods, variants, targets, runs, presets"),
        "plan": Verb("plumbline.plan", "estimate what each target costs before it is run", needs=("snakemake",)),
        "check": Verb("plumbline.operate.preflight", "find what would stop a run before it starts", ("snakemake",)),
        "status": Verb("plumbline.operate.status", "show what is running, and how far it is"),
        "cleanup": Verb("plumbline.operate.cleanup", "list what uses disk space and is no longer needed"),
    },
    "Read what came out": {
        "show": Verb("plumbline.results", "print a finished table"),
        "trace": Verb("plumbline.results.tables.trace_cell", "lead from a table's cell to its runs and manifests"),
        "report": Verb("plumbline.report", "write pages of all results, to open from disk", ("pandas",)),
        "rebuild": Verb("plumbline.bundle.rebuild", "make everything again from a bundle, and compare", ("pandas",)),
        "verify": Verb("plumbline.bundle.verify", "compare files with checksums, a record with itself made again"),
    },
    "Add your own": {
        "init": Verb("plumbline.cli.init", "write a project: workflow, configuration, profiles"),
        "new": Verb("plumbline.cli.new", "write the files of a method or a study, with their tests"),
    },
    "Use it by hand": {
        "train": Verb("plumbline.cli.train", "train one run of a study, or continue it", needs=("torch",)),
        "probe": Verb("plumbline.evaluate.probes", "measure probe values of a run or a checkpoint", needs=("torch",)),
        "evaluate": Verb("plumbline.evaluate", "score a finished run as the workflow does", needs=("torch",)),
        "score": Verb("plumbline.cli.score", "score any model on a suite: a run, a Hugging Face folder", ("torch",)),
        "sample": Verb("plumbline.cli.sample", "generate text with a run's model", needs=("torch",)),
        "export": Verb("plumbline.cli.export", "write a run as a folder that transformers loads", needs=("torch",)),
        "table": Verb("plumbline.results", "make a table from finished runs", needs=("pandas",)),
        "figure": Verb("plumbline.results", "draw a figure from finished runs", needs=("pandas",)),
        "claims": Verb("plumbline.results", "judge every claim of a paper", needs=("pandas",)),
    },
}
VERBS = {name: verb for verbs in GROUPS.values() for name, verb in verbs.items()}
#: What may stand in the place of a verb.
OPTIONS = ("-h", "--help", "--version")


def main() -> None:
    """Run the command line of `plumbline`, and exit with its code."""
    command_line.run(_run)


def _run() -> int | None:
    sys.argv[0] = NAME
    if "_ARGCOMPLETE" in os.environ:
        complete()
    if not sys.argv[1:]:
        arguments().print_help(sys.stderr)
        return 2
    name = sys.argv[1]
    if name in OPTIONS:
        arguments().parse_args([name])
    if name not in VERBS:
        arguments().error(f"there is no verb or option {name!r}{nearest(name, [*VERBS, *OPTIONS])}")
    verb = VERBS[name]
    if not verb.is_subcommand:
        sys.argv = [f"{NAME} {name}", *sys.argv[2:]]
    for module in verb.needs:
        if find_spec(module) is None:
            raise ModuleNotFoundError(name=module)
    code: int | None = verb.import_module().main()
    return code


def arguments() -> command_line.Parser:
    """Build the parser of the command itself, whose help lists the verbs by question."""
    lists = [
        f"{question}\n" + "\n".join(f"  {name:<15}{verb.summary}" for name, verb in verbs.items())
        for question, verbs in GROUPS.items()
    ]
    parser = command_line.Parser(
        "\n\n".join((DESCRIPTION, *lists)), epilog=EPILOG, prog=NAME, usage=f"{NAME} VERB [...]"
    )
    parser.add_argument("--version", action="version", version=f"{NAME}, version {__version__}")
    parser.add_argument("verb", metavar="VERB", choices=VERBS, help="one of the above")
    return parser


def complete() -> None:
    """Write what the last word on a shell's command line may become to where argcomplete's shell code reads it."""
    import argcomplete

    program = int(os.environ["_ARGCOMPLETE"])  # its number of words: plumbline, or python -m plumbline
    typed = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])].split(" ")
    name = typed[program] if len(typed) > program + 1 else ""
    parser = VERBS[name].import_module().arguments() if name in VERBS else arguments()
    if name in VERBS and not VERBS[name].is_subcommand:
        os.environ["_ARGCOMPLETE"] = str(program + 1)  # the verb is a part of the program then
    argcomplete.autocomplete(parser, always_complete_options=False, exit_method=sys.exit)

"""Runs every verb through one command: ``plumbline VERB ...`` (``python -m plumbline`` is the same).

A verb is a module with ``arguments()``, which builds its command line, and ``main()``. It is imported when it is asked
for: a list of verbs, or their completion by a shell, waits for no torch.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from plumbline.core import command_line

NAME = "plumbline"


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the command: the `module` that runs it, and the `words` that the list of verbs says of it.

    `part`: the module has several verbs, and this is one of its subcommands.
    """

    module: str
    words: str
    part: bool = False


VERBS = {
    "init": Verb("plumbline.cli.init", "write a project: workflow, configuration, profiles"),
    "ls": Verb("plumbline.cli.ls", "studies, methods, readings, targets, runs, presets: what there is"),
    "check": Verb("plumbline.operate.preflight", "what would stop a run, before anything runs"),
    "plan": Verb("plumbline.plan", "what each target costs before it is run"),
    "train": Verb("plumbline.cli.train", "pretrain one run of a study, or go on with it; --set changes a part"),
    "probe": Verb("plumbline.probes", "what probes say of a run, or of any checkpoint"),
    "evaluate": Verb("plumbline.evaluate", "score a finished run, as the workflow does"),
    "score": Verb("plumbline.evaluate.score", "score any model on a suite: a run of ours, or a Hugging Face folder"),
    "sample": Verb("plumbline.cli.sample", "a few lines that a run writes"),
    "export": Verb("plumbline.cli.export", "a run as a folder that transformers loads, without this package"),
    "table": Verb("plumbline.results", "a table from finished runs", part=True),
    "figure": Verb("plumbline.results", "a figure from finished runs", part=True),
    "claims": Verb("plumbline.results", "a verdict on every claim of a document", part=True),
    "show": Verb("plumbline.results", "a finished table in a terminal", part=True),
    "trace": Verb("plumbline.results.tables.trace", "from a cell of a table to its runs and their manifests"),
    "report": Verb("plumbline.report", "pages of what is there, to open from disk and carry anywhere"),
    "audit": Verb("plumbline.audit", "printed numbers that follow from others, recomputed"),
    "rebuild": Verb("plumbline.bundle.rebuild", "every table and figure again from a release bundle, and compared"),
    "verdict": Verb("plumbline.experiment", "numbers from anywhere, judged by the noise-floor protocol"),
    "status": Verb("plumbline.operate.status", "what is running, and how it does"),
    "leftovers": Verb("plumbline.operate.cleanup", "what takes room and is not needed any more"),
}


class OneVerb(click.Command):
    """Hands all words after the verb to the verb's own argparse parser, which knows its options and its help."""

    def __init__(self, name: str, verb: Verb) -> None:
        super().__init__(name, short_help=verb.words, add_help_option=False)
        self.verb = verb

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Make click's context with the words kept as they are: click parses none of the verb's options."""
        context = click.Context(self, info_name=info_name, parent=parent, **extra)
        context.args = list(args)
        return context

    def invoke(self, ctx: click.Context) -> None:
        """Import the verb's module and run its `main`, with the words as `sys.argv`."""
        assert self.name is not None
        words = [NAME, self.name] if self.verb.part else [f"{NAME} {self.name}"]
        sys.argv = [*words, *ctx.args]
        command_line.run(import_module(_runnable(self.verb.module)).main)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a word of the verb's command line: the verb's options where it begins with ``-``, else files."""
        if not incomplete.startswith("-"):
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(option) for option in sorted(self.options()) if option.startswith(incomplete)]

    def options(self) -> set[str]:
        """List the options (``--name`` and ``-n``) that the verb's parser knows."""
        parser = import_module(_runnable(self.verb.module)).arguments()
        if self.verb.part:
            (parts,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
            parser = parts.choices[self.name]
        return set(parser._option_string_actions)


def _runnable(module: str) -> str:
    """The module itself, or what a package runs."""
    from importlib.util import find_spec

    found = find_spec(module)
    return f"{module}.__main__" if found is not None and found.submodule_search_locations else module


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="plumbline-lm", prog_name=NAME)
def main() -> None:
    """Pretraining studies, rebuilt from scratch and judged against a noise floor.

    Tables and figures are targets of Snakemake (snakemake results/table2.csv); these verbs do by hand what its rules
    do, and what no rule does. A first look at a method takes three minutes: make quick METHOD=softpick. What fits an
    evening: plumbline plan --fit 2h --method softpick. A verdict on a modification of your own:
    snakemake results/verdict/cosine.md --config mine=examples/cosine.yaml. Completion of verbs and options in bash:

        eval "$(_PLUMBLINE_COMPLETE=bash_source plumbline)"
    """


for _name, _verb in VERBS.items():
    main.add_command(OneVerb(_name, _verb))

"""A shell is told the names that stand where a word is typed: the very ones that verbs take, and without delay."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from plumbline.cli import VERBS, _runnable, completion, main
from plumbline.cli import ls as listing
from plumbline.specs import study_config
from plumbline.specs.components import SLOTS
from plumbline.specs.yaml_files import PRESETS, studies

SHELL = ShellComplete(main, {}, "plumbline", "_PLUMBLINE_COMPLETE")


def told(*words: str) -> list[str]:
    """What a shell is offered for the last word."""
    return [item.value for item in SHELL.get_completions(list(words[:-1]), words[-1]) if item.type == "plain"]


@pytest.mark.parametrize("study", studies())
@pytest.mark.parametrize("preset", ["smoke", "demo", "paper"])
def test_runs_are_those_of_the_study(study: str, preset: str) -> None:
    runs = study_config.load(study, preset).runs if study_config.has_preset(study, preset) else {}
    assert set(told("train", "--preset", preset, f"{study}/")) == set(runs)


def test_runs_of_no_study_yet_are_of_every_one_that_begins_so() -> None:
    assert told("train", "tra") == told("export", "transfer/")
    assert told("train", "transfer/base/softpick/s42") == ["transfer/base/softpick/s42"]
    assert {run.partition("/")[0] for run in told("train", "")} == set(studies())
    assert told("train", "transfer/base/softpick/s42", "") == [], "it takes one run"


def test_methods_are_those_of_the_study() -> None:
    listed = {row["method"] for row in listing.rows("methods", "transfer", "demo")}
    variants = {row["variant"] for row in listing.rows("variants", "transfer", "demo")}
    assert set(told("try", "")) == listed | variants
    assert told("try", "--steps", "60", "--quick", "softpick.o") == ["softpick.original"]
    assert told("try", "softpick", "--baseline", "qkn") == ["qknorm", "qknorm_geglu"]
    swept = {row["method"] for row in listing.rows("methods", "quack", "demo")}
    assert swept <= set(told("try", "--study", "quack", "")) and "quack" not in swept


def test_other_names() -> None:
    assert told("claims", "") == studies() == told("audit", "--study", "")
    assert told("table", "transfer", "table2") == ["table2"] and "fig2" in told("figure", "transfer", "fi")
    assert told("ls", "") == list(completion.LISTS) == ["studies", "presets", *listing.OF_A_STUDY]
    assert told("ls", "runs", "--preset", "") == list(PRESETS)
    assert told("try", "--scale", "") == ["base", "large"]
    assert {"climb12", "hellaswag"} <= set(told("score", "--suite", ""))
    assert told("new", "") == ["method", "study"] and told("new", "method", "mine", "--slot", "") == list(SLOTS)


def test_where_no_name_fits_it_is_a_file() -> None:
    for words in (["try", "examples/"], ["show", "results/"], ["claims", "--work", "w"], ["table", "nostudy", "t"]):
        assert [item.type for item in SHELL.get_completions(words[:-1], words[-1])] == ["file"], words


def test_what_takes_no_value_is_known() -> None:
    """The words after it are counted, so that a verb's first name is not taken for its value."""
    for verb in ("train", "export", "ls", "new", "try", "table", "figure", "claims"):
        parsers = [import_module(_runnable(VERBS[verb].module)).arguments()]
        for parser in parsers:
            for action in parser._actions:  # noqa: SLF001
                if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                    parsers += [one for name, one in action.choices.items() if name in (verb, "method", "study")]
                elif action.option_strings and action.nargs == 0:
                    assert set(action.option_strings) <= completion.FLAGS, (verb, action.option_strings)


@pytest.mark.parametrize("words", ["try soft", "train tra", "train ", "claims "])
def test_bash_is_answered_at_once_and_without_torch(repository: Path, words: str) -> None:
    line = f"plumbline {words}"
    environment = os.environ | {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    environment |= {"_PLUMBLINE_COMPLETE": "bash_complete"}
    code = (
        "import sys\nfrom plumbline.cli import main\n"
        "try: main(prog_name='plumbline')\n"
        "finally: print(sorted({'torch', 'numpy', 'pandas', 'snakemake'} & set(sys.modules)), file=sys.stderr)"
    )
    taken = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.stdout.startswith("plain,") and done.stderr == "[]\n", done.stderr
    assert min(taken) < 1.0, taken  # on the slowest machine seen .42; with torch or pandas several seconds


def test_a_study_that_cannot_be_read_has_no_names(repository: Path, tmp_path: Path) -> None:
    for folder in ("config", "studies", "workflow"):
        (tmp_path / folder).mkdir()
    (tmp_path / "config/config.yaml").write_text("preset: demo\nmain_study: broken\n")
    (tmp_path / "studies/broken").mkdir()
    (tmp_path / "studies/broken/study.yaml").write_text("study: [broken\n")
    code = "from plumbline.cli.completion import names; print(names('try', [], ''), names('claims', [], ''))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "[] ['broken']\n" and not done.stderr, done.stderr

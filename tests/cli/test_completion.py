"""A shell is offered the names that stand where a word is typed: the very ones that verbs take, and without delay."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.cli import ls as listing
from plumbline.cli import main
from plumbline.specs import study_config
from plumbline.specs.components import SLOTS
from plumbline.specs.yaml_files import PRESETS, studies

Offered = Callable[..., list[str]]


def environment(output: Path, *args: str) -> dict[str, str]:
    """What argcomplete's shell code sets to ask what the last word may become."""
    line = " ".join(("plumbline", *args))
    variables = {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": str(output)}
    return variables | {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_SUPPRESS_SPACE": "1"}


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Offered:
    monkeypatch.setattr("argcomplete.CompletionFinder._init_debug_stream", lambda self: None)  # pytest's own file

    def complete(*args: str) -> list[str]:
        with monkeypatch.context() as patch:
            for name, value in environment(tmp_path / "offered", *args).items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        assert ended.value.code == 0
        return (tmp_path / "offered").read_text().split("\v")

    return complete


@pytest.mark.parametrize("study", studies())
@pytest.mark.parametrize("preset", ["smoke", "demo", "paper"])
def test_runs_are_those_of_the_study(study: str, preset: str, offered: Offered) -> None:
    runs = study_config.load(study, preset).every_run if study_config.has_preset(study, preset) else {"": None}
    assert set(offered("train", "--preset", preset, f"{study}/")) == set(runs)


def test_runs_of_no_study_yet_are_of_every_one_that_begins_so(offered: Offered) -> None:
    assert offered("train", "tra") == offered("export", "transfer/")
    assert offered("train", "transfer/base/softpick/s42") == ["transfer/base/softpick/s42"]
    assert {run.partition("/")[0] for run in offered("train", "")} == set(studies())
    assert offered("train", "transfer/base/softpick/s42", "") == [""], "it takes one run"


def test_methods_are_those_of_the_study(offered: Offered) -> None:
    methods = {row["method"] for row in listing.list_rows("methods", "transfer", "demo")}
    variants = {row["variant"] for row in listing.list_rows("variants", "transfer", "demo")}
    assert set(offered("try", "")) == methods | variants
    assert offered("try", "--steps", "60", "--quick", "softpick.o") == ["softpick.original"]
    assert offered("try", "softpick", "--baseline", "qkn") == ["qknorm", "qknorm_geglu"]
    swept = {row["method"] for row in listing.list_rows("methods", "quack", "demo")}
    assert swept <= set(offered("try", "--study", "quack", "")) and "quack" not in swept


def test_other_names(offered: Offered) -> None:
    assert offered("claims", "") == studies() == offered("audit", "--study", "")
    assert offered("table", "transfer", "table2") == ["table2"] and "fig2" in offered("figure", "transfer", "fi")
    assert offered("ls", "") == ["studies", "presets", *listing.OF_A_STUDY]
    assert offered("ls", "runs", "--preset", "") == list(PRESETS)
    assert offered("try", "--scale", "") == ["base", "large"]
    assert {"climb12", "hellaswag"} <= set(offered("score", "--suite", ""))
    assert offered("new", "") == ["method", "study"] and offered("new", "method", "mine", "--slot", "") == list(SLOTS)


def test_verbs_options_and_files(offered: Offered, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    assert offered("st") == ["status"] and offered("page") == ["page"]
    assert offered("table", "--e") == ["--expected-runs"], "not what rules pass"
    assert offered("log", "--lo") == ["--long"]
    for args in (["try", "examples/cosine."], ["show", "examples/cosine."], ["claims", "--work", "examples/cosine."]):
        assert offered(*args) == ["examples/cosine.yaml"], args


@pytest.mark.parametrize("line", ["try soft", "train "])
def test_it_takes_no_second_and_no_torch(repository: Path, tmp_path: Path, line: str) -> None:
    code = (
        "import sys\nfrom plumbline.cli import main\n"
        "try: main()\n"
        "finally: print(sorted({'torch', 'numpy', 'pandas', 'snakemake'} & set(sys.modules)))"
    )
    seconds = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        settings = os.environ | environment(tmp_path / "offered", *line.split(" "))
        process = subprocess.run(
            [sys.executable, "-c", code], cwd=repository, env=settings, capture_output=True, text=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert process.stdout == "[]\n" and (tmp_path / "offered").read_text(), process.stderr
    assert min(seconds) < 1.0, seconds  # on the slowest machine seen .42; with torch or pandas several seconds


def test_a_study_that_cannot_be_read_has_no_names(repository: Path, tmp_path: Path) -> None:
    for folder in ("config", "studies", "workflow"):
        (tmp_path / folder).mkdir()
    (tmp_path / "config/config.yaml").write_text("preset: demo\nmain_study: broken\n")
    (tmp_path / "studies/broken").mkdir()
    (tmp_path / "studies/broken/study.yaml").write_text("study: [broken\n")
    for args, names, code in ((("claims", ""), "broken", 0), (("try", ""), "", 1)):
        settings = os.environ | environment(tmp_path / "offered", *args)
        command = [sys.executable, "-m", "plumbline"]
        process = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)
        assert ((tmp_path / "offered").read_text(), process.returncode) == (names, code)
        assert "Traceback" not in process.stderr

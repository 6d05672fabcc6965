"""--config together with profiles: what is not named again survives, and reaches the processes that carry out jobs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.project import config_arguments

PAPER = {"preset": "paper", "machine": "h100"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with profiles of every form."""
    written = {
        "Snakefile": "",
        "slurm/config.v9+.yaml": "config: [preset=paper, machine=h100]\n",
        "site/config.yaml": "jobs: 3\nconfig: {machine: one_h100, evaluation: {folder: items, missing: proxy}}\n",
        "profiles/default/config.v9+.yaml": "keep-going: true\n",
        "profiles/other/profile.yaml": "__use_yte__: true\nconfig: ['?f\"work=w{1 + 1}\"']\n",
        "config/config.yaml": "preset: demo\n",
    }
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)
    return tmp_path


def snakemakes_own(argv: list[str]) -> list[str]:
    """The words that Snakemake goes by: the last ones alone."""
    from snakemake.cli import parse_args

    return parse_args(argv)[1].config or []


ON_SITE = PAPER | {"machine": "one_h100", "evaluation": {"folder": "items", "missing": "proxy"}}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--profile slurm -n table --config work=/s", PAPER | {"work": "/s"}),
        ("--profile slurm --config preset=mini", PAPER | {"preset": "mini"}),
        ("--profile slurm -C preset=mini --cores 2 --config work=a=b", PAPER | {"preset": "mini", "work": "a=b"}),
        ("--config 'work=/s' 'studies=[a, b]' --config data='{source: local}' --profile slurm",
         PAPER | {"work": "/s", "studies": ["a", "b"], "data": {"source": "local"}}),
        ("--profile slurm --profile site", ON_SITE),
        ("--profile slurm --profile site/config.yaml --config 'evaluation={missing: error}'",
         ON_SITE | {"evaluation": {"folder": "items", "missing": "error"}}),
        ("--profile slurm --workflow-profile other --config machine=core", PAPER | {"machine": "core", "work": "w2"}),
        ("--config preset=smoke -- table", {"preset": "smoke"}),
        ("--profile slurm --config -n", PAPER),
        ("table", {}),
    ],
)  # fmt: skip
def test_a_key_that_nothing_later_names_survives(folder: Path, line: str, expected: dict[str, Any]) -> None:
    argv = shlex.split(line)
    assert config_arguments.parse_words(config_arguments.collect_words(argv, snakemakes_own(argv))) == expected


def test_the_profile_of_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "slurm")
    assert config_arguments.collect_words(["-C", "work=/s"], ["work=/s"]) == ["preset=paper", "machine=h100", "work=/s"]


def test_what_cannot_be_told_is_refused(folder: Path) -> None:
    """-n and -C as one word is Snakemake's to read, and not read here."""
    argv = ["--profile", "slurm", "-nC", "work=/s"]
    with pytest.raises(PlumblineError, match="write: --config KEY=VALUE"):
        config_arguments.collect_words(argv, snakemakes_own(argv))


def make_workflow(args: list[str], *, main: bool = True) -> Any:
    """What a Snakefile sees of the Snakemake that reads it."""
    from snakemake.settings.types import ConfigSettings

    settings = ConfigSettings(config=config_arguments.parse_words(args), config_args=args)
    return SimpleNamespace(config_settings=settings, is_main_process=main, globals={"config": {}})


def test_a_job_is_given_what_is_in_force(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from snakemake.spawn_jobs import SpawnedJobArgsFactory

    monkeypatch.setattr(sys, "argv", ["bin/snakemake", "--profile", "slurm", "--config", "work=w ü (x);#"])
    workflow = make_workflow(["work=w ü (x);#"])
    config_arguments.merge_config_arguments(workflow)
    assert workflow.globals["config"] == workflow.config_settings.overwrite_config == PAPER | {"work": "w ü (x);#"}
    flags = SpawnedJobArgsFactory(workflow).workflow_property_to_arg("config_settings.config_args", flag="--config")
    assert shlex.split(flags) == ["--config", "preset=paper", "machine=h100", "work=w ü (x);#"]
    job = make_workflow(shlex.split(flags)[1:], main=False)
    config_arguments.merge_config_arguments(job)
    assert job.config_settings.overwrite_config == workflow.config_settings.overwrite_config


def test_files_that_snakemake_reads_are_held_to_the_same_rules(folder: Path) -> None:
    (folder / "config/config.yaml").write_text("preset: demo\npreset: paper\n")
    with pytest.raises(PlumblineError, match=r"config/config.yaml:2: the key 'preset'"):
        config_arguments.merge_config_arguments(make_workflow([], main=False))
    (folder / "config/config.yaml").write_text("[preset]\n")
    with pytest.raises(PlumblineError, match=r"config/config.yaml: top level"):
        config_arguments.merge_config_arguments(make_workflow([], main=False))
    (folder / "slurm/config.v9+.yaml").write_text("config: [preset=paper]\nconfig: [machine=h100]\n")
    with pytest.raises(PlumblineError, match=r"slurm/config.v9\+.yaml:2: the key 'config'"):
        config_arguments.collect_words(["--profile", "slurm"], ["machine=h100"])


def test_a_part_of_a_nested_value_leaves_the_others_alone() -> None:
    config = {"evaluation": {"source": "preset", "missing": "error"}, "work": "work"}
    args = ["evaluation={missing: proxy}", "evaluation={folder: x}", "work=w2"]
    assert config_arguments.change_config(config, args) == {
        "evaluation": {"source": "preset", "missing": "proxy", "folder": "x"},
        "work": "w2",
    }
    with pytest.raises(PlumblineError, match=r"--config work: write KEY=VALUE"):
        config_arguments.change_config(config, ["work"])


def test_a_key_that_stands_twice_in_one_word_is_refused() -> None:
    """Of the two the last had been taken, without a word."""
    with pytest.raises(PlumblineError, match=r"^--config data=\.\.\.:1: .*'source' .*twice"):
        config_arguments.parse_words(["data={source: local, source: hub}"])
    with pytest.raises(PlumblineError, match="'folder' is there twice"):
        config_arguments.parse_words(["evaluation={folder: a, missing: error, folder: b}"])
    assert config_arguments.parse_words(["data={source: local}", "data={source: hub}"]) == {"data": {"source": "hub"}}


@pytest.mark.parametrize("word", ["work=scratch #2", "work=&scratch x", "work=!x y", "work=a\nb", "work= a"])
def test_a_text_that_yaml_cuts_is_refused(word: str) -> None:
    with pytest.raises(PlumblineError, match=r"(?s)^--config work=.*: YAML reads '.*' there"):
        config_arguments.parse_words([word])
    assert config_arguments.parse_words(["work='a b#c'", "limit=1"]) == {"work": "a b#c", "limit": 1}

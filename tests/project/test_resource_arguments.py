"""Resources of jobs together with profiles: what is not named again survives, and reaches the processes of jobs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.project import config_arguments, snakemake_internals

SLURM = """
default-resources: {slurm_account: a, slurm_partition: gpu}
set-threads: {pretrain: 8, probe: 2}
set-resources:
  pretrain: {gres: "'gpu:8'", launch: "'srun python'", runtime: "60 * attempt"}
  probe: {gres: "'gpu:1'"}
"""
SITE = """
default-resources: {slurm_account: b}
set-resources: {pretrain: {runtime: 480}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two profiles and one of its own."""
    for name, text in (("slurm", SLURM), ("site", SITE), ("profiles/default", "keep-going: true\n")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.v9+.yaml").write_text(text)
    (tmp_path / "Snakefile").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)
    return tmp_path


def merge_line(line: str, monkeypatch: pytest.MonkeyPatch, *, main: bool = True) -> Any:
    """What a Snakefile works with, of a Snakemake that was started so."""
    from snakemake.cli import parse_args
    from snakemake.settings.types import ResourceSettings

    argv = shlex.split(line)
    _, parsed = parse_args(argv)
    settings = ResourceSettings(
        overwrite_threads=parsed.set_threads,
        overwrite_resources=parsed.set_resources,
        default_resources=parsed.default_resources,
    )
    monkeypatch.setattr(sys, "argv", ["bin/snakemake", *argv])
    workflow = SimpleNamespace(resource_settings=settings, is_main_process=main)
    config_arguments.merge_resource_arguments(workflow)
    return workflow


def test_a_word_of_the_command_line_takes_no_gpu_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Snakemake alone drops the profile's block: trainings had no device, launcher or time limit, without a word."""
    workflow = merge_line("table --profile slurm --set-resources tokenizer:mem_mb=20000 probe:gres=gpu:2", monkeypatch)
    in_force = snakemake_internals.resources_in_force(workflow)
    assert {name: value.strip("'") for name, value in in_force["set-resources"].items()} == {
        "pretrain:gres": "gpu:8",
        "pretrain:launch": "srun python",
        "pretrain:runtime": "60 * attempt",
        "probe:gres": "gpu:2",
        "tokenizer:mem_mb": "20000",
    }
    assert in_force["set-threads"] == {"pretrain": "8", "probe": "2"}


def test_a_later_profile_replaces_what_it_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workflow = merge_line("--profile slurm --profile site --set-threads probe=4 -- table", monkeypatch)
    resources = snakemake_internals.resources_in_force(workflow)
    assert resources["set-resources"]["pretrain:runtime"] == "480"
    assert resources["set-resources"]["pretrain:gres"].strip("'") == "gpu:8"
    assert resources["set-threads"] == {"pretrain": "8", "probe": "4"}
    assert (
        resources["default-resources"] | {"slurm_account": "b", "slurm_partition": "gpu"}
        == resources["default-resources"]
    )


def test_a_job_is_given_what_is_in_force(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from snakemake.cli import parse_args
    from snakemake.spawn_jobs import SpawnedJobArgsFactory

    workflow = merge_line("table --profile slurm --set-resources tokenizer:mem_mb=20000", monkeypatch)
    args = [word for part in SpawnedJobArgsFactory(workflow).get_set_resources_args() for word in shlex.split(part)]
    _, settings = parse_args(["--workflow-profile", "none", *args])
    assert set(settings.set_resources) == {"pretrain", "probe", "tokenizer"}
    assert set(settings.set_resources["pretrain"]) == {"gres", "launch", "runtime"}
    before = (job := merge_line("table --set-resources tokenizer:mem_mb=1", monkeypatch, main=False)).resource_settings
    assert job.resource_settings is before and set(before.overwrite_resources) == {"tokenizer"}


def test_without_words_nothing_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_force = snakemake_internals.resources_in_force(merge_line("table", monkeypatch))
    assert in_force["set-resources"] == in_force["set-threads"] == {}


def test_what_cannot_be_told_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An abbreviation is Snakemake's to read, and not read here."""
    with pytest.raises(PlumblineError, match="full, as --set-resources"):
        merge_line("table --profile slurm --set-thr probe=4", monkeypatch)

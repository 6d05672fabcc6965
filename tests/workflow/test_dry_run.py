"""Every study plans at every preset, in seconds, and without importing torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from plumbline.studies import sheet
from plumbline.studies.config import PRESETS

from tests.workflow.project import Project

STUDIES = sorted(path.stem for path in (Path(__file__).parents[2] / "config" / "studies").glob("*.yaml"))


@pytest.fixture(scope="module")
def project(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.copy(repository, tmp_path_factory.mktemp("dry") / "project")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("study", STUDIES)
def test_every_study_plans_at_every_preset(project: Project, study: str, preset: str) -> None:
    planned = project.planned("all", "--config", f"preset={preset}", f"studies=[{study}]")
    runs = sheet.load(study, preset).runs
    assert planned["pretrain"] == len(runs)
    assert planned["evaluate"] <= planned["pretrain"]


def test_table2_needs_the_base_scale_and_the_noise_floor_only(project: Project) -> None:
    planned = project.planned("results/table2.csv")
    assert planned["pretrain"] == planned["evaluate"] == 26
    assert planned["table"] == 1


def test_profile_slurm_plans_the_paper_preset_to_the_letter(project: Project) -> None:
    done = project.snakemake("results/table2.csv", "--profile", "slurm", "-n")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "work/paper/runs/transfer/base/softpick/s42/outcome.json" in done.stdout
    assert "work/demo" not in done.stdout


def test_a_dry_run_imports_no_torch(project: Project) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "snakemake", "-n", "results/table2.csv"]
    done = subprocess.run(command, cwd=project.root, env=project.environment, capture_output=True, text=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time")}
    assert "plumbline.studies.sheet" in imported
    assert not [name for name in imported if name.split(".")[0] in ("torch", "transformers", "datasets", "lm_eval")]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("preset: demo", "preste: demo", "unknown key 'preste'; did you mean 'preset'?"),
        ("preset: demo", "preset: huge", "'huge' is not one of"),
        ("studies: [transfer]", "studies: [transfr]", "there is no study 'transfr'"),
    ],
)
def test_a_wrong_key_in_the_configuration_is_named(
    repository: Path, tmp_path: Path, before: str, after: str, says: str
) -> None:
    project = Project.copy(repository, tmp_path / "project")
    project.edit("config/config.yaml", before, after)
    done = project.snakemake("-n", "results/table2.csv")
    assert done.returncode != 0
    assert says in done.stdout
    assert "config" in done.stdout


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("methods: [baseline, qknorm, softpick], seeds", "methods: [baseline, qknrom, softpick], seeds", "'qknrom'; did you mean 'qknorm'?"),
        ("model: {mixer: {name: softpick}}", "model: {mixer: {name: softpik}}", "did you mean 'softpick'?"),
        ("model: {mixer: {name: softpick}}", "model: {mixer: {name: softpick, varient: original}}", "no option 'varient'; did you mean 'variant'?"),
        ("train: {steps: 44, batch_tokens: 2304", "train: {steps: 44, batch_tokens: 2300", "not a multiple of model.context"),
        ("    label: Softpick\n", "    lable: Softpick\n", "unknown key 'lable'; did you mean 'label'?"),
    ],
)
def test_a_wrong_key_in_a_study_is_named(
    repository: Path, tmp_path: Path, before: str, after: str, says: str
) -> None:
    project = Project.copy(repository, tmp_path / "project")
    project.edit("config/studies/transfer.yaml", before, after)
    done = project.snakemake("-n", "results/table2.csv")
    assert done.returncode != 0
    assert says in done.stdout
    assert "config/studies/transfer.yaml" in done.stdout

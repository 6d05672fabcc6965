"""Every study plans at every preset, in seconds, and without importing torch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plumbline.specs import sheet
from plumbline.specs.config import PRESETS
from tests.workflow.project import STUDY, Project, jobs_by_rule, jobs_of_studies

STUDIES = sorted(path.stem for path in (Path(__file__).parents[2] / "config" / "studies").glob("*.yaml"))
HEAVY = {"torch", "transformers", "datasets", "lm_eval"}
pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def project(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.copy(repository, tmp_path_factory.mktemp("dry") / "project")


@pytest.mark.parametrize("preset", PRESETS)
def test_every_study_plans_at_every_preset(project: Project, preset: str) -> None:
    done = project.snakemake("-n", "all", "--config", f"preset={preset}", f"studies={STUDIES}".replace("'", ""))
    assert done.returncode == 0, done.stdout[-4000:]
    tables = figures = 0
    for name in STUDIES:
        study = sheet.load(name, preset, project.root)
        targets = study.sheet["targets"].values()
        wanted = {run.key for target in targets for run in study.group(*target["runs"])}
        scored = {run.key for target in targets if "scores" in target["reads"] for run in study.group(*target["runs"])}
        assert jobs_of_studies(done.stdout, "pretrain")[name] == len(wanted)
        assert jobs_of_studies(done.stdout, "evaluate")[name] == len(scored)
        tables += sum(target["kind"] == "table" for target in targets)
        figures += sum(target["kind"] == "figure" for target in targets)
    planned = jobs_by_rule(done.stdout)
    assert planned["table"] == tables
    assert planned.get("figure", 0) == figures


def test_table2_at_demo_is_twenty_methods_and_six_more_seeds(project: Project) -> None:
    planned = project.planned("results/table2.csv")
    corpora_and_items = planned.pop("fetch")
    assert corpora_and_items == 3
    assert planned == {
        "documents": 1, "tokenizer": 1, "tokenize": 4, "pack_train": 1, "pack_validation": 1, "items": 1,
        "pretrain": 26, "evaluate": 26, "table": 1, "main_table": 1,
    }  # fmt: skip


def test_profile_slurm_plans_the_paper_preset_to_the_letter(project: Project) -> None:
    done = project.snakemake("results/table2.csv", "--profile", "slurm", "-n")
    assert done.returncode == 0, done.stdout[-3000:]
    assert jobs_by_rule(done.stdout)["pretrain"] == 26
    assert "work/paper/runs/transfer/base/softpick/s42/outcome.json" in done.stdout
    assert set(re.findall(r"(?<!/)\bwork/(\w+)/", done.stdout)) == {"paper"}


def test_a_dry_run_imports_no_torch(project: Project) -> None:
    done = project.python("-X", "importtime", "-m", "snakemake", "-n", "results/table2.csv", "--config", "preset=paper")
    assert jobs_by_rule(done.stdout)["pretrain"] == 26
    imported = {line.rpartition("|")[2].strip() for line in done.stdout.splitlines() if line.startswith("import time")}
    assert "plumbline.specs.sheet" in imported
    assert not HEAVY & {name.split(".")[0] for name in imported}


def test_one_key_can_be_set_for_one_invocation(project: Project) -> None:
    """A nested key, its neighbours left alone: documents then come from a folder, and no corpus is fetched."""
    setting = "data={source: local, folder: texts}"
    done = project.snakemake("-n", "-p", "work/demo/documents/documents.json", "--config", setting)
    assert jobs_by_rule(done.stdout) == {"documents": 1}
    assert "--source local --folder texts" in done.stdout


def test_a_mistake_is_shown_with_file_and_remedy(repository: Path, tmp_path: Path) -> None:
    """One of each kind, through Snakemake; every other message is tested where it is made (tests/studies)."""
    project = Project.copy(repository, tmp_path / "project")
    project.edit(STUDY, "model: {mixer: {name: softpick}}", "model: {mixer: {name: softpik}}")
    study = project.snakemake("-n", "results/table2.csv")
    setting = project.snakemake("-n", "results/table2.csv", "--config", "preste=smoke")
    for done, file, says in (
        (study, STUDY, "transfer/base/softpick: model.mixer.name: no component 'softpik'; did you mean 'softpick'?"),
        (setting, "config/config.yaml", "unknown key 'preste'; did you mean 'preset'?"),
    ):
        assert done.returncode == 1
        assert f"{file}" in done.stdout and says in done.stdout
        assert "Traceback" not in done.stdout

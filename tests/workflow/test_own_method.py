"""CONTRIBUTING, carried out: a component, a study that extends another, a table; and everything stays green."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workflow.conftest import SMOKE
from tests.workflow.project_copy import Project, jobs_by_rule

TRANSFER = ("table2", "noise_floor", "table7")
pytestmark = pytest.mark.workflow


def blocks(language: str, repository: Path) -> list[str]:
    """The code blocks of docs/add-a-method.md in a language, as somebody would type them."""
    text = (repository / "docs/add-a-method.md").read_text()
    texts = re.findall(rf"^ *```{language}\n(.*?)^ *```", text, flags=re.M | re.S)
    return [re.sub(r"^   ", "", block, flags=re.M) for block in texts]


def rows(path: Path) -> dict[str, dict[str, str]]:
    with open(path) as lines:
        return {row["method"]: row for row in csv.DictReader(lines)}


def read_tables(project: Project) -> dict[str, bytes]:
    """The reproduced study's tables."""
    return {name: (project.root / f"results/smoke/transfer/{name}.csv").read_bytes() for name in TRANSFER}


@pytest.fixture(scope="module")
def mine(finished: Project, repository: Path) -> Iterator[Project]:
    """The project with the method and the study that docs/add-a-method.md writes down, taken out again at the end."""
    (component,), (study,) = blocks("python", repository), blocks("yaml", repository)
    file, folder = finished.root / "src/plumbline/model/mixers/tempered.py", finished.root / "studies/mine"
    file.write_text(component)
    folder.mkdir()
    (folder / "study.yaml").write_text(study)
    yield finished
    file.unlink()
    shutil.rmtree(folder)


def test_it_is_trained_beside_the_reference_runs_that_are_there(mine: Project) -> None:
    before = read_tables(mine)
    done = mine.snakemake("results/mine/table2.csv", *SMOKE)
    assert done.returncode == 0, done.stdout[-5000:]
    assert jobs_by_rule(done.stdout) == {"pretrain": 2, "evaluate": 2, "table": 1, "copy_table": 1}
    table = rows(mine.root / "results/mine/table2.csv")
    assert table.keys() == {"baseline", "tempered"}
    assert table["baseline"]["n_seeds"] == "3", "the reference runs are the parent's own"
    assert float(table["tempered"]["p_bonferroni"]) == float(table["tempered"]["p"]), "one method tried: m is 1"
    assert read_tables(mine) == before
    targets = [f"results/smoke/transfer/{name}.csv" for name in TRANSFER]
    assert mine.planned(*targets, *SMOKE) == {}, "the reproduced study does not notice"


def test_it_is_planned_with_a_time_limit_of_its_size(mine: Project) -> None:
    done = mine.snakemake("--dry-run", "work/demo/scores/mine/base/tempered/s42/scores.parquet")
    assert done.returncode == 0, done.stdout[-3000:]
    limits = [int(limit) for limit in re.findall(r"runtime=(\d+)", done.stdout)]
    assert limits and max(limits) <= 60


def test_the_tests_are_green(mine: Project) -> None:
    """Of those that know methods or components by name, the quick ones; each was red once because a method had come."""
    specs = [f"tests/specs/test_{name}.py" for name in ("components", "yaml_files", "study_config", "duplicate_runs")]
    folders = (
        *specs,
        "tests/golden/test_code_classes.py",
        "tests/plan/test_model_counts.py",
        "tests/project/test_project.py",
    )
    others = ("installed", "refactor", "edit_of", "mistakes", "dry_run", "thousands", "sources_of")
    chosen = ("-k", " and ".join(f"not {name}" for name in others))
    done = mine.python("-m", "pytest", "-q", "-p", "no:cacheprovider", *folders, *chosen)
    assert done.returncode == 0, done.stdout[-4000:]
    models = ("tests/model", "--ignore=tests/model/kernels", "-k", "tempered")  # a new mixer has no kernel yet
    universal = mine.python("-m", "pytest", "-q", "-p", "no:cacheprovider", *models)
    assert universal.returncode == 0, universal.stdout[-4000:]


def test_an_edited_component_is_trained_again(mine: Project) -> None:
    mine.edit("src/plumbline/model/mixers/tempered.py", "* self.temperature", "* self.temperature * 1.5")
    planned = mine.planned("results/mine/table2.csv", *SMOKE)
    mine.edit("src/plumbline/model/mixers/tempered.py", "* self.temperature * 1.5", "* self.temperature")
    assert planned == {"pretrain": 2, "evaluate": 2, "table": 1, "copy_table": 1}


def test_an_installed_package_may_bring_it(mine: Project, tmp_path: Path, repository: Path) -> None:
    before = read_tables(mine)
    (component,) = blocks("python", repository)
    (tmp_path / "cooled_attention.py").write_text(component.replace("class Tempered", "class Cooled"))
    information = tmp_path / "cooled-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: cooled\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[plumbline.components]\nmixers.cooled = cooled_attention\n")
    folder = mine.root / "studies/theirs"
    folder.mkdir()
    (folder / "study.yaml").write_text(
        "study: theirs\ntitle: Cooled\nextends: transfer\nseeds: [42]\n"
        "methods: {cooled: {label: Cooled, model: {mixer: {name: cooled, initial: 0.7}}}}\n"
    )
    theirs = Project(mine.root, packages=tmp_path)
    try:
        done = theirs.snakemake("results/theirs/table2.csv", *SMOKE)
    finally:
        shutil.rmtree(folder)
    assert done.returncode == 0, done.stdout[-5000:]
    assert jobs_by_rule(done.stdout)["pretrain"] == 1
    assert rows(mine.root / "results/theirs/table2.csv").keys() == {"baseline", "cooled"}
    assert read_tables(mine) == before

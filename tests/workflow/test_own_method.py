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
    targets = [f"results/smoke/transfer/{name}.csv" for name in TRANSFER]
    before, planned_before = read_tables(mine), mine.planned(*targets, *SMOKE)
    done = mine.snakemake("results/mine/table2.csv", *SMOKE)
    assert done.returncode == 0, done.stdout[-5000:]
    assert jobs_by_rule(done.stdout) == {"pretrain": 2, "evaluate": 2, "table": 1, "copy_table": 1}
    table = rows(mine.root / "results/mine/table2.csv")
    assert table.keys() == {"baseline", "tempered"}
    assert table["baseline"]["n_seeds"] == "3", "the reference runs are the parent's own"
    assert float(table["tempered"]["p_bonferroni"]) == float(table["tempered"]["p"]), "one method tried: m is 1"
    assert read_tables(mine) == before
    assert mine.planned(*targets, *SMOKE) == planned_before, "the reproduced study does not notice"


@pytest.mark.slow
def test_the_tests_are_green(mine: Project) -> None:
    """Of those that know methods or components by name, the quick ones; each was red once because a method had come."""
    names = ("components", "yaml_files", "study_config", "duplicate_runs")
    files = (*(f"tests/specs/test_{name}.py" for name in names), "tests/golden/test_code_classes.py")
    others = ("installed", "refactor", "edit_of", "mistakes", "thousands", "sources_of", "kernels")
    selection = " or ".join(("tempered", *(Path(file).stem for file in files)))  # of all models' tests, this one's
    chosen = ("-m", "not slow", "-k", f"({selection}) and not ({' or '.join(others)})")
    done = mine.python("-m", "pytest", "-q", "-p", "no:cacheprovider", *files, "tests/model", *chosen)
    assert done.returncode == 0, done.stdout[-4000:]

"""docs/add-a-method.md and own-training.md, carried out: components, a study that extends another, verdicts."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workflow.conftest import SMOKE
from tests.workflow.project_copy import Project, jobs_by_rule
from tests.workflow.test_new_files import DECIDED

TRANSFER = ("table2", "noise_floor", "table7")
#: The components of docs/own-training.md.
TRAIN = (
    "src/plumbline/train/optimizers/lion.py",
    "src/plumbline/train/schedules/linear.py",
    "src/plumbline/train/interventions/still_embedding.py",
)
pytestmark = pytest.mark.workflow


def blocks(language: str, text: str) -> list[str]:
    """The code blocks of a page in a language, as somebody would type them."""
    return [
        re.sub(r"^   ", "", block, flags=re.M)
        for block in re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.M | re.S)
    ]


def rows(path: Path) -> dict[str, dict[str, str]]:
    with open(path) as lines:
        return {row["method"]: row for row in csv.DictReader(lines)}


def read_tables(project: Project) -> dict[str, bytes]:
    """The reproduced study's tables."""
    return {name: (project.root / f"results/smoke/transfer/{name}.csv").read_bytes() for name in TRANSFER}


@pytest.fixture(scope="module")
def mine(finished: Project, repository: Path) -> Iterator[Project]:
    """The project with the method and the study that docs/add-a-method.md writes down, taken out again at the end."""
    page = (repository / "docs/add-a-method.md").read_text()
    (component,), (study,) = blocks("python", page), blocks("yaml", page)
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
    process = mine.snakemake("results/mine/table2.csv", *SMOKE)
    assert process.returncode == 0, process.stdout[-5000:]
    assert jobs_by_rule(process.stdout) == {"pretrain": 2, "evaluate": 2, "table": 1, "copy_table": 1}
    table = rows(mine.root / "results/mine/table2.csv")
    assert table.keys() == {"baseline", "tempered"}
    assert table["baseline"]["n_seeds"] == "3", "the reference runs are the parent's own"
    assert float(table["tempered"]["p_bonferroni"]) == float(table["tempered"]["p"]), "one method tried: m is 1"
    assert read_tables(mine) == before
    assert mine.planned(*targets, *SMOKE) == planned_before, "the reproduced study does not notice"


def test_what_trains_a_model_goes_from_file_to_verdict(finished_copy: Project, repository: Path) -> None:
    """An optimizer, a schedule and an intervention, by the page's own commands, at smoke size."""
    project, page = finished_copy, (repository / "docs/own-training.md").read_text()
    components = dict(re.findall(r"`(src/\S+\.py)`\.\n\n```python\n(.*?)```", page, re.S))
    assert tuple(components) == TRAIN
    (methods,), (console,) = (
        re.findall(r"```yaml\n(.*?)```", page, re.S),
        re.findall(r"```console\n(.*?)```", page, re.S),
    )
    for path, text in (*components.items(), ("my/training.yaml", methods)):
        (project.root / path).parent.mkdir(exist_ok=True)
        (project.root / path).write_text(text)
    plan, *tries = (line.split()[1:] for line in console.splitlines())
    process = project.python("-m", *plan, "--preset", "smoke")
    assert process.returncode == 0 and "runs are to be trained" in process.stdout, process.stdout
    for words in tries:
        process = project.python("-m", *words, "--preset", "smoke", "--baseline-runs", "2", "--max-runs", "2")
        assert process.returncode in DECIDED and f"`{words[-1]}`" in process.stdout, process.stdout[-3000:]


@pytest.mark.slow
def test_the_tests_are_green(mine: Project) -> None:
    """Of those that know methods or components by name, the quick ones; each was red once because a method had come."""
    names = ("components", "yaml_files", "study_config", "duplicate_runs")
    files = (*(f"tests/specs/test_{name}.py" for name in names), "tests/golden/test_code_classes.py")
    others = ("installed", "refactor", "edit_of", "mistakes", "thousands", "sources_of", "kernels")
    selection = " or ".join(("tempered", *(Path(file).stem for file in files)))  # of all models' tests, this one's
    chosen = ("-m", "not slow", "-k", f"({selection}) and not ({' or '.join(others)})")
    process = mine.python("-m", "pytest", "-q", "-p", "no:cacheprovider", *files, "tests/model", *chosen)
    assert process.returncode == 0, process.stdout[-4000:]

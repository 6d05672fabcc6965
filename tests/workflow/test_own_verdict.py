"""A user's own modification, from an installed package to its page: checked, trained, judged; or refused before."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from plumbline.verdict import ledger
from plumbline.verdict.ledger import LedgerEntry
from tests.workflow.project_copy import Project, jobs_by_rule

pytestmark = pytest.mark.workflow

LEAKY = '''
"""Sees the next token's value too."""
from plumbline.model.mixers.softmax import Softmax
from plumbline.specs.components import component

@component
class Leaky(Softmax):
    """Softmax and a little of what follows."""

    def forward(self, q_BHQW, k_BGKW, v_BGKW, attention_mask, cache=None):
        out = super().forward(q_BHQW, k_BGKW, v_BGKW, attention_mask, cache)
        following = v_BGKW.roll(-1, dims=2).repeat_interleave(q_BHQW.shape[1] // v_BGKW.shape[1], dim=1)
        return out + 0.01 * following[:, :, -out.shape[2] :]
'''


@pytest.fixture(scope="module")
def project(repository: Path, finished_copy: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The finished project, and the example's package as an installer leaves it."""
    packages = tmp_path_factory.mktemp("packages")
    example = repository / "examples/cosine_attention"
    shutil.copytree(example / "src/cosine_attention", packages / "cosine_attention")
    project_table = tomllib.loads((example / "pyproject.toml").read_text())["project"]
    information = packages / "cosine_attention-0.1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project_table['name']}\nVersion: {project_table['version']}\n"
    )
    entries = project_table["entry-points"]["plumbline.components"]
    lines = "".join(f"{name} = {module}\n" for name, module in entries.items())
    (information / "entry_points.txt").write_text(f"[plumbline.components]\n{lines}")
    (finished_copy.root / "my").mkdir(exist_ok=True)
    return Project(finished_copy.root, packages=packages)


def write_request(project: Project, name: str, text: str, *options: str) -> tuple[str, ...]:
    """A user's own file, and the words that ask for its page."""
    (project.root / f"my/{name}.yaml").write_text(text)
    return (*options, f"results/verdict/{name}.md", "--config", "preset=smoke", f"mine=my/{name}.yaml")


def test_plug_in_that_is_not_causal_is_refused(project: Project) -> None:
    component = project.root / "src/plumbline/model/mixers/leaky.py"
    component.write_text(LEAKY)
    try:
        text = "extends: transfer\nmethods: {leaky: {model: {mixer: {name: leaky}}}}\n"
        process = project.snakemake(*write_request(project, "leaky", text))
    finally:
        component.unlink()
    assert process.returncode != 0
    assert "my/leaky.yaml: leaky: causality: token 1" in process.stdout
    assert "nothing was trained" in process.stdout
    assert not (project.root / "work/smoke/runs/leaky").exists()
    assert not (project.root / "results/smoke/verdict").exists()


def test_the_example_gets_its_page_and_a_later_try_makes_it_anew(project: Project, repository: Path) -> None:
    text = (repository / "examples/cosine.yaml").read_text().replace("larger: large\n", "")
    arguments = write_request(project, "cosine", text + "seeds: [42, 43]\nreference_seeds: [42, 43]\n")
    process = project.snakemake(*arguments)
    assert process.returncode == 0, process.stdout[-6000:]
    assert {"pretrain": 2, "evaluate": 2, "verdict": 1, "copy_verdict": 1}.items() <= jobs_by_rule(
        process.stdout
    ).items()
    page = project.root / "results/verdict/cosine.md"
    verdict_sentence = page.read_text().split("\n\n")[1]
    assert re.match(r"At 80k parameters and \d+ steps of [\d,]+ tokens \(preset smoke\): `cosine` ", verdict_sentence)
    output = f"{verdict_sentence}\n\nresults/verdict/cosine.md\n"
    floor = "results/smoke/transfer/noise_floor.csv"
    again = project.snakemake(floor, *arguments).stdout
    assert output in process.stdout and output in again and "Nothing to be done" in again
    assert "](cosine.svg)" in page.read_text()
    assert page.with_suffix(".svg").read_text().startswith("<svg ")
    check = project.python("-m", "plumbline.verdict", "--check-page", "results/verdict/cosine.md")
    assert check.returncode == 0, check.stdout

    first = project.read("results/smoke/verdict/cosine.json")["methods"]["cosine"]
    same = {"baseline": "transfer/base/baseline", "metric": "validation_loss", "test": "pooled t"}
    others = [LedgerEntry(kind="spec", name=name, fingerprint=name, **same) for name in ("a", "b")]
    ledger.append(project.root / "results/smoke/verdict/ledger.jsonl", others)
    process = project.snakemake(*arguments)
    assert process.returncode == 0 and jobs_by_rule(process.stdout) == {"verdict": 1, "copy_verdict": 1}, (
        process.stdout[-3000:]
    )
    third = json.loads(page.with_suffix(".json").read_text())["methods"]["cosine"]
    assert (first["tries"], third["tries"]) == (1, 3)
    assert third["p_corrected"] == pytest.approx(min(1, 3 * first["p"]))

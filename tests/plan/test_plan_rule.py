"""`snakemake plan`: made anew when what it depends on changes, and no part of `all`."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from plumbline.plan.run_estimate import estimator
from plumbline.project import load
from plumbline.specs.yaml_files import load_config
from tests.workflow.project_copy import Project, jobs_by_rule

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def project(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.copy(repository, tmp_path_factory.mktemp("plan") / "project")


def test_jobs_ask_for_the_time_that_the_plan_says(project: Project) -> None:
    paper = {"preset": "paper", "work": str(project.root / "work"), "machine": "h100", "studies": ["transfer"]}
    priced = estimator(load(load_config() | paper))
    (run, *_) = priced.project.studies["transfer"].group("base")
    scores = f"work/paper/scores/{run.key}/scores.parquet"
    arguments = ("--config", "preset=paper", "machine=h100", "studies=[transfer]")
    process = project.snakemake("-n", scores, *arguments)
    assert minutes(process.stdout) == [priced.pretrain_minutes(run), priced.evaluate_minutes(run)]
    assert "plan" not in jobs_by_rule(process.stdout)
    process = project.snakemake("-n", scores, *arguments, "--set-resources", "pretrain:runtime=7")
    assert minutes(process.stdout) == [7, priced.evaluate_minutes(run)]


def minutes(output: str) -> list[int]:
    """Time limits of a dry run's jobs of runs."""
    jobs = re.split(r"^\[", output, flags=re.M)
    of_runs = [job for job in jobs if re.search(r"^rule (pretrain|evaluate|probe):", job, flags=re.M)]
    return [int(number) for job in of_runs for number in re.findall(r"runtime=(\d+)", job)]


def test_an_uncounted_component_gets_a_time_limit(project: Project) -> None:
    """As CONTRIBUTING says: a file, and a study that extends. A dry run reckons, a plan counts and is made anew where
    it would change, the next dry run knows."""
    own = project
    (own.root / "src" / "plumbline" / "model" / "mixers" / "warmed.py").write_text(WARMED)
    study = own.root / "studies" / "warm" / "study.yaml"
    study.parent.mkdir()
    study.write_text(
        "study: warm\ntitle: Warm\nextends: transfer\n"
        "methods: {warmed: {label: Warmed, model: {mixer: {name: warmed}}}}\n"
    )
    run = "work/paper/scores/warm/base/warmed/s42/scores.parquet"
    paper = ("--config", "preset=paper", "machine=h100", "studies=[warm]")
    estimated = minutes(own.snakemake("-n", run, *paper).stdout)
    assert len(estimated) == 2 and 15 < min(estimated) < 90 and max(estimated) <= 24 * 60
    process = own.snakemake("plan", "--cores", "1", *paper)
    assert process.returncode == 0, process.stdout[-3000:]
    rows = {row["target"]: row for row in csv.DictReader((own.root / "results" / "paper" / "plan.csv").open())}
    assert int(rows["table2"]["runs_to_do"]) > 3 and rows["table2"]["runs_estimated"] == "0"
    assert rows["table2"]["not_counted"] == ""
    assert own.planned("plan", *paper) == {} and own.planned("plan", "--config", "studies=[warm]") == {"plan": 1}
    assert minutes(own.snakemake("-n", run, *paper).stdout) == pytest.approx(estimated, rel=0.1)
    code = (
        "from pathlib import Path; from plumbline.plan import model_counts; from plumbline.project import load;"
        "from plumbline.specs.yaml_files import load_config;"
        "whole = load(load_config() | {'preset': 'paper', 'studies': ['warm']});"
        "size = model_counts.ModelCostLookup(model_counts.read(Path(whole.paths.counts)));"
        "keys = ('warm/base/warmed/s42', 'transfer/base/baseline/s42');"
        "one, other = (size(whole.runs[key].spec.model) for key in keys);"
        "print(one.exact, one.parameters - other.parameters)"
    )
    process = own.python("-c", code)
    assert process.stdout.split() == ["True", "24"], process.stdout


WARMED = '''"""Softmax with a learned temperature."""

from plumbline.model.mixers._base import Mixer, masked_softmax
from plumbline.model.roles import ConstantInit, parameter
from plumbline.specs.components import component


@component
class Warmed(Mixer):
    """Softmax of scores times a learned temperature, one a layer."""

    def __init__(self, model, layer, *, initial: float = 1.0):
        super().__init__(model, layer)
        self.temperature = parameter(1, role="scalar", layer=layer, init=ConstantInit(value=initial))

    def weights(self, q_BHQW, k_BGKW, attention_mask):
        return masked_softmax(self.scores(q_BHQW, k_BGKW) * self.temperature, attention_mask)
'''

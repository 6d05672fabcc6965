"""The runs that a job works out by itself are those that it was planned with, however many they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.project import load
from plumbline.results import __main__ as results
from plumbline.results.runs.expected_runs import list_expected_runs, require_expected
from plumbline.specs import study_config
from plumbline.specs.study_config import Run, Study
from plumbline.specs.yaml_files import load_config
from tests import run_in_process


@pytest.fixture(scope="module")
def many() -> Study:
    """A study with 500 runs in the groups of its main table, of which only their names differ."""
    study = study_config.load("transfer", "smoke")
    spec = study.runs["transfer/base/baseline/s42"].spec
    names = [replace_seed(spec, seed) for seed in range(500)]
    return replace(study, runs={each.key: Run(spec=each, groups=("base", "noise_floor")) for each in names})


def replace_seed(spec: study_config.RunSpec, seed: int) -> study_config.RunSpec:
    return study_config.RunSpec.from_dict(spec.to_dict() | {"init_seed": seed})


def test_five_hundred_runs_are_a_short_word(many: Study, tmp_path: Path) -> None:
    groups = ["base", "noise_floor"]
    planned = replace(load(load_config() | {"preset": "smoke"}), studies={"transfer": many})
    digest = planned.targets.hash_runs("transfer", "table2")
    assert len(digest) == 16 and digest == planned.targets.hash_claimed_runs("transfer")
    require_expected(digest, many, groups)
    assert len(list_expected_runs(None, many, groups, tmp_path)) == 500
    fewer = replace(many, runs=dict(list(many.runs.items())[1:]))
    with pytest.raises(PlumblineError, match=r"planned with: .* start"):
        require_expected(digest, fewer, groups)


def test_the_verb_goes_by_the_source_that_the_plan_had(repository: Path, tmp_path: Path) -> None:
    """Where documents come from is part of a run; the other source's runs are refused before anything is read."""
    config = load_config()
    local = load(config | {"preset": "smoke", "data": {"source": "local"}})
    digest = local.targets.hash_claimed_runs("transfer")
    args = ["claims", "transfer", "--preset", "smoke", "--work", tmp_path, "--expected-runs-digest", digest]
    args += ["--out", tmp_path / "c.csv"]
    process = run_in_process.run(results.main, *args, "--documents-source", "corpus", cwd=repository)
    assert process.returncode == 1 and "job was planned with" in process.stderr
    process = run_in_process.run(results.main, *args, "--documents-source", "local", cwd=repository)
    assert process.returncode == 0, process.stderr

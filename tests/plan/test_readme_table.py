"""README's table of the studies states what the plan states."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from plumbline.plan import machines, model_counts
from plumbline.plan.run_estimate import estimator
from plumbline.plan.target_costs import WHOLE, make_table
from plumbline.project import Project, load
from plumbline.specs.yaml_files import load_config

MACHINES = {"paper": "h100", "demo": "core"}


def rows(repository: Path) -> dict[str, list[str]]:
    """Study -> its runs, hours at paper, minutes at demo."""
    text = (repository / "README.md").read_text()
    row = r"^\| \[`(\w+)`\]\(\S+\) \|[^|]*\| (.*?) \| (.*?) \| (.*?) \|$"
    return {name: rest for name, *rest in re.findall(row, text, re.M)}


def figures(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


def load_project(preset: str, work: Path) -> Project:
    return load(load_config() | {"preset": preset, "machine": MACHINES[preset], "work": str(work)})


def test_the_number_of_runs_is_the_plans(repository: Path, tmp_path: Path) -> None:
    paper, demo = (load_project(preset, tmp_path).studies for preset in MACHINES)
    numbers = {name: list(dict.fromkeys([len(paper[name].runs), len(demo[name].runs)])) for name in paper}
    assert {name: figures(runs) for name, (runs, _, _) in rows(repository).items()} == numbers


def test_hours_are_the_plans(repository: Path, tmp_path: Path) -> None:
    """Of counted models, as `make plan` has them."""

    def whole(preset: str) -> pd.DataFrame:
        of = load_project(preset, tmp_path)
        sizes = model_counts.ModelCostLookup(model_counts.update(Path(of.paths.counts), of.runs.values()))
        frame = make_table(estimator(of, machines.load(MACHINES[preset]), sizes=sizes))
        return frame[frame["target"] == WHOLE].set_index("study")

    paper, demo = (whole(preset) for preset in MACHINES)
    for study, (_, hours, minutes) in rows(repository).items():
        unit = 60 if "minutes" in hours else 1
        assert figures(hours)[0] == pytest.approx(unit * paper.loc[study, "device_hours"], rel=0.02), study
        assert figures(minutes)[0] == pytest.approx(60 * demo.loc[study, "wall_hours"], abs=1), study

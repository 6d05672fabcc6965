"""config/machines.yaml: what methods take on GPUs beside the baseline is what benchmarks/compiled_step.md reckons."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from plumbline.plan import machines
from plumbline.specs import study_config

#: A component is named in the file where its method takes so much more or less than the baseline.
NAMED = 0.02


def printed(repository: Path, machine: str) -> dict[str, float]:
    """Method -> its step over the baseline's, as the page has it."""
    lines = [line for line in (repository / "benchmarks/compiled_step.md").read_text().splitlines() if "|" in line]
    start = next(number for number, line in enumerate(lines) if line.startswith("| method |"))
    head = [cell.strip() for cell in lines[start].split("|")]
    column = head.index(f"step, of the baseline's: {machine.upper()}, reckoned")
    rows = [[cell.strip() for cell in line.split("|")] for line in lines[start + 2 :]]
    return {cells[1]: float(cells[column]) for cells in rows}


@pytest.mark.parametrize("machine", ["h100", "h200", "a100"])
def test_relative_steps_of_gpus_are_those_of_the_page(repository: Path, machine: str) -> None:
    study, found = study_config.load("transfer", "paper"), printed(repository, machine)
    assert set(found) == {study.label(method) for method in study.methods}
    known = machines.load(machine)
    for method in study.methods:
        run, expected = study.runs[f"transfer/base/{method}/s42"], found[study.label(method)]
        assert known.relative(run) == pytest.approx(expected, abs=0.021), method
    listed = {name: time for times in known.relative_step_time.values() for name, time in times.items()}
    assert all(abs(time - 1) >= NAMED for time in listed.values()), "what is listed is more than rounding"


def test_every_row_of_the_page_is_kept(repository: Path) -> None:
    """The rows from which it is written again."""
    rows = [json.loads(line) for line in (repository / "benchmarks/compiled_step.jsonl").read_text().splitlines()]
    assert {row["method"] for row in rows} == set(study_config.load("transfer", "paper").methods)
    assert all(re.fullmatch(r"whole|with [\d, ]+ and \d+ layers", row["planned"]) for row in rows)

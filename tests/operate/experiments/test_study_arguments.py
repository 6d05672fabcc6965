"""What a try of a study's method is set up with: for which machine, and how many runs it asks for before a look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.operate.experiments import __main__ as experiment_verbs
from plumbline.operate.experiments import study_arguments, study_verbs
from plumbline.plan import machines
from plumbline.project.arms import StudyArms


def arms(work: Path, *options: str) -> StudyArms:
    command = ["try", "softpick", "--preset", "paper", *options, "--config", f"work={work}"]
    args = experiment_verbs.arguments().parse_args(command)
    config, own = study_arguments.configuration_of(args)
    return study_arguments.arms_of(*study_arguments.arms_asked(args, config), own)


@pytest.mark.parametrize(("machine", "expected"), [("h100", 8), ("h100_node", 1), ("one_h100", 1), ("core", 2)])
def test_a_try_looks_ahead_by_the_runs_that_its_devices_hold(tmp_path: Path, machine: str, expected: int) -> None:
    """Not by its devices, of which each of these runs takes eight: it would ask for all runs before any look."""
    trainer = arms(tmp_path, "--config", f"machine={machine}")
    stated = machines.load(machine)
    assert trainer.at_once == expected == stated.devices_at_once // stated.devices_of(trainer.run_of("baseline"))


def dry_run(work: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[str, str]:
    command = ["try", "softpick", "--dry-run", *options, "--config", f"work={work}"]
    args = experiment_verbs.parse_line(command)
    assert study_verbs.try_(args) == 0
    return capsys.readouterr()


def test_a_dry_run_at_paper_size_is_for_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, notes = dry_run(tmp_path, capsys, "--preset", "paper")
    assert "on NVIDIA H100 SXM" in out and "planned for h100, since" in notes
    out, notes = dry_run(tmp_path, capsys, "--preset", "paper", "--config", "machine=core")
    assert "on one CPU core" in out and notes == ""
    out, notes = dry_run(tmp_path, capsys, "--preset", "paper", "--profile", "profiles/slurm")
    assert "on NVIDIA H100 SXM" in out and notes == ""
    plan, notes = dry_run(tmp_path, capsys, "--preset", "smoke")
    assert "on one CPU core" in plan and notes == ""
    out, notes = dry_run(tmp_path, capsys, "--preset", "smoke", "--json")
    printed = json.loads(out)
    assert (printed["dry_run"], printed["candidate"], f"{printed['plan']}\n") == (True, "softpick", plan)


@pytest.mark.parametrize(
    ("options", "baseline", "most"), [((), 3, 4), (("--interleave-baseline",), 6, 4), (("--paired",), 4, 4)]
)
def test_a_dry_run_counts_the_runs_of_each_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], baseline: int, most: int
) -> None:
    """Interleaved: a run of the baseline after each of the method's but the last."""
    out, _ = dry_run(tmp_path, capsys, "--preset", "smoke", "--baseline-runs", "3", "--max-runs", "4", *options)
    assert f"{baseline} runs" in out
    assert f"trained (0 of {baseline + most}" in out

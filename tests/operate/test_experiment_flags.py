"""The words of `plumbline try`: those of `plumbline verdict` where they mean the same, and others where they do not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.cli import VERBS
from plumbline.operate.experiments.__main__ import arguments, main, parse_line
from tests import run_in_process


def test_a_try_is_told_what_decides_in_the_words_of_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = VERBS["verdict"].import_module().arguments().format_help()
    assert all(f"  {option} " in verdict for option in ("--paired", "--minimum-gain", "--alpha", "--target-gain"))
    args = arguments().parse_args(
        ["try", "softpick", "--paired", "--minimum-gain", "0.01", "--target-gain-sigmas", "3"]
    )
    assert (args.paired, args.minimum_gain, args.target_gain_sigmas) == (True, 0.01, 3)
    with pytest.raises(SystemExit) as ended:
        parse_line(["try", "softpick", "--target-gain", "0.01"])  # nats there, and would be sigmas here
    assert ended.value.code == 2 and "try: error: unrecognized arguments: --target-gain" in capsys.readouterr().err


def test_a_dry_run_waits_for_no_numbers(repository: Path) -> None:
    argv = ["x", "try", "value_residual", "-n", "--preset", "smoke"]
    code = f"""import sys; sys.argv = {argv}
from plumbline.operate.experiments.__main__ import main
main(); print(sorted({{"numpy", "scipy", "torch", "pandas", "snakemake"}} & set(sys.modules)))"""
    output = subprocess.check_output([sys.executable, "-c", code], cwd=repository, text=True)
    first, runs, loaded = output.splitlines()
    assert first.startswith("value_residual against baseline") and loaded == "[]"
    assert runs.startswith("At most 13 runs ") and " on one CPU core, speed " in runs


def test_session_that_cannot_be_meant_is_error_of_command_line(repository: Path) -> None:
    process = run_in_process.run(
        main, "try", "value_residual", "--preset", "smoke", "--session", "fwer", cwd=repository
    )
    assert process.returncode == 2 and "--session fwer needs --planned-tries N" in process.stderr


def test_several_budgets_of_a_method_are_planned_by_their_steps(repository: Path) -> None:
    command = ("try", "qknorm", "-n", "--preset", "smoke", "--json", "--max-runs", "2", "--at")
    planned = json.loads(run_in_process.run(main, *command, "4x,1x", cwd=repository).stdout)
    assert "against baseline at 1x: 6 steps; 4x: 24" in planned["plan"]
    assert (planned["runs_at_most"], planned["units_of_1x"]) == (8, 20.0)
    half = run_in_process.run(main, *command, "0.25x,1x", cwd=repository)
    assert half.returncode == 2 and "1x (--steps) has 6" in half.stderr
    quick = run_in_process.run(main, *command, "1x,2x", "--quick", cwd=repository)
    assert quick.returncode == 2 and "--quick is a first" in quick.stderr

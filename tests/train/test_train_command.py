"""The command line: exit codes, and a signal that comes before anything is ready for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.train.__main__ import arguments
from tests.model_specs import run_spec
from tests.train.small_runs import products, read


def command(packs: Path, work: Path, spec: str, *launcher: str) -> list[str]:
    return [
        *(launcher or (sys.executable,)), "-m", "plumbline.train", "--spec", spec,
        "--training-pack", str(packs / "train.json"), "--validation-pack", str(packs / "validation.json"),
        "--state", str(work / "state"), "--out", str(work / "out"), "--device", "cpu",
    ]  # fmt: skip


def test_a_bad_spec_is_an_error_in_one_line_and_is_recorded(packs: Path, tmp_path: Path) -> None:
    text = run_spec().to_json().replace('"adamw"', '"adamw","beta3":1')
    process = subprocess.run(command(packs, tmp_path, text), capture_output=True, text=True)
    assert process.returncode == 1
    assert process.stderr.startswith(
        "error: transfer/base/baseline: optimizer: the component 'adamw' has no option 'beta3'"
    )
    assert process.stderr.count("\n") == 1
    assert "no option 'beta3'" in read(tmp_path / "state/fault.json")["reason"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--micro-batch", "2.5"), "--micro-batch: '2.5' is not"),
        (("--micro-batch", "0"), "--micro-batch: '0' is not"),
        (("--metric-lag-steps", "1e3"), "--metric-lag-steps: '1e3' is not"),
        (("--metric-lag-steps", "-1"), "--metric-lag-steps: '-1' is not"),
    ],
)
def test_a_count_that_is_none_is_said(args: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        arguments().parse_args(
            ["--spec", "{}", "--training-pack", "d", "--validation-pack", "v", "--state", "s", "--out", "o", *args]
        )
    assert message in capsys.readouterr().err


def test_a_signal_during_the_imports(packs: Path, tmp_path: Path, undisturbed: Path) -> None:
    """The spec comes through a pipe, so the process is known to be at its very beginning when the signal is sent."""
    pipe = tmp_path / "spec.json"
    os.mkfifo(pipe)
    process = subprocess.Popen(command(packs, tmp_path, str(pipe)), stderr=subprocess.PIPE, text=True)
    with open(pipe, "w") as handle:
        process.send_signal(signal.SIGTERM)
        handle.write(run_spec().to_json())
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == EXIT_RUN_AGAIN, stderr
    assert not (tmp_path / "out").exists() and not (tmp_path / "state" / "run_lock.json").exists()
    done = subprocess.run(command(packs, tmp_path, run_spec().to_json()), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert products(tmp_path) == products(undisturbed)
    assert "18,624 parameters on cpu" in done.stderr and "completed, validation loss" in done.stderr


@pytest.mark.slow
def test_torchrun_starts_the_ranks(packs: Path, tmp_path: Path) -> None:
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    process = subprocess.run(
        command(packs, tmp_path, run_spec().to_json(), *launcher), capture_output=True, text=True, timeout=300
    )
    assert process.returncode == 0, process.stderr
    assert read(tmp_path / "out/manifest.json")["world_size"] == 2

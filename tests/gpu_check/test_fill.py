"""What a check measured reaches config/machines.yaml and the kernels' table, where plans read it."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_check import device_under_test, fill, measured_rows
from benchmarks.gpu_check.measured_rows import MEASURED, Row, Section, State
from benchmarks.gpu_check.sections.kernel_blocks import CHOICES
from plumbline.core.errors import PlumblineError
from plumbline.model.kernels import block_choices
from plumbline.model.kernels.block_choices import BlockChoice
from plumbline.plan import machines
from plumbline.specs import study_config
from plumbline.specs.yaml_files import ROOT, read_yaml
from tests.conftest import REPOSITORY

DEVICE = "NVIDIA H100 80GB HBM3"
#: Milliseconds of a step; the baseline's are 100 on average.
STEPS = {
    "baseline, first": 99.0, "attnres": 180.0, "qknorm": 104.0, "gated_attn_qknorm": 110.0, "selective_qknorm": 119.0,
    "ssmax": 100.0, "baseline, last": 101.0,
}  # fmt: skip


def make_state(device: str = DEVICE, *, rehearsal: bool = False, **sections: dict[str, dict[str, Any]]) -> State:
    """What a call of the check leaves."""
    entries = {
        name: Section(planned=[*rows], rows={key: Row(status=MEASURED, values=row) for key, row in rows.items()})
        for name, rows in sections.items()
    }
    return State(rehearsal=rehearsal, machine={"device": device}, commits=["0123456789abcdef"], sections=entries)


def steps(times: dict[str, float] = STEPS) -> dict[str, dict[str, Any]]:
    return {key: {"ms": milliseconds} for key, milliseconds in times.items()}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the machines, and one of the kernels' table."""
    (tmp_path / "config").mkdir()
    copied = Path(shutil.copy(ROOT / "config/machines.yaml", tmp_path / "config"))
    monkeypatch.setattr(fill, "MACHINES", copied)
    monkeypatch.setattr(fill, "BLOCKS", Path(shutil.copy(fill.BLOCKS, tmp_path)))
    return copied


def run_fill(monkeypatch: pytest.MonkeyPatch, folder: Path, state: State) -> None:
    measured_rows.write(folder / "gpu_check_x.json", state)
    monkeypatch.setattr(sys, "argv", ["fill", str(folder / "gpu_check_x.json")])
    fill.main()


def test_components_are_told_apart() -> None:
    times = fill.read_step_times(make_state(method_steps=steps()), "x.json")
    assert times is not None and times.device == DEVICE and times.source.endswith("1 micro-batches")
    assert times.relative == {
        "mixer": {"selective": 1.15, "ssmax": 1.0},
        "output": {"head_gate": 1.06},
        "query_key": {"qk_norm": 1.04},
        "residual": {"attention_residuals": 1.8},
    }
    whole = {"compiled by shared layers": {"ms": 640.0, "micro-batches": 8}}
    again = fill.read_step_times(make_state(method_steps=steps(), baseline_steps=whole), "x.json")
    assert again is not None and "8 micro-batches" in again.source
    assert again.relative["residual"] == {"attention_residuals": 2.0}, "80 ms more than a step of 80 ms"
    alone = {"baseline, first": 100.0, "selective_qknorm": 119.0}
    assert fill.read_step_times(make_state(method_steps=steps(alone)), "x").relative == {}, "two components at once"


def test_the_plan_goes_by_what_was_measured_and_says_so(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = table.read_text()
    runs = study_config.load("transfer", "paper").runs
    device = f'{DEVICE} "x": #1 \\ {{y}}'  # any signs
    for name in (device, DEVICE):  # the second in the place of the first
        run_fill(monkeypatch, tmp_path, make_state(name, method_steps=steps()))
        assert machines.load("h100", tmp_path).measured_step_time.device == name
    measured_machine, packaged_machine = machines.load("h100", tmp_path), machines.load("h100")
    assert measured_machine.relative_step_time == packaged_machine.relative_step_time
    expected = {"baseline": 1.0, "attnres": 1.8, "qknorm": 1.04, "gated_attn_qknorm": 1.1, "selective_qknorm": 1.19}
    for method, ratio in expected.items():
        assert measured_machine.compute_relative_time(runs[f"transfer/base/{method}/s42"]) == pytest.approx(ratio), (
            method
        )
    softpick = runs["transfer/base/softpick/s42"]
    assert measured_machine.compute_relative_time(softpick) == packaged_machine.compute_relative_time(softpick), (
        "of which nothing was measured"
    )
    assert measured_machine.relative_in_words.startswith(f"measured on {DEVICE} (gpu_check_x.json, commit 01234567")
    assert set(table.read_text().splitlines()) >= set(before.splitlines()), "remarks too"
    filled = {name for name in read_yaml(table) if machines.load(name, tmp_path).measured_step_time is not None}
    assert "h100" in filled and all("h100" in name for name in filled)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (make_state(method_steps=steps(), rehearsal=True), "rehearsal"),
        (make_state(method_steps=steps({"qknorm": 104.0})), "baseline's step is not measured"),
        (make_state(method_steps=steps(STEPS | {"baseline, last": 103.0})), "changed by 4.0 %"),
        (make_state(), "no method's step and no blocks"),
        (make_state(method_steps=steps({"baseline, first": 100.0, "qknorm": 0.01})), "query_key.qk_norm: 0.0"),
        *[
            (make_state(device, method_steps=steps()), f"is of {device}")
            for device in ("NVIDIA L40S", "NVIDIA GH200 480GB", "NVIDIA H100 PCIe", f"{DEVICE} MIG 1g.10gb")
        ],
    ],
)
def test_what_does_not_measure_methods_is_refused(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State, message: str
) -> None:
    before = table.read_text()
    with pytest.raises(PlumblineError, match=message):
        run_fill(monkeypatch, tmp_path, state)
    assert table.read_text() == before
    is_ours = state.device == DEVICE
    assert device_under_test.find_stated_peak(state.device) == (
        {"machine": "h100", "peak_tflops": 989} if is_ours else {}
    ), "no peak of another board either"


def row(kernel: str, choice: tuple[int, ...], ms: float, **other: Any) -> dict[str, Any]:
    """A row as the section leaves it."""
    return {"kernel": kernel, "head width": 64, "choice": [*choice], "ms": ms, "path": kernel, "equal": True} | other


def test_the_fastest_that_kept_its_numbers_is_written(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        row("softpick", CHOICES[0], 2.0),
        row("softpick", (128, 64, 8, 2), 1.5),
        row("softpick", (64, 64, 4, 2), 1.0, equal=False),
        row("softpick", (64, 32, 4, 2), 0.5, path="chunked"),
    ]
    blocks = {str(number): values for number, values in enumerate(rows)}
    state = make_state(blocks=blocks, other_blocks={"x": row("sigmoid", CHOICES[0], 3.0)})
    sigmoid, softpick = fill.find_fastest_blocks(state, "01234567")
    assert (softpick.blocks, softpick.measured) == ((128, 64, 8, 2), "1.5 ms of 2 choices, commit 01234567")
    assert (softpick.device, softpick.widths, softpick.size, sigmoid.blocks) == (DEVICE, (64, 64), 2, CHOICES[0])
    older = BlockChoice(kernel="softpick", device=DEVICE, widths=(64, 64), size=2, blocks=(64, 64, 8, 2))
    elsewhere = replace(older, device="A")
    monkeypatch.setattr(block_choices, "MEASURED", (older, elsewhere))
    run_fill(monkeypatch, tmp_path, state)
    text = fill.BLOCKS.read_text()
    space: dict[str, Any] = {"__name__": "filled"}
    sys.modules["filled"] = type(sys)("filled")  # where a dataclass looks for its module
    exec(compile(ast.parse(text), "filled", "exec"), space)
    del sys.modules["filled"]
    filled = [(row.kernel, row.device, row.blocks) for row in space["MEASURED"]]
    assert filled == [(each.kernel, each.device, each.blocks) for each in (elsewhere, sigmoid, softpick)]
    run_fill(monkeypatch, tmp_path, state)
    assert fill.BLOCKS.read_text() == text and space["DEFAULT"]
    formatted = [sys.executable, "-m", "ruff", "format", "--line-length", "120", "--check", "-"]
    assert subprocess.run(formatted, input=text, text=True, capture_output=True, cwd=REPOSITORY).returncode == 0

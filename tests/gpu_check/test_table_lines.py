"""What a check measured becomes lines that config/machines.yaml and the kernels' table read."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_check import device_under_test, measured_rows, table_lines
from benchmarks.gpu_check.measured_rows import MEASURED, Row, Section, State
from benchmarks.gpu_check.sections.kernel_blocks import CHOICES
from plumbline.core.errors import PlumblineError
from plumbline.model.kernels.block_choices import BlockChoice
from plumbline.plan import machines
from plumbline.specs import study_config
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


def print_lines(folder: Path, monkeypatch: pytest.MonkeyPatch, state: State) -> None:
    measured_rows.write(folder / "gpu_check_x.json", state)
    monkeypatch.setattr(sys, "argv", ["table_lines", str(folder / "gpu_check_x.json")])
    table_lines.main()


def test_components_are_told_apart_next_to_a_whole_step() -> None:
    """Where one was measured; of two components at once there is none."""
    whole = {"compiled by shared layers": {"ms": 640.0, "micro-batches": 8}}
    times = table_lines.read_step_times(make_state(method_steps=steps(), baseline_steps=whole), "x.json")
    assert times is not None and times.device == DEVICE and "8 micro-batches" in times.source
    assert times.relative == {
        "mixer": {"selective": 1.19, "ssmax": 1.0},
        "output": {"head_gate": 1.07},
        "query_key": {"qk_norm": 1.05},
        "residual": {"attention_residuals": 2.0},  # 80 ms more than a step of 80 ms
    }
    alone = {"baseline, first": 100.0, "selective_qknorm": 119.0}
    assert table_lines.read_step_times(make_state(method_steps=steps(alone)), "x").relative == {}


def test_the_plan_goes_by_lines_of_what_was_measured_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pasted at the end of each entry that is named."""
    print_lines(tmp_path, monkeypatch, make_state(method_steps=steps()))
    head, lines = capsys.readouterr().out.split("\n", 1)
    names = head.removeprefix("# config/machines.yaml: ").split(", ")
    assert "h100" in names and all("h100" in name for name in names)
    text = (REPOSITORY / "config/machines.yaml").read_text()
    for name in names:
        text, pasted = re.subn(rf"^{name}:\n(?:  .*\n)+", lambda entry: entry[0] + lines, text, flags=re.MULTILINE)
        assert pasted == 1
    (tmp_path / "config").mkdir()
    (tmp_path / "config/machines.yaml").write_text(text)
    runs = study_config.load("transfer", "paper").runs
    for name in names:
        measured, packaged = machines.load(name, tmp_path), machines.load(name)
        assert measured.relative_step_time == packaged.relative_step_time
        expected = {"baseline": 1.0, "attnres": 1.8, "qknorm": 1.04, "gated_attn_qknorm": 1.1, "selective_qknorm": 1.19}
        for method, ratio in expected.items():
            assert measured.compute_relative_time(runs[f"transfer/base/{method}/s42"]) == pytest.approx(ratio), method
        softpick = runs["transfer/base/softpick/s42"]  # of which nothing was measured
        assert measured.compute_relative_time(softpick) == packaged.compute_relative_time(softpick)
        assert measured.relative_in_words.startswith(
            f"measured on {DEVICE} (gpu_check_x.json, commit 01234567, next to"
        )


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (make_state(method_steps=steps(), rehearsal=True), "rehearsal"),
        (make_state(method_steps=steps({"qknorm": 104.0})), "baseline's step is not measured"),
        (make_state(method_steps=steps(STEPS | {"baseline, last": 103.0})), "changed by 4.0 %"),
        (make_state(), "no method's step and no blocks"),
        *[
            (make_state(device, method_steps=steps()), f"is of {device}")
            for device in ("NVIDIA L40S", "NVIDIA GH200 480GB", "NVIDIA H100 PCIe", f"{DEVICE} MIG 1g.10gb")
        ],
    ],
)
def test_what_does_not_measure_methods_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: State, message: str
) -> None:
    with pytest.raises(PlumblineError, match=message):
        print_lines(tmp_path, monkeypatch, state)
    assert not capsys.readouterr().out
    peak = {"machine": "h100", "peak_tflops": 989} if state.device == DEVICE else {}
    assert device_under_test.find_stated_peak(state.device) == peak, "no peak of another board either"


def row(kernel: str, choice: tuple[int, ...], ms: float, **other: Any) -> dict[str, Any]:
    """A row as the section leaves it."""
    return {"kernel": kernel, "head width": 64, "choice": [*choice], "ms": ms, "path": kernel, "equal": True} | other


def test_the_fastest_that_kept_its_numbers_is_a_row_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        row("softpick", CHOICES[0], 2.0),
        row("softpick", (128, 64, 8, 2), 1.5),
        row("softpick", (64, 64, 4, 2), 1.0, equal=False),
        row("softpick", (64, 32, 4, 2), 0.5, path="chunked"),
    ]
    blocks = {str(number): values for number, values in enumerate(rows)}
    print_lines(tmp_path, monkeypatch, make_state(blocks=blocks, other_blocks={"x": row("sigmoid", CHOICES[0], 3.0)}))
    head, lines = capsys.readouterr().out.split("\n", 1)
    table = REPOSITORY / head.removeprefix("# ")
    text, pasted = re.subn(
        r"^(MEASURED: .* = \()\)", lambda entry: f"{entry[1]}\n{lines})", table.read_text(), flags=re.M
    )
    linter = [sys.executable, "-m", "ruff", "format", "--stdin-filename", table, "-"]
    assert pasted == 1 and subprocess.run(linter, input=text, capture_output=True, text=True, check=True).stdout == text
    sigmoid, softpick = eval(f"({lines.strip()})", {"BlockChoice": BlockChoice})
    assert (softpick.blocks, softpick.measured) == ((128, 64, 8, 2), "1.5 ms of 2 choices, commit 01234567")
    assert (softpick.device, softpick.widths, softpick.size, sigmoid.blocks) == (DEVICE, (64, 64), 2, CHOICES[0])

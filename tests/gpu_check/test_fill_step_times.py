"""Measured step times of methods reach config/machines.yaml, and the plan goes by them; what is none does not."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_check import device_under_test, fill_step_times
from benchmarks.gpu_check.call_settings import REHEARSAL
from benchmarks.gpu_check.measured_rows import MEASURED, MeasuredRows
from benchmarks.gpu_check.sections.baseline_steps import BY_LAYERS
from plumbline.core.errors import PlumblineError
from plumbline.plan import machines
from plumbline.specs import study_config
from plumbline.specs.yaml_files import ROOT, read_yaml

DEVICE = "NVIDIA H100 80GB HBM3"
#: Milliseconds of a step; the baseline's are 100 on average.
STEPS = {
    "baseline, first": 99.0, "attnres": 180.0, "qknorm": 104.0, "gated_attn_qknorm": 110.0, "selective_qknorm": 119.0,
    "ssmax": 100.0, "baseline, last": 101.0,
}  # fmt: skip


def leave_rows(
    folder: Path, steps: dict[str, float], rehearsal: str | None = None, device: str = DEVICE
) -> MeasuredRows:
    """What a call of the check leaves, and nothing of whole steps."""
    state = MeasuredRows.read(folder / "gpu_check_x.json")
    state.content["machine"] = {"device": device, "git_commit": "0123456789abcdef"}
    state.content["told"] = {"device": device, "kind": "cuda", "sizes": "paper", "rehearsal": rehearsal}
    add(state, "compiled_method_steps", steps)
    return state


def add(state: MeasuredRows, section: str, steps: dict[str, float]) -> None:
    state.plan(section, list(steps))
    for key, milliseconds in steps.items():
        state.record(section, key, MEASURED, seconds=milliseconds / 1e3)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the machines."""
    (tmp_path / "config").mkdir()
    copied = shutil.copy(ROOT / "config/machines.yaml", tmp_path / "config")
    monkeypatch.setattr(fill_step_times, "MACHINES", Path(copied))
    return Path(copied)


def run_fill(monkeypatch: pytest.MonkeyPatch, state: MeasuredRows, *more: str) -> None:
    monkeypatch.setattr(sys, "argv", ["fill_step_times", str(state.path), *more])
    fill_step_times.main()


def test_components_are_told_apart(tmp_path: Path) -> None:
    times = fill_step_times.read_relative_times(leave_rows(tmp_path, STEPS))
    assert times.relative == {
        "mixer": {"selective": 1.15, "ssmax": 1.0},
        "output": {"head_gate": 1.06},
        "query_key": {"qk_norm": 1.04},
        "residual": {"attention_residuals": 1.8},
    }
    assert times.device == DEVICE and "gpu_check_x.json, commit 01234567" in times.source
    assert "1 micro-batch" in times.source
    state = leave_rows(tmp_path, STEPS)
    add(state, "baseline_steps", {BY_LAYERS: 8 * 80.0})
    again = fill_step_times.read_relative_times(state)
    assert again.relative["residual"] == {"attention_residuals": 2.0}, "80 ms beside a step of 80 ms"
    assert "8 micro-batches" in again.source


def test_the_plan_goes_by_what_was_measured_and_says_so(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = table.read_text()
    runs = study_config.load("transfer", "paper").runs
    for _ in range(2):  # the second time in the place of the first
        run_fill(monkeypatch, leave_rows(tmp_path, STEPS))
    assert "h100: step" in (output := capsys.readouterr().out)
    assert "residual attention_residuals: 1.8, reckoned 1." in output
    measured_machine, packaged_machine = machines.load("h100", tmp_path), machines.load("h100")
    assert (
        packaged_machine.measured_step_time is None
        and measured_machine.relative_step_time == packaged_machine.relative_step_time
    )
    expected = {"baseline": 1.0, "attnres": 1.8, "qknorm": 1.04, "gated_attn_qknorm": 1.1, "selective_qknorm": 1.19}
    for method, ratio in expected.items():
        assert measured_machine.relative(runs[f"transfer/base/{method}/s42"]) == pytest.approx(ratio), method
    softpick = runs["transfer/base/softpick/s42"]
    assert measured_machine.relative(softpick) == packaged_machine.relative(softpick), "of which nothing was measured"
    assert measured_machine.relative_in_words.startswith(f"measured on {DEVICE} (gpu_check_x.json, commit 01234567")
    left_out = measured_machine.relative_in_words.partition("but for ")[2].split(", ")
    assert "softpick" in left_out and "attention_residuals" not in left_out
    assert set(table.read_text().splitlines()) >= set(before.splitlines()), "remarks too"
    for name in read_yaml(table):
        has = machines.load(name, tmp_path).measured_step_time is not None
        assert has == (measured_machine.device_name == machines.load(name).device_name and name != "one_h100"), name
    run_fill(monkeypatch, leave_rows(tmp_path, STEPS), "--machine", "one_h100")
    assert machines.load("one_h100", tmp_path).measured_step_time == measured_machine.measured_step_time


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rehearsal": REHEARSAL}, "rehearsal"),
        ({"steps": {key: value for key, value in STEPS.items() if "baseline" not in key}}, "step of the baseline"),
        ({"steps": {"baseline, first": 100.0}}, "step of the methods"),
        ({"device": "NVIDIA L40S"}, "`relative_step_time` is of NVIDIA L40S"),
    ],
)
def test_what_does_not_measure_methods_is_refused(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], says: str
) -> None:
    before = table.read_text()
    with pytest.raises(PlumblineError, match=says):
        run_fill(monkeypatch, leave_rows(tmp_path, **({"steps": STEPS} | changes)))
    with pytest.raises(PlumblineError, match="--machine a100"):
        run_fill(monkeypatch, leave_rows(tmp_path, STEPS), "--machine", "a100")
    assert table.read_text() == before


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ({"selective_qknorm": 119.0}, "qk_norm.*selective_attn"),
        ({"gated_attn_qknorm": 110.0}, r"adds qk_norm and head_gate at once \(measure qknorm too\)"),
        ({"qknorm": 0.01}, r"nothing is written, .*measured_step_time\.relative\.query_key\.qk_norm: 0\.0"),
    ],
)
def test_what_would_make_the_file_unreadable_is_not_written(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: dict[str, float], says: str
) -> None:
    before = table.read_text()
    with pytest.raises(PlumblineError, match=says):
        run_fill(monkeypatch, leave_rows(tmp_path, {"baseline, first": 100.0} | steps))
    assert table.read_text() == before


def test_a_name_of_any_signs_is_read_again(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = 'NVIDIA H100 "x": #1 \\ {y}'
    for _ in range(2):
        run_fill(monkeypatch, leave_rows(tmp_path, STEPS, device=device))
    assert machines.load("h100", tmp_path).measured_step_time.device == device


@pytest.mark.parametrize(
    "device", ["NVIDIA GH200 480GB", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", f"{DEVICE} MIG 1g.10gb"]
)
def test_another_board_or_part_of_one(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    before = table.read_text()
    with pytest.raises(PlumblineError, match=f"is of {device}"):
        run_fill(monkeypatch, leave_rows(tmp_path, STEPS, device=device))
    assert table.read_text() == before
    assert device_under_test.find_stated_peak(device) == {}, "no peak either"
    assert device_under_test.find_stated_peak(DEVICE) == {"machine": "h100", "peak_tflops": 989}


def without_seconds(state: MeasuredRows) -> None:
    del state.content["sections"]["compiled_method_steps"]["rows"]["qknorm"]["seconds"]


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda state: state.told().update(device="NVIDIA A100-SXM4-80GB"), "machine.device .* and told.device"),
        (lambda state: state.content.update(machine={}), "machine.device is None"),
        (lambda state: state.told().update(sizes="tiny"), "told.sizes: 'tiny'"),
        (lambda state: state.told().update(kind="cpu"), "told.kind: 'cpu'"),
        (without_seconds, r"sections\.compiled_method_steps\.rows\.qknorm\.seconds: None"),
        (lambda state: add(state, "compiled_method_steps", STEPS | {"gone": 100.0}), "'gone' is no method"),
        (
            lambda state: add(state, "compiled_method_steps", STEPS | {"baseline, last": 103.0}),
            r"changed by 4\.0 % .* more than 3 %",
        ),
    ],
)
def test_a_file_that_lacks_something_is_named_with_the_key(tmp_path: Path, edit: Any, says: str) -> None:
    state = leave_rows(tmp_path, STEPS)
    fill_step_times.read_relative_times(state)
    edit(state)
    with pytest.raises(PlumblineError, match=rf"gpu_check_x\.json: .*{says}"):
        fill_step_times.read_relative_times(state)


def test_a_baseline_that_was_measured_once_is_said_to_be(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where a call's time was over before the last row."""
    run_fill(monkeypatch, leave_rows(tmp_path, STEPS))
    assert "not measured" not in capsys.readouterr().out
    run_fill(monkeypatch, leave_rows(tmp_path / "cut", {key: STEPS[key] for key in ("baseline, first", "qknorm")}))
    assert "not measured: baseline, last; whether" in capsys.readouterr().out


def test_a_row_that_is_used_for_nothing_is_named(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_fill(monkeypatch, leave_rows(tmp_path, STEPS))
    assert "used for nothing" not in capsys.readouterr().out
    run_fill(monkeypatch, leave_rows(tmp_path, STEPS | {"selective_attn": 115.0, "qknorm_geglu": 104.0}))
    assert "none does): selective_qknorm\n" in (capsys.readouterr().out)

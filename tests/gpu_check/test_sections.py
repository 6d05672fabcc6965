"""The sections' own arithmetic, at toy sizes on the processor. What they measure on a GPU no test can say."""

from __future__ import annotations

import functools
import sys
import time
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from benchmarks.gpu_check import __main__ as command_line
from benchmarks.gpu_check import base_scale_specs, compile_ahead, output_folders
from benchmarks.gpu_check.call_settings import REHEARSAL, SectionCall
from benchmarks.gpu_check.measured_rows import GOES_ON, MEASURED, MeasuredRows, MissingOnThisMachine
from benchmarks.gpu_check.results_page import page
from benchmarks.gpu_check.sections import (
    MODULES,
    attention_times,
    compiled_method_steps,
    device_ceilings,
    eager_steps,
    kernel_accuracy,
    kernel_block_sizes,
    key_norms,
)
from plumbline.core.errors import PlumblineError
from plumbline.model.flops import count_operations
from plumbline.model.mixers.softpick import Softpick

TINY = SectionCall(device="cpu", sizes="tiny")
GPU = SectionCall(device="cuda", sizes="paper")


def state_of(path: Path, **sections: dict[str, dict[str, Any]]) -> MeasuredRows:
    """A state in which these rows are measured."""
    state = MeasuredRows.read(path / "state.json")
    for name, rows in sections.items():
        state.plan(name, list(rows))
        for key, values in rows.items():
            state.record(name, key, MEASURED, **values)
    return state


def test_every_mixer_and_reading_of_studies_is_compared() -> None:
    planned = [*kernel_accuracy.rows(GPU)]
    assert {"softpick variant=original", "selective mask=after", "sigmoid bias=head"} < set(kernel_accuracy.mixers())
    assert len(kernel_accuracy.rows(GPU)) == len(kernel_accuracy.mixers())
    assert len(set(planned)) == len(planned) == len(kernel_accuracy.mixers())


def test_a_mixer_that_is_not_its_reference_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare = kernel_accuracy.rows_of([("float32", 8, 19)], TINY)["softpick, float32, width 8, T 19"]
    right = compare()
    assert right["equal"] and 0 < max(right["errors"].values()) < 1e-5
    exact = Softpick.forward
    monkeypatch.setattr(Softpick, "forward", lambda *inputs: 1.01 * exact(*inputs))
    wrong = compare()
    monkeypatch.setattr(Softpick, "forward", lambda *inputs: float("nan") * exact(*inputs))
    nothing = compare()
    assert wrong["errors"]["output"] == pytest.approx(0.01, rel=1e-3) and not wrong["equal"] and not nothing["equal"]
    text = kernel_accuracy.page(state_of(tmp_path, kernel_accuracy={"right": right, "none": nothing}))
    assert text[-1].endswith("| 2 | nan | output | **no** |")


def test_the_floor_of_a_call_is_by_hand(tmp_path: Path) -> None:
    """Paper shape, T 1024, 16 sequences: 524,800 pairs each; 32 heads of width 64, scores and values."""
    spec = base_scale_specs.runs("paper")[base_scale_specs.BASELINE].model
    mixer = kernel_accuracy.build_mixer({"name": "softmax"}, 64, heads=32, groups=8)
    operations, moved = attention_times.counts(mixer, spec, 16, 1024)
    forward = 2 * 16 * 524_800 * 2 * 32 * 64
    assert operations == {"forward": forward, "both": forward * 7 // 2}
    head = 16 * 1024 * 64 * 2
    assert moved == {"forward": head * 80, "both": head * (80 + 112 + 48)}
    both = {"operations": operations, "bytes": moved}
    assert attention_times.floor_of(both, "forward", 7e14, 4e12) == pytest.approx(1e3 * forward / 7e14)
    assert attention_times.floor_of(both, "forward", 7e18, 4e12) == pytest.approx(1e3 * head * 80 / 4e12)
    assert attention_times.floor_of(both, "forward", None, 4e12) is None
    row = {
        **both,
        "milliseconds": {"forward": 1.0, "both": 3.0},
        "length": 1024,
        "batch": 16,
        "path": "x",
        "peak_gib": 1.0,
    }
    measured = {"flash": row | {"mixer": "flash"}, "softpick": row | {"mixer": "softpick"}}
    measured["softpick"]["milliseconds"] = {"forward": 1.5, "both": 4.8}
    reached = {"copy": {"bytes_per_second": 4e12}, "product bfloat16": {"operations_per_second": 7e14}}
    lines = attention_times.page(state_of(tmp_path, device_ceilings=reached, attention_times=measured))
    assert lines[-1].split(" | ")[3:5] == ["1.5", "1.5"] and lines[-1].split(" | ")[6:8] == ["4.8", "1.6"]


def test_attention_is_timed(tmp_path: Path) -> None:
    planned = attention_times.rows(TINY)
    for key in ("flash, T 32", "selective, T 64"):
        row = planned[key]()
        assert all(value > 0 for value in row["milliseconds"].values()) and row["peak_gib"] is None
    assert planned["selective, T 64"]()["batch"] == 1 and len(planned) == len(TINY.size.lengths) * 8


def test_a_share_of_the_peak_is_by_hand(tmp_path: Path) -> None:
    """6 N D and the scores' 12 L H W T / 2 a token: the 1.2B baseline, without norms, at 10,000 tokens a second."""
    spec = base_scale_specs.runs("paper")[base_scale_specs.BASELINE].model
    counts = {
        "operations": count_operations(spec, sequences=1, causal=True),
        "operations_all_pairs": count_operations(spec, sequences=1),
    }
    row = {"seconds": 0.1024, "tokens": 1024, "peak_gib": None, **counts}
    weights = 24 * (2048 * (2048 + 2 * 512 + 2048) + 3 * 2048 * 5632) + 65_664 * 2048
    attended = 24 * 2 * 2048 * 1025 // 2
    assert row["operations"] == 6 * 1024 * (weights + attended)
    step = {"trainer, micro-batch 8": row, "baseline, first": row, "softpick": row | {"seconds": 0.128}}
    state = state_of(tmp_path, eager_steps=step)
    state.content["machine"] = {"peak_tflops": 989}
    cells = [line.split(" | ") for line in eager_steps.page(state)]
    share = row["operations"] / 0.1024 / 989e12
    assert cells[2][3] == "10,000" and float(cells[2][5]) == pytest.approx(share, rel=5e-3)
    assert cells[2][4] == "-" and cells[4][4] == "0.8"


def test_a_method_takes_steps_and_the_trainer_too() -> None:
    planned = eager_steps.rows(TINY)
    for key in ("softpick", "trainer, micro-batch 2"):
        row, spec = (
            planned[key](),
            base_scale_specs.runs(TINY.size.preset)[key if key == "softpick" else base_scale_specs.BASELINE].model,
        )
        assert row["seconds"] > 0 and row["tokens"] % spec.context == 0
        sequences = row["tokens"] // spec.context
        assert (
            row["operations"] == count_operations(spec, sequences=sequences, causal=True) < row["operations_all_pairs"]
        )
    assert {"baseline, first", "baseline, last", "hyper", "geglu_ffn"} < set(planned)
    assert any(key.endswith("compiled") for key in eager_steps.rows(GPU)) and not any(
        "compiled" in key for key in planned
    )


def test_a_compiled_step_is_one_or_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainer goes on where the compiler fails; a measurement does not."""
    baseline, size = base_scale_specs.runs(TINY.size.preset)[base_scale_specs.BASELINE], TINY.size
    steps = (baseline, 2, True, TINY, size.accumulated, size.repeats, size.warmup)

    def broken(graph: Any, inputs: Any) -> Any:
        raise RuntimeError("no instruction")

    plain = torch.compile
    monkeypatch.setattr(torch, "compile", functools.partial(plain, backend="eager"))
    assert eager_steps.trainer(*steps)["seconds"] > 0
    monkeypatch.setattr(torch, "compile", functools.partial(plain, backend=broken))
    with pytest.raises(PlumblineError, match=r"is not compiled .*no instruction"):
        eager_steps.trainer(*steps)
    with pytest.raises(PlumblineError, match=r"is not compiled: .*no instruction"):
        eager_steps.method(baseline, TINY, compiled=True)
    monkeypatch.setattr(torch, "compile", functools.partial(plain, backend="eager"))
    row = eager_steps.method(baseline, TINY, compiled=True)
    assert row["seconds"] > 0 and row["compiled_in_seconds"] >= 0
    state = state_of(
        tmp_path, compiled_method_steps={"baseline, first": row, "softpick": row | {"seconds": 2 * row["seconds"]}}
    )
    head, _, first, second = (line.strip("| ").split(" | ") for line in compiled_method_steps.page(state))
    assert head[-1] == "seconds to compile" and (first[4], second[4]) == ("1", "0.5")


@pytest.mark.parametrize("section", [kernel_accuracy, kernel_block_sizes])
def test_rows_can_be_carried_out_ahead(
    section: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a process is told to: by its key, on a command line. Every sixth: the rows are alike."""
    monkeypatch.setattr(compile_ahead, "end_with_the_call", lambda: None)
    command = ["ahead", section.__name__, "--section-call", TINY.to_json(), "--", *list(section.rows(TINY))[::6]]
    monkeypatch.setattr(sys, "argv", command)
    compile_ahead.main()
    assert section.AHEAD and capsys.readouterr().out == ""


def test_a_choice_of_blocks_is_what_the_kernel_is_launched_with(tmp_path: Path) -> None:
    from plumbline.model.kernels import softpick
    from plumbline.model.kernels.tiles import BlockSizes

    q_BHTW = torch.zeros(1, 1, 1, 64, dtype=torch.bfloat16)
    today = softpick.blocks_for("softpick", q_BHTW)
    with kernel_block_sizes.launch_with("softpick", (64, 16, 4, 3), "cuda"):
        assert softpick.blocks_for("softpick", q_BHTW) == BlockSizes(held=64, walked=16, warps=4, stages=3)
    assert (
        softpick.blocks_for("softpick", q_BHTW)
        == today
        == BlockSizes(**dict(zip(("held", "walked"), kernel_block_sizes.CHOICES[0])))
    )
    assert all(held_rows % walked_rows == 0 for held_rows, walked_rows, _, _ in kernel_block_sizes.CHOICES)
    assert len(kernel_block_sizes.rows(GPU)) == len(kernel_block_sizes.CHOICES) * len(kernel_block_sizes.MIXERS)
    row = kernel_block_sizes.rows(TINY)["selective, 128/64/8/2"]()
    assert row["error"] == 0 and row["equal"] and row["path"] == "chunked"
    slower = row | {"choice": [64, 64, 4, 2], "milliseconds": {"forward": 4.0, "both": 8.0}}
    first = row | {"choice": list(kernel_block_sizes.CHOICES[0]), "milliseconds": {"forward": 2.0, "both": 2.0}}
    lines = kernel_block_sizes.page(state_of(tmp_path, kernel_block_sizes={"a": slower, "b": first}))
    assert lines[-1].startswith("| selective | 64/64/4/2 | chunked | 4 | 2 | 8 | 4 |")


def test_an_arm_of_key_norms_is_a_run_of_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_norms, "RUNS", tmp_path / "runs")
    here = SectionCall(device="cpu", sizes="tiny", beside=str(tmp_path / "gpu_check_x"))
    rows = key_norms.rows(here)
    assert list(rows) == ["as_published", "no_decay", "frozen_gains"]
    # Its time is out before the first step: saved, and gone on with.
    began = rows["frozen_gains"].func(*rows["frozen_gains"].args[:2], here.ending(time.time() + 1))
    assert began["status"] == GOES_ON
    row = rows["frozen_gains"]()
    assert (row["outcome"], row["steps"]) == ("completed", 6) and row["by_decay_alone"] == pytest.approx(8, rel=1e-3)
    assert row["key_norm"]["end"] == pytest.approx([8.0] * 6, rel=1e-5) and len(row["entropy"]["end"]) == 6
    with zipfile.ZipFile(tmp_path / "gpu_check_x_key_norms_frozen_gains.zip") as archive:
        assert set(archive.namelist()) == set(key_norms.KEPT)
    columns, _, line = key_norms.page(state_of(tmp_path, key_norms={"frozen_gains": row}))
    assert "key norm, early layers (0-1)" in columns and line.startswith("| frozen_gains | 6 |")


def test_key_norms_at_paper_size_reads_packs_that_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_norms, "PACKS", tmp_path)
    with pytest.raises(MissingOnThisMachine, match=r"base\.json is not here: `make gpu-check-packs`"):
        key_norms.rows(GPU)
    for name in ("train/base.json", "validation/validation.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    spec = key_norms.rows(GPU)["as_published"].args[0]
    assert (spec.train.steps, spec.model.context, spec.data.source) == (977, 2048, "packaged_large")
    assert output_folders.PACKS.name == f"context{spec.model.context}"


def test_all_of_a_rehearsal_is_called_one(tmp_path: Path) -> None:
    text = page(MeasuredRows.read(tmp_path / "none.json"), TINY, MODULES)
    assert text.count(REHEARSAL) == 1 + len(MODULES)
    assert REHEARSAL not in page(MeasuredRows.read(tmp_path / "none.json"), GPU, MODULES)
    assert command_line.place(GPU, "NVIDIA H100 80GB HBM3") == Path("benchmarks/gpu_check_h100_80gb_hbm3.json")
    assert command_line.place(TINY, "processor").parent == Path("benchmarks/runs")
    assert command_line.place(GPU, "NVIDIA H200", Path("out")) == Path("out/gpu_check_h200.json")
    assert command_line.place(GPU, "NVIDIA H200", Path("out/x.json")) == Path("out/x.json")


def test_paper_shapes_are_not_for_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu_check", "--device", "cpu"])
    with pytest.raises(PlumblineError, match="add --sizes tiny"):
        command_line.main()


def test_ceilings_are_rates(tmp_path: Path) -> None:
    rows = {key: measure() for key, measure in device_ceilings.rows(TINY).items()}
    rate, bandwidth = device_ceilings.read_ceilings(state_of(tmp_path, device_ceilings=rows))
    product = rows[device_ceilings.PRODUCT]
    assert rate == pytest.approx(2 * 128**3 / (product["milliseconds"] / 1e3)) and bandwidth

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
from benchmarks.gpu_check.run_sections import GRACE
from benchmarks.gpu_check.sections import (
    ANOTHER_LOAN,
    FIRST_CALL,
    FIRST_MINUTES,
    MODULES,
    ORDER,
    SECOND_CALL,
    SECOND_MINUTES,
    baseline_steps,
    compiled_method_steps,
    device_ceilings,
    kernel_accuracy,
    kernel_block_sizes,
    key_norms,
    other_block_sizes,
)
from plumbline.core.errors import PlumblineError
from plumbline.model.flops import count_operations
from plumbline.model.mixers.softpick import Softpick
from tests.conftest import REPOSITORY

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


def test_a_mixer_that_is_not_its_reference_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare = kernel_accuracy.rows(TINY)["softpick, bfloat16, width 16, T 37"]
    right = compare()
    assert right["equal"] and 0 < max(right["errors"].values()) < 0.02
    exact = Softpick.forward
    monkeypatch.setattr(Softpick, "forward", lambda *inputs: 1.1 * exact(*inputs))
    wrong = compare()
    monkeypatch.setattr(Softpick, "forward", lambda *inputs: float("nan") * exact(*inputs))
    nothing = compare()
    assert wrong["errors"]["output"] == pytest.approx(0.1, rel=0.05) and not wrong["equal"] and not nothing["equal"]
    text = kernel_accuracy.page(state_of(tmp_path, kernel_accuracy={"right": right, "none": nothing}))
    assert text[-1].endswith("| nan | output | **no** |")


def test_the_floor_of_a_call_is_by_hand(tmp_path: Path) -> None:
    """Paper shape, T 1024, 16 sequences: 524,800 pairs each; 32 heads of width 64, scores and values."""
    spec = base_scale_specs.runs("paper")[base_scale_specs.BASELINE].model
    mixer = kernel_accuracy.build_mixer({"name": "softmax"}, 64, heads=32, groups=8)
    operations, moved = device_ceilings.counts(mixer, spec, 16, 1024)
    forward = 2 * 16 * 524_800 * 2 * 32 * 64
    assert operations == {"forward": forward, "both": forward * 7 // 2}
    head = 16 * 1024 * 64 * 2
    assert moved == {"forward": head * 80, "both": head * (80 + 112 + 48)}
    both = {"operations": operations, "bytes": moved}
    assert device_ceilings.floor_of(both, "forward", 7e14, 4e12) == pytest.approx(1e3 * forward / 7e14)
    assert device_ceilings.floor_of(both, "forward", 7e18, 4e12) == pytest.approx(1e3 * head * 80 / 4e12)
    assert device_ceilings.floor_of(both, "forward", None, 4e12) is None
    row = {**both, "milliseconds": {"forward": 1.0, "both": 3.0}, "batch": 16, "path": "x", "peak_gib": 1.0}
    slower = row | {"milliseconds": {"forward": 1.5, "both": 4.8}}
    measured = {
        "copy": {"milliseconds": 1.0, "bytes_per_second": 4e12},
        "product bfloat16": {"milliseconds": 1.0, "operations_per_second": 7e14},
        "attention, flash": row,
        "attention, softpick": slower,
    }
    lines = device_ceilings.page(state_of(tmp_path, device_ceilings=measured))
    assert lines[-1].split(" | ")[3:5] == ["1.5", "1.5"] and lines[-1].split(" | ")[6:8] == ["4.8", "1.6"]


def test_a_share_of_the_peak_is_by_hand(tmp_path: Path) -> None:
    """6 N D and the scores' 12 L H W T / 2 a token: the 1.2B baseline, without norms, at 10,000 tokens a second."""
    spec = base_scale_specs.runs("paper")[base_scale_specs.BASELINE].model
    counts = {
        "operations": count_operations(spec, sequences=1, causal=True),
        "operations_all_pairs": count_operations(spec, sequences=1),
    }
    row = {"seconds": 0.1024, "tokens": 1024, "micro_batches": 1, "attention": "cudnn", "peak_gib": None, **counts}
    weights = 24 * (2048 * (2048 + 2 * 512 + 2048) + 3 * 2048 * 5632) + 65_664 * 2048
    attended = 24 * 2 * 2048 * 1025 // 2
    assert row["operations"] == 6 * 1024 * (weights + attended)
    state = state_of(tmp_path, compiled_method_steps={"baseline, first": row, "softpick": row | {"seconds": 0.128}})
    state.content["machine"] = {"peak_tflops": 989}
    head, _, first, second = [line.strip("| ").split(" | ") for line in compiled_method_steps.page(state)]
    column = {name: head.index(name) for name in ("tokens/s", "of the baseline's speed", *baseline_steps.OPERATIONS)}
    shares = [float(first[column[name]]) for name in baseline_steps.OPERATIONS]
    expected = [counts[name] / 0.1024 / 989e12 for name in baseline_steps.OPERATIONS.values()]
    assert shares == pytest.approx(expected, rel=5e-3) and shares[0] > shares[1]
    assert first[column["tokens/s"]] == "10,000" and second[column["of the baseline's speed"]] == "0.8"


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
    for section in (kernel_block_sizes, other_block_sizes):
        assert len(section.rows(GPU)) == len(kernel_block_sizes.CHOICES) * len(section.MIXERS)
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


def test_every_mixer_and_reading_of_studies_is_compared() -> None:
    assert {"softpick variant=original", "selective mask=after", "sigmoid bias=head"} < set(kernel_accuracy.mixers())
    assert len(kernel_accuracy.rows(GPU)) == len(kernel_accuracy.mixers())
    assert all(key.endswith("bfloat16, width 64, T 1111") for key in kernel_accuracy.rows(GPU))


def test_ceilings_and_back_ends_are_measured(tmp_path: Path) -> None:
    rows = {key: measure() for key, measure in device_ceilings.rows(TINY).items()}
    product = rows[device_ceilings.PRODUCT]
    assert product["operations_per_second"] == pytest.approx(2 * 128**3 / (product["milliseconds"] / 1e3))
    calls = {key: row["path"] for key, row in rows.items() if key.startswith("attention")}
    assert calls == {"attention, flash": "flash", "attention, softpick": "chunked", "attention, selective": "chunked"}
    assert all(rows[key]["milliseconds"]["both"] > 0 for key in calls)
    assert {"attention, flash", "attention, cudnn"} < set(device_ceilings.rows(GPU))


def test_a_call_has_time_for_its_sections() -> None:
    """Each with the seconds that it may go beyond its own; ten are left for the start and the pages."""
    for minutes, stated in ((FIRST_MINUTES, FIRST_CALL), (SECOND_MINUTES, SECOND_CALL), (FIRST_MINUTES, ANOTHER_LOAN)):
        assert sum(seconds + GRACE for seconds in stated.values()) <= 60 * minutes - 10, stated
    first_day = (REPOSITORY / "docs/gpu-first-day.md").read_text()
    (line,) = (line for line in first_day.splitlines() if "--sections other_block_sizes" in line)
    assert f"--minutes {SECOND_MINUTES:g} " in line, "the page's second call"
    assert 60 * (FIRST_MINUTES + SECOND_MINUTES) <= 60 * 15 - 120, "a start and transfers"
    assert list(FIRST_CALL) == list(ORDER)[: len(FIRST_CALL)] and set(MODULES) == set(ORDER)


def test_a_step_accumulates_micro_batches() -> None:
    baseline = base_scale_specs.runs(TINY.size.preset)[base_scale_specs.BASELINE]
    assert list(baseline_steps.rows(TINY)) == [baseline_steps.EAGER] and compiled_method_steps.rows(TINY) == {}
    assert set(baseline_steps.rows(GPU)) == {baseline_steps.EAGER, baseline_steps.BY_LAYERS, baseline_steps.WHOLE}
    assert set(base_scale_specs.methods()) - {"baseline"} < set(compiled_method_steps.rows(GPU))
    row = baseline_steps.rows(TINY)[baseline_steps.EAGER]()
    sequences = TINY.size.sequences * TINY.size.accumulated
    assert row["seconds"] > 0 and row["tokens"] == sequences * baseline.model.context
    assert row["operations"] == count_operations(baseline.model, sequences=sequences, causal=True)
    assert GPU.size.accumulated == 8


@pytest.mark.parametrize("way", [baseline_steps.BY_LAYERS, baseline_steps.WHOLE])
def test_a_compiled_step_is_compiled_or_there_is_none(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainer goes on where the compiler fails; a measurement does not."""
    baseline = base_scale_specs.runs(TINY.size.preset)[base_scale_specs.BASELINE]
    graphs: list[Any] = []

    def count(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    def broken(graph: Any, inputs: Any) -> Any:
        raise RuntimeError("no instruction")

    plain = torch.compile
    monkeypatch.setattr(torch, "compile", functools.partial(plain, backend=count))
    row = baseline_steps.take_steps(baseline, way, TINY, 2)
    assert row["compiled_in_seconds"] >= 0 and len(graphs) == (2 if way == baseline_steps.BY_LAYERS else 1)
    monkeypatch.setattr(torch, "compile", functools.partial(plain, backend=broken))
    with pytest.raises(Exception, match="no instruction"):
        baseline_steps.take_steps(baseline, way, TINY, 2)


def test_few_layers_compile_what_all_layers_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """Value residual, whose first layer differs: its graphs of three layers are those of four."""
    spec = base_scale_specs.runs(TINY.size.preset)["value_residual"]
    hashes: dict[int, list[str]] = {}

    def keep(graph: Any, inputs: Any) -> Any:
        shapes = [tuple(value.shape) if isinstance(value, torch.Tensor) else value for value in inputs]
        hashes[layers].append(f"{graph.code}{shapes}")
        return graph.forward

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=keep))
    for layers in (compiled_method_steps.AHEAD_LAYERS, compiled_method_steps.AHEAD_LAYERS + 1):
        hashes[layers] = []
        baseline_steps.take_steps(spec, baseline_steps.BY_LAYERS, TINY, layers=layers)
    few, more = hashes.values()
    assert len(few) == 3 and few == more, "the first layer, the others, the loss"

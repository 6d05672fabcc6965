"""The sections' own arithmetic, at toy sizes on the processor. What they measure on a GPU no test can say."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks.gpu_check import base_scale_specs, device_under_test, mixer_calls
from benchmarks.gpu_check.run_sections import GRACE
from benchmarks.gpu_check.sections import (
    MINUTES,
    SECTIONS,
    SectionCall,
    accuracy,
    ceilings,
    kernel_blocks,
    method_steps,
    training_steps,
)
from plumbline.model.flops import count_operations
from plumbline.model.kernels import selection, softpick
from plumbline.model.kernels.tiles import BlockSizes
from plumbline.model.mixers._base import Mixer
from plumbline.model.mixers.softpick import Softpick
from plumbline.model.mixers.ssmax import SSMax
from plumbline.specs import study_config
from tests.conftest import REPOSITORY
from tests.gpu_check.bare_image import list_device_commands

TINY, GPU = SectionCall(device="cpu"), SectionCall(device="cuda")
BASELINE = base_scale_specs.BASELINE
#: Of the second call (docs/gpu-first-day.md).
SECOND_MINUTES = 2.5


def wrong_mixers() -> Iterator[tuple[type[Mixer], str, Callable[..., torch.Tensor], Any]]:
    """A mixer's class, its row, a forward pass with a fault, and the error: of outputs, then of one gradient alone."""
    softpick, ssmax = Softpick.forward, SSMax.forward
    yield Softpick, "softpick", lambda *inputs: 1.1 * softpick(*inputs), pytest.approx(0.1, rel=0.05)
    yield Softpick, "softpick", lambda *inputs: float("nan") * softpick(*inputs), "nan"
    for place in range(3):

        def scale(mixer: Mixer, *inputs: Any, place: int = place) -> torch.Tensor:
            x, *others = inputs[place], *inputs[place + 1 :]
            return softpick(mixer, *inputs[:place], x.detach() + 1.1 * (x - x.detach()), *others)

        yield Softpick, "softpick", scale, pytest.approx(0.1, rel=0.05)

    def halve(mixer: Mixer, *inputs: Any) -> torch.Tensor:
        mixer.scale_parameter.register_hook(lambda gradient: gradient / 2)
        return ssmax(mixer, *inputs)

    yield SSMax, "ssmax", halve, pytest.approx(0.5, rel=0.05)


def test_a_mixer_that_is_not_its_reference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = accuracy.rows(TINY)
    for kind, name, forward, error in wrong_mixers():
        with monkeypatch.context() as patched:
            patched.setattr(kind, "forward", forward)
            wrong = rows[name]()
        right = rows[name]()
        errors = (wrong["worst error"], wrong["of parameters"])
        assert not wrong["equal"] and error in errors, (name, errors)
        assert right["equal"] and 0 < right["worst error"] < 0.02


def test_every_mixer_and_back_end_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages of flash-attention where they are, each held to by itself."""
    assert {"softpick variant=original", "selective mask=after", "sigmoid bias=head"} < set(mixer_calls.slots())
    monkeypatch.setattr(selection, "FLASH_INSTALLED", [])
    assert set(accuracy.rows(GPU)) == {*mixer_calls.slots(), "softmax by flash", "softmax by cudnn"}
    monkeypatch.setattr(selection, "FLASH_INSTALLED", [selection.FLASH_ATTN_3, selection.FLASH_ATTN])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    assert {"softmax by flash_attn_3", "softmax by flash_attn"} < set(accuracy.rows(GPU))
    for back_end, packages in (("flash_attn", ["flash_attn"]), ("flash", []), (None, [*selection.FLASH_INSTALLED])):
        with mixer_calls.held_to(back_end):
            assert packages == selection.FLASH_INSTALLED
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 0))
    assert "attention, flash_attn_3" not in ceilings.rows(GPU)


def test_ceilings_and_back_ends_are_measured() -> None:
    """Operations by hand: scores and values forward, twice that and the scores again backward, of visible pairs."""
    rows = {key: measure() for key, measure in ceilings.rows(TINY).items()}
    spec = base_scale_specs.runs(TINY.preset)[BASELINE].model
    flash, pairs = rows["attention, flash"], 64 // spec.context * spec.context * (spec.context + 1) // 2
    assert flash["TFLOP/s"] * flash["ms"] * 1e9 == pytest.approx(14 * pairs * spec.heads * spec.head_width)
    paths = {key: row.get("path") for key, row in rows.items()}
    calls = {"attention, flash": "flash", "attention, softpick": "chunked", "attention, selective": "chunked"}
    assert paths == {"copy": None, "product, bfloat16": None, **calls}
    assert all(row["ms"] > 0 for row in rows.values()) and "attention, cudnn" in ceilings.rows(GPU)


def test_a_choice_of_blocks_is_what_the_kernel_is_launched_with() -> None:
    q_BHTW = torch.zeros(1, 1, 1, 64, dtype=torch.bfloat16)
    today = softpick.blocks_for("softpick", q_BHTW)
    with kernel_blocks.launch_with("softpick", (64, 16, 4, 3), GPU):
        assert softpick.blocks_for("softpick", q_BHTW) == BlockSizes(held=64, walked=16, warps=4, stages=3)
    first = BlockSizes(**dict(zip(("held", "walked"), kernel_blocks.CHOICES[0])))
    assert softpick.blocks_for("softpick", q_BHTW) == today == first
    assert all(held % walked == 0 for held, walked, _, _ in kernel_blocks.CHOICES)
    for name in ("blocks", "other_blocks"):
        assert len(SECTIONS[name].rows(GPU)) == len(kernel_blocks.CHOICES) * len(SECTIONS[name].arguments)
    row = SECTIONS["blocks"].rows(TINY)["selective, 128/64/8/2"]()
    assert row["worst error"] == 0 and row["equal"] and (row["path"], row["kernel"]) == ("chunked", "selective")


class StandIn(SectionCall):
    """A call for a GPU, whose tensors lie on the processor, at toy sizes."""

    rehearsal, preset, micro_batch = False, "smoke", 2


def test_what_is_asked_of_a_device_is_asked_rightly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The branches that only a GPU takes: a fault there would cost a loan."""
    device = "NVIDIA H100 80GB HBM3"
    waits: list[int] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waits.append(1))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 3 * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: device)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    properties = SimpleNamespace(name=device, total_memory=80 * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: properties)
    call = StandIn(device="cpu")
    spec = base_scale_specs.runs("smoke")[BASELINE]
    row = training_steps.take_steps(spec, training_steps.EAGER, call, 2)
    operations = count_operations(spec.model, sequences=4)
    assert len(waits) == 11 and row["GiB"] == 3.0
    assert row["MFU, all pairs"] * row["ms"] == pytest.approx(operations / 1e-3 / 989e12)
    assert row["MFU, all pairs"] > row["MFU, visible pairs"] > 0
    assert ceilings.time_attention({"name": "softmax"}, call, "flash")["GiB"] == 3.0 and len(waits) == 22
    facts = device_under_test.describe("cuda")
    assert (facts["device"], facts["memory_gib"], facts["machine"], facts["peak_tflops"]) == (device, 80, "h100", 989)


def test_a_call_has_time_for_its_sections() -> None:
    """Each with the seconds that it may go beyond its own; ten are left for the start and the pages."""
    *first, other_blocks = SECTIONS.values()
    assert sum(section.seconds + GRACE for section in first) <= 60 * MINUTES - 10
    assert other_blocks.seconds + GRACE <= 60 * SECOND_MINUTES - 10
    assert [section.seconds for section in first] == [20, 60, 120, 200, 90]
    assert 60 * MINUTES + 2 * GRACE < 600, "a command, with the last row's end"
    commands = list_device_commands()
    assert len(commands) == 2 and all(len(line) <= 2000 for line in commands)
    assert commands[0].endswith(commands[1].removesuffix(f" --minutes {SECOND_MINUTES:g}"))
    assert 60 * (MINUTES + SECOND_MINUTES) <= 60 * 15 - 120, "a start and transfers"
    box = (REPOSITORY / "docs/gpu-box.md").read_text()
    assert re.findall(r"^\| (\w+) \| (\d+) \|", box, re.M) == [(n, f"{s.seconds:g}") for n, s in SECTIONS.items()]


def test_a_step_accumulates_micro_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """MFU by hand: 6 N D and the scores' 12 L H W T / 2 a token, of the stated peak."""
    baseline = base_scale_specs.runs(TINY.preset)[BASELINE]
    assert list(training_steps.rows(TINY)) == [training_steps.EAGER] and method_steps.rows(TINY) == {}
    ways = {training_steps.EAGER, training_steps.BY_LAYERS, training_steps.WHOLE}
    assert set(training_steps.rows(GPU)) == ways and GPU.micro_batch == 8
    first, *methods, last = method_steps.rows(GPU)
    assert (first, last, {*methods[-2:]}) == ("baseline, first", "baseline, last", {"attnres", "denseformer"})
    assert {*methods, BASELINE} == set(study_config.load("transfer", "paper").methods)
    ahead = method_steps.rows(SectionCall(device="cuda", ahead=True))
    assert {row.keywords["layers"] for row in ahead.values()} == {method_steps.AHEAD_LAYERS}
    row = training_steps.rows(TINY)[training_steps.EAGER]()
    assert row["micro-batches"] == 2 and row["MFU, all pairs"] is None, "a rehearsal"
    assert row["tokens/s"] == pytest.approx(2 * 2 * baseline.model.context / row["ms"] * 1e3)
    spec = base_scale_specs.runs("paper")[BASELINE].model
    weights = 24 * (2048 * (2048 + 2 * 512 + 2048) + 3 * 2048 * 5632) + 65_664 * 2048
    assert count_operations(spec, sequences=1, causal=True) == 6 * 1024 * (weights + 24 * 2 * 2048 * 1025 // 2)


@pytest.mark.parametrize("way", [training_steps.BY_LAYERS, training_steps.WHOLE])
def test_a_compiled_step_is_compiled_or_there_is_none(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainer goes on where the compiler fails; a measurement does not."""
    baseline = base_scale_specs.runs(TINY.preset)[BASELINE]
    graphs: list[Any] = []

    def count(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    def broken(graph: Any, inputs: Any) -> Any:
        raise RuntimeError("no instruction")

    plain = torch.compile
    monkeypatch.setattr(torch, "compile", functools.partial(plain, backend=count))
    row = training_steps.take_steps(baseline, way, TINY, 2)
    assert row["seconds to compile"] >= 0 and len(graphs) == (2 if way == training_steps.BY_LAYERS else 1)
    monkeypatch.setattr(torch, "compile", functools.partial(plain, backend=broken))
    with pytest.raises(Exception, match="no instruction"):
        training_steps.take_steps(baseline, way, TINY, 2)

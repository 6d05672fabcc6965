"""Operation counts: the paper's formula, ours from the modules, and torch's own counter."""

from __future__ import annotations

import pytest

from plumbline.model.decoder import on_meta
from plumbline.model.flops import count_operations, measure_operations, operations
from plumbline.model.mixers._base import Mixer
from plumbline.specs.spec import ModelSpec
from plumbline.studies.transfer.tables.table4 import appendix_c
from tests.model.transfer_methods import ALL, METHODS, PAPER, overlay
from tests.model_specs import small


def paper(name: str, **sizes) -> ModelSpec:
    return ModelSpec.from_dict(overlay(name, **PAPER | sizes))


@pytest.mark.parametrize("name", ALL)
def test_agrees_with_torch(name):
    spec = ModelSpec.from_dict(overlay(name, layers=2))
    assert count_operations(spec, sequences=3, training=False) == pytest.approx(
        measure_operations(spec, sequences=3), rel=1e-3
    )


def test_agrees_with_torch_without_the_head():
    spec = small()
    assert count_operations(spec, head=False, training=False) == measure_operations(spec, head=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_agrees_with_torch_at_paper_width(name, monkeypatch):
    """One layer of the printed size; mixers that work in chunks are made to take all queries at once."""
    monkeypatch.setattr(Mixer, "smallest_chunk", 1024)
    spec = paper(name, layers=1)
    assert count_operations(spec, training=False) == pytest.approx(measure_operations(spec), rel=1e-3)


def test_baseline_at_paper_size():
    spec = paper("baseline")
    weights = 24 * (2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 5632) + 65_664 * 2048
    forward = 2 * 1024 * weights + 4 * 24 * 1024**2 * 2048
    assert count_operations(spec, training=False) == forward == measure_operations(spec)
    assert count_operations(spec) == 3 * forward
    assert operations(on_meta(spec), sequences=2) == 2 * count_operations(spec)
    assert count_operations(spec, head=False) == 3 * (forward - 2 * 1024 * 65_664 * 2048)


def test_only_visible_pairs():
    spec = small()
    all_pairs = count_operations(spec, training=False) - count_operations(spec, training=False, causal=True)
    hidden = 32 * 31 // 2
    assert all_pairs == 2 * hidden * 2 * 64 * 4


def test_chunks_leave_later_keys_out():
    spec = paper("softpick", layers=1)
    assert measure_operations(spec) < count_operations(spec, training=False)
    assert measure_operations(spec) > count_operations(spec, training=False, causal=True)


def test_appendix_c_at_paper_size():
    """Per layer 2 s^2 d + s (2 (2 d^2 + 2 d d_kv) + 2 k d d_inter), times 24 layers, times 3."""
    s, d, shared, inner = 1024, 2048, 512, 5632
    layer = 2 * s**2 * d + s * (2 * (2 * d**2 + 2 * d * shared) + 2 * 3 * d * inner)
    assert appendix_c(paper("baseline")) == 3 * 24 * layer
    assert appendix_c(paper("baseline")) == pytest.approx(6.958e12, rel=1e-4)
    assert appendix_c(paper("baseline"), sequences=512) == 512 * 3 * 24 * layer


def test_appendix_c_sees_any_gate_and_any_ffn():
    """From the modules: a gate has width x output heads weights, a wider FFN without a gate two matrices."""
    plain, layers, tokens = small(), 4, 32
    gated = small(output={"name": "head_gate"})
    assert appendix_c(gated) - appendix_c(plain) == 3 * layers * tokens * 2 * 64 * 8
    wide = small(ffn={"name": "relu_squared", "width_ratio": 3.0})
    assert appendix_c(wide) - appendix_c(plain) == 3 * layers * tokens * 2 * 3 * 64 * 176


def test_true_count_of_selective_is_smaller():
    base, selective = count_operations(paper("baseline")), count_operations(paper("selective_attn"))
    assert 100 * (selective - base) / base < -1.9


def test_squared_relu_costs_what_swiglu_does():
    assert count_operations(paper("relu_squared")) == count_operations(paper("baseline"))
    assert appendix_c(paper("relu_squared")) == appendix_c(paper("baseline"))

"""What FFNs write: the naive computation in float64, and the values where training starts at the 270M shape."""

from __future__ import annotations

import math

import pytest
import torch

from plumbline.evaluate.probes import read
from plumbline.evaluate.probes.ffn_write import FFNWrite
from plumbline.model.decoder import create
from tests.evaluate.probes.naive_computations import keyed, scramble, tokens, trace
from tests.model_specs import small


def test_as_computed_naively_in_float64() -> None:
    model = scramble()
    batch_BT = tokens(model, 3)
    values = keyed(read(model, [FFNWrite()], batch_BT))
    assert len(values) == model.spec.layers
    for layer, (_, write_BTD) in enumerate(trace(model, lambda block: block.ffn, batch_BT)):
        squares = [value**2 for value in write_BTD.flatten().tolist()]
        expected = math.sqrt(sum(squares) / len(squares))
        assert values["ffn_write_rms", layer, None].value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("ffn", "width", "expected"),
    [("gelu", 3840, 0.0730), ("gelu", 2560, 0.0596), ("swiglu", 2560, 0.0339), ("geglu", 2560, 0.0369)],
)
def test_where_training_starts_at_width_of_premature_study(ffn: str, width: int, expected: float) -> None:
    """Width 960, 20 layers with residual scaling: 0.02 / sqrt(40) sqrt(m E[h^2]) for a normalised input. Two
    layers are made here, and their scale is undone; attention writes nothing, so that tokens' inputs have nothing in
    common and few of them are enough."""
    spec = small(layers=2, width=960, heads=15, key_value_heads=15, head_width=64, ffn_width=width, vocabulary=2048,
                 context=257, norm_eps=1e-12, residual_init_scaling=True, ffn={"name": ffn})  # fmt: skip
    model = create(spec, init_seed=42)
    with torch.no_grad():
        for block in model.blocks:
            block.attention.projections.output.weight.zero_()
    for probe_value in read(model, [FFNWrite()], tokens(model, 1)):
        assert probe_value.value * math.sqrt(4 / 40) == pytest.approx(expected, rel=0.02)

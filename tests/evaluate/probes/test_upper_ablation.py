"""The upper-half ablation: uniform attention by three roads, biases, and the loss itself."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from plumbline.evaluate.probes import read
from plumbline.evaluate.probes.attention_statistics import AttentionStatistics
from plumbline.evaluate.probes.upper_ablation import UpperAblation
from plumbline.model.decoder import Decoder
from tests.evaluate.probes.naive_computations import keyed, scramble, tokens

CASES = [
    {"projections": {"name": "grouped_query", "bias": True}},
    {"projections": {"name": "grouped_query", "bias": True}, "query_key": {"name": "qk_norm"}, "layers": 5},
]


def loss(model: Decoder, batch_BT: torch.Tensor) -> float:
    with torch.no_grad():
        logits_BTV = model.eval()(batch_BT[:, :-1])
    return float(cross_entropy(logits_BTV.double().flatten(0, 1), batch_BT[:, 1:].flatten()))


@pytest.mark.parametrize("overrides", CASES)
def test_zero_queries_zero_keys_and_both_are_uniform_attention(overrides: dict) -> None:
    """... which here replaces the mixers of the upper half by a mean over visible values."""
    model = scramble(**overrides)
    batch_BT = tokens(model, 3)
    values = {probe_value.probe: probe_value for probe_value in read(model, [UpperAblation()], batch_BT)}
    assert values["loss"].value == pytest.approx(loss(model, batch_BT), rel=1e-6) and values["loss"].null is None

    def causal_mean(q_BHTW, k_BGTW, v_BGTW, attention_mask, cache=None):
        counts_T1 = torch.arange(1, v_BGTW.shape[2] + 1)[:, None]
        return (v_BGTW.cumsum(2) / counts_T1).repeat_interleave(q_BHTW.shape[1] // v_BGTW.shape[1], dim=1)

    for block in model.blocks[model.spec.layers // 2 :]:
        block.attention.mixer.forward = causal_mean
    expected = loss(model, batch_BT)
    assert abs(expected - values["loss"].value) > 1e-4
    for name in ("loss_no_query", "loss_no_key", "loss_neither"):
        assert values[name].value == pytest.approx(expected, rel=1e-6)
        assert values[name].null == values["loss"].value


def test_a_zero_weight_is_not_a_zero_query() -> None:
    """The trap: its bias goes on reading keys."""
    model = scramble(**CASES[0])
    batch_BT = tokens(model)
    losses = {probe_value.probe: probe_value.value for probe_value in read(model, [UpperAblation()], batch_BT)}
    with torch.no_grad():
        for block in model.blocks[2:]:
            block.attention.projections.query.weight.zero_()
        assert abs(loss(model, batch_BT) - losses["loss_no_query"]) > 1e-3
        for block in model.blocks[2:]:
            block.attention.projections.query.bias.zero_()
    assert loss(model, batch_BT) == pytest.approx(losses["loss_no_query"], rel=1e-6)


def test_only_the_upper_half_is_touched_and_nothing_for_long() -> None:
    """Other probes of the same pass see the model as it is, and so does the next pass."""
    model = scramble(layers=3)
    batch_BT = tokens(model)
    alone = read(model, [AttentionStatistics()], batch_BT)
    both = read(model, [UpperAblation(), AttentionStatistics()], batch_BT)
    assert both[4:] == alone == read(model, [AttentionStatistics()], batch_BT)
    with torch.no_grad():  # a uniform upper half has nothing to lose, a lower half that is has
        for block in model.blocks[1:]:
            block.attention.projections.query.weight.zero_()
    by_key = keyed(read(model, [UpperAblation()], batch_BT))
    values = [probe_value.value for probe_value in by_key.values()]
    assert values == pytest.approx([values[0]] * 4, rel=1e-6) and math.isfinite(values[0])

"""Sandwich norm and HybridNorm."""

from __future__ import annotations

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.component import build
from plumbline.model.context import ForwardContext
from plumbline.model.decoder import Decoder, create
from tests.model.test_residual_streams import TOKENS
from tests.model_specs import small


def root_mean_square(x: torch.Tensor) -> torch.Tensor:
    return x.square().mean(dim=-1).sqrt()


def states_after_blocks(model: Decoder) -> list[torch.Tensor]:
    """The stream after each layer, (B, T, D) each."""
    context = ForwardContext(attention_mask=AttentionMask.for_call(TOKENS, None, None), cache=None)
    state, after = model.residual.start(model.embedding[TOKENS]), []
    for layer, block in enumerate(model.blocks):
        state = block(state, model.residual, model.residual.layer_inputs(layer), context, model.positions)
        after.append(state[0])
    return after


class TestSandwichNorm:
    def test_ignores_the_size_of_what_sublayers_write(self):
        model = create(small(placement={"name": "sandwich_norm"}, norm_eps=1e-12), 0)
        before = model(TOKENS)
        with torch.no_grad():
            for block in model.blocks:
                block.attention.projections.output.weight.mul_(3.0)
                block.ffn.down.weight.mul_(0.2)
        torch.testing.assert_close(model(TOKENS), before, rtol=1e-4, atol=1e-5)

    def test_every_write_starts_at_unit_size(self):
        model = create(small(placement={"name": "sandwich_norm"}, norm_eps=1e-12), 0)
        written = []
        for block in model.blocks:
            for norm in block.placement.branch_norms:
                norm.register_forward_hook(lambda _module, _inputs, output: written.append(output))
        model(TOKENS)
        assert len(written) == 8
        for branch in written:
            torch.testing.assert_close(root_mean_square(branch), torch.ones(2, 16), rtol=1e-4, atol=0)

    def test_norms_are_the_pre_norms_and_two_more(self):
        with torch.device("meta"):
            sandwich = build("placement", small(placement={"name": "sandwich_norm"}), 0)
            plain = build("placement", small(), 0)
        assert set(dict(plain.named_parameters())) < set(dict(sandwich.named_parameters()))
        assert sum(p.numel() for p in sandwich.parameters()) == 4 * 64


class TestHybridNorm:
    def test_the_stream_leaves_each_layer_at_unit_size(self):
        model = create(small(placement={"name": "hybrid_norm"}, norm_eps=1e-12), 0)
        for x in states_after_blocks(model):
            torch.testing.assert_close(root_mean_square(x), torch.ones(2, 16), rtol=1e-4, atol=0)

    def test_against_the_formula(self):
        """x' = x + attention(norm(x)), x'' = norm(x' + ffn(x')): the FFN reads the stream as it is."""
        model = create(small(placement={"name": "hybrid_norm"}), 0)
        block = model.blocks[0]
        with torch.no_grad():
            for index, norm in enumerate(block.placement.norms):
                norm.gain.uniform_(0.5, 2.0, generator=torch.Generator().manual_seed(index))
        context = ForwardContext(attention_mask=AttentionMask.for_call(TOKENS, None, None), cache=None)
        x = model.embedding[TOKENS]
        middle = x + block.attention(block.placement.norms[0](x), context, model.positions)
        expected = block.placement.norms[1](middle + block.ffn(middle))
        torch.testing.assert_close(states_after_blocks(model)[0], expected)

    def test_official_normalises_queries_keys_and_values(self):
        with pytest.raises(PlumblineError, match=r"choose model\.query_key 'qk_norm' instead of 'identity'"):
            Decoder(small(placement={"name": "hybrid_norm", "variant": "official"}))

    def test_official_against_the_formula(self):
        """y = x + attention(x), h = norm(y), h + ffn(h)."""
        pytest.importorskip("plumbline.model.values.rms_norm")
        pytest.importorskip("plumbline.model.query_key.qk_norm")
        chosen = {"query_key": {"name": "qk_norm"}, "values": {"name": "rms_norm"}}
        model = create(small(placement={"name": "hybrid_norm", "variant": "official"}, **chosen), 0)
        block = model.blocks[0]
        context = ForwardContext(attention_mask=AttentionMask.for_call(TOKENS, None, None), cache=None)
        x = model.embedding[TOKENS]
        h = block.placement.norms[0](x + block.attention(x, context, model.positions))
        torch.testing.assert_close(states_after_blocks(model)[0], h + block.ffn(h))
        extra = sum(p.numel() for p in model.parameters()) - sum(p.numel() for p in Decoder(small()).parameters())
        assert extra == 4 * (3 * 8 - 64)

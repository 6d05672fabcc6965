"""Learned positions, unprojected queries, softmax's divisor, and streams without norms (query_free study)."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import gelu

from plumbline.core.errors import PlumblineError
from plumbline.model.cache import DecodingCache
from plumbline.model.decoder import Decoder, create, on_meta
from plumbline.model.roles import collect_roles
from plumbline.specs.spec import ModelSpec
from tests.model.study_architectures import HALF_SCALE, NANO_GPT_SIZES, QUERY_FREE, Overlay
from tests.model_specs import BASELINE

TOKENS = torch.randint(0, 97, (2, 12), generator=torch.Generator().manual_seed(7))


def model(slots: Overlay, **sizes) -> Decoder:
    """A small model of these slots, every parameter off its start."""
    spec = ModelSpec.from_dict(BASELINE | {"key_value_heads": 8, "init_std": 0.1} | slots | sizes)
    decoder = create(spec, init_seed=5)
    generator = torch.Generator().manual_seed(6)
    for value in decoder.parameters():
        value.data += 0.1 * torch.randn(value.shape, generator=generator)
    return decoder.eval()


def with_identity(source: Decoder, slots: Overlay, role: str) -> Decoder:
    """The same weights in a model that has one matrix of attention more, which is the identity in every layer."""
    other = model(slots)
    weights = dict(source.named_parameters())
    with torch.no_grad():
        for name, value in other.named_parameters():
            value.copy_(torch.eye(64) if name.endswith(f"projections.{role}.weight") else weights[name])
    return other


@pytest.mark.parametrize(
    ("name", "total", "without_embeddings"),
    [("nano_gpt", 124_373_760, 84_953_856), ("query_free", 117_295_872, 77_875_968)],
)
def test_counts_of_the_query_free_study(name, total, without_embeddings):
    decoder = on_meta(ModelSpec.from_dict(BASELINE | NANO_GPT_SIZES | QUERY_FREE[name]))
    roles = collect_roles(decoder)
    assert sum(value.numel() for value in decoder.parameters()) == total
    counted = [value.numel() for key, value in decoder.named_parameters() if roles[key].role != "embedding"]
    assert sum(counted) == without_embeddings


@pytest.mark.parametrize("name", ["query_free", "key_free", "value_free"])
def test_without_one_matrix_attention_has_three(name):
    decoder = on_meta(ModelSpec.from_dict(BASELINE | QUERY_FREE[name] | NANO_GPT_SIZES))
    assert sum(value.numel() for value in decoder.blocks[0].attention.parameters()) == 3 * 768**2


@pytest.mark.parametrize(
    ("name", "role", "scale"),
    [("query_free", "query", HALF_SCALE), ("key_free", "key", HALF_SCALE), ("value_free", "value", {})],
)
@torch.no_grad()
def test_no_projection_is_a_projection_by_the_identity(name, role, scale):
    own = model(QUERY_FREE[name])
    assert role not in {role.role for role in collect_roles(own).values()}
    other = with_identity(own, QUERY_FREE["nano_gpt"] | scale, role)
    torch.testing.assert_close(own(TOKENS), other(TOKENS), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_a_residual_query_is_a_projection_by_one_plus_the_matrix():
    own = model(QUERY_FREE["residual_query"])
    change = own.blocks[0].attention.projections.change.weight.clone()
    for block in own.blocks:
        block.attention.projections.change.weight.copy_(change)
    other = model(QUERY_FREE["nano_gpt"] | HALF_SCALE)
    weights = dict(own.named_parameters())
    for name, value in other.named_parameters():
        value.copy_(torch.eye(64) + change if name.endswith("projections.query.weight") else weights[name])
    torch.testing.assert_close(own(TOKENS), other(TOKENS), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_a_residual_query_bends_its_matrix_by_gelu():
    decoder = model(QUERY_FREE["residual_query_gelu"]).blocks[1].attention.projections
    x_BTD = torch.randn(2, 5, 64, generator=torch.Generator().manual_seed(0))
    q_BHTW, _, _ = decoder(x_BTD)
    expected_BTD = x_BTD + gelu(x_BTD @ decoder.change.weight.T)
    torch.testing.assert_close(q_BHTW.transpose(1, 2).flatten(-2), expected_BTD)


@torch.no_grad()
def test_grouped_keys_go_with_queries_that_are_slices():
    assert model(QUERY_FREE["query_free"], key_value_heads=2)(TOKENS).isfinite().all()


@torch.no_grad()
def test_a_divisor_divides_scores():
    whole, halved = model(QUERY_FREE["nano_gpt"]), model(QUERY_FREE["nano_gpt"] | HALF_SCALE)
    for block in halved.blocks:
        block.attention.projections.query.weight.mul_(2.0)
    torch.testing.assert_close(halved(TOKENS), whole(TOKENS), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_positions_are_told_apart_by_what_is_learned_alone():
    decoder = model(QUERY_FREE["nano_gpt"])
    same = torch.full((1, 6), 3)
    assert not torch.allclose(decoder(same)[0, 0], decoder(same)[0, 5], atol=1e-3)
    decoder.positions.embedding.zero_()
    torch.testing.assert_close(decoder(same)[0, 0], decoder(same)[0, 5], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_a_position_that_was_not_learned_is_refused():
    decoder = model(QUERY_FREE["nano_gpt"])
    assert decoder(torch.zeros(1, 32, dtype=torch.long)).isfinite().all()
    with pytest.raises(PlumblineError, match=r"a sequence of 33 tokens.*model.context \(32\)"):
        decoder(torch.zeros(1, 33, dtype=torch.long))
    cache = DecodingCache()
    decoder(torch.zeros(1, 30, dtype=torch.long), cache=cache)
    with pytest.raises(PlumblineError, match="a sequence of 33 tokens"):
        decoder(torch.zeros(1, 3, dtype=torch.long), cache=cache)
    # Padding is not a position: 34 columns hold 32 tokens.
    padding_BT = torch.arange(34)[None] < 2
    assert decoder(torch.zeros(1, 34, dtype=torch.long), padding_BT=padding_BT)[:, 2:].isfinite().all()


@torch.no_grad()
def test_an_ffn_without_a_skip_replaces_the_stream():
    decoder = model(QUERY_FREE["norm_free"])
    record = {}
    decoder.blocks[-1].ffn.register_forward_hook(lambda _, inputs, output: record.update(output=output))
    logits = decoder(TOKENS)
    torch.testing.assert_close(decoder.logits(record["output"]), logits)
    assert "norm" not in {role.role for role in collect_roles(decoder).values()}


def test_heads_that_do_not_fill_the_stream_are_refused():
    spec = ModelSpec.from_dict(BASELINE | {"head_width": 4} | QUERY_FREE["query_free"])
    with pytest.raises(PlumblineError, match=r"'identity_query'.*\(8 x 4\) must be model.width \(64\)"):
        on_meta(spec)


@pytest.mark.parametrize("name", ["identity_key", "identity_value"])
def test_key_value_heads_that_do_not_fill_the_stream_are_refused(name):
    spec = ModelSpec.from_dict(BASELINE | {"key_value_heads": 2, "projections": {"name": name}})
    with pytest.raises(
        PlumblineError, match=rf"'{name}'.*model.key_value_heads .*\(2 x 8\) must be model.width \(64\)"
    ):
        on_meta(spec)


def test_a_divisor_of_nothing_is_refused():
    with pytest.raises(PlumblineError, match=r"model\.mixer\.divisor"):
        on_meta(ModelSpec.from_dict(BASELINE | {"mixer": {"name": "scaled_softmax", "divisor": 0.0}}))


def test_roles_of_the_new_parameters():
    roles = collect_roles(model(QUERY_FREE["residual_query"]))
    assert roles["positions.embedding"].role == "embedding" and roles["positions.embedding"].layer is None
    assert roles["blocks.2.attention.projections.change.weight"].role == "query"

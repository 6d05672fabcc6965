"""Masks, chunks and roles: the parts that all mixers rely on."""

from __future__ import annotations

import pytest
import torch

from plumbline.model.attention_mask import AttentionMask
from plumbline.model.cache import DecodingCache
from plumbline.model.decoder import create, on_meta
from plumbline.model.mixers._base import grouped_matmul
from plumbline.model.roles import collect_roles
from plumbline.specs.spec import ModelSpec
from tests.model.attention_cases import mixer, padded, plain
from tests.model.transfer_methods import PAPER, overlay
from tests.model_specs import small


def test_a_plain_mask_is_causal() -> None:
    attention_mask = plain(5)
    assert attention_mask.plain and attention_mask.length == 5
    assert torch.equal(attention_mask.mask_BQK[0], torch.ones(5, 5).tril().bool())
    assert attention_mask.visible_B1Q1.flatten().tolist() == [1, 2, 3, 4, 5]


def test_padding_is_neither_seen_nor_counted() -> None:
    attention_mask = padded(6, left=2, right=3)
    assert not attention_mask.plain
    assert attention_mask.query_positions_BQ.tolist() == [[-1, -1, 0, 1, 2, 3], [0, 1, 2, -1, -1, -1]]
    assert attention_mask.mask_BQK[0, 3].tolist() == [False, False, True, True, False, False]
    assert attention_mask.mask_BQK[1, 2].tolist() == [True, True, True, False, False, False]
    # A padding row has to see something: a softmax over nothing is not a number.
    assert attention_mask.mask_BQK[0, 0].all()
    assert attention_mask.visible_B1Q1[0].flatten().tolist() == [1, 1, 1, 2, 3, 4]


def test_the_cache_goes_on_counting() -> None:
    past = padded(4, left=2, right=1)
    now = AttentionMask.for_call(torch.zeros(2, 2, dtype=torch.long), None, past)
    assert now.query_positions_BQ.tolist() == [[2, 3], [3, 4]]
    assert now.key_positions_BK.tolist() == [[-1, -1, 0, 1, 2, 3], [0, 1, 2, -1, 3, 4]]
    assert now.length == 6 and not now.plain


@pytest.mark.parametrize(("n", "expected"), [("visible", [1, 2, 3]), ("context", [32] * 3), ("sequence", [3] * 3)])
def test_variants_of_the_number_of_keys(n: str, expected: list[int]) -> None:
    attention_mask = plain(3)
    assert attention_mask.count_B1Q1(n, 32).flatten().tolist() == expected
    # A chunk of the queries counts as the whole does.
    assert attention_mask.rows(1, 3).count_B1Q1(n, 32).flatten().tolist() == expected[1:]


def test_rows_leave_later_keys_out_at_plain_positions_only() -> None:
    part = plain(6).rows(2, 4)
    assert part.mask_BQK.shape == (1, 2, 4) and not part.plain
    assert torch.equal(part.mask_BQK, plain(6).mask_BQK[:, 2:4, :4])
    assert torch.equal(padded(6, left=2, right=1).rows(2, 4).mask_BQK, padded(6, left=2, right=1).mask_BQK[:, 2:4])


def test_the_bias_is_the_mask() -> None:
    attention_mask = padded(6, left=2, right=1)
    bias = attention_mask.bias_B1QK(torch.float64)
    assert torch.equal(bias == 0, attention_mask.mask_B1QK) and torch.equal(bias.isneginf(), ~attention_mask.mask_B1QK)


@pytest.mark.parametrize("queries", [1, 31, 33, 128, 130])
def test_chunks_cover_all_queries_once(queries: int) -> None:
    spans = mixer("softmax").spans(queries)
    assert [i for start, stop in spans for i in range(start, stop)] == list(range(queries))
    assert len(spans) <= 5


def test_grouped_products_need_no_repetition() -> None:
    left, right = torch.randn(2, 8, 5, 3), torch.randn(2, 2, 3, 4)
    torch.testing.assert_close(grouped_matmul(left, right), left @ right.repeat_interleave(4, dim=1))


@torch.no_grad()
def test_decoding_continues_a_chunked_prefill() -> None:
    """Longer than a chunk, so that chunks with trimmed keys meet the cache."""
    model = create(small(init_std=0.15, mixer={"name": "softpick"}), 1)
    tokens = torch.randint(0, 97, (2, 70))
    cache = DecodingCache()
    parts = [
        model(tokens[:, :66], cache=cache),
        model(tokens[:, 66:67], cache=cache),
        model(tokens[:, 67:], cache=cache),
    ]
    torch.testing.assert_close(torch.cat(parts, dim=1), model(tokens), rtol=2e-4, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softpick", "selective_attn"])
def test_a_model_compiles_to_one_graph(name: str) -> None:
    """Both the hand-written gradient and the chunks; the backend that traces but generates no code."""
    model, tokens = create(ModelSpec.from_dict(overlay(name, layers=1)), 1), torch.randint(0, 97, (2, 40))
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    results = []
    for run in (compiled, model):
        model.zero_grad()
        logits = run(tokens)
        logits.square().mean().backward()
        results.append((logits.detach(), *(value.grad.clone() for value in model.parameters())))
    for traced, eager in zip(*results, strict=True):
        torch.testing.assert_close(traced, eager)


#: Parameters that a component of attention adds: role, and shape at paper size.
ADDED = {
    "qknorm": {"query_key.query_norm.gain": ("norm", (64,)), "query_key.key_norm.gain": ("norm", (64,))},
    "ssmax": {"mixer.scale_parameter": ("scalar", (32,))},
    "sigmoid_attn": {"mixer.bias": ("scalar", (1,))},
    "value_residual": {"values.share": ("scalar", (1,))},
    "value_residual.share_per_head": {"values.share": ("scalar", (8,))},
    "sigmoid_attn.bias_per_head": {"mixer.bias": ("scalar", (32,))},
    "gated_attn_qknorm": {"output.gate.weight": ("attention_gate", (32, 2048))},
    "diff_attn": {
        "mixer.lambda_query_1": ("scalar", (32,)),
        "mixer.lambda_key_2": ("scalar", (32,)),
        "mixer.norm_gain": ("norm", (32, 64)),
        "mixer.norm_bias": ("bias", (32, 64)),
    },
    "diff_attn.per_head_lambda": {"mixer.lambda_query_2": ("scalar", (32, 32)), "mixer.norm_gain": ("norm", (64,))},
    "diff_attn.official": {"mixer.lambda_key_1": ("scalar", (64,)), "mixer.norm_gain": ("norm", (128,))},
    "selective_attn": {"projections.output.weight": ("output", (2048, 24 * 64))},
    "selective_attn.halved_key_values": {"projections.key.weight": ("key", (4 * 64, 2048))},
}


@pytest.mark.parametrize("name", ADDED)
def test_roles_and_shapes_of_added_parameters(name: str) -> None:
    model = on_meta(ModelSpec.from_dict(overlay(name, **PAPER)))
    shapes = {key: tuple(value.shape) for key, value in model.named_parameters()}
    for suffix, (role, shape) in ADDED[name].items():
        key = f"blocks.5.attention.{suffix}"
        assert (collect_roles(model)[key].role, collect_roles(model)[key].layer, shapes[key]) == (role, 5, shape)

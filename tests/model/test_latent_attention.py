"""Latent attention (MLA) against the same written out, what its cache holds, and its sizes."""

from __future__ import annotations

import math

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.cache import DecodingCache
from plumbline.model.decoder import Decoder, create, on_meta
from plumbline.model.flops import count_operations, measure_operations
from plumbline.model.roles import QUERY_KEY, collect_roles
from plumbline.specs.spec import ModelSpec
from tests.model.study_architectures import LATENT, LATENT_NORM, QUACK_LATENT, QUACK_SIZES, Overlay
from tests.model_specs import BASELINE

TOKENS = torch.randint(0, 97, (2, 9), generator=torch.Generator().manual_seed(7))


def model(slots: Overlay = LATENT) -> Decoder:
    return create(ModelSpec.from_dict(BASELINE | {"init_std": 0.2} | slots), init_seed=5).double().eval()


def rotate(x_TR: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
    """Rotary positions by complex numbers: coordinate i goes with i + R / 2."""
    time, width = x_TR.shape
    angles = torch.arange(time, dtype=torch.float64)[:, None] * base ** -(torch.arange(0, width, 2) / width).double()
    first, second = x_TR.chunk(2, dim=-1)
    whole = torch.complex(first, second) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([whole.real, whole.imag], dim=-1)


@pytest.mark.parametrize("slots", [LATENT, LATENT_NORM])
@torch.no_grad()
def test_is_what_its_definition_says(slots):
    decoder = model(slots)
    attention, x_TD = decoder.blocks[1].attention, torch.randn(9, 64, dtype=torch.float64)
    own = {name.removesuffix(".weight"): value for name, value in attention.projections.named_parameters()}
    record = {}
    decoder.blocks[1].attention.register_forward_hook(lambda _, inputs, output: record.update(x=inputs[0], out=output))
    decoder(TOKENS)
    x_TD = record["x"][0]

    def latent(name: str) -> torch.Tensor:
        c = x_TD @ own[f"{name}_down"].T
        if slots is LATENT_NORM:
            c = c / (c.square().mean(-1, keepdim=True) + 1e-5).sqrt() * own[f"{name}_norm.gain"]
        return c

    c_q, c_kv = latent("query"), latent("key_value")
    rotary_key = rotate(x_TD @ own["key_rotary"].T)
    future = torch.ones(9, 9, dtype=torch.bool).triu(1)
    heads = []
    for head in range(8):
        four, eight = slice(4 * head, 4 * head + 4), slice(8 * head, 8 * head + 8)
        content = (c_q @ own["query_up"][four].T) @ (c_kv @ own["key_up"][four].T).T
        rotary = rotate(c_q @ own["query_rotary"][four].T) @ rotary_key.T
        z_TT = ((content + rotary) / math.sqrt(8)).masked_fill(future, -math.inf)
        heads.append(z_TT.softmax(-1) @ (c_kv @ own["value"][eight].T))
    expected_TD = torch.cat(heads, dim=-1) @ own["output"].T
    torch.testing.assert_close(record["out"][0], expected_TD, rtol=1e-5, atol=1e-6)  # rotations are made in float32


@torch.no_grad()
def test_decoding_remembers_latents_alone():
    decoder, cache = model().float(), DecodingCache()
    parts = [decoder(part, cache=cache) for part in TOKENS.split([4, 1, 1, 3], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), decoder(TOKENS), rtol=1e-4, atol=1e-4)
    # 12 numbers of the latent and 4 of the rotary key for each token and layer, where heads would have 2 x 64.
    assert cache.bytes == 2 * 9 * 4 * (12 + 4) * 4
    whole = DecodingCache()
    create(ModelSpec.from_dict(BASELINE | {"key_value_heads": 8}), 5)(TOKENS, cache=whole)
    assert whole.bytes == 2 * 9 * 4 * (2 * 64) * 4


def test_counts_of_the_quack_study():
    sizes = BASELINE | QUACK_SIZES
    plain = on_meta(ModelSpec.from_dict(sizes | {"query_key": {"name": "identity"}}))
    assert sum(value.numel() for value in plain.parameters()) == 1_040_246_784
    decoder = on_meta(ModelSpec.from_dict(sizes | QUACK_LATENT))
    layer = (
        2048 * (512 + 256 + 64) + 512 * 32 * 128 + 256 * 32 * (64 + 128) + 32 * 128 * 2048 + 3 * 2048 * 8192 + 2 * 2048
    )
    assert sum(value.numel() for value in decoder.parameters()) == 14 * layer + 2048 + 49_152 * 2048


def test_every_matrix_is_one_of_its_own():
    roles = {
        name.removeprefix("blocks.0.attention.projections.").removesuffix(".weight"): role.role
        for name, role in collect_roles(model()).items()
        if name.startswith("blocks.0.attention.projections.")
    }
    assert roles == {role: role for role in QUERY_KEY - {"query", "key"} | {"value", "output"}}


def test_operations_are_those_that_run():
    spec = ModelSpec.from_dict(BASELINE | LATENT)
    assert count_operations(spec, training=False) == measure_operations(spec)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"projections": LATENT["projections"] | {"rotary_width": 8}}, r"rotary_width \(8\) must be even"),
        ({"projections": LATENT["projections"] | {"rotary_width": 3}}, r"rotary_width \(3\) must be even"),
        ({"projections": LATENT["projections"] | {"query_latent": 0}}, "query_latent and key_value_latent"),
        ({"key_value_heads": 2}, r"model.key_value_heads \(2\) must be model.heads \(8\)"),
        ({"query_key": {"name": "qk_norm"}}, "model.query_key 'qk_norm'.*choose 'identity'"),
        ({"values": {"name": "value_residual"}}, "model.values 'value_residual'"),
        ({"mixer": {"name": "differential"}}, "splits each head"),
    ],
)
def test_what_does_not_go_with_latents_is_refused(change, message):
    with pytest.raises(PlumblineError, match=message):
        on_meta(ModelSpec.from_dict(BASELINE | LATENT | change))

"""The blocks of the studies but transfer's methods: their parts, their parameter counts, and how they start."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from plumbline.model.attention_mask import AttentionMask
from plumbline.model.component import build
from plumbline.model.context import ForwardContext
from plumbline.model.decoder import Block, Decoder, create, on_meta
from plumbline.model.init import initialise
from plumbline.model.norms.layer_norm import LayerNorm
from plumbline.model.roles import collect_roles
from plumbline.specs.spec import ModelSpec
from tests.model.study_architectures import BASE, GATED, KEY_NORMS, KEY_NORMS_SIZES, LARGE, PREMATURE, Overlay
from tests.model_specs import BASELINE, small

X = 0.1 * torch.randn(2, 5, 64, generator=torch.Generator().manual_seed(0))


def off_its_start(module: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(1)
    for value in module.parameters():
        value.data = torch.randn(value.shape, generator=generator)
    return module


class TestLayerNorm:
    @pytest.mark.parametrize("bias", [True, False])
    def test_is_torchs(self, bias):
        own = off_its_start(LayerNorm(small(norm_eps=1e-3), 1, 64, bias=bias))
        theirs = nn.LayerNorm(64, eps=1e-3, bias=bias)
        theirs.load_state_dict({"weight": own.gain} | ({"bias": own.bias} if bias else {}))
        torch.testing.assert_close(own(3 * X + 1), theirs(3 * X + 1), rtol=0, atol=0)

    def test_takes_half_precision_in_float32(self):
        own = off_its_start(LayerNorm(small(), None, 64))
        narrow = own((50 + X).bfloat16())
        assert narrow.dtype == torch.bfloat16
        torch.testing.assert_close(narrow, own((50 + X).bfloat16().float()).bfloat16(), rtol=0, atol=0)

    def test_roles(self):
        own = collect_roles(LayerNorm(small(), 3, 64))
        assert {name: (role.role, role.owner, role.layer) for name, role in own.items()} == {
            "gain": ("norm", "", 3),
            "bias": ("bias", "norm", 3),
        }
        assert collect_roles(LayerNorm(small(), 3, 64, bias=False)).keys() == {"gain"}


class TestFeedForward:
    def ffn(self, **chosen: Any) -> nn.Module:
        return off_its_start(create(small(ffn=chosen), 0).blocks[1].ffn)

    def test_gelu_by_the_error_function(self):
        module = self.ffn(name="gelu", bias=True)
        up = X @ module.up.weight.T + module.up.bias
        expected = 0.5 * up * (1 + torch.erf(up / math.sqrt(2))) @ module.down.weight.T + module.down.bias
        torch.testing.assert_close(module(X), expected)

    def test_gelu_by_its_approximation(self):
        exact, module = self.ffn(name="gelu"), self.ffn(name="gelu", gelu="tanh")
        up = X @ module.up.weight.T
        curve = torch.tanh(math.sqrt(2 / math.pi) * (up + 0.044715 * up**3))
        torch.testing.assert_close(module(X), 0.5 * up * (1 + curve) @ module.down.weight.T)
        assert (module(X) - exact(X)).abs().max() > 1e-4

    @pytest.mark.parametrize(("name", "curve"), [("swiglu", torch.sigmoid), ("geglu", torch.special.ndtr)])
    def test_gated_networks_with_biases(self, name, curve):
        module = self.ffn(name=name, bias=True)
        gate, up = (X @ part.weight.T + part.bias for part in (module.gate, module.up))
        torch.testing.assert_close(module(X), gate * curve(gate) * up @ module.down.weight.T + module.down.bias)

    @pytest.mark.parametrize("name", ["gelu", "swiglu", "geglu"])
    def test_a_bias_knows_its_matrix(self, name):
        model = create(small(ffn={"name": name, "bias": True}, projections={"name": "grouped_query", "bias": True}), 0)
        biases = {key: role for key, role in model.parameter_roles.items() if key.endswith(".bias")}
        assert len(biases) == 4 * (4 + (2 if name == "gelu" else 3))
        for key, role in biases.items():
            beside = model.parameter_roles[key.removesuffix("bias") + "weight"]
            assert (role.role, role.owner, role.layer) == ("bias", beside.role, beside.layer)
            assert not model.get_parameter(key).any()


def test_the_stream_may_start_scaled():
    """sqrt(64) = 8 times the embedding; a tied head reads the embedding as it is."""
    model, plain = create(small(residual={"name": "scaled_embedding"}), 0), create(small(), 0)
    tokens_BT = torch.arange(12).reshape(2, 6)
    with torch.no_grad():
        expected = plain(tokens_BT)
        plain.embedding.mul_(8)
        context = ForwardContext(attention_mask=AttentionMask.for_call(tokens_BT, None, None), cache=None)
        torch.testing.assert_close(model(tokens_BT), plain.hidden(tokens_BT, context) @ model.embedding.T)
        assert (model(tokens_BT) - expected).abs().max() > 1e-3


def test_architectures_are_choices_of_slots():
    changed = {
        name: {slot for slot in slots if slots[slot] != PREMATURE["gpt"][slot]} for name, slots in PREMATURE.items()
    }
    assert changed == {
        "gpt": set(),
        "gpt_rmsnorm": {"norm"},
        "gpt_biasless": {"projections", "ffn"},
        "gpt_swiglu": {"ffn"},
        "gpt_geglu": {"ffn"},
        "llama_layernorm": {"projections", "ffn"},
        "llama": {"norm", "projections", "ffn"},
    }
    assert ModelSpec.from_dict(BASELINE | PREMATURE["llama"]) == small()


@pytest.mark.parametrize("name", PREMATURE)
def test_residual_scaling_is_for_both_writes_and_for_no_bias(name):
    plain, scaled = (create(small(residual_init_scaling=flag, **PREMATURE[name]), 0) for flag in (False, True))
    written = 0
    for key, value in plain.named_parameters():
        writes = key.endswith(("projections.output.weight", "ffn.down.weight"))
        torch.testing.assert_close(scaled.get_parameter(key), value / math.sqrt(2 * 4) if writes else value)
        written += writes
    assert written == 2 * 4


def count_parameters(sizes: Overlay, slots: Overlay) -> int:
    return sum(value.numel() for value in on_meta(small(**sizes, **slots)).parameters())


#: 269,682,240 and 88,630,528 follow from what the documents print, the others from these.
@pytest.mark.parametrize(
    ("sizes", "name", "expected"),
    [
        (BASE, "gpt", 269_682_240),
        (BASE, "gpt_rmsnorm", 269_642_880),
        (BASE, "gpt_biasless", 269_509_440),
        (BASE | GATED, "gpt_swiglu", 269_707_840),
        (BASE | GATED, "gpt_geglu", 269_707_840),
        (BASE | GATED, "llama_layernorm", 269_509_440),
        (BASE | GATED, "llama", 269_470_080),
        (BASE | GATED, "gpt", 220_504_640),  # gpt_gelu2560
        (BASE | {"vocabulary": 50_304}, "gpt", 269_727_360),
        (LARGE, "gpt", 700_491_264),
    ],
)
def test_counts_of_the_premature_study(sizes, name, expected):
    assert count_parameters(sizes, PREMATURE[name]) == expected


def test_count_of_the_key_norms_study():
    assert count_parameters(KEY_NORMS_SIZES, KEY_NORMS) == 88_630_528


class Seen:
    """What a block's mixer is given and what its FFN writes, by plain hooks."""

    def __init__(self, block: Block) -> None:
        block.attention.mixer.register_forward_pre_hook(self.mixer)
        block.ffn.register_forward_hook(self.ffn)

    def mixer(self, module: nn.Module, inputs: tuple) -> None:
        q_BHTW, k_BGTW = inputs[:2]
        self.key_norm = k_BGTW.norm(dim=-1).mean().item()
        absolute, entropies = [], []
        for q_TW, k_TW in zip(q_BHTW[0], k_BGTW[0].repeat_interleave(len(q_BHTW[0]) // len(k_BGTW[0]), dim=0)):
            z_TT = q_TW @ k_TW.T / math.sqrt(q_TW.shape[-1])
            seen_TT = torch.ones_like(z_TT, dtype=torch.bool).tril()
            absolute.append(z_TT[seen_TT].abs().mean())
            p_TT = z_TT.masked_fill(~seen_TT, -torch.inf).softmax(dim=-1)
            entropy_T = torch.special.entr(p_TT).sum(dim=-1)[1:]
            entropies.append((entropy_T / torch.arange(2, len(z_TT) + 1).log()).mean())
        self.logit, self.entropy = torch.stack(absolute).mean().item(), torch.stack(entropies).mean().item()

    def ffn(self, module: nn.Module, inputs: tuple, output: torch.Tensor) -> None:
        self.write = output.square().mean().sqrt().item()


def upper_block(sizes: Overlay, slots: Overlay) -> Seen:
    """A block of full width as it starts, its residual scaling that of the whole depth, run on a random stream."""
    spec = small(**sizes, **slots)
    block = Block(spec, spec.layers // 2)
    block.spec = spec
    initialise(block, 0)
    reading = Seen(block)
    tokens_BT = torch.zeros(1, spec.context, dtype=torch.long)
    context = ForwardContext(attention_mask=AttentionMask.for_call(tokens_BT, None, None), cache=None)
    x_BTD = torch.randn(1, spec.context, spec.width, generator=torch.Generator().manual_seed(2))
    residual = build("residual", spec)
    with torch.no_grad():
        block((x_BTD,), residual, residual.layer_inputs(spec.layers // 2), context, build("positions", spec))
    return reading


@pytest.mark.parametrize(
    ("name", "sizes", "write"),
    [
        ("gpt", BASE, 0.0730),
        ("gpt", BASE | GATED, 0.0596),
        ("gpt_swiglu", BASE | GATED, 0.0339),
        ("gpt_geglu", BASE | GATED, 0.0369),
    ],
)
def test_how_the_premature_study_starts(name, sizes, write):
    """Writes of 0.02 / sqrt(40) sqrt(m E[h^2]), mean |z| = 0.02^2 d sqrt(2 / pi)."""
    reading = upper_block(sizes, PREMATURE[name])
    assert reading.write == pytest.approx(write, rel=0.02)
    assert reading.logit == pytest.approx(0.306, abs=0.002)
    assert reading.entropy == pytest.approx(0.987, abs=0.001)


def test_key_norms_start_at_the_root_of_the_head_width():
    reading = upper_block(KEY_NORMS_SIZES | {"context": 256}, KEY_NORMS)
    assert reading.key_norm == pytest.approx(8.0, abs=1e-4)


@pytest.mark.slow
def test_how_the_whole_of_the_premature_study_starts():
    """All of the 269,682,240 parameters, one sequence of tokens.

    Entropy 0.987 is that of unrelated inputs, which the first layer has. Deeper down it is higher, 0.991: the
    mean of GELU makes every write carry a part that all tokens share, which their scores then share as well.
    """
    model: Decoder = create(small(**BASE, **PREMATURE["gpt"]), 0)
    blocks = [Seen(block) for block in model.blocks]
    tokens_BT = torch.randint(0, 50_257, (1, 1024), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        model.hidden(
            tokens_BT, ForwardContext(attention_mask=AttentionMask.for_call(tokens_BT, None, None), cache=None)
        )
    upper = {name: sum(getattr(part, name) for part in blocks[10:]) / 10 for name in ("write", "logit", "entropy")}
    assert upper["write"] == pytest.approx(0.0730, rel=0.02)
    assert upper["logit"] == pytest.approx(0.306, abs=0.005)
    assert blocks[0].entropy == pytest.approx(0.987, abs=0.001)
    assert upper["entropy"] == pytest.approx(0.991, abs=0.001)

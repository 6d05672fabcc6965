"""Kernels in Triton's interpreter against their mixers' references in double precision: outputs and gradients."""

from __future__ import annotations

import copy
import itertools
import json
import os
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
import torch

from benchmarks.kernel_costs import COSTS, AttentionShape, count_kept_bytes, operations
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.decoder import create
from plumbline.model.mixers._base import Mixer
from plumbline.specs.spec import ModelSpec
from tests.conftest import REPOSITORY
from tests.model.kernels.conftest import DEVICE, KERNELS
from tests.model.transfer_methods import overlay
from tests.model_specs import small

#: Blocks of 32 and 16 that the last one fills in part; on a GPU, blocks are larger.
LENGTH = 37 if DEVICE == "cpu" else 300
interpreter_only = pytest.mark.skipif(DEVICE != "cpu", reason="looks into the interpreter")

#: Every variant of a mixer that has a kernel, by its options.
VARIANTS: dict[str, dict[str, Any]] = {
    "softmax_cap": {"name": "softmax_cap", "cap": 0.7},
    "masked_negative": {"name": "softpick", "variant": "masked_negative"},
    "softpick": {"name": "softpick"},
    "softpick context": {"name": "softpick", "n": "context"},
    "softpick sequence": {"name": "softpick", "n": "sequence"},
    "softpick original": {"name": "softpick", "variant": "original"},
    "sigmoid": {"name": "sigmoid"},
    "sigmoid per head": {"name": "sigmoid", "bias": "head", "n": "visible"},
    "sigmoid original": {"name": "sigmoid", "variant": "original", "n": "sequence"},
    "selective": {"name": "selective"},
    "selective after": {"name": "selective", "mask": "after"},
    "selective halved": {"name": "selective", "variant": "halved_key_values"},
    "selective halved after": {"name": "selective", "variant": "halved_key_values", "mask": "after"},
}
#: One variant of each kernel.
ONE_EACH = ["softmax_cap", "softpick", "softpick original", "sigmoid per head", "selective"]


def plain(length: int) -> AttentionMask:
    """Causal mask of one unpadded call."""
    return AttentionMask.for_call(torch.zeros(1, length, dtype=torch.long, device=DEVICE), None, None)


def build_mixer(variant: str, *, width: int = 32, heads: int = 4, groups: int = 2) -> Mixer:
    """A mixer with its parameters off their start, in double precision."""
    sizes = {"width": heads * width, "heads": heads, "key_value_heads": groups, "head_width": width, "layers": 1}
    mixer = create(small(mixer=VARIANTS[variant], **sizes), init_seed=3).blocks[0].attention.mixer.double()
    generator = torch.Generator().manual_seed(11)
    for value in mixer.parameters():
        value.data += 0.5 * torch.randn(value.shape, generator=generator, dtype=value.dtype)
    return mixer.to(DEVICE)


def draw_inputs(
    mixer: Mixer, length: int, width: int, *, heads: int = 4, batch: int = 2, dtype: torch.dtype = torch.float32
) -> list[torch.Tensor]:
    """Queries, keys and values as projections leave them, the axis of heads not the outer one."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(batch, length, number, width) for number in (heads, mixer.groups, mixer.groups)]
    return [(1.5 * torch.randn(shape, generator=generator)).to(DEVICE, dtype).transpose(1, 2) for shape in shapes]


def results(path: Any, inputs: list[torch.Tensor], parameters: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The output, and the gradients of inputs and parameters for a fixed one of the output."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    out = path(*leaves, plain(inputs[0].shape[2]))
    do = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out)
    return out.detach(), *torch.autograd.grad(out, [*leaves, *parameters], do)


def compare(mixer: Mixer, inputs: list[torch.Tensor], tolerance: float) -> tuple[torch.Tensor, ...]:
    """The kernel's results, which are the reference's in double up to `tolerance` of each one's largest number, or of
    the terms that it is a sum of."""
    single = copy.deepcopy(mixer).float()
    assert single.kernel_for_call(inputs[0], plain(inputs[0].shape[2])) == single.kernel
    actual = results(single.forward, inputs, list(single.parameters()))
    expected = results(mixer.reference, [x.double() for x in inputs], list(mixer.parameters()))
    assert actual[0].dtype == inputs[0].dtype
    q, k = (mixer.scale**0.5 * x.abs().max().item() for x in inputs[:2])
    terms = [1.0, k, q, *(1.0 for _ in expected[3:])]
    for ours, other, term in zip(actual, expected, terms, strict=True):
        assert ours.shape == other.shape and ours.isfinite().all()
        limit = tolerance * max(other.abs().max().item(), term)
        torch.testing.assert_close(ours.double(), other, rtol=0, atol=limit)
    return actual


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_kernel_is_its_reference(kernels: dict[str, ModuleType], variant: str) -> None:
    """Four heads in two groups; in selective attention of halved keys and values, in one."""
    mixer = build_mixer(variant)
    compare(mixer, draw_inputs(mixer, LENGTH, 32, batch=1), 5e-6)


@pytest.mark.parametrize(("variant", "width"), list(zip(ONE_EACH, (48, 64, 16, 72, 128))))
def test_heads_of_other_widths(kernels: dict[str, ModuleType], variant: str, width: int) -> None:
    mixer = build_mixer(variant, width=width)
    compare(mixer, draw_inputs(mixer, 20, width), 5e-6)


@pytest.mark.parametrize("variant", ONE_EACH)
def test_bfloat16(kernels: dict[str, ModuleType], variant: str) -> None:
    """Weights enter products as bfloat16, as in the reference; sums and statistics are float32. (The interpreter cuts
    to bfloat16 where a GPU rounds, which is the larger error.)"""
    mixer = build_mixer(variant)
    compare(mixer, draw_inputs(mixer, LENGTH, 32, batch=1, dtype=torch.bfloat16), 2.5e-2)


@pytest.mark.parametrize(("variant", "length"), [*((variant, 18) for variant in ONE_EACH), ("selective", 1)])
def test_equal_and_huge_scores(kernels: dict[str, ModuleType], variant: str, length: int) -> None:
    """|z| up to 1000, and rows of equal scores, which are dead in softpick: exactly zero, as is its row 0."""
    mixer = build_mixer(variant, width=16)
    q, k, v = draw_inputs(mixer, length, 16, batch=1)
    # Scores of +-1000 and 500. What is kept of a row is a number of that size, of which float32 knows 1e-4.
    huge = torch.full_like(k, 250.0) * torch.tensor([1.0, -1.0, 0.5], device=DEVICE).repeat(6)[:length, None]
    compare(mixer, [torch.ones_like(q), huge, v], 1e-4)
    # Whole numbers, whose products are the same in any order of summing.
    same = [q.round(), k[:, :, :1].round().expand_as(k), v]
    if variant == "softpick":  # in double, the reference's 1 / n is one of float32, and rows are dead by chance
        assert not any(value.any() for value in results(mixer.float().forward, same, []))
    else:
        compare(mixer, same, 5e-6)


def test_equal_rows_are_dead_at_any_size(kernels: dict[str, ModuleType]) -> None:
    """1 / n is the same number on both sides of the comparison, also where a sum of n terms rounds nothing else so."""
    mixer = build_mixer("softpick", width=16, heads=2, groups=1)
    q, k, v = draw_inputs(mixer, 70, 16, heads=2, batch=1)
    out = mixer.float().forward(q.round(), k[:, :, :1].round().expand_as(k), v, plain(70))
    assert not out.any()


@interpreter_only
def test_without_a_gradient_softpick_makes_its_output_alone(kernels: dict[str, ModuleType]) -> None:
    mixer = build_mixer("softpick").float()
    inputs = draw_inputs(mixer, 20, 32, batch=1)
    with torch.no_grad(), _Products() as alone:
        out = mixer(*inputs, plain(20))
    with _Products() as trained:
        kept_too = mixer(*(x.requires_grad_() for x in inputs), plain(20))
    torch.testing.assert_close(out, kept_too.detach(), rtol=0, atol=0)
    cost = COSTS["softpick"]
    assert alone.count * cost.forward == trained.count * (cost.forward_alone or 0)


class _Products:
    """Counts operations of the matrix products that the interpreter makes."""

    def __enter__(self) -> _Products:
        from triton.runtime.interpreter import InterpreterBuilder

        self.count, self.builder, self.made = 0, InterpreterBuilder, InterpreterBuilder.create_dot

        def counting(builder: Any, left: Any, right: Any, *rest: Any) -> Any:
            self.count += 2 * left.data.shape[0] * left.data.shape[1] * right.data.shape[1]
            return self.made(builder, left, right, *rest)

        InterpreterBuilder.create_dot = counting
        return self

    def __exit__(self, *error: object) -> None:
        self.builder.create_dot = self.made


@interpreter_only
@pytest.mark.parametrize("variant", ONE_EACH)
def test_costs_are_what_kernels_do(
    kernels: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, variant: str
) -> None:
    """Products by counting them, kept bytes by what autograd is given to keep: nothing of T x T."""
    from plumbline.model.kernels.tiles import BlockSizes

    mixer = build_mixer(variant).float()
    kernel = mixer.kernel or ""
    monkeypatch.setattr(kernels[kernel], "blocks_for", lambda kernel, q_BHTW: BlockSizes(held=16, walked=16))
    inputs = [x.bfloat16().requires_grad_() for x in draw_inputs(mixer, 32, 32, batch=1)]
    shape = AttentionShape(batch=1, heads=4, groups=mixer.groups, out=mixer.output_heads, length=32, width=32)
    saved: dict[int, int] = {}

    def pack(x: torch.Tensor) -> torch.Tensor:
        saved[x.untyped_storage().data_ptr()] = x.numel() * x.element_size()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x), _Products() as forward:
        out = mixer(*inputs, plain(32))
    with _Products() as backward:
        out.sum().backward()
    bias = sum(value.numel() * 4 for value in mixer.parameters()) and 4 * 4
    assert sum(saved.values()) == count_kept_bytes(COSTS[kernel], shape) + bias
    assert (forward.count, backward.count) == operations(COSTS[kernel], shape, block=16)


def test_a_model_trains_through_a_kernel(kernels: dict[str, ModuleType]) -> None:
    """Rotated queries of one layout and values of another, under autocast, against explicit weights."""
    spec = ModelSpec.from_dict(overlay("selective_qknorm", layers=1))
    tokens_BT = torch.randint(0, 97, (2, 19), generator=torch.Generator().manual_seed(7)).to(DEVICE)
    losses, gradients = {}, {}
    for way in ("auto", "reference"):
        model = create(spec, init_seed=5, device=DEVICE)
        for block in model.blocks:
            block.attention.mixer.attention = way
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            logits_BTV = model(tokens_BT)
        losses[way] = logits_BTV.square().mean()
        losses[way].backward()
        gradients[way] = torch.cat([value.grad.flatten() for value in model.parameters()])
    torch.testing.assert_close(losses["auto"], losses["reference"], rtol=1e-2, atol=0)
    apart = (gradients["auto"] - gradients["reference"]).norm() / gradients["reference"].norm()
    assert 0 < apart < 2e-2


@pytest.mark.slow
@interpreter_only
def test_a_compiler_takes_them_for_a_gpu(kernels: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the interpreter does not see: types that meet, of numbers that a launch and torch.compile give, and shared
    memory of an A100, an H100 and of smaller ones."""
    monkeypatch.delenv("TRITON_INTERPRET")
    command = [sys.executable, "-m", "benchmarks.kernel_compile_check", "--head-width", "64"]
    command += ["--gpu-capability", "80", "90", "--scalar-types", "fp32", "fp64"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), *sys.path])}
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert process.returncode == 0, process.stderr
    rows = [json.loads(line) for line in process.stdout.splitlines()]
    assert {(row["capability"], row["numbers"], row["kernel"], row["pass"]) for row in rows} == {
        *itertools.product((80, 90), ("fp32", "fp64"), KERNELS, ("forward", "queries", "keys"))
    }
    for row in rows:
        allowed = 64 if (row["capability"], row["kernel"]) == (80, "selective") else 0
        assert row["shared"] < 99 * 1024 and row["spilled"] <= allowed and row["doubles"] == 0, row

"""Builds mixers as the studies have them, and calls them: what sections compare and time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest.mock import patch

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.gpu_check import base_scale_specs
from plumbline.model import kernel_choice
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.decoder import create
from plumbline.model.kernels import selection
from plumbline.model.mixers._base import Mixer, kernel_type
from plumbline.specs.spec import ModelSpec
from plumbline.specs.yaml_files import ROOT, load_study

#: Beyond this a path in bfloat16, which has eight bits, is not its reference; a missing term is off by far more.
TOLERANCE = 2e-2
#: The same for gradients of parameters, sums over all positions and heads that may cancel to a twentieth.
PARAMETER_TOLERANCE = 0.2
#: Back ends of torch's fused attention.
TORCH_BACK_ENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def slots() -> dict[str, Mapping[str, Any]]:
    """Every mixer that a study's YAML chooses, methods and variants, as its slot is written; by name and options."""
    mixers: dict[str, Mapping[str, Any]] = {}
    for folder in sorted((ROOT / "studies").glob("*/study.yaml")):
        for entry in load_study(folder.parent.name, ROOT).get("methods", {}).values():
            for each in (entry, *entry.get("variants", {}).values()):
                slot = each.get("model", {}).get("mixer", {"name": "softmax"})
                mixers.setdefault(label(slot), slot)
    return dict(sorted(mixers.items()))


def label(slot: Mapping[str, Any]) -> str:
    """A mixer's name with its options."""
    return " ".join([slot["name"], *(f"{key}={value}" for key, value in slot.items() if key != "name")])


def back_ends(device: str) -> list[str]:
    """What can compute causal softmax attention on a device: torch's flash and cuDNN's, and packages that are there."""
    return ["flash"] if device == "cpu" else ["flash", "cudnn", *selection.find_flash_packages()]


@contextlib.contextmanager
def held_to(back_end: str | None) -> Iterator[None]:
    """Have softmax attention computed by this back end alone; None leaves the choice as it is."""
    if back_end is None:
        yield
    elif back_end in TORCH_BACK_ENDS:
        with patch.object(selection, "FLASH_INSTALLED", []), sdpa_kernel(TORCH_BACK_ENDS[back_end]):
            yield
    else:
        with patch.object(selection, "FLASH_INSTALLED", [back_end]):
            yield


def build_mixer(slot: Mapping[str, Any], width: int, *, heads: int, groups: int, context: int = 1024) -> Mixer:
    """A mixer on the CPU, from a decoder of one layer."""
    spec = base_scale_specs.runs("smoke")[base_scale_specs.BASELINE].model.to_dict()
    sizes = {"layers": 1, "width": heads * width, "heads": heads, "key_value_heads": groups, "head_width": width}
    sizes |= {"ffn_width": 8, "vocabulary": 8, "context": context}
    return create(ModelSpec.from_dict(spec | sizes | {"mixer": slot}), init_seed=3).blocks[0].attention.mixer


def draw_inputs(mixer: Mixer, heads: int, width: int, length: int, batch: int, device: str) -> list[torch.Tensor]:
    """Random queries, keys and values in bfloat16, as projections leave them: the axis of heads is not the outer one.
    Queries are small: where weights are all but one-hot, the eight bits of a score are too few for its gradient."""
    draw = torch.Generator(device).manual_seed(11)
    sizes = [(batch, length, count, width) for count in (heads, mixer.groups, mixer.groups)]
    q_BTHW, k_BTGW, v_BTGW = (torch.randn(size, generator=draw, device=device) for size in sizes)
    return [x.bfloat16().transpose(1, 2) for x in (q_BTHW / 4, k_BTGW, v_BTGW)]


def causal(length: int, device: str) -> AttentionMask:
    """The mask of training: one sequence without padding."""
    return AttentionMask.for_call(torch.zeros(1, length, dtype=torch.long, device=device), None, None)


def find_path(mixer: Mixer, q_BHTW: torch.Tensor, mask: AttentionMask) -> str:
    """What the call goes through: of softmax attention torch's fused kernel, cuDNN's or a package's."""
    kernel = mixer.kernel_for_call(q_BHTW, mask)
    if kernel != selection.SDPA:
        return kernel
    _, heads, length, width = q_BHTW.shape
    sizes = {"heads": heads, "groups": mixer.groups, "width": width, "context": length}
    return kernel_choice.choose_fused(q_BHTW.device.type, kernel_type(q_BHTW), **sizes)


def draw_gradient(out: torch.Tensor) -> torch.Tensor:
    """A gradient for this output, in part along it: of a random one alone, the gradient of a number that scales all
    heads would be a sum that cancels. Numbers that bfloat16 has, so that they are the same in every type."""
    draw = torch.Generator(out.device).manual_seed(1)
    along = 3 * out.detach().double() / out.detach().double().std()
    return (along + torch.randn(out.shape, generator=draw, device=out.device)).bfloat16()


def call_both_ways(
    function: Callable[..., torch.Tensor],
    inputs: list[torch.Tensor],
    mixer: Mixer,
    mask: AttentionMask,
    do: torch.Tensor,
) -> list[torch.Tensor]:
    """What a mixer's function gives, and the gradients of inputs and parameters for one of that."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    out = function(*leaves, mask)
    return [out.detach(), *torch.autograd.grad(out, [*leaves, *mixer.parameters()], do.to(out.dtype))]


def compare(outputs: list[torch.Tensor], expected: list[torch.Tensor]) -> dict[str, Any]:
    """The largest norm of a difference over the norm of what was expected, of the output and the inputs' gradients and
    of parameters' gradients, and whether both are rounding."""
    pairs = zip(outputs, expected, strict=True)
    errors = [((x.double() - y.double()).norm() / y.double().norm().clamp(min=1e-12)).item() for x, y in pairs]
    worst, of_parameters = (max(part, default=0.0, key=lambda x: (x != x, x)) for part in (errors[:4], errors[4:]))
    row: dict[str, Any] = {"worst error": worst, "of parameters": of_parameters}
    equal = worst <= TOLERANCE and of_parameters <= PARAMETER_TOLERANCE  # False of what is not a number
    return {name: value if value == value else "nan" for name, value in row.items()} | {"equal": equal}

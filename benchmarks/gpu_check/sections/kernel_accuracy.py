"""Every mixer and variant against its own reference in float64: outputs and gradients, grouped heads.

In the type and the head width of the paper. Nothing is asked of what is inside: `Mixer.forward` on the device, in the
type, is compared with `Mixer.reference` of the same numbers in double precision. An error is a norm of the difference
over the norm of the reference's.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.results_page import table

if TYPE_CHECKING:
    import torch

    from plumbline.model.attention_mask import AttentionMask
    from plumbline.model.mixers._base import Mixer

TITLE = "Mixers against float64"
#: So many processes compile rows ahead.
AHEAD = 16

HEADS, GROUPS, BATCH = 8, 2, 2
#: Beyond these a path is not its reference. Products of float32 are in float32 (no TF32); bfloat16 has eight bits, in
#: weights and in each output. A wrong mask or a missing term is off by far more.
TOLERANCE = {"float32": 1e-4, "bfloat16": 2e-2}


def mixers() -> dict[str, dict[str, Any]]:
    """Every mixer that a study's YAML chooses, methods and variants, as its slot is written; by name and options."""
    from plumbline.specs.yaml_files import ROOT, load_study

    slots: dict[str, dict[str, Any]] = {}
    for folder in sorted((ROOT / "studies").glob("*/study.yaml")):
        definition = load_study(folder.parent.name, ROOT)
        for entry in definition.get("methods", {}).values():
            own = entry.get("model", {}).get("mixer", {"name": "softmax"})
            others = (variant.get("model", {}).get("mixer") for variant in entry.get("variants", {}).values())
            for chosen in (own, *(other for other in others if other)):
                slots.setdefault(label(chosen), chosen)
    return dict(sorted(slots.items()))


def label(chosen: dict[str, Any]) -> str:
    """A mixer's name with its options."""
    options = (f"{key}={value}" for key, value in chosen.items() if key != "name")
    return " ".join([chosen["name"], *options])


def build_mixer(
    chosen: dict[str, Any], width: int, *, heads: int = HEADS, groups: int = GROUPS, context: int = 1024
) -> Mixer:
    """A mixer on the CPU, from a decoder of one layer."""
    from plumbline.model.decoder import create
    from plumbline.specs.spec import ModelSpec

    spec = base_scale_specs.runs("smoke")[base_scale_specs.BASELINE].model.to_dict()
    sizes = {"layers": 1, "width": heads * width, "heads": heads, "key_value_heads": groups, "head_width": width}
    sizes |= {"ffn_width": 8, "vocabulary": 8, "context": context}
    model = create(ModelSpec.from_dict(spec | sizes | {"mixer": chosen}), init_seed=3)
    return model.blocks[0].attention.mixer


def path(mixer: Mixer, q_BHTW: torch.Tensor, attention_mask: AttentionMask) -> str:
    """What the call goes through: torch's fused attention, cuDNN's or flash-attn's, where it folds into softmax."""
    from plumbline.model import kernel_choice
    from plumbline.model.kernels.selection import SDPA
    from plumbline.model.mixers._base import kernel_type

    kernel = mixer.kernel_for_call(q_BHTW, attention_mask)
    if kernel != SDPA:
        return kernel
    _, heads, length, width = q_BHTW.shape
    sizes = {"heads": heads, "groups": mixer.groups, "width": width, "context": length}
    return kernel_choice.choose_fused(q_BHTW.device.type, kernel_type(q_BHTW), **sizes)


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """A row for each mixer."""
    dtype, width, length = setting.size.case
    return {
        f"{name}, {dtype}, width {width}, T {length}": functools.partial(
            _compare, chosen, dtype, width, length, setting.device
        )
        for name, chosen in mixers().items()
    }


def _compare(chosen: dict[str, Any], dtype: str, width: int, length: int, device: str) -> dict[str, Any]:
    import torch

    from plumbline.model.attention_mask import AttentionMask
    from plumbline.model.numerics import numerics

    numerics(torch.device(device))
    exact = build_mixer(chosen, width).to(device).double()
    draw = torch.Generator(device).manual_seed(11)
    for value in exact.parameters():
        value.data += 0.5 * torch.randn(value.shape, generator=draw, device=device, dtype=value.dtype)
    single = copy.deepcopy(exact).float()
    sizes = [(BATCH, length, heads, width) for heads in (HEADS, exact.groups, exact.groups)]
    # As projections leave them: the axis of heads is not the outer one.
    tensors = [torch.randn(shape, generator=draw, device=device) for shape in sizes]
    inputs = [x.to(getattr(torch, dtype)).transpose(1, 2) for x in tensors]
    attention_mask = AttentionMask.for_call(torch.zeros(1, length, dtype=torch.long, device=device), None, None)
    way = path(single, inputs[0], attention_mask)  # before the call: torch's dispatcher is told
    expected = results(exact.reference, [x.double() for x in inputs], exact, attention_mask)
    outputs = results(single, inputs, single, attention_mask)
    names = ["output", "queries", "keys", "values", *(name for name, _ in exact.named_parameters())]
    errors = {
        name: ((output.double() - reference).norm() / reference.norm().clamp(min=1e-12)).item()
        for name, output, reference in zip(names, outputs, expected, strict=True)
    }
    # Not `max`, which may pass over what is not a number.
    equal = all(error <= TOLERANCE[dtype] for error in errors.values())
    return {
        "mixer": label(chosen),
        "dtype": dtype,
        "width": width,
        "length": length,
        "path": way,
        "errors": {name: error if error == error else "nan" for name, error in errors.items()},
        "equal": equal,
    }


def results(
    call: Callable[..., torch.Tensor], inputs: list[torch.Tensor], mixer: Mixer, attention_mask: AttentionMask
) -> list[torch.Tensor]:
    """What a mixer's `call` gives, and the gradients of inputs and parameters for one random gradient of that."""
    import torch

    leaves = [x.detach().requires_grad_() for x in inputs]
    out = call(*leaves, attention_mask)
    draw = torch.Generator(out.device).manual_seed(1)
    # Numbers that bfloat16 has, so that they are the same in every type.
    do = torch.randn(out.shape, generator=draw, device=out.device).bfloat16().to(out.dtype)
    return [out.detach(), *torch.autograd.grad(out, [*leaves, *mixer.parameters()], do)]


def page(state: MeasuredRows) -> list[str]:
    """A line a mixer: the worst error of output and gradients."""
    lines = []
    for row in state.rows("kernel_accuracy").values():
        errors = [(error, name) for name, error in row["errors"].items()]
        worst, where = max(errors, key=lambda pair: float("inf") if pair[0] == "nan" else pair[0])
        lines.append((row["mixer"], row["dtype"], row["path"], worst, where, row["equal"]))
    if not lines:
        return []
    bounds = ", ".join(f"{bound:g} in {dtype}" for dtype, bound in TOLERANCE.items())
    head = f"Norm of the difference over the norm, the worst of output and gradients; equal: at most {bounds}."
    return [head, "", *table(("mixer", "type", "path", "worst error", "of", "equal"), lines)]

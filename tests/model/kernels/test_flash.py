"""flash-attn and flash-attn 3 in the place of torch's fused attention: when one is chosen, what it is asked, and its
numbers on a GPU.

Without a device a stand-in of the packages' functions checks the call as they document it: (B, T, H, W), half
precision, grouped heads, `softmax_scale`, a causal mask aligned to the last key.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import create
from plumbline.model.kernel_choice import choose
from plumbline.model.kernels import selection
from plumbline.model.kernels.selection import FLASH_ATTN, FLASH_ATTN_3, FLASH_PACKAGES, SDPA, choose_fused_kernel
from plumbline.model.mixers import softmax
from plumbline.model.numerics import set_numerics
from plumbline.specs.spec import ModelSpec
from tests.model.attention_cases import inputs, mixer, padded, plain
from tests.model.transfer_methods import ALL, overlay

HALF = (torch.bfloat16, torch.float16)


@pytest.fixture(params=FLASH_PACKAGES)
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a stand-in for a package's function is given; the table takes the CPU for a GPU."""
    records: list[dict[str, Any]] = []

    def flash_attn_func(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        softmax_scale: float | None = None,
        causal: bool = False,
        deterministic: bool = False,
    ) -> torch.Tensor:
        """Plain attention with the arguments that the package's function has, of those that are used here."""
        shapes = (q.shape, k.shape, v.shape)
        records.append({"shapes": shapes, "causal": causal, "strides": q.stride(), "deterministic": deterministic})
        assert {x.dtype for x in (q, k, v)} < {*HALF} and q.shape[2] % k.shape[2] == 0 and k.shape == v.shape
        assert softmax_scale is not None
        each = q.shape[2] // k.shape[2]
        k, v = (x.repeat_interleave(each, dim=2) for x in (k, v))
        scores = torch.einsum("bqhw,bkhw->bhqk", q.double(), k.double()) * softmax_scale
        if causal:
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1 + k.shape[1] - q.shape[1])
            scores = scores.masked_fill(hidden, float("-inf"))
        output = torch.einsum("bhqk,bkhw->bqhw", scores.softmax(-1), v.double()).to(q.dtype)
        return (output, scores.logsumexp(-1)) if request.param == FLASH_ATTN_3 else output

    install(monkeypatch, {request.param: flash_attn_func})
    here = selection.KernelSupport(types=frozenset(HALF), plain=True, widest=256, width_step=8)
    monkeypatch.setattr(selection, "FLASH_ATTN_SUPPORT", here)
    return records


def install(monkeypatch: pytest.MonkeyPatch, functions: dict[str, Any], *, capability: int = 9) -> None:
    """Have packages of flash-attention be there, in their order, on a device of a compute capability."""
    for name, function in functions.items():
        module = ModuleType(FLASH_PACKAGES[name])
        module.flash_attn_func = function
        monkeypatch.setitem(sys.modules, FLASH_PACKAGES[name], module)
    monkeypatch.setattr(selection, "FLASH_INSTALLED", [name for name in FLASH_PACKAGES if name in functions])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (capability, 0))


def test_it_is_chosen_by_its_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "FLASH_INSTALLED", [FLASH_ATTN])
    for dtype in HALF:
        for width in (8, 64, 96, 256):
            assert choose_fused_kernel("cuda", dtype, width) == FLASH_ATTN
        assert choose_fused_kernel("cuda", dtype, 264) == choose_fused_kernel("cuda", dtype, 60) == SDPA, (
            "heads that it does not take"
        )
        assert choose_fused_kernel("cpu", dtype, 64) == choose_fused_kernel("meta", dtype, 64) == SDPA
        assert choose_fused_kernel("cuda", dtype, 64, plain=False) == SDPA, "padding and caches"
    assert choose_fused_kernel("cuda", torch.float32, 64) == choose_fused_kernel("cuda", torch.float64, 64) == SDPA
    monkeypatch.setattr(selection, "FLASH_INSTALLED", [])
    assert choose_fused_kernel("cuda", torch.bfloat16, 64) == SDPA


@pytest.mark.parametrize(
    ("packages", "capability", "kernel"),
    [
        ([FLASH_ATTN], 9, FLASH_ATTN), ([FLASH_ATTN_3], 9, FLASH_ATTN_3), ([FLASH_ATTN, FLASH_ATTN_3], 9, FLASH_ATTN_3),
        ([FLASH_ATTN, FLASH_ATTN_3], 8, FLASH_ATTN), ([FLASH_ATTN_3], 10, SDPA),
    ],
)  # fmt: skip
def test_a_manifest_says_so_with_its_version(
    packages: list[str], capability: int, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third on a Hopper alone."""
    install(monkeypatch, dict.fromkeys(packages, len), capability=capability)
    versions = {FLASH_ATTN: "2.8.3", FLASH_ATTN_3: "3.0.0"}
    monkeypatch.setattr(selection.metadata, "version", lambda name: versions[name])
    monkeypatch.setattr(torch.backends.cudnn, "is_available", lambda: False)
    model = create(ModelSpec.from_dict(overlay("baseline")), init_seed=0)
    others = {"asked": "auto", "triton": None, "cudnn": None, "notice": None}
    choice = choose(model, "auto", "cuda", torch.bfloat16)
    assert choice == others | {"kernel": kernel, "flash_attn": versions.get(kernel)}
    assert choose(model, "auto", "cuda", torch.float32)["kernel"] == SDPA
    assert choose(model, "reference", "cuda", torch.bfloat16)["kernel"] == selection.CHUNKED


@pytest.mark.parametrize(
    ("code", "message"),
    [("raise ImportError('undefined symbol: x')", "undefined symbol: x"), ("", "flash_attn_func")],
    ids=["built for another torch", "another package of the name"],
)
def test_one_that_cannot_be_used(code: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "flash_attn").mkdir()
    (tmp_path / "flash_attn" / "__init__.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(selection, "FLASH_INSTALLED", [FLASH_ATTN])
    model = create(ModelSpec.from_dict(overlay("baseline")), init_seed=0)
    with pytest.raises(PlumblineError, match=f"{message}.*pip uninstall flash-attn"):
        choose(model, "auto", "cuda", torch.bfloat16)
    sys.modules.pop("flash_attn", None)


def test_a_folder_without_code_is_no_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "flash_attn" / "cute").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    assert not selection.is_installed("flash_attn") and selection.is_installed("torch")


FOLDED = {"softmax": {"name": "softmax"}} | {
    name: ALL[name]["mixer"] for name in ALL if "mixer" in ALL[name] and mixer(**ALL[name]["mixer"]).kernel == SDPA
}


@pytest.mark.parametrize("name", FOLDED)
def test_its_call_gives_what_torchs_gives(name: str, calls: list[dict[str, Any]]) -> None:
    """Every mixer that folds into softmax: outputs, and gradients through the stand-in."""
    built = mixer(**FOLDED[name]).bfloat16()
    tensors = [x.detach().bfloat16().requires_grad_() for x in inputs(9, groups=built.groups)]
    out = built(*tensors, plain(9))
    (call,) = calls
    batch, length, heads, width = call["shapes"][0]
    assert (batch, length) == (2, 9) and call["causal"] and heads >= 8 and width % 8 == 0
    assert call["shapes"][1][2] == built.groups or name.endswith("official")
    results = (out, *torch.autograd.grad(out.float().sum(), tensors))
    selection.FLASH_INSTALLED = []  # monkeypatched by the fixture, which puts it back
    expected = built(*tensors, plain(9))
    assert len(calls) == 1
    for ours, other in zip(results, (expected, *torch.autograd.grad(expected.float().sum(), tensors)), strict=True):
        assert ours.dtype == torch.bfloat16 and ours.shape == other.shape
        torch.testing.assert_close(ours, other, rtol=3e-2, atol=3e-2 * other.abs().max().item())


def test_the_scale_is_the_mixers(calls: list[dict[str, Any]]) -> None:
    """With its own scale, not one over the root of the width."""
    q, k, v = (x.detach().bfloat16() for x in inputs(5))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.07, enable_gqa=True)
    output = softmax.fused_softmax(q, k, v, plain(5), 0.07)
    assert len(calls) == 1
    torch.testing.assert_close(output, expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(("device", "asked"), [("cpu", True), ("cuda", False)])
def test_it_is_deterministic_where_a_run_asks_for_that(device: str, asked: bool, calls: list[dict[str, Any]]) -> None:
    """By what `set_numerics` sets for a device, and by torch's own switch."""
    q, k, v = (x.detach().bfloat16() for x in inputs(5))
    before = torch.get_deterministic_debug_mode()
    try:
        set_numerics(torch.device(device))
        softmax.fused_softmax(q, k, v, plain(5), 0.3)
        torch.use_deterministic_algorithms(not asked, warn_only=True)
        softmax.fused_softmax(q, k, v, plain(5), 0.3)
    finally:
        torch.set_deterministic_debug_mode(before)
    assert [call["deterministic"] for call in calls] == [asked, not asked]


def test_mixed_types_reach_it_in_autocasts_type(calls: list[dict[str, Any]]) -> None:
    """As under training: norms leave queries and keys in float32, values are bfloat16."""
    q, k, v = (x.detach() for x in inputs(5))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = softmax.fused_softmax(q.float(), k.float(), v.bfloat16(), plain(5), 0.3)
    assert len(calls) == 1 and out.dtype == torch.bfloat16
    softmax.fused_softmax(q.float(), k.float(), v.float(), plain(5), 0.3)
    softmax.fused_softmax(q.bfloat16(), k.bfloat16(), v.bfloat16(), padded(5, left=1, right=1), 0.3)
    assert len(calls) == 1, "float32, and a mask of padding, are torch's"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.skipif(importlib.util.find_spec("flash_attn") is None, reason="flash-attn is not installed")
@pytest.mark.parametrize("width", [64, 96, 128])
def test_on_a_device_it_is_attention_in_double(width: int) -> None:
    """The package itself: 8 heads in 2 groups, a length that no block divides, against float64."""
    draw = torch.Generator("cuda").manual_seed(5)
    shapes = [(2, 301, heads, width) for heads in (8, 2, 2)]
    draws = [torch.randn(shape, generator=draw, device="cuda").bfloat16().transpose(1, 2) for shape in shapes]
    leaves = [x.requires_grad_() for x in draws]
    assert choose_fused_kernel("cuda", torch.bfloat16, width) == FLASH_ATTN
    out = softmax.fused_softmax(*leaves, plain(301), width**-0.5)
    do = torch.randn(out.shape, generator=draw, device="cuda").to(out)
    results = (out, *torch.autograd.grad(out, leaves, do))
    exact = [x.detach().double().requires_grad_() for x in leaves]
    expected = torch.nn.functional.scaled_dot_product_attention(*exact, is_causal=True, enable_gqa=True)
    for ours, other in zip(results, (expected, *torch.autograd.grad(expected, exact, do.double())), strict=True):
        assert ((ours.double() - other).norm() / other.norm()).item() < 2e-2

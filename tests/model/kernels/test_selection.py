"""Which way attention goes: by the table, by what is asked for, and what is said of it. None of it needs Triton."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
import torch

from plumbline.model.decoder import create
from plumbline.model.kernel_choice import choose
from plumbline.model.kernels import selection
from plumbline.model.kernels.selection import CHUNKED, SDPA, TABLE, choose_kernel, describe_missing_package
from plumbline.model.mixers import softmax
from plumbline.specs import code_hash
from plumbline.specs.spec import ModelSpec
from tests.model.attention_cases import inputs, mixer, padded, plain
from tests.model.transfer_methods import ALL, overlay
from tests.model_specs import small

MIXERS = {name: ALL[name]["mixer"] for name in ALL if "mixer" in ALL[name]}


@pytest.fixture(autouse=True)
def _with_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "TRITON_INSTALLED", True)
    monkeypatch.setattr(selection, "FLASH_INSTALLED", [])


def test_the_table_by_device_and_type() -> None:
    kernels = sorted(set(TABLE) - {SDPA})
    for kernel in kernels:
        for dtype in (torch.bfloat16, torch.float32):
            assert choose_kernel(kernel, "cuda", dtype) == kernel
            assert choose_kernel(kernel, "cpu", dtype) == choose_kernel(kernel, "meta", dtype) == CHUNKED
            assert choose_kernel(kernel, "cuda", dtype, plain=False) == CHUNKED, "padding and caches"
        assert choose_kernel(kernel, "cuda", torch.float64) == choose_kernel(kernel, "cuda", torch.float16) == CHUNKED
    assert {choose_kernel(SDPA, device, torch.float64, plain=False) for device in ("cpu", "cuda", "meta")} == {SDPA}
    for kernel in (*TABLE, None):
        assert choose_kernel(kernel, "cuda", torch.bfloat16, mode="reference") == CHUNKED


@pytest.mark.parametrize("name", MIXERS)
def test_which_mixers_have_a_kernel(name: str) -> None:
    """All but the sum over queries, and Gemma's cap, which no run of a paper has."""
    built = mixer(**MIXERS[name])
    without = name == "tanh_cap" or MIXERS[name] == {"name": "selective", "variant": "original"}
    assert (built.kernel in TABLE) != without
    assert built.kernel_for_call(torch.zeros(1, 8, 9, 8), plain(9)) == (SDPA if built.kernel == SDPA else CHUNKED), (
        "on a CPU"
    )


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert describe_missing_package("softpick", "cuda", torch.bfloat16) is None
    monkeypatch.setattr(selection, "TRITON_INSTALLED", False)
    assert choose_kernel("softpick", "cuda", torch.bfloat16) == CHUNKED
    assert "Triton is not installed" in (describe_missing_package("softpick", "cuda", torch.bfloat16) or "")
    for kernel, device, mode in (
        ("softpick", "cpu", "auto"),
        ("softpick", "cuda", "reference"),
        (SDPA, "cuda", "auto"),
    ):
        assert describe_missing_package(kernel, device, torch.bfloat16, mode=mode) is None
    model = create(small(mixer={"name": "softpick"}), init_seed=0)
    choice = choose(model, "auto", "cuda", torch.bfloat16)
    assert (choice["asked"], choice["kernel"]) == ("auto", CHUNKED) and "softpick" in choice["notice"]


@pytest.mark.parametrize("name", ["baseline", "ssmax", "diff_attn", "diff_attn.official", "softpick"])
def test_the_reference_can_be_forced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same model, with no call of torch's fused attention."""
    model = create(ModelSpec.from_dict(overlay(name)), init_seed=5)
    tokens_BT = torch.randint(0, 97, (2, 12), generator=torch.Generator().manual_seed(7))
    kernel = model.blocks[0].attention.mixer.kernel
    monkeypatch.setattr(selection.metadata, "version", lambda name: f"{name} 3.7.1")
    version = None if kernel == SDPA else "triton 3.7.1"
    choice = {"asked": "auto", "kernel": kernel, "triton": version, "flash_attn": None, "cudnn": None, "notice": None}
    assert choose(model, "auto", "cuda", torch.bfloat16) == choice
    expected = model(tokens_BT)
    monkeypatch.setattr(softmax, "scaled_dot_product_attention", None)
    assert choose(model, "reference", "cuda", torch.bfloat16)["kernel"] == CHUNKED
    torch.testing.assert_close(model(tokens_BT), expected, rtol=1e-4, atol=1e-5)


FOLDED = [name for name in MIXERS if mixer(**MIXERS[name]).kernel == SDPA]


@pytest.mark.parametrize("name", ["baseline", *FOLDED])
def test_what_folds_into_softmax_asks_for_a_fused_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch takes its flash kernel only for a causal call without a mask, of one type and width (of a multiple of 8 and
    at most 256), its values as many as its keys; grouped keys go in as they are."""
    calls: list[dict[str, Any]] = []
    fused = softmax.scaled_dot_product_attention

    def note_call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
        calls.append({"shapes": (q.shape, k.shape, v.shape), "types": {x.dtype for x in (q, k, v)}} | options)
        return fused(q, k, v, **options)

    monkeypatch.setattr(softmax, "scaled_dot_product_attention", note_call)
    built = mixer(**MIXERS.get(name, {"name": "softmax"})).bfloat16()
    arguments = [x.detach().bfloat16() for x in inputs(9, groups=built.groups)]
    built(*arguments, plain(9))
    (call,) = calls
    (q, k, v), official = call["shapes"], MIXERS.get(name, {}).get("variant") == "official"
    assert call["types"] == {torch.bfloat16} and call["is_causal"] and call["attn_mask"] is None
    assert q[-1] == k[-1] == v[-1] and q[-1] % 8 == 0 and q[-1] <= 256 and k[1] == v[1]
    assert (k[1] < q[1] and call["enable_gqa"]) or official
    built(*arguments, padded(9, left=2, right=3))
    assert calls[1]["attn_mask"] is not None and not calls[1]["is_causal"]


def list_imports(tree: ast.AST) -> set[str]:
    """Modules that are imported anywhere below a node."""
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def test_kernels_know_no_model_and_a_cpu_never_imports_triton() -> None:
    """Mixers import a kernel inside the call that takes it."""
    for path in sorted(code_hash.PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if path.is_relative_to(code_hash.PACKAGE / "model" / "kernels"):
            ours = {name for name in list_imports(tree) if name.startswith("plumbline")}
            assert all(re.match(r"plumbline(\.core\b|\.model\.kernels\b|$)", name) for name in ours), path
            continue
        at_once = set().union(
            *(list_imports(node) for node in tree.body if not isinstance(node, (ast.ClassDef, ast.FunctionDef)))
        )
        assert not {name for name in at_once if name.partition(".")[0] == "triton"}, path
        kernels = {name for name in at_once if name.startswith("plumbline.model.kernels")}
        assert kernels <= {"plumbline.model.kernels.selection"}, path

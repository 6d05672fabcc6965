"""cuDNN's attention is chosen where a device has it, the manifest says so, and nothing changes where it has not."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch
from torch.nn.attention import SDPBackend

from plumbline.model import cudnn_attention
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.cudnn_attention import CUDNN
from plumbline.model.decoder import create
from plumbline.model.kernel_choice import choose
from plumbline.model.kernels import selection
from plumbline.model.kernels.selection import FLASH_ATTN, SDPA
from plumbline.specs.spec import ModelSpec
from tests.model.attention_cases import mixer
from tests.model.transfer_methods import overlay


@pytest.fixture(autouse=True)
def _usual_order(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(selection, "FLASH_INSTALLED", [])
    yield
    cudnn_attention.order_back_ends(cudnn_first=False)


def first_back_end() -> int:
    return torch._C._get_sdp_priority_order()[0]  # noqa: SLF001


def stand_in(monkeypatch: pytest.MonkeyPatch, *, capability: tuple[int, int] = (9, 0), takes: bool = True) -> None:
    """A device of that capability, whose cuDNN takes a call or not; what it is asked lies on the processor."""
    monkeypatch.setattr(torch.backends.cudnn, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 91500)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.cuda, "can_use_cudnn_attention", lambda call: takes)
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *shape, device, **options: empty(*shape, **options))


def test_it_is_chosen_and_recorded_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    model = create(ModelSpec.from_dict(overlay("baseline")), init_seed=0)
    stand_in(monkeypatch)
    choice = choose(model, "auto", "cuda", torch.bfloat16)
    assert (choice["kernel"], choice["cudnn"], choice["flash_attn"]) == (CUDNN, "91500", None)
    assert first_back_end() == int(SDPBackend.CUDNN_ATTENTION)
    # The next run of this process has another type: torch's own order is back.
    assert choose(model, "auto", "cuda", torch.float32)["kernel"] == SDPA
    assert torch._C._get_sdp_priority_order() == cudnn_attention._USUAL  # noqa: SLF001


@pytest.mark.parametrize("here", [{"capability": (8, 0)}, {"takes": False}])
def test_it_is_refused_where_it_is_not_there(here: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    model = create(ModelSpec.from_dict(overlay("baseline")), init_seed=0)
    before = first_back_end()
    assert choose(model, "auto", "cpu", torch.bfloat16)["cudnn"] is None
    if not torch.backends.cudnn.is_available():
        assert choose(model, "auto", "cuda", torch.bfloat16)["kernel"] == SDPA, "a build without cuDNN"
    stand_in(monkeypatch, **here)
    choice = choose(model, "auto", "cuda", torch.bfloat16)
    assert (choice["kernel"], choice["cudnn"]) == (SDPA, None) and first_back_end() == before
    assert choose(model, "reference", "cuda", torch.bfloat16)["kernel"] == selection.CHUNKED


def test_flash_attn_comes_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody has installed it for that."""
    model = create(ModelSpec.from_dict(overlay("baseline")), init_seed=0)
    stand_in(monkeypatch)
    monkeypatch.setattr(selection, "FLASH_INSTALLED", [FLASH_ATTN])
    monkeypatch.setattr(selection, "_flash_attn_version", lambda package: "2.8.3")
    choice = choose(model, "auto", "cuda", torch.bfloat16)
    assert (choice["kernel"], choice["flash_attn"], choice["cudnn"]) == (FLASH_ATTN, "2.8.3", None)


def test_the_question_is_the_runs_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its heads, groups, width and length, causal, with gradients."""
    stand_in(monkeypatch)
    questions: list[SimpleNamespace] = []
    monkeypatch.setattr(torch.backends.cuda, "SDPAParams", lambda *call: SimpleNamespace(call=call))
    monkeypatch.setattr(torch.backends.cuda, "can_use_cudnn_attention", lambda call: questions.append(call) or True)
    assert cudnn_attention.takes_call(torch.bfloat16, heads=8, groups=2, width=64, context=128)
    queries, keys, values, mask, dropout, causal, grouped = questions[0].call
    assert queries.shape == (1, 8, 128, 64) and keys.shape == values.shape == (1, 2, 128, 64)
    assert queries.requires_grad and (mask, dropout, causal, grouped) == (None, 0.0, True, True)
    assert not cudnn_attention.takes_call(torch.float32, heads=8, groups=2, width=64, context=128)


@pytest.mark.parametrize("cudnn_first", [True, False])
def test_a_call_is_its_reference_in_either_order(cudnn_first: bool) -> None:
    """On this device: where there is no such kernel the dispatcher takes its next."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    cudnn_attention.order_back_ends(cudnn_first=cudnn_first)
    built = mixer(name="softmax").to(device)
    draw = torch.Generator(device).manual_seed(0)
    sizes = [(2, 9, heads, 8) for heads in (8, built.groups, built.groups)]
    tensors = [torch.randn(size, generator=draw, device=device).bfloat16().transpose(1, 2) for size in sizes]
    mask = AttentionMask.for_call(torch.zeros(1, 9, dtype=torch.long, device=device), None, None)
    ours = [x.detach().requires_grad_() for x in tensors]
    exact = [x.detach().double().requires_grad_() for x in tensors]
    out, expected = built(*ours, mask), built.reference(*exact, mask)
    torch.testing.assert_close(out.double(), expected, rtol=2e-2, atol=2e-2)
    gradients = zip(torch.autograd.grad(out.sum(), ours), torch.autograd.grad(expected.sum(), exact), strict=True)
    for gradient, reference in gradients:
        torch.testing.assert_close(gradient.double(), reference, rtol=4e-2, atol=4e-2)

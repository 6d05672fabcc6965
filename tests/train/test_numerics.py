"""How numbers are computed: what torch would guard against by itself is seen here instead, once, not in each step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.utils.deterministic

from plumbline.model.decoder import create
from plumbline.model.next_token_loss import ROWS
from plumbline.runtime.numerics import numerics
from plumbline.specs.spec import ModelSpec
from tests.golden.method_runs import tokens
from tests.model.transfer_methods import ALL, overlay


@pytest.fixture
def _as_in_training(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A CPU's numerics, without its settings of the allocator, which are the process's."""
    monkeypatch.setattr("plumbline.runtime.numerics.keep_memory", lambda: None)
    filled, mode = torch.utils.deterministic.fill_uninitialized_memory, torch.get_deterministic_debug_mode()
    numerics(torch.device("cpu"))
    yield
    torch.utils.deterministic.fill_uninitialized_memory = filled
    torch.set_deterministic_debug_mode(mode)


#: Five spans of queries where attention is made in spans, and two parts of the loss.
CONTEXT = 160


def loss_and_gradients(method: str) -> list[torch.Tensor]:
    """Of one batch."""
    spec = ModelSpec.from_dict(overlay(method) | {"context": CONTEXT})
    model = create(spec, init_seed=42)
    batch_BT = tokens(1, spec.vocabulary, CONTEXT)
    assert batch_BT[:, 1:].numel() > ROWS
    loss = model(batch_BT, loss=True)
    loss.backward()
    return [loss.detach(), *(value.grad for value in model.parameters() if value.grad is not None)]


@pytest.mark.usefixtures("_as_in_training")
def test_torch_would_fill_new_memory_with_nan():
    """That the next test could fail."""
    assert not torch.utils.deterministic.fill_uninitialized_memory
    torch.utils.deterministic.fill_uninitialized_memory = True
    assert torch.empty(3).isnan().all()


@pytest.mark.usefixtures("_as_in_training")
@pytest.mark.parametrize("method", ALL)
def test_no_step_reads_memory_that_nobody_wrote(method: str):
    unfilled = loss_and_gradients(method)
    torch.utils.deterministic.fill_uninitialized_memory = True
    filled = loss_and_gradients(method)
    assert len(unfilled) == len(filled) > 1
    assert all(value.isfinite().all() for value in filled)
    assert all(torch.equal(one, other) for one, other in zip(unfilled, filled, strict=True))

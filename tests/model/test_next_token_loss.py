"""The loss of the next tokens: the same as with all logits at once, in value and gradients, and in bounded memory."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy

from plumbline.model import next_token_loss as module
from plumbline.model.cpu_matmul import product
from plumbline.model.decoder import create
from plumbline.model.numerics import autocast
from plumbline.specs.spec import ModelSpec
from tests.golden.trainings import LATENT
from tests.model.transfer_methods import overlay

N, D, V = 77, 12, 50


def whole(hidden_ND, weight_VD, targets_N):
    return cross_entropy(hidden_ND @ weight_VD.T, targets_N, reduction="sum")


def gradients(loss, hidden_ND, weight_VD, targets_N):
    h, w = hidden_ND.clone().requires_grad_(), weight_VD.clone().requires_grad_()
    value = loss(h, w, targets_N)
    (3 * value).backward()
    return value.detach(), h.grad, w.grad


@pytest.fixture
def case():
    generator = torch.Generator().manual_seed(3)
    draw = (torch.randn(rows, D, dtype=torch.float64, generator=generator) for rows in (N, V))
    return *draw, torch.randint(V, (N,), generator=generator)


@pytest.mark.parametrize("rows", [1, 16, N, 1000])
def test_equal_to_all_logits_at_once(case, rows, monkeypatch):
    monkeypatch.setattr(module, "ROWS", rows)
    for gradient, expected in zip(gradients(module.next_token_loss, *case), gradients(whole, *case), strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_large_logits_overflow_nowhere(case, size):
    hidden_ND, weight_VD, targets_N = case
    inputs = ((size * hidden_ND).float(), weight_VD.float(), targets_N)
    for gradient, expected in zip(gradients(module.next_token_loss, *inputs), gradients(whole, *inputs), strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_no_number_is_seen(case, bad):
    hidden_ND, weight_VD, targets_N = case
    hidden_ND[40, 0] = bad
    assert not torch.isfinite(module.next_token_loss(hidden_ND, weight_VD, targets_N))


def test_only_what_is_wanted_is_made(case):
    """Held-out losses need no gradients, and frozen weights none of theirs."""
    hidden_ND, weight_VD, targets_N = case
    assert module.next_token_loss(hidden_ND, weight_VD, targets_N).grad_fn is None
    h = hidden_ND.clone().requires_grad_()
    module.next_token_loss(h, weight_VD, targets_N).backward()
    torch.testing.assert_close(h.grad, gradients(whole, *case)[1] / 3)


def test_held_out_tokens_make_no_gradient(monkeypatch):
    """A weight asks for its gradient wherever it is used; without a graph nobody would use what it is given."""
    calls = []
    monkeypatch.setattr(module, "product", lambda *args: calls.append(1) or product(*args))
    model = create(ModelSpec.from_dict(overlay("baseline")), 0)
    tokens_BT = torch.zeros(1, model.spec.context, dtype=torch.long)
    with torch.no_grad():
        held_out = model(tokens_BT, loss=True)
    assert len(calls) == 1 and not held_out.requires_grad
    assert torch.equal(model(tokens_BT, loss=True).detach(), held_out) and len(calls) == 3


def test_under_autocast_products_alone_are_narrow(case):
    hidden_ND, weight_VD, targets_N = (x.float() if x.is_floating_point() else x for x in case)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        grads = gradients(module.next_token_loss, hidden_ND, weight_VD, targets_N)
    for grad, expected in zip(grads, gradients(whole, hidden_ND, weight_VD, targets_N), strict=True):
        assert grad.dtype == torch.float32
        assert 0 < (grad - expected).abs().max() < 0.02 * expected.abs().max()


@pytest.mark.parametrize("tied", [True, False])
def test_of_a_decoder(tied):
    """All positions go through the model, and the last one predicts nothing."""
    spec = ModelSpec.from_dict(overlay("baseline", tied_embeddings=tied))
    model = create(spec, 0)
    tokens_BT = torch.randint(spec.vocabulary, (2, spec.context), generator=torch.Generator().manual_seed(1))
    expected = cross_entropy(model(tokens_BT[:, :-1]).flatten(0, 1), tokens_BT[:, 1:].flatten(), reduction="sum")
    torch.testing.assert_close(model(tokens_BT, loss=True), expected)


@pytest.mark.parametrize(
    ("precision", "inner"),
    [("float32", torch.float32), ("bfloat16", torch.bfloat16), ("bfloat16_products", torch.float32)],
)
@pytest.mark.parametrize("name", ["baseline", "softmax_cap", "latent"])
def test_what_attention_computes_in(name, precision, inner):
    """Queries, keys and values reach the mixer in the precision's type for attention, those made of latents too."""
    spec = LATENT if name == "latent" else overlay(name)
    model, dtypes = create(ModelSpec.from_dict(spec), 0), []
    for block in model.blocks:
        block.attention.mixer.register_forward_pre_hook(lambda _, args: dtypes.extend(x.dtype for x in args[:3]))
    with autocast(precision, torch.device("cpu")):
        model(torch.zeros(1, 8, dtype=torch.long), loss=True).backward()
    assert set(dtypes) == {inner}
    assert all(value.grad is None or value.grad.dtype == torch.float32 for value in model.parameters())


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_is_compiled_has_the_same_bits(case, precision):
    """Single places are a kernel of their own, between which logits are stored in float32."""
    args = (case[0].float(), case[1].float(), case[2])
    graphs = []

    def backend(graph, inputs):
        graphs.extend(part.code for part in graph.modules() if isinstance(part, torch.fx.GraphModule))
        return graph

    torch.compiler.reset()
    compiled = torch.compile(module.next_token_loss, backend=backend, fullgraph=True)
    with autocast(precision, torch.device("cpu")):
        grads, expected = (gradients(loss, *args) for loss in (compiled, module.next_token_loss))
    assert all(map(torch.equal, grads, expected))
    code = "".join(graphs)
    assert "where" in code and "scatter" not in code

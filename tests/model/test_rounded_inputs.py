"""Products of inputs rounded to bfloat16: the same numbers whoever rounds, in graphs too, and never float32's."""

from __future__ import annotations

import functools

import pytest
import torch
from functorch.compile import aot_module_simplified, make_boxed_func

from plumbline.core.errors import PlumblineError
from plumbline.model import cpu_matmul
from plumbline.model.cpu_matmul import describe_rounding, linear, rounded_inputs
from plumbline.model.decoder import create
from plumbline.model.numerics import autocast
from plumbline.specs.spec import ModelSpec
from tests.model.transfer_methods import overlay

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _no_shape_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_matmul, "_LIBRARY_ROUNDS", {})


def rounded(value: torch.Tensor) -> torch.Tensor:
    return value.detach().bfloat16().double()


def product_and_gradients() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """A linear map's output and gradients, each beside its own from rounded inputs in float64."""
    draw = torch.Generator().manual_seed(0)
    x, weight, bias, gradient = (
        torch.randn(*size, generator=draw) for size in ((3, 7, 40), (24, 40), (24,), (3, 7, 24))
    )
    x, weight, bias = (value.requires_grad_() for value in (x, weight, bias))
    with rounded_inputs():
        y = linear(x, weight, bias)
    y.backward(gradient)  # outside of the block, as in training
    x_XI, dy_XO = rounded(x).flatten(0, 1), rounded(gradient).flatten(0, 1)
    assert torch.equal(linear(x, weight, bias), torch.nn.functional.linear(x, weight, bias)), "after the block"
    return [
        (y.detach(), rounded(x) @ rounded(weight).T + bias.detach().double()),
        (x.grad, rounded(gradient) @ rounded(weight)),
        (weight.grad, dy_XO.T @ x_XI),
        (bias.grad, gradient.double().sum((0, 1))),
    ]


@pytest.mark.parametrize("library", ["rounds", "does not", "is missing"])
def test_a_linear_map_and_its_gradients(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums in float32 of inputs in bfloat16, also where the library ignores what it is asked for."""

    def multiply(x_XI, y_OI, bias_O):
        if library == "rounds":
            x_XI, y_OI = (value.bfloat16().float() for value in (x_XI, y_OI))
        return torch.nn.functional.linear(x_XI, y_OI, bias_O)

    monkeypatch.setattr(cpu_matmul, "_let_library_round", multiply)
    monkeypatch.setattr(cpu_matmul, "_AVAILABLE", library != "is missing")
    for actual, expected in product_and_gradients():
        torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=1e-5)
    rounding = {"rounds": "oneDNN", "does not": "before float32 products", "is missing": None}
    assert describe_rounding() == rounding[library]


def test_with_the_library_of_this_machine() -> None:
    """And what it is asked for is asked for in that product alone."""
    before = torch.backends.mkldnn.matmul.fp32_precision
    for actual, expected in product_and_gradients():
        torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=1e-5)
    assert torch.backends.mkldnn.matmul.fp32_precision == before


def test_a_compiled_graph_has_the_same_products() -> None:
    """As an operator that no back end looks into: Inductor leaves out a rounding that a widening follows."""
    spec = ModelSpec.from_dict(overlay("baseline", layers=1))
    tokens_BT = torch.randint(spec.vocabulary, (2, spec.context), generator=torch.Generator().manual_seed(0))
    targets = []

    def recording(graph, inputs):
        targets.extend(node.target for node in graph.graph.nodes)
        return make_boxed_func(graph.forward)

    torch.compiler.reset()
    backend = functools.partial(aot_module_simplified, fw_compiler=recording)
    results = []
    for compiled in (False, True):
        model = create(spec, 0)
        forward = torch.compile(model, backend=backend, fullgraph=True) if compiled else model
        with autocast("bfloat16_inputs", CPU):
            loss = forward(tokens_BT, loss=True)
        loss.backward()
        results.append([loss.detach(), *(value.grad for value in model.parameters())])
    # A layer has four products, of stacked matrices, each with two gradients; the head's three come with the loss.
    assert targets.count(torch.ops.plumbline.rounded_product.default) == 3 * 4 + 3
    assert not {torch.ops.aten.mm.default, torch.ops.aten.addmm.default} & set(targets)
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


def test_a_device_that_is_no_processor_is_refused() -> None:
    with pytest.raises(PlumblineError, match=r"'bfloat16_inputs'.*processors"):
        autocast("bfloat16_inputs", torch.device("cuda"))

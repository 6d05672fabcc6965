"""Products by oneDNN: equal to torch's own, in value and gradients, wherever they are chosen."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from functorch.compile import aot_module_simplified, make_boxed_func
from torch.nn import functional

from plumbline.model import cpu_matmul
from plumbline.model.decoder import create
from plumbline.operate.preflight.method_checks.leaks import create_moved_model
from plumbline.specs.spec import ModelSpec
from tests.model.transfer_methods import overlay
from tests.model_specs import small

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


@pytest.fixture
def always(monkeypatch) -> None:
    """However small: products are oneDNN's."""
    monkeypatch.setattr(cpu_matmul, "LEAST", 0)


@contextmanager
def count_products() -> Iterator[list[int]]:
    """The number of products that oneDNN makes in a block, once it is over."""
    counts: list[int] = []
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        yield counts
    counts.append(sum(entry.count for entry in profile.key_averages() if entry.key == "mkldnn::_linear_pointwise"))


def both(function, x, weight, bias):
    inputs = [None if value is None else value.clone().requires_grad_() for value in (x, weight, bias)]
    out = function(*inputs)
    (out * torch.linspace(-1, 1, out.numel()).view(out.shape)).sum().backward()
    return [out, *(value.grad for value in inputs if value is not None)]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(7, 5, 3), (33, 96, 130), (64, 130, 96), (1, 4, 4)])
def test_a_linear_map(always, shape, bias):
    rows, inputs, outputs = shape
    tensors = torch.randn(2, rows, inputs), torch.randn(outputs, inputs), torch.randn(outputs) if bias else None
    with count_products() as counts:
        ours = both(cpu_matmul.linear, *tensors)
    assert counts == [3]  # forward, and both gradients
    for actual, expected in zip(ours, both(functional.linear, *tensors), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-4)


def test_of_any_strides(always):
    x, y = torch.randn(40, 24), torch.randn(40, 56)
    windows = torch.randn(64).unfold(0, 24, 1)  # each begins one number after the one before
    for first, other in ((x.T, y.T), (x[::2, 3:9], y[:13, 3:9]), (torch.ones(1, 1).expand(9, 24), x), (x, windows)):
        torch.testing.assert_close(cpu_matmul.product(first, other), first @ other.T, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(cpu_matmul.weight_gradient(y, x), y.T @ x, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(cpu_matmul.weight_gradient(x, y), x.T @ y, rtol=1e-5, atol=1e-4)
    for bias in (torch.randn(1).expand(24), torch.randn(48)[::2]):
        result = cpu_matmul.linear(y, torch.ones(24, 56), bias)
        torch.testing.assert_close(result, y.sum(1, keepdim=True) + bias, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", ["baseline", "gpt", "hyper", "diff_attn"])
def test_a_model_gives_the_same_losses_and_gradients(always, name, monkeypatch):
    spec = ModelSpec.from_dict(overlay(name))
    tokens_BT = torch.randint(spec.vocabulary, (2, spec.context), generator=torch.Generator().manual_seed(0))
    results, products = [], []
    for least in (0, 10**12):
        monkeypatch.setattr(cpu_matmul, "LEAST", least)
        model = create(spec, 0)
        with count_products() as counts:
            loss = model(tokens_BT, loss=True)
            loss.backward()
        products += counts
        results.append([loss.detach(), *(value.grad for value in model.parameters())])
    assert products[0] > 0 == products[1]
    for first, other in zip(*results, strict=True):
        torch.testing.assert_close(first, other, rtol=1e-4, atol=1e-4)


def test_what_is_not_float32_on_a_cpu_is_left_to_torch(always):
    x, weight = torch.randn(8, 16), torch.randn(4, 16)
    with count_products() as counts:
        assert cpu_matmul.linear(x.double(), weight.double()).dtype == torch.float64
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert cpu_matmul.linear(x, weight).dtype == torch.bfloat16
        assert cpu_matmul.linear(x.to("meta"), weight.to("meta")).is_meta
    assert counts == [0]


def test_a_compiled_graph_has_the_same_products(always):
    """All of them, forward and backward, as an operator that no back end looks into; losses and gradients are equal."""
    spec = ModelSpec.from_dict(overlay("baseline", layers=2))
    tokens_BT = torch.randint(spec.vocabulary, (2, spec.context), generator=torch.Generator().manual_seed(0))
    passes = []

    def counting(graph, inputs):
        passes.append(sum(node.target is torch.ops.plumbline.product.default for node in graph.graph.nodes))
        return make_boxed_func(graph.forward)

    def of(model, forward):
        loss = forward(tokens_BT, loss=True)
        loss.backward()
        return [loss.detach(), *(value.grad for value in model.parameters())]

    eager, compiled = create(spec, 0), create(spec, 0)
    with count_products() as counts:
        expected = of(eager, eager)
    torch.compiler.reset()
    backend = functools.partial(aot_module_simplified, fw_compiler=counting)
    actual = of(compiled, torch.compile(compiled, backend=backend, fullgraph=True))
    assert len(passes) == 2 and all(passes) and [sum(passes)] == counts
    for first, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(first, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("maker", [True, False])
def test_shapes_that_vary_are_left_to_mkl(maker: bool, always, monkeypatch) -> None:
    monkeypatch.setattr(cpu_matmul, "_is_mkl_processor", lambda: maker)
    x, weight = torch.randn(6, 8), torch.randn(4, 8)
    with torch.no_grad(), count_products() as products:
        with cpu_matmul.varied_shapes():
            inside = cpu_matmul.linear(x, weight)
        outside = cpu_matmul.linear(x, weight)
    assert products == [1 if maker else 2]
    torch.testing.assert_close(inside, outside)


@pytest.mark.parametrize("splits", [1, 2])
def test_without_a_gradient_fewer_tensors_hold_the_same_bits(splits: int) -> None:
    """Wide heads turned whole; gates and gains multiplied in place."""
    mixer = {"name": "softmax"} if splits == 1 else {"name": "differential"}
    model = create_moved_model(small(head_width=32, mixer=mixer))
    tokens = torch.arange(12).view(2, 6)
    output = model(tokens)
    with torch.no_grad():
        assert torch.equal(model(tokens), output.detach())

"""GeGLU and squared ReLU."""

from __future__ import annotations

import math

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import create
from plumbline.model.ffn.relu_squared import ReLUSquared
from tests.model_specs import small
from tests.operator_calls import Calls

X = torch.randn(2, 5, 64, generator=torch.Generator().manual_seed(0))


def ffn(**chosen):
    return create(small(ffn=chosen), 0).blocks[1].ffn


class TestGeGLU:
    def test_error_function_by_default(self):
        module = ffn(name="geglu")
        gate, up = X @ module.gate.weight.T, X @ module.up.weight.T
        expected = 0.5 * gate * (1 + torch.erf(gate / math.sqrt(2))) * up @ module.down.weight.T
        torch.testing.assert_close(module(X), expected)

    def test_tanh_approximation(self):
        module = ffn(name="geglu", gelu="tanh")
        with torch.no_grad():
            module.gate.weight.mul_(10)
        gate, up = X @ module.gate.weight.T, X @ module.up.weight.T
        curve = torch.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3))
        torch.testing.assert_close(module(X), 0.5 * gate * (1 + curve) * up @ module.down.weight.T)
        exact = ffn(name="geglu")
        exact.load_state_dict(module.state_dict())
        assert not torch.equal(exact(X), module(X))

    def test_a_wide_open_gate_is_linear_as_swiglu_is(self):
        gate = torch.full((3, 7), 50.0)
        for module in (ffn(name="geglu"), ffn(name="swiglu")):
            torch.testing.assert_close(module.activate(gate), gate)


class TestReLUSquared:
    def test_degree_two(self):
        module = ffn(name="relu_squared")
        torch.testing.assert_close(module(3 * X), 9 * module(X))

    def test_the_square_is_inside(self):
        module = ffn(name="relu_squared")
        hidden = (X @ module.up.weight.T).clamp(min=0)
        torch.testing.assert_close(module(X), hidden**2 @ module.down.weight.T)
        assert (module(X) < 0).any()

    def test_the_square_of_the_output(self):
        module, inside = ffn(name="relu_squared", square="output"), ffn(name="relu_squared")
        hidden = (X @ module.up.weight.T).clamp(min=0)
        torch.testing.assert_close(module(X), (hidden @ module.down.weight.T) ** 2)
        torch.testing.assert_close(module(3 * X), 9 * module(X))
        assert (module(X) >= 0).all() and all(map(torch.equal, module.parameters(), inside.parameters()))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_the_square_is_a_product_with_the_bits_of_a_power(self, dtype):
        """Autocast of a GPU takes a power in float32, and what comes of it back to bfloat16: the same bits."""
        module, narrow = ffn(name="relu_squared"), X.to(dtype)
        module.to(dtype)
        gradients = torch.autograd.grad(module(narrow).sum(), [*module.parameters()])
        hidden = module.up(narrow).relu()
        output = module.down(hidden.float().square().to(dtype))
        assert torch.equal(module(narrow), output)
        assert all(map(torch.equal, gradients, torch.autograd.grad(output.sum(), [*module.parameters()])))
        with Calls() as calls:
            module(narrow).sum().backward()
        assert "pow" not in calls.names and "mul" in calls.names

    def test_negative_units_add_nothing(self):
        module = ffn(name="relu_squared")
        with torch.no_grad():
            module.up.weight.fill_(-1.0)
        assert torch.equal(module(X.abs()), torch.zeros_like(X))

    def test_width_ratio(self):
        assert ReLUSquared(small(), 0, width_ratio=4.0).up.weight.shape == (704, 64)
        with pytest.raises(PlumblineError, match=r"1\.01 times model.ffn_width \(176\) is 177\.76"):
            ReLUSquared(small(), 0, width_ratio=1.01)

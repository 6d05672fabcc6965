"""Gives each parameter a role, by which optimizer groups, learning-rate policies and probes select, together with a
layer.

Legend of shape suffixes used in this package: B batch, T time (tokens), Q query positions, K key positions, D width, H
query heads, G key/value heads, W head width, R rotary width, C latent width, F FFN width, V vocabulary, L layers, S
sources.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from plumbline.model import cpu_matmul


@dataclass(frozen=True, kw_only=True, slots=True)
class NormalInit:
    """A start drawn from N(0, std^2).

    Without `std` the model's `init_std` is used; `residual` divides it by sqrt(2 layers) where the model asks for
    residual scaling.
    """

    std: float | None = None
    residual: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ConstantInit:
    """A start with the same `value` everywhere."""

    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplicitInit:
    """A start with explicit values that fill the parameter, one per element in row-major order."""

    values: tuple[float, ...]


Init = NormalInit | ConstantInit | ExplicitInit

#: Roles of the matrices that make queries and keys. Latent attention has six in place of two: down to the latents, up
#: to the heads, and the rotary parts.
QUERY_KEY = frozenset(
    {"query", "key", "query_down", "query_up", "query_rotary", "key_value_down", "key_up", "key_rotary"}
)
#: Roles of weights that are multiplied with activations; all of them are decayed.
MATRICES = QUERY_KEY | {"value", "output", "attention_gate", "gate", "up", "down", "head", "stream_mixing"}
#: The four matrices of attention, in the order in which Muon stacks them.
ATTENTION = ("query", "key", "value", "output")
#: Roles that Muon orthogonalises. Embeddings and heads are not: their rows stand for tokens, not for directions.
ORTHOGONALISED = QUERY_KEY | {*ATTENTION, "attention_gate", "gate", "up", "down"}
#: The other roles.
OTHERS = frozenset({"embedding", "norm", "scalar", "bias", "pseudo_query"})


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterRole:
    """What one parameter is for, in which layer (None: in none), and how it starts.

    `owner`: for the bias of a linear map or a norm, the role of the matrix or gain that it belongs to.
    """

    role: str
    layer: int | None
    init: Init
    owner: str = ""

    def __post_init__(self) -> None:
        assert self.role in MATRICES | OTHERS, f"unknown role {self.role!r}"
        assert self.role == "bias" or not self.owner, f"only a bias belongs to another parameter, not a {self.role}"

    @property
    def matrix(self) -> bool:
        """Whether the parameter is the weight of a matrix multiplication."""
        return self.role in MATRICES


def parameter(*shape: int, role: str, layer: int | None, init: Init, owner: str = "") -> nn.Parameter:
    """A new parameter with its role. Values are undefined until `init.initialise` fills them.

    Scalars have shape (1,), since sharded training cannot hold a tensor of no dimensions.
    """
    return tag(nn.Parameter(torch.empty(*shape)), role=role, layer=layer, init=init, owner=owner)


def layer_constant(value: float) -> torch.Tensor:
    """A fixed number that differs between layers, as a tensor of no dimensions that stays on the processor.

    As a Python number it would be part of what torch.compile makes of a layer, and each layer a graph of its own.
    """
    return torch.tensor(value, dtype=torch.float64, device="cpu")


class UnfilledLinear(nn.Linear):
    """A linear map whose values are undefined until `init.initialise` fills them: nothing is drawn twice.

    (`torch.nn.utils.skip_init` does the same by way of the meta device, and imports a computer algebra system for it.)
    """

    def reset_parameters(self) -> None:
        """Leave the values undefined, where torch's own linear map would draw them."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the linear map over the last dimension, by `cpu_matmul.linear`."""
        return cpu_matmul.linear(input, self.weight, self.bias)


def linear(
    inputs: int, outputs: int, *, role: str, layer: int | None, bias: bool = False, residual: bool = False
) -> nn.Linear:
    """A new linear map whose parameters have a role; `residual` marks maps that write into the residual stream."""
    module = UnfilledLinear(inputs, outputs, bias=bias)
    tag(module.weight, role=role, layer=layer, init=NormalInit(residual=residual))
    if bias:
        tag(module.bias, role="bias", layer=layer, init=ConstantInit(value=0.0), owner=role)
    return module


def tag(value: nn.Parameter, *, role: str, layer: int | None, init: Init, owner: str = "") -> nn.Parameter:
    """Give a parameter its role."""
    value.plumbline_role = ParameterRole(role=role, layer=layer, init=init, owner=owner)  # type: ignore[attr-defined]
    return value


def collect_roles(model: nn.Module) -> dict[str, ParameterRole]:
    """Parameter name -> role, in the order of `named_parameters`.

    The decoder collects this once, when it is built: wrapping, moving or sharding makes new parameter objects.
    """
    collected = getattr(model, "parameter_roles", None)
    if collected is None:
        collected = {}
        for name, value in model.named_parameters():
            role = getattr(value, "plumbline_role", None)
            assert role is not None, f"parameter {name} has no role; make it with plumbline.model.roles"
            collected[name] = role
    return collected

"""Finds the matrices that make queries and keys by role, and cuts their rows into heads.

Two kinds of projections are known: one matrix of queries and one of keys (whose heads groups of query heads may share),
and latent attention. A number for each block of rows is kept by role as (layers, blocks), in float64. Beside the
model's own shape suffixes (`plumbline.model.roles`) there are N, the blocks of a matrix, and X, its rows.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from plumbline.core.errors import PlumblineError
from plumbline.model.attention import Attention
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.component import build
from plumbline.model.context import ForwardContext
from plumbline.model.distributed import gather_full
from plumbline.model.roles import QUERY_KEY, collect_roles
from plumbline.specs.spec import ModelSpec
from plumbline.train.interventions._base import InterventionInputs

Kind = Literal["grouped", "latent"]

#: Kind -> role -> what its rows are cut into: heads of queries, groups (heads of keys), or nothing.
KINDS: dict[Kind, dict[str, Literal["heads", "groups", "whole"]]] = {
    "grouped": {"query": "heads", "key": "groups"},
    "latent": {
        "query_down": "whole",
        "query_up": "heads",
        "query_rotary": "heads",
        "key_value_down": "whole",
        "key_up": "heads",
        "key_rotary": "whole",
    },
}


class QueryKeyMatrices:
    """The matrices of queries and keys in every layer of a run's model, and their biases.

    Attributes:
        kind: of the projections.
        heads, groups: of queries, and of keys.
        blocks: role -> into how many blocks of rows its matrices are cut.
        names: role -> for each layer, the names of its matrix and, where there is one, of its bias.
        parameters: name -> parameter, sharded or not.
    """

    def __init__(self, run: InterventionInputs, intervention: str) -> None:
        """Find the matrices of queries and keys in a run's model.

        Raises:
            PlumblineError: the projections are of neither kind, or logits are not linear in the weights of a head.
        """
        spec = run.spec.model
        by_layer = [_query_key_names(run.model, layer) for layer in range(spec.layers)]
        self.kind = _find_kind(by_layer, spec, intervention)
        self.heads, self.groups = spec.heads, run.model.blocks[0].attention.mixer.groups
        counts = {"heads": self.heads, "groups": self.groups, "whole": 1}
        self.blocks = {role: counts[cut] for role, cut in KINDS[self.kind].items()}
        self.names = {
            role: [own[role] + _bias_names(run.model, layer, role) for layer, own in enumerate(by_layer)]
            for role in self.blocks
        }
        parameters = dict(run.model.named_parameters())
        self.parameters = {name: parameters[name] for layers in self.names.values() for own in layers for name in own}
        self._require_linear(spec, intervention)

    def norms(self, norm: Literal["frobenius", "spectral"]) -> dict[str, torch.Tensor]:
        """Compute role -> norm of each block of each layer's matrix (L, N) in float64, biases left out.

        It is a collective where parameters are sharded.
        """
        return {
            role: torch.stack([
                NORMS[norm](gather_full(self.parameters[own[0]].detach()).unflatten(0, (self.blocks[role], -1)))
                for own in layers
            ])
            for role, layers in self.names.items()
        }  # fmt: skip

    def spread_over_rows(self, by_role: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Spread a number for each block (L, N) of some roles over rows: parameter name -> one for each of its rows
        (X,).

        A bias goes with its matrix.
        """
        return {
            name: values_N.repeat_interleave(self.parameters[name].shape[0] // self.blocks[role])
            for role, values_LN in by_role.items()
            for own, values_N in zip(self.names[role], values_LN, strict=True)
            for name in own
        }

    def scales(self, gamma_LH: torch.Tensor) -> dict[str, torch.Tensor]:
        """Compute role -> factors of its blocks (L, N) that make the logits of head h gamma_h times what they were.

        Queries and keys get the root of gamma each. A key head that several query heads share gets the root of their
        smallest gamma, and each query head what is missing. Latent attention has one rotary key for all heads, so that
        the rotary queries get all of gamma.
        """
        if self.kind == "latent":
            root_LH = gamma_LH.sqrt()
            return {"query_up": root_LH, "key_up": root_LH, "query_rotary": gamma_LH}
        root_LG = self.split_by_group(gamma_LH).amin(-1).sqrt()
        return {"query": gamma_LH / self.repeat_for_heads(root_LG), "key": root_LG}

    def split_by_group(self, values_LH: torch.Tensor) -> torch.Tensor:
        """Sort a number for each query head (L, H) by the group that the head belongs to (L, G, H / G)."""
        return values_LH.unflatten(1, (self.groups, -1))

    def repeat_for_heads(self, values_LG: torch.Tensor) -> torch.Tensor:
        """Give each query head the number of its group (L, G): (L, H)."""
        return values_LG.repeat_interleave(self.heads // self.groups, dim=1)

    @torch.no_grad()
    def _require_linear(self, spec: ModelSpec, intervention: str) -> None:
        """Refuse a model whose logits do not follow its weights as `scales` has it: tried on a copy of a layer with
        made-up weights and powers of two, so that no digit may change."""
        layer = _Layer(spec)
        before_BHQK = layer.logits()
        gamma_H = 4.0 ** -torch.arange(spec.heads, dtype=torch.float64).remainder(3)
        expected_BHQK = before_BHQK * gamma_H.float()[:, None, None]
        for role, scale_LN in self.scales(gamma_H[None]).items():
            for value in layer.parameters(role):
                rows_X = scale_LN[0].repeat_interleave(value.shape[0] // self.blocks[role])
                value.mul_(rows_X.to(value.dtype).reshape(-1, *[1] * (value.ndim - 1)))
        if not torch.equal(layer.logits(), expected_BHQK):
            raise PlumblineError(
                f"interventions: {intervention}: with model.projections {spec.slot('projections').name!r} and "
                f"model.query_key {spec.slot('query_key').name!r}, a head's attention logits are not linear in its "
                "weights of queries and keys; leave the intervention out, or choose projections 'grouped_query' or "
                "'latent' and query_key 'identity'"
            )


class _Layer:
    """The first layer's attention with made-up weights, on the CPU and outside of any sharding."""

    def __init__(self, spec: ModelSpec) -> None:
        with torch.device("cpu"):
            self.attention, self.positions = Attention(spec, 0), build("positions", spec)
            self.x_BTD = _synthetic_values(1, 3, spec.width)
            self.attention_mask = AttentionMask.for_call(torch.zeros(1, 3, dtype=torch.int64), None, None)
        self.roles = collect_roles(self.attention)
        for value in self.attention.parameters():
            value.copy_(_synthetic_values(*value.shape))

    def parameters(self, role: str) -> list[nn.Parameter]:
        """Matrix and bias of a role."""
        return [
            value
            for name, value in self.attention.named_parameters()
            if role in (self.roles[name].role, self.roles[name].owner)
        ]

    def logits(self) -> torch.Tensor:
        """Scaled scores (B, H, Q, K) of a few tokens."""
        scores: list[torch.Tensor] = []
        mixer = self.attention.mixer
        handle = mixer.register_forward_pre_hook(lambda _, inputs: scores.append(mixer.scores(inputs[0], inputs[1])))
        self.attention(self.x_BTD, ForwardContext(attention_mask=self.attention_mask, cache=None), self.positions)
        handle.remove()
        return scores[0]


def _synthetic_values(*shape: int) -> torch.Tensor:
    """Values between -1 and 1 that depend on the shape alone."""
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=torch.float64) * 1.7 + 1.0).sin().float().reshape(shape)


def _query_key_names(model: nn.Module, layer: int) -> dict[str, list[str]]:
    """Role -> names of a layer's matrices of queries and keys that have it."""
    names_by_role: dict[str, list[str]] = {}
    for name, role in model.parameter_roles.items():
        if role.layer == layer and role.role in QUERY_KEY:
            names_by_role.setdefault(role.role, []).append(name)
    return names_by_role


def _bias_names(model: nn.Module, layer: int, matrix_role: str) -> list[str]:
    """Names of the biases beside a layer's matrix of the role `matrix_role`."""
    return [name for name, role in model.parameter_roles.items() if (role.layer, role.owner) == (layer, matrix_role)]


def _find_kind(by_layer: list[dict[str, list[str]]], spec: ModelSpec, intervention: str) -> Kind:
    """The kind whose roles every layer has, one matrix each.

    Raises:
        PlumblineError: there is none.
    """
    layer_roles = [sorted(role for role, names in own.items() for _ in names) for own in by_layer]
    for kind, kind_roles in KINDS.items():
        if all(own == sorted(kind_roles) for own in layer_roles):
            return kind
    raise PlumblineError(
        f"interventions: {intervention}: in model.projections {spec.slot('projections').name!r}, the matrices of a "
        f"layer's queries and keys have the roles {layer_roles[0]}, and what is known is one each of "
        f"{' or '.join(str([*kind_roles]) for kind_roles in KINDS.values())}; leave the intervention out, or choose "
        "projections 'grouped_query' or 'latent'"
    )


def _frobenius(matrix_NXD: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(matrix_NXD, dim=(1, 2), dtype=torch.float64)


def _spectral(matrix_NXD: torch.Tensor) -> torch.Tensor:
    """The root of the largest eigenvalue of the smaller Gram matrix: the largest singular value."""
    wide = matrix_NXD.double()
    if wide.shape[1] > wide.shape[2]:
        wide = wide.transpose(1, 2)
    return torch.linalg.eigvalsh(wide @ wide.transpose(1, 2))[:, -1].clamp(min=0).sqrt()


#: Name -> norms (N,) in float64 of the blocks (N, X, columns) of a matrix.
NORMS = {"frobenius": _frobenius, "spectral": _spectral}

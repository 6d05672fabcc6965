"""Absorbs the W_Q of a decoder of ours into its other weights, in float64.

Source: query_free study, Proposition 4.1, Theorems 4.1 and 4.2 with Lemmas 8.5 and 8.6. The paper has no biases; what
becomes of them is derived here. Weights are handled as the paper writes them, rows X W: the transposes of what
`nn.Linear` holds. `query_elimination_rules` says to which models this applies.

Biases. Keys, values and what an FFN does inside keep theirs; what is written to the stream is multiplied by its new
basis. A query bias b cannot stay where queries are the stream itself, so the stream is moved by it: by s with X~ + s =
(X W_Q) + b for attention's reading, from the last parameter before it, and back by attention's own output bias; keys
and values, which do not want s, lose s W_K and s W_V by their biases. Behind a norm, its bias is that parameter.
"""

from __future__ import annotations

from typing import Any

import msgspec
import torch

from plumbline.model.decoder import Decoder
from plumbline.specs.spec import ModelSpec

#: Roles of matrices that read the stream, and those that write to it.
READERS = ("query", "key", "value", "gate", "up")


class DecoderWeights:
    """A decoder's weights in float64, found by role and layer, to be changed in place."""

    def __init__(self, model: Decoder) -> None:
        self.spec = model.spec
        self.values = {name: value.detach().double().clone() for name, value in model.named_parameters()}
        self._names = {
            (own.role, own.owner, own.layer): name
            for name, own in model.parameter_roles.items()
            if own.role in (*READERS, "output", "down", "head") or own.owner in (*READERS, "output", "down")
        }
        self.head = self._names.get(("head", "", None))

    def weight(self, role: str, layer: int | None) -> torch.Tensor | None:
        """The matrix of a role and layer (inputs, outputs); None if the model has none."""
        name = self._names.get((role, "", layer))
        return None if name is None else self.values[name].T

    def put(self, role: str, layer: int | None, weight: torch.Tensor) -> None:
        """Replace the matrix of a role and layer (inputs, outputs)."""
        self.values[self._names[role, "", layer]] = weight.T

    def bias(self, role: str, layer: int) -> torch.Tensor | None:
        """The bias that belongs to the matrix of a role and layer, itself and not a copy; None if there is none."""
        name = self._names.get(("bias", role, layer))
        return None if name is None else self.values[name]

    def norm_bias(self, layer: int) -> torch.Tensor | None:
        """The bias of the norm whose output only attention reads; None if there is none."""
        if self.spec.slot("placement").name != "pre_norm":
            return None
        return self.values.get(f"blocks.{layer}.placement.norms.0.bias")

    def layers_with_query_bias(self, layers: list[int]) -> list[int]:
        """Those of `layers` whose query bias is not zero."""
        return [layer for layer in layers if (bias := self.bias("query", layer)) is not None and bool(bias.any())]

    def head_stays_tied(self) -> bool:
        """Whether a tied head remains the embedding after `change_bases`."""
        return self.spec.tied_embeddings and self.spec.slot("residual").name == "attention_skip"

    def without_queries(self, layers: list[int]) -> Decoder:
        """Make a decoder in float64 that has no W_Q in `layers`, with the present values of all other parameters."""
        bias = self.spec.slot("projections").options["bias"]
        projections: dict[str, Any] = {"name": "identity_query", "bias": bias}
        if len(layers) < self.spec.layers:
            layer_list = ",".join(map(str, layers))
            projections = {"name": "partial_identity_query", "bias": bias, "layers": layer_list}
        gone = {self._names.get((*key, layer)) for key in (("query", ""), ("bias", "query")) for layer in layers}
        spec: ModelSpec = msgspec.structs.replace(
            self.spec,
            slots=self.spec.slots | {"projections": projections},
            tied_embeddings="head.weight" not in self.values,
        )
        model = Decoder(spec).double()
        model.load_state_dict({name: value for name, value in self.values.items() if name not in gone})
        return model


def absorb_one_head(parts: DecoderWeights, layers: list[int]) -> None:
    """Merge W_Q into W_K in `layers` by Proposition 4.1: W_K <- W_K W_Q^t, b_K <- b_K W_Q^t.

    With a query bias b, the bias of the norm before attention grows by c, where c W_Q = b, and the biases of keys and
    values make up for that.
    """
    for layer in layers:
        query_DD, key_DD, value_DD = (_require_tensor(parts.weight(role, layer)) for role in ("query", "key", "value"))
        merged_DD = key_DD @ query_DD.T
        parts.put("key", layer, merged_DD)
        key_bias_D = parts.bias("key", layer)
        if key_bias_D is not None:
            key_bias_D.copy_(query_DD @ key_bias_D)
        if parts.layers_with_query_bias([layer]):
            shift_D = torch.linalg.solve(query_DD.T, _require_tensor(parts.bias("query", layer)))
            _require_tensor(parts.norm_bias(layer)).add_(shift_D)
            _restore_keys_and_values(parts, layer, shift_D, merged_DD, value_DD)


def change_bases(parts: DecoderWeights, layers: list[int]) -> None:
    """Change the basis of the stream so that W_Q becomes I: Theorem 4.2 for all `layers`, or Theorem 4.1 for one.

    Theorem 4.1 applies where a skip stands around the FFN. Layer l reads the stream in the basis Theta_l: that of its
    own W_Q where that is taken out, else unchanged. With a skip around the FFN there is one basis for all, and a tied
    head becomes one of its own (Remark 4).
    """
    spec = parts.spec
    unchanged = torch.eye(spec.width, dtype=torch.float64)
    queries = {layer: _require_tensor(parts.weight("query", layer)) for layer in layers}
    embedding = parts.values["embedding"]
    if spec.slot("residual").name == "attention_skip":
        thetas = [queries.get(layer, unchanged) for layer in range(spec.layers)]
        last = torch.linalg.inv(thetas[0]).T if spec.tied_embeddings else unchanged
    else:
        [theta] = queries.values()
        thetas, last = [theta] * spec.layers, theta
        head_DV = embedding.T if spec.tied_embeddings else _require_tensor(parts.weight("head", None))
        parts.values["head.weight"] = torch.linalg.solve(theta, head_DV).T
    parts.values["embedding"] = embedding @ thetas[0]
    if spec.slot("positions").name == "learned":
        parts.values["positions.embedding"] = parts.values["positions.embedding"] @ thetas[0]
    for layer, (before, after) in enumerate(zip(thetas, [*thetas[1:], last], strict=True)):
        for role in READERS:
            weight = parts.weight(role, layer)
            if weight is not None:
                parts.put(role, layer, torch.linalg.solve(before, weight))
        for role, basis in (("output", before), ("down", after)):
            parts.put(role, layer, _require_tensor(parts.weight(role, layer)) @ basis)
            bias_D = parts.bias(role, layer)
            if bias_D is not None:
                bias_D.copy_(bias_D @ basis)
    for layer in parts.layers_with_query_bias(layers):
        _move_stream(parts, layer)


def _move_stream(parts: DecoderWeights, layer: int) -> None:
    """The query bias of a layer, in the basis of its queries, brought to attention's reading and taken away again."""
    shift_D = _require_tensor(parts.bias("query", layer))
    if layer > 0:
        _require_tensor(parts.bias("down", layer - 1)).add_(shift_D)
    else:
        learned = parts.spec.slot("positions").name == "learned"
        parts.values["positions.embedding" if learned else "embedding"] += shift_D
    key, value = (_require_tensor(parts.weight(role, layer)) for role in ("key", "value"))
    _restore_keys_and_values(parts, layer, shift_D, key, value)
    _require_tensor(parts.bias("output", layer)).sub_(shift_D)


def _restore_keys_and_values(
    parts: DecoderWeights, layer: int, shift_D: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> None:
    """Keys and values as they were before attention's reading was moved."""
    _require_tensor(parts.bias("key", layer)).sub_(shift_D @ key)
    _require_tensor(parts.bias("value", layer)).sub_(shift_D @ value)


def _require_tensor(value: torch.Tensor | None) -> torch.Tensor:
    assert value is not None, "the rules leave no model without it"
    return value

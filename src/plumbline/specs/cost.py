"""What a run costs, in closed form: operations, parameters. Imports no torch, so that a plan can be made anywhere."""

from __future__ import annotations

from collections.abc import Callable

from plumbline.cli import PlumblineError
from plumbline.specs.spec import ComponentSpec, ModelSpec

Count = Callable[[ModelSpec, ComponentSpec], int]


def appendix_c(model: ModelSpec, sequences: int = 1) -> int:
    """Training operations on `sequences` sequences by the transfer study's formula (appendix C.1).

    For each layer 2 s^2 d + s (2 (2 d^2 + 2 d d_kv) + 2 k d d_inter), times 3, with the context s, width d, key and
    value width d_kv, and k matrices of inner width d_inter in the FFN. Neither the head nor a second s^2 d for the
    weighted values is in it, nor what a method changes in its projections. A head-wise output gate adds
    2 s d heads, which the text does not write down but its Table 4 has.
    """
    s, d = model.context, model.width
    scores = 2 * s * s * d
    projections = 2 * (2 * d * d + 2 * d * model.key_value_heads * model.head_width)
    ffn = 2 * _ffn(model)
    gate = 2 * d * model.heads if model.slot("output").name == "head_gate" else 0
    return 3 * sequences * model.layers * (scores + s * (projections + ffn + gate))


def training_flops_per_token(model: ModelSpec) -> int:
    """Training operations for each token: 6 for each weight of a matrix, the head's included, and all pairs of
    attention, scores and values. Exact for the baseline, near enough for a plan elsewhere."""
    inner = model.heads * model.head_width
    projections = 2 * model.width * (inner + model.key_value_heads * model.head_width)
    pairs = 2 * inner * model.context
    return 6 * (model.layers * (projections + _ffn(model) + pairs) + model.vocabulary * model.width)


def parameter_count(model: ModelSpec) -> int:
    """Parameters in closed form.

    Raises:
        PlumblineError: a component's count is not written down here; `plumbline.model.decoder.on_meta` counts any.
    """
    embeddings = model.vocabulary * model.width * (1 if model.tied_embeddings else 2)
    return embeddings + model.width + sum(_look_up(slot, model)(model, model.slot(slot)) for slot in _COUNTS)


def _look_up(slot: str, model: ModelSpec) -> Count:
    name = model.slot(slot).name
    if name not in _COUNTS[slot]:
        raise PlumblineError(
            f"model.{slot}: there is no closed form for the parameters of {name!r} (only for {sorted(_COUNTS[slot])}); "
            "count them with plumbline.model.decoder.on_meta"
        )
    return _COUNTS[slot][name]


def _ffn(model: ModelSpec) -> int:
    """Weights of one layer's FFN."""
    chosen = model.slot("ffn")
    if chosen.name in ("swiglu", "geglu"):
        return 3 * model.width * model.ffn_width
    if chosen.name == "relu_squared":
        return 2 * model.width * int(chosen.options["width_ratio"] * model.ffn_width)
    raise PlumblineError(f"model.ffn: there is no closed form for {chosen.name!r}")


def _nothing(model: ModelSpec, chosen: ComponentSpec) -> int:
    return 0


def _output_heads(model: ModelSpec) -> int:
    chosen = model.slot("mixer")
    masking = chosen.name == "selective" and chosen.options["variant"] == "masking_heads"
    return model.heads - (model.key_value_heads if masking else 0)


def _grouped_query(model: ModelSpec, chosen: ComponentSpec) -> int:
    mixer = model.slot("mixer")
    halved = mixer.name == "selective" and mixer.options["variant"] == "halved_key_values"
    shared = model.key_value_heads * model.head_width // (2 if halved else 1)
    outwards = _output_heads(model) * model.head_width
    inwards = model.heads * model.head_width + 2 * shared
    biases = inwards + model.width if chosen.options["bias"] else 0
    return model.layers * (model.width * (inwards + outwards) + biases)


def _differential(model: ModelSpec, chosen: ComponentSpec) -> int:
    heads, width = model.heads, model.head_width
    per_layer = {
        "half_width": 4 * width // 2 + 2 * heads * width,
        "per_head_lambda": 4 * heads * width // 2 + width,
        "official": 4 * width + 2 * width,
    }
    return model.layers * per_layer[chosen.options["variant"]]


def _norms(per_layer: int) -> Count:
    return lambda model, chosen: model.layers * per_layer * model.width


def _hybrid_norm(model: ModelSpec, chosen: ComponentSpec) -> int:
    return model.layers * model.width * (1 if chosen.options["variant"] == "official" else 2)


def _dense_former(model: ModelSpec, chosen: ComponentSpec) -> int:
    return model.layers * (model.layers + (3 if chosen.options["variant"] == "official" else 1)) // 2


def _hyper_connections(model: ModelSpec, chosen: ComponentSpec) -> int:
    n, d = chosen.options["streams"], model.width
    per_layer = {"per_sublayer": 4, "per_layer": 2, "official": 2 * (2 * n + n * n + d * (n + 3) + 3)}
    return model.layers * per_layer[chosen.options["variant"]]


def _attention_residuals(model: ModelSpec, chosen: ComponentSpec) -> int:
    readers = model.layers * (1 if chosen.options["queries"] == "per_layer" else 2)
    return 2 * model.width * (readers + (1 if chosen.options["final_mix"] else 0))


_COUNTS: dict[str, dict[str, Count]] = {
    "positions": {"rotary": _nothing},
    "norm": {"rms_norm": _nothing},  # counted where they stand
    "projections": {"grouped_query": _grouped_query},
    "query_key": {
        "identity": _nothing,
        "qk_norm": lambda model, chosen: model.layers * 2 * model.head_width,
    },
    "values": {
        "identity": _nothing,
        "rms_norm": lambda model, chosen: model.layers * model.head_width,
        "value_residual": lambda model, chosen: model.layers - 1,
    },
    "mixer": {
        "softmax": _nothing,
        "softmax_cap": _nothing,
        "softpick": _nothing,
        "selective": _nothing,  # changes the projections
        "sigmoid": lambda model, chosen: model.layers if chosen.options["variant"] == "divided" else 0,
        "ssmax": lambda model, chosen: model.layers * model.heads,
        "differential": _differential,
    },
    "output": {
        "identity": _nothing,
        "head_gate": lambda model, chosen: model.layers * model.width * _output_heads(model),
    },
    "ffn": dict.fromkeys(("swiglu", "geglu", "relu_squared"), lambda model, chosen: model.layers * _ffn(model)),
    "placement": {"pre_norm": _norms(2), "sandwich_norm": _norms(4), "hybrid_norm": _hybrid_norm},
    "residual": {
        "standard": _nothing,
        "layer_scale": lambda model, chosen: model.layers * model.width * chosen.options["vectors"],
        "dense_former": _dense_former,
        "hyper_connections": _hyper_connections,
        "attention_residuals": _attention_residuals,
    },
}

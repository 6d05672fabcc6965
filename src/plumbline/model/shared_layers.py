"""Lets all layers of a decoder compute with one set of weights."""

from __future__ import annotations

from torch import nn

from plumbline.core.errors import PlumblineError


def share_weights(layers: nn.ModuleList) -> None:
    """Give every layer the parameters of the first one, which alone are counted, initialised, trained and written.

    A later layer holds them as plain attributes, so that `named_parameters` and `state_dict` have each once. What
    differs between layers and is no parameter, such as their place in a cache, stays their own.

    Raises:
        PlumblineError: layers have other parameters than the first one.
    """
    first = dict(layers[0].named_parameters())
    for number, layer in enumerate(layers[1:], start=1):
        weights = dict(layer.named_parameters())
        if {name: value.shape for name, value in weights.items()} != {
            name: value.shape for name, value in first.items()
        }:
            raise PlumblineError(
                f"model.shared_layers: layer {number} has other parameters than the first one "
                f"({sorted(weights.keys() ^ first.keys())}), as one of its components needs it; set it to false, or "
                "choose another component"
            )
        for name in weights:
            path, _, attribute = name.rpartition(".")
            module = layer.get_submodule(path)
            del module._parameters[attribute]
            module.__dict__[attribute] = first[name]

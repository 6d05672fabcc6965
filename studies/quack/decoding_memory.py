"""Counts what decoding remembers of a token, from real caches of models without memory; and what QK norm would need
instead.

Source: quack study, Mechanism 3 (QK norm needs each token's keys, which latent attention does not keep).
"""

from __future__ import annotations

from functools import cache

import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.cache import DecodingCache
from plumbline.model.decoder import on_meta
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec

from .run_grid import DEFAULT, QK_NORM

#: Bytes of a number in the precision that the summary trains in.
BFLOAT16 = 2


@cache
def paper(study: str) -> study_config.Study:
    """The study at the summary's size."""
    return study_config.load(study, "paper")


def find_model(study: study_config.Study, scale: str, method: str = DEFAULT) -> ModelSpec:
    """The model of a method's runs at a scale."""
    return next(
        run.spec.model
        for run in study.runs.values()
        if run.spec.scale == scale and run.spec.method.partition(".")[0] == method
    )


def count_cached_bytes(model: ModelSpec) -> float:
    """Bytes a token in bfloat16, all layers together, in the cache of a prompt that was read in two parts."""
    decoder, decoding_cache = on_meta(model).to(torch.bfloat16), DecodingCache()
    sizes = []
    for tokens in (2, 3):
        decoder(torch.zeros(1, tokens, dtype=torch.long, device="meta"), cache=decoding_cache)
        sizes.append(decoding_cache.bytes)
    return (sizes[1] - sizes[0]) / 3


def count_materialised_bytes(model: ModelSpec) -> float:
    """Bytes a token in bfloat16 of every head's key and value, all layers together."""
    return float(2 * model.layers * model.key_value_heads * model.head_width * BFLOAT16)


def explain_refusal(study: study_config.Study, scale: str) -> str:
    """Why a model of a scale cannot have QK norm; empty if it can."""
    model = find_model(study, scale)
    norm = find_model(study, "mha", QK_NORM).slots["query_key"]
    try:
        on_meta(ModelSpec.from_dict(model.to_dict() | {"query_key": dict(norm)}))
    except PlumblineError as error:
        return str(error)
    return ""

"""What each of many tables would count and draw anew."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from plumbline.model import decoder
from plumbline.model.decoder import Decoder
from plumbline.specs.spec import ModelSpec
from plumbline.stats.order_agreement import order_agreement


@pytest.fixture(autouse=True, scope="package")
def _count_each_model_once_and_draw_few_orders() -> Iterator[None]:
    """Tables count the same models at paper size again and again; 10,000 orders tell what 100,000 do."""
    build, models = decoder.on_meta, {}

    def on_meta(spec: ModelSpec) -> Decoder:
        key = repr(spec)
        if key not in models:
            models[key] = build(spec)
        return models[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(order_agreement.__kwdefaults__, "draws", 10_000)
        for module in list(sys.modules.values()):
            if vars(module).get("on_meta") is build:
                patch.setattr(module, "on_meta", on_meta)
        yield

"""Parameter counts at the size that the transfer study prints."""

from __future__ import annotations

import pytest

from plumbline.model.decoder import on_meta
from plumbline.plan import model_counts
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec
from tests.model.test_every_method import PARAMETERS
from tests.model.transfer_methods import METHODS, PAPER, overlay
from tests.model_specs import small


@pytest.fixture(scope="module")
def counted_for_plans(tmp_path_factory) -> model_counts.ModelCostLookup:
    study = study_config.load("transfer", "paper")
    return model_counts.ModelCostLookup(
        model_counts.update(tmp_path_factory.mktemp("counts") / "counts.json", study.runs.values())
    )


@pytest.mark.parametrize("name", METHODS)
def test_a_plan_has_the_same_counts(name, counted_for_plans):
    """What `python -m plumbline.plan` writes down for dry runs."""
    size = counted_for_plans(ModelSpec.from_dict(overlay(name, **PAPER)))
    assert (size.exact, size.parameters) == (True, 1_216_710_656 + PARAMETERS[name])


def test_untied_with_biases():
    spec = small(tied_embeddings=False, projections={"name": "grouped_query", "bias": True})
    plain = small()
    biases = 4 * (8 * 8 + 2 * 2 * 8 + 64)
    parameters = [sum(value.numel() for value in on_meta(each).parameters()) for each in (spec, plain)]
    assert parameters[0] - parameters[1] == 97 * 64 + biases

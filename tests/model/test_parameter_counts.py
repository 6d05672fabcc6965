"""Parameter counts at the size that the transfer study prints."""

from __future__ import annotations

import csv

import pytest

from plumbline.model.decoder import on_meta
from plumbline.plan import model_counts
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec
from tests.model.transfer_methods import METHODS, PAPER, overlay
from tests.model_specs import small

BASELINE = 1_216_710_656


def count_parameters(name: str, **sizes) -> int:
    model = on_meta(ModelSpec.from_dict(overlay(name, **sizes)))
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.fixture(scope="module")
def at_paper_size() -> dict[str, int]:
    return {name: count_parameters(name, **PAPER) for name in METHODS}


@pytest.fixture(scope="module")
def counted_for_plans(tmp_path_factory) -> model_counts.ModelCostLookup:
    study = study_config.load("transfer", "paper")
    return model_counts.ModelCostLookup(
        model_counts.update(tmp_path_factory.mktemp("counts") / "counts.json", study.runs.values())
    )


def test_table_4_as_printed(at_paper_size, repository):
    with open(repository / "studies/transfer/published/table4.csv", encoding="utf-8", newline="") as handle:
        printed = {row["method_id"]: row for row in csv.DictReader(handle)}
    assert printed.keys() == at_paper_size.keys()
    for name, row in printed.items():
        assert f"{at_paper_size[name] / 1e9:.3f}" == row["params_b"], name
        delta = 100 * (at_paper_size[name] - BASELINE) / BASELINE
        assert abs(delta - float(row["delta_params_pct"])) <= 0.005, name


@pytest.mark.parametrize("name", METHODS)
def test_a_plan_has_the_same_counts(name, at_paper_size, counted_for_plans):
    """What `python -m plumbline.plan` writes down for dry runs."""
    size = counted_for_plans(ModelSpec.from_dict(overlay(name, **PAPER)))
    assert (size.exact, size.parameters) == (True, at_paper_size[name])


def test_untied_with_biases():
    spec = small(tied_embeddings=False, projections={"name": "grouped_query", "bias": True})
    plain = small()
    biases = 4 * (8 * 8 + 2 * 2 * 8 + 64)
    parameters = [sum(value.numel() for value in on_meta(each).parameters()) for each in (spec, plain)]
    assert parameters[0] - parameters[1] == 97 * 64 + biases

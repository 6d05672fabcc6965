"""The bilinear form of queries and keys: against the form itself in float64, invariances, and where training starts."""

from __future__ import annotations

import math

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.evaluate.probes import ProbedDecoder, ProbeValue, observe, read_all
from plumbline.evaluate.probes.bilinear import Bilinear, displacement, top_singular_value
from plumbline.model.decoder import Decoder, create
from plumbline.specs.spec import ProbeSpec
from tests.evaluate.probes.naive_computations import Key, Largest, keyed, tokens
from tests.model_specs import small

NAMES = {"bilinear_displacement", "bilinear_relative", "bilinear_top", "bilinear_displacement_summed"}


def bilinear(model: Decoder, init_seed: int | None = 1) -> dict[Key, ProbeValue]:
    return keyed(observe(ProbedDecoder(model, init_seed=init_seed), [Bilinear()], tokens(model)[:0]))


def forms(model: Decoder, layer: int) -> list[torch.Tensor]:
    """W_Q^T W_K of each head, in full."""
    projections, width = model.blocks[layer].attention.projections, model.spec.head_width
    shared = model.spec.heads // model.spec.key_value_heads
    query, key = (module.weight.detach().double() for module in (projections.query, projections.key))
    return [
        query[head * width : (head + 1) * width].T @ key[(group := head // shared) * width : (group + 1) * width]
        for head in range(model.spec.heads)
    ]


def make_moved(scale: float, **overrides: object) -> tuple[Decoder, Decoder]:
    """A model where training starts, and the same with all parameters moved a little."""
    start, now = (create(small(**overrides), init_seed=1) for _ in range(2))
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in now.parameters():
            parameter += scale * torch.randn(parameter.shape, generator=generator)
    return start, now


@pytest.mark.parametrize("key_value_heads", [1, 2, 8])
def test_as_computed_from_the_forms_themselves(key_value_heads: int) -> None:
    start, now = make_moved(0.02, key_value_heads=key_value_heads)
    values = bilinear(now)
    assert len(values) == now.spec.layers * (3 * now.spec.heads + 1)
    for layer in range(now.spec.layers):
        pairs = list(zip(forms(now, layer), forms(start, layer)))
        for head, (form, first) in enumerate(pairs):
            change = torch.linalg.matrix_norm(form - first)
            expected = {
                "bilinear_displacement": change,
                "bilinear_relative": change / torch.linalg.matrix_norm(first),
                "bilinear_top": torch.linalg.matrix_norm(form, ord=2),
            }
            for name, value in expected.items():
                assert values[name, layer, head].value == pytest.approx(float(value), rel=1e-10)
        summed = torch.linalg.matrix_norm(sum(form - first for form, first in pairs))
        probe_value = values["bilinear_displacement_summed", layer, None]
        assert probe_value.value == pytest.approx(float(summed), rel=1e-10)


def test_where_training_starts() -> None:
    """Width 960, heads of 64, N(0, 0.02^2): norm 0.02^2 x 960 x 8 = 3.07, top 0.526; nothing has moved."""
    spec = small(layers=1, width=960, heads=15, key_value_heads=15, head_width=64, ffn_width=64)
    subject = ProbedDecoder(create(spec, init_seed=42), init_seed=42)
    values = keyed(observe(subject, [Bilinear()], torch.zeros(0, 2)))
    for name in NAMES - {"bilinear_top"}:
        assert {probe_value.value for key, probe_value in values.items() if key[0] == name} == {0.0}
    tops = [probe_value.value for key, probe_value in values.items() if key[0] == "bilinear_top"]
    assert sum(tops) / 15 == pytest.approx(0.526, abs=0.005)
    query_HWD, key_GWD = subject.query_key_weights(0)
    norms_H = displacement((2 * query_HWD, key_GWD), (query_HWD, key_GWD))  # of the form itself
    assert float(norms_H.mean()) == pytest.approx(3.078, abs=0.01)


@pytest.mark.parametrize("init_seed", [None, 2])
def test_a_start_that_is_not_known_or_is_another(init_seed: int | None) -> None:
    model = create(small(), init_seed=1)
    values = bilinear(model, init_seed)
    assert {key[0] for key in values} == ({"bilinear_top"} if init_seed is None else NAMES)
    if init_seed is not None:
        assert values["bilinear_displacement", 0, 0].value > 0.01


def weights(seed: int, heads: int = 4, groups: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(number, 8, 40, generator=generator, dtype=torch.float64) / 6 for number in (heads, groups))


def test_the_form_is_what_counts_not_how_it_is_split() -> None:
    """W_Q -> A W_Q and W_K -> A^-T W_K leave it alone; a factor on W_Q is one on the top singular value."""
    query, key = weights(1, 4, 4)
    mixing = torch.randn(4, 8, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    other = (mixing @ query, torch.linalg.inv(mixing).transpose(-1, -2) @ key)
    start = weights(3, 4, 4)
    torch.testing.assert_close(displacement(other, start), displacement((query, key), start))
    assert float(displacement(other, (query, key)).max()) < 1e-5  # up to the root of rounding
    torch.testing.assert_close(top_singular_value(*other), top_singular_value(query, key))
    torch.testing.assert_close(top_singular_value(-3 * query, key), 3 * top_singular_value(query, key))


def test_small_displacements_lose_no_digits() -> None:
    """1e-9 of a weight: differences of squared norms would have none left."""
    start, direction = weights(1), weights(2)
    now = tuple(first + 1e-9 * change for first, change in zip(start, direction))
    heads = [head // 2 for head in range(4)]
    first_order = torch.stack(
        [
            torch.linalg.matrix_norm(direction[0][h].T @ start[1][g] + start[0][h].T @ direction[1][g])
            for h, g in enumerate(heads)
        ]
    )
    torch.testing.assert_close(displacement(now, start), 1e-9 * first_order, rtol=1e-6, atol=0)


def test_no_form_is_ever_made() -> None:
    model = create(small(layers=1, width=512, heads=4, key_value_heads=2, head_width=8, ffn_width=8), init_seed=1)
    with Largest() as largest:
        observe(ProbedDecoder(model, init_seed=1), [Bilinear()], torch.zeros(0, 2))
    assert largest.elements <= 2 * 4 * 8 * 512 < 512 * 512


def test_weights_that_are_no_numbers_give_no_number() -> None:
    model = create(small(), init_seed=1)
    with torch.no_grad():
        model.blocks[1].attention.projections.key.weight[0, 0] = float("inf")
    values = bilinear(model)
    assert all(math.isnan(values["bilinear_top", 1, head].value) for head in range(8))
    assert math.isfinite(values["bilinear_top", 0, 0].value)


def test_a_run_names_its_seed() -> None:
    """The entry that both the trainer and the offline command use."""
    model = create(small(), init_seed=7)
    specs = [ProbeSpec(name="bilinear", at=(0.5,))]
    values = keyed(read_all(model, specs, tokens(model), "float32", init_seed=7))
    assert values["bilinear_displacement", 3, 7].value == 0.0


def test_a_layer_without_a_weight_of_queries_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = create(small(), init_seed=1)
    monkeypatch.delitem(model.parameter_roles, "blocks.2.attention.projections.query.weight")
    with pytest.raises(PlumblineError, match=r"model.projections 'grouped_query': layer 2 has 0 weights"):
        bilinear(model)

"""Locality ratios: against projectors and products in full, oracles, nulls, and the two points of a run."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.evaluate.probes import ProbeValue, read_all
from plumbline.evaluate.probes.locality import find_rank, leading_directions, locality_ratios, read_locality
from plumbline.model.decoder import Decoder, create
from plumbline.specs.spec import ProbeSpec
from tests.evaluate.probes.naive_computations import keyed, scramble, tokens, trace
from tests.model_specs import run_spec, small


def pair(**overrides: Any) -> tuple[Decoder, Decoder]:
    """Two points of a run: the second has moved."""
    first, second = scramble(**overrides), scramble(**overrides)
    generator = torch.Generator().manual_seed(8)
    with torch.no_grad():
        for parameter in second.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return first, second


def naive(x_TD: torch.Tensor, weight_DW: torch.Tensor, projector_DD: torch.Tensor) -> float:
    """The definition, matrix by matrix."""
    top = float(torch.linalg.matrix_norm(weight_DW, ord=2))
    numerator = torch.linalg.matrix_norm(x_TD @ weight_DW @ weight_DW.T @ projector_DD)
    return float(numerator / (torch.linalg.matrix_norm(x_TD @ projector_DD) * top**2))


@pytest.mark.parametrize("overrides", [{"layers": 4}, {"layers": 5, "key_value_heads": 8}])
def test_as_computed_naively_in_float64(overrides: dict[str, Any]) -> None:
    model, other = pair(**overrides)
    batch_BT = tokens(model, 3)
    values = keyed(read_locality(model, other, batch_BT, energy=0.8, share=0.3))
    inputs = [
        [x[0][0].flatten(0, 1) for x in trace(each, lambda block: block.attention, batch_BT)] for each in (model, other)
    ]
    shares = []
    upper = range(model.spec.layers // 2, model.spec.layers)
    assert {layer for _, layer, _ in values} == {*upper, None}
    for layer in upper:
        x_TD, drift_TD = inputs[0][layer], inputs[1][layer] - inputs[0][layer]
        _, sizes, rows_DD = torch.linalg.svd(drift_TD)
        energy = (sizes**2).cumsum(0) / (sizes**2).sum()
        stream = [float((x_TD @ rows_DD[:rank].T).square().sum() / x_TD.square().sum()) for rank in range(65)]
        ranks = {
            "": next(rank for rank in range(1, 65) if energy[rank - 1] >= 0.8),
            "_calibrated": next(rank for rank in range(1, 65) if stream[rank] >= 0.3),
        }
        for suffix, rank in ranks.items():
            assert values[f"projector_rank{suffix}", layer, None].value == rank
            projector_DD = rows_DD[:rank].T @ rows_DD[:rank]
            projections, width = model.blocks[layer].attention.projections, model.spec.head_width
            for name, module in (("query", projections.query), ("key", projections.key)):
                for head, weight_WD in enumerate(module.weight.detach().split(width)):
                    probe_value = values[f"locality_{name}{suffix}", layer, head]
                    assert probe_value.value == pytest.approx(naive(x_TD, weight_WD.T, projector_DD), rel=1e-8)
                    assert (
                        0.3 * probe_value.null < naive(x_TD, weight_WD.T, torch.eye(64).double()) < 3 * probe_value.null
                    )
                assert (f"locality_{name}{suffix}", layer, head + 1) not in values
        share = values["projector_share", layer, None]
        assert share.value == pytest.approx(stream[ranks[""]], rel=1e-9)
        assert share.null == pytest.approx(ranks[""] / 64)
        shares.append(share)
    mean = values["projector_share", None, None]
    assert mean.value == pytest.approx(sum(share.value for share in shares) / len(shares))
    assert mean.null == pytest.approx(sum(share.null for share in shares) / len(shares))


def draw(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def basis(width: int, rank: int, seed: int = 2) -> torch.Tensor:
    return torch.linalg.qr(draw(width, rank, seed=seed)).Q


def test_sizes_of_stream_and_weight_do_not_matter() -> None:
    x_TD, weight_NWD, basis_DR = draw(50, 24), draw(3, 4, 24, seed=3), basis(24, 5)
    expected_N = locality_ratios(x_TD.T @ x_TD, weight_NWD, basis_DR)
    torch.testing.assert_close(locality_ratios(9 * x_TD.T @ x_TD, -7 * weight_NWD, basis_DR), expected_N)
    turned_DR = basis_DR @ basis(5, 5, seed=9)  # another basis of the same span
    torch.testing.assert_close(locality_ratios(x_TD.T @ x_TD, weight_NWD, turned_DR), expected_N)


def test_its_chance_level_is_below_one() -> None:
    x_TD = draw(50, 24)
    stream_DD = x_TD.T @ x_TD
    whole_N = locality_ratios(stream_DD, draw(6, 4, 24, seed=3), torch.eye(24).double())
    assert (whole_N <= 1).all() and (whole_N > 0.05).all()
    columns_DW = basis(24, 4)
    assert float(locality_ratios(stream_DD, columns_DW.T[None], columns_DW)) == pytest.approx(1, rel=1e-12)


def test_null_where_training_starts_at_width_of_premature_study() -> None:
    """Isotropic streams and N(0, 0.02^2): 0.174 for a random projector of any rank."""
    stream_DD = torch.eye(960).double()
    weight_NWD = 0.02 * draw(4, 64, 960)
    for rank in (5, 170, 500):
        assert float(locality_ratios(stream_DD, weight_NWD, basis(960, rank)).mean()) == pytest.approx(0.174, abs=0.01)


def test_directions_come_with_the_most_energy_first() -> None:
    x_TD = draw(50, 6) * torch.tensor([1.0, 5.0, 0.1, 2.0, 0.5, 3.0])
    basis_DD = leading_directions(x_TD.T @ x_TD)
    energies_D = (x_TD @ basis_DD).square().sum(0)
    assert energies_D.tolist() == sorted(energies_D.tolist(), reverse=True)
    assert [find_rank(torch.tensor([6.0, 3.0, 1.0]), share) for share in (0.5, 0.6, 0.61, 0.9, 0.95, 1.0)] == [
        1, 1, 2, 2, 3, 3]  # fmt: skip


def test_what_does_not_move_has_no_immature_directions() -> None:
    model = scramble()
    assert read_locality(model, scramble(), tokens(model)) == []


def test_the_same_seed_has_the_same_null() -> None:
    model, other = pair()

    def nulls(**options: float) -> list[float]:
        probe_values: list[ProbeValue] = read_locality(model, other, tokens(model), **options)
        return [probe_value.null for probe_value in probe_values if probe_value.probe == "locality_query"]

    assert nulls() == nulls() != nulls(seed=1)
    spread = [max(abs(a - b) for a, b in zip(nulls(draws=n), nulls(draws=n, seed=1))) for n in (1, 64)]
    assert spread[1] < spread[0]


def test_models_of_different_depth_are_no_two_points_of_a_run() -> None:
    model = create(small(layers=2), init_seed=1)
    with pytest.raises(PlumblineError, match="2 and 4 layers"):
        read_locality(model, create(small(), init_seed=1), tokens(model))


def test_a_spec_must_keep_the_other_point() -> None:
    def probes(**options: Any) -> list[dict[str, Any]]:
        return [{"name": "locality"} | options, {"name": "query_key_norms", "at": [0.5], "sequences": 2}]

    with pytest.raises(PlumblineError, match=r"probes\[0\].against: 1 .*\[0.1"):
        run_spec(probes=probes(at=[0.1]))
    with pytest.raises(PlumblineError, match=r"probes\[0\]: 'locality' compares two points"):
        run_spec(probes=probes(every=3))
    assert run_spec(probes=probes(at=[0.1], against=0.5)).probes[0].options["against"] == 0.5
    assert run_spec(probes=probes(at=[0.1, 1.0])).probes[0].at == (0.1, 1.0)


def test_it_is_not_read_without_the_other_point() -> None:
    model = create(small(), init_seed=1)
    with pytest.raises(PlumblineError, match=r"'locality'.*at 1"):
        read_all(model, [ProbeSpec(name="locality", at=(0.5,), options={"against": 1.0})], tokens(model), "float32")

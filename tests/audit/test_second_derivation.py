"""Rows of the last reading derived a second time, from the printed numbers alone and without the studies' code."""

import csv
import itertools
import math
import statistics
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from plumbline.audit.audit_csv import build, findings

ATTENTION = {"softpick", "sigmoid_attn", "diff_attn"}  # rows that need not sum to one: 4.4, B.5, E.2


@pytest.fixture(scope="module")
def printed(repository):
    """File of printed numbers -> row -> column -> text."""

    def read(study, name):
        path = repository / "studies" / study / "published" / f"{name}.csv"
        with path.open(newline="", encoding="utf-8") as handle:
            rows = list(csv.DictReader(handle))
        key = next(iter(rows[0]))
        return {row[key]: row for row in rows}

    return read


@pytest.fixture(scope="module")
def recomputed(repository):
    rows = pd.DataFrame(build((), repository)).set_index(["study", "id"])
    return lambda study, name: rows.loc[(study, name), "recomputed"]


def wins(mean, sd):
    """How many of three differences with this mean and sd can be above zero, by a grid of their two free numbers."""
    counts = set()
    for turn in range(3600):
        angle = math.tau * turn / 3600
        x, y = math.cos(angle) * sd, math.sin(angle) * sd  # the sum of squares of deviations is 2 sd^2
        three = [mean + x + y / math.sqrt(3), mean - x + y / math.sqrt(3), mean - 2 * y / math.sqrt(3)]
        counts.add(sum(value > 0 for value in three))
    return counts


def test_transfer(printed, recomputed):
    t2, works, labels = (printed("transfer", name) for name in ("table2", "cited_works", "table1"))
    z = {row: float(cells["z"]) for row, cells in t2.items()}
    years = [int(cells["year"]) for cells in works.values()]
    with_heading = {row: cells["heading"] for row, cells in works.items() if cells["heading"]}
    seeds = [0.4820, 0.4815, 0.4853]
    draws = list(itertools.product(seeds, repeat=3))
    gap = float(t2["softpick"]["climb_avg"]) - float(t2["baseline"]["climb_avg"])
    spread = math.sqrt(sum(sum(1.0 if i == j else 0.1 for j in range(12)) for i in range(12)) / 12)
    expected = {
        "years_later": 2026 - 2021,
        "catalogue_first": min(years),
        "catalogue_last": max(years),
        "works_before": len([year for year in years if year < 2021]),
        "works_after": len([year for year in years if year > 2021]),
        "disjoint": 1,
        "softpick_criterion": int(0.34 > 0.5),
        "soft_hard_headings": sum(labels[row]["soft_hard"] == kind for row, kind in with_heading.items()),
        "unnormalised_better": sum(z[row] > 2 for row in ATTENTION),
        "post_ln_degrades": int(z["hybrid_norm"] < -2),
        "significant_improvers_e3": sum(value > 2 for value in z.values()),
        "shuffle_seeds": 1,
        "noise_floor_references": 3,
        "tasks_rows": 12,
        "t2_softpick_seed": 0.4922,
        "flops_times": 4,
        "stouffer_correlated_qknorm": stats.norm.sf(2.68 / spread),
        "stouffer_correlated_softpick": stats.norm.sf(2.85 / spread),
        "qknorm_seed": 0.4829 + 4.39 * math.sqrt((0.00208**2 + 0.00146**2) / 3),
        "qknorm_disjoint": 1,
        "bootstrap_z_value": gap / statistics.pstdev(seeds),
        "bootstrap_z_mean": gap / statistics.pstdev(sum(sample) / 3 for sample in draws),
    }
    assert {name: recomputed("transfer", name) for name in expected} == pytest.approx(expected, rel=1e-6)


def test_transfer_at_3b_and_in_its_words(printed, recomputed):
    t2, t3, t6, t7 = (printed("transfer", f"table{number}") for number in (2, 3, 6, 7))
    better = {row: float(cells["delta_3b"]) for row, cells in t3.items() if float(cells["delta_3b"]) > 0}
    significant = {row for row, cells in t2.items() if float(cells["p_bonf"] or cells["p_bonf_bound"] or 1) < 0.05}
    expected = {
        "survivors_3b": sum(19 * 2 * stats.norm.sf(delta / 0.00208) <= 0.05 for delta in better.values()),
        "every_sign": len(set(t3) - {"baseline"}),
        "exception_of_table_3": len({"hybrid_norm"} & set(t3)),
        "noise_band": 2 * 0.00208,
        "winners_e1": len({"softpick", "qknorm"} & significant),
        "failures_app_e": len({row for row in significant if float(t2[row]["z"]) < 0}),
        "losses_of_r6": len({"attnres", "layerscale"} & set(t7)),
        "references_intro": len({"baseline", "qknorm", "softpick"}),
    }
    assert {name: recomputed("transfer", name) for name in expected} == pytest.approx(expected, rel=1e-6)
    assert not set(t6) & set(t3) and expected["survivors_3b"] == 7


def test_premature(printed, recomputed):
    t2, t4 = printed("premature", "table2"), printed("premature", "table4")
    possible = [
        wins(float(row["delta_pp_mean"]), float(row["delta_pp_std"])) for key, row in t2.items() if key != "mean"
    ]
    expected = {
        "wins": (sum(map(min, possible)) + sum(map(max, possible))) / 2,
        "geglu_suppresses": float(t4["gpt_geglu"]["ppl_reduction"]) < float(t4["gpt_swiglu"]["ppl_reduction"]),
        "bilinear_rows": 960 // 15,
        "ffn_0p7b": 4 * 1536,
        "gated_sharp": sum(entropy < 0.729 for entropy in (0.708, 0.725, 0.723, 0.729)),
        "sharp_before_mature": 0,
    }
    assert sum(map(min, possible)) == 11 and sum(map(max, possible)) == 17
    assert {name: recomputed("premature", name) for name in expected} == expected


def test_query_free(recomputed):
    # Squared singular values by the density sqrt(x (4 - x)) / (2 pi x), clamped to 1.
    def density(x):
        return math.sqrt(x * (4 - x)) / (2 * math.pi * x)

    trace = integrate.quad(lambda x: x * density(x), 0, 1)[0] + integrate.quad(density, 1, 4)[0]
    c, d, epsilon = 0.7, 768, 0.01
    z = c / math.sqrt(c**2 / d + epsilon)
    s = z * math.sqrt(epsilon) / math.sqrt(d - z**2)  # as the proof has it
    expected = {
        "clamped_trace": trace,
        "clamping_cost": 1,
        "lemma_8_2_step": s / c,
        "slice_entries": len(range(64, 2 * 64 + 1)),
        "unchanged_scale": 1,
        "unchanged_floor": 6e-5,
        "linear_distance": int(1 - math.cos(math.asin(0.11)) > 0.009),
        "mlp_distance_low": 1 - math.cos(math.asin(0.04)),
        "mlp_distance_high": 1 - math.cos(math.asin(0.06)),
        "theorem_8_3_inverse": 1,
    }
    assert {name: recomputed("query_free", name) for name in expected} == pytest.approx(expected, rel=1e-6)


def test_theorem_8_3_where_an_entry_of_v_is_zero():
    """Eq. 10 with A = [[1, 0], [1, 1]], MLP = 0 is solved by D' = Diag(1, 0), MLP' = 0; v = (0, 1) has A^t v = 1."""
    assert (1 * 0 + 1 * 1, 0 * 0 + 1 * 1) == (1, 1)
    for x in ((0.4, 2.0), (-3.0, 1.0)):
        mean = sum(x) / 2
        sd = math.sqrt(sum((value - mean) ** 2 for value in x) / 2 + 0.01)
        a, b = ((value - mean) / sd for value in x)
        assert (1 * a, 0 * b) == pytest.approx((1 * a + 0 * b, 1 * a + 1 * b), abs=1e-12)


def test_key_norms(printed, recomputed):
    prose = {name: float(row["printed"]) for name, row in printed("key_norms", "prose").items()}
    expected = {
        "last_layer": 22 - 1,
        "middle_layer_low": 22 // 2 - 1,
        "middle_layer_high": 22 // 2,
        "doubled_by": math.hypot(6, 8) / math.hypot(3, 4),
        "halved_by": math.hypot(1.5, 2) / math.hypot(3, 4),
        "steps_twice": 1000,
        "layers_shown": int(len({0, 1, 10, 11, 20, 21}) > 22 / 2),
        **{f"softmax1_pct_{k}": 100 * math.exp(k) / sum(map(math.exp, range(3))) for k in range(3)},
        **{f"softmax{i}_sum": sum(prose[f"softmax{i}_{k}"] for k in range(3)) for i in (1, 2)},
    }
    assert {name: recomputed("key_norms", name) for name in expected} == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("study", ["transfer", "premature"])
def test_references(printed, recomputed, study):
    for name, row in printed(study, "references").items():
        assert recomputed(study, f"reference_{name}") == int(row["stands"])


@pytest.mark.parametrize("study", ["transfer", "premature", "query_free"])
def test_repeats(printed, recomputed, study):
    for name, row in printed(study, "repeats").items():
        cell = float(printed(study, row["table"])[row["row"]][row["column"]])
        again = float(row["printed"])
        assert recomputed(study, f"repeat_{name}") == pytest.approx(math.copysign(cell, again), rel=1e-9), name
        assert float(f"{abs(cell):.{max(0, -Decimal(row['printed']).as_tuple().exponent)}f}") == abs(again)


def test_what_findings_about_words_say_of_formulas(repository):
    """Eq. 16 of premature has the gradients of the loss; a product's rank is at most each factor's (query_free 8.5)."""
    ids = {finding.id for study in ("premature", "query_free") for finding in findings(study, repository)}
    assert {"gradients_of_the_logits", "tokens_of_all_runs", "name_of_the_rank_inequality"} <= ids
    rng = np.random.default_rng(0)
    x, query, key, adjoint = (rng.standard_normal(shape) for shape in ((5, 4), (4, 2), (4, 2), (5, 5)))

    def loss(weights):  # linear in the logits, so that its derivative by them is the adjoint
        return float((adjoint * (x @ weights @ key.T @ x.T)).sum() / math.sqrt(2))

    moved = np.zeros_like(query)
    moved[1, 0] = 1e-3
    assert (loss(query + moved) - loss(query - moved)) / 2e-3 == pytest.approx(
        (x.T @ adjoint @ x @ key / math.sqrt(2))[1, 0]
    )
    first, other = np.diag([1.0, 1.0, 0.0]), np.diag([0.0, 1.0, 1.0])
    ranks = [int(np.linalg.matrix_rank(each)) for each in (first, other, first @ other)]
    assert ranks[0] + ranks[1] - 3 == ranks[2] < min(ranks[:2])

"""The query_free study's eliminations on random weights: over shapes, types and seeds; and without a premise."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from plumbline.studies.query_free.theory import query_elimination as eliminate
from plumbline.studies.query_free.theory import query_elimination_checks as module
from plumbline.studies.query_free.theory.plain_transformer import (
    Architecture,
    ModelWeights,
    attention,
    draw_weights,
    forward,
    relative_difference,
    with_query,
)
from plumbline.studies.query_free.theory.query_elimination_checks import WeightChange, query_elimination_checks
from plumbline.studies.query_free.theory.theorem_check import ROUNDING, ResidualWithoutPremise, TheoremCheck

#: Rounding of a product with an inverse grows with the condition number; this many times eps is allowed for each.
ROOM = 100


@st.composite
def models(
    draw: st.DrawFn,
    *,
    heads: int | None = None,
    tied: bool | None = None,
    ffn_skip: bool | None = None,
    shared: bool = False,
    any_norm: bool = False,
    **form: bool,
) -> tuple[ModelWeights, Architecture, np.ndarray, float]:
    """Weights, a form, tokens, and the largest relative residual that is rounding. What is None is drawn."""
    heads = draw(st.integers(1, 4)) if heads is None else heads
    context, seed = draw(st.integers(1, 7)), draw(st.integers(0, 2**32 - 1))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    weights = draw_weights(
        seed,
        layers=draw(st.integers(1, 3)),
        heads=heads,
        groups=heads,
        head_width=2 * draw(st.integers(1, 4)),
        context=context,
        tied=draw(st.booleans()) if tied is None else tied,
        shared=shared,
        dtype=dtype,
    )
    chosen = Architecture(
        heads=heads,
        groups=heads,
        causal=draw(st.booleans()),
        ffn_skip=draw(st.booleans()) if ffn_skip is None else ffn_skip,
        norm=any_norm and draw(st.booleans()),
        **form,
    )
    tokens_BT = np.random.default_rng(seed).integers(0, len(weights.embedding_VD), (2, context))
    worst = max(float(np.linalg.cond(layer.query_DD.astype(np.float64))) for layer in weights.layers)
    assume(worst < 1e4)
    return weights, chosen, tokens_BT, ROOM * worst * float(np.finfo(dtype).eps)


def measure_residual(
    eliminated_weights: ModelWeights, case: tuple[ModelWeights, Architecture, np.ndarray, float]
) -> float:
    """The relative residual of a model's logits, and that nothing was widened on the way."""
    weights, form, tokens_BT, _ = case
    logits_BTV = forward(eliminated_weights, tokens_BT, form)
    assert logits_BTV.dtype == weights.embedding_VD.dtype
    return relative_difference(logits_BTV, forward(weights, tokens_BT, form))


def is_rounding(weights: ModelWeights, case: tuple[ModelWeights, Architecture, np.ndarray, float]) -> bool:
    residual = measure_residual(weights, case)
    strict = case[0].embedding_VD.dtype == np.float32 or residual < ROUNDING
    return residual < case[3] and strict


def identities(weights: ModelWeights, layers: range | None = None) -> bool:
    """Whether W_Q is I, to the bit, in some layers (all of them)."""
    chosen = range(len(weights.layers)) if layers is None else layers
    return all(np.array_equal(weights.layers[i].query_DD, np.eye(weights.width)) for i in chosen)


@given(models(heads=1, any_norm=True))
def test_proposition_4_1(case):
    eliminated_weights = eliminate.single_head(case[0])
    assert is_rounding(eliminated_weights, case)
    assert identities(eliminated_weights)
    assert all(np.array_equal(layer.output_DD, layer.query_DD) for layer in eliminated_weights.layers)


@given(models(any_norm=True), st.integers(0, 1000))
def test_proposition_4_2(case, seed):
    weights, form = case[:2]
    width = weights.width // form.heads
    blocks = np.random.default_rng(seed).standard_normal((form.heads, width, width)).astype(weights.embedding_VD.dtype)
    assume(np.linalg.cond(blocks.astype(np.float64)).max() < 100)
    eliminated_weights = eliminate.block_diagonal(weights, list(blocks))
    assert measure_residual(eliminated_weights, case) < 100 * case[3]
    assert not np.allclose(eliminated_weights.layers[0].query_DD, weights.layers[0].query_DD)


@given(models(), st.integers(0, 2))
def test_theorem_4_1(case, layer):
    assume(layer < len(case[0].layers))
    eliminated_weights = eliminate.one_layer(case[0], layer)
    assert is_rounding(eliminated_weights, case)
    assert identities(eliminated_weights, range(layer, layer + 1)) and eliminated_weights.head_DV is not None


@given(models(ffn_skip=False))
def test_theorem_4_2(case):
    eliminated_weights = eliminate.attention_skip_only(case[0])
    assert is_rounding(eliminated_weights, case)
    assert identities(eliminated_weights) and (eliminated_weights.head_DV is None) == (case[0].head_DV is None)


@given(models(shared=True))
def test_theorem_4_3(case):
    eliminated_weights = eliminate.weight_shared(case[0])
    assert is_rounding(eliminated_weights, case)
    assert identities(eliminated_weights)
    for layer in eliminated_weights.layers[1:]:  # they are still one block
        assert all(
            np.array_equal(a, b) for a, b in zip(asdict(layer).values(), asdict(eliminated_weights.layers[0]).values())
        )


@given(models(tied=True), st.integers(0, 2))
def test_remark_4_a_tied_head_stays_tied(case, layer):
    weights, form, tokens_BT, _ = case
    assume(layer < len(weights.layers))
    assert measure_residual(replace(eliminate.one_layer(weights, layer), head_DV=None), case) > 1e-3
    queries = [np.linalg.qr(layer_weights.query_DD)[0] for layer_weights in weights.layers]
    orthogonal = with_query(weights, queries)
    eliminated_weights = replace(eliminate.one_layer(orthogonal, layer), head_DV=None)
    assert is_rounding(
        eliminated_weights, (orthogonal, form, tokens_BT, ROOM * 10 * float(np.finfo(queries[0].dtype).eps))
    )


@given(models(ffn_skip=False, rotary=True), models(ffn_skip=False, qk_norm=True))
def test_theorem_4_2_does_without_queries_and_keys(rotary, normed):
    for case in (rotary, normed):
        assert is_rounding(eliminate.attention_skip_only(case[0]), case)


def test_a_singular_query_has_no_inverse_to_go_on_with():
    weights = draw_weights(0, layers=2, heads=2, groups=2, head_width=2, context=3, tied=True)
    singular = with_query(weights, [np.diag([1.0, 2.0, 3.0, 0.0])] * 2)
    for construction in (eliminate.attention_skip_only, eliminate.weight_shared, lambda it: eliminate.one_layer(it, 1)):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            construction(singular)


@pytest.mark.parametrize("causal", [True, False])
def test_the_reference_is_torchs_attention_and_norm(causal):
    """Against torch's own functions, which share no line with it."""
    weights = draw_weights(3, layers=1, heads=4, groups=2, head_width=6, context=5, tied=False)
    layer, x_TD = weights.layers[0], np.random.default_rng(1).standard_normal((5, 24))
    form = Architecture(heads=4, groups=2, causal=causal)
    x = torch.from_numpy(x_TD)
    q, k, v = (
        (x @ torch.from_numpy(weight)).unflatten(-1, (-1, 6)).transpose(0, 1)[None]
        for weight in (layer.query_DD, layer.key_DN, layer.value_DN)
    )
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    attended = out[0].transpose(0, 1).flatten(1).numpy()
    np.testing.assert_allclose(attention(x_TD[None], layer, form)[0], attended, rtol=1e-12)
    y = x + torch.from_numpy(attended @ layer.output_DD)
    y = y + torch.nn.functional.gelu(y @ torch.from_numpy(layer.up_DF)) @ torch.from_numpy(layer.down_FD)
    starts = replace(weights, embedding_VD=x_TD, positions_TD=np.zeros_like(x_TD))
    logits_TV = forward(starts, np.arange(5)[None], form)[0]
    np.testing.assert_allclose(logits_TV, (y @ torch.from_numpy(weights.head_DV)).numpy(), rtol=1e-11)


@pytest.fixture(scope="module")
def rows() -> list[TheoremCheck]:
    return query_elimination_checks()


def test_every_statement_holds_and_fails_without_each_premise(rows):
    assert [row.id for row in rows] == [
        *("prop_4_1", "prop_4_2", "thm_4_1", "remark_4", "thm_4_3", "thm_4_2_untied", "thm_4_2_tied"),
        *("abstract_key", "abstract_value", "section_6_rotary", "section_6_grouped", "section_6_qk_norm"),
    ]
    for row in rows:
        assert row.holds, row
        assert 0 < row.residual < ROUNDING
        assert bool(row.broken) != row.id.startswith("section_6")
    missing = {broken.premise for row in rows for broken in row.broken}
    assert {
        "LayerNorm",
        "W_Q singular",
        "W_K singular",
        "W_V singular",
        "layers not shared",
        "rotary positions",
        "QK-norm",
        "several heads",
    } < missing


def test_a_check_is_seen_to_fail(rows):
    """A construction that forgets one of its steps, a premise that is none, and residuals that are not numbers."""

    def forgets_the_output(weights: ModelWeights, form: Architecture) -> ModelWeights:
        eliminated_weights = eliminate.attention_skip_only(weights)
        layers = [replace(new, output_DD=old.output_DD) for new, old in zip(eliminated_weights.layers, weights.layers)]
        return replace(eliminated_weights, layers=tuple(layers))

    assert max(WeightChange(change=forgets_the_output, form={"ffn_skip": False}).residuals()) > 0.01
    good = rows[0]
    assert not replace(good, residual=1e-8).holds and not replace(good, residual=float("nan")).holds
    assert not replace(good, broken=(*good.broken, ResidualWithoutPremise(premise="none", residual=1e-13))).holds
    assert not replace(good, broken=(ResidualWithoutPremise(premise="none", residual=float("nan")),)).holds


def test_rows_are_the_same_twice(monkeypatch, rows):
    monkeypatch.setattr(module, "SHAPES", module.SHAPES[:1])
    assert query_elimination_checks() == query_elimination_checks() != rows

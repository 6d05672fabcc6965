"""Checks the eliminations of `query_elimination` on random weights: the residuals they leave, with and without
premises.

Source: query_free study, section 4, Remarks 1 and 4, section 6 (what the results extend to), Table 1. Every check is of
a whole model's logits on random tokens, in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import query_elimination as eliminate
from .plain_transformer import Architecture, ModelWeights, draw_weights, forward, relative_difference, with_query
from .theorem_check import ResidualWithoutPremise, TheoremCheck

#: (layers, heads, head width, context, causal); one head, as wide as all of them, where a statement is of one. Layers
#: are two or more, so that they can differ.
SHAPES = ((2, 2, 4, 5, True), (2, 4, 4, 9, True), (3, 3, 8, 12, False), (4, 4, 8, 16, True), (6, 4, 8, 24, False))
SEEDS = (0, 1, 2)
SEQUENCES = 2
TRIED = (
    f"{len(SHAPES)} shapes (layers 2 to 6, width 8 to 32, context 5 to 24, causal and not), seeds "
    f"{', '.join(map(str, SEEDS))}, float64"
)

#: What the abstract names in addition to W_Q.
ANY_OF_THREE: dict[str, eliminate.Eliminated] = {"key": "key_DN", "value": "value_DN"}

#: Weights of a model of some form -> other weights.
Change = Callable[[ModelWeights, Architecture], ModelWeights]


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightChange:
    """A change of weights that should leave the logits of a model of some form unchanged.

    `before` prepares the drawn weights (None: they are used as drawn); `tied`, `shared`, `one_head` and `grouped` (two
    query heads for each head of keys, where their number is even) say how they are drawn.
    """

    change: Change
    form: dict[str, Any]
    before: Change | None = None
    tied: bool = False
    shared: bool = False
    one_head: bool = False
    grouped: bool = False

    def residuals(self) -> Iterator[float]:
        """Yield the relative difference of the logits for each shape and seed."""
        for layers, heads, head_width, context, causal in SHAPES:
            if self.one_head:
                heads, head_width = 1, heads * head_width
            groups = heads // 2 if self.grouped and heads % 2 == 0 else heads
            sizes = {"layers": layers, "heads": heads, "groups": groups, "head_width": head_width, "context": context}
            form = Architecture(heads=heads, groups=groups, causal=causal, **self.form)
            for seed in SEEDS:
                weights = draw_weights(seed, tied=self.tied, shared=self.shared, **sizes)
                weights = weights if self.before is None else self.before(weights, form)
                shape = (SEQUENCES, context)
                tokens_BT = np.random.default_rng([seed, 1]).integers(0, len(weights.embedding_VD), shape)
                yield relative_difference(
                    forward(self.change(weights, form), tokens_BT, form), forward(weights, tokens_BT, form)
                )


def query_elimination_checks() -> list[TheoremCheck]:
    """Check each statement of section 4, and what section 6 says that they extend to; one row for each."""
    return [*_check_within_attention(), *_one_basis(), *_many_bases(), *_other_weights(), *_check_extensions()]


def _check_within_attention() -> Iterator[TheoremCheck]:
    """Within attention: section 4.1."""
    alone = WeightChange(change=_ignore_form(eliminate.single_head), form={"norm": True}, one_head=True)
    yield _row(
        "prop_4_1",
        "one head: W_Q and W_O go into W_K W_Q^t and W_V W_O",
        "Prop 4.1",
        "4.1",
        alone,
        {
            "several heads": replace(alone, one_head=False),
            "rotary positions": replace(alone, form={"norm": True, "rotary": True}),
            "QK-norm": replace(alone, form={"norm": True, "qk_norm": True}),
        },
    )
    heads = WeightChange(change=_by_head, form={"norm": True})
    yield _row(
        "prop_4_2",
        "W_Q D, W_K (D^t)^-1 with a block of D for each head",
        "Prop 4.2, App 8.1",
        "4.1",
        heads,
        {
            "D not block-diagonal": replace(heads, change=_across_heads),
            "a block of D singular": replace(heads, change=_by_singular_head),
            "rotary positions": replace(heads, form={"norm": True, "rotary": True}),
            "QK-norm": replace(heads, form={"norm": True, "qk_norm": True}),
        },
    )


def _one_basis() -> Iterator[TheoremCheck]:
    """The stream in one other basis: sections 4.2 and 4.4, Remark 4."""
    untied = WeightChange(change=_middle, form={})
    yield _row(
        "thm_4_1",
        "one layer's W_Q becomes I; skips around both, head untied",
        "Thm 4.1, App 8.6",
        "4.2",
        untied,
        {
            "LayerNorm": replace(untied, form={"norm": True}),
            "W_Q singular": replace(untied, change=_middle_by_least_squares, before=_make_queries_singular),
            "head tied, and kept tied": replace(untied, change=_middle_kept_tied, tied=True),
        },
    )
    tied = WeightChange(change=_middle_kept_tied, form={}, tied=True)
    yield _row(
        "remark_4",
        "the same with a tied head kept tied, W_Q orthogonal",
        "Remark 4",
        "4.2",
        replace(tied, before=_make_queries_orthogonal),
        {"W_Q not orthogonal": tied},
    )
    shared = WeightChange(change=_ignore_form(eliminate.weight_shared), form={}, shared=True)
    yield _row(
        "thm_4_3",
        "the W_Q that all layers share becomes I; skips around both",
        "Thm 4.3, Lemma 8.6, App 8.6",
        "4.4",
        shared,
        {
            "layers not shared": replace(shared, before=_own_queries),
            "LayerNorm": replace(shared, form={"norm": True}),
            "W_Q singular": replace(
                shared, change=_by_least_squares(eliminate.weight_shared), before=_make_queries_singular
            ),
        },
    )


def _many_bases() -> Iterator[TheoremCheck]:
    """A basis for each layer: section 4.3."""
    every = WeightChange(change=_ignore_form(eliminate.attention_skip_only), form={"ffn_skip": False})
    broken = {
        "a skip around the MLP (Remark 1)": replace(every, form={}),
        "LayerNorm": replace(every, form={"ffn_skip": False, "norm": True}),
        "W_Q singular": replace(
            every, change=_by_least_squares(eliminate.attention_skip_only), before=_make_queries_singular
        ),
    }
    for head, tied in (("untied", False), ("tied", True)):
        yield _row(
            f"thm_4_2_{head}",
            f"every W_Q becomes I; skip around attention only, head {head}",
            "Thm 4.2, Lemma 8.5, App 8.6",
            "4.3",
            replace(every, tied=tied),
            {premise: replace(case, tied=tied) for premise, case in broken.items()},
        )


def _other_weights() -> Iterator[TheoremCheck]:
    """The abstract: one of the query, key or value weights; the theorems speak of the query's alone."""
    for name, eliminated in ANY_OF_THREE.items():
        letter = name[0].upper()
        change = _make_elimination(eliminated)
        intact = WeightChange(change=change, form={"ffn_skip": False}, tied=True)
        broken = {
            "a skip around the MLP": replace(intact, form={}),
            "LayerNorm": replace(intact, form={"ffn_skip": False, "norm": True}),
            f"W_{letter} singular": replace(
                intact, change=_make_elimination(eliminated, eliminate.least_squares), before=_make_singular(eliminated)
            ),
        }
        statement = f"every W_{letter} becomes I, as W_Q in Theorem 4.2; skip around attention only, head tied"
        yield _row(f"abstract_{name}", statement, "abstract, sec 4.3", "", intact, broken)


def _make_elimination(eliminated: eliminate.Eliminated, divide: eliminate.Divide = np.linalg.solve) -> Change:
    return lambda weights, form: eliminate.attention_skip_only(weights, divide, eliminated)


def _make_singular(eliminated: eliminate.Eliminated) -> Change:
    def remove_direction(weights: ModelWeights, form: Architecture) -> ModelWeights:
        layers = [
            replace(layer, **{eliminated: _without_a_direction(getattr(layer, eliminated))}) for layer in weights.layers
        ]
        return replace(weights, layers=tuple(layers))

    return remove_direction


def _check_extensions() -> Iterator[TheoremCheck]:
    """Section 6: attention may do what it likes with X W_Q, X W_K and X W_V. None of these breaks a premise."""
    every = WeightChange(change=_ignore_form(eliminate.attention_skip_only), form={"ffn_skip": False}, tied=True)
    kinds = {
        "rotary": ("rotary positions", replace(every, form={"ffn_skip": False, "rotary": True})),
        "grouped": ("keys and values shared by two heads", replace(every, grouped=True)),
        "qk_norm": ("QK-norm", replace(every, form={"ffn_skip": False, "qk_norm": True})),
    }
    for name, (label, extended) in kinds.items():
        yield _row(f"section_6_{name}", f"Theorem 4.2 with {label}", "Lemma 3.1, sec 6", "", extended, {})


def _row(
    id: str, statement: str, source: str, section: str, intact: WeightChange, broken: dict[str, WeightChange]
) -> TheoremCheck:
    """The largest residual with its premises, the smallest without each. What is not a number stays none."""
    return TheoremCheck(
        id=id,
        statement=statement,
        source=source,
        section=section,
        residual=float(np.max(list(intact.residuals()))),
        broken=tuple(
            ResidualWithoutPremise(premise=name, residual=float(np.min(list(case.residuals()))))
            for name, case in broken.items()
        ),
        tried=TRIED,
    )


def _ignore_form(construction: Callable[[ModelWeights], ModelWeights]) -> Change:
    return lambda weights, form: construction(weights)


def _by_least_squares(construction: Callable[[ModelWeights, eliminate.Divide], ModelWeights]) -> Change:
    """What is left to try where Theta has no inverse."""
    return lambda weights, form: construction(weights, eliminate.least_squares)


def _by_head(weights: ModelWeights, form: Architecture) -> ModelWeights:
    return eliminate.block_diagonal(weights, _blocks(weights, form))


def _by_singular_head(weights: ModelWeights, form: Architecture) -> ModelWeights:
    first, *others = _blocks(weights, form)
    return eliminate.block_diagonal(weights, [_without_a_direction(first), *others], eliminate.least_squares)


def _across_heads(weights: ModelWeights, form: Architecture) -> ModelWeights:
    return eliminate.query_key_basis(weights, _draw_invertible(weights.width, 0))


def _blocks(weights: ModelWeights, form: Architecture) -> list[np.ndarray]:
    return [_draw_invertible(weights.width // form.heads, head) for head in range(form.heads)]


def _middle(weights: ModelWeights, form: Architecture, divide: eliminate.Divide = np.linalg.solve) -> ModelWeights:
    return eliminate.one_layer(weights, len(weights.layers) // 2, divide)


def _middle_by_least_squares(weights: ModelWeights, form: Architecture) -> ModelWeights:
    return _middle(weights, form, eliminate.least_squares)


def _middle_kept_tied(weights: ModelWeights, form: Architecture) -> ModelWeights:
    return replace(_middle(weights, form), head_DV=None)


def _make_queries_singular(weights: ModelWeights, form: Architecture) -> ModelWeights:
    return with_query(weights, [_without_a_direction(layer.query_DD) for layer in weights.layers])


def _make_queries_orthogonal(weights: ModelWeights, form: Architecture) -> ModelWeights:
    return with_query(weights, [np.linalg.qr(layer.query_DD)[0] for layer in weights.layers])


def _own_queries(weights: ModelWeights, form: Architecture) -> ModelWeights:
    """Layers that share all but W_Q, so that one basis is no longer every layer's."""
    queries = [np.roll(layer.query_DD, number, axis=0) for number, layer in enumerate(weights.layers)]
    return with_query(weights, queries)


def _draw_invertible(size: int, part: int) -> np.ndarray:
    """A random matrix, singular values from 1/2 to 2."""
    left_vectors, _, right_vectors = np.linalg.svd(np.random.default_rng([size, part]).standard_normal((size, size)))
    return (left_vectors * np.geomspace(0.5, 2.0, size)) @ right_vectors


def _without_a_direction(matrix_DD: np.ndarray) -> np.ndarray:
    """The same matrix with one direction, (1, ..., 1), sent to zero."""
    return matrix_DD - matrix_DD.mean(axis=0, keepdims=True)

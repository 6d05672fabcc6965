"""Computes Lemma 1 as numbers, for a head of the summary's model at its start and after its weights have grown or
shrunk.

Source: quack study, Mechanism 1 (section 3 of the paper that it sums up). Nothing is trained; weights, inputs and
updates are drawn, or the worst there are (`logit_change`).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from . import decoding_memory, logit_change
from .logit_change import HeadSizes, LemmaRow

#: Weight scales that are shown, in multiples of the start.
SHOWN = (0.125, 0.5, 1.0, 4.0, 32.0)

#: Rates at which a change is asked for its order: a factor of two apart.
SMALL = (1e-3, 5e-4)


def sizes(study: str) -> HeadSizes:
    """A head of multi-head attention at the summary's size, at the middle base rate and tau = 1."""
    paper = decoding_memory.paper(study)
    model = decoding_memory.find_model(paper, "mha")
    return HeadSizes(
        width=model.width,
        head_width=model.head_width,
        init_std=model.init_std,
        rate=float(paper.definition["recipe"]["optimizer"]["learning_rate"]),
        tau=1.0,
    )


@cache
def compute_rows(study: str) -> tuple[LemmaRow, ...]:
    """Every combination of weights, updates, norm, rates and scale."""
    return tuple(logit_change.rows(sizes(study), scales=SHOWN))


def power_of_the_rest(study: str) -> float:
    """The power of the rates by which what first order leaves out shrinks: 2 if first order is all there is to it."""
    these = sizes(study)
    steps = [
        logit_change.draw_head(these, weights, directions, seed=0)
        for weights in ("drawn", "rank one")
        for directions in ("random", "muon", "worst")
    ]
    rest = [
        max(float(np.abs(step.exact_change(rate, rate) - step.first_order(rate, rate)).max()) for step in steps)
        for rate in SMALL
    ]
    return math.log(rest[0] / rest[1]) / math.log(SMALL[0] / SMALL[1])

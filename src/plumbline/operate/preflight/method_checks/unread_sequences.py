"""Asks whether a gain is there on sequences that no run was to read, as well as on those of the validation loss.

Whoever read the sequences of the loss in training, in whatever way, gains on them and not on others. The gain of each
sequence is the difference of both arms' losses of it, so that how hard it is drops out.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtr

from plumbline.data.loader import Pack, batch_indices
from plumbline.specs.spec import RunSpec

#: Blocks of neighbouring sequences whose means are compared: neighbours are often of one document.
BLOCKS = 8
#: A gain is held to be of the loss's own sequences where less than this share of it is elsewhere ...
SHARE = 0.5
#: ... by a difference that chance alone makes so rarely.
LEVEL = 0.001


def unread(pack: Pack, *specs: RunSpec) -> np.ndarray:
    """List the sequences of a training pack that none of some runs was to read, in an order of chance."""
    read_S = np.zeros(pack.sequences, dtype=bool)
    for wanted, seed in {(spec.train.steps * spec.sequences_per_batch, spec.data_seed) for spec in specs}:
        if wanted >= pack.sequences:
            return np.zeros(0, dtype=np.int64)
        read_S[batch_indices(pack, seed, 0, wanted)] = True
    return np.random.default_rng(1).permutation(np.flatnonzero(~read_S))


def short(of_the_loss_S: np.ndarray, elsewhere_S: np.ndarray) -> str | None:
    """Say that a gain is not there on other sequences, if chance does not explain it; None else, or with too few.

    Args:
        of_the_loss_S, elsewhere_S: the gain of each sequence, in the order of their pack.
    """
    if min(len(of_the_loss_S), len(elsewhere_S)) < 2 * BLOCKS:
        return None
    ours, theirs = (
        np.array([part.mean() for part in np.array_split(each, BLOCKS)]) for each in (of_the_loss_S, elsewhere_S)
    )
    gain, other = float(of_the_loss_S.mean()), float(elsewhere_S.mean())
    if gain <= 0 or other >= SHARE * gain:
        return None
    spreads = ours.var(ddof=1) / BLOCKS, theirs.var(ddof=1) / BLOCKS
    error = math.sqrt(sum(spreads))
    freedom = sum(spreads) ** 2 / sum(one**2 / (BLOCKS - 1) for one in spreads) if error else math.inf
    if error and stdtr(freedom, -(gain - other) / error) > LEVEL:
        return None
    return f"{gain:.3g} on {len(of_the_loss_S):,} sequences of the loss, and {other:.3g} on {len(elsewhere_S):,}"

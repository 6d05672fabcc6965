"""The lower-copy score: how much the lower half of a model attends to where a token stood before."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import torch

from plumbline.model.decoder import Decoder
from plumbline.model.mixers._base import Mixer
from plumbline.model.visibility import Visibility
from plumbline.specs.spec import Precision
from plumbline.train.numerics import autocast


def nearest_previous(tokens_BT: torch.Tensor, separator: int | None = None) -> torch.Tensor:
    """Position j(i) of the nearest earlier occurrence of each token (B, T); -1 where there is none.

    The token that ends a document (`separator`) never counts as a repetition.
    """
    batch, time = tokens_BT.shape
    order_BT = tokens_BT.sort(dim=1, stable=True).indices  # equal tokens side by side, by position
    sorted_BT = tokens_BT.gather(1, order_BT)
    again_BT = sorted_BT[:, 1:] == sorted_BT[:, :-1]
    if separator is not None:
        again_BT &= sorted_BT[:, 1:] != separator
    found_BT = torch.full((batch, time), -1, dtype=torch.int64, device=tokens_BT.device)
    return found_BT.scatter(1, order_BT[:, 1:], torch.where(again_BT, order_BT[:, :-1], -1))


@torch.no_grad()
def lower_copy_score(
    model: Decoder, tokens_BT: torch.Tensor, *, precision: Precision = "float32", separator: int | None = None
) -> tuple[float, float]:
    """Mean attention to the nearest previous occurrence of the same token, and that mean under uniform attention.

    The mean is over the layers below L // 2, over their heads, and over all positions i that have such an occurrence
    j(i) (premature study, section 2: "lower-copy score"). Scores are in float32, sums in float64; a weight is
    exp(z_ij(i) - log sum_j exp z_ij), so weights that are not asked for are never kept. Uniform attention gives the
    mean of 1 / (i + 1). Both are not-a-number where no token comes twice.

    The last token of each row is a target only, as in training. Every rank of a sharded model must call this.

    Args:
        tokens_BT: whole sequences, one of which is fed at a time.
        separator: the token that ends a document.
    """
    inputs_BT = tokens_BT[:, :-1]
    j_BT = nearest_previous(inputs_BT, separator)
    positions = (j_BT >= 0).nonzero()[:, 1]
    if not len(positions):
        return math.nan, math.nan
    null = float((1.0 / (positions + 1).double()).mean())
    total = torch.zeros((), dtype=torch.float64, device=tokens_BT.device)
    count = 0
    half = model.spec.layers // 2
    assert half > 0, "a model of one layer has no lower half"
    training = model.training
    model.eval()
    with watched(model) as seen, autocast(precision, tokens_BT.device):
        for inputs_T, j_T in zip(inputs_BT, j_BT, strict=True):
            seen.clear()
            model(inputs_T[None])
            for layer in range(half):
                copied_HT = copied(model.blocks[layer].attention.mixer, *seen[layer], j_T)
                total += copied_HT.double().sum()
                count += copied_HT.numel()
    model.train(training)
    return float(total / count), null


def copied(
    mixer: Mixer, q_BHTW: torch.Tensor, k_BGTW: torch.Tensor, visibility: Visibility, j_T: torch.Tensor
) -> torch.Tensor:
    """Softmax weights (H, positions) of j(i) for those positions i of the one sequence that have one."""
    i_V = (j_T >= 0).nonzero()[:, 0]
    scores = []
    normalisers = []
    for start, stop in mixer.spans(q_BHTW.shape[2]):
        part = visibility.rows(start, stop)
        z_HQK = mixer.scores(q_BHTW[:, :, start:stop], k_BGTW[:, :, : part.key_positions_BK.shape[1]])[0]
        here_V = i_V[(i_V >= start) & (i_V < stop)]
        z_HQK = z_HQK + part.bias_B1QK(z_HQK.dtype)[0]
        normalisers.append(z_HQK.logsumexp(-1)[:, here_V - start])
        scores.append(z_HQK[:, here_V - start, j_T[here_V]])
    return (torch.cat(scores, dim=1) - torch.cat(normalisers, dim=1)).exp()


@contextlib.contextmanager
def watched(model: Decoder) -> Iterator[dict[int, tuple[torch.Tensor, torch.Tensor, Visibility]]]:
    """Layer -> queries, keys and visibility that its mixer was last given, for the time being."""
    seen: dict[int, tuple[torch.Tensor, torch.Tensor, Visibility]] = {}

    def see(layer: int):
        def note(_: torch.nn.Module, given: tuple) -> None:
            seen[layer] = (given[0], given[1], given[3])

        return note

    with contextlib.ExitStack() as stack:
        for layer in range(model.spec.layers // 2):
            handle = model.blocks[layer].attention.mixer.register_forward_pre_hook(see(layer))
            stack.callback(handle.remove)
        yield seen

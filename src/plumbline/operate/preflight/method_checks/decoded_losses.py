"""Computes the losses of held-out tokens that were not there yet: each is predicted from those before it alone.

A model that is decoded cannot have read what it is to predict, whatever opens a leak: its place, its value, the row
that it stands in, the batch, the layer or the width. So the loss of the same tokens read at once has to be that one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch

from plumbline.model.cache import DecodingCache
from plumbline.model.decoder import Decoder

#: Calls of a decoding at most, times the numbers of the model; and calls at least.
CALLS_TIMES_NUMBERS, FEWEST_CALLS = 2e10, 16
#: The loss of tokens read at once is below that of decoded ones by at most this share: in float32, and in bfloat16,
#: whose rounding moves single losses by hundredths.
SAME, SAME_HALF = 1e-4, 2e-3

#: The loss of a token of an untrained model is that of the decoded one within this, and this share of it: in float32,
#: through as many layers as are trained.
OFF, OFF_SHARE = 0.01, 0.002
#: Predictions whose logits there are at one time.
CHUNK = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodedLosses:
    """Losses of decoded tokens, nats.

    Attributes:
        places: which tokens of a row were predicted when they were not there yet.
        losses_BP: their losses, by row and place.
    """

    places: tuple[int, ...]
    losses_BP: np.ndarray


def cut_into_parts(length: int, numbers: int) -> list[int]:
    """Cut a sequence into the parts that are read one after another: single tokens, or as many calls as take seconds.

    Sizes of longer parts differ, so that their ends, where a prediction is made of what is there, fall anywhere.
    """
    calls = max(FEWEST_CALLS, int(CALLS_TIMES_NUMBERS / max(1, numbers)))
    if calls >= length:
        return [1] * length
    draw = torch.randperm(length - 1, generator=torch.Generator().manual_seed(length))[: calls - 1]
    ends = [0, *sorted(int(end) + 1 for end in draw), length]
    return [end - begin for begin, end in itertools.pairwise(ends)]


@torch.no_grad()
def decode_losses(model: Decoder, tokens_BT: torch.Tensor) -> DecodedLosses:
    """Decode all rows together, in float32 and evaluation mode; the loss of every token that follows a part's end."""
    tokens_BT, length = tokens_BT.to(model.embedding.device), tokens_BT.shape[1]
    sizes = cut_into_parts(length, sum(value.numel() for value in model.parameters()))
    cache, place, places, losses = DecodingCache(), 0, [], []
    for size in sizes:
        part_BT = tokens_BT[:, place : place + size]
        hidden_BTD = model.hidden(part_BT, model.context(part_BT, None, cache))
        place += size
        if place < length:
            places.append(place)
            losses.append(
                compute_cross_entropy(model.logits(hidden_BTD[:, -1:]), tokens_BT[:, place : place + 1])[:, 0]
            )
    return DecodedLosses(places=tuple(places), losses_BP=np.stack(losses, axis=1))


@torch.no_grad()
def compute_losses_at_once(model: Decoder, tokens_BT: torch.Tensor) -> np.ndarray:
    """Compute the loss (B, T - 1) of each token after its row's first, all of them read in one call of the model."""
    tokens_BT = tokens_BT.to(model.embedding.device)
    hidden_BTD = model.hidden(tokens_BT, model.context(tokens_BT, None, None))
    rows = []
    for hidden_TD, targets_T in zip(hidden_BTD[:, :-1], tokens_BT[:, 1:], strict=True):
        parts = zip(hidden_TD.split(CHUNK), targets_T.split(CHUNK), strict=True)
        rows.append(
            np.concatenate(
                [
                    compute_cross_entropy(model.logits(part_TD[None]), targets_of_part_T[None])[0]
                    for part_TD, targets_of_part_T in parts
                ]
            )
        )
    return np.stack(rows)


def compute_cross_entropy(logits_BTV: torch.Tensor, targets_BT: torch.Tensor) -> np.ndarray:
    """Cross-entropies (B, T), nats, in float64 by numpy: by no code that a component could have replaced for torch."""
    z_BTV = logits_BTV.detach().float().cpu().numpy().astype(np.float64)
    z_BTV -= z_BTV.max(axis=-1, keepdims=True)
    chosen_BT = np.take_along_axis(z_BTV, targets_BT.cpu().numpy()[..., None], axis=-1)[..., 0]
    return np.log(np.exp(z_BTV).sum(axis=-1)) - chosen_BT


def describe_early_tokens(at_once_BT: np.ndarray, decoded: DecodedLosses, *, half: bool) -> str | None:
    """State by how much tokens read at once are predicted better than decoded ones; None if that is rounding.

    Args:
        at_once_BT: losses of each token after its first, of the same rows.
    """
    places = np.array(decoded.places)
    better_BP = decoded.losses_BP - at_once_BT[:, places - 1]
    gain, mean_loss = float(better_BP.mean()), float(decoded.losses_BP.mean())
    if gain <= (SAME_HALF if half else SAME) * abs(mean_loss):
        return None
    row, place = np.unravel_index(int(better_BP.argmax()), better_BP.shape)
    return (
        f"read at once, {better_BP.size:,} tokens have a loss that is {gain:.3g} below that of the same tokens "
        f"decoded one after another ({mean_loss:.4g}), most of all token {decoded.places[place]} of sequence {row} (by "
        f"{float(better_BP.max()):.3g}): what it is to predict is read, or how much is to follow"
    )


def describe_difference(at_once_BT: np.ndarray, decoded: DecodedLosses) -> str | None:
    """State that a token read at once is predicted otherwise than decoded, better or worse; None if all are alike.

    What leaks into a model that is not trained makes no loss smaller. In float32.
    """
    places = np.array(decoded.places)
    far_BP = np.abs(at_once_BT[:, places - 1] - decoded.losses_BP)
    wrong_BP = ~(far_BP <= OFF + OFF_SHARE * np.abs(decoded.losses_BP))  # not a number is far
    if not wrong_BP.any():
        return None
    row, place = (int(each[0]) for each in wrong_BP.nonzero())
    return (
        f"token {decoded.places[place]} of row {row} in a batch of {len(far_BP)} is predicted otherwise from "
        f"{at_once_BT.shape[1] + 1} tokens that are read at once than from those before it alone (its loss is off by "
        f"{far_BP[row, place]:.2g})"
    )

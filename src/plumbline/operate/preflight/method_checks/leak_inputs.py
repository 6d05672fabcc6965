"""Makes the sequences in which leaks are looked for: like text, or of random tokens; in pairs equal before a cut."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import torch

#: Makes so many rows of so many tokens (B, T); the first row is the same in every batch of a length.
Source = Callable[[int, int], torch.Tensor]
#: Tokens that are copied together in a sequence like text, in turn.
SPANS = (3, 8)


def like_text(vocabulary: int) -> Source:
    """Make sequences in which tokens come back as in text: drawn by Zipf's law, half of them copied from what
    stands before, a few at a time.
    """

    weights_V = 1.0 / torch.arange(2, vocabulary + 2)

    def drawn(rows: int, length: int, generator: torch.Generator) -> torch.Tensor:
        tokens_BT = torch.multinomial(weights_V, rows * length, replacement=True, generator=generator).view(rows, -1)
        start = 0
        for span in itertools.cycle(SPANS):
            start += span
            if start + span > length:
                break
            from_B1 = torch.randint(0, start - span + 1, (rows, 1), generator=generator)
            tokens_BT[:, start : start + span] = tokens_BT.gather(1, from_B1 + torch.arange(span))
            start += span
        return tokens_BT * 7919 % vocabulary  # a prime: frequent tokens are not the first of the vocabulary

    return _with_one_first_row(drawn)


def uniform(vocabulary: int) -> Source:
    """Make sequences of tokens that are all equally likely."""
    return _with_one_first_row(
        lambda rows, length, generator: torch.randint(0, vocabulary, (rows, length), generator=generator)
    )


def _with_one_first_row(drawn: Callable[[int, int, torch.Generator], torch.Tensor]) -> Source:
    def source(rows: int, length: int) -> torch.Tensor:
        parts = [(1, 7), *([(rows - 1, 8)] if rows > 1 else [])]
        return torch.cat([drawn(many, length, torch.Generator().manual_seed(seed)) for many, seed in parts])

    return source


def cuts(length: int) -> list[int]:
    """Places at which inputs of a length are cut, in the order in which they are tried.

    The last token, the first past 64 and past half of the length, powers of two and their neighbours, where chunks of
    queries begin; then others, the same each time.
    """
    powers = [2**k for k in range(int(math.log2(max(length, 2))), 0, -1)]
    draw = torch.randint(1, max(length, 2), (16,), generator=torch.Generator().manual_seed(length)).tolist()
    chosen = [length - 1, 66, length // 2 + 1, *powers, *draw, 1, *(power + 1 for power in powers), length - 2]
    return [place for place in dict.fromkeys(chosen) if 0 < place < length]


def pairs(tokens_BT: torch.Tensor, places: Sequence[int], vocabulary: int) -> torch.Tensor:
    """Give rows 2k and 2k + 1 of a batch the same tokens before ``places[k]``, and another one there.

    From there on the second keeps its own. An odd batch's last row becomes the first again.
    """
    tokens_BT = tokens_BT.clone()
    rows = len(tokens_BT)
    for pair in range(rows // 2):
        place = places[pair % len(places)]
        one, two = tokens_BT[2 * pair], tokens_BT[2 * pair + 1]
        two[:place] = one[:place]
        if two[place] == one[place]:
            two[place] = (two[place] + 1) % vocabulary
    if rows % 2:
        tokens_BT[-1] = tokens_BT[0]
    return tokens_BT

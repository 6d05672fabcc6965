"""Looks for leaks: logits that depend on later tokens, or on other rows of the batch, in every way a model is called.

One call of a batch is asked several things at once. Its rows are pairs that are equal before a cut and different from
it on, so that what is written before the cut must be the same; where gradients are enabled, the gradient of some rows'
logits before their cut, by the embeddings from the cut on and by those of the other rows, must be exactly zero, which
sees a leak of any size. Its first row must have the logits that it has alone.

What is read comes from a `Source`: sequences like text, since a leak may open where tokens come back alone, or a run's
own held-out ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch

from plumbline.model.decoder import Decoder, create
from plumbline.specs.spec import ModelSpec

#: Makes so many rows of so many tokens (B, T); the first row is the same in every batch of a length.
Source = Callable[[int, int], torch.Tensor]
#: Tokens that are copied together in a sequence like text, in turn.
SPANS = (3, 8)
#: Logits agree within this share of their size (a tenth of the largest, at least 1): float32, in another order of sums.
TOLERANCE = 2e-4
#: The same for a batch of another size under bfloat16, whose numbers have 8 bits.
HALF_TOLERANCE = 5e-2
#: The length that is past the first chunk of queries of any mixer; what is longer takes time.
LONG = 40
#: Rows of a batch: alone, a pair, two pairs, and three with one left over.
BATCHES = (1, 2, 4, 7)


def make_text_source(vocabulary: int) -> Source:
    """Make sequences in which tokens come back as in text: drawn by Zipf's law, half of them copied from what
    stands before, a few at a time.
    """

    weights_V = 1.0 / torch.arange(2, vocabulary + 2)

    def draw(rows: int, length: int, generator: torch.Generator) -> torch.Tensor:
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

    return _fix_first_row(draw)


def make_uniform_source(vocabulary: int) -> Source:
    """Make sequences of tokens that are all equally likely."""
    return _fix_first_row(
        lambda rows, length, generator: torch.randint(0, vocabulary, (rows, length), generator=generator)
    )


def _fix_first_row(draw: Callable[[int, int, torch.Generator], torch.Tensor]) -> Source:
    def source(rows: int, length: int) -> torch.Tensor:
        parts = [(1, 7), *([(rows - 1, 8)] if rows > 1 else [])]
        return torch.cat([draw(many, length, torch.Generator().manual_seed(seed)) for many, seed in parts])

    return source


def list_cuts(length: int) -> list[int]:
    """Places at which inputs of a length are cut, in the order in which they are tried.

    The last token, the first past 64 and past half of the length, powers of two and their neighbours, where chunks of
    queries begin; then others, the same each time.
    """
    powers = [2**k for k in range(int(math.log2(max(length, 2))), 0, -1)]
    draw = torch.randint(1, max(length, 2), (16,), generator=torch.Generator().manual_seed(length)).tolist()
    chosen = [length - 1, 66, length // 2 + 1, *powers, *draw, 1, *(power + 1 for power in powers), length - 2]
    return [place for place in dict.fromkeys(chosen) if 0 < place < length]


def make_pairs(tokens_BT: torch.Tensor, places: Sequence[int], vocabulary: int) -> torch.Tensor:
    """Give rows 2k and 2k + 1 of a batch the same tokens before ``places[k]``, and another one there.

    From there on the second keeps its own. An odd batch's last row becomes the first again.
    """
    tokens_BT = tokens_BT.clone()
    rows = len(tokens_BT)
    for pair in range(rows // 2):
        place = places[pair % len(places)]
        first, second = tokens_BT[2 * pair], tokens_BT[2 * pair + 1]
        second[:place] = first[:place]
        if second[place] == first[place]:
            second[place] = (second[place] + 1) % vocabulary
    if rows % 2:
        tokens_BT[-1] = tokens_BT[0]
    return tokens_BT


@dataclass(frozen=True, kw_only=True, slots=True)
class Mode:
    """A way in which a model is called. `compiled`: code that checks for compilation finds it."""

    training: bool = False
    gradients: bool = False
    half: bool = False
    compiled: bool = False

    @property
    def text(self) -> str:
        """What a message adds; empty for the plainest way: evaluation, without gradients, in float32."""
        parts = {
            "in training mode": self.training,
            "with gradients enabled": self.gradients,
            "in bfloat16": self.half,
            "while it is compiled": self.compiled,
        }
        return " " + ", ".join(text for text, is_so in parts.items() if is_so) if any(parts.values()) else ""

    @contextmanager
    def of(self, model: Decoder) -> Iterator[None]:
        """Call `model` so in the block; it is in evaluation mode afterwards."""
        model.train(self.training)
        is_compiling = torch.compiler.is_compiling
        try:
            if self.compiled:
                torch.compiler.is_compiling = lambda: True
            device = model.embedding.device.type
            with (
                torch.set_grad_enabled(self.gradients),
                torch.autocast(device, dtype=torch.bfloat16) if self.half else nullcontext(),
            ):
                yield
        finally:
            torch.compiler.is_compiling = is_compiling
            model.eval()


#: The plainest first, so that what it shows is not reported of a longer one.
MODES = (
    *(
        Mode(half=half, training=training, gradients=gradients)
        for half, training, gradients in itertools.product((False, True), repeat=3)
    ),
    Mode(training=True, gradients=True, compiled=True),
)
#: As a model is trained, by whether in bfloat16.
TRAINED = {half: Mode(training=True, gradients=True, half=half) for half in (False, True)}


@dataclass(frozen=True, slots=True)
class Leak:
    """A leak: which check it fails (`causality` or `rows`), and words with the input that shows it."""

    check: str
    text: str


def create_moved_model(spec: ModelSpec) -> Decoder:
    """Build a model with every parameter moved off its start."""
    model = create(spec, init_seed=5)
    generator = torch.Generator().manual_seed(6)
    for value in model.parameters():
        value.data += 0.1 * torch.randn(value.shape, generator=generator)
    return model.eval()


def _look_once(
    model: Decoder, mode: Mode, tokens_BT: torch.Tensor, places: Sequence[int], alone_1TV: torch.Tensor | None = None
) -> Leak | torch.Tensor:
    """Look for a leak in one call of `make_pairs`; returns the first, or the first row's logits (1, T, V).

    Args:
        places: where the pairs are cut; an odd batch's last row, and a single one, at the last of them. The second row
            of a single pair, whose gradient is taken too, at the second of them if there are two.
        alone_1TV: the first row's logits without the others.
    """
    tokens_BT = tokens_BT.to(model.embedding.device)
    rows = len(tokens_BT)
    call_text = f"{mode.text} in a batch of {rows}" if rows > 1 else mode.text
    with mode.of(model):
        embedded_BTD, hidden_BTD = _call(model, mode, tokens_BT)
        read_BTD = hidden_BTD.detach()
        for pair in range(rows // 2):
            place = places[pair % len(places)]
            first_logits_1TV, second_logits_1TV = model.logits(
                read_BTD[2 * pair : 2 * pair + 2, :place]
            )  # of each token by itself
            if leak := _find_by_change(second_logits_1TV[None], first_logits_1TV[None], tokens_BT[2 * pair], call_text):
                return leak
        if mode.gradients:
            cuts = {min(2 * pair + pair % 2, rows - 1): places[pair % len(places)] for pair in range(max(1, rows // 2))}
            if rows == 2 and len(places) > 1:
                cuts[1] = places[1]
            if leak := _find_by_gradient(embedded_BTD, hidden_BTD, tokens_BT, cuts, call_text):
                return leak
        first_1TV = model.logits(read_BTD[:1])
        if alone_1TV is None:
            return first_1TV
        for row in dict.fromkeys((0, rows - 1 if rows % 2 else 0)):
            if leak := _find_beside_others(model.logits(read_BTD[row : row + 1]), alone_1TV, mode, row, tokens_BT):
                return leak
    return first_1TV


def find_leak_in_batch(model: Decoder, mode: Mode, tokens_BT: torch.Tensor, others_BT: torch.Tensor) -> Leak | None:
    """Look for a leak of one batch as it is, which is read again with rows that end as those of another batch do."""
    rows, length = tokens_BT.shape
    tokens_BT, changed_BT = tokens_BT.to(model.embedding.device), tokens_BT.clone()
    places = [place for place, _ in zip(itertools.cycle(list_cuts(length)), range(rows), strict=False)]
    for row, place in enumerate(places):
        changed_BT[row, place:] = others_BT[row, place:]
        if changed_BT[row, place] == tokens_BT[row, place]:
            changed_BT[row, place] = (changed_BT[row, place] + 1) % model.spec.vocabulary
    call_text = f"{mode.text} in a batch of {rows}"
    with mode.of(model):
        embedded_BTD, hidden_BTD = _call(model, mode, tokens_BT)
        changed_BTD = _call(model, mode, changed_BT.to(tokens_BT.device))[1].detach()
        for row, place in enumerate(places):
            expected_1TV, changed_1TV = (
                model.logits(each[row : row + 1, :place].detach()) for each in (hidden_BTD, changed_BTD)
            )
            if leak := _find_by_change(changed_1TV, expected_1TV, tokens_BT[row], call_text):
                return leak
        if mode.gradients:
            cuts = {row: place for row, place in enumerate(places) if row % 2 == 0}
            if leak := _find_by_gradient(embedded_BTD, hidden_BTD, tokens_BT, cuts, call_text):
                return leak
        alone_1TV = model.logits(_call(model, mode, tokens_BT[:1])[1].detach())
        return _find_beside_others(model.logits(hidden_BTD[:1].detach()), alone_1TV, mode, 0, tokens_BT)


def _call(model: Decoder, mode: Mode, tokens_BT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The embedded tokens, and what the head reads of them; both (B, T, D)."""
    embedded_BTD = model.embedding[tokens_BT].detach().requires_grad_(mode.gradients)
    return embedded_BTD, model.carried(embedded_BTD, model.context(tokens_BT, None, None))


def _find_by_change(
    changed_1TV: torch.Tensor, expected_1TV: torch.Tensor, tokens_T: torch.Tensor, call_text: str
) -> Leak | None:
    """Compare the logits before a cut, behind which tokens are others."""
    off = find_difference(changed_1TV, expected_1TV)
    if off is None:
        return None
    place, last = changed_1TV.shape[1], len(tokens_T) - 1
    tokens_text = f"token {place}" if place == last else f"tokens {place} to {last}"
    moved = f"moves the logits at token {off[0]}, which comes before it, by {off[1]:.2g}"
    return Leak("causality", f"{tokens_text} of {describe_tokens(tokens_T)} changed {moved}{call_text}")


def _find_beside_others(
    row_1TV: torch.Tensor, alone_1TV: torch.Tensor, mode: Mode, row: int, tokens_BT: torch.Tensor
) -> Leak | None:
    off = find_difference(row_1TV, alone_1TV, tolerance=HALF_TOLERANCE if mode.half else TOLERANCE)
    if off is None:
        return None
    text = (
        f"row {row} of a batch of {len(tokens_BT)}, {describe_tokens(tokens_BT[row])}, has other logits at token "
        f"{off[0]}"
    )
    return Leak("rows", f"{text} than alone (off by {off[1]:.2g}){mode.text}")


def _find_by_gradient(
    embedded_BTD: torch.Tensor, hidden_BTD: torch.Tensor, tokens_BT: torch.Tensor, cuts: dict[int, int], call_text: str
) -> Leak | None:
    """Take the gradient of the rows of `cuts`, each before its place, of what the head reads of them.

    The head makes a token's logits of it alone.
    """
    rows, width = len(hidden_BTD), hidden_BTD.shape[-1]
    weight_D = torch.randn(width, generator=torch.Generator().manual_seed(3)).to(hidden_BTD.device)
    total = sum((hidden_BTD[row, :place].float() @ weight_D).sum() for row, place in cuts.items())
    assert isinstance(total, torch.Tensor)
    (gradient_BTD,) = torch.autograd.grad(total, embedded_BTD)
    largest_BT = gradient_BTD.abs().amax(-1)
    for row in range(rows):
        place = cuts.get(row, 0)
        late_T = ~(largest_BT[row, place:] == 0)  # not a number is no zero
        if late_T.any():
            token = place + int(late_T.nonzero()[0])
            size = float(largest_BT[row, token])
            if row in cuts:
                message = (
                    f"the logits before token {place} of {describe_tokens(tokens_BT[row])} have a gradient by token "
                    f"{token} ({size:.2g}): they depend on what comes after them{call_text}"
                )
                return Leak("causality", message)
            message = (
                f"the logits of other rows have a gradient by row {row} of a batch of {rows}, at token {token} of "
                f"{describe_tokens(tokens_BT[row])} ({size:.2g}){call_text}"
            )
            return Leak("rows", message)
    return None


def _find_in_calls(
    model: Decoder, calls: Sequence[tuple[Mode, int]], length: int, source: Source, second_source: Source | None = None
) -> Leak | None:
    """Look for leaks in all `calls` (mode, rows) of one length; each is cut elsewhere, as far as there are cuts.

    Every mode is cut before its last token once, where a leak from some token on shows; a pair of a long input is cut
    elsewhere too: where no gradient tells, it is read a second time, from `second_source`. A batch is compared with
    its first row alone in the same mode, which is called for that where `calls` does not; a pair of a long input is
    not, since that is seen of a short one.
    """
    last, *other_cuts = list_cuts(length)
    place = itertools.cycle(other_cuts or [last])
    single_logits: dict[Mode, torch.Tensor] = {}
    modes_cut: set[Mode] = set()

    def look(mode: Mode, rows: int, tokens: Source, many: int) -> Leak | torch.Tensor:
        places = [next(place) for _ in range(many)]
        if mode not in modes_cut:
            places[0] = last
            modes_cut.add(mode)
        read_BT = make_pairs(tokens(rows, length), places, model.spec.vocabulary)
        return _look_once(model, mode, read_BT, places, single_logits.get(mode))

    for mode, rows in calls:
        long_pair = rows == 2 and length > LONG
        if mode not in single_logits and rows > 1 and not long_pair:
            plain = _look_once(model, mode, source(1, length), [next(place)])
            if isinstance(plain, Leak):
                return plain
            single_logits[mode] = plain
        result = look(mode, rows, source, 2 if long_pair and mode.gradients else max(1, rows // 2))
        if not isinstance(result, Leak) and long_pair and not mode.gradients:
            result = look(mode, rows, second_source or source, 1)
        if isinstance(result, Leak):
            return result
        if rows == 1:
            single_logits[mode] = result
    return None


def find_leak(
    model: Decoder,
    calls: Sequence[tuple[Mode, int]],
    length: int,
    source: Source,
    second_source: Source | None = None,
    shortest: int = 1,
) -> Leak | None:
    """Look for a leak in all `calls` (mode, rows) of one length; the shortest input that shows it is reported.

    What lies between that length and the `shortest` is halved.
    """
    best = _find_in_calls(model, calls, length, source, second_source)
    check = best.check if best else ""
    while best and length - shortest > 1:
        middle = (shortest + length) // 2
        leak = _find_in_calls(model, calls, middle, source)
        if leak is not None and leak.check == check:
            length, best = middle, leak
        else:
            shortest = middle
    return best


def find_difference(
    found_BTV: torch.Tensor, expected_BTV: torch.Tensor, tolerance: float = TOLERANCE
) -> tuple[int, float] | None:
    """Find the first token whose logits differ, and by how much at most; None if all agree."""
    if found_BTV.shape[1] == 0:
        return None
    found_BTV, expected_BTV = found_BTV.detach(), expected_BTV.detach()
    size = max(1.0, float(expected_BTV.abs().max()) / 10)
    difference_BTV = (found_BTV - expected_BTV).abs()
    far_T = ~(difference_BTV <= tolerance * (size + expected_BTV.abs())).all(-1).all(0)  # not a number is far
    if not far_T.any():
        return None
    place = int(far_T.nonzero()[0])
    return place, float(difference_BTV[:, place].max())


def describe_tokens(tokens_T: torch.Tensor) -> str:
    """Name an input in a message: how many tokens it has, and the first of them."""
    listed = tokens_T.tolist()
    first_tokens = ", ".join(map(str, listed[:8]))
    return (
        f"the {len(listed)} tokens ({first_tokens}{', ...' if len(listed) > 8 else ''})"
        if len(listed) > 1
        else "one token"
    )

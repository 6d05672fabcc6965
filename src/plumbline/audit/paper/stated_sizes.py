"""Recomputes the sizes that an audit file states: parameters of a shape, tokens of a run, training operations.

What a shape leaves open (biases, a norm's second vector, a tied head, which embeddings count) is counted in each way;
a printed number that one of them gives is not a contradiction, and the row names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from plumbline.audit.audit_rows import MATCH, MISMATCH
from plumbline.audit.paper.audit_file import AuditFile, ModelPart
from plumbline.audit.paper.ledger import Ledger
from plumbline.audit.parameter_counts import DecoderSize
from plumbline.published.expression import Given, lift
from plumbline.published.interval_arithmetic import low
from plumbline.published.printed_number import PrintedNumber, exact

#: What of the embeddings counts.
ALL, NO_POSITIONS, NONE = "all embeddings", "token embeddings alone", "no embeddings"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Way:
    """A way to give a number: its formula, and the text that is added to the row's label."""

    formula: Given
    addition: str = ""


def check_sizes(settings: AuditFile, numbers: dict[str, PrintedNumber], ledger: Ledger) -> None:
    """Recompute parameters from the shape, tokens from steps and batch, and training operations from both."""
    find_number = numbers.get
    if settings.model:
        model, where = settings.model, settings.model.where or settings.path.name
        every = [ALL, NO_POSITIONS, NONE] if model.learned_positions else [ALL, NONE]
        for key, quantity, counted in (
            ("parameters", "parameters of the stated shape", every),
            ("non_embedding", "the same without embeddings", [NONE]),
        ):
            _check(
                ledger, f"model_{key}", quantity, where, find_number(f"model.{key}"), list(_list_ways(model, counted))
            )
    if settings.training:
        where = settings.training.where or settings.path.name
        steps, tokens, flops = (
            find_number("training.steps"),
            find_number("training.tokens"),
            find_number("training.flops"),
        )
        batch_tokens, batch, sequence = (
            find_number("training.batch_tokens"),
            find_number("training.batch"),
            find_number("training.sequence"),
        )
        product_of = batch * sequence if batch and sequence else None
        if product_of is not None and batch_tokens:
            quantity = "tokens of a batch: sequences times their length"
            _check(ledger, "training_batch", quantity, where, batch_tokens, [_Way(formula=product_of)])
        per_step = batch_tokens or product_of
        tokens_of_steps = steps * per_step if steps and per_step else None
        if tokens_of_steps is not None:
            quantity = "tokens trained on: steps times batch"
            _check(ledger, "training_tokens", quantity, where, tokens, [_Way(formula=tokens_of_steps)])
        counts = [
            number
            for key in ("training.parameters", "model.parameters", "model.non_embedding")
            if (number := find_number(key))
        ]
        trained_tokens = tokens or tokens_of_steps
        if counts and trained_tokens is not None:
            ways = [_Way(formula=6 * count * trained_tokens, addition=f", N {count.name}") for count in counts]
            _check(ledger, "training_flops", "training operations: 6 N D", where, flops, ways)


def _check(ledger: Ledger, id: str, quantity: str, where: str, printed: PrintedNumber | None, ways: list[_Way]) -> None:
    """Check against the first way that gives the number, or the one that comes nearest."""
    if printed is None:
        return
    trial = Ledger(Path(ledger.rows.study))
    verdicts = [trial.add(f"{id}{n}", quantity, where, printed, way.formula) for n, way in enumerate(ways)]
    right_ways = [way for verdict_sought in (MATCH, "") for way, verdict in zip(ways, verdicts, strict=True)
                  if verdict == verdict_sought or (not verdict_sought and verdict != MISMATCH)]  # fmt: skip
    best_way = right_ways[0] if right_ways else min(ways, key=lambda way: abs(_compute(way) - printed.value))
    if ledger.add(id, f"{quantity}{best_way.addition}", where, printed, best_way.formula) == MISMATCH:
        text = f"{quantity}: {printed} is printed, and its parts give another number."
        if len(ways) > 1:
            nearest, first = _format_number(_compute(best_way)), _format_number(_compute(ways[0]))
            text = f"{quantity}: {printed} is printed. Nearest of {len(ways)} ways to count: {nearest}"
            text += f"{best_way.addition}; the first: {first}{ways[0].addition}."
        ledger.find(id, text, [id])


def _compute(way: _Way) -> float:
    return low(lift(way.formula).one()[0])


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if value < 1e15 else f"{value:.4g}"


def _list_ways(model: ModelPart, embeddings: list[str]) -> Iterator[_Way]:
    """The parameters of a shape, the plainest way to count them first; what the file states is not varied."""
    open_ones = (
        [False, True] if model.biases is None else [model.biases],
        [1, 2] if model.norm_vectors is None else [model.norm_vectors],
        [True, False] if model.tied is None else [model.tied],
    )
    ways = sorted(product(embeddings, *open_ones), key=lambda way: (embeddings.index(way[0]), way[3] is False))
    numbers: set[int] = set()
    for counted, biases, norms, tied in ways:
        size = _make_decoder(model, biases=biases, norm_vectors=norms, tied=tied)
        number = size.body() if counted == NONE else size.total()
        if counted == NO_POSITIONS:
            number -= size.learned_positions * size.width
        if number in numbers:
            continue
        numbers.add(number)
        parts = [
            "biases" if biases else "no biases",
            {1: "a gain in each norm", 2: "a gain and a bias in each norm"}.get(norms, f"{norms} vectors in each norm"),
            *([] if counted == NONE else ["a tied head" if tied else "a head of its own"]),
            *([] if len(embeddings) == 1 else [counted]),
        ]
        description = ", ".join(parts)
        yield _Way(formula=exact(number, f"count ({description})"), addition=f", counted with {description}")


def _make_decoder(model: ModelPart, *, biases: bool, norm_vectors: int, tied: bool) -> DecoderSize:
    """The sizes of a decoder with all that follows from others filled in."""
    return DecoderSize(
        layers=model.layers,
        width=model.width,
        heads=model.heads,
        key_value_heads=model.key_value_heads or model.heads,
        head_width=model.head_width or model.width // model.heads,
        ffn_width=model.ffn_width,
        vocabulary=model.vocabulary,
        ffn_matrices=model.ffn_matrices,
        norm_vectors=norm_vectors,
        biases=biases,
        learned_positions=model.learned_positions,
        tied=tied,
        query_key_norm=model.query_key_norm,
    )

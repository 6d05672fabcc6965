"""Checks a model as its runs call it: at the trained context, in every mode, in batches of several sizes.

What is read is like text, in which tokens come back, and next to it tokens that are all equally likely. Two layers of a
small width, so that a context of 1,024 takes seconds. Short inputs are tried in every mode and batch; the trained
context in every mode with a pair of rows, and as it is trained in larger batches too. As many layers as are trained
read shorter inputs, as they are trained and as they are validated.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import torch
from torch.nn import functional

from plumbline.model.cache import DecodingCache
from plumbline.model.decoder import Decoder, on_meta
from plumbline.operate.preflight.method_checks import decoded_losses, leaks
from plumbline.operate.preflight.method_checks.leaks import BATCHES, LONG, MODES, TRAINED, Leak, Mode
from plumbline.specs.checked_models import TrainedSize
from plumbline.specs.spec import ModelSpec

#: What is examined in addition to causality, rows and decoding.
CHECKS = ("loss",)
#: Layers of the model that is called at the trained context.
LAYERS = 2
#: Short inputs, which are tried in every mode and in batches up to the trained one.
SHORT = (2, 9, LONG)
#: Tokens of the largest batch that is tried at the trained context.
TOKENS = 8192
#: Tokens of the largest batch that a model of the trained depth reads, times its layers; and tokens of a row at least.
DEEP, DEEP_ROW = 24_576, 80
#: In how many parts a sequence of the trained context is decoded at most: one token at a time, where it is not longer.
PARTS = 1024
#: Parameters of a trained model at most that is examined whole before it is trained.
NUMBERS = 5_000_000


def make_reduced_spec(spec: ModelSpec, size: TrainedSize) -> ModelSpec:
    """Make the small model that reads the trained context."""
    return msgspec.structs.replace(spec, layers=min(LAYERS, spec.layers), context=size.context)


def list_calls(size: TrainedSize, length: int) -> list[tuple[Mode, int]]:
    """List the calls (mode, rows) that are made of inputs of a length."""
    trained, validated = TRAINED[size.half], Mode(half=size.half)
    if length <= LONG:
        powers = [2**k for k in range(3, size.rows.bit_length()) if 2**k < size.rows]
        larger = [rows for rows in (*powers, size.rows) if rows > 7 and length == SHORT[1]]
        return [(mode, rows) for mode in MODES for rows in BATCHES] + [
            (mode, rows) for mode in (trained, validated) for rows in larger
        ]
    most = max(4, TOKENS // length)
    row_counts = [size.rows] if 4 < size.rows <= most else [rows for rows in (7,) if rows <= most]
    return [*((mode, 2) for mode in MODES), *((trained, rows) for rows in (4, *row_counts))]


def find_leak(model: Decoder, size: TrainedSize) -> Leak | None:
    """Look for a leak from the shortest input to the trained context; the shortest that shows it is reported."""
    shortest = 1
    source, second_source = (
        leaks.make_text_source(model.spec.vocabulary),
        leaks.make_uniform_source(model.spec.vocabulary),
    )
    for length in sorted({*(short_length for short_length in SHORT if short_length < size.context), size.context}):
        if leak := leaks.find_leak(model, list_calls(size, length), length, source, second_source, shortest):
            return leak
        shortest = length
    return None


def choose_deep_input(size: TrainedSize) -> tuple[int, int]:
    """Tokens of a row, and rows, that a model of the trained depth reads: four, or a small trained batch."""
    length = min(size.context, max(DEEP_ROW, DEEP // (4 * size.layers)))
    return length, max(4, size.rows) if size.rows * length * size.layers <= DEEP else 4


def choose_deep_spec(spec: ModelSpec, size: TrainedSize, trained_models: Sequence[ModelSpec] = ()) -> ModelSpec | None:
    """Choose the model of the trained depth: the one that is trained, where it is small; else one of a small width.

    None if neither is more than the reduced model is.
    """
    for model in trained_models:
        if (model.context, model.layers) == (size.context, size.layers) and count_parameters(model) <= NUMBERS:
            return model
    return msgspec.structs.replace(spec, layers=size.layers, context=size.context) if size.layers > LAYERS else None


def count_parameters(spec: ModelSpec) -> int:
    """Count a model's parameters."""
    return sum(value.numel() for value in on_meta(spec).parameters())


def find_leak_in_depth(spec: ModelSpec, size: TrainedSize) -> Leak | None:
    """Look for a leak of a layer, or of a width, that the reduced model has not; `spec`: of that model."""
    model = leaks.create_moved_model(spec)
    length, rows = choose_deep_input(size)
    source, calls = leaks.make_text_source(spec.vocabulary), [(TRAINED[size.half], rows), (Mode(half=size.half), rows)]
    with torch.no_grad():
        if not model(source(2, length)).isfinite().all():
            return None  # off its start, what has no norms grows beyond numbers
    text_BT = source(rows, length)
    decoded_losses_of_text = decoded_losses.decode_losses(model, text_BT)
    if leak := leaks.find_leak(model, calls, length, source):
        return leak
    for mode in (Mode(), Mode(training=True)):
        with mode.of(model), torch.no_grad():
            difference = decoded_losses.describe_difference(
                decoded_losses.compute_losses_at_once(model, text_BT), decoded_losses_of_text
            )
        if difference is not None:
            return Leak("causality", f"{difference}{mode.text}")
    return None


@torch.no_grad()
def check_decoding(model: Decoder, size: TrainedSize) -> str | None:
    """Check that the trained context, read in parts, gives the logits that it gives at once."""
    tokens_BT = leaks.make_text_source(model.spec.vocabulary)(1, size.context)
    expected, cache = model(tokens_BT), DecodingCache()
    parts = tokens_BT.split(-(-size.context // PARTS), dim=1)
    off = leaks.find_difference(torch.cat([model(part, cache=cache) for part in parts], dim=1), expected)
    if off is None:
        return None
    return (
        f"{leaks.describe_tokens(tokens_BT[0])}, decoded {parts[0].shape[1]} at a time, have other logits at token "
        f"{off[0]} than read at once (off by {off[1]:.2g})"
    )


def check_loss(model: Decoder, size: TrainedSize) -> str | None:
    """Check that the loss that training asks a model for is the cross-entropy of its logits."""
    tokens_BT = leaks.make_text_source(model.spec.vocabulary)(2, size.context)
    mode = TRAINED[size.half]
    with mode.of(model):
        training_loss = float(model(tokens_BT, loss=True).detach())
        logits_BTV = model(tokens_BT).detach()
    expected = float(
        functional.cross_entropy(logits_BTV[:, :-1].flatten(0, 1), tokens_BT[:, 1:].flatten(), reduction="sum")
    )
    if abs(training_loss - expected) <= (leaks.HALF_TOLERANCE if size.half else leaks.TOLERANCE) * max(
        1.0, abs(expected)
    ):
        return None
    return (
        f"a batch of 2, the first {leaks.describe_tokens(tokens_BT[0])}, has the loss {training_loss:.6g}{mode.text}, "
        f"and its logits' cross-entropy is {expected:.6g}"
    )


def run_checks(spec: ModelSpec, size: TrainedSize, trained_models: Sequence[ModelSpec] = ()) -> dict[str, str]:
    """Make all checks of one trained size; returns words for those that do not hold, by the check's name.

    `trained_models`: those of the runs.
    """
    model = leaks.create_moved_model(make_reduced_spec(spec, size))
    if leak := find_leak(model, size):
        return {leak.check: leak.text}
    deeper = choose_deep_spec(spec, size, trained_models)
    if deeper is not None and (leak := find_leak_in_depth(deeper, size)):
        wide = f" of the width {deeper.width}" if deeper in trained_models else ""
        return {leak.check: f"{leak.text}, with the {size.layers} layers{wide} that are trained"}
    results = {"prefill = decode": check_decoding(model, size), "loss": check_loss(model, size)}
    return {
        name: f"{message}, at the trained context of {size.context:,}" for name, message in results.items() if message
    }


def describe_checks(size: TrainedSize, spec: ModelSpec, trained_models: Sequence[ModelSpec] = ()) -> str:
    """State for the page what was examined; `trained_models`: those of the runs."""
    small, deeper = make_reduced_spec(spec, size), choose_deep_spec(spec, size, trained_models)
    length, rows = choose_deep_input(size)
    wide = f" of the trained width {deeper.width}" if deeper is not None and deeper in trained_models else ""
    return (
        f"causality and rows held at the trained context of {size.context:,} tokens ({small.layers} layers of width "
        f"{small.width}), of sequences like text and of random tokens, in training and in evaluation mode, with "
        "gradients enabled and without, in float32 and in bfloat16, in batches of 1, 2, 4 and 7 rows and, of short "
        f"inputs, up to the {size.rows:,} of a training step, and in {size.layers} layers{wide} at {length:,} "
        f"tokens in batches of {rows} as it is trained and as it is validated"
    )

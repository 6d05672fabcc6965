"""Looks at finished runs again, with the weights that they were trained to: a leak may open in training, or on text.

The whole model, at its trained context and depth, reads the run's own held-out sequences in batches of as many rows as
it was trained with: as it was validated, and as it was trained. Then the loss that was validated is computed again: it
is reproduced by calls in which causality held, or what was gained is not in the weights. One run of each arm and scale,
that of the first seed that completed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_json
from plumbline.core.run_files import REMEDY
from plumbline.data.loader import Pack
from plumbline.data.manifest import pack_folder
from plumbline.experiment.checks import leak_inputs, leaks
from plumbline.experiment.checks.leaks import TRAINED, Leak, Mode
from plumbline.model.decoder import Decoder
from plumbline.model.model_folder import load_weights
from plumbline.specs.own_methods_file import OwnMethodsFile
from plumbline.specs.spec import RunSpec

#: Tokens of a batch that is looked at, and of all sequences whose loss is computed again; more take too long.
TOKENS, LOSS_TOKENS = 8_192, 65_536
#: Losses agree within this share: in float32 where the run was on a processor too (1e-7 at most in the demo), and
#: in bfloat16 or on another device.
SAME, SAME_ELSEWHERE = 1e-5, 0.005
#: Standard errors within which the loss of a part of the sequences is that of all.
ERRORS = 4.0
#: Numbers of a layer's states, times the layers, beyond which layers are computed again for the gradient.
LARGE = 2**26


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedLook:
    """What was seen of a finished run: the leak, in words, or none; and words for the page that say what was read."""

    leak: str | None
    words: str


def held_out_pack(work: Path, spec: RunSpec) -> Path:
    """Spell the path of the manifest of the pack that a run was validated on, below a preset's folder."""
    folder = pack_folder(f"{work}/corpora/{spec.data.corpus}", spec.model.context, "validation")
    return Path(folder) / "validation.json"


def look(folder: Path, spec: RunSpec, pack: Path) -> TrainedLook:
    """Look for a leak of a finished run's model.

    Args:
        pack: manifest of the held-out sequences; where it is not there, sequences like text are read.

    Raises:
        PlumblineError: its weights cannot be read, or are not those of its spec.
    """
    model = Decoder(spec.model).eval()
    load_weights(model, folder / "model.safetensors", f"the spec of {spec.key}", REMEDY)
    manifest, context = read_json(folder / "manifest.json") or {}, spec.model.context
    at_once = int(manifest.get("micro_batch") or spec.sequences_per_batch)
    rows = min(at_once, max(1, TOKENS // context))
    model.recompute = rows * context * spec.model.width * spec.model.layers > LARGE
    half, compiled = spec.train.precision != "float32", bool(manifest.get("compiled"))
    validated = Mode(half=half, compiled=compiled)
    trained = Mode(training=True, gradients=True, half=half, compiled=compiled)
    there = pack.is_file()
    text_BT = _sequences(pack, spec, rows) if there else leak_inputs.like_text(spec.model.vocabulary)(2 * rows, context)
    shown = _of_pairs(model, text_BT) or _of_batches(model, [validated, trained], text_BT, rows)
    if shown is not None:
        return TrainedLook(leak=f"{shown.check}: {shown.words}", words="")
    whose = "its held-out sequences" if there else "sequences like text (its pack is not there)"
    batch = f"batches of {rows:,}" + (f" of the {at_once:,} rows that it read at once" if rows < at_once else " rows")
    words = f"held at {context:,} tokens of {whose}, in {batch}, as validated and as trained ({spec.key})"
    if not there:
        return TrainedLook(leak=None, words=words)
    exact = not half and manifest.get("device") == "cpu"
    outcome = read_json(folder / "outcome.json") or {}
    wrong, again = _loss(model, validated, text_BT, rows, spec, outcome, SAME if exact else SAME_ELSEWHERE)
    return TrainedLook(leak=wrong, words=f"{words}{again}")


def _sequences(pack: Path, spec: RunSpec, rows: int) -> torch.Tensor:
    """The held-out sequences that are read: those of the loss as far as they fit, and a batch of others behind them."""
    there = Pack(pack, context=spec.model.context)
    wanted = max(2, rows + min(spec.train.validation_sequences, max(rows, LOSS_TOKENS // spec.model.context)))
    return torch.from_numpy(there.rows(np.arange(min(wanted, there.sequences))))


def _of_pairs(model: Decoder, text_BT: torch.Tensor) -> Leak | None:
    """A leak that two rows show, in float32, with the shortest input."""
    context = text_BT.shape[1]

    def source(rows: int, length: int) -> torch.Tensor:
        return text_BT[:rows, :length]

    calls = [(Mode(), min(2, len(text_BT))), (TRAINED[False], min(2, len(text_BT)))]
    shown = leaks.searched(model, calls, context, source, leak_inputs.uniform(model.spec.vocabulary))
    return None if shown is None else leaks.smallest(model, calls, shown, 1, context, source)


def _of_batches(model: Decoder, modes: Sequence[Mode], text_BT: torch.Tensor, rows: int) -> Leak | None:
    """A leak of the very batch that was validated first, whose rows end otherwise the second time."""
    batch_BT, others_BT = text_BT[:rows], text_BT.roll(-rows if len(text_BT) > rows else -1, 0)[:rows]
    for mode in dict.fromkeys(modes):
        shown = leaks.of_batch(model, mode, batch_BT, others_BT)
        if shown is not None:
            return shown
    return None


@torch.no_grad()
def _loss(
    model: Decoder,
    mode: Mode,
    text_BT: torch.Tensor,
    rows: int,
    spec: RunSpec,
    outcome: dict[str, float],
    share: float,
) -> tuple[str | None, str]:
    """Compute the validated loss again: words where it is another one by more than `share`; and words for the page."""
    said, every = outcome.get("validation_loss"), spec.train.validation_sequences
    if said is None:
        return None, ""
    with mode.of(model):
        parts = [leaks.losses(model, part_BT) for part_BT in text_BT[: min(every, len(text_BT))].split(rows)]
    losses_B = torch.cat(parts)
    found, number = float(losses_B.mean()), len(losses_B)
    error = 0.0
    if number < every:
        error = ERRORS * float(losses_B.std()) / math.sqrt(number) if number > 1 else math.inf
    of = f"all {number:,}" if number == every else f"{number:,} of the {every:,}"
    if abs(found - said) <= share * abs(said) + error:
        return None, f", and {of} sequences of its validation loss have it again ({found:.4g})"
    return (
        f"loss: the mean over {of} sequences of its validation loss is {found:.4g} with its weights, and the run says "
        f"{said:.4g}: what the run read or kept besides its weights is in that loss"
    ), ""


def causality(mine: OwnMethodsFile, work: Path, completed: Callable[[str, str], Sequence[str]]) -> dict[str, str]:
    """Look at one run of each arm and scale; returns words for the page, by scale and arm.

    `completed`: gives the runs of a scale and arm that did not diverge.

    Raises:
        PlumblineError: one has a leak, which is named with its run; or a run did not finish.
    """
    seen: dict[str, str] = {}
    scales = [mine.scale, *([mine.larger] if mine.larger else [])]
    for scale in scales:
        for arm in mine.compared:
            runs = [run for run in mine.runs(scale, arm) if run.key in completed(scale, arm)]
            if not runs:
                continue
            run = runs[0]
            one = look(work / "runs" / run.key, run.spec, held_out_pack(work, run.spec))
            if one.leak is not None:
                raise PlumblineError(
                    f"{mine.path}: {arm}: with the weights that it was trained to ({run.key}), {one.leak}; it has no "
                    "verdict: what it gained may be the tokens that it was to predict"
                )
            seen[f"{scale}/{arm}"] = one.words
    return seen

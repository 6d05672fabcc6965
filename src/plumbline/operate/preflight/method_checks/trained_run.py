"""Calls the model of a finished run, with the weights that it was trained to, as it was when it was validated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_json
from plumbline.core.run_files import REMEDY
from plumbline.data.loader import Pack
from plumbline.data.manifest import pack_folder
from plumbline.model.decoder import Decoder
from plumbline.model.model_folder import load_weights
from plumbline.operate.preflight.method_checks import decoded_losses
from plumbline.operate.preflight.method_checks.leaks import Mode
from plumbline.specs.spec import RunSpec

#: Tokens of a batch that is looked at.
TOKENS = 8_192
#: Losses agree within this share: in float32 where the run was on a processor too (1e-7 at most in the demo), and
#: in bfloat16 or on another device.
SAME, SAME_ELSEWHERE = 1e-5, 0.005
#: Standard errors within which the loss of a part of the sequences is that of all.
ERRORS = 4.0


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedRun:
    """A finished run: where its outputs are, and its spec."""

    folder: Path
    spec: RunSpec


def held_out_pack(work: Path, spec: RunSpec) -> Path:
    """Spell the path of the manifest of the pack that a run was validated on, below a preset's folder."""
    folder = pack_folder(f"{work}/corpora/{spec.data.corpus}", spec.model.context, "validation")
    return Path(folder) / "validation.json"


def training_pack(work: Path, spec: RunSpec) -> Path:
    """Spell the path of the manifest of the pack that a run was trained on."""
    folder = pack_folder(f"{work}/corpora/{spec.data.corpus}", spec.model.context, "train")
    return Path(folder) / f"{spec.data.pack}.json"


class TrainedModel:
    """A finished run's model, and how it was called."""

    def __init__(self, run: TrainedRun) -> None:
        self.run, self.spec = run, run.spec
        self.model = Decoder(run.spec.model).eval()
        load_weights(self.model, run.folder / "model.safetensors", f"the spec of {run.spec.key}", REMEDY)
        manifest = read_json(run.folder / "manifest.json") or {}
        self.at_once = int(manifest.get("micro_batch") or run.spec.sequences_per_batch)
        self.rows = min(self.at_once, max(1, TOKENS // run.spec.model.context))
        self.half, compiled = run.spec.train.precision != "float32", bool(manifest.get("compiled"))
        self.exact = not self.half and manifest.get("device") == "cpu"
        self.validated = Mode(half=self.half, compiled=compiled)
        self.trained = Mode(training=True, gradients=True, half=self.half, compiled=compiled)

    def of_tokens(self, tokens_BT: torch.Tensor, mode: Mode | None = None) -> np.ndarray:
        """The loss of each token after its sequence's first (B, T - 1), in batches as it was validated."""
        with (mode or self.validated).of(self.model), torch.no_grad():
            return np.concatenate([decoded_losses.at_once(self.model, each) for each in tokens_BT.split(self.rows)])

    def of_sequences(self, tokens_BT: torch.Tensor) -> np.ndarray:
        """The loss of each sequence (B,)."""
        return self.of_tokens(tokens_BT).mean(axis=1)

    def early(self, tokens_BT: torch.Tensor) -> str | None:
        """Say by how much tokens are predicted better when they are there already; None where they are not."""
        one = decoded_losses.decoded(self.model, tokens_BT)
        for mode in dict.fromkeys((Mode(), self.validated)):
            words = decoded_losses.early(self.of_tokens(tokens_BT, mode), one, half=mode.half)
            if words is not None:
                return f"{words}{mode.words}"
        return None

    def loss(self, tokens_BT: torch.Tensor) -> tuple[str | None, str]:
        """Compute the validated loss again of these sequences and no more than it was computed of.

        Returns words where it is another one, and words for the page.
        """
        outcome = read_json(self.run.folder / "outcome.json") or {}
        said, every = outcome.get("validation_loss"), self.spec.train.validation_sequences
        if said is None:
            return None, ""
        losses_B = self.of_sequences(tokens_BT[:every])
        found, number = float(losses_B.mean()), len(losses_B)
        error = 0.0
        if number < every:
            error = ERRORS * float(losses_B.std(ddof=1)) / math.sqrt(number) if number > 1 else math.inf
        of = f"all {number:,}" if number == every else f"{number:,} of the {every:,}"
        share = SAME if self.exact else SAME_ELSEWHERE
        if abs(found - said) <= share * abs(said) + error:
            return None, f", and {of} sequences of its validation loss have it again ({found:.4g})"
        return (
            f"loss: the mean over {of} sequences of its validation loss is {found:.4g} with its weights, and the run "
            f"says {said:.4g}: what the run read or kept besides its weights is in that loss"
        ), ""


def opened(path: Path, spec: RunSpec) -> Pack | None:
    """A pack, if it is there with all of its shards."""
    try:
        return Pack(path, context=spec.model.context) if path.is_file() else None
    except PlumblineError:
        return None


def sequences(pack: Path, spec: RunSpec, more: int, tokens: int) -> torch.Tensor:
    """The held-out sequences that are read: those of the loss as far as they fit, and `more` others behind them."""
    there = Pack(pack, context=spec.model.context)
    wanted = max(2, more + min(spec.train.validation_sequences, max(more, 1, tokens // spec.model.context)))
    return torch.from_numpy(there.rows(np.arange(min(wanted, there.sequences))))

"""Checks finished runs again, with the weights that they were trained to: a leak may open in training, or on text.

The whole model, at its trained context and depth, reads the run's own held-out sequences in batches of as many rows as
it was trained with: as it was validated, and as it was trained. Its loss there has to be that of the same tokens read
one after another, and the run's recorded loss: that one is reproduced by calls in which causality held, or what was
gained is not in the weights. One run of each arm and scale, that of the first seed that completed; of the others the
loss is computed again.

What a method gained has to be there on sequences that no run was to read, too: whoever read those of the loss in
training, in whatever way, gains on them and not on others. The gain of each sequence is the difference of both arms'
losses of it, so that how hard it is drops out.
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
from plumbline.data.loader import Pack, batch_indices
from plumbline.data.manifest import pack_folder
from plumbline.model.decoder import Decoder
from plumbline.model.model_folder import load_weights
from plumbline.operate.preflight.method_checks import checks_report, decoded_losses, leaks
from plumbline.operate.preflight.method_checks.leaks import TRAINED, Leak, Mode
from plumbline.specs.own_methods_file import OwnMethodsFile
from plumbline.specs.spec import RunSpec
from plumbline.stats.welch_and_stouffer import welch_of_summaries

#: Tokens of a batch that is examined.
TOKENS = 8_192
#: Losses agree within this share: in float32 where the run was on a processor too (1e-7 at most in the demo), and
#: in bfloat16 or on another device.
SAME, SAME_ELSEWHERE = 1e-5, 0.005
#: Standard errors within which the loss of a part of the sequences is that of all.
ERRORS = 4.0
#: Blocks of neighbouring sequences whose means are compared: neighbours are often of one document.
BLOCKS = 8
#: A gain is held to be of the loss's own sequences where less than this share of it is elsewhere ...
SHARE = 0.5
#: ... by a difference that chance alone makes so rarely.
LEVEL = 0.001
#: Tokens of all sequences whose loss is computed again of the run that is examined whole; more take too long.
LOSS_TOKENS = 65_536
#: Tokens whose loss is computed again of each further run, and of each group on which a gain is looked for.
MORE_TOKENS = 16_384
#: Width of a model that one thread reads as fast as several do.
NARROW = 256
#: Numbers of a layer's states, times the layers, beyond which layers are computed again for the gradient: 4.4 GB are
#: taken there (benchmarks/job_resources.yaml).
LARGE = 2**24


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """A finished run: where its outputs are, and its spec."""

    folder: Path
    spec: RunSpec


def locate_held_out_pack(work: Path, spec: RunSpec) -> Path:
    """Spell the path of the manifest of the pack that a run was validated on, below a preset's folder."""
    return Path(pack_folder(f"{work}/corpora/{spec.data.corpus}", spec.model.context, "validation"), "validation.json")


def locate_training_pack(work: Path, spec: RunSpec) -> Path:
    """Spell the path of the manifest of the pack that a run was trained on."""
    folder = pack_folder(f"{work}/corpora/{spec.data.corpus}", spec.model.context, "train")
    return Path(folder, f"{spec.data.pack}.json")


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

    def compute_token_losses(self, tokens_BT: torch.Tensor, mode: Mode | None = None) -> np.ndarray:
        """The loss of each token after its sequence's first (B, T - 1), in batches as it was validated."""
        with (mode or self.validated).of(self.model), torch.no_grad():
            return np.concatenate(
                [decoded_losses.compute_losses_at_once(self.model, each) for each in tokens_BT.split(self.rows)]
            )

    def compute_losses(self, tokens_BT: torch.Tensor) -> np.ndarray:
        """The loss of each sequence (B,)."""
        return self.compute_token_losses(tokens_BT).mean(axis=1)

    def find_early_tokens(self, tokens_BT: torch.Tensor) -> str | None:
        """State by how much tokens are predicted better when they are there already; None if they are not."""
        decoded = decoded_losses.decode_losses(self.model, tokens_BT)
        for mode in dict.fromkeys((Mode(), self.validated)):
            if message := decoded_losses.describe_early_tokens(
                self.compute_token_losses(tokens_BT, mode), decoded, half=mode.half
            ):
                return f"{message}{mode.text}"
        return None

    def loss(self, tokens_BT: torch.Tensor) -> tuple[str | None, str]:
        """Compute the validated loss again of these sequences and no more than it was computed of.

        Returns words where it is another one, and words for the page.
        """
        outcome = read_json(self.run.folder / "outcome.json") or {}
        reported, total = outcome.get("validation_loss"), self.spec.train.validation_sequences
        if reported is None:
            return None, ""
        losses_B = self.compute_losses(tokens_BT[:total])
        computed, number = float(losses_B.mean()), len(losses_B)
        error = 0.0
        if number < total:
            error = ERRORS * float(losses_B.std(ddof=1)) / math.sqrt(number) if number > 1 else math.inf
        share_of_sequences = f"all {number:,}" if number == total else f"{number:,} of the {total:,}"
        share = SAME if self.exact else SAME_ELSEWHERE
        if abs(computed - reported) <= share * abs(reported) + error:
            return None, f", and {share_of_sequences} sequences of its validation loss have it again ({computed:.4g})"
        return (
            f"loss: the mean over {share_of_sequences} sequences of its validation loss is {computed:.4g} with its "
            f"weights, and the run says {reported:.4g}: what the run read or kept besides its weights is in that loss"
        ), ""


def open_pack(path: Path, spec: RunSpec) -> Pack | None:
    """A pack, if it is there with all of its shards."""
    try:
        return Pack(path, context=spec.model.context) if path.is_file() else None
    except PlumblineError:
        return None


def read_sequences(pack: Path, spec: RunSpec, other_count: int, tokens: int) -> torch.Tensor:
    """The held-out sequences that are read: those of the loss as far as they fit, and `other_count` behind them."""
    held_out = Pack(pack, context=spec.model.context)
    count = max(
        2, other_count + min(spec.train.validation_sequences, max(other_count, 1, tokens // spec.model.context))
    )
    return torch.from_numpy(held_out.rows(np.arange(min(count, held_out.sequences))))


def list_unread_sequences(pack: Pack, *specs: RunSpec) -> np.ndarray:
    """List the sequences of a training pack that none of some runs was to read, in an order of chance."""
    read_S = np.zeros(pack.sequences, dtype=bool)
    for count, seed in {(spec.train.steps * spec.sequences_per_batch, spec.data_seed) for spec in specs}:
        if count >= pack.sequences:
            return np.zeros(0, dtype=np.int64)
        read_S[batch_indices(pack, seed, 0, count)] = True
    return np.random.default_rng(1).permutation(np.flatnonzero(~read_S))


def describe_missing_gain(of_the_loss_S: np.ndarray, elsewhere_S: np.ndarray) -> str | None:
    """State that a gain is not there on other sequences, if chance does not explain it; None else, or with too few.

    Args:
        of_the_loss_S, elsewhere_S: the gain of each sequence, in the order of their pack.
    """
    if min(len(of_the_loss_S), len(elsewhere_S)) < 2 * BLOCKS:
        return None
    ours, theirs = (
        np.array([part.mean() for part in np.array_split(each, BLOCKS)]) for each in (of_the_loss_S, elsewhere_S)
    )
    gain, other_gain = float(of_the_loss_S.mean()), float(elsewhere_S.mean())
    if gain <= 0 or other_gain >= SHARE * gain:
        return None
    sides = ((float(blocks.std(ddof=1)), BLOCKS) for blocks in (ours, theirs))
    if welch_of_summaries(gain - other_gain, *sides).p_greater > LEVEL:
        return None
    return f"{gain:.3g} on {len(of_the_loss_S):,} sequences of the loss, and {other_gain:.3g} on {len(elsewhere_S):,}"


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedCheck:
    """What was seen of finished runs: the leak, as text, or none; and words for the page that say what was read.

    `key`: the run with the leak, or the one that was examined.
    """

    key: str
    leak: str | None = None
    text: str = ""


def check_arm(runs: Sequence[TrainedRun], work: Path, baseline: TrainedRun | None) -> TrainedCheck:
    """Check all runs of an arm: the first whole, the others' losses, and what they gained elsewhere.

    Args:
        work: a preset's folder, with its packs.
        baseline: a run of what the arm is compared with; None for the baseline itself.

    Raises:
        PlumblineError: weights cannot be read, or are not those of their spec.
    """
    if runs[0].spec.model.width <= NARROW:
        torch.set_num_threads(1)  # small products: more threads wait for each other
    functions = checks_report.list_functions()
    first, *other_runs = runs
    result = check_run(first.folder, first.spec, locate_held_out_pack(work, first.spec))
    if result.leak is not None:
        return result
    sentences = [result.text]
    for run in other_runs:
        if wrong := _find_loss_fault(run, locate_held_out_pack(work, run.spec)):
            return TrainedCheck(key=run.spec.key, leak=wrong)
    if other_runs:
        sentences.append(f"the losses of {len(other_runs)} more of its runs were computed again")
    if baseline is not None:
        gain_check = check_gain_elsewhere(runs, baseline, work)
        if gain_check.leak is not None:
            return gain_check
        sentences.append(gain_check.text)
    if replaced := checks_report.describe_replaced(functions):
        return TrainedCheck(key=first.spec.key, leak=f"{checks_report.REPLACED_CODE}: {replaced}")
    return TrainedCheck(key=first.spec.key, text="; ".join(filter(None, sentences)))


def check_run(folder: Path, spec: RunSpec, pack: Path) -> TrainedCheck:
    """Look for a leak of a finished run's model.

    Held-out tokens are decoded before anything is read at once, so that nothing can remember what follows them.

    Args:
        pack: manifest of the held-out sequences; where it is not there, sequences like text are read.

    Raises:
        PlumblineError: its weights cannot be read, or are not those of its spec.
    """
    trained, context = TrainedModel(TrainedRun(folder=folder, spec=spec)), spec.model.context
    model, rows, at_once = trained.model, trained.rows, trained.at_once
    model.recompute = rows * context * spec.model.width * spec.model.layers > LARGE
    pack_exists = pack.is_file()
    like_text = leaks.make_text_source(spec.model.vocabulary)
    text_BT = read_sequences(pack, spec, rows, LOSS_TOKENS) if pack_exists else like_text(2 * rows, context)
    early_tokens = trained.find_early_tokens(text_BT[:rows])
    wrong, loss_text = trained.loss(text_BT) if pack_exists else (None, "")
    pair_leak = _find_leak_in_pairs(model, text_BT) or _find_leak_in_batches(
        model, [trained.validated, trained.trained], text_BT, rows
    )
    leak = (
        f"{pair_leak.check}: {pair_leak.text}" if pair_leak else f"causality: {early_tokens}" if early_tokens else wrong
    )
    if leak is not None:
        return TrainedCheck(key=spec.key, leak=leak)
    whose = "its held-out sequences" if pack_exists else "sequences like text (its pack is not there)"
    batch = f"batches of {rows:,}" + (f" of the {at_once:,} rows that it read at once" if rows < at_once else " rows")
    sentence = (
        f"held at {context:,} tokens of {whose}, in {batch}, as validated and as trained ({spec.key}), with the loss "
        f"of the same tokens read one after another{loss_text}"
    )
    return TrainedCheck(key=spec.key, text=sentence)


def check_gain_elsewhere(runs: Sequence[TrainedRun], baseline: TrainedRun, work: Path) -> TrainedCheck:
    """Look for what each run gained on sequences of which no validation loss is computed, and that nothing trained on.

    Raises:
        PlumblineError: weights cannot be read, or are not those of their spec.
    """
    spec = runs[0].spec
    held_out = open_pack(locate_held_out_pack(work, spec), spec)
    if held_out is None:
        return TrainedCheck(key=spec.key)
    most, first = max(1, MORE_TOKENS // spec.model.context), spec.train.validation_sequences
    loss_rows = held_out.rows(np.arange(min(first, most, held_out.sequences)))
    other_rows = {
        "held-out sequences behind those of the loss": held_out.rows(np.arange(first, held_out.sequences)[:most])
    }
    if (training := open_pack(locate_training_pack(work, spec), spec)) is not None:
        unread = list_unread_sequences(training, baseline.spec, *(run.spec for run in runs))
        other_rows["training sequences that no run was to read"] = training.rows(unread[:most])
    other_rows = {name: rows for name, rows in other_rows.items() if len(rows) >= 2 * BLOCKS}
    if not other_rows or len(loss_rows) < 2 * BLOCKS:
        return TrainedCheck(key=spec.key)
    groups = [torch.from_numpy(each) for each in (loss_rows, *other_rows.values())]
    theirs = [TrainedModel(baseline).compute_losses(each) for each in groups]
    for run in runs:
        trained = TrainedModel(run)
        gains = [base_S - trained.compute_losses(each) for base_S, each in zip(theirs, groups, strict=True)]
        for name, elsewhere_S in zip(other_rows, gains[1:], strict=True):
            if (short := describe_missing_gain(gains[0], elsewhere_S)) is not None:
                return TrainedCheck(
                    key=run.spec.key,
                    leak=f"held-out tokens: its gain over {baseline.spec.key} is {short} {name}: the sequences of the "
                    "loss were read in training, by a component that may not read them",
                )
    counts = [f"{len(rows):,} {name}" for name, rows in other_rows.items()]
    return TrainedCheck(key=spec.key, text=f"its gain was looked for on {' and '.join(counts)}")


def _find_loss_fault(run: TrainedRun, pack: Path) -> str | None:
    if not pack.is_file():
        return None
    trained = TrainedModel(run)
    return trained.loss(read_sequences(pack, run.spec, 0, MORE_TOKENS))[0]


def _find_leak_in_pairs(model: Decoder, text_BT: torch.Tensor) -> Leak | None:
    """A leak that two rows show, in float32, with the shortest input."""
    context = text_BT.shape[1]

    def source(rows: int, length: int) -> torch.Tensor:
        return text_BT[:rows, :length]

    calls = [(mode, min(2, len(text_BT))) for mode in (Mode(), TRAINED[False])]
    return leaks.find_leak(model, calls, context, source, leaks.make_uniform_source(model.spec.vocabulary))


def _find_leak_in_batches(model: Decoder, modes: Sequence[Mode], text_BT: torch.Tensor, rows: int) -> Leak | None:
    """A leak of the very batch that was validated first, whose rows end otherwise the second time."""
    batch_BT, others_BT = text_BT[:rows], text_BT.roll(-rows if len(text_BT) > rows else -1, 0)[:rows]
    leak = (leaks.find_leak_in_batch(model, mode, batch_BT, others_BT) for mode in dict.fromkeys(modes))
    return next(filter(None, leak), None)


def check_finished_runs(
    mine: OwnMethodsFile, work: Path, completed: Callable[[str, str], Sequence[str]]
) -> dict[str, str]:
    """Check the runs of each arm and scale; returns text for the page, by scale and arm.

    `completed`: gives the runs of a scale and arm that did not diverge.

    Raises:
        PlumblineError: one has a leak, which is named with its run; or a run did not finish.
    """
    looks: dict[str, str] = {}
    for scale in [mine.scale, *([mine.larger] if mine.larger else [])]:
        finished = {arm: completed(scale, arm) for arm in mine.compared}
        runs_by_arm = {
            arm: [TrainedRun(work / "runs" / run.key, run.spec) for run in mine.runs(scale, arm) if run.key in keys]
            for arm, keys in finished.items()
        }
        for arm, runs in runs_by_arm.items():
            if not runs:
                continue
            theirs = runs_by_arm.get(mine.against.get(arm, ""), [])
            check = check_arm(runs, work, theirs[0] if theirs else None)
            if check.leak is not None:
                raise PlumblineError(
                    f"{mine.path}: {arm}: with the weights that it was trained to ({check.key}), {check.leak}; it has "
                    "no verdict: what it gained may be the tokens that it was to predict"
                )
            looks[f"{scale}/{arm}"] = check.text
    return looks

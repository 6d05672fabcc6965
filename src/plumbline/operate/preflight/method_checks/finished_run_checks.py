"""Looks at finished runs again, with the weights that they were trained to: a leak may open in training, or on text.

The whole model, at its trained context and depth, reads the run's own held-out sequences in batches of as many rows as
it was trained with: as it was validated, and as it was trained. Its loss there has to be that of the same tokens read
one after another, and the loss that the run says: that one is reproduced by calls in which causality held, or what was
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
from scipy.special import stdtr

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

#: Tokens of a batch that is looked at.
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
#: Tokens of all sequences whose loss is computed again of the run that is looked at whole; more take too long.
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


def held_out_pack(work: Path, spec: RunSpec) -> Path:
    """Spell the path of the manifest of the pack that a run was validated on, below a preset's folder."""
    return Path(pack_folder(f"{work}/corpora/{spec.data.corpus}", spec.model.context, "validation"), "validation.json")


def training_pack(work: Path, spec: RunSpec) -> Path:
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

    def select_tokens(self, tokens_BT: torch.Tensor, mode: Mode | None = None) -> np.ndarray:
        """The loss of each token after its sequence's first (B, T - 1), in batches as it was validated."""
        with (mode or self.validated).of(self.model), torch.no_grad():
            return np.concatenate([decoded_losses.at_once(self.model, each) for each in tokens_BT.split(self.rows)])

    def of_sequences(self, tokens_BT: torch.Tensor) -> np.ndarray:
        """The loss of each sequence (B,)."""
        return self.select_tokens(tokens_BT).mean(axis=1)

    def early(self, tokens_BT: torch.Tensor) -> str | None:
        """Say by how much tokens are predicted better when they are there already; None where they are not."""
        one = decoded_losses.decoded(self.model, tokens_BT)
        for mode in dict.fromkeys((Mode(), self.validated)):
            if words := decoded_losses.early(self.select_tokens(tokens_BT, mode), one, half=mode.half):
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


def unread_sequences(pack: Pack, *specs: RunSpec) -> np.ndarray:
    """List the sequences of a training pack that none of some runs was to read, in an order of chance."""
    read_S = np.zeros(pack.sequences, dtype=bool)
    for wanted, seed in {(spec.train.steps * spec.sequences_per_batch, spec.data_seed) for spec in specs}:
        if wanted >= pack.sequences:
            return np.zeros(0, dtype=np.int64)
        read_S[batch_indices(pack, seed, 0, wanted)] = True
    return np.random.default_rng(1).permutation(np.flatnonzero(~read_S))


def missing_elsewhere(of_the_loss_S: np.ndarray, elsewhere_S: np.ndarray) -> str | None:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedLook:
    """What was seen of finished runs: the leak, in words, or none; and words for the page that say what was read.

    `key`: the run with the leak, or the one that was looked at.
    """

    key: str
    leak: str | None = None
    words: str = ""


def of_arm(runs: Sequence[TrainedRun], work: Path, baseline: TrainedRun | None) -> TrainedLook:
    """Look at all runs of an arm: at the first whole, at the others' losses, and at what they gained elsewhere.

    Args:
        work: a preset's folder, with its packs.
        baseline: a run of what the arm is compared with; None for the baseline itself.

    Raises:
        PlumblineError: weights cannot be read, or are not those of their spec.
    """
    if runs[0].spec.model.width <= NARROW:
        torch.set_num_threads(1)  # small products: more threads wait for each other
    before = checks_report.list_code()
    first, *others = runs
    seen = look(first.folder, first.spec, held_out_pack(work, first.spec))
    if seen.leak is not None:
        return seen
    said = [seen.words]
    for run in others:
        if wrong := _of_loss_alone(run, held_out_pack(work, run.spec)):
            return TrainedLook(key=run.spec.key, leak=wrong)
    if others:
        said.append(f"the losses of {len(others)} more of its runs were computed again")
    if baseline is not None:
        elsewhere = gained_elsewhere(runs, baseline, work)
        if elsewhere.leak is not None:
            return elsewhere
        said.append(elsewhere.words)
    if words := checks_report.find_replaced(before):
        return TrainedLook(key=first.spec.key, leak=f"{checks_report.REPLACED_CODE}: {words}")
    return TrainedLook(key=first.spec.key, words="; ".join(filter(None, said)))


def look(folder: Path, spec: RunSpec, pack: Path) -> TrainedLook:
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
    there = pack.is_file()
    like_text = leaks.like_text(spec.model.vocabulary)
    text_BT = sequences(pack, spec, rows, LOSS_TOKENS) if there else like_text(2 * rows, context)
    early = trained.early(text_BT[:rows])
    wrong, again = trained.loss(text_BT) if there else (None, "")
    shown = _of_pairs(model, text_BT) or _of_batches(model, [trained.validated, trained.trained], text_BT, rows)
    leak = f"{shown.check}: {shown.words}" if shown else f"causality: {early}" if early else wrong
    if leak is not None:
        return TrainedLook(key=spec.key, leak=leak)
    whose = "its held-out sequences" if there else "sequences like text (its pack is not there)"
    batch = f"batches of {rows:,}" + (f" of the {at_once:,} rows that it read at once" if rows < at_once else " rows")
    words = (
        f"held at {context:,} tokens of {whose}, in {batch}, as validated and as trained ({spec.key}), with the loss "
        f"of the same tokens read one after another{again}"
    )
    return TrainedLook(key=spec.key, words=words)


def gained_elsewhere(runs: Sequence[TrainedRun], baseline: TrainedRun, work: Path) -> TrainedLook:
    """Look for what each run gained on sequences of which no validation loss is computed, and that nothing trained on.

    Raises:
        PlumblineError: weights cannot be read, or are not those of their spec.
    """
    spec = runs[0].spec
    held_out = opened(held_out_pack(work, spec), spec)
    if held_out is None:
        return TrainedLook(key=spec.key)
    most, first = max(1, MORE_TOKENS // spec.model.context), spec.train.validation_sequences
    own = held_out.rows(np.arange(min(first, most, held_out.sequences)))
    others = {"held-out sequences behind those of the loss": held_out.rows(np.arange(first, held_out.sequences)[:most])}
    if (there := opened(training_pack(work, spec), spec)) is not None:
        left = unread_sequences(there, baseline.spec, *(run.spec for run in runs))
        others["training sequences that no run was to read"] = there.rows(left[:most])
    others = {words: rows for words, rows in others.items() if len(rows) >= 2 * BLOCKS}
    if not others or len(own) < 2 * BLOCKS:
        return TrainedLook(key=spec.key)
    groups = [torch.from_numpy(each) for each in (own, *others.values())]
    theirs = [TrainedModel(baseline).of_sequences(each) for each in groups]
    for run in runs:
        trained = TrainedModel(run)
        gains = [base_S - trained.of_sequences(each) for base_S, each in zip(theirs, groups, strict=True)]
        for words, elsewhere_S in zip(others, gains[1:], strict=True):
            if (short := missing_elsewhere(gains[0], elsewhere_S)) is not None:
                return TrainedLook(
                    key=run.spec.key,
                    leak=f"held-out tokens: its gain over {baseline.spec.key} is {short} {words}: the sequences of the "
                    "loss were read in training, by a component that may not read them",
                )
    counts = [f"{len(rows):,} {words}" for words, rows in others.items()]
    return TrainedLook(key=spec.key, words=f"its gain was looked for on {' and '.join(counts)}")


def _of_loss_alone(run: TrainedRun, pack: Path) -> str | None:
    if not pack.is_file():
        return None
    trained = TrainedModel(run)
    return trained.loss(sequences(pack, run.spec, 0, MORE_TOKENS))[0]


def _of_pairs(model: Decoder, text_BT: torch.Tensor) -> Leak | None:
    """A leak that two rows show, in float32, with the shortest input."""
    context = text_BT.shape[1]

    def source(rows: int, length: int) -> torch.Tensor:
        return text_BT[:rows, :length]

    calls = [(mode, min(2, len(text_BT))) for mode in (Mode(), TRAINED[False])]
    return leaks.find(model, calls, context, source, leaks.uniform(model.spec.vocabulary))


def _of_batches(model: Decoder, modes: Sequence[Mode], text_BT: torch.Tensor, rows: int) -> Leak | None:
    """A leak of the very batch that was validated first, whose rows end otherwise the second time."""
    batch_BT, others_BT = text_BT[:rows], text_BT.roll(-rows if len(text_BT) > rows else -1, 0)[:rows]
    shown = (leaks.find_in_batch(model, mode, batch_BT, others_BT) for mode in dict.fromkeys(modes))
    return next(filter(None, shown), None)


def causality(mine: OwnMethodsFile, work: Path, completed: Callable[[str, str], Sequence[str]]) -> dict[str, str]:
    """Look at the runs of each arm and scale; returns words for the page, by scale and arm.

    `completed`: gives the runs of a scale and arm that did not diverge.

    Raises:
        PlumblineError: one has a leak, which is named with its run; or a run did not finish.
    """
    seen: dict[str, str] = {}
    for scale in [mine.scale, *([mine.larger] if mine.larger else [])]:
        finished = {arm: completed(scale, arm) for arm in mine.compared}
        there = {
            arm: [TrainedRun(work / "runs" / run.key, run.spec) for run in mine.runs(scale, arm) if run.key in keys]
            for arm, keys in finished.items()
        }
        for arm, runs in there.items():
            if not runs:
                continue
            theirs = there.get(mine.against.get(arm, ""), [])
            one = of_arm(runs, work, theirs[0] if theirs else None)
            if one.leak is not None:
                raise PlumblineError(
                    f"{mine.path}: {arm}: with the weights that it was trained to ({one.key}), {one.leak}; it has no "
                    "verdict: what it gained may be the tokens that it was to predict"
                )
            seen[f"{scale}/{arm}"] = one.words
    return seen

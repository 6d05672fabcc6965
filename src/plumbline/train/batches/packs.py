"""Opens the packs of a run: checks that they fit its spec, and that their shards are what was packed.

Held-out sequences are handed to the interventions that declare that they read some, and to no other.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.core.stop_request import StopRequest
from plumbline.data.loader import Pack, verify_once
from plumbline.model.distributed import RankGroup
from plumbline.specs.spec import RunSpec
from plumbline.train.disk_faults import describe_disk_error
from plumbline.train.interventions import Intervention


def open_pack(manifest: Path, spec: RunSpec, option: str, sequences: int) -> Pack:
    """Open a pack of tokenised sequences, and check that the run of a spec can be trained on it.

    Raises:
        PlumblineError: no such pack, another context length or tokenizer, too few sequences.
    """
    pack = Pack(manifest, context=spec.model.context)
    if pack.vocabulary > spec.data.tokenizer_vocabulary:
        raise PlumblineError(
            f"{option}: the tokenizer of {manifest} has {pack.vocabulary} entries, data.tokenizer_vocabulary is "
            f"{spec.data.tokenizer_vocabulary}; use a pack of the spec's tokenizer"
        )
    if pack.sequences < sequences:
        raise PlumblineError(f"{option}: {manifest} has {pack.sequences} sequences; {spec.key} needs {sequences}")
    return pack


def require_one_corpus(pack: Pack, validation: Pack) -> None:
    """Refuse packs of a run that were cut with two tokenizers, or whose documents were held out by two rules.

    Raises:
        PlumblineError: naming both packs, and how they differ.
    """
    split = ("name", "source", "split_rule")
    ours, theirs = ([each.manifest.get("corpus", {}).get(name) for name in split] for each in (pack, validation))
    if pack.tokenizer_sha256 != validation.tokenizer_sha256:
        difference, values = "cut with two tokenizers (sha256)", (pack.tokenizer_sha256, validation.tokenizer_sha256)
    elif None not in (*ours, *theirs) and ours != theirs:
        difference, values = "of documents that were held out by two rules", (str(ours), str(theirs))
    else:
        return
    raise PlumblineError(
        f"--training-pack: {pack.path} and --validation-pack: {validation.path} are {difference}: {values[0]} and "
        f"{values[1]}; give two of one corpus, or rerun the rule `pack` for the one that is not meant"
    )


def verify(packs: Sequence[Pack], ranks: RankGroup, stop: StopRequest) -> None:
    """Make sure that all shards are what was packed, once on each node; every rank waits for the slowest node.

    It may take minutes, so the ranks meet every second meanwhile: no collective times out, and a stop is obeyed.

    Raises:
        PlumblineError: a shard is damaged or cannot be read, on any node.
        StopRequested: asked to stop meanwhile.
    """
    messages: list[str] = []

    def work() -> None:
        for pack in packs:
            try:
                verify_once(pack)
            except PlumblineError as error:
                messages.append(str(error))
            except Exception as error:
                why = describe_disk_error(error, pack.path.parent) or f"{type(error).__name__}: {error}"
                messages.append(f"{pack.path}: its shards cannot be verified: {why}")

    worker = threading.Thread(target=work, name="verify packs", daemon=True)
    if ranks.node_leader:
        worker.start()
        worker.join(1.0)
    while ranks.sum([float(worker.is_alive())])[0]:
        ranks.poll(stop)
        if worker.is_alive():
            worker.join(1.0)
    for rank_messages in ranks.gather(messages):
        if rank_messages:
            raise PlumblineError(rank_messages[0])


class SequencesAfterLoss:
    """The sequences of a validation pack behind those of which the validation loss is computed, counted from 0."""

    def __init__(self, name: str, pack: Pack, first: int) -> None:
        self._name, self._pack, self._first = name, pack, first
        self.path: Path = pack.path
        self.context, self.vocabulary, self.separator = pack.context, pack.vocabulary, pack.separator
        self.sequences = pack.sequences - first

    def rows(self, indices: np.ndarray) -> np.ndarray:
        """Read several sequences, in the order of `indices`: int64 (B, T).

        Raises:
            PlumblineError: one of them is among the sequences of the loss, or there is none of that number.
        """
        indices = np.asarray(indices, dtype=np.int64)
        if indices.size and not (indices.min() >= 0 and indices.max() < self.sequences):
            raise PlumblineError(
                f"interventions: {self._name} reads {int(indices.max()) + 1} held-out sequences, and "
                f"{self.sequences} of {self.path} lie behind the {self._first} of the validation loss: lower its "
                "`sequences` or train.validation_sequences, or give the corpus's pack more (presets.*.validation)"
            )
        return self._pack.rows(indices + self._first)


class UndeclaredHeldOut:
    """Stands where the held-out sequences would be, for an intervention that declares none."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Refuse any attribute.

        Raises:
            PlumblineError: always, except for Python's own names.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        raise PlumblineError(
            f"interventions: {self._name} reads held-out sequences and does not declare it: write "
            'held_out = "apart" in its class, for those on which no validation loss is computed'
        )


def restrict_validation(hook: Intervention, pack: Pack, loss_sequences: int) -> Pack:
    """Restrict a validation pack, whose first `loss_sequences` sequences the loss is of, to what a hook may read.

    Raises:
        PlumblineError: it declares something that there is not.
    """
    views: dict[str, Any] = {
        "none": UndeclaredHeldOut(hook.name),
        "apart": SequencesAfterLoss(hook.name, pack, loss_sequences),
    }
    if hook.held_out not in views:
        raise PlumblineError(
            f'interventions: {hook.name}: held_out is {hook.held_out!r} in its class: write "apart" to read sequences '
            'of which no validation loss is computed, or "none"'
        )
    return cast(Pack, views[hook.held_out])

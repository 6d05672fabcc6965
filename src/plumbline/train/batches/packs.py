"""Opens the packs of a run: checks that they fit its spec, and that their shards are what was packed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.data.loader import Pack
from plumbline.data.verify_pack import verify_once
from plumbline.runtime.distributed import RankGroup
from plumbline.runtime.stop_request import StopRequest
from plumbline.specs.spec import RunSpec
from plumbline.train.disk_faults import in_words


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
        PlumblineError: naming both packs, and what they say.
    """
    split = ("name", "source", "split_rule")
    ours, theirs = ([pack_.manifest.get("corpus", {}).get(name) for name in split] for pack_ in (pack, validation))
    if pack.tokenizer_sha256 != validation.tokenizer_sha256:
        what, said = "cut with two tokenizers (sha256)", (pack.tokenizer_sha256, validation.tokenizer_sha256)
    elif None not in (*ours, *theirs) and ours != theirs:
        what, said = "of documents that were held out by two rules", (str(ours), str(theirs))
    else:
        return
    raise PlumblineError(
        f"--training-pack: {pack.path} and --validation-pack: {validation.path} are {what}: {said[0]} and {said[1]}; "
        "give two of one corpus, or rerun the rule `pack` for the one that is not meant"
    )


def verify(packs: Sequence[Pack], ranks: RankGroup, stop: StopRequest) -> None:
    """Make sure that all shards are what was packed, once on each node; every rank waits for the slowest node.

    It may take minutes, so the ranks meet every second meanwhile: no collective times out, and a stop is obeyed.

    Raises:
        PlumblineError: a shard is damaged or cannot be read, on any node.
        StopRequested: asked to stop meanwhile.
    """
    said: list[str] = []

    def work() -> None:
        for pack in packs:
            try:
                verify_once(pack)
            except PlumblineError as error:
                said.append(str(error))
            except Exception as error:
                why = in_words(error, pack.path.parent) or f"{type(error).__name__}: {error}"
                said.append(f"{pack.path}: its shards cannot be verified: {why}")

    worker = threading.Thread(target=work, name="verify packs", daemon=True)
    if ranks.node_leader:
        worker.start()
        worker.join(1.0)
    while ranks.sum([float(worker.is_alive())])[0]:
        ranks.poll(stop)
        if worker.is_alive():
            worker.join(1.0)
    for texts in ranks.gather(said):
        if texts:
            raise PlumblineError(texts[0])

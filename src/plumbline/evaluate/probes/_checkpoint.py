"""Opens a checkpoint to probe, and a text to probe it on: a run or a model of ours, or a Hugging Face model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, sha256_file, sha256_text
from plumbline.data import npy
from plumbline.data.loader import Pack, verify_once
from plumbline.data.tokenizer import Tokenizer
from plumbline.evaluate.probes._base import Probe, ProbedModel
from plumbline.evaluate.probes._decoder import ProbedDecoder
from plumbline.model import hugging_face_folder, model_folder
from plumbline.model.finished_run import FinishedRun
from plumbline.specs.spec import require_present_code


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedCheckpoint:
    """A model and what is known of it.

    Attributes:
        subject: the model, as probes read it.
        kind: "plumbline", or the model type of the Hugging Face library.
        identity: names its weights.
        step, fraction: how long it was trained; None if that is not known.
        context: the most tokens that it reads.
        vocabulary: number of its tokens.
        separator: the token between documents, if known.
        run: of a run of ours, what was read of it.
        explain_unreadable: name of a probe, probe, and tokens fed -> why its numbers would not be what they are called
            here.
    """

    folder: Path
    subject: ProbedModel
    kind: str
    identity: str
    step: int | None
    fraction: float | None
    context: int
    vocabulary: int
    separator: int | None = None
    run: FinishedRun | None = None
    explain_unreadable: Callable[[str, Probe, int], str | None] = lambda name, probe, tokens: None


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeSequences:
    """Sequences (B, T) to read, each with a last token that is a target only; `name` says where they come from."""

    name: str
    tokens_BT: torch.Tensor
    separator: int | None


def open_checkpoint(folder: Path, device: torch.device) -> LoadedCheckpoint:
    """Open a model from its folder.

    Raises:
        PlumblineError: the folder is of no known form, or something in it is not what it should be.
    """
    if (folder / "manifest.json").is_file():
        return _open_run(folder, device)
    if (folder / model_folder.SPEC).is_file():
        return _open_model(folder, device)
    if (folder / "config.json").is_file():
        return _open_hugging_face(folder, device)
    raise PlumblineError(
        f"--checkpoint: {folder} holds neither manifest.json (a run of ours) nor {model_folder.SPEC} (a model of ours) "
        "nor config.json (a model in Hugging Face form); name the folder of one of these"
    )


def _open_run(folder: Path, device: torch.device) -> LoadedCheckpoint:
    run = FinishedRun.read(folder)
    require_present_code(run.spec)
    step = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))["weights_step"]
    return LoadedCheckpoint(
        folder=folder,
        subject=ProbedDecoder(run.model().to(device), run.spec.train.precision, run.spec.init_seed),
        kind="plumbline",
        identity=run.spec.run_id,
        step=step,
        fraction=step / run.spec.train.steps,
        context=run.spec.model.context,
        vocabulary=run.spec.model.vocabulary,
        run=run,
    )


def _open_model(folder: Path, device: torch.device) -> LoadedCheckpoint:
    model = model_folder.read_model(folder)
    return LoadedCheckpoint(
        folder=folder,
        subject=ProbedDecoder(model.to(device)),
        kind="plumbline",
        identity=_hash_files([folder / model_folder.SPEC, folder / model_folder.WEIGHTS]),
        step=None,
        fraction=None,
        context=model.spec.context,
        vocabulary=model.spec.vocabulary,
    )


def _hash_files(files: list[Path]) -> str:
    return sha256_text(canonical_json({file.name: sha256_file(file) for file in files}))[:16]


def _open_hugging_face(folder: Path, device: torch.device) -> LoadedCheckpoint:
    from plumbline.evaluate.probes import _transformers

    subject = _transformers.load(folder)
    subject.module.to(device)
    files = [folder / "config.json", *sorted(folder.glob("*.safetensors"))]
    end = subject.config.eos_token_id
    return LoadedCheckpoint(
        folder=folder,
        subject=subject,
        kind=subject.kind,
        identity=_hash_files(files),
        step=None,
        fraction=None,
        context=subject.config.max_position_embeddings,
        vocabulary=subject.config.vocab_size,
        # Some models end in any of several tokens; the first is the one between documents.
        separator=end[0] if isinstance(end, list) else end,
        explain_unreadable=subject.explain_unreadable,
    )


def read_sequences(
    checkpoint: LoadedCheckpoint,
    *,
    text: Path | None,
    tokens: Path | None,
    validation: Path | None,
    tokenizer: Path | None,
    sequences: int,
    context: int | None,
) -> ProbeSequences:
    """Read up to `sequences` sequences of `context` tokens from whichever source is given.

    Without any, the English of Python's own language reference is read, which every installation holds.

    Raises:
        PlumblineError: the source cannot be read, is not of this model's vocabulary, or is shorter than one sequence.
    """
    if sequences < 1 or (context is not None and context < 2):
        raise PlumblineError("--sequences must be at least 1, and --context at least 2 (an input and its target)")
    if context is not None and context > checkpoint.context:
        raise PlumblineError(f"--context: {checkpoint.folder} reads {checkpoint.context} tokens at most, not {context}")
    context = min(checkpoint.context, 1024) if context is None else context
    separator = checkpoint.separator
    if validation is not None:
        pack = Pack(validation)
        verify_once(pack)
        if checkpoint.run is not None:
            checkpoint.run.require_pack(pack)
        name, separator = f"pack {pack.fingerprint[:16]}", pack.separator
        # Whole sequences of the pack, cut to the context: they are shuffled, and one does not go on in the next.
        if pack.context < context:
            raise PlumblineError(f"--validation-pack: {validation} has {pack.context} tokens a sequence, not {context}")
        tokens_BT = pack.rows(np.arange(min(sequences, len(pack))))[:, :context]
    elif tokens is not None:
        name, tokens_BT = (
            f"tokens {sha256_file(tokens)[:16]}" if tokens.is_file() else "",
            _load_tokens(tokens, context),
        )
    else:
        content = _read_content(text)
        name = f"text {sha256_text(content)[:16]}" if text is not None else "Python's language reference"
        tokens_BT = _cut_sequences(
            np.array(_encode(checkpoint, content, tokenizer), dtype=np.int64), context, str(text or name)
        )
    tokens_BT = tokens_BT[:sequences]
    if len(tokens_BT) < sequences:
        print(
            f"{name}: {len(tokens_BT)} whole sequences of {tokens_BT.shape[1]} tokens, not {sequences}", file=sys.stderr
        )
    if tokens_BT.min() < 0 or tokens_BT.max() >= checkpoint.vocabulary:
        raise PlumblineError(
            f"{name}: ids from {tokens_BT.min()} to {tokens_BT.max()}, and the model has {checkpoint.vocabulary} "
            "entries; these are another tokenizer's"
        )
    return ProbeSequences(name=name, tokens_BT=torch.from_numpy(tokens_BT.astype(np.int64)), separator=separator)


def _read_content(path: Path | None) -> str:
    if path is None:
        from pydoc_data.topics import topics

        return "\n\n".join(topics[name] for name in sorted(topics))
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlumblineError(f"--text: {path} cannot be read as UTF-8 text ({error})") from error


def _encode(checkpoint: LoadedCheckpoint, content: str, tokenizer: Path | None) -> list[int]:
    """Ids of a text, without special tokens."""
    if tokenizer is not None:
        if checkpoint.run is not None:
            checkpoint.run.require_tokenizer(tokenizer)
        return Tokenizer(tokenizer).encode(content)
    if checkpoint.kind == "plumbline":
        raise PlumblineError(
            "--checkpoint: a folder of ours holds no tokenizer; give --validation-pack (its pack's manifest), "
            "--token-ids, or --tokenizer (its corpus's tokenizer.json) with or without --text"
        )
    from transformers import AutoTokenizer

    remedy = "give --tokenizer or --token-ids"
    try:
        with hugging_face_folder.library_errors(checkpoint.folder):
            own = AutoTokenizer.from_pretrained(checkpoint.folder, local_files_only=True)
    except PlumblineError as error:
        raise PlumblineError(f"--checkpoint: {checkpoint.folder} holds no tokenizer ({error}); {remedy}") from error
    # Where there are no files, the library may make a tokenizer without entries.
    files = {"tokenizer.json", *own.vocab_files_names.values()}
    if not any((checkpoint.folder / file).is_file() for file in files):
        raise PlumblineError(f"--checkpoint: {checkpoint.folder} holds no tokenizer; {remedy}")
    return own(content, add_special_tokens=False, verbose=False)["input_ids"]


def _load_tokens(path: Path, context: int) -> np.ndarray:
    """Ids from a .npy: sequences as they are, cut to the context, or one long line of tokens."""
    try:
        ids = npy.map_array(path)
    except (OSError, ValueError) as error:
        raise PlumblineError(f"--token-ids: {path} cannot be read as an array ({error})") from error
    if not np.issubdtype(ids.dtype, np.integer) or ids.ndim not in (1, 2):
        raise PlumblineError(f"--token-ids: {path} holds {ids.dtype} of shape {ids.shape}; give integers (T) or (B, T)")
    if ids.ndim == 1:
        return _cut_sequences(ids, context, str(path))
    if ids.shape[0] < 1 or ids.shape[1] < 2:
        raise PlumblineError(f"--token-ids: {path} has the shape {ids.shape}; a sequence has at least two tokens")
    return ids[:, :context]


def _cut_sequences(tokens_T: np.ndarray, context: int, name: str) -> np.ndarray:
    whole = len(tokens_T) // context
    if not whole:
        raise PlumblineError(
            f"{name} has {len(tokens_T)} tokens, less than one sequence of {context}; give more, or a smaller --context"
        )
    return tokens_T[: whole * context].reshape(whole, context)

"""Reads the probes of one checkpoint and writes them: ``python -m plumbline.probes --checkpoint``."""

from __future__ import annotations

import argparse
import json
import sys

import pandas as pd
import torch

from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.model.numerics import numerics
from plumbline.probes._checkpoint import LoadedCheckpoint, open_checkpoint, read_text
from plumbline.probes._forward_pass import build, observe
from plumbline.probes._frame import rows, write
from plumbline.specs.components import code_class, complete
from plumbline.specs.spec import ProbeSpec


def read_single(given: argparse.Namespace, names: list[str]) -> pd.DataFrame:
    """Read the probes `names` of the checkpoint that the command line names; write its frame, and its picture.

    Raises:
        PlumblineError: the checkpoint or the text cannot be read, they do not fit, or CUDA is asked for and not there.
    """
    cuda = torch.cuda.is_available() if given.device == "auto" else given.device == "cuda"
    if cuda and not torch.cuda.is_available():
        raise PlumblineError("--device cuda: this machine has no CUDA device; use --device cpu")
    device = torch.device("cuda" if cuda else "cpu")
    numerics(device)
    checkpoint = open_checkpoint(given.checkpoint, device)
    text = read_text(
        checkpoint,
        text=given.text,
        tokens=given.token_ids,
        validation=given.validation_pack,
        tokenizer=given.tokenizer,
        sequences=8 if given.sequences is None else given.sequences,
        context=given.context,
    )
    chosen = [complete("probe", {"name": name}, "--probes") for name in names]
    probes = build([ProbeSpec(name=options.pop("name"), options=options) for options in chosen])
    if given.later_checkpoint is not None:
        other = open_checkpoint(given.later_checkpoint, device)
        _check_alike(checkpoint, other)
        for probe in probes:
            probe.other = other.subject if probe.against is not None else None
    probe_values = observe(checkpoint.subject, probes, text.tokens_BT.to(device), text.separator)
    found = rows(
        checkpoint.identity,
        "offline",
        ((checkpoint.step, checkpoint.fraction, probe_value) for probe_value in probe_values),
    )
    sequences, context = text.tokens_BT.shape
    write(
        given.out,
        found,
        {
            "checkpoint": str(given.checkpoint),
            "against": "" if given.later_checkpoint is None else str(given.later_checkpoint),
            "kind": checkpoint.kind,
            "text": text.name,
            "sequences": str(sequences),
            "context": str(context),
            "separator": "" if text.separator is None else str(text.separator),
            "probes": json.dumps({name: code_class("probe", name) for name in names}),
            "torch": str(torch.__version__),
            "device": torch.cuda.get_device_name(device) if cuda else "cpu",
        },
    )
    frame = frames.read(given.out, "probes")
    if given.picture is not None and frame.empty:
        print(f"--picture: these probes read nothing here, so there is no {given.picture}", file=sys.stderr)
    elif given.picture is not None:
        from plumbline.probes import _picture

        title = f"{given.checkpoint.resolve().name} ({checkpoint.kind}) · {sequences} × {context} tokens of {text.name}"
        _picture.save(_picture.draw(frame, title), given.picture)
    return frame


def _check_alike(checkpoint: LoadedCheckpoint, other: LoadedCheckpoint) -> None:
    """Two points of one training have the same shapes."""
    shapes = [
        (one.subject.layers, one.vocabulary, *(tuple(weight.shape) for weight in one.subject.query_key_weights(0)))
        for one in (checkpoint, other)
    ]
    if shapes[0] != shapes[1]:
        raise PlumblineError(
            f"--later-checkpoint: {other.folder} is not the same model as {checkpoint.folder} at another point"
        )

"""Reads the probes of one checkpoint and writes them: ``python -m plumbline.evaluate.probes --checkpoint``."""

from __future__ import annotations

import argparse
import json
import sys

import pandas as pd
import torch

from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.evaluate.probes._base import Probe
from plumbline.evaluate.probes._checkpoint import LoadedCheckpoint, open_checkpoint, read_sequences
from plumbline.evaluate.probes._forward_pass import build, observe
from plumbline.evaluate.probes._frame import make_rows, write_frame
from plumbline.model.numerics import numerics
from plumbline.specs.components import code_class, complete
from plumbline.specs.spec import ProbeSpec


def read_single(request: argparse.Namespace, names: list[str]) -> pd.DataFrame:
    """Read the probes `names` of the checkpoint that the command line names; write its frame, and its picture.

    Raises:
        PlumblineError: the checkpoint or the text cannot be read, they do not fit, or CUDA is requested and not there.
    """
    cuda = torch.cuda.is_available() if request.device == "auto" else request.device == "cuda"
    if cuda and not torch.cuda.is_available():
        raise PlumblineError("--device cuda: this machine has no CUDA device; use --device cpu")
    device = torch.device("cuda" if cuda else "cpu")
    numerics(device)
    checkpoint = open_checkpoint(request.checkpoint, device)
    text = read_sequences(
        checkpoint,
        text=request.text,
        tokens=request.token_ids,
        validation=request.validation_pack,
        tokenizer=request.tokenizer,
        sequences=8 if request.sequences is None else request.sequences,
        context=request.context,
    )
    probes_by_name = _select_readable_probes(request, checkpoint, names, text.tokens_BT.shape[1] - 1)
    probes = list(probes_by_name.values())
    if request.later_checkpoint is not None:
        other = open_checkpoint(request.later_checkpoint, device)
        _require_same_shapes(checkpoint, other)
        for probe in probes:
            probe.other = other.subject if probe.against is not None else None
    probe_values = observe(checkpoint.subject, probes, text.tokens_BT.to(device), text.separator)
    values = make_rows(
        checkpoint.identity,
        "offline",
        ((checkpoint.step, checkpoint.fraction, probe_value) for probe_value in probe_values),
    )
    sequences, context = text.tokens_BT.shape
    write_frame(
        request.out,
        values,
        {
            "checkpoint": str(request.checkpoint),
            "against": "" if request.later_checkpoint is None else str(request.later_checkpoint),
            "kind": checkpoint.kind,
            "text": text.name,
            "sequences": str(sequences),
            "context": str(context),
            "separator": "" if text.separator is None else str(text.separator),
            "probes": json.dumps({name: code_class("probe", name) for name in probes_by_name}),
            "torch": str(torch.__version__),
            "device": torch.cuda.get_device_name(device) if cuda else "cpu",
        },
    )
    frame = frames.read(request.out, "probes")
    if request.picture is not None and frame.empty:
        print(f"--picture: these probes read nothing here, so there is no {request.picture}", file=sys.stderr)
    elif request.picture is not None:
        from plumbline.evaluate.probes import _picture

        title = (
            f"{request.checkpoint.resolve().name} ({checkpoint.kind}) · {sequences} × {context} tokens of {text.name}"
        )
        _picture.save(_picture.draw(frame, title), request.picture)
    return frame


def _select_readable_probes(
    request: argparse.Namespace, checkpoint: LoadedCheckpoint, names: list[str], tokens: int
) -> dict[str, Probe]:
    """New probes by their names. Where none was chosen, those that this model cannot answer are left out, and why is
    said on stderr.

    Raises:
        PlumblineError: a probe that was chosen is one of these.
    """
    chosen = [complete("probe", {"name": name}, "--probes") for name in names]
    probes = build([ProbeSpec(name=options.pop("name"), options=options) for options in chosen])
    probes_by_name = {}
    for name, probe in zip(names, probes, strict=True):
        reason = checkpoint.explain_unreadable(name, probe, tokens)
        if reason is None:
            probes_by_name[name] = probe
        elif request.probes is None:
            print(f"{request.checkpoint}: {name} is left out: {reason}", file=sys.stderr)
        else:
            raise PlumblineError(f"--probes: {name} does not go with {request.checkpoint}: {reason}")
    return probes_by_name


def _require_same_shapes(checkpoint: LoadedCheckpoint, other: LoadedCheckpoint) -> None:
    """Two points of one training have the same shapes."""
    shapes = [
        (
            point.subject.layers,
            point.vocabulary,
            *(tuple(weight.shape) for weight in point.subject.query_key_weights(0)),
        )
        for point in (checkpoint, other)
    ]
    if shapes[0] != shapes[1]:
        raise PlumblineError(
            f"--later-checkpoint: {other.folder} is not the same model as {checkpoint.folder} at another point"
        )

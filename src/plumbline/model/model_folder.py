"""Writes a decoder to a folder without a run, and reads it: `model.json` (its spec) and `model.safetensors`."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic, atomic_write_json, naming, of_disk, sha256_file
from plumbline.model.decoder import Decoder
from plumbline.specs.spec import ModelSpec

SPEC = "model.json"
WEIGHTS = "model.safetensors"


def write_model(folder: Path, model: Decoder) -> None:
    """Write a decoder's spec, and its weights in float32, into `folder`."""
    write_weights(folder, model)
    weights_sha256 = sha256_file(folder / WEIGHTS)
    atomic_write_json(folder / SPEC, {"model": model.spec.to_dict(), "weights_sha256": weights_sha256})


def write_weights(folder: Path, model: Decoder) -> None:
    """Write a decoder's weights into `folder`, in float32."""
    with atomic(folder / WEIGHTS) as file:
        weights = {name: value.detach().float().contiguous().cpu() for name, value in model.named_parameters()}
        save_file(weights, file.name)


def read_model(folder: Path) -> Decoder:
    """Read the decoder of a folder, in float32 on the CPU.

    Raises:
        PlumblineError: a file is not there, or not what it should be.
    """
    path = folder / SPEC
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        spec = ModelSpec.from_dict(said["model"], f"{path}: ")
    except (OSError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise PlumblineError(f"{path} does not hold the spec of a model ({type(error).__name__}: {error})") from error
    model = Decoder(spec)
    try:
        expected_sha256, found = said.get("weights_sha256"), sha256_file(folder / WEIGHTS)
    except OSError as error:
        if of_disk(error) is not None:
            raise
        raise PlumblineError(f"{folder / WEIGHTS} cannot be read as weights ({error})") from error
    if expected_sha256 not in (None, found):
        raise PlumblineError(
            f"{folder / WEIGHTS} is not what was written: sha256 {found}, not {expected_sha256} as in {path}; "
            "restore the file, or write the model again"
        )
    load_weights(model, folder / WEIGHTS, str(path), "write or copy both files again")
    return model


def load_weights(model: Decoder, path: Path, spec: str, remedy: str, *, finite: bool = True) -> None:
    """Load a file of weights into a decoder: those of its names and shapes, in float32, as they are written here.

    Args:
        spec: what says which weights those are, and `remedy` what to do about others; for messages.
        finite: whether all have to be finite numbers.

    Raises:
        PlumblineError: it is no such file, or its weights are others.
    """
    try:
        with naming(path):
            weights = load_file(path, device=str(model.embedding.device))
    except (OSError, SafetensorError) as error:
        if of_disk(error) is not None:  # the disk's fault: the weights may be whole
            raise
        raise PlumblineError(f"{path}: cannot be read as weights ({error}); {remedy}") from error
    expected = model.state_dict()
    for name in sorted(set(expected) | set(weights)):
        if name not in weights or name not in expected or expected[name].shape != weights[name].shape:
            raise PlumblineError(f"{path}: {name!r} does not fit {spec}; {remedy}")
        # Copied into a decoder, integers and complex numbers would lose what they say without a word.
        if weights[name].dtype != torch.float32:
            raise PlumblineError(f"{path}: {name!r} is of {weights[name].dtype}, not of torch.float32; {remedy}")
        if finite and not torch.isfinite(weights[name]).all():
            raise PlumblineError(f"{path}: {name!r} has values that are not finite; {remedy}")
    model.load_state_dict(weights)

"""Writes a decoder to a folder without a run, and reads it: `model.json` (its spec) and `model.safetensors`."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic, atomic_write_json, sha256_file
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
        if expected_sha256 not in (None, found):
            raise PlumblineError(
                f"{folder / WEIGHTS} is not what was written: sha256 {found}, not {expected_sha256} as in {path}; "
                "restore the file, or write the model again"
            )
        weights = load_file(folder / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise PlumblineError(f"{folder / WEIGHTS} cannot be read as weights ({error})") from error
    expected = model.state_dict()
    wrong = sorted(set(expected) ^ set(weights)) or sorted(
        name for name in expected if expected[name].shape != weights[name].shape
    )
    if wrong:
        raise PlumblineError(f"{folder / WEIGHTS}: {wrong[0]!r} does not fit {path}; they belong to two models")
    model.load_state_dict(weights)
    return model

"""Writes a decoder to a folder without a run, and reads it: `model.json` (its spec) and `model.safetensors`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from plumbline.core.errors import PlumblineError
from plumbline.core.files import (
    atomic_write_json,
    find_disk_error,
    name_in_errors,
    open_atomically,
    parse_json,
    sha256_file,
)
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
    with open_atomically(folder / WEIGHTS) as file:
        weights = {name: value.detach().float().contiguous().cpu() for name, value in model.named_parameters()}
        save_file(weights, file.name)


def read_model(folder: Path) -> Decoder:
    """Read the decoder of a folder, in float32 on the CPU.

    Raises:
        PlumblineError: a file is not there, or not what it should be.
    """
    path = folder / SPEC
    try:
        content = parse_json(path.read_bytes())
        spec = ModelSpec.from_dict(content["model"], f"{path}: ")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlumblineError(f"{path} does not hold the spec of a model ({type(error).__name__}: {error})") from error
    try:
        expected_sha256, sha256 = content.get("weights_sha256"), sha256_file(folder / WEIGHTS)
    except OSError as error:
        if find_disk_error(error) is not None:
            raise
        raise PlumblineError(f"{folder / WEIGHTS} cannot be read as weights ({error})") from error
    if expected_sha256 not in (None, sha256):
        raise PlumblineError(
            f"{folder / WEIGHTS} is not what was written: sha256 {sha256}, not {expected_sha256} as in {path}; "
            "restore the file, or write the model again"
        )
    return read_decoder(spec, folder / WEIGHTS, str(path), "write or copy both files again")


class TensorHeader(NamedTuple):
    """What a file's header says of one tensor: its shape, and its type as safetensors names it (F32, BF16, I64)."""

    shape: torch.Size
    dtype: str


def read_headers(path: Path, remedy: str) -> dict[str, TensorHeader]:
    """What a safetensors file says of each of its tensors, by name; no tensor is read.

    Raises:
        PlumblineError: it is no such file, or not whole; `remedy` says what to do.
    """
    headers: dict[str, TensorHeader] = {}
    try:
        with name_in_errors(path), safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (it is no mapping)
                tensor = file.get_slice(name)
                headers[name] = TensorHeader(torch.Size(tensor.get_shape()), tensor.get_dtype())
    except (OSError, SafetensorError) as error:
        if find_disk_error(error) is not None:
            raise
        raise PlumblineError(f"{path}: cannot be read as weights ({error}); {remedy}") from error
    return headers


def read_decoder(spec: ModelSpec, path: Path, source: str, remedy: str) -> Decoder:
    """Make the decoder of a spec with the weights of a file, in float32 on the CPU.

    The file's header is compared with the spec first: a size that is wrong there would take any amount of memory.

    Args:
        source: what says the spec, and `remedy` what to do about weights of another one; for messages.

    Raises:
        PlumblineError: the file is none of weights, or its weights are others than the spec's.
    """
    shapes = {name: header.shape for name, header in read_headers(path, remedy).items()}
    if spec.layers > len(shapes) and not spec.shared_layers:
        raise PlumblineError(f"{path}: {len(shapes)} tensors, and {source} says {spec.layers} layers; {remedy}")
    try:
        with torch.device("meta"):
            expected = {name: value.shape for name, value in Decoder(spec).state_dict().items()}
    except RuntimeError as error:  # more numbers than torch can count
        raise PlumblineError(f"{path}: {source} says sizes that no model has ({error}); {remedy}") from error
    _require_shapes(path, expected, shapes, source, remedy)
    model = Decoder(spec)
    load_weights(model, path, source, remedy)
    return model


def _require_shapes(
    path: Path, expected: dict[str, torch.Size], shapes: dict[str, torch.Size], source: str, remedy: str
) -> None:
    for name in sorted(expected.keys() | shapes.keys()):
        if name not in shapes:
            fault = "it is missing"
        elif name not in expected:
            fault = "no weight of that model"
        elif shapes[name] != expected[name]:
            fault = f"its shape is {list(shapes[name])}, not {list(expected[name])}"
        else:
            continue
        raise PlumblineError(f"{path}: {name!r} does not fit {source}: {fault}; {remedy}")


def load_weights(model: Decoder, path: Path, spec: str, remedy: str, *, finite: bool = True) -> None:
    """Load a file of weights into a decoder: those of its names and shapes, in float32, as they are written here.

    Args:
        spec: what says which weights those are, and `remedy` what to do about others; for messages.
        finite: whether all have to be finite numbers.

    Raises:
        PlumblineError: it is no such file, or its weights are others.
    """
    try:
        with name_in_errors(path):
            weights = load_file(path, device=str(model.embedding.device))
    except (OSError, SafetensorError) as error:
        if find_disk_error(error) is not None:  # the disk's fault: the weights may be whole
            raise
        raise PlumblineError(f"{path}: cannot be read as weights ({error}); {remedy}") from error
    expected, shapes = ({name: value.shape for name, value in of.items()} for of in (model.state_dict(), weights))
    _require_shapes(path, expected, shapes, spec, remedy)
    for name in sorted(weights):
        # Copied into a decoder, integers and complex numbers would lose what they say without a word.
        if weights[name].dtype != torch.float32:
            raise PlumblineError(f"{path}: {name!r} is of {weights[name].dtype}, not of torch.float32; {remedy}")
        if finite and not torch.isfinite(weights[name]).all():
            raise PlumblineError(f"{path}: {name!r} has values that are not finite; {remedy}")
    model.load_state_dict(weights)

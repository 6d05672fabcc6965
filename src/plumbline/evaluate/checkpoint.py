"""A finished run's model: its spec from the manifest, its weights from safetensors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from plumbline.cli import PlumblineError
from plumbline.model.decoder import Decoder
from plumbline.specs.spec import RunSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedRun:
    """What a run left behind. `outcome` is "completed" or "diverged"."""

    folder: Path
    outcome: str
    spec: RunSpec

    @classmethod
    def read(cls, folder: Path) -> FinishedRun:
        """From the run's folder.

        Raises:
            PlumblineError: the run did not finish, or a file of it is not what it should be.
        """
        outcome = _json(folder / "outcome.json")
        manifest = _json(folder / "manifest.json")
        for name, document, key in (("outcome", outcome, "outcome"), ("manifest", manifest, "spec")):
            if key not in document:
                raise PlumblineError(f"{folder / f'{name}.json'}: {key!r} is missing")
        return cls(folder=folder, outcome=outcome["outcome"], spec=RunSpec.from_dict(manifest["spec"]))

    def model(self) -> Decoder:
        """The trained decoder in float32.

        Raises:
            PlumblineError: the weights cannot be read, are not those of the spec, or are not finite.
        """
        path = self.folder / "model.safetensors"
        remedy = "delete the run's folder and pretrain again"
        try:
            weights = load_file(path)
        except (OSError, SafetensorError) as error:
            raise PlumblineError(f"{path}: cannot be read as weights ({error}); {remedy}") from error
        model = Decoder(self.spec.model)
        expected = model.state_dict()
        wrong = sorted(set(expected) ^ set(weights)) or sorted(
            name for name in expected if expected[name].shape != weights[name].shape
        )
        if wrong:
            raise PlumblineError(f"{path}: {wrong[0]!r} does not fit the spec in manifest.json; {remedy}")
        broken = sorted(name for name, tensor in weights.items() if not torch.isfinite(tensor).all())
        if broken:
            raise PlumblineError(f"{path}: {broken[0]!r} has values that are not finite; {remedy}")
        model.load_state_dict(weights)
        return model.float()


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise PlumblineError(f"--run: there is no {path}; the run has not finished")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise PlumblineError(f"{path} is not JSON: {error}") from error

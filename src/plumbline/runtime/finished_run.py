"""Reads a finished run: its spec from the manifest, its model's weights from safetensors."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import parse_json, sha256_file
from plumbline.model.decoder import Decoder
from plumbline.model.folder import load_weights
from plumbline.specs.spec import RunSpec

MODEL = "model.safetensors"
_REMEDY = "delete the run's folder and pretrain again: what is whole in the run's state is not trained twice"


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedRun:
    """A finished run on disk. `outcome` is "completed" or "diverged"."""

    folder: Path
    outcome: str
    spec: RunSpec
    #: What the manifest says of the run's files; empty for runs that were made before it said anything.
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> FinishedRun:
        """Read a finished run from its folder.

        Raises:
            PlumblineError: the run did not finish, or a file of it is not what it should be.
        """
        outcome = _json(folder / "outcome.json")
        manifest = _json(folder / "manifest.json")
        for name, document, key in (("outcome", outcome, "outcome"), ("manifest", manifest, "spec")):
            if key not in document:
                raise PlumblineError(f"{folder / f'{name}.json'}: {key!r} is missing")
        if outcome.get("run_id") != manifest.get("run_id"):
            raise PlumblineError(
                f"{folder}: outcome.json is of run {outcome.get('run_id')}, manifest.json of {manifest.get('run_id')}; "
                f"{_REMEDY}"
            )
        spec, files = RunSpec.from_dict(manifest["spec"]), manifest.get("files", {})
        return cls(folder=folder, outcome=outcome["outcome"], spec=spec, files=files)

    def weights_sha256(self) -> str:
        """Compute the SHA-256 of the weights and compare it with the one that the trainer wrote down.

        Raises:
            PlumblineError: they are not the bytes that the trainer wrote, or are not there.
        """
        path = self.folder / MODEL
        try:
            found = sha256_file(path)
        except OSError as error:
            raise PlumblineError(f"{path}: cannot be read as weights ({error}); {_REMEDY}") from error
        expected = self.files.get(MODEL, {}).get("sha256")
        if expected is None:
            print(f"{path}: its manifest, of an earlier version, has no checksum to compare it with", file=sys.stderr)
        elif found != expected:
            raise PlumblineError(
                f"{path} is not what the trainer wrote: sha256 {found}, not {expected} as in manifest.json; {_REMEDY}"
            )
        return found

    def model(self) -> Decoder:
        """Load the trained decoder, in float32.

        Raises:
            PlumblineError: the weights cannot be read, are not what the trainer wrote or not those of the spec, or are
                not finite.
        """
        path = self.folder / MODEL
        self.weights_sha256()
        model = Decoder(self.spec.model)
        load_weights(model, path, "the spec in manifest.json", _REMEDY)
        return model


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise PlumblineError(
            f"there is no {path}; the run has not finished: run the command that trains it again, or name the folder "
            "of a finished one, such as work/demo/runs/transfer/base/baseline/s42"
        )
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise PlumblineError(f"{path} is not JSON: {error}") from error

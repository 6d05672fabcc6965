"""Reads a finished run: its spec from the manifest, its model's weights from safetensors."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from plumbline.core import run_files
from plumbline.core.errors import PlumblineError
from plumbline.core.files import find_disk_error, parse_json, sha256_file
from plumbline.core.run_files import MODEL, REMEDY, TOKENIZER
from plumbline.data import tokenizer as tokenizers
from plumbline.data.loader import Pack
from plumbline.model.decoder import Decoder
from plumbline.model.model_folder import read_decoder
from plumbline.specs.spec import RunSpec

#: The label of a frame where the run's manifest has no checksum.
NOT_RECORDED = "not recorded"


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedRun:
    """A finished run on disk. `outcome` is "completed" or "diverged"."""

    folder: Path
    outcome: str
    spec: RunSpec
    manifest: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> FinishedRun:
        """Read a finished run from its folder.

        Raises:
            PlumblineError: the run did not finish, or a file of it is not what it should be.
        """
        outcome = _read_json(folder / "outcome.json")
        manifest = _read_json(folder / "manifest.json")
        for name, document, key in (("outcome", outcome, "outcome"), ("manifest", manifest, "spec")):
            if key not in document:
                raise PlumblineError(f"{folder / f'{name}.json'}: {key!r} is missing")
        if outcome.get("run_id") != manifest.get("run_id"):
            raise PlumblineError(
                f"{folder}: outcome.json is of run {outcome.get('run_id')}, manifest.json of {manifest.get('run_id')}; "
                f"{REMEDY}"
            )
        run_files.require_manifest(folder / "manifest.json", manifest)
        run_files.require(folder, manifest, "outcome.json")
        spec = RunSpec.from_dict(manifest["spec"])
        return cls(folder=folder, outcome=outcome["outcome"], spec=spec, manifest=manifest)

    def require_tokenizer(self, tokenizer: Path) -> str:
        """Compute the SHA-256 of a tokenizer.json, and compare it with that of the tokenizer that the run was trained
        with.

        Raises:
            PlumblineError: it is another one, or nothing says which one it should be.
        """
        return run_files.require_tokenizer(self.folder, self.manifest, tokenizer)

    def read_tokenizer(self, tokenizer: Path) -> Tokenizer:
        """Read the tokenizer that the run was trained with from its tokenizer.json, which is compared first.

        Raises:
            PlumblineError: as `require_tokenizer`; or the file's bytes are no tokenizer.
        """
        self.require_tokenizer(tokenizer)
        return tokenizers.read(tokenizer)

    def require_pack(self, pack: Pack) -> None:
        """Refuse a pack that another tokenizer made than the run's, where the run's manifest says which that is.

        Raises:
            PlumblineError: naming both.
        """
        expected = self.manifest.get(TOKENIZER)
        if expected not in (None, pack.tokenizer_sha256):
            raise PlumblineError(
                f"{pack.path} was cut with another tokenizer (sha256 {pack.tokenizer_sha256}) than {self.folder} was "
                f"trained with ({expected}); give a pack of the run's corpus"
            )

    def look_up_sha256(self, name: str) -> str | None:
        """Look up the SHA-256 of one of the run's files; None if the manifest, of an earlier version, has none."""
        sha256: str | None = self.manifest.get("files", {}).get(name, {}).get("sha256")
        return sha256

    def require_file(self, name: str) -> None:
        """Compare one of the run's files with the checksum that the trainer wrote down, where it wrote one.

        Raises:
            PlumblineError: it has not the bytes that the trainer wrote.
        """
        run_files.require(self.folder, self.manifest, name)

    def weights_sha256(self) -> str:
        """Compute the SHA-256 of the weights and compare it with the one that the trainer wrote down.

        Raises:
            PlumblineError: they are not the bytes that the trainer wrote, or are not there.
        """
        path = self.folder / MODEL
        try:
            sha256 = run_files.require(self.folder, self.manifest, MODEL)
            if sha256 is None:
                sha256 = sha256_file(path)
                print(
                    f"{path}: its manifest, of an earlier version, has no checksum to compare it with", file=sys.stderr
                )
        except OSError as error:
            if find_disk_error(error) is not None:  # the disk's fault: the weights may be whole
                raise
            raise PlumblineError(f"{path}: cannot be read as weights ({error}); {REMEDY}") from error
        return sha256

    def model(self) -> Decoder:
        """Load the trained decoder, in float32.

        Raises:
            PlumblineError: the weights cannot be read, are not what the trainer wrote or not those of the spec, or are
                not finite.
        """
        path = self.folder / MODEL
        self.weights_sha256()
        return read_decoder(self.spec.model, path, "the spec in manifest.json", REMEDY)


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise PlumblineError(
            f"there is no {path}; the run has not finished: run the command that trains it again, or name the folder "
            "of a finished one, such as work/demo/runs/transfer/base/baseline/s42"
        )
    try:
        content = parse_json(path.read_bytes())
    except ValueError as error:
        raise PlumblineError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise PlumblineError(f"{path} holds no JSON object, as every run writes one; {REMEDY}")
    return content

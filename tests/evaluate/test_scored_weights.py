"""Whose weights are scored, and whether they are what the trainer wrote; scores that are not numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.evaluate.harness_model import CheckpointLM
from plumbline.model.decoder import create
from plumbline.model.finished_run import FinishedRun

from .conftest import spec
from .test_harness_model import CONTEXT, requests


@pytest.fixture
def recorded(finished: Path) -> Path:
    """A run whose manifest states what its weights are, as the trainer writes it."""
    manifest = json.loads((finished / "manifest.json").read_text())
    manifest["files"] = {"model.safetensors": {"sha256": sha256_file(finished / "model.safetensors")}}
    (finished / "manifest.json").write_text(json.dumps(manifest))
    return finished


def test_rotted_weights_are_not_scored(recorded: Path) -> None:
    path = recorded / "model.safetensors"
    assert FinishedRun.read(recorded).model().spec == spec().model
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(PlumblineError, match=r"trainer wrote: sha256 .*pretrain"):
        FinishedRun.read(recorded).model()


def test_another_runs_weights_are_not_scored(recorded: Path) -> None:
    """Of the same shapes, finite and whole."""
    path = recorded / "model.safetensors"
    other = {name: value + 1 for name, value in load_file(path).items()}
    path.unlink()
    save_file(other, path)
    with pytest.raises(PlumblineError, match=r"not what.*trainer"):
        FinishedRun.read(recorded).model()


def test_weights_of_run_without_record_are_scored_with_note(finished: Path, capsys) -> None:
    FinishedRun.read(finished).model()
    assert "has no checksum" in capsys.readouterr().err


def test_an_outcome_of_another_run_is_refused(finished: Path) -> None:
    (finished / "outcome.json").write_text(json.dumps({"run_id": "f" * 16, "outcome": "completed"}))
    with pytest.raises(PlumblineError, match=r"outcome.json .* f+, manifest.json .* [0-9a-f]+; delete"):
        FinishedRun.read(finished)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_log_probabilities_that_are_nan(tokenizer: Tokenizer, value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """argmax over NaN gives an answer, and an accuracy that looks like any other."""
    decoder = create(spec().model, 1)
    model = CheckpointLM(decoder, tokenizer, context=CONTEXT)
    original = decoder.logits
    monkeypatch.setattr(decoder, "logits", lambda hidden: torch.full_like(original(hidden), value))
    with pytest.raises(PlumblineError, match=r"a log-probability.*answer.*\d+ tokens"):
        model.loglikelihood(requests(("harbour", " lantern")))

"""Models to take W_Q out of, and the command that does it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import Decoder, create
from plumbline.model.model_folder import write_model
from plumbline.specs.spec import ModelSpec
from plumbline.studies.query_free.eliminate_query import __main__ as eliminate_query
from tests.evaluate.probes.hugging_face_models import GPT2

#: What theorem 4.2 is about, at a size for tests; attention is sharp at this init.
NORM_FREE: dict[str, Any] = {
    "layers": 3,
    "width": 32,
    "heads": 4,
    "key_value_heads": 4,
    "head_width": 8,
    "ffn_width": 48,
    "vocabulary": 97,
    "context": 24,
    "norm_eps": 1e-5,
    "init_std": 0.15,
    "residual_init_scaling": False,
    "tied_embeddings": True,
    "positions": {"name": "learned"},
    "norm": {"name": "none"},
    "projections": {"name": "grouped_query"},
    "query_key": {"name": "identity"},
    "values": {"name": "identity"},
    "mixer": {"name": "softmax"},
    "output": {"name": "identity"},
    "ffn": {"name": "gelu"},
    "placement": {"name": "pre_norm"},
    "residual": {"name": "attention_skip"},
}
BIASED = {"projections": {"name": "grouped_query", "bias": True}, "ffn": {"name": "gelu", "bias": True}}
SKIPS = {"residual": {"name": "standard"}}
UNTIED = {"tied_embeddings": False}
ROTARY = {"positions": {"name": "rotary"}}
ONE_HEAD = SKIPS | {"heads": 1, "key_value_heads": 1, "head_width": 32, "norm": {"name": "layer_norm"}}


def off_its_start(model: Decoder) -> Decoder:
    """Every parameter, gains and biases too, away from where it starts."""
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for value in model.parameters():
            value += 0.1 * torch.randn(value.shape, generator=generator)
    return model


def write_random_model(folder: Path, **slots: Any) -> Decoder:
    """A model of ours, written."""
    model = off_its_start(create(ModelSpec.from_dict(NORM_FREE | slots), init_seed=3))
    write_model(folder, model)
    return model


def one_headed(folder: Path, **config: Any) -> Any:
    """A GPT-2 of the library with one head, every parameter random."""
    torch.manual_seed(7)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**(GPT2 | {"n_head": 1} | config)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    return model.eval()


def run_command(monkeypatch: pytest.MonkeyPatch, folder: Path, *options: Any) -> dict[str, Any]:
    """What the command reports."""
    out = folder.parent / "out"
    arguments = ["eliminate_query", folder, "--out", out, "--sequences", 2, *options]
    monkeypatch.setattr(sys, "argv", [str(word) for word in arguments])
    eliminate_query.main()
    return json.loads((out / "elimination.json").read_text())


def run_refused(monkeypatch: pytest.MonkeyPatch, match: str, folder: Path, *options: Any) -> str:
    """The whole message; nothing is left behind."""
    with pytest.raises(PlumblineError, match=match) as error:
        run_command(monkeypatch, folder, *options)
    assert not (folder.parent / "out").exists() and not list(folder.parent.glob(".out*"))
    return str(error.value)


def tokens(model: Decoder) -> torch.Tensor:
    shape = (3, model.spec.context)
    return torch.randint(0, model.spec.vocabulary, shape, generator=torch.Generator().manual_seed(11))

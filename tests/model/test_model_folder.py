"""A model's folder: its weights are those that were written with its spec."""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import create
from plumbline.model.model_folder import WEIGHTS, read_model, write_model
from tests.model_specs import run_spec


def test_weights_that_were_replaced_are_not_read(tmp_path: Path) -> None:
    write_model(tmp_path, create(run_spec().model, 1))
    read_model(tmp_path)
    weights = {name: value + 1 for name, value in load_file(tmp_path / WEIGHTS).items()}
    (tmp_path / WEIGHTS).unlink()
    save_file(weights, tmp_path / WEIGHTS)
    with pytest.raises(PlumblineError, match=r"model\.safetensors is not what was written: sha256 \w+, not \w+ as in "):
        read_model(tmp_path)

"""A model's folder: its weights are those that were written with its spec."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from plumbline.core.errors import PlumblineError
from plumbline.model import model_folder
from plumbline.model.decoder import create
from plumbline.model.model_folder import WEIGHTS, read_model, write_model
from tests.model_specs import run_spec


def test_weights_that_were_replaced_are_not_read(tmp_path: Path) -> None:
    write_model(tmp_path, create(run_spec().model, 1))
    read_model(tmp_path)
    weights = {name: value + 1 for name, value in load_file(tmp_path / WEIGHTS).items()}
    (tmp_path / WEIGHTS).unlink()
    save_file(weights, tmp_path / WEIGHTS)
    with pytest.raises(PlumblineError, match=r"model\.safetensors.*sha256 \w+, not \w+ as in "):
        read_model(tmp_path)


@pytest.mark.parametrize("reads", ["sha256_file", "load_file"])
def test_a_disk_that_fails_is_not_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: str) -> None:
    """The weights may be whole: nobody is told to write them again."""
    write_model(tmp_path, create(run_spec().model, 1))

    def failing(path: Path, **options: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    monkeypatch.setattr(model_folder, reads, failing)
    with pytest.raises(OSError, match=r"Input/output error: .*model\.safetensors") as refused:
        read_model(tmp_path)
    assert refused.value.errno == errno.EIO

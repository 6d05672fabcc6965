"""An installed package brings a component through the entry point group `plumbline.components`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from plumbline.specs.config import ROOT

COMPONENT = '''
"""Softmax over logits that are divided by a temperature."""

from typing import Literal

from plumbline.specs.components import component
from plumbline.model.mixers.softmax import Softmax


@component
class Tempered(Softmax):
    """Softmax, tempered."""

    def __init__(self, model, *arguments, temperature: float = 2.0, kind: Literal["hot", "cold"] = "hot"):
        super().__init__(model, *arguments)
        self.temperature = temperature
'''
USE = """
import sys
from plumbline.specs.components import complete
chosen = complete("mixer", {"name": "tempered", "temperature": 3}, "model.mixer")
assert chosen == {"name": "tempered", "temperature": 3.0, "kind": "hot"}, chosen
assert "torch" not in sys.modules and "tempering" not in sys.modules
import torch
from tests.model_specs import small
from plumbline.model.decoder import create
model = create(small(mixer=chosen), 0, torch.device("cpu"))
mixers = [module for module in model.modules() if type(module).__name__ == "Tempered"]
assert {mixer.temperature for mixer in mixers} == {3.0}
assert torch.isfinite(model(torch.arange(32)[None])).all()
print(len(mixers))
"""


def install(folder: Path, entry: str) -> dict[str, str]:
    """A package as an installer leaves it; returns what makes it importable."""
    (folder / "tempering.py").write_text(COMPONENT)
    information = folder / "tempering-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: tempering\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[plumbline.components]\n{entry} = tempering\n")
    return {"PYTHONPATH": f"{folder}:{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}


def test_it_is_configured_without_import_and_built_in_every_layer(tmp_path: Path) -> None:
    environment = install(tmp_path, "mixers.tempered")
    done = subprocess.run([sys.executable, "-c", USE], env=environment, capture_output=True, text=True)
    assert done.stdout == "4\n", done.stderr


def test_it_may_not_shadow_a_built_in_one(tmp_path: Path) -> None:
    environment = install(tmp_path, "mixers.softpick")
    code = "from plumbline.specs.components import available; available('mixer')"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "the installed component 'mixers.softpick' has the name of a built-in one; rename it" in done.stderr

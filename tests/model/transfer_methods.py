"""The transfer study's methods as overlays on the baseline's model spec, for tests.

They are read from the study's own YAML: a method that stands there, or another interpretation of one, is under test,
and so is a method of any study that extends it."""

from __future__ import annotations

from typing import Any

import yaml

from tests.conftest import REPOSITORY
from tests.model.study_architectures import BLOCKS
from tests.model_specs import BASELINE

Overlay = dict[str, Any]

_STUDIES = REPOSITORY / "studies"
_DEFINITION = yaml.safe_load((_STUDIES / "transfer" / "study.yaml").read_text(encoding="utf-8"))["methods"]

#: Method -> overlay of its model spec, the baseline included.
METHODS: dict[str, Overlay] = {name: entry.get("model", {}) for name, entry in _DEFINITION.items()}

#: Other variants of the same methods: <method>.<variant> -> overlay; those that only train otherwise are left out.
ALTERNATIVES: dict[str, Overlay] = {
    f"{name}.{variant}": METHODS[name] | entry["model"]
    for name, method in _DEFINITION.items()
    for variant, entry in method.get("variants", {}).items()
    if "model" in entry
}

#: Variants in which n is the length of the call: what a token sees depends on how many follow it.
LENGTH_DEPENDENT = ("softpick.sequence", "sigmoid_attn.sequence", "sigmoid_attn.original_sequence")

#: The user's own methods: of the studies that extend the transfer study.
OWN: dict[str, Overlay] = {
    name: entry.get("model", {})
    for path in sorted(_STUDIES.glob("*/study.yaml"))
    for definition in (yaml.safe_load(path.read_text(encoding="utf-8")),)
    if definition.get("extends") == "transfer"
    for name, entry in definition["methods"].items()
}

ALL: dict[str, Overlay] = METHODS | ALTERNATIVES | OWN | BLOCKS

#: Sizes at which the study's parameter counts were printed.
PAPER: dict[str, Any] = {
    "layers": 24,
    "width": 2048,
    "heads": 32,
    "key_value_heads": 8,
    "head_width": 64,
    "ffn_width": 5632,
    "vocabulary": 65_664,
    "context": 1024,
}


def overlay(name: str, **sizes: Any) -> dict[str, Any]:
    """The flat model spec of a method or alternative at the tests' size, or with other sizes."""
    return BASELINE | sizes | ALL[name]

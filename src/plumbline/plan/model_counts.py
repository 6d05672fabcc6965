"""Counts operations and parameters of models from their real modules on the meta device, and keeps them in one file.

A dry run reads the file without importing torch; `python -m plumbline.plan` counts what is missing and adds it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plumbline import NUMERICS
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, canonical_json, sha256_text
from plumbline.plan.model_cost import ModelCost, estimated, sized
from plumbline.plan.plan_warnings import warn, warn_unread
from plumbline.specs.components import SLOTS, code_class
from plumbline.specs.spec import ModelSpec
from plumbline.specs.study_config import Run

#: Raised when `plumbline.model.flops` counts otherwise: what was counted before is then counted again.
COUNTING = 2

#: Key of a model -> what is counted of it: `_PARTS` of a `ModelCost`.
Known = dict[str, dict[str, int]]
_PARTS = ("training", "parameters", "separate", "concatenated")


@dataclass(frozen=True, slots=True)
class ModelCostLookup:
    """Gives the sizes of models: exact where `known` has a count, else estimated."""

    known: Mapping[str, Mapping[str, int]]
    _sizes: dict[str, ModelCost] = field(default_factory=dict)

    def __call__(self, model: ModelSpec) -> ModelCost:
        """Look up the size of a model: counted where it is known, else estimated."""
        text = canonical_json(model.to_dict())
        if text not in self._sizes:
            count = self.known.get(key(model))
            self._sizes[text] = estimated(model) if count is None else sized(model, **count, exact=True)
        return self._sizes[text]


def key(model: ModelSpec) -> str:
    """Fingerprint everything that a model's count depends on: its spec, its components' code, and the code that all
    share.
    """
    classes = {slot: code_class(slot, model.slot(slot).name) for slot in SLOTS}
    return sha256_text(canonical_json([model.to_dict(), classes, NUMERICS, COUNTING]))


def read(path: Path) -> Known:
    """Read a file of counts; none, with a warning, where it is damaged."""
    if not path.exists():
        return {}
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        found = {name: {part: int(entry[part]) for part in _PARTS} for name, entry in known.items()}
        if any(not 0 < number < 1e30 for entry in found.values() for number in entry.values()):
            raise ValueError("a number that no model has")
        return found
    except OSError as error:
        warn_unread(path, error)
        return {}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        warn(f"{path} does not hold counts of models ({error!r}) and is not used; the next plan rewrites it")
        return {}


def update(path: Path, runs: Iterable[Run]) -> Known:
    """Count the models of `runs` that a file of counts lacks, add them to the file, and return all its counts.

    A model that cannot be built here is a warning, and is estimated; a file that cannot be written is a warning too.
    """
    known = read(path)
    missing = {name: run for run in runs if (name := key(run.spec.model)) not in known}
    found = {name: count for name, run in missing.items() if (count := _count(run)) is not None}
    if found:
        try:
            # Another plan may have added its own meanwhile.
            atomic_write_json(path, read(path) | found)
        except (OSError, PlumblineError) as error:
            warn(f"counts of models cannot be kept in {path} ({error}); they are counted again next time")
    return known | found


def _count(run: Run) -> dict[str, int] | None:
    model = run.spec.model
    try:
        from plumbline.model.decoder import on_meta
        from plumbline.model.flops import operations, orthogonalisation

        decoder = on_meta(model)
        training = operations(decoder) // model.context
        return {
            "training": training,
            "parameters": sum(value.numel() for value in decoder.parameters()),
            "separate": orthogonalisation(decoder, concatenated=False),
            "concatenated": orthogonalisation(decoder, concatenated=True),
        }
    except Exception as error:  # of a component's own code, or of a machine without torch
        warn(f"{run.key}: its model cannot be counted and is estimated from its sizes ({error!r})")
        return None

"""Gives operations and parameters of a model: counted from its real modules on the meta device, else estimated from its
spec.

Counts stand in one file, which a dry run reads without importing torch; `python -m plumbline.plan` counts what is
missing and adds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plumbline import NUMERICS
from plumbline.core.errors import PlumblineError, warn_once, warn_unread
from plumbline.core.files import atomic_write_json, canonical_json, sha256_text
from plumbline.specs.components import SLOTS, code_class
from plumbline.specs.spec import ModelSpec, OptimizerSpec
from plumbline.specs.study_config import Run


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCost:
    """A model's cost: `training`, operations a token of training; `forward`, those of a forward pass in evaluation,
    where few positions go through the head; `separate` and `concatenated`, those of one of Muon's steps of
    orthogonalising each matrix once, attention's four by themselves or as one.

    `exact`: counted from the modules, rather than estimated.
    """

    training: float
    forward: float
    parameters: int
    exact: bool
    separate: float = 0.0
    concatenated: float = 0.0


#: How sizes are found.
Sizes = Callable[[ModelSpec], ModelCost]


def estimate_cost(model: ModelSpec) -> ModelCost:
    """Estimate a model's size from its spec alone, without torch and whatever the components are.

    It counts embeddings, and in each layer four attention projections and a gated FFN. Operations are 6 for each weight
    of a matrix, the head's included, and all pairs of attention, scores and values; they are those of the transfer
    study's baseline.
    """
    inner = model.heads * model.head_width
    attention = 2 * model.width * (inner + model.key_value_heads * model.head_width)
    weights = model.layers * (attention + 3 * model.width * model.ffn_width)
    pairs = model.layers * 2 * inner * model.context
    embeddings = model.vocabulary * model.width
    ffn = 3 * _count_orthogonalising(model.ffn_width, model.width)
    narrow = model.key_value_heads * model.head_width
    alone = 2 * _count_orthogonalising(inner, model.width) + 2 * _count_orthogonalising(narrow, model.width)
    together = _count_orthogonalising(inner + 2 * narrow + model.width, model.width)
    return make_cost(
        model,
        training=6 * (weights + pairs + embeddings),
        parameters=weights + embeddings * (1 if model.tied_embeddings else 2),
        exact=False,
        separate=model.layers * (alone + ffn),
        concatenated=model.layers * ((together if inner == model.width else alone) + ffn),
    )


def _count_orthogonalising(rows: int, columns: int) -> int:
    short, long = sorted((rows, columns))
    return 2 * short * short * (2 * long + short)


def make_cost(
    model: ModelSpec, *, training: float, parameters: int, exact: bool, separate: float, concatenated: float
) -> ModelCost:
    """Make a model's size from the operations a token of training, of which a third are the forward pass."""
    head = 2 * model.vocabulary * model.width
    return ModelCost(
        training=training,
        forward=training / 3 - head,
        parameters=parameters,
        exact=exact,
        separate=separate,
        concatenated=concatenated,
    )


def training_operations(run: Run, cost: ModelCost, devices: int) -> float:
    """Count the operations of a whole run's training: of its tokens, and of updates, which each device makes alike."""
    updates = devices * run.spec.train.steps * update_operations(run.spec.optimizer, cost)
    return training_tokens(run) * cost.training + updates


def update_operations(optimizer: OptimizerSpec, cost: ModelCost) -> float:
    """Count the matrix products of an update: Muon's, which are of the precision of the run's own on a GPU; AdamW has
    none."""
    if optimizer.name != "muon":
        return 0.0
    together = optimizer.options["matrices"] == "concatenated"
    return optimizer.options["steps"] * (cost.concatenated if together else cost.separate)


def training_tokens(run: Run) -> float:
    """Count the tokens of a whole run; those of its validations weigh a third, since they have only a forward pass."""
    train, context = run.spec.train, run.spec.model.context
    passes = train.steps // train.validate_every + (train.steps % train.validate_every > 0)
    return train.steps * train.batch_tokens + passes * train.validation_sequences * context / 3


def probe_points(run: Run) -> int:
    """Count the checkpoints of a run that its probes read."""
    return len({fraction for probe in run.spec.probes for fraction in probe.at})


#: Which pairs of query and key a plan's operations, and so every MFU of a plan, count: not the visible ones alone.
PAIRS = "all pairs"

#: Raised when `plumbline.model.flops` counts otherwise: what was counted before is then counted again.
COUNTING = 2

#: Key of a model -> what is counted of it: `_PARTS` of a `ModelCost`.
Known = dict[str, dict[str, int]]
_PARTS = ("training", "parameters", "separate", "concatenated")


@dataclass(frozen=True, slots=True)
class ModelCostLookup:
    """Gives the sizes of models: exact where `counts` has a count, else estimated."""

    counts: Mapping[str, Mapping[str, int]]
    _sizes: dict[str, ModelCost] = field(default_factory=dict)

    def __call__(self, model: ModelSpec) -> ModelCost:
        """Look up the size of a model: counted where it is known, else estimated."""
        text = canonical_json(model.to_dict())
        if text not in self._sizes:
            count = self.counts.get(key(model))
            self._sizes[text] = estimate_cost(model) if count is None else make_cost(model, **count, exact=True)
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
        content = json.loads(path.read_text(encoding="utf-8"))
        counts = {name: {part: int(entry[part]) for part in _PARTS} for name, entry in content.items()}
        if any(not 0 < number < 1e30 for entry in counts.values() for number in entry.values()):
            raise ValueError("a number that no model has")
        return counts
    except OSError as error:
        warn_unread(path, error)
        return {}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        warn_once(f"{path} does not hold counts of models ({error!r}) and is not used; the next plan rewrites it")
        return {}


def update(path: Path, runs: Iterable[Run]) -> Known:
    """Count the models of `runs` that a file of counts lacks, add them to the file, and return all its counts.

    A model that cannot be built here is a warning, and is estimated; a file that cannot be written is a warning too.
    """
    counts = read(path)
    missing = {name: run for run in runs if (name := key(run.spec.model)) not in counts}
    new_counts = {name: count for name, run in missing.items() if (count := _count(run)) is not None}
    if new_counts:
        try:
            # Another plan may have added its own meanwhile.
            atomic_write_json(path, read(path) | new_counts)
        except (OSError, PlumblineError) as error:
            warn_once(f"counts of models cannot be kept in {path} ({error}); they are counted again next time")
    return counts | new_counts


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
        warn_once(f"{run.key}: its model cannot be counted and is estimated from its sizes ({error!r})")
        return None

"""Gives operations and parameters of a model: counted from its modules where that was done, else estimated from its
spec.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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


def estimated(model: ModelSpec) -> ModelCost:
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
    ffn = 3 * _orthogonalised(model.ffn_width, model.width)
    narrow = model.key_value_heads * model.head_width
    alone = 2 * _orthogonalised(inner, model.width) + 2 * _orthogonalised(narrow, model.width)
    together = _orthogonalised(inner + 2 * narrow + model.width, model.width)
    return sized(
        model,
        training=6 * (weights + pairs + embeddings),
        parameters=weights + embeddings * (1 if model.tied_embeddings else 2),
        exact=False,
        separate=model.layers * (alone + ffn),
        concatenated=model.layers * ((together if inner == model.width else alone) + ffn),
    )


def _orthogonalised(rows: int, columns: int) -> int:
    short, long = sorted((rows, columns))
    return 2 * short * short * (2 * long + short)


def sized(
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

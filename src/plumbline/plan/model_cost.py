"""Gives operations and parameters of a model: counted from its modules where that was done, else estimated from its
spec.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plumbline.specs.spec import ModelSpec
from plumbline.specs.study_config import Run


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCost:
    """A model's cost: `training`, operations a token of training; `forward`, those of a forward pass in evaluation,
    where few positions go through the head.

    `exact`: counted from the modules, rather than estimated.
    """

    training: float
    forward: float
    parameters: int
    exact: bool


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
    return sized(
        model,
        training=6 * (weights + pairs + embeddings),
        parameters=weights + embeddings * (1 if model.tied_embeddings else 2),
        exact=False,
    )


def sized(model: ModelSpec, *, training: float, parameters: int, exact: bool) -> ModelCost:
    """Make a model's size from the operations a token of training, of which a third are the forward pass."""
    head = 2 * model.vocabulary * model.width
    return ModelCost(training=training, forward=training / 3 - head, parameters=parameters, exact=exact)


def training_tokens(run: Run) -> float:
    """Count the tokens of a whole run; those of its validations weigh a third, since they have only a forward pass."""
    train, context = run.spec.train, run.spec.model.context
    passes = train.steps // train.validate_every + (train.steps % train.validate_every > 0)
    return train.steps * train.batch_tokens + passes * train.validation_sequences * context / 3


def probe_points(run: Run) -> int:
    """Count the checkpoints of a run that its probes read."""
    return len({fraction for probe in run.spec.probes for fraction in probe.at})

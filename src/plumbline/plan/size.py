"""Operations and parameters of a model: in closed form, or counted from its modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plumbline.cli import PlumblineError
from plumbline.specs.cost import parameter_count, training_flops_per_token
from plumbline.specs.sheet import Run
from plumbline.specs.spec import ModelSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """`training` operations a token; `forward` ones of evaluation, where few positions go through the head."""

    training: float
    forward: float
    parameters: int


#: How sizes are found; None where that fails.
Sizes = Callable[[ModelSpec], Size | None]


def written(model: ModelSpec) -> Size | None:
    """In closed form, without torch. None for a component that plumbline.specs.cost does not know."""
    try:
        return _size(model, training_flops_per_token(model), parameter_count(model))
    except PlumblineError:
        return None


def counted(model: ModelSpec) -> Size | None:
    """In closed form where there is one, else from the real modules, which imports torch. None if it cannot be built
    here."""
    known = written(model)
    if known is not None:
        return known
    try:
        from plumbline.model import flops
        from plumbline.model.decoder import on_meta

        parameters = sum(value.numel() for value in on_meta(model).parameters())
        return _size(model, flops.counted(model) / model.context, parameters)
    except (ImportError, RuntimeError, ValueError, NotImplementedError):
        return None


def training_tokens(run: Run) -> float:
    """Tokens of a whole run, those of its validations at the third of the price that a forward pass has."""
    train, context = run.spec.train, run.spec.model.context
    passes = train.steps // train.validate_every + (train.steps % train.validate_every > 0)
    return train.steps * train.batch_tokens + passes * train.validation_sequences * context / 3


def _size(model: ModelSpec, training: float, parameters: int) -> Size:
    head = 2 * model.vocabulary * model.width
    return Size(training=training, forward=training / 3 - head, parameters=parameters)

"""Checks that held-out tokens train nothing: no gradient is taken from them, and no parameter is changed by them.

A rule may decide by them if it declares it, and its decisions are what it gives a checkpoint (`Intervention.state`):
with the decisions of another run in place of its own, other held-out tokens must give the same weights, bit by bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from plumbline.core.stop_request import StopRequest
from plumbline.model.distributed import ranks
from plumbline.model.numerics import numerics
from plumbline.specs.spec import RunSpec
from plumbline.train import held_out_loss as held_out_reading
from plumbline.train.interventions import Intervention
from plumbline.train.loop import TrainingLoop
from plumbline.train.pretrain import untrained
from plumbline.train.trainer_settings import TrainerSettings

#: A declared rule's decisions have at most this share of the model's numbers: more may hold a gradient.
SHARE = 0.01


class _GradientTaken(Exception):
    """Raised at the first use of held-out tokens from which a gradient could be taken."""


class _Watch(TorchFunctionMode):
    """Raises where tokens of the upper half of the vocabulary choose something that has a gradient."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.half = vocabulary // 2

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if torch.is_grad_enabled() and isinstance(made, torch.Tensor) and made.requires_grad:
            for value in _tensors([args, kwargs]):
                if value.dtype == torch.int64 and value.numel() > 1 and bool((value >= self.half).all()):
                    raise _GradientTaken
        return made


def held_out(spec: RunSpec, settings: Sequence[TrainerSettings]) -> str | None:
    """Check a run that is trained with each of two held-out packs and one training pack."""
    if not spec.interventions and not any(probe.every for probe in spec.probes):
        return None
    with ranks("cpu") as group:
        numerics(group.device)
        loops = [untrained(spec, one, StopRequest(), group) for one in (*settings, settings[1])]
        names = [hook.name for hook in loops[0].parts.interventions]
        declared = [hook.name for hook in loops[0].parts.interventions if hook.held_out != "none"]
        states: list[list[Any]] = []
        for number, loop in enumerate(loops):
            words = _steps(loop, states, replayed=number == 2)
            if words is not None:
                return words
    one, two, replayed = ([value.detach() for value in loop.parts.model.parameters()] for loop in loops)
    if _equal(one, two):
        return None
    if not declared:
        what = f"interventions {names} and probes {[probe.name for probe in spec.probes]}"
        return (
            f"other held-out tokens give other weights, and none of {what} declares that it reads some: write "
            'held_out = "apart" in the class of an intervention that decides by them'
        )
    if not _equal(one, replayed):
        return (
            f"other held-out tokens give other weights although {declared} decided the same: parameters may be "
            "changed by decisions that state() gives a checkpoint, and not by the tokens themselves"
        )
    return None


def _steps(loop: TrainingLoop, states: list[list[Any]], *, replayed: bool) -> str | None:
    """Take all steps of a loop; the first loop's decisions are noted, and put in place of a replayed one's."""
    hooks, parameters = loop.parts.interventions, list(loop.parts.model.parameters())
    numbers = sum(value.numel() for value in parameters)
    watch = _Watch(loop.parts.spec.data.tokenizer_vocabulary)
    first = not states
    for place, hook in enumerate(hooks):
        _guard(hook, place, parameters, states, replayed=replayed)
    for step in range(1, loop.parts.spec.train.steps + 1):
        before = [value.detach().clone() for value in parameters]
        try:
            with watch:
                due = loop.state.online.due(step - 1)
                if due:
                    held_out_reading.probe_values(loop.parts, due)
                if not _equal(before, parameters) or any(value.grad is not None for value in parameters):
                    return f"a probe changes parameters or leaves gradients: one of {[one.name for one in due]}"
                loop.train_step()
                loop.catch_up()
        except _GradientTaken:
            who = [hook.name for hook in hooks] or [probe.name for probe in loop.parts.spec.probes]
            return (
                f"a gradient can be taken from held-out tokens in step {step}, by one of {who}: read them under "
                "torch.no_grad()"
            )
        except _ChangedBy as found:
            return f"step {step}: {found}"
        if first:
            states.append([json.loads(json.dumps(hook.state())) for hook in hooks])
            for hook in hooks:
                kept = _count(hook.state())
                if hook.held_out != "none" and kept > max(SHARE * numbers, 64):
                    return (
                        f"intervention {hook.name!r} reads held-out tokens, and its state() has {kept:,} "
                        f"numbers beside {numbers:,} parameters after {step} steps: a rule decides by few"
                    )
    return None


class _ChangedBy(Exception):
    """Says which intervention changed parameters where it may only read."""


def _guard(hook: Intervention, place: int, parameters: list[Any], states: list[list[Any]], *, replayed: bool) -> None:
    """Compare the parameters before and after `begin` and `end`; put noted decisions in place of a replayed one's."""
    begin, end = hook.begin, hook.end

    def unchanged(call: Any, where: str, step: int) -> None:
        before = [value.detach().clone() for value in parameters]
        call(step)
        if not _equal(before, parameters) or any(value.grad is not None for value in parameters):
            raise _ChangedBy(
                f"intervention {hook.name!r} changes parameters, or leaves gradients, in {where}(), where held-out "
                "tokens are read: change them in after_step()"
            )

    def begin_by_the_same_decisions(step: int) -> None:
        unchanged(begin, "begin", step)
        if replayed and hook.held_out != "none":
            hook.load_state(states[step - 1][place])
            unchanged(begin, "begin", step)  # what it makes of its decisions there
            hook.load_state(states[step - 1][place])

    hook.begin = begin_by_the_same_decisions  # type: ignore[method-assign]
    hook.end = lambda step: unchanged(end, "end", step)  # type: ignore[method-assign]


def _equal(one: Iterable[torch.Tensor], two: Iterable[torch.Tensor]) -> bool:
    return all(torch.equal(a.detach(), b.detach()) for a, b in zip(one, two, strict=True))


def _tensors(given: Any) -> Iterable[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for one in given:
            yield from _tensors(one)
    elif isinstance(given, dict):
        yield from _tensors(list(given.values()))


def _count(state: Any) -> int:
    if isinstance(state, dict):
        return sum(map(_count, state.values()))
    return sum(map(_count, state)) if isinstance(state, (list, tuple)) else 1

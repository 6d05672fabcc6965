"""Tries what trains a model before any training: a few real steps of a tiny run, through the trainer's own doors.

The run is that of the preset smoke, with as many steps as show a schedule, on sequences made here: training reads
tokens of the lower half of the vocabulary, and held-out sequences are of the upper half.

Held-out tokens train nothing: no gradient is taken from them, and no parameter is changed by them. A rule may decide by
them if it declares it, and its decisions are what it gives a checkpoint (`Intervention.state`): with the decisions of
another run in place of its own, other held-out tokens must give the same weights, bit by bit.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, sha256_file
from plumbline.core.stop_request import StopRequest
from plumbline.model.distributed import join_ranks
from plumbline.model.numerics import numerics
from plumbline.specs import components
from plumbline.specs.spec import RunSpec
from plumbline.train import held_out_loss as held_out_reading
from plumbline.train.interventions import Intervention
from plumbline.train.learning_rate import make_schedule
from plumbline.train.loop import TrainingLoop
from plumbline.train.pretrain import build_loop, pretrain
from plumbline.train.trainer_settings import TrainerSettings

#: Steps of a run that is tried: at least, and at most.
STEPS = (8, 24)
#: Sequences of a step's batch, and held-out ones of which the loss is computed; as many or more lie behind those.
BATCH, VALIDATION = 4, 8
#: What a run leaves that states how it was made, which may differ between two runs of one spec.
ABOUT = ("manifest.json", "outcome.json")
#: The names under which something fails.
CHECKS = ("training", "resume", "held-out tokens")
#: A declared rule's decisions have at most this share of the model's numbers: more may hold a gradient.
SHARE = 0.01


class _StopAfter(StopRequest):
    """A request to stop that comes in the step of a number, so that the run is saved after it."""

    def __init__(self, step: int) -> None:
        self._left = step

    @property
    def requested(self) -> bool:  # type: ignore[override]
        """Whether as many steps have asked."""
        self._left -= 1
        return self._left == 0

    def poll(self) -> None:
        """Never leave a step in progress."""


def make_tiny_run(spec: RunSpec) -> RunSpec:
    """Make a run of a few steps of a small run's spec."""
    steps = min(max(spec.train.steps, STEPS[0]), STEPS[1])
    train = msgspec.structs.replace(
        spec.train,
        steps=steps,
        batch_tokens=BATCH * spec.model.context,
        validate_every=steps // 2,
        validation_sequences=VALIDATION,
        precision="float32",
    )
    schedule = msgspec.structs.replace(spec.schedule, warmup_steps=min(spec.schedule.warmup_steps, steps // 2))
    return msgspec.structs.replace(spec, train=train, schedule=schedule)


def write_packs(folder: Path, spec: RunSpec, held_out_seed: int = 2) -> tuple[Path, Path]:
    """Write a pack to train on and a held-out one; tokens come back within a sequence, as in text."""
    vocabulary, context = spec.data.tokenizer_vocabulary, spec.model.context
    half = vocabulary // 2
    written = []
    for name, seed, first in (("train", 1, 0), ("validation", held_out_seed, half)):
        draw = np.random.default_rng(seed)
        sequences = BATCH * STEPS[1] if name == "train" else VALIDATION + max(VALIDATION, spec.sequences_apart)
        walk = draw.integers(0, 5, (sequences, context)).cumsum(axis=1) % min(half, 37) + first
        shard = folder / f"{name}-{seed}.bin"
        shard.write_bytes(walk.astype("<u4").tobytes())
        content = {
            "context": context,
            "dtype": "<u4",
            "sequences": sequences,
            "sequences_per_shard": sequences,
            "shards": [{"file": shard.name, "sequences": sequences, "sha256": sha256_file(shard)}],
            "tokenizer_sha256": "0" * 64,
            "vocabulary": vocabulary,
        }
        atomic_write_json(shard.with_suffix(".json"), content)
        written.append(shard.with_suffix(".json"))
    return written[0], written[1]


def make_settings(data: tuple[Path, Path], folder: Path) -> TrainerSettings:
    """Settings of a run whose files lie in `folder`."""
    return TrainerSettings(
        training_pack=data[0],
        validation_pack=data[1],
        state=folder / "state",
        out=folder / "out",
        device="cpu",
        background_io=False,
        checkpoint_seconds=math.inf,
        report_seconds=math.inf,
    )


def check_schedule(spec: RunSpec) -> str | None:
    """Check that the learning rate of every step of a run is a finite number, not below zero, and the step's alone."""
    steps = spec.train.steps
    try:
        share = make_schedule(spec.schedule, steps)
        shares = [share(step) for step in range(1, steps + 1)]
        shares_backwards = [share(step) for step in range(steps, 0, -1)][::-1]
    except PlumblineError:
        raise
    except Exception as error:
        return f"{describe_error(error)}, in a run of {steps:,} steps"
    for step, (share_now, share_again) in enumerate(zip(shares, shares_backwards, strict=True), start=1):
        if not (math.isfinite(share_now) and share_now >= 0):
            return f"schedule {spec.schedule.name!r}: the share of the peak is {share_now} in step {step} of {steps:,}"
        if share_now != share_again:
            return (
                f"schedule {spec.schedule.name!r}: the share of the peak in step {step} of {steps:,} is "
                f"{share_now}, and "
                f"{share_again} when it is asked again: make it a function of its arguments alone"
            )
    return None


def run_checks(spec: RunSpec, baseline: RunSpec) -> dict[str, str]:
    """Try a small run; returns words for what does not hold, by the check's name."""
    spec, whose = make_tiny_run(spec), name_differing_components(spec, baseline)
    with tempfile.TemporaryDirectory(prefix="plumbline-tried-") as name, _silence():
        folder = Path(name)
        data = write_packs(folder, spec)
        try:
            _train(spec, make_settings(data, folder / "one"))
        except Exception as error:
            return {"training": f"{describe_error(error)}, in a few steps of a tiny run"}
        outcome = json.loads((folder / "one/out/outcome.json").read_text())
        if outcome["outcome"] != "completed":
            message = (
                f"{outcome['reason']}, of {spec.train.steps} with {BATCH} sequences of {spec.model.context} tokens"
            )
            return {"training": f"{whose}: the run diverges: {message}"}
        _train(spec, make_settings(data, folder / "two"))
        if output := _find_other_output(folder / "one", folder / "two"):
            return {"training": f"{whose}: two runs of one spec end with another {output}: noise, or state outside it"}
        stopped = spec.train.steps // 2
        try:
            code = _train(spec, make_settings(data, folder / "three"), _StopAfter(stopped))
            assert code == EXIT_RUN_AGAIN, "it was asked to stop"
            _train(spec, make_settings(data, folder / "three"))
        except Exception as error:
            why = describe_error(error.__cause__ or error)
            return {"resume": f"{why}, in a run that was stopped after step {stopped} of {spec.train.steps}"}
        if output := _find_other_output(folder / "one", folder / "three"):
            return {
                "resume": (
                    f"{whose}: stopped after step {stopped} of {spec.train.steps} and continued, a run ends with "
                    f"another {output} than without the stop: an optimizer keeps all that it "
                    "needs in self.state[parameter], as tensors, and an intervention gives it in state()"
                )
            }
        held_out_message = check_held_out(
            spec, [make_settings(write_packs(folder, spec, seed), folder / str(seed)) for seed in (2, 3)]
        )
    return {} if held_out_message is None else {"held-out tokens": held_out_message}


def name_differing_components(spec: RunSpec, baseline: RunSpec) -> str:
    """Name the components of a run that its baseline has not, which is where to look."""
    mine, theirs = _list_components(spec), _list_components(baseline)
    names = [name for name in mine if name not in theirs] or mine[:2]
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def describe_error(error: BaseException) -> str:
    """State in a sentence what was raised, by which component, and what to do about torch's own idiom."""
    where = ""
    for frame in traceback.extract_tb(error.__traceback__):
        for kind in components.KINDS:
            for name, path in components.available(kind).items():
                if frame.filename == path:
                    where = f"{kind} {name!r} ({path}, line {frame.lineno}): "
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], torch.Tensor):
        return (
            f"{where}KeyError: a parameter has no state yet: self.state is a plain dict here, not torch's; write "
            "state = self.state.setdefault(p, {}) in place of state = self.state[p]"
        )
    lines = str(error).splitlines()
    return f"{where}{type(error).__name__}: {lines[0][:300] if lines else ''}"


def _list_components(spec: RunSpec) -> list[str]:
    """All components of a run, by kind and name: those that train first."""
    names = [f"optimizer {spec.optimizer.name!r}", f"schedule {spec.schedule.name!r}"]
    names += [f"intervention {component['name']!r}" for component in spec.interventions]
    names += [f"probe {component.name!r}" for component in spec.probes]
    return names + [f"model.{slot} {spec.model.slot(slot).name!r}" for slot in components.SLOTS]


def _train(spec: RunSpec, chosen: TrainerSettings, stop: StopRequest | None = None) -> int:
    return pretrain(spec, chosen, stop or StopRequest())


def _find_other_output(folder: Path, other_folder: Path) -> str:
    """The first output of two runs that differs; empty if none does."""
    for path in sorted((folder / "out").rglob("*")):
        name = path.relative_to(folder / "out")
        if path.is_file() and str(name) not in ABOUT:
            theirs = other_folder / "out" / name
            if not theirs.is_file() or sha256_file(path) != sha256_file(theirs):
                return str(name)
    return ""


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep what the trainer reports of its progress."""
    output = io.StringIO()
    with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
        yield


class _GradientTaken(Exception):
    """Raised at the first use of held-out tokens from which a gradient could be taken."""


class _Watch(TorchFunctionMode):
    """Raises where tokens of the upper half of the vocabulary choose something that has a gradient."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.half = vocabulary // 2

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if torch.is_grad_enabled() and isinstance(result, torch.Tensor) and result.requires_grad:
            for value in filter(torch.is_tensor, _list_leaves([args, kwargs])):
                if value.dtype == torch.int64 and value.numel() > 1 and bool((value >= self.half).all()):
                    raise _GradientTaken
        return result


def check_held_out(spec: RunSpec, settings: Sequence[TrainerSettings]) -> str | None:
    """Check a run that is trained with each of two held-out packs and one training pack."""
    if not spec.interventions and not any(probe.every for probe in spec.probes):
        return None
    with join_ranks("cpu") as group:
        numerics(group.device)
        loops = [build_loop(spec, each, StopRequest(), group) for each in (*settings, settings[1])]
        names = [hook.name for hook in loops[0].parts.interventions]
        declared = [hook.name for hook in loops[0].parts.interventions if hook.held_out != "none"]
        states: list[list[Any]] = []
        for number, loop in enumerate(loops):
            message = _take_steps(loop, states, replayed=number == 2)
            if message is not None:
                return message
    first, second, replayed = ([value.detach() for value in loop.parts.model.parameters()] for loop in loops)
    if _are_equal(first, second):
        return None
    if not declared:
        components_text = f"interventions {names} and probes {[probe.name for probe in spec.probes]}"
        return (
            f"other held-out tokens give other weights, and none of {components_text} declares that it reads some: "
            "write "
            'held_out = "apart" in the class of an intervention that decides by them'
        )
    if not _are_equal(first, replayed):
        return (
            f"other held-out tokens give other weights although {declared} decided the same: parameters may be "
            "changed by decisions that state() gives a checkpoint, and not by the tokens themselves"
        )
    return None


def _take_steps(loop: TrainingLoop, states: list[list[Any]], *, replayed: bool) -> str | None:
    """Take all steps of a loop; the first loop's decisions are noted, and put in place of a replayed one's."""
    hooks, parameters = loop.parts.interventions, list(loop.parts.model.parameters())
    numbers = sum(value.numel() for value in parameters)
    watch = _Watch(loop.parts.spec.data.tokenizer_vocabulary)
    first = not states
    for place, hook in enumerate(hooks):
        _guard_parameters(hook, place, parameters, states, replayed=replayed)
    for step in range(1, loop.parts.spec.train.steps + 1):
        values = [value.detach().clone() for value in parameters]
        try:
            with watch:
                due = loop.state.online.list_due(step - 1)
                if due:
                    held_out_reading.probe_values(loop.parts, due)
                if _are_changed(values, parameters):
                    return f"a probe changes parameters or leaves gradients: one of {[each.name for each in due]}"
                loop.train_step()
                loop.catch_up()
        except _GradientTaken:
            names = [hook.name for hook in hooks] or [probe.name for probe in loop.parts.spec.probes]
            return (
                f"a gradient can be taken from held-out tokens in step {step}, by one of {names}: read them under "
                "torch.no_grad()"
            )
        except _ChangedBy as found:
            return f"step {step}: {found}"
        if first:
            states.append([json.loads(json.dumps(hook.state())) for hook in hooks])
            for hook in hooks:
                count = sum(1 for _ in _list_leaves(hook.state()))
                if hook.held_out != "none" and count > max(SHARE * numbers, 64):
                    return (
                        f"intervention {hook.name!r} reads held-out tokens, and its state() has {count:,} "
                        f"numbers beside {numbers:,} parameters after {step} steps: a rule decides by few"
                    )
    return None


class _ChangedBy(Exception):
    """States which intervention changed parameters where it may only read."""


def _guard_parameters(
    hook: Intervention, place: int, parameters: list[Any], states: list[list[Any]], *, replayed: bool
) -> None:
    """Compare the parameters before and after `begin` and `end`; put noted decisions in place of a replayed one's."""
    begin, end = hook.begin, hook.end

    def require_unchanged(call: Any, where: str, step: int) -> None:
        values = [value.detach().clone() for value in parameters]
        call(step)
        if _are_changed(values, parameters):
            raise _ChangedBy(
                f"intervention {hook.name!r} changes parameters, or leaves gradients, in {where}(), where held-out "
                "tokens are read: change them in after_step()"
            )

    def begin_by_the_same_decisions(step: int) -> None:
        require_unchanged(begin, "begin", step)
        if replayed and hook.held_out != "none":
            hook.load_state(states[step - 1][place])
            require_unchanged(begin, "begin", step)  # what it makes of its decisions there
            hook.load_state(states[step - 1][place])

    hook.begin = begin_by_the_same_decisions  # type: ignore[method-assign]
    hook.end = lambda step: require_unchanged(end, "end", step)  # type: ignore[method-assign]


def _are_changed(values: list[Any], parameters: list[Any]) -> bool:
    return not _are_equal(values, parameters) or any(value.grad is not None for value in parameters)


def _are_equal(values: Iterable[torch.Tensor], others: Iterable[torch.Tensor]) -> bool:
    return all(torch.equal(a.detach(), b.detach()) for a, b in zip(values, others, strict=True))


def _list_leaves(value: Any) -> Iterator[Any]:
    """What nested dictionaries and lists hold."""
    if isinstance(value, (dict, list, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _list_leaves(part)
    else:
        yield value

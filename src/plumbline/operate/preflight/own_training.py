"""Tries what trains a model before any training: a few real steps of a tiny run, through the trainer's own doors.

The run is that of the preset smoke, with as many steps as show a schedule, on sequences made here: training reads
tokens of the lower half of the vocabulary, and held-out sequences are of the upper half.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import torch

from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, sha256_file
from plumbline.core.stop_request import StopRequest
from plumbline.operate.preflight.own_held_out import held_out
from plumbline.specs import components
from plumbline.specs.spec import RunSpec
from plumbline.train.pretrain import pretrain
from plumbline.train.run_optimizer import make_schedule
from plumbline.train.trainer_settings import TrainerSettings

#: Steps of a run that is tried: at least, and at most.
STEPS = (8, 24)
#: Sequences of a step's batch, and held-out ones of which the loss is computed; as many or more lie behind those.
BATCH, VALIDATION = 4, 8
#: What a run leaves that says how it was made, which may differ between two runs of one spec.
ABOUT = ("manifest.json", "outcome.json")


#: The names under which something fails.
CHECKS = ("training", "resume", "held-out tokens")


class _StopAfter(StopRequest):
    """A request to stop that comes in the step of a number, so that the run is saved after it."""

    def __init__(self, step: int) -> None:
        self._left = step

    @property
    def asked(self) -> bool:  # type: ignore[override]
        """Whether as many steps have asked."""
        self._left -= 1
        return self._left == 0

    def poll(self) -> None:
        """Never leave a step at work."""


def tiny(spec: RunSpec) -> RunSpec:
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


def packs(folder: Path, spec: RunSpec, held_out_seed: int = 2) -> tuple[Path, Path]:
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


def settings(data: tuple[Path, Path], folder: Path) -> TrainerSettings:
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


def schedule(spec: RunSpec) -> str | None:
    """Check that the learning rate of every step of a run is a finite number, not below zero, and the step's alone."""
    steps = spec.train.steps
    try:
        share = make_schedule(spec.schedule, steps)
        there = [share(step) for step in range(1, steps + 1)]
        back = [share(step) for step in range(steps, 0, -1)][::-1]
    except PlumblineError:
        raise
    except Exception as error:
        return f"{raised(error)}, in a run of {steps:,} steps"
    for step, (one, two) in enumerate(zip(there, back, strict=True), start=1):
        if not (math.isfinite(one) and one >= 0):
            return f"schedule {spec.schedule.name!r}: the share of the peak is {one} in step {step} of {steps:,}"
        if one != two:
            return (
                f"schedule {spec.schedule.name!r}: the share of the peak in step {step} of {steps:,} is {one}, and "
                f"{two} when it is asked again: make it a function of its arguments alone"
            )
    return None


def failed(spec: RunSpec, baseline: RunSpec) -> dict[str, str]:
    """Try a small run; returns words for what does not hold, by the check's name."""
    spec, whose = tiny(spec), differing(spec, baseline)
    with tempfile.TemporaryDirectory(prefix="plumbline-tried-") as name, _silent():
        folder = Path(name)
        data = packs(folder, spec)
        try:
            _train(spec, settings(data, folder / "one"))
        except Exception as error:
            return {"training": f"{raised(error)}, in a few steps of a tiny run"}
        outcome = json.loads((folder / "one/out/outcome.json").read_text())
        if outcome["outcome"] != "completed":
            words = f"{outcome['reason']}, of {spec.train.steps} with {BATCH} sequences of {spec.model.context} tokens"
            return {"training": f"{whose}: the run diverges: {words}"}
        _train(spec, settings(data, folder / "two"))
        if other := _other(folder / "one", folder / "two"):
            return {"training": f"{whose}: two runs of one spec end with another {other}: noise, or state outside it"}
        stopped = spec.train.steps // 2
        try:
            code = _train(spec, settings(data, folder / "three"), _StopAfter(stopped))
            assert code == EXIT_RUN_AGAIN, "it was asked to stop"
            _train(spec, settings(data, folder / "three"))
        except Exception as error:
            why = raised(error.__cause__ or error)
            return {"resume": f"{why}, in a run that was stopped after step {stopped} of {spec.train.steps}"}
        if other := _other(folder / "one", folder / "three"):
            return {
                "resume": (
                    f"{whose}: stopped after step {stopped} of {spec.train.steps} and continued, a run ends with "
                    f"another {other} than without the stop: an optimizer keeps all that it "
                    "needs in self.state[parameter], as tensors, and an intervention gives it in state()"
                )
            }
        found = held_out(spec, [settings(packs(folder, spec, seed), folder / str(seed)) for seed in (2, 3)])
    return {} if found is None else {"held-out tokens": found}


def differing(spec: RunSpec, baseline: RunSpec) -> str:
    """Name the components of a run that its baseline has not, which is where to look."""
    mine, theirs = _named(spec), _named(baseline)
    found = [name for name in mine if name not in theirs] or mine[:2]
    return found[0] if len(found) == 1 else f"one of {', '.join(found)}"


def raised(error: BaseException) -> str:
    """Say in a sentence what was raised, by which component, and what to do about torch's own idiom."""
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


def _named(spec: RunSpec) -> list[str]:
    """All components of a run, by kind and name: those that train first."""
    found = [f"optimizer {spec.optimizer.name!r}", f"schedule {spec.schedule.name!r}"]
    found += [f"intervention {one['name']!r}" for one in spec.interventions]
    found += [f"probe {one.name!r}" for one in spec.probes]
    return found + [f"model.{slot} {spec.model.slot(slot).name!r}" for slot in components.SLOTS]


def _train(spec: RunSpec, chosen: TrainerSettings, stop: StopRequest | None = None) -> int:
    return pretrain(spec, chosen, stop or StopRequest())


def _other(one: Path, two: Path) -> str:
    """The first output of two runs that differs; empty where none does."""
    for path in sorted((one / "out").rglob("*")):
        name = path.relative_to(one / "out")
        if path.is_file() and str(name) not in ABOUT:
            theirs = two / "out" / name
            if not theirs.is_file() or sha256_file(path) != sha256_file(theirs):
                return str(name)
    return ""


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keep what the trainer tells of its progress."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        yield

"""Numbers that are read late: the same run to the last byte, and no step that waits for its device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.files import sha256_file
from plumbline.core.stop_request import StopRequest
from plumbline.model.distributed import RankGroup
from plumbline.model.roles import ParameterRole
from plumbline.specs import study_config
from plumbline.specs.spec import RunSpec
from plumbline.train import pretrain, step_time
from plumbline.train.checkpoint.checkpoint_saver import CheckpointSaver
from plumbline.train.interventions import Intervention, build
from plumbline.train.loop import TrainingLoop
from plumbline.train.monitoring import deferred_metrics
from plumbline.train.monitoring.deferred_metrics import choose_lag
from tests.model_specs import RUN, run_spec
from tests.train.intervention_cases import WINDOW
from tests.train.small_runs import PROBES, products, read, settings, train

MUON = RUN["optimizer"] | {"name": "muon", "learning_rate": 0.02}
LATE = 3


class Noisy(Intervention):
    """Random numbers in the loss, and rates by row, both of the step's number alone."""

    def needs_loss(self, step: int) -> bool:
        return False

    def attach(self, run: Any) -> None:
        ((name, self.norm),) = run.model.final_norm.named_parameters()
        self.row = f"final_norm.{name}"

    def label(self, name: str, role: ParameterRole) -> str | None:
        return role.role if role.role == "key" else None

    def before_step(self, step: int) -> dict[str, float]:
        return {"key": 1 / step}

    def row_multipliers(self, step: int) -> dict[str, torch.Tensor]:
        return {self.row: torch.linspace(0.0, step, len(self.norm))}

    def extra_loss(self, step: int, tokens_BT: torch.Tensor) -> torch.Tensor:
        return 0.1 * (self.norm * torch.rand(self.norm.shape)).sum()


#: What runs are of: an optimizer of each kind, and what reads the weights in some steps.
KINDS: dict[str, dict[str, Any]] = {
    "adamw": {},
    "muon": {"optimizer": MUON},
    "looked_at": {
        "interventions": [
            {"name": "slow_query_key", "roles": "query", **WINDOW},
            {"name": "logit_change", "every": 3, "sequences": 2},
        ]
    },
}


def the_run(kind: str) -> RunSpec:
    return run_spec(probes=PROBES, **KINDS[kind])


@pytest.fixture
def noisy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrain.interventions, "build", lambda specs: [*build(specs), Noisy()])


def diverging_at(number: int, patch: pytest.MonkeyPatch) -> None:
    """Gradients of one step that are not numbers, all others as they are."""
    original = TrainingLoop.train_step

    def train_step(self: TrainingLoop) -> tuple[bool, bool]:
        parts, clip = self.parts, self.parts.optimizer.clip

        def clip_none() -> torch.Tensor:
            for value in parts.model.parameters():
                value.grad.fill_(float("nan"))
            return clip()

        with pytest.MonkeyPatch.context() as step:
            if self.step + 1 == number:
                step.setattr(parts.optimizer, "clip", clip_none)
            return original(self)

    patch.setattr(TrainingLoop, "train_step", train_step)


def read_outputs(work: Path) -> dict[str, Any]:
    """All that a run left except for clock times: outputs, and every checkpoint with its random states."""
    contents: dict[str, Any] = dict(products(work))
    outcome = work / "out" / "outcome.json"
    contents["outcome"] = read(outcome) if outcome.exists() else None
    for path in sorted((work / "state").rglob("*")):
        name = str(path.relative_to(work / "state"))
        if path.suffix in (".safetensors", ".npy"):
            contents[name] = sha256_file(path)
        elif path.name == "loop.json":
            contents[name] = {key: value for key, value in read(path).items() if key != "seconds"}
    return contents


@pytest.mark.usefixtures("noisy")
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_the_same_to_the_byte(packs: Path, tmp_path: Path, kind: str) -> None:
    """Checkpoints, points and validations included; stopped at one place or another and resumed."""
    spec = the_run(kind)
    for name, metric_lag_steps in (("now", 0), ("late", LATE)):
        chosen = settings(
            packs, tmp_path / name, metric_lag_steps=metric_lag_steps, checkpoint_steps=3, keep_checkpoints=9
        )
        assert train(spec, chosen) == 0
        assert read(chosen.out / "manifest.json")["metric_lag_steps"] == metric_lag_steps
    whole = read_outputs(tmp_path / "now")
    assert whole == read_outputs(tmp_path / "late") and len([name for name in whole if name.endswith("loop.json")]) == 4
    chosen = settings(packs, tmp_path / "parts", metric_lag_steps=LATE, checkpoint_steps=3, keep_checkpoints=9)
    with pytest.MonkeyPatch.context() as patch:
        for number in (5, 7, 12):
            stop = StopRequest()
            stopping_in(number, stop, patch)
            assert train(spec, chosen, stop) == EXIT_RUN_AGAIN
    assert train(spec, chosen) == 0 and products(tmp_path / "parts") == products(tmp_path / "now")
    assert read(chosen.out / "manifest.json")["resumed_from"] == [5, 7]


def stopping_in(number: int, stop: StopRequest, patch: pytest.MonkeyPatch) -> None:
    """Ask to stop when the gradients of a step are there."""
    original = CheckpointSaver.due

    def due(self: CheckpointSaver, step: int) -> bool:
        stop.requested |= step == number
        return original(self, step)

    patch.setattr(CheckpointSaver, "due", due)


@pytest.mark.usefixtures("noisy")
@pytest.mark.parametrize(
    "kind, numbers", [("adamw", (1, 10, 12)), ("muon", (5,)), ("looked_at", (8,))], ids=lambda given: str(given)
)
def test_a_divergence_seen_late(packs: Path, tmp_path: Path, kind: str, numbers: tuple[int, ...]) -> None:
    """The first step and the last, at a validation and at a checkpoint's step; one each with what reads weights."""
    for number in numbers:
        now, late = tmp_path / f"{number} now", tmp_path / f"{number} late"
        with pytest.MonkeyPatch.context() as patch:
            diverging_at(number, patch)
            for work, metric_lag_steps in ((now, 0), (late, LATE)):
                assert (
                    train(the_run(kind), settings(packs, work, metric_lag_steps=metric_lag_steps, checkpoint_steps=3))
                    == 0
                )
        contents = read_outputs(now)
        assert contents == read_outputs(late)
        outcome = contents["outcome"]
        assert (outcome["outcome"], outcome["step"], outcome["weights_step"]) == ("diverged", number, number - 1)


def test_a_run_that_had_diverged_is_not_stopped(packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    diverging_at(6, monkeypatch)
    stop = StopRequest()
    stopping_in(7, stop, monkeypatch)
    assert train(run_spec(), settings(packs, tmp_path, metric_lag_steps=LATE), stop) == 0 and stop.requested
    assert read(tmp_path / "out/outcome.json")["step"] == 6


class Copies(TorchDispatchMode):
    """Notes operations that take values from the host to the device, except for batches (which the loader pins) and for
    scalars (which travel with a launch)."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        real = [value for value in tensors if value.ndim and not value.is_meta and not is_batch(value)]
        if real and isinstance(out, torch.Tensor) and out.is_meta:
            self.found.append(str(func))
        return out


def is_batch(value: torch.Tensor) -> bool:
    return value.ndim == 2 and value.dtype == torch.long


def on_meta(spec: RunSpec, packs: Path, folder: Path, patch: pytest.MonkeyPatch) -> TrainingLoop:
    """A run's loop on the device that has no values: to read one there is an error."""
    pack = step_time.random_pack(folder / "pack.json", spec, spec.sequences_per_batch)
    chosen = settings(
        packs, folder, training_pack=pack, validation_pack=pack, metric_lag_steps=LATE, report_seconds=1e9
    )
    spec = step_time.on_random_tokens(spec, step_time.TimingSettings(sequences=spec.sequences_per_batch))
    patch.setattr(deferred_metrics, "start_copy", lambda values: list)
    loop = pretrain.build_loop(spec, chosen, StopRequest(), RankGroup(rank=0, world=1, device=torch.device("meta")))
    loop.parts.model.register_forward_pre_hook(lambda model, args: (torch.empty_like(args[0], device="meta"),))
    return loop


STUDY = study_config.load("transfer", "smoke")
METHODS = {run.spec.method: run.spec for run in STUDY.runs.values() if run.spec.scale == "base"}


@pytest.mark.parametrize("method", [*STUDY.methods, "muon"])
def test_no_step_reads_its_device(packs: Path, tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor sends it any."""
    spec = METHODS[method] if method in STUDY.methods else run_spec(optimizer=MUON)
    loop = on_meta(spec, packs, tmp_path, monkeypatch)
    monkeypatch.setattr(torch, "tensor", lambda *args, **options: pytest.fail("made of the host's values"))
    with Copies() as copies:
        for _ in range(2):
            assert loop.train_step() == (False, False)
    assert loop.step == len(loop.deferred) == 2 and copies.found == []


def test_how_late_is_a_matter_of_the_device() -> None:
    def ranks(world: int, device: str) -> RankGroup:
        return RankGroup(rank=0, world=world, device=torch.device(device))

    assert choose_lag(None, ranks(1, "cpu"), True) == 0 and choose_lag(3, ranks(1, "cpu"), True) == 3
    assert choose_lag(None, ranks(1, "cuda"), True) > choose_lag(None, ranks(8, "cuda"), True) > 1
    assert choose_lag(5, ranks(1, "cuda"), False) == 0, "an optimizer that cannot skip"

"""The contract of a run: outputs, exit codes, resume, divergence, and what happens to state that does not fit."""

from __future__ import annotations

import json
import math
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from plumbline.core import frames
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.core.stop_request import StopRequest
from plumbline.model.roles import ParameterRole
from plumbline.operate import cleanup
from plumbline.train import held_out_loss, pretrain
from plumbline.train import loop as loop_module
from plumbline.train.interventions import Intervention, InterventionInputs
from plumbline.train.training_context import TrainingContext
from tests.model_specs import run_spec
from tests.train.small_runs import PROBES, products, read, settings, start_child, train
from tests.train.test_distributed import assert_alike


def test_a_run_leaves_weights_metrics_manifest_and_outcome(undisturbed: Path) -> None:
    out = undisturbed / "out"
    spec = run_spec()
    outcome, manifest = read(out / "outcome.json"), read(out / "manifest.json")
    metrics = frames.read(out / "metrics.parquet", "metrics")
    training = metrics[metrics.split == "train"]
    assert sorted(path.name for path in out.iterdir()) == [
        "manifest.json", "metrics.parquet", "model.safetensors", "outcome.json", "points",
    ]  # fmt: skip
    assert outcome["outcome"] == "completed" and outcome["reason"] is None
    assert outcome["run_id"] == manifest["run_id"] == spec.run_id == frames.metadata(out / "metrics.parquet")["run_id"]
    assert (outcome["step"], outcome["steps"], outcome["last_finite_step"], outcome["weights_step"]) == (12,) * 4
    assert outcome["last_finite_loss"] == training.loss.iloc[-1]
    assert outcome["validation_loss"] == metrics[metrics.split == "validation"].loss.iloc[-1]
    assert training.step.tolist() == list(range(1, 13)) and training.tokens.tolist() == [256 * n for n in range(1, 13)]
    assert metrics[metrics.split == "validation"].step.tolist() == [5, 10, 12]
    assert training.loss.iloc[-1] < training.loss.iloc[0]
    assert abs(training.loss.iloc[0] - math.log(97)) < 0.2
    assert outcome["grad_norm_tail"] == [list(pair) for pair in zip(training.step, training.grad_norm)]
    assert manifest["tokens"] == 12 * 256 and manifest["spec"] == spec.to_dict()
    assert (manifest["micro_batch"], manifest["accumulation"], manifest["world_size"]) == (8, 1, 1)
    assert manifest["attempts"] == 1 and manifest["resumed_from"] == []
    attention = {"asked": "auto", "kernel": "sdpa", "triton": None, "flash_attn": None, "cudnn": None, "notice": None}
    assert manifest["attention"] == attention
    weights = load_file(out / "model.safetensors")
    assert manifest["parameters"] == sum(value.numel() for value in weights.values())
    names = sorted(path.name for path in (undisturbed / "state").glob("step-*"))
    assert names == ["step-0000012"]
    lines = (undisturbed / "state" / "progress.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert events[0] == "start" and events[-1] == "completed" and events.count("step") == 12


def test_explicit_weights_stand_in_the_manifest(packs: Path, tmp_path: Path, undisturbed: Path) -> None:
    """The same run up to rounding, under the same id."""
    assert train(run_spec(), settings(packs, tmp_path, attention="reference")) == 0
    outcome, other = read(tmp_path / "out/outcome.json"), read(undisturbed / "out/outcome.json")
    assert outcome["run_id"] == other["run_id"]
    assert outcome["validation_loss"] == pytest.approx(other["validation_loss"], rel=1e-4)
    manifest = read(tmp_path / "out/manifest.json")
    way = {"asked": "reference", "kernel": "chunked", "triton": None, "flash_attn": None, "cudnn": None, "notice": None}
    assert manifest["attention"] == manifest["starts"][0]["attention"] == way


def test_the_same_run_gives_the_same_bytes(packs: Path, tmp_path: Path, undisturbed: Path) -> None:
    assert train(run_spec(), settings(packs, tmp_path, checkpoint_steps=2, keep_checkpoints=1)) == 0
    assert products(tmp_path) == products(undisturbed)


def test_accumulation_changes_nothing_but_rounding(packs: Path, tmp_path: Path, undisturbed: Path) -> None:
    assert train(run_spec(), settings(packs, tmp_path, micro_batch=2)) == 0
    single = frames.read(undisturbed / "out/metrics.parquet", "metrics")
    four = frames.read(tmp_path / "out/metrics.parquet", "metrics")
    assert read(tmp_path / "out/manifest.json")["accumulation"] == 4
    torch.testing.assert_close(torch.tensor(four.loss), torch.tensor(single.loss), rtol=1e-5, atol=1e-6)


def test_layers_computed_again_give_the_same_bytes(packs: Path, tmp_path: Path, undisturbed: Path) -> None:
    assert train(run_spec(), settings(packs, tmp_path, recompute_activations=True)) == 0
    assert products(tmp_path) == products(undisturbed)
    assert [read(where / "out/manifest.json")["recompute"] for where in (tmp_path, undisturbed)] == [True, False]


@pytest.mark.parametrize("precision", ["bfloat16", "bfloat16_products", "bfloat16_inputs"])
def test_bfloat16_stays_near_float32(packs: Path, tmp_path: Path, undisturbed: Path, precision: str) -> None:
    assert train(run_spec(train__precision=precision), settings(packs, tmp_path)) == 0
    half = frames.read(tmp_path / "out/metrics.parquet", "metrics")
    whole = frames.read(undisturbed / "out/metrics.parquet", "metrics")
    assert not half.loss.equals(whole.loss)
    torch.testing.assert_close(torch.tensor(half.loss), torch.tensor(whole.loss), rtol=0.02, atol=0.0)
    assert all(value.dtype == torch.float32 for value in load_file(tmp_path / "out/model.safetensors").values())
    assert ("inputs_rounded_by" in read(tmp_path / "out/manifest.json")) == (precision == "bfloat16_inputs")


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_any_moment_resumes_the_bits(packs: Path, tmp_path: Path, probed: Path, seed: int) -> None:
    """Killed inside writing a checkpoint or a probe point, between files, in the rotation, in the outputs; in mid-step.

    What probes read is the same to the bit, too.
    """
    moments, spec = random.Random(seed), run_spec(probes=PROBES)
    chosen = settings(packs, tmp_path, checkpoint_steps=1, max_starts_without_progress=0)
    reached, process = [], None
    for attempt in range(40):
        if attempt % 4 == 3:
            process = start_child(spec, chosen)
            _wait_for_a_start(chosen.state, process)
            process.join(moments.uniform(0.0, 0.15))
            process.kill()
        else:
            process = start_child(spec, chosen, operations=moments.randrange(1, 80 + 15 * attempt))
        process.join(60)
        reached.append(max((int(path.name[5:12]) for path in chosen.state.glob("step-*")), default=0))
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    assert process is not None and process.exitcode == 0
    assert len(reached) >= 4 and len(set(reached)) >= 3
    assert products(tmp_path) == products(probed)
    assert not list((tmp_path / "out").rglob(".*")), "nothing is left of those that were killed"


def _wait_for_a_start(state: Path, process: Any) -> None:
    def starts() -> int:
        path = state / "progress.jsonl"
        return path.read_text().count('"event": "start"') if path.exists() else 0

    before = starts()
    while starts() == before and process.is_alive():
        time.sleep(0.005)


class StopAt(StopRequest):
    """Asked to stop when it is polled for the n-th time."""

    def __init__(self, polls: int) -> None:
        self.left = polls

    @property
    def requested(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_a_stop_is_heeded_at_every_poll_and_loses_nothing(packs: Path, tmp_path: Path, undisturbed: Path) -> None:
    """Every place that polls is tried: before the start, in steps, between micro-batches, in validation."""
    chosen = settings(packs, tmp_path, micro_batch=None, max_starts_without_progress=0, checkpoint_seconds=1e9)
    steps, stops = [], 0
    for polls in (0, 1, 2, 3, 4, 5, 6, 8, 11, 14, 17):
        code = train(run_spec(), chosen, StopAt(polls))
        if code == 0:
            break
        assert code == EXIT_RUN_AGAIN
        stops += 1
        steps.append(max((int(path.name[5:]) for path in chosen.state.glob("step-*")), default=0))
    assert code == 0 and stops >= 6 and steps == sorted(steps)
    assert not (tmp_path / "state" / "run_lock.json").exists()
    assert products(tmp_path) == products(undisturbed)


def test_validation_pending_at_a_stop_is_made_up_for(packs: Path, tmp_path: Path, undisturbed: Path) -> None:
    stop, original = StopRequest(), held_out_loss.loss

    def ask_first(parts: TrainingContext) -> float:
        stop.requested = True
        return original(parts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out_loss, "loss", ask_first)
        assert train(run_spec(), settings(packs, tmp_path), stop) == EXIT_RUN_AGAIN
    assert [path.name for path in (tmp_path / "state").glob("step-*")] == ["step-0000005"]
    assert train(run_spec(), settings(packs, tmp_path)) == 0
    assert products(tmp_path) == products(undisturbed)
    manifest = read(tmp_path / "out/manifest.json")
    assert manifest["attempts"] == 2 and manifest["resumed_from"] == [5]


class Hooked(Intervention):
    """Uses all three points, draws at random, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def attach(self, run: InterventionInputs) -> None:
        self.norm = run.model.final_norm

    def label(self, name: str, role: ParameterRole) -> str | None:
        return role.role if role.role in ("query", "key") else None

    def before_step(self, step: int) -> dict[str, float]:
        return {"query": 0.5, "key": 1.0 / (1 + self.count)}

    def extra_loss(self, step: int, tokens_BT: torch.Tensor) -> torch.Tensor:
        return sum(value.square().sum() for value in self.norm.parameters()) * torch.rand(()) * 0.01

    def after_step(self, step: int) -> None:
        self.count += 1
        with torch.no_grad():
            for value in self.norm.parameters():
                value.mul_(0.999)

    def state(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


def test_interventions_and_random_draws_resume_to_the_same_bits(
    packs: Path, tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretrain.interventions, "build", lambda specs: [Hooked()])
    torch.manual_seed(1)
    assert train(run_spec(), settings(packs, tmp_path / "whole")) == 0
    torch.manual_seed(2)  # what was drawn before is nobody's
    codes = [
        train(run_spec(), settings(packs, tmp_path / "parts", max_starts_without_progress=0), StopAt(polls))
        for polls in (7, 9, 30)
    ]
    assert codes == [EXIT_RUN_AGAIN, EXIT_RUN_AGAIN, 0]
    assert products(tmp_path / "parts") == products(tmp_path / "whole") != products(undisturbed)


def test_the_loss_that_is_logged_has_no_extra_term(
    packs: Path, tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Extra(Intervention):
        def extra_loss(self, step: int, tokens_BT: torch.Tensor) -> torch.Tensor:
            return torch.tensor(1000.0)

    monkeypatch.setattr(pretrain.interventions, "build", lambda specs: [Extra()])
    assert train(run_spec(), settings(packs, tmp_path)) == 0
    assert products(tmp_path) == products(undisturbed)


def test_sigterm_saves_and_asks_to_be_run_again(packs: Path, tmp_path: Path) -> None:
    spec = run_spec(train__steps=100000)
    process = start_child(spec, settings(packs, tmp_path))
    progress = tmp_path / "state" / "progress.jsonl"
    deadline = time.monotonic() + 60
    while not (progress.exists() and '"step": 3,' in progress.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.terminate()
    process.join(60)
    assert process.exitcode == EXIT_RUN_AGAIN == 75
    assert '"event": "stopped"' in progress.read_text()
    assert list((tmp_path / "state").glob("step-*")) and not (tmp_path / "out").exists()
    assert process.exitcode != -signal.SIGTERM


def test_an_absurd_learning_rate_ends_as_an_outcome(packs: Path, tmp_path: Path) -> None:
    spec = run_spec(optimizer__learning_rate=1e9, train__steps=40)
    chosen = settings(packs, tmp_path)
    assert train(spec, chosen) == 0
    outcome = read(tmp_path / "out/outcome.json")
    metrics = frames.read(tmp_path / "out/metrics.parquet", "metrics")
    assert outcome["outcome"] == "diverged" and outcome["validation_loss"] is None
    assert f"step {outcome['step']}" in outcome["reason"] and outcome["step"] < outcome["steps"]
    assert outcome["last_finite_step"] == outcome["step"] - 1 and math.isfinite(outcome["last_finite_loss"])
    assert outcome["grad_norm_tail"][-1][0] in (outcome["step"] - 1, outcome["step"])
    assert metrics.step.max() == outcome["step"]
    weights = load_file(tmp_path / "out/model.safetensors")
    assert all(torch.isfinite(value).all() for value in weights.values())
    # It is a result: whoever asks again gets the same one, and nothing is trained.
    before = products(tmp_path)
    shutil.rmtree(tmp_path / "out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_module.TrainingLoop, "train_step", lambda self: pytest.fail("trained again"))
        assert train(spec, chosen) == 0
    assert products(tmp_path) == before and read(tmp_path / "out/outcome.json") == outcome


def test_weights_that_overflow_are_replaced_by_last_finite_ones(packs: Path, tmp_path: Path) -> None:
    spec = run_spec(optimizer__learning_rate=3e38, optimizer__weight_decay=3.0, schedule__warmup_steps=1)
    assert train(spec, settings(packs, tmp_path)) == 0
    outcome = read(tmp_path / "out/outcome.json")
    assert (outcome["outcome"], outcome["step"], outcome["weights_step"]) == ("diverged", 2, 0)
    from plumbline.model.decoder import create

    initial = dict(create(spec.model, spec.init_seed).named_parameters())
    for name, value in load_file(tmp_path / "out/model.safetensors").items():
        assert torch.equal(value, initial[name])


def test_a_finished_run_gives_its_outputs_again_without_training(packs: Path, tmp_path: Path) -> None:
    chosen = settings(packs, tmp_path)
    assert train(run_spec(), chosen) == 0
    before = products(tmp_path)
    shutil.rmtree(tmp_path / "out")
    for _ in range(4):
        assert train(run_spec(), chosen) == 0
    assert products(tmp_path) == before and read(tmp_path / "out/manifest.json")["attempts"] == 1


def test_a_corrupted_newest_checkpoint_falls_back(packs: Path, tmp_path: Path, undisturbed: Path, capfd) -> None:
    chosen = settings(packs, tmp_path, checkpoint_steps=2)
    assert train(run_spec(), chosen) == 0
    newest = tmp_path / "state" / "step-0000012" / "model.safetensors"
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 4
    newest.write_bytes(content)
    assert train(run_spec(), chosen) == 0
    stderr = capfd.readouterr().err
    assert "step-0000012 is damaged (model.safetensors" in stderr
    assert "resumed at step 10" in stderr
    assert products(tmp_path) == products(undisturbed)


def test_without_any_whole_checkpoint_run_starts_again(packs: Path, tmp_path: Path, undisturbed) -> None:
    chosen = settings(packs, tmp_path, checkpoint_steps=5)
    assert train(run_spec(), chosen) == 0
    for path in (tmp_path / "state").glob("step-*"):
        (path / "loop.json").write_text("{")
    each = "; ".join(rf"step-00000{step}\.damaged: loop\.json has 1 bytes, not \d+" for step in (12, 10, "05"))
    for _ in range(2):
        with pytest.raises(PlumblineError, match=rf"none .* is intact \({each}\).*cleanup --restart .*state`"):
            train(run_spec(), chosen)
    assert len(list((tmp_path / "state").glob("*.damaged"))) == 3
    cleanup.restart(chosen.state)
    assert train(run_spec(), chosen) == 0
    assert len(list((tmp_path / "state.set-aside-1").glob("*.damaged"))) == 3
    assert products(tmp_path) == products(undisturbed)


@pytest.mark.parametrize("change", ["spec", "data"])
def test_state_of_another_run_is_kept_for_it(packs: Path, tmp_path: Path, capfd, change: str) -> None:
    assert train(run_spec(), settings(packs, tmp_path)) == 0
    spec, chosen = run_spec(), settings(packs, tmp_path)
    if change == "spec":
        spec = run_spec(optimizer__learning_rate=0.002)
    else:
        chosen = settings(packs, tmp_path, training_pack=packs / "validation.json")
    for _ in range(2):  # the second time the state is its own
        assert train(spec, chosen) == 0
    stderr = capfd.readouterr().err
    expected = {"spec": "run_id", "data": "data_fingerprint"}[change]
    assert f"({expected} changed); kept" in stderr
    (folder,) = tmp_path.glob("state.*")
    assert folder.name.startswith(f"state.of-{run_spec().run_id}-") and (folder / "step-0000012/metadata.json").exists()


def test_checkpoints_say_whose_they_are(packs: Path, tmp_path: Path, undisturbed: Path, capfd) -> None:
    """Where run.json is lost."""
    assert train(run_spec(init_seed=1), settings(packs, tmp_path)) == 0
    (tmp_path / "state" / "run.json").unlink()
    assert train(run_spec(), settings(packs, tmp_path)) == 0
    assert "(run_id changed); kept" in capfd.readouterr().err
    assert products(tmp_path) == products(undisturbed)


def test_a_disk_full_while_saving_names_the_directory(packs: Path, tmp_path: Path, capfd) -> None:
    import resource

    chosen = settings(packs, tmp_path, checkpoint_steps=3)
    assert train(run_spec(), chosen, StopAt(9)) == EXIT_RUN_AGAIN
    before = sorted(path.name for path in chosen.state.glob("step-*"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(PlumblineError, match=r"no disk space .*state.*intact.*resumes"):
            train(run_spec(), chosen)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert before and sorted(path.name for path in chosen.state.glob("*step-*")) == before
    assert train(run_spec(), chosen) == 0


def test_a_run_that_makes_no_progress_is_given_up(packs: Path, tmp_path: Path) -> None:
    chosen = settings(packs, tmp_path)

    def broken(self: loop_module.TrainingLoop) -> None:
        raise OSError("the file system went away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_module.TrainingLoop, "train_step", broken)
        for _ in range(3):
            with pytest.raises(OSError, match=r"went away"):
                train(run_spec(), chosen)
    for _ in range(2):
        with pytest.raises(PlumblineError, match=r"3 times at step 0 .*delete .*fault.json"):
            train(run_spec(), chosen)
    (tmp_path / "state" / "fault.json").unlink()
    assert train(run_spec(), chosen) == 0


class Memory:
    """What holds so many sequences at a time in a training step, and what was tried."""

    def __init__(self, patch: pytest.MonkeyPatch, room: int, *, holds_at: int = 1) -> None:
        self.room, self.holds_at, self.tried = room, holds_at, []
        self.original = loop_module.TrainingLoop.train_step
        patch.setattr(loop_module.TrainingLoop, "train_step", lambda loop: self.step(loop))

    def step(self, loop: loop_module.TrainingLoop) -> tuple[bool, bool]:
        if loop.step + 1 >= self.holds_at:
            micro_batch = loop.parts.batching.micro_batch
            self.tried += [micro_batch] if micro_batch not in self.tried else []
            if micro_batch > self.room:
                torch.empty(1 << 60)
        return self.original(loop)


def test_micro_batch_that_nobody_asked_for_gives_way(
    packs: Path, tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory(monkeypatch, 2)
    assert train(run_spec(), settings(packs, tmp_path)) == 0
    assert memory.tried == [8, 4, 2]
    manifest, starts = read(tmp_path / "out/manifest.json"), read(tmp_path / "state/starts.json")
    assert manifest["micro_batch"] == 2
    assert [start["ended"] for start in starts] == ["out of memory"] * (len(starts) - 1) + ["completed"]
    assert_alike(tmp_path, undisturbed)


def test_one_that_was_asked_for_does_not_and_is_not_tried_again(packs: Path, tmp_path: Path) -> None:
    chosen = settings(packs, tmp_path, micro_batch=4)
    with pytest.MonkeyPatch.context() as patch:
        memory = Memory(patch, 2)
        with pytest.raises(PlumblineError, match=r"first step.*smaller --micro-batch"):
            train(run_spec(), chosen)
        assert memory.tried == [4]
    with pytest.raises(PlumblineError, match=r"out of memory.*delete .*fault.json"):
        train(run_spec(), chosen)
    assert train(run_spec(), settings(packs, tmp_path, micro_batch=2)) == 0  # other circumstances


def test_out_of_memory_in_the_first_step_is_not_tried_again(packs: Path, tmp_path: Path) -> None:
    """Where not even one sequence fits."""
    with pytest.MonkeyPatch.context() as patch:
        memory = Memory(patch, 0)
        with pytest.raises(PlumblineError, match=r"first step.*smaller --micro-batch"):
            train(run_spec(), settings(packs, tmp_path))
        assert memory.tried == [8, 4, 2, 1]
    with pytest.raises(PlumblineError, match=r"out of memory.*delete .*fault.json"):
        train(run_spec(), settings(packs, tmp_path))
    assert train(run_spec(), settings(packs, tmp_path, micro_batch=2)) == 0  # other circumstances


def test_out_of_memory_in_a_later_step_is_a_fault_of_that_start(packs: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        memory = Memory(patch, 2, holds_at=3)
        with pytest.raises(RuntimeError, match="allocate memory"):
            train(run_spec(), settings(packs, tmp_path))
        assert memory.tried == [8]
    assert [start["ended"] for start in read(tmp_path / "state/starts.json")] == ["fault"]
    assert train(run_spec(), settings(packs, tmp_path)) == 0


def test_bad_input_is_named(packs: Path, tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match="--micro-batch 3 does not divide the 8"):
        train(run_spec(), settings(packs, tmp_path / "a", micro_batch=3))
    with pytest.raises(PlumblineError, match=r"recorded .*delete .*fault.json"):
        train(run_spec(), settings(packs, tmp_path / "a", micro_batch=3))
    with pytest.raises(PlumblineError, match="64 is longer than the 32"):
        train(run_spec(model__context=64), settings(packs, tmp_path / "b"))
    with pytest.raises(PlumblineError, match=r"--validation-pack: .* has 40 sequences.*needs 41"):
        train(run_spec(train__validation_sequences=41), settings(packs, tmp_path / "c"))
    with pytest.raises(PlumblineError, match=r"none.json is missing"):
        train(run_spec(), settings(packs, tmp_path / "d", training_pack=tmp_path / "none.json"))
    for mistake, message in (
        ({"optimizer__name": "adam"}, r"optimizer\.name: no component 'adam'; did you mean 'adamw'"),
        ({"schedule__warmup_steps": 13}, r"schedule\.warmup_steps"),
        ({"interventions": [{"name": "slow"}]}, r"interventions\[0\]\.name: no component 'slow'"),
    ):
        with pytest.raises(PlumblineError, match=message):
            run_spec(**mistake)


def test_tensorboard_is_optional(packs: Path, tmp_path: Path) -> None:
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        with pytest.raises(PlumblineError, match=r"Plumbline: pip install '.\[tensorboard\]'"):
            train(run_spec(), settings(packs, tmp_path, tensorboard=tmp_path / "events"))
    else:
        assert train(run_spec(), settings(packs, tmp_path, tensorboard=tmp_path / "events")) == 0
        assert list((tmp_path / "events").iterdir())

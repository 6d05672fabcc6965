"""Step times: what is timed, of whom, in which order, and what cannot be timed."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import on_meta
from plumbline.model.norms_per_block import norm_modules, norms_per_block
from plumbline.specs.spec import RunSpec
from plumbline.train import step_time
from plumbline.train.interventions.learning_rate_factor import LearningRateFactor
from plumbline.train.loop import TrainingLoop
from plumbline.train.step_time import TimingSettings, measure
from tests.model_specs import BASELINE, RUN, run_spec, small

HOW = TimingSettings(sequences=4, repeats=4, warmup=2, device="cpu")
#: The second reads as many held-out sequences as are in a batch, which lie behind those of the loss.
FACTOR = [{"name": "learning_rate_factor", "factor": 0.5}, {"name": "logit_change", "every": 2, "sequences": 4}]


def runs(**second: Any) -> list[RunSpec]:
    return [run_spec(method="one"), run_spec(method="other", **second), run_spec(method="third")]


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> list[TrainingLoop]:
    """The loops whose steps were taken, one entry a step."""
    by_step: list[TrainingLoop] = []
    original = TrainingLoop.train_step

    def train_step(self: TrainingLoop) -> tuple[bool, bool]:
        by_step.append(self)
        return original(self)

    monkeypatch.setattr(TrainingLoop, "train_step", train_step)
    return by_step


def test_every_run_takes_its_steps_in_turn(loops: list[TrainingLoop]) -> None:
    messages: list[str] = []
    frame = measure(runs(), HOW, messages.append)
    assert list(frame.columns) == ["key", "repeat", "place", "seconds"]
    assert len(frame) == 3 * 4 and (frame.seconds > 0).all()
    methods = [loop.parts.spec.method for loop in loops]
    assert methods[:9] == ["one", "other", "third", "other", "third", "one", "third", "one", "other"]
    assert len(methods) == 3 * (2 + 4) and {loop.step for loop in loops} == {6}
    places = frame.pivot(index="repeat", columns="key", values="place")
    assert places["transfer/base/one/s42"].tolist() == [1, 0, 2, 1]
    assert places.apply(sorted, axis=1).tolist() == [[0, 1, 2]] * 4
    assert len(messages) == 2 and "3 runs on cpu" in messages[-1]


def test_the_steps_are_those_of_training_on_the_same_tokens(loops: list[TrainingLoop]) -> None:
    """Equal specs stay equal to the bit; an intervention changes what is trained."""
    measure(runs(interventions=FACTOR), HOW, print)
    first, other, third = (dict(loop.parts.model.named_parameters()) for loop in loops[:3])
    assert all(torch.equal(value, third[name]) for name, value in first.items())
    assert not all(torch.equal(value, other[name]) for name, value in first.items())
    rows = [row for row in loops[0].state.metrics.rows if row[1] == "train"]
    assert len(rows) == 6 and rows[-1][2] < rows[0][2]


def test_what_an_intervention_does_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    original = LearningRateFactor.before_step

    def slow(self: LearningRateFactor, step: int) -> dict[str, float]:
        time.sleep(0.2)
        return original(self, step)

    monkeypatch.setattr(LearningRateFactor, "before_step", slow)
    seconds = measure(runs(interventions=FACTOR), HOW, print).groupby("key").seconds.min()
    assert seconds["transfer/base/other/s42"] >= 0.2


def test_a_batch_is_accumulated_over_micro_batches(loops: list[TrainingLoop]) -> None:
    measure(runs(), TimingSettings(sequences=4, micro_batch=1, repeats=1, warmup=1, device="cpu"), print)
    assert {(loop.parts.batching.micro_batch, loop.parts.batching.accumulation) for loop in loops} == {(1, 4)}
    with pytest.raises(PlumblineError, match="not divide the 4 sequences"):
        measure(runs(), TimingSettings(sequences=4, micro_batch=3, device="cpu"), print)


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loops: list[TrainingLoop]) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    measure(runs(), HOW, print)
    assert loops[0].parts.settings.state.is_relative_to(tmp_path) and not list(tmp_path.iterdir())


def test_a_run_that_diverges_has_no_step_time(monkeypatch: pytest.MonkeyPatch) -> None:
    wild = run_spec(method="wild", optimizer__learning_rate=1e30, schedule__warmup_steps=0)
    with pytest.raises(PlumblineError, match="transfer/base/wild/s42 diverged on random tokens"):
        measure([run_spec(method="one"), wild], HOW, print)


def test_what_is_no_comparison_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlumblineError, match="name each run once"):
        measure([run_spec(), run_spec()], HOW, print)
    with pytest.raises(PlumblineError, match="name each run once"):
        measure([], HOW, print)
    shorter = run_spec(method="short", model=RUN["model"] | {"context": 16})
    with pytest.raises(PlumblineError, match="differ in context"):
        measure([run_spec(), shorter], HOW, print)
    if not torch.cuda.is_available():
        with pytest.raises(PlumblineError, match="no CUDA device"):
            measure(runs(), TimingSettings(sequences=4, device="cuda"), print)


def test_the_clock_waits_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU a step returns before it is done: the device is waited for at both ends."""
    order: list[str] = []

    class Step:
        def train_step(self) -> None:
            order.append("step")

    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: order.append("wait"))
    step_time.step_seconds(Step(), torch.device("cuda"))  # type: ignore[arg-type]
    assert order == ["wait", "step", "wait"]


def test_norms_are_counted_in_the_modules() -> None:
    assert norms_per_block(small()) == 2
    assert norms_per_block(small(query_key={"name": "qk_norm"})) == 4
    assert norms_per_block(small(norm={"name": "layer_norm"})) == 2
    assert norms_per_block(small(values={"name": "rms_norm"})) == 3
    modules = norm_modules(on_meta(small(query_key={"name": "qk_norm"})))
    assert list(modules) == list(range(BASELINE["layers"]))
    assert [name.rpartition(".")[2] for name in modules[3]] == ["key_norm", "query_norm", "0", "1"]


@pytest.mark.gpu
def test_steps_are_timed_on_a_gpu() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    frame = measure(runs(), TimingSettings(sequences=4, repeats=3, device="cuda"), print)
    assert len(frame) == 9 and (frame.seconds > 0).all()


def test_ratios_are_taken_repeat_by_repeat() -> None:
    """A machine that is ten times as slow for a while leaves the ratio where it is."""
    from plumbline.stats.paired_runs import compute_paired_ratio

    slow = pd.Series([1.0, 10.0, 1.0, 10.0, 1.0])
    ratio = compute_paired_ratio(slow * [1.1, 1.2, 1.3, 1.1, 1.2], slow)
    assert (ratio.low, ratio.median, ratio.high) == pytest.approx((1.1, 1.2, 1.2))
    assert (ratio.n, ratio.missing) == (5, 0)
    holes = compute_paired_ratio(pd.Series([2.0, None, 6.0]), pd.Series([1.0, 1.0, 0.0]))
    assert (holes.median, holes.n, holes.missing) == (2.0, 1, 2)
    with pytest.raises(PlumblineError, match="same index"):
        compute_paired_ratio(slow, slow.iloc[:3])

"""A release survives stops, kills and ranks, and reading the score leaves no trace."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from plumbline.core import frames
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json
from plumbline.train.interventions import _until_release
from tests.train.intervention_cases import ALWAYS, slow, spec, weights
from tests.train.small_runs import products, read, settings, train, train_ranks
from tests.train.test_checkpoint_fit import sign
from tests.train.test_pretrain import StopAt


@pytest.mark.parametrize("polls", [(6, 30, 90), (9, 11, 13, 90), (18, 19, 90)])
def test_stopped_anywhere_resumes_the_bits(packs: Path, tmp_path: Path, slowed: Path, polls: tuple[int, ...]) -> None:
    """Before, at and after the release, and in the middle of the ramp."""
    chosen = settings(packs, tmp_path, max_starts_without_progress=0, checkpoint_seconds=1e9)
    codes = [train(spec(slow(**ALWAYS)), chosen, StopAt(number)) for number in polls]
    assert codes == [EXIT_RUN_AGAIN] * (len(polls) - 1) + [0]
    assert products(tmp_path) == products(slowed)
    assert read(tmp_path / "out/outcome.json") == read(slowed / "out/outcome.json")


@pytest.mark.parametrize("last", [8, 11])
def test_a_checkpoint_holds_the_release(packs: Path, tmp_path: Path, slowed: Path, last: int) -> None:
    """Killed after each of these steps: before the release, and in the ramp, which ends with step 14."""
    environment = {"STOP_AFTER_STEP": str(last)}
    chosen = settings(packs, tmp_path, checkpoint_steps=1)
    assert train_ranks(1, spec(slow(**ALWAYS)), chosen, **environment) == [EXIT_RUN_AGAIN]
    newest = max((tmp_path / "state").glob("step-*"))
    (state,) = read(newest / "loop.json")["interventions"]
    step = read(newest / "loop.json")["step"]
    assert state["released"] == (8 if step > 8 else None) and state["scores"][-1][0] <= step
    assert train(spec(slow(**ALWAYS)), chosen) == 0
    assert products(tmp_path) == products(slowed)


def quacks(state: dict[str, Any]) -> dict[str, Any]:
    """One layer's norms, which would be spread over all layers."""
    return state | {"start": {role: norms_LN[:1] for role, norms_LN in state["start"].items()}}


@pytest.mark.parametrize(
    ("chosen", "change", "message"),
    [
        (slow(**ALWAYS), lambda state: {}, "KeyError"),
        (slow(**ALWAYS), lambda state: state | {"released": 3}, "the same rule"),
        ({"name": "quack"}, quacks, r"start of \{'key': \(1, 2\)"),
    ],
)
def test_a_state_that_is_none_of_the_run_is_refused(
    packs: Path, tmp_path: Path, chosen: dict[str, Any], change: Any, message: str
) -> None:
    """Its checksums are those of what lies there; without that checkpoint an earlier one is taken."""
    of, how = (
        spec(chosen, train__steps=12),
        settings(packs, tmp_path, checkpoint_steps=4, max_starts_without_progress=1),
    )
    assert train(of, how) == 0
    expected = products(tmp_path)
    shutil.rmtree(tmp_path / "state/step-0000012")
    newest = tmp_path / "state/step-0000008"
    loop = read(newest / "loop.json")
    atomic_write_json(newest / "loop.json", loop | {"interventions": [change(hook) for hook in loop["interventions"]]})
    sign(newest)
    for _ in range(2):
        with pytest.raises(PlumblineError, match=rf"{newest}: .* \(.*{message}.*move that"):
            train(of, how)
    newest.rename(tmp_path / "elsewhere")
    assert train(of, how) == 0 and products(tmp_path) == expected


def test_two_ranks_decide_as_one(packs: Path, tmp_path: Path) -> None:
    """By a limit that is reached in the middle of the window, and with sharded weights; replicated ones are below."""
    limited = slow(threshold_over_null=1.0, patience=1, window_start=0.0)
    of = spec(limited, train__batch_tokens=128)
    assert train(of, settings(packs, tmp_path / "one")) == 0
    chosen = settings(packs, tmp_path / "two", micro_batch=2, strategy="fsdp")
    assert train_ranks(2, of, chosen) == [0, 0]
    first, two = (read(tmp_path / name / "out/outcome.json") for name in ("one", "two"))
    assert first["interventions"] == two["interventions"]
    scores, expected = (frames.read(tmp_path / name / "out/points/online.parquet", "probes") for name in ("two", "one"))
    assert scores.step.tolist() == expected.step.tolist() == [0, 2, 4, 6, 8, 10, 12]
    torch.testing.assert_close(torch.tensor(scores.value), torch.tensor(expected.value), rtol=1e-3, atol=1e-6)
    mine, other = weights(tmp_path / "two"), weights(tmp_path / "one")
    for name, value in other.items():
        torch.testing.assert_close(mine[name], value, rtol=1e-3, atol=5e-5)


def test_rank_0_decides(packs: Path, tmp_path: Path) -> None:
    """Ranks whose own scores differ release at the same step all the same; else their gradients would part ways."""
    chosen = settings(packs, tmp_path, micro_batch=2)
    codes = train_ranks(2, spec(slow(patience=1)), chosen, CLAMP_SCORES="9.0,0.0")
    assert codes == [0, 0]
    assert read(tmp_path / "out/outcome.json")["interventions"][0]["released"] == 4
    finals = [read(tmp_path / f"state/released-{rank}.json") for rank in (0, 1)]
    assert finals == [4, 4]


def test_reading_the_score_leaves_no_trace(packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the random states, not in the model's mode, not in gradients."""
    original, modes = _until_release.lower_copy_score, []

    def drawing(model: torch.nn.Module, *arguments: Any, **options: Any) -> tuple[float, float]:
        modes.append((model.training, any(value.grad is not None for value in model.parameters())))
        random.random(), np.random.rand(), torch.rand(3)
        result = original(model, *arguments, **options)
        modes.append((model.training, any(value.grad is not None for value in model.parameters())))
        return result

    monkeypatch.setattr(_until_release, "lower_copy_score", drawing)
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    states = []
    from plumbline.train import loop as loop_module

    original_begin = _until_release.UntilRelease.begin

    def begin(self: _until_release.UntilRelease, step: int) -> None:
        before = loop_module.randomness.encode(loop_module.randomness.capture(torch.device("cpu")))
        original_begin(self, step)
        states.append(before == loop_module.randomness.encode(loop_module.randomness.capture(torch.device("cpu"))))

    monkeypatch.setattr(_until_release.UntilRelease, "begin", begin)
    assert train(spec(slow(**ALWAYS)), settings(packs, tmp_path)) == 0
    assert len(modes) == 14 and set(modes) == {(True, False)} and states == [True] * 24


def test_a_run_that_diverges_says_what_was_decided_until_then(packs: Path, tmp_path: Path) -> None:
    fixed = slow(release="fixed", release_at=1.0)
    chosen = spec(slow(**ALWAYS), fixed, optimizer__learning_rate=1e9, schedule__warmup_steps=0)
    assert train(chosen, settings(packs, tmp_path)) == 0
    outcome = read(tmp_path / "out/outcome.json")
    assert outcome["outcome"] == "diverged" and outcome["weights_step"] < 8
    assert outcome["interventions"] == [{"released": None, "fraction": None, "why": None}] * 2
    before = products(tmp_path)
    assert train(chosen, settings(packs, tmp_path)) == 0
    assert products(tmp_path) == before


def test_a_score_that_is_no_number_survives_a_checkpoint(packs: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(_until_release, "lower_copy_score", lambda *arguments, **options: (float("nan"), 0.05))
    chosen = settings(packs, tmp_path)
    assert train(spec(slow(**ALWAYS)), chosen, StopAt(12)) == EXIT_RUN_AGAIN
    assert train(spec(slow(**ALWAYS)), chosen) == 0
    assert read(tmp_path / "out/outcome.json")["interventions"][0]["why"] == "forced"
    assert frames.read(tmp_path / "out/points/online.parquet", "probes").value.isna().all()

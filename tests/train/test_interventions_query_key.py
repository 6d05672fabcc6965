"""QuacK, QK-clip and what is read of logits survive stops and ranks: the same run, to the bit or up to rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from plumbline.core import frames
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.specs.spec import RunSpec
from plumbline.train.interventions._heads import QueryKeyMatrices
from plumbline.train.interventions.quack import Quack
from tests.model_specs import run_spec
from tests.train.intervention_cases import ADAMW, KINDS, MUON, weights
from tests.train.small_runs import products, read, settings, train, train_ranks
from tests.train.test_pretrain import StopAt

STEEP = {"learning_rate": 0.02, "weight_decay": 1.0}


def everything(kind: str, optimizer: dict[str, Any], threshold: float) -> RunSpec:
    """Ratios that reach the limit, logits that are clipped, and values of both."""
    return run_spec(
        model=KINDS[kind],
        optimizer=optimizer | STEEP,
        schedule={"name": "constant", "warmup_steps": 0},
        interventions=[
            {"name": "logit_change", "every": 4, "sequences": 3},
            {"name": "quack", "tau": 2.0, "largest_ratio": 1.02},
            {"name": "qk_clip", "threshold": threshold},
        ],
    )


@pytest.fixture(scope="module", params=[("shared_keys", ADAMW, 0.2), ("latent", MUON, 0.02)], ids=["adamw", "muon"])
def whole(
    request: pytest.FixtureRequest, packs: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[RunSpec, Path]:
    """A run with everything that is not interrupted, and that every part of it does something in."""
    of, work = everything(*request.param), tmp_path_factory.mktemp("whole")
    assert train(of, settings(packs, work, micro_batch=4)) == 0
    watch, quack, clip = read(work / "out/outcome.json")["interventions"]
    assert quack["ratios_clamped"] > 0 and quack["ratio_lowest"] < 0.98 and 0 < clip["steps"] < 12
    assert watch["evaluations"] == 3
    return of, work


@pytest.mark.parametrize("polls", [(4, 90), (6, 9, 14, 90), (11, 12, 13, 90)])
def test_stopped_anywhere_resumes_the_bits(
    packs: Path, tmp_path: Path, whole: tuple[RunSpec, Path], polls: tuple[int, ...]
) -> None:
    """Also in a step between the two sides of an evaluation. Weights, values, and what was decided."""
    of, uninterrupted = whole
    chosen = settings(packs, tmp_path, max_starts_without_progress=0, checkpoint_seconds=1e9, micro_batch=4)
    codes = [train(of, chosen, StopAt(number)) for number in polls]
    assert codes == [EXIT_RUN_AGAIN] * (len(polls) - 1) + [0]
    assert products(tmp_path) == products(uninterrupted)
    assert read(tmp_path / "out/outcome.json") == read(uninterrupted / "out/outcome.json")


def test_norms_at_the_start_are_taken_once(packs: Path, tmp_path: Path, whole, monkeypatch) -> None:
    """They are in the checkpoint, and it is these that a resumed run goes by: others give another run."""
    of, uninterrupted = whole
    calls = []
    original = QueryKeyMatrices.norms
    monkeypatch.setattr(QueryKeyMatrices, "norms", lambda self, norm: calls.append(None) or original(self, norm))
    chosen = settings(packs, tmp_path, checkpoint_seconds=1e9, micro_batch=4)
    assert train(of, chosen, StopAt(9)) == EXIT_RUN_AGAIN
    (checkpoint,) = (tmp_path / "state").glob("step-*")
    loop = read(checkpoint / "loop.json")
    state = loop["interventions"][1]
    assert len(calls) == loop["step"] + 1, "once a step, and once at the start"
    assert {role: [len(norms) for norms in layers] for role, layers in state["start"].items()} in (
        {"query": [4, 4], "key": [2, 2]},
        {"query_down": [1, 1], "query_up": [4, 4], "query_rotary": [4, 4], "key_value_down": [1, 1],
         "key_up": [4, 4], "key_rotary": [1, 1]},
    )  # fmt: skip
    load_state = Quack.load_state

    def load_halved(self: Quack, state: dict[str, Any]) -> None:
        load_state(self, state)
        self.start = {role: norms / 2 for role, norms in self.start.items()}

    monkeypatch.setattr(Quack, "load_state", load_halved)
    assert train(of, chosen) == 0
    assert len(calls) == 12 + 1
    mine, other = weights(tmp_path), weights(uninterrupted)
    assert any(not torch.allclose(mine[name], value, atol=1e-4) for name, value in other.items())


def assert_alike(work: Path, reference: Path) -> None:
    """The same run up to rounding: weights, values and decisions."""
    mine, other = (frames.read(path / "out/points/online.parquet", "probes") for path in (work, reference))
    assert mine[["step", "probe"]].equals(other[["step", "probe"]])
    torch.testing.assert_close(torch.tensor(mine.value), torch.tensor(other.value), rtol=1e-3, atol=1e-5)
    for first, two in zip(*(read(path / "out/outcome.json")["interventions"] for path in (work, reference))):
        assert first == pytest.approx(two, rel=1e-4)
    own, expected = weights(work), weights(reference)
    for name, value in expected.items():
        torch.testing.assert_close(own[name], value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_ranks_decide_as_one(packs: Path, tmp_path: Path, whole: tuple[RunSpec, Path], strategy: str) -> None:
    """Each sees half of the sequences, and the largest logit is in one of the halves. Stopped, it goes on on one."""
    of, uninterrupted = whole
    chosen = settings(packs, tmp_path, micro_batch=2, strategy=strategy, checkpoint_steps=4)
    assert train_ranks(2, of, chosen, STOP_AFTER_STEP="8") == [EXIT_RUN_AGAIN] * 2
    assert train(of, chosen) == 0
    assert read(tmp_path / "out/manifest.json")["resumed_from"] == [8]
    assert_alike(tmp_path, uninterrupted)

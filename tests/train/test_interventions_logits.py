"""The change of logits by one update: its numbers, where it reads, and that it leaves no trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data.loader import Pack
from plumbline.evaluate.probes._scores import AttentionScores
from plumbline.model.decoder import Decoder, create
from plumbline.specs.spec import RunSpec
from plumbline.train import loop
from plumbline.train.interventions.logit_change import measure_change
from tests.model_specs import run_spec
from tests.train.intervention_cases import KINDS, MANY_HEADS, SHARED_KEYS, attach_hooks
from tests.train.small_runs import read, settings, train

FAST = {"optimizer__learning_rate": 0.03, "schedule": {"name": "constant", "warmup_steps": 0}}


def watch(**options: Any) -> dict[str, Any]:
    return {"name": "logit_change", "every": 5, "sequences": 3} | options


def make_spec(model: dict[str, Any], *interventions: dict[str, Any], **overrides: Any) -> RunSpec:
    return run_spec(model=model, interventions=list(interventions), **(FAST | overrides))


def naive(model: Decoder, tokens_BT: torch.Tensor, layer: int, head: int) -> torch.Tensor:
    """Scaled scores of visible entries, one after the other."""
    scores = {}
    mixer = model.blocks[layer].attention.mixer
    handle = mixer.register_forward_pre_hook(lambda _, args: scores.update(z=mixer.scores(args[0], args[1])))
    with torch.no_grad():
        model(tokens_BT[:, :-1])
    handle.remove()
    time = tokens_BT.shape[1] - 1
    return scores["z"][:, head][:, torch.ones(time, time, dtype=torch.bool).tril()].double()


def test_the_change_of_a_product_is_the_difference_of_products() -> None:
    generator = torch.Generator().manual_seed(0)
    q0, k0, q1, k1 = (torch.randn(2, 1, 7, 4, generator=generator, dtype=torch.float64) for _ in range(4))
    visible = torch.ones(7, 7, dtype=torch.bool).tril()
    moved = (q1 @ k1.mT - q0 @ k0.mT)[..., visible].abs()
    change = measure_change(AttentionScores(q0, k0, 1.0), AttentionScores(q1, k1, 1.0))
    assert change == pytest.approx((moved.mean().item(), moved.max().item()), rel=1e-12)
    assert measure_change(AttentionScores(q0, k0, 1.0), AttentionScores(q0, k0, 1.0)) == pytest.approx(
        (0.0, 0.0), abs=1e-14
    )
    for factor in (0.0, 2.0):  # all fall, or rise, by themselves
        largest = measure_change(AttentionScores(q0, k0, 1.0), AttentionScores(factor * q0, k0, 1.0))[1]
        assert largest == pytest.approx((q0 @ k0.mT)[..., visible].abs().max().item(), rel=1e-12), "either way"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("others", [[], [{"name": "quack", "tau": 0.5}, {"name": "qk_clip", "threshold": 0.01}]])
@pytest.mark.parametrize("first", [True, False])
def test_values_are_those_of_the_weights_around_a_step(
    packs: Path, tmp_path: Path, monkeypatch, kind: str, others: list[dict[str, Any]], first: bool
) -> None:
    """Before it and after everything that was done in it, wherever in the list this intervention stands."""
    states: list[dict[str, torch.Tensor]] = []
    original = loop.TrainingLoop.train_step

    def train_step(self: loop.TrainingLoop) -> tuple[bool, bool]:
        if not states:
            states.append({name: value.clone() for name, value in self.parts.model.state_dict().items()})
        done = original(self)
        states.append({name: value.clone() for name, value in self.parts.model.state_dict().items()})
        return done

    monkeypatch.setattr(loop.TrainingLoop, "train_step", train_step)
    of = make_spec(KINDS[kind], *([watch(), *others] if first else [*others, watch()]))
    assert train(of, settings(packs, tmp_path)) == 0
    behind_the_loss = of.train.validation_sequences + np.arange(3)
    tokens_BT = torch.from_numpy(Pack(packs / "validation.json").rows(behind_the_loss))
    rows = frames.read(tmp_path / "out/points/online.parquet", "probes")
    model, expected = create(of.model, 0), []
    for step in (5, 10, 12):
        sides = []
        for weights in (states[step - 1], states[step]):
            model.load_state_dict(weights)
            sides.append(naive(model, tokens_BT, layer=1, head=1))
        moved = (sides[1] - sides[0]).abs()
        expected += [moved.mean().item(), moved.max().item(), sides[1].max().item()]
    mine = rows[rows.probe.str.startswith("logit_")]
    assert mine.step.tolist() == [5] * 3 + [10] * 3 + [12] * 3
    assert mine.probe.tolist() == ["logit_change", "logit_change_max", "logit_max"] * 3
    assert mine.value.tolist() == pytest.approx(expected, rel=1e-3, abs=1e-6) and min(expected) > 1e-4
    if others:
        (report,) = (entry for entry in read(tmp_path / "out/outcome.json")["interventions"] if "clipped" in entry)
        assert report["clipped"] > 0


def test_it_changes_nothing(packs: Path, tmp_path: Path) -> None:
    """Not the weights, not what is logged, not the model's mode."""
    for name, interventions in (("control", []), ("watched", [watch(every=1)])):
        assert train(make_spec(SHARED_KEYS, *interventions), settings(packs, tmp_path / name)) == 0
    first, second = (tmp_path / name / "out" for name in ("control", "watched"))
    assert sha256_file(first / "model.safetensors") == sha256_file(second / "model.safetensors")
    mine, other = (frames.read(path / "metrics.parquet", "metrics").fillna(-1.0) for path in (first, second))
    assert mine.equals(other)


def test_bfloat16_runs_are_read_in_float32(packs: Path, tmp_path: Path) -> None:
    """The change of an update that does nothing is zero, and one of a small update is not lost."""
    still = make_spec(MANY_HEADS, watch(every=1), train__precision="bfloat16", optimizer__learning_rate=1e-6)
    assert train(still, settings(packs, tmp_path)) == 0
    probes = frames.read(tmp_path / "out/points/online.parquet", "probes")
    moved = probes[probes.probe == "logit_change"].value
    assert moved.min() > 0 and moved.max() < 1e-5


@pytest.mark.parametrize("layers, heads, middle", [(14, 32, (7, 15)), (2, 4, (1, 1)), (3, 4, (1, 1)), (1, 1, (0, 0))])
def test_the_middle_is_the_papers(packs: Path, layers: int, heads: int, middle: tuple[int, int]) -> None:
    """Layer 8 of 14 and head 16 of 32, counted from 1."""
    sizes = {"layers": layers, "heads": heads, "key_value_heads": heads, "head_width": 2, "width": 8}
    of = make_spec(MANY_HEADS | sizes, watch())
    (hook,) = attach_hooks(of, create(of.model, 0), Pack(packs / "validation.json"))
    assert (hook.layer, hook.head) == middle
    assert {"layer": hook.layer, "head": hook.head, "evaluations": 0} == hook.report(0)


def test_another_head_may_be_chosen(packs: Path) -> None:
    """The last one of the first layer, whose keys are the second group's."""
    of = make_spec(SHARED_KEYS, watch(layer=0, head=3))
    model, pack = create(of.model, 0), Pack(packs / "validation.json")
    (hook,) = attach_hooks(of, model, pack)
    hook.begin(of.train.steps)
    scores = hook.before
    tokens_BT = torch.from_numpy(pack.rows(np.arange(3)))
    z = (scores.q_BHTW @ scores.k_BGTW.mT)[:, 0][:, torch.ones(31, 31, dtype=torch.bool).tril()]
    torch.testing.assert_close(z, naive(model, tokens_BT, 0, 3), rtol=1e-4, atol=1e-7)
    assert model.training


@pytest.mark.parametrize(
    "changes, options, message",
    [
        ({}, {"every": 0}, r"logit_change.every \(0\) and .sequences \(3\) must be 1"),
        ({}, {"sequences": 31}, r"logit_change reads 31 held-out sequences, and 30 of \S+ lie behind the 10 of"),
        ({}, {"layer": 2}, r"logit_change.layer \(2\).*layers 0 to 1; -1"),
        ({}, {"head": -2}, r"logit_change.head \(-2\).*heads 0 to 3"),
        ({"mixer": {"name": "sigmoid"}}, {}, "model.mixer 'sigmoid': what probes read"),
    ],
)
def test_what_cannot_be_meant_is_refused(packs: Path, tmp_path: Path, changes: Any, options: Any, message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        train(make_spec(MANY_HEADS | changes, watch(**options)), settings(packs, tmp_path))

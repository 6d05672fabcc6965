"""Probe points: permanent weights at fractions of training, and probes that are read from inside it."""

from __future__ import annotations

import errno
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from plumbline.core import frames, provenance
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.core.run_files import read_points_index
from plumbline.evaluate.probes import Probe, ProbeValue, _forward_pass
from plumbline.model.decoder import create
from plumbline.model.distributed import RankGroup
from plumbline.operate import cleanup
from plumbline.train import held_out_loss, pretrain
from plumbline.train import loop as loop_module
from plumbline.train.checkpoint.training_state import TrainingState
from tests.model_specs import run_spec
from tests.train.small_runs import PROBES, products, read, settings, train
from tests.train.test_pretrain import Hooked, StopAt

SPEC = run_spec(probes=PROBES)


def index(work: Path) -> list[dict[str, Any]]:
    return read(work / "out/points/index.json")["points"]


def test_weights_are_kept_at_fractions_of_training(packs: Path, probed: Path, undisturbed: Path) -> None:
    """Of 12 steps: 0, round(3.6), round(10.8), 12."""
    entries = index(probed)
    assert [(entry["fraction"], entry["step"]) for entry in entries] == [(0.0, 0), (0.3, 4), (0.9, 11), (1.0, 12)]
    assert all(entry["reached"] for entry in entries)
    out = probed / "out/points"
    for entry in entries:
        assert sha256_file(out / entry["file"]) == entry["sha256"]
    assert [entry["file"] for entry in entries[:3]] == [f"step-{step:07d}.safetensors" for step in (0, 4, 11)]
    assert entries[3]["file"] == "../model.safetensors" and "not stored twice" in entries[3]["note"]
    initial = create(SPEC.model, SPEC.init_seed)
    assert all(
        torch.equal(value, load_file(out / entries[0]["file"])[name]) for name, value in initial.named_parameters()
    )
    assert len({entry["sha256"] for entry in entries}) == 4
    # The state keeps them, and on one file system they take no room a second time.
    assert [path.name for path in sorted((probed / "state/points").iterdir())] == [
        "step-0000000", "step-0000004", "step-0000011",
    ]  # fmt: skip
    assert all((out / entry["file"]).stat().st_nlink == 2 for entry in entries[:3])
    # A run without probes has the folder, too; it was not changed by the probes of the other one.
    assert [path.name for path in (undisturbed / "out/points").iterdir()] == ["index.json"] and index(undisturbed) == []
    assert sha256_file(undisturbed / "out/model.safetensors") == sha256_file(probed / "out/model.safetensors")


def test_a_point_holds_what_a_run_that_ends_there_ends_with(packs: Path, tmp_path: Path, probed: Path) -> None:
    """With a constant rate, the first 4 of 12 steps are the 4 steps of a shorter run."""
    constant = {"schedule": {"name": "constant", "warmup_steps": 0}}
    assert (
        train(run_spec(probes=[{"name": "query_key_norms", "at": [0.3]}], **constant), settings(packs, tmp_path)) == 0
    )
    assert train(run_spec(train__steps=4, **constant), settings(packs, tmp_path / "short")) == 0
    mine, short = tmp_path / "out/points/step-0000004.safetensors", tmp_path / "short/out/model.safetensors"
    assert sha256_file(mine) == sha256_file(short)


def test_online_readings_are_a_frame_that_changes_nothing(packs: Path, probed: Path, undisturbed: Path) -> None:
    frame = frames.read(probed / "out/points/online.parquet", "probes")
    heads = SPEC.model.layers * (SPEC.model.heads + SPEC.model.key_value_heads)
    assert frame.step.tolist() == [step for step in (0, 5, 10, 12) for _ in range(heads)]
    assert (frame.fraction == frame.step / 12).all() and (frame.source == "online").all()
    assert frame.null.isna().all() and set(frame.probe) == {"query_norm", "key_norm"}
    model = create(SPEC.model, SPEC.init_seed)
    from plumbline.data.loader import Pack

    tokens_BT = torch.from_numpy(Pack(packs / "validation.json").rows(np.arange(3)))
    expected = [
        probe_value.value for probe_value in _forward_pass.read_all(model, list(SPEC.probes[1:]), tokens_BT, "float32")
    ]
    assert frame[frame.step == 0].value.tolist() == expected
    assert frame.groupby("step").value.mean().nunique() == 4


class Drawing(Probe):
    """A probe that draws at random from every generator, and would leave the model in training mode."""

    def query_key(self, layer: int, q_BHTW: torch.Tensor, k_BGTW: torch.Tensor) -> None:
        random.random(), np.random.rand(), torch.rand(3)

    def probe_values(self, model: Any) -> list[ProbeValue]:
        model.module.train()
        return [ProbeValue(probe="drawing", value=torch.rand(()).item())]


def test_a_random_probe_changes_no_weight(packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a run whose loss has a random term: another random state would be another run."""
    monkeypatch.setattr(pretrain.interventions, "build", lambda specs: [Hooked()])
    monkeypatch.setattr(_forward_pass, "build", lambda specs: [Drawing() for _ in specs])
    for name, probes in (("with", PROBES), ("without", [])):
        torch.manual_seed(1), random.seed(1), np.random.seed(1)
        assert train(run_spec(probes=probes), settings(packs, tmp_path / name)) == 0
    weights = [sha256_file(tmp_path / name / "out/model.safetensors") for name in ("with", "without")]
    assert weights[0] == weights[1]
    assert len(frames.read(tmp_path / "with/out/points/online.parquet", "probes")) == 4


def test_a_stop_at_every_poll_loses_no_reading(packs: Path, tmp_path: Path, probed: Path) -> None:
    chosen = settings(packs, tmp_path, max_starts_without_progress=0, checkpoint_seconds=1e9)
    codes = [train(SPEC, chosen, StopAt(polls)) for polls in (3, 5, 4, 8, 9, 30)]
    assert codes[:3] == [EXIT_RUN_AGAIN] * 3 and codes[-1] == 0
    assert read(tmp_path / "out/manifest.json")["attempts"] >= 4
    assert products(tmp_path) == products(probed)


def test_a_reading_that_is_no_number_survives_a_checkpoint(tmp_path: Path) -> None:
    ranks = RankGroup(rank=0, world=1, device=torch.device("cpu"))
    before, after = (TrainingState(SPEC, ranks.device) for _ in range(2))
    online = before.online
    probe_values = [
        ProbeValue(probe="a", layer=0, head=1, value=0.1 + 0.2, null=8.0),
        ProbeValue(probe="b", value=float("nan")),
        ProbeValue(probe="c", layer=3, value=float("-inf"), null=0.0),
    ]
    online.add(0, probe_values)
    online.add(5, probe_values)
    before.snapshot(ranks, []).write(tmp_path)
    after.put_back(tmp_path, ranks, [])
    again = after.online
    assert repr(again.probe_values) == repr(online.probe_values)
    assert again.list_due(5) == [] and [probe.every for probe in again.list_due(10)] == [5] and not again.list_due(11)
    assert again.list_due(12), "the last step"


def test_a_run_that_diverged_says_which_points_it_never_reached(packs: Path, tmp_path: Path) -> None:
    spec = run_spec(probes=[PROBES[0], PROBES[1] | {"every": 1}], optimizer__learning_rate=1e9)
    chosen = settings(packs, tmp_path)
    assert train(spec, chosen) == 0
    outcome = read(tmp_path / "out/outcome.json")
    assert outcome["outcome"] == "diverged"
    last = outcome["step"] - 1
    assert 0 < last < 11, "between the first point and the last but one"
    for entry in index(tmp_path):
        assert entry["reached"] == (entry["step"] <= last)
        assert (entry["file"] is not None) == (entry["sha256"] is not None) == entry["reached"]
    assert [entry["reached"] for entry in index(tmp_path)][-2:] == [False, False]
    online = frames.read(tmp_path / "out/points/online.parquet", "probes")
    assert sorted(set(online.step)) == list(range(last + 1))
    before = products(tmp_path)
    shutil.rmtree(tmp_path / "out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_module.TrainingLoop, "train_step", lambda self: pytest.fail("trained again"))
        assert train(spec, chosen) == 0
    assert products(tmp_path) == before and read(tmp_path / "out/outcome.json") == outcome


def test_deleted_outputs_are_given_again_from_the_state(packs: Path, tmp_path: Path, probed: Path) -> None:
    chosen = settings(packs, tmp_path)
    assert train(SPEC, chosen) == 0
    shutil.rmtree(tmp_path / "out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_module.TrainingLoop, "train_step", lambda self: pytest.fail("trained again"))
        patch.setattr(held_out_loss, "probe_values", lambda parts, due: pytest.fail("read again"))
        assert train(SPEC, chosen) == 0
    assert products(tmp_path) == products(probed)


def test_another_file_system(packs: Path, tmp_path: Path, probed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: Any, target: Any) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", link)
    assert train(SPEC, settings(packs, tmp_path)) == 0
    assert products(tmp_path) == products(probed)
    assert (tmp_path / "out/points/step-0000004.safetensors").stat().st_nlink == 1
    assert not list((tmp_path / "out/points").glob(".*"))


def test_a_lost_point_has_the_same_bytes(packs: Path, tmp_path: Path, probed: Path, capfd) -> None:
    """Checkpoints after steps 2, 4, ... 12; the later ones are taken away, so that step 11 is made again."""
    chosen = settings(packs, tmp_path, checkpoint_steps=2, keep_checkpoints=9)
    assert train(SPEC, chosen) == 0
    weights = tmp_path / "state/points/step-0000011/model.safetensors"
    for lose in (False, True):
        for step in (8, 10, 12):
            shutil.rmtree(tmp_path / f"state/step-{step:07d}")
        before = weights.stat().st_ino
        if lose:
            content = bytearray(weights.read_bytes())
            content[-1] ^= 1
            weights.write_bytes(content)
        assert train(SPEC, chosen) == 0
        assert (weights.stat().st_ino == before) is not lose
        assert products(tmp_path) == products(probed)
    assert "step-0000011: model.safetensors" in capfd.readouterr().err
    assert read(tmp_path / "out/manifest.json")["resumed_from"] == [6, 6]


def test_a_point_that_cannot_be_made_again(packs: Path, tmp_path: Path, probed: Path) -> None:
    chosen = settings(packs, tmp_path)
    assert train(SPEC, chosen) == 0
    weights = tmp_path / "state/points/step-0000004/model.safetensors"
    content = bytearray(weights.read_bytes())
    content[200] ^= 1
    weights.write_bytes(content)
    with pytest.raises(PlumblineError, match=r"step-0000004.*damaged.*--restart"):
        train(SPEC, chosen)
    weights.unlink()
    with pytest.raises(PlumblineError, match=r"probe point at step 4 .*--restart"):
        train(SPEC, chosen)
    cleanup.restart(chosen.state)
    assert train(SPEC, chosen) == 0
    assert (tmp_path / "state.set-aside-1/points/step-0000004").is_dir()
    assert products(tmp_path) == products(probed)


def test_points_without_an_owner_are_not_taken_for_anybodys(packs: Path, tmp_path: Path, probed: Path) -> None:
    """As the kill of a run before its first checkpoint, and the loss of run.json, would leave them."""
    chosen = settings(packs, tmp_path)
    shutil.copytree(probed / "state/points", tmp_path / "state/points")
    assert train(SPEC, chosen, StopAt(2)) == EXIT_RUN_AGAIN  # they state whose they are
    (tmp_path / "state/run.json").unlink()
    for path in (tmp_path / "state").glob("**/metadata.json"):
        path.unlink()
    with pytest.raises(PlumblineError, match=r"neither run.json nor any.*--restart"):
        train(SPEC, chosen)
    cleanup.restart(chosen.state)
    assert train(SPEC, chosen) == 0
    assert products(tmp_path) == products(probed)


def test_a_point_of_other_code_is_remade(packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    chosen = settings(packs, tmp_path, checkpoint_seconds=1e9)
    monkeypatch.setattr(provenance, "code_sha256", lambda: "a" * 64)
    with monkeypatch.context() as patch:
        patch.setattr(held_out_loss, "loss", lambda parts: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(SPEC, chosen)  # at step 5: points 0 and 4 are there, no checkpoint is
    monkeypatch.setattr(provenance, "code_sha256", lambda: "b" * 64)
    assert train(SPEC, chosen) == 0
    for step in (0, 4):
        assert read(tmp_path / f"state/points/step-{step:07d}/metadata.json")["code_sha256"] == "b" * 64
    assert "step-0000004: made with another code_sha256" in capfd.readouterr().err


def test_the_index_is_checked_when_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no .*index.json.*not finished"):
        read_points_index(tmp_path)
    (tmp_path / "points").mkdir()
    for content in ("{", "[]", "{}", '{"points": [1]}', '{"points": [{"step": 1}]}'):
        (tmp_path / "points/index.json").write_text(content)
        with pytest.raises(PlumblineError, match=r"index.*points"):
            read_points_index(tmp_path)

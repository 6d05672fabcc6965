"""What a run was made with: its code and torch, step by step; the packs as they were packed; files as others' are."""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from plumbline.core import provenance
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.core.stop_request import StopRequest, StopRequested
from plumbline.model.distributed import RankGroup
from plumbline.specs.spec import RunSpec
from plumbline.train import loop as loop_module
from plumbline.train.batches import packs as packs_module
from tests.model_specs import run_spec
from tests.train.small_runs import PROBES, read, settings, train, train_ranks
from tests.train.test_pretrain import StopAt

SPEC = run_spec(probes=PROBES)


def test_the_manifest_names_each_steps_code(packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = settings(packs, tmp_path, max_starts_without_progress=0)

    def start(code: str, polls: int) -> int:
        monkeypatch.setattr(provenance, "code_sha256", lambda: code)
        return train(SPEC, chosen, StopAt(polls))

    assert start("0" * 64, 2) == EXIT_RUN_AGAIN  # stopped before its first step: it made nothing
    assert start("a" * 64, 12) == EXIT_RUN_AGAIN
    metadata = read(max((tmp_path / "state").glob("step-*")) / "metadata.json")
    assert metadata["code_sha256"] == "a" * 64 and metadata["torch"] == torch.__version__ and metadata["step"] > 2
    assert start("b" * 64, 999) == 0
    manifest = read(tmp_path / "out/manifest.json")
    version = {"torch": str(torch.__version__)}
    assert manifest["code_sha256"] == "mixed" and manifest["code"] == [
        {"code_sha256": "a" * 64, "steps": [0]} | version,
        {"code_sha256": "b" * 64, "steps": [metadata["step"]]} | version,
    ]
    assert [entry["code_sha256"][0] for entry in manifest["starts"]] == ["0", "a", "b"]
    # The outputs are given again under yet another code: it made none of them.
    shutil.rmtree(tmp_path / "out")
    assert start("c" * 64, 999) == 0
    assert read(tmp_path / "out/manifest.json")["code"] == manifest["code"]


def test_starts_that_were_gone_back_behind_made_nothing() -> None:
    def starts(*entries: tuple[str, int]) -> list[dict[str, Any]]:
        return [{"code_sha256": code, "torch": "2", "step": step} for code, step in entries]

    def codes(*entries: tuple[str, int]) -> list[tuple[str, list[int]]]:
        return [(entry["code_sha256"], entry["steps"]) for entry in provenance.list_code_versions(starts(*entries))]

    assert codes(("a", 0)) == [("a", [0])] and provenance.find_code_hash(starts(("a", 0))) == "a"
    assert codes(("a", 0), ("a", 5)) == [("a", [0, 5])] and provenance.find_code_hash(starts(("a", 0), ("a", 5))) == "a"
    assert codes(("a", 0), ("b", 8), ("c", 4)) == [("a", [0]), ("c", [4])]
    assert codes(("a", 0), ("b", 0)) == [("b", [0])] and provenance.find_code_hash(starts(("a", 0), ("b", 0))) == "b"
    assert codes(("a", 0), ("b", 3), ("a", 6)) == [("a", [0, 6]), ("b", [3])]
    assert provenance.find_code_hash(starts(("a", 0), ("b", 3), ("a", 6))) == "mixed"


def test_spec_of_other_code_is_refused(packs: Path, tmp_path: Path) -> None:
    other = RunSpec.from_dict(SPEC.to_dict() | {"components": SPEC.components | {"model.mixer": "0" * 16}})
    with pytest.raises(PlumblineError, match=r"the code of model\.mixer differs"):
        train(other, settings(packs, tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.fixture
def own_packs(packs: Path, tmp_path: Path) -> Path:
    """Packs that a test may damage."""
    return shutil.copytree(packs, tmp_path / "packs", ignore=shutil.ignore_patterns(".verified"))


def test_packs_of_two_tokenizers_or_two_splits_train_no_run(own_packs: Path, tmp_path: Path) -> None:
    path = own_packs / "validation.json"
    whole, chosen = read(path), settings(own_packs, tmp_path)
    path.write_text(json.dumps(whole | {"tokenizer_sha256": "1" * 64}))
    with pytest.raises(PlumblineError, match=r"train\.json and .*: 0{64} and 1{64}"):
        train(SPEC, chosen)
    facts = {"corpus": {"name": "made-up", "source": "local", "split_rule": "held out: 3 percent"}}
    path.write_text(json.dumps(whole | facts))
    train_path = own_packs / "train.json"
    facts["corpus"]["split_rule"] = "held out: 5 percent"
    train_path.write_text(json.dumps(read(train_path) | facts))
    with pytest.raises(PlumblineError, match=r"held out .* 5 percent.* 3 percent"):
        train(SPEC, chosen)
    assert not (tmp_path / "state/fault.json").exists(), "whoever mends the packs goes on"


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_damaged_pack_is_not_trained_on(own_packs: Path, tmp_path: Path, split: str) -> None:
    chosen = settings(own_packs, tmp_path)
    assert train(SPEC, chosen, StopAt(6)) == EXIT_RUN_AGAIN
    flip(own_packs / f"{split}.bin")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_module.TrainingLoop, "train_step", lambda self: pytest.fail("trained"))
        with pytest.raises(PlumblineError, match=rf"{split}.*damaged: sha256.*`pack`"):
            train(SPEC, chosen)
    assert not (tmp_path / "state/fault.json").exists(), "whoever mends the pack goes on"
    flip(own_packs / f"{split}.bin")
    assert train(SPEC, chosen) == 0


def test_shards_are_read_once(own_packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards: list[int] = []
    original = packs_module.verify_once
    monkeypatch.setattr(packs_module, "verify_once", lambda pack: shards.append(original(pack)))
    chosen = settings(own_packs, tmp_path)
    assert train(SPEC, chosen, StopAt(6)) == EXIT_RUN_AGAIN
    assert train(SPEC, chosen) == 0
    assert shards == [1, 1, 0, 0]
    assert train(SPEC, chosen) == 0, "a finished run reads no pack"
    assert len(shards) == 4


def test_all_ranks_end_when_a_pack_is_damaged(own_packs: Path, tmp_path: Path) -> None:
    flip(own_packs / "train.bin")
    assert train_ranks(2, SPEC, settings(own_packs, tmp_path)) == [1, 1]
    assert not list((tmp_path / "state").glob("step-*"))


def test_a_pack_that_cannot_be_read_is_no_verified_one(packs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from plumbline.data.loader import Pack

    def fail(pack: Pack) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(packs_module, "verify_once", fail)
    alone = RankGroup(rank=0, world=1, device=torch.device("cpu"))
    with pytest.raises(PlumblineError, match=r"train.json.*cannot be.*Input/output"):
        packs_module.verify([Pack(packs / "train.json")], alone, StopRequest())


def test_a_stop_is_heeded_while_packs_are_read(packs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    monkeypatch.setattr(packs_module, "verify_once", lambda pack: released.wait(60))
    stop = StopRequest()
    stop.requested = True
    with pytest.raises(StopRequested):
        packs_module.verify([packs], RankGroup(rank=0, world=1, device=torch.device("cpu")), stop)  # type: ignore[list-item]
    released.set()


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_outputs_have_the_mode_that_the_umask_asks_for(packs: Path, tmp_path: Path, mask: int) -> None:
    """safetensors makes its files readable for their owner alone."""
    before = os.umask(mask)
    try:
        assert train(SPEC, settings(packs, tmp_path)) == 0
    finally:
        os.umask(before)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"model.safetensors", "step-0000004.safetensors", "online.parquet"}
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask, path

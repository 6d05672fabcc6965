"""Packs and the loader."""

from __future__ import annotations

import json
import pickle
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data.loader import Pack, batch_indices, order, permute
from tests.data.conftest import CONTEXT, Stages, run_pack


@dataclass(frozen=True)
class OfSize:
    """As much of a pack as its order depends on."""

    sequences: int


@pytest.fixture
def copy(stages: Stages, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stages.packs, tmp_path / "packs"))


def test_packing_loses_only_the_tail(stages: Stages) -> None:
    tokens = np.concatenate([np.load(path) for path in stages.tokens]).astype(np.int64)
    pack = Pack(stages.packs / "large.json")
    manifest = pack.manifest
    count = len(tokens) // CONTEXT * CONTEXT
    np.testing.assert_array_equal(pack.rows(np.arange(len(pack))).ravel(), tokens[:count])
    assert manifest["tokens"] == count and manifest["discarded"]["tokens"] == len(tokens) - count < CONTEXT
    assert manifest["discarded"]["percent"] == pytest.approx(100 * (len(tokens) - count) / len(tokens), abs=1e-6)
    assert manifest["available"]["documents"] == int((tokens == manifest["separator"]).sum())
    assert manifest["tokenizer_sha256"] == sha256_file(stages.tokenizer)
    assert "made" not in manifest["corpus"]["source"] and "held out" in manifest["corpus"]["split_rule"]


def test_base_is_a_prefix_of_large(stages: Stages) -> None:
    base, large = Pack(stages.packs / "base.json"), Pack(stages.packs / "large.json")
    assert base.sequences == 300 < large.sequences
    here = np.arange(300)
    np.testing.assert_array_equal(base.rows(here), large.rows(here))
    assert base.manifest["shards"] == large.manifest["shards"][:3]
    separators = (base.rows(here).ravel()[:-1] == base.manifest["separator"]).sum()
    assert base.manifest["documents"] == 1 + separators
    account = base.manifest
    total = account["tokens"] + account["unused"]["tokens"] + account["discarded"]["tokens"]
    assert total == account["available"]["tokens"]
    assert base.fingerprint != large.fingerprint == Pack(stages.packs / "large.json").fingerprint


@pytest.mark.parametrize("block", [7, 4_000_000])
def test_packing_again_gives_the_same_bytes(
    stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """However many tokens are in memory at once."""
    monkeypatch.setattr("plumbline.data.pack._BLOCK", block)
    run_pack(stages, tmp_path, "base=300", "large=all")
    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 4
    assert all(sha256_file(tmp_path / path) == sha256_file(stages.packs / path) for path in files)


def test_a_size_beyond_the_corpus_says_what_there_is(stages: Stages, tmp_path: Path) -> None:
    there = Pack(stages.packs / "large.json").sequences
    with pytest.raises(PlumblineError, match=rf"'base'.*for 1,000,000.*of 16.*{there:,}"):
        run_pack(stages, tmp_path, "base=1000000")
    with pytest.raises(PlumblineError, match="asks for 0 sequences"):
        run_pack(stages, tmp_path, "base=0")
    with pytest.raises(PlumblineError, match="--pack-size 'base': give NAME=SEQUENCES"):
        run_pack(stages, tmp_path, "base")
    assert not list(tmp_path.glob("*.json"))


def test_packs_have_names_of_their_own(stages: Stages, tmp_path: Path) -> None:
    run_pack(stages, tmp_path, "tiny=5", "half=150", "most=300")
    packs = [Pack(tmp_path / f"{name}.json") for name in ("tiny", "half", "most")]
    assert [len(pack) for pack in packs] == [5, 150, 300]
    for pack in packs:
        assert pack.manifest["corpus"]["name"] == "made_up"
        np.testing.assert_array_equal(pack.rows(np.arange(5)), packs[-1].rows(np.arange(5)))
    with pytest.raises(PlumblineError, match=r"--pack-size 'tiny=6':.*pack.*'tiny'"):
        run_pack(stages, tmp_path / "twice", "tiny=5", "tiny=6")
    with pytest.raises(PlumblineError, match=r"--pack-size '\.\./up=5': give NAME=SEQUENCES"):
        run_pack(stages, tmp_path / "up", "../up=5")


def test_bad_token_shards(stages: Stages, tmp_path: Path) -> None:
    bad = tmp_path / "train-0001.npy"
    with pytest.raises(PlumblineError, match=r"train-0001\.npy.*`tokenize`"):
        run_pack(stages, tmp_path, "all=all", tokens=[stages.tokens[0], bad])
    bad.write_bytes(stages.tokens[1].read_bytes()[:-100])
    with pytest.raises(PlumblineError, match=r"train-0001\.npy.*truncated"):
        run_pack(stages, tmp_path, "all=all", tokens=[stages.tokens[0], bad])
    bad.write_bytes(stages.tokens[1].read_bytes() + b"\1")
    with pytest.raises(PlumblineError, match=r"train-0001\.npy.*truncated"):
        run_pack(stages, tmp_path, "all=all", tokens=[stages.tokens[0], bad])
    np.save(bad, np.load(stages.tokens[1]).astype(np.uint32))
    with pytest.raises(PlumblineError, match=r"train-0001\.npy.*made"):
        run_pack(stages, tmp_path, "all=all", tokens=[stages.tokens[0], bad])
    np.save(bad, np.array([5000, Pack(stages.packs / "base.json").manifest["separator"]], dtype=np.uint16))
    with pytest.raises(PlumblineError, match="holds the id 5000"):
        run_pack(stages, tmp_path, "all=all", tokens=[stages.tokens[0], bad])


def test_missing_and_truncated_shards(copy: Path) -> None:
    shard = copy / "train" / "shard-00001.bin"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-2])
    with pytest.raises(PlumblineError, match=r"shard-00001\.bin.*base\.json.*`pack`"):
        Pack(copy / "base.json")
    shard.unlink()
    with pytest.raises(PlumblineError, match=r"shard-00001\.bin.*base\.json.*`pack`"):
        Pack(copy / "base.json")


def test_bad_manifests(copy: Path) -> None:
    with pytest.raises(PlumblineError, match=r"none\.json.*`pack`"):
        Pack(copy / "none.json")
    manifest = json.loads((copy / "base.json").read_text())
    (copy / "base.json").write_text(json.dumps({key: value for key, value in manifest.items() if key != "dtype"}))
    with pytest.raises(PlumblineError, match=r"base\.json: key 'dtype' is missing"):
        Pack(copy / "base.json")
    (copy / "base.json").write_text("{")
    with pytest.raises(PlumblineError, match=r"base\.json is not JSON"):
        Pack(copy / "base.json")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dtype": "<f2"}, r"Invalid enum value '<f2' - at `\$\.dtype`"),  # as wide; trained on without a word
        ({"dtype": ">u2"}, r"Invalid enum value '>u2'"),
        ({"dtype": "<i2"}, r"Invalid enum value '<i2'"),
        ({"dtype": "<u4"}, r"shard-00000\.bin .* 4,096 bytes, not 8,192"),
        ({"sequences": "300"}, r"Expected `int`, got `str` - at `\$\.sequences`"),
        ({"sequences_per_shard": 0}, r"Expected `int` >= 1 - at `\$\.sequences_per_shard`"),
        ({"sequences_per_shard": 64}, r"shard-00000\.bin has 128 sequences, and sequences_per_shard is 64: .* wrong"),
        ({"sequences_per_shard": 200}, r"shard-00000\.bin has 128 sequences, and sequences_per_shard is 200"),
        ({"shards": [3]}, r"Expected `object`, got `int` - at `\$\.shards\[0\]`"),
        ({"shards": [{"file": "x", "sequences": 1}]}, r"missing required field `sha256` - at `\$\.shards\[0\]`"),
    ],
)
def test_a_manifest_that_would_be_read_otherwise_is_refused(copy: Path, changed: dict[str, Any], message: str) -> None:
    path = copy / "base.json"
    fingerprint_file.write_facts(path, json.loads(path.read_text()) | changed)
    with pytest.raises(PlumblineError, match=rf"{message}.*rerun (that rule|the rule `pack`)"):
        Pack(path)


def test_another_context_is_refused(stages: Stages) -> None:
    assert Pack(stages.packs / "base.json", context=CONTEXT).context == CONTEXT
    with pytest.raises(PlumblineError, match=r"model\.context 32.*the 16.*base\.json"):
        Pack(stages.packs / "base.json", context=32)
    with pytest.raises(PlumblineError, match=r"model\.context 8 is shorter"):
        Pack(stages.packs / "base.json", context=8)


def test_rows(stages: Stages) -> None:
    pack = Pack(stages.packs / "base.json")
    tokens_BT = pack.rows(np.array([299, 0, 128, 0]))
    assert tokens_BT.shape == (4, CONTEXT) and tokens_BT.dtype == np.int64
    np.testing.assert_array_equal(tokens_BT[1], pack.sequence(0))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(pack)).sequence(128), tokens_BT[2])
    with pytest.raises(IndexError, match="has 300 sequences"):
        pack.rows(np.array([300]))


@given(size=st.integers(1, 3000), seed=st.integers(0, 2**31), epoch=st.integers(0, 5))
def test_an_epoch_is_a_permutation(size: int, seed: int, epoch: int) -> None:
    pack = OfSize(size)
    indices = order(pack, seed, epoch)
    np.testing.assert_array_equal(np.sort(indices), np.arange(size))
    some = np.arange(0, size, 3)
    np.testing.assert_array_equal(order(pack, seed, epoch, some), indices[some])


@given(size=st.integers(1, 60), batch=st.integers(1, 100), steps=st.integers(1, 8), seed=st.integers(0, 99))
def test_batches_are_the_epochs_end_to_end(size: int, batch: int, steps: int, seed: int) -> None:
    pack = OfSize(size)
    batches = np.concatenate([batch_indices(pack, seed, step, batch) for step in range(steps)])
    epochs = np.concatenate([order(pack, seed, epoch) for epoch in range(-(-batch * steps // size))])
    np.testing.assert_array_equal(batches, epochs[: batch * steps])


@given(size=st.integers(8, 500), ranks=st.sampled_from([1, 2, 4, 8]), step=st.integers(0, 50))
def test_ranks_share_one_global_batch(size: int, ranks: int, step: int) -> None:
    pack = OfSize(size)
    whole = batch_indices(pack, 0, step, 8)
    parts = [batch_indices(pack, 0, step, 8).reshape(ranks, -1)[rank] for rank in range(ranks)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_orders_differ_and_look_random() -> None:
    pack = OfSize(1000)
    first = order(pack, 0, 0)
    for other in (order(pack, 1, 0), order(pack, 0, 1)):
        # Two independent permutations agree in about one place.
        assert (first == other).sum() < 10
    assert abs(np.corrcoef(np.arange(1000), first)[0, 1]) < 0.15
    # Over many seeds each value is equally often first: chi-squared of 16 cells against its 99.99 % point (44.3).
    counts = np.bincount([int(order(OfSize(16), seed, 0, np.array([0]))[0]) for seed in range(1600)], minlength=16)
    assert ((counts - 100) ** 2 / 100).sum() < 44.3


def test_the_order_is_written_in_stone() -> None:
    """Golden: a change here changes every run."""
    assert permute(np.arange(10), 10, "stone").tolist() == [3, 7, 6, 8, 4, 0, 1, 9, 5, 2]
    big = permute(np.array([0, 1, 58_600_000]), 58_632_813, "stone")
    assert big.tolist() == [40363259, 18864118, 54076116]

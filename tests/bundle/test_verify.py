"""Each file below a folder is as written, changed, missing or not known; nothing else passes for as written."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from plumbline.bundle import archive, ro_crate, verify
from plumbline.core import fingerprint_file, run_files
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, canonical_json, sha256_file, sha256_text
from plumbline.data.manifest import read_pack
from plumbline.experiment import ledger
from plumbline.experiment.board.board_page import write_board
from plumbline.experiment.board.board_rows import Board
from plumbline.results.measurements import measurement_file
from plumbline.train.checkpoint.rolling_checkpoints import RollingCheckpoints


def file(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def listed(*paths: Path) -> dict[str, Any]:
    return {path.name: {"bytes": path.stat().st_size, "sha256": sha256_file(path)} for path in paths}


def project(root: Path) -> set[str]:
    """What makers leave, one of each kind; returns the paths of what has no checksum."""
    demo, results = root / "work/demo", root / "results/demo/transfer"
    run = demo / "runs/transfer/base/baseline/s42"
    weights, metrics = file(run / "model.safetensors", b"weights"), file(run / "metrics.parquet", b"metrics")
    point = file(run / "points/step-0000002.safetensors", b"point")
    points = [{"fraction": 0.5, "step": 2, "reached": True, "file": point.name, "sha256": sha256_file(point)}]
    points += [
        {"fraction": 1.0, "step": 4, "reached": True, "file": "../model.safetensors", "sha256": sha256_file(weights)}
    ]
    points += [{"fraction": 0.7, "step": 3, "reached": False, "file": None, "sha256": None}]
    atomic_write_json(run / "points/index.json", {"points": points})
    spec = {"study": "transfer", "learning_rate": 1e-3}
    run_id = sha256_text(canonical_json(spec))[:16]
    atomic_write_json(run / "outcome.json", {"run_id": run_id, "outcome": "completed"})
    files = listed(weights, metrics, run / "outcome.json") | {
        "points/index.json": {"sha256": sha256_file(run / "points/index.json")}
    }
    fingerprint_file.write_facts(run / "manifest.json", {"run_id": run_id, "spec": spec, "files": files})
    checkpoints = RollingCheckpoints(demo / "state/transfer/base/baseline/s42", keep=3)
    temporary = checkpoints.begin(4)
    file(temporary / "model.safetensors", b"state")
    checkpoints.finish(temporary, 4, {"finite": True})
    corpus = demo / "corpora/mine"
    documents = file(corpus / "documents/train.jsonl", b"{}\n")
    splits = {"train": {"file": documents.name, "sha256": sha256_file(documents)}}
    fingerprint_file.write_facts(corpus / "documents/documents.json", {"splits": splits})
    tokens = file(corpus / "tokens/train-0000.npy", b"tokens")
    fingerprint_file.write(tokens, "f")
    shard = file(corpus / "packs/context8/train/train/shard-00000.bin", np.arange(8, dtype="<u2").tobytes())
    shards = [{"file": f"train/{shard.name}", "sequences": 1, "sha256": sha256_file(shard)}]
    pack = {"context": 8, "dtype": "<u2", "sequences": 1, "sequences_per_shard": 1, "vocabulary": 9}
    fingerprint_file.write_facts(
        shard.parents[1] / "base.json", pack | {"tokenizer_sha256": "0" * 64, "shards": shards}
    )
    items = file(corpus / "items/climb12/piqa.jsonl", b"{}\n")
    atomic_write_json(items.with_name("items.json"), {"piqa": {"sha256": sha256_file(items)}})
    fingerprint_file.write(items.with_name("items.json"), "f")
    scores = file(demo / "scores/transfer/base/baseline/s42/scores.parquet", b"scores")
    companion = file(scores.with_name("examples.parquet"), b"examples")
    fingerprint_file.write(scores, "f", companions=[companion])
    measurement_file.write(pd.DataFrame({"a": [1.0]}), demo / "measured/quack/times.parquet", {"fingerprint": "f"})
    picture, numbers = file(results / "fig1.png", b"png"), file(results / "fig1.csv", b"csv")
    fingerprint_file.write(picture, "f", companions=[numbers])
    table = {path.name: sha256_file(path) for path in (file(results / f"table1.{end}", b"1") for end in ("csv", "md"))}
    said = {"csv_sha256": table["table1.csv"], "files": table}
    fingerprint_file.write_facts(results / "table1.provenance.json", said)
    file(root / "results/table1.csv", b"1")  # a copy of the preset asked for
    entry = ledger.LedgerEntry(kind="try", name="a", fingerprint="f", baseline="b", metric="loss", test="t")
    ledger.append(root / "results/demo/verdict/ledger.jsonl", [entry])
    unknown = [
        file(demo / "state/transfer/base/baseline/s42/progress.jsonl", b"{}\n"),
        file(results / "notes.md", b"x"),
    ]
    return {path.relative_to(root).as_posix() for path in unknown}


def statuses(*paths: Path) -> dict[str, str]:
    return {said.path: said.status for said in verify.verify(paths)}


def test_every_file_that_was_changed_or_removed_is_told_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = project(tmp_path)
    monkeypatch.chdir(tmp_path)
    roots = [Path("work"), Path("results")]
    before = statuses(*roots)
    assert {path for path, status in before.items() if status == "not known"} == unknown
    written = [path for path, status in before.items() if status == "as written"]
    assert len(written) == len(before) - len(unknown) == 30, Counter(before.values())
    for path in (Path(name) for name in written):
        content = path.read_bytes()
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        now = statuses(*roots)
        copy = path == Path("results/table1.csv")  # without its original's bytes nothing says what it was
        assert now[str(path)] == ("not known" if copy else "changed"), path
        others = {name for name in written if now[name] != "as written"} - {str(path)}
        assert all(now[name] == "not known" for name in others), "they are named by what was changed alone"
        assert copy or verify.exit_code(verify.verify(roots)) == 10
        path.unlink()
        now = statuses(*roots)
        kept_by_others = str(path) in now
        assert now.get(str(path), "missing") == "missing" and (kept_by_others == (now.get(str(path)) == "missing"))
        path.write_bytes(content)
    assert statuses(*roots) == before
    run = Path("work/demo/runs/transfer/base/baseline/s42")
    assert statuses(run / "model.safetensors") == {str(run / "model.safetensors"): "as written"}
    assert statuses(run / "points")[str(run / "points/index.json")] == "as written"
    assert verify.exit_code(verify.verify([Path("results/demo/transfer/notes.md")])) == 16, "nothing was checked"


def test_a_manifest_says_what_was_written_and_its_spec_gives_its_run_id(tmp_path: Path) -> None:
    project(tmp_path)
    path = tmp_path / "work/demo/runs/transfer/base/baseline/s42/manifest.json"
    manifest = json.loads(path.read_text())
    run_files.require_manifest(path, manifest)
    earlier = {key: value for key, value in manifest.items() if key != fingerprint_file.OF_THE_REST}
    run_files.require_manifest(path, earlier)
    for changed, why in (
        (manifest | {"wall_seconds": 1.0}, "is not as it was written: the sha256 of what it says is "),
        (
            earlier | {"spec": {"learning_rate": 0.5}},
            r"was changed: its spec is that of run \w{16}, and its run_id is ",
        ),
        (fingerprint_file.sealed(earlier | {"run_id": "0" * 16}), "its run_id is 0000000000000000; delete the run's"),
    ):
        with pytest.raises(PlumblineError, match=why):
            run_files.require_manifest(path, changed)
    atomic_write_json(path, earlier)
    said = {Path(one.path).name: one for one in verify.verify([path.parent])}
    assert said["manifest.json"].status == "not known" and "no sha256 of itself" in said["manifest.json"].why
    assert said["model.safetensors"].status == "as written"
    pack = next(tmp_path.rglob("base.json"))
    read_pack(pack)
    pack.write_text(pack.read_text().replace('"vocabulary": 9', '"vocabulary": 8'))
    with pytest.raises(PlumblineError, match=r"base.json is not as it was written: .* rerun the rule `pack`"):
        read_pack(pack)


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"files": 7}', '{"files": {"a": {}}}', '{"files": {"../../../../etc/passwd": "0"}}', "[" * 9999],
)
def test_a_record_that_is_none_is_told_and_nothing_falls(tmp_path: Path, content: str) -> None:
    file(tmp_path / "run/manifest.json", content.encode())
    os.mkfifo(tmp_path / "run/pipe")
    said = {Path(one.path).name: one.status for one in verify.verify([tmp_path])}
    assert said["pipe"] == "not known" and said["manifest.json"] in ("changed", "not known")
    assert said.keys() == {"pipe", "manifest.json"}


def test_a_record_is_verified_through_its_archive_and_a_board_through_its_pages(tmp_path: Path) -> None:
    spec = {"study": "transfer"}
    manifest = {"run_id": sha256_text(canonical_json(spec))[:16], "spec": spec}
    place = "work/demo/runs/transfer/base/baseline/s42/manifest.json"
    about = ro_crate.CrateMetadata(
        name="a", description="b", date="2026-01-01", commit="", version="1", results=frozenset()
    )
    record = file(tmp_path / "record/record.json", b"").parent
    bundle = record / "bundle.tar.xz"
    archive.write(bundle, {"README.md": b"x", place: json.dumps(manifest).encode()}, about)
    atomic_write_json(record / "record.json", {"sha256": sha256_file(bundle)})
    said = {Path(one.path).name: one for one in verify.verify([record])}
    assert said["bundle.tar.xz"].status == "as written" and said["record.json"].status == "not known"
    assert "by record.json, and its crate" in said["bundle.tar.xz"].why
    assert "1 manifests of runs in it have no sha256 of their own" in said["bundle.tar.xz"].why
    content = bundle.read_bytes()
    bundle.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    assert {Path(one.path).name: one for one in verify.verify([record])}["bundle.tar.xz"].status == "changed"
    archive.write(bundle, {place: json.dumps(manifest | {"run_id": "0" * 16}).encode()}, about)
    atomic_write_json(record / "record.json", {"sha256": sha256_file(bundle)})
    changed = {Path(one.path).name: one for one in verify.verify([record])}["bundle.tar.xz"]
    assert changed.status == "changed" and "its run_id is 0000000000000000" in changed.why, "as it was packed"
    board = tmp_path / "board"
    pages = write_board(Board(title="t", headline="loss", rows=[]), board)
    assert set(statuses(board).values()) == {"as written"} and len(statuses(board)) == len(pages) + 1
    pages[0].write_text("{}")
    assert statuses(board)[str(pages[0])] == "changed"

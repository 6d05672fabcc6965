"""Each file below a folder is as written, changed, missing or not known; nothing else passes for as written."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
import tempfile
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from plumbline.bundle import archive, ro_crate, verify
from plumbline.core import fingerprint_file, frames, run_files
from plumbline.core.errors import PlumblineError, UsageError
from plumbline.core.files import atomic_write_json, canonical_json, sha256_file, sha256_text
from plumbline.data.manifest import read_pack
from plumbline.model.finished_run import FinishedRun
from plumbline.results.measurements import measurement_file
from plumbline.train.checkpoint.checkpoint_folders import RollingCheckpoints
from plumbline.verdict import ledger
from plumbline.verdict.board.board_page import write_board
from plumbline.verdict.board.board_rows import Board
from tests.bundle.test_archive import make_metadata, write_changed


def file(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def list_files(*paths: Path) -> dict[str, Any]:
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
    files = list_files(weights, metrics, run / "outcome.json") | {
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
    facts = {"csv_sha256": table["table1.csv"], "files": table}
    fingerprint_file.write_facts(results / "table1.provenance.json", facts)
    file(root / "results/table1.csv", b"1")  # a copy of the requested preset
    entry = ledger.LedgerEntry(kind="try", name="a", fingerprint="f", baseline="b", metric="loss", test="t")
    entries = ledger.append(root / "results/demo/verdict/ledger.jsonl", [entry])
    page = root / "results/demo/verdict/a.md"
    page.write_text(f"# a\n\n{ledger.write_statement(entries, page.parent)}\n")
    unknown = [
        page,
        file(demo / "state/transfer/base/baseline/s42/progress.jsonl", b"{}\n"),
        file(results / "notes.md", b"x"),
    ]
    return {path.relative_to(root).as_posix() for path in unknown}


def statuses(*paths: Path) -> dict[str, str]:
    return {result.path: result.status for result in verify.verify(paths)}


def test_only_changed_or_removed_files_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        copy = path == Path("results/table1.csv")  # without its original's bytes nothing shows what it was
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
    whole = {str(Path(path).absolute()): status for path, status in before.items()}
    assert statuses(*(root.absolute() for root in roots)) == whole, "however a folder is named"
    assert statuses(run / "points")[str(run / "points/index.json")] == "as written"
    assert verify.exit_code(verify.verify([Path("results/demo/transfer/notes.md")])) == 16, "nothing was checked"


def test_a_manifest_says_what_was_written(tmp_path: Path) -> None:
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
        (fingerprint_file.seal(earlier | {"run_id": "0" * 16}), "its run_id is 0000000000000000; delete the run's"),
    ):
        with pytest.raises(PlumblineError, match=why):
            run_files.require_manifest(path, changed)
    atomic_write_json(path, earlier)
    results = {Path(result.path).name: result for result in verify.verify([path.parent])}
    assert results["manifest.json"].status == "not known" and "no sha256 of itself" in results["manifest.json"].why
    assert results["model.safetensors"].status == "as written"
    assert "no sha256 of itself" in results["model.safetensors"].why
    pack = next(tmp_path.rglob("base.json"))
    read_pack(pack)
    pack.write_text(pack.read_text().replace('"vocabulary": 9', '"vocabulary": 8'))
    with pytest.raises(PlumblineError, match=r"base.json.*not as.*`pack`"):
        read_pack(pack)


RUN = "work/demo/runs/transfer/base/baseline/s42"


def replace(path: Path, kind: str) -> None:
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "broken link":
        path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("name", "kind", "status"),
    [
        (f"{RUN}/model.safetensors", "nothing", "missing"),
        (f"{RUN}/model.safetensors", "broken link", "missing"),
        (f"{RUN}/model.safetensors", "folder", "changed"),
        (f"{RUN}/points/index.json", "nothing", "missing"),
        ("results/demo/transfer/fig1.csv", "nothing", "missing"),
    ],
)
@pytest.mark.parametrize("absolute", [False, True])
def test_what_stands_in_a_files_place_is_told(
    name: str, kind: str, status: str, absolute: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path)
    monkeypatch.chdir(tmp_path)
    replace(Path(name), kind)
    place = tmp_path if absolute else Path()
    assert statuses(place / name.partition("/")[0])[str(place / name)] == status
    assert statuses(place)[str(place / name)] == status
    atomic_write_json(tmp_path / "plumbline.json", {"format": 1, "commit": "", "products": []})
    if status == "missing":
        assert (str(place / name) in statuses(place)) == (name.startswith("results") or kind == "broken link"), (
            "what a bundle leaves out"
        )


def test_a_linked_folder_is_told(tmp_path: Path) -> None:
    project(tmp_path / "a")
    points = tmp_path / "a" / RUN / "points"
    points.rename(tmp_path / "elsewhere")
    points.symlink_to(tmp_path / "elsewhere")
    results = {result.path: result for result in verify.verify([tmp_path / "a"])}
    assert results[str(points)].why == "a link, not entered; name it" and results[str(points)].status == "not known"
    assert results[str(points / "index.json")].status == "as written"
    assert statuses(points)[str(points / "index.json")] == "as written"
    (tmp_path / "elsewhere/index.json").write_text("{}")
    assert statuses(tmp_path / "a")[str(points / "index.json")] == "changed"


@pytest.mark.parametrize(
    ("entries", "page", "cut", "status"),
    [
        (3, 3, 3, "as written"),
        (3, 2, 3, "not known"),
        (3, 3, 2, "changed"),
        (3, 3, 0, "changed"),
        (3, 0, 2, "not known"),
        (3, 0, 0, "not known"),
        (3, 3, 3.5, "not known"),
    ],
)
def test_a_ledger_whose_last_line_a_page_states(
    entries: int, page: int, cut: float, status: str, tmp_path: Path
) -> None:
    path = tmp_path / "verdict/ledger.jsonl"
    for number in range(1, entries + 1):
        entry = ledger.LedgerEntry(kind="try", name=f"{number}", fingerprint="f", baseline="b", metric="loss", test="t")
        rows = ledger.append(path, [entry])
        if number == page:
            (path.parent / "a.md").write_text(ledger.write_statement(rows, path.parent) + "\n")
    lines = path.read_text().splitlines(keepends=True)
    content = "".join(lines[: int(cut)]) + ("" if cut == int(cut) else lines[0][:20])
    path.write_text(content)
    assert statuses(tmp_path)[str(path)] == status
    assert path.read_text() == content, "nothing is changed"


@pytest.mark.parametrize(
    ("change", "drop", "why"),
    [
        ({"sha256_of_the_rest": None, "wall_seconds": 1}, "", "its sha256_of_the_rest says None"),
        ({"environment": {}}, "sha256_of_the_rest", "it has 'environment', and lacks 'sha256_of_the_rest'"),
        ({"float32_error": 0.0}, "sha256_of_the_rest", "it has 'float32_error', and lacks"),
        ({"files": ["a"]}, "sha256_of_the_rest", "'files' is no object"),
        ({"files": None}, "sha256_of_the_rest", "'files' is no object"),
        ({"files": {"outcome.json": "x"}}, "sha256_of_the_rest", "states no sha256 of 'outcome.json'"),
        ({"spec": "x"}, "sha256_of_the_rest", "'spec' is no object"),
        ({}, "spec", "'spec' is missing"),
        ({}, "run_id", "'run_id' is missing"),
        ({}, "files", "'files' is missing"),
    ],
)
def test_a_manifest_made_by_hand_is_refused(change: dict[str, Any], drop: str, why: str, tmp_path: Path) -> None:
    project(tmp_path)
    path = tmp_path / RUN / "manifest.json"
    manifest = {key: value for key, value in (json.loads(path.read_text()) | change).items() if key != drop}
    atomic_write_json(path, fingerprint_file.seal(manifest) if drop in ("spec", "run_id", "files") else manifest)
    result = {Path(row.path).name: row for row in verify.verify([path.parent])}["manifest.json"]
    assert result.status == "changed" and why in result.why, result.why
    with pytest.raises(PlumblineError):
        FinishedRun.read(path.parent)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("record.json", '{"id": 1}'),
        ("record.json", f'{{"title": "mine", "sha256": "{"0" * 64}"}}'),
        ("model.json", '{"layers": 3}'),
        ("items.json", "[1]"),
        ("items.json", '{"a": 1}'),
        ("manifest.json", '{"files": ["dist"]}'),
        ("manifest.json", '{"files": {"main.js": "/static/main.js"}}'),
        ("manifest.json", '{"spec": "x", "run_id": "y"}'),
        ("manifest.json", '{"spec": {"a": 1}, "run_id": "y", "files": {}}'),
        ("manifest.json", "// not JSON"),
        ("documents.json", '{"splits": 1}'),
        ("export.json", '{"files": 3}'),
        ("data.json", '{"rows": 1}'),
        ("step-5/metadata.json", '{"step": 5}'),
        ("points/index.json", '{"points": 3}'),
        ("model.provenance.json", '{"by": "me"}'),
    ],
)
def test_files_of_ones_own_with_names_of_records_are_not_accused(name: str, content: str, tmp_path: Path) -> None:
    path = file(tmp_path / "work/mine" / name, content.encode())
    file(tmp_path / "work/mine/data.parquet", b"parquet")
    assert statuses(tmp_path / "work") == {str(path): "not known"} | {
        str(tmp_path / "work/mine/data.parquet"): "not known"
    }


@pytest.mark.parametrize("name", ["results/demo/transfer/table1.provenance.json", "board/index.fingerprint.json"])
def test_file_beside_product_that_lost_its_own_sha256_is_changed(name: str, tmp_path: Path) -> None:
    project(tmp_path)
    write_board(Board(title="t", headline="loss", rows=[]), tmp_path / "board")
    path = tmp_path / name
    assert statuses(path) == {str(path): "as written"}
    facts = json.loads(path.read_text())
    del facts[fingerprint_file.OF_THE_REST]
    atomic_write_json(path, facts)
    assert statuses(path) == {str(path): "changed"}


@pytest.mark.parametrize("name", ["x" * 300, f"{'x' * 300}/a"])
def test_a_name_that_no_file_can_have_is_missing(name: str, tmp_path: Path) -> None:
    spec = {"a": 1}
    manifest = {"run_id": run_files.id_of_spec(spec), "spec": spec, "files": {name: {"sha256": "0" * 64}}}
    fingerprint_file.write_facts(tmp_path / "manifest.json", manifest)
    assert statuses(tmp_path)[str(tmp_path / name)] == "missing"


def test_weights_are_what_the_model_beside_them_says(tmp_path: Path) -> None:
    weights = file(tmp_path / "model.safetensors", b"weights")
    atomic_write_json(tmp_path / "model.json", {"model": {}, "weights_sha256": sha256_file(weights)})
    assert statuses(weights) == {str(weights): "as written"}
    file(weights, b"weights!")
    assert statuses(weights) == {str(weights): "changed"}


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"files": 7}', '{"files": {"a": {}}}', '{"files": {"../../../../etc/passwd": "0"}}', "[" * 9999],
)
def test_a_record_that_is_none_is_told_and_nothing_falls(tmp_path: Path, content: str) -> None:
    file(tmp_path / "run/manifest.json", content.encode())
    os.mkfifo(tmp_path / "run/pipe")
    by_name = {Path(row.path).name: row.status for row in verify.verify([tmp_path])}
    assert by_name["pipe"] == "not known" and by_name["manifest.json"] in ("changed", "not known")
    assert by_name.keys() == {"pipe", "manifest.json"}


RECORD = {"words": "all", "commit": "", "products": 1}


def test_a_record_is_verified_through_its_archive(tmp_path: Path) -> None:
    spec = {"study": "transfer"}
    manifest = {"run_id": sha256_text(canonical_json(spec))[:16], "spec": spec}
    place = "work/demo/runs/transfer/base/baseline/s42/manifest.json"
    about = ro_crate.CrateMetadata(name="a", description="b", date="2026-01-01")
    record = file(tmp_path / "record/record.json", b"").parent
    bundle = record / "bundle.tar.xz"
    archive.write(bundle, {"README.md": b"x", place: json.dumps(manifest).encode()}, about)
    atomic_write_json(record / "record.json", RECORD | {"sha256": sha256_file(bundle)})
    results = {Path(row.path).name: row for row in verify.verify([record])}
    assert results["bundle.tar.xz"].status == "as written" and results["record.json"].status == "not known"
    assert "record.json, and its crate" in results["bundle.tar.xz"].why
    assert "1 manifests of runs" in results["bundle.tar.xz"].why
    content = bundle.read_bytes()
    bundle.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    assert {Path(row.path).name: row for row in verify.verify([record])}["bundle.tar.xz"].status == "changed"
    write_changed(bundle, {place: json.dumps(manifest | {"run_id": "0" * 16}).encode()})
    atomic_write_json(record / "record.json", RECORD | {"sha256": sha256_file(bundle)})
    changed = {Path(row.path).name: row for row in verify.verify([record])}["bundle.tar.xz"]
    assert changed.status == "changed" and "its run_id is 0000000000000000" in changed.why, "as it was packed"
    board = tmp_path / "board"
    pages = write_board(Board(title="t", headline="loss", rows=[]), board)
    assert set(statuses(board).values()) == {"as written"} and len(statuses(board)) == len(pages) + 1
    pages[0].write_text("{}")
    assert statuses(board)[str(pages[0])] == "changed"


def make_frame(run_id: str) -> bytes:
    rows = {name: [None] for name in frames.SCHEMAS["probes"].names} | {"run_id": [run_id]}
    frames.write(pd.DataFrame(rows), "probes", buffer := Path(tempfile.mkdtemp()) / "probes.parquet")
    return buffer.read_bytes()


def list_run_files(place: str = "base/softpick/s42", probed: str = "", **changes: bytes) -> dict[str, bytes | Path]:
    """The files of one run, its probes (`probed`: of another run) and a table; `changes`: after their checksums."""
    spec = {"study": "transfer", "scale": "base", "method": "softpick", "init_seed": 42}
    run_id = run_files.id_of_spec(spec)
    contents = {
        "probes": make_frame(probed or run_id),
        "outcome": b"{}",
        "metrics": b"metrics",
        "table1": b"1",
        "table1_md": b"1",
    }
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    contents |= changes
    listed = {f"{name}.{end}": {"sha256": hashes[name]} for name, end in (("outcome", "json"), ("metrics", "parquet"))}
    listed["model.safetensors"] = {"sha256": "0" * 64}
    manifest = {"run_id": run_id, "spec": spec, "files": listed}
    provenance = {"csv_sha256": hashes["table1"], "files": {"table1.md": hashes["table1_md"]}}
    facts = {"fingerprint": "f", "sha256": hashes["probes"], "files": {"probes.parquet": hashes["probes"]}}
    run, probes, table = (
        f"work/demo/runs/transfer/{place}",
        "work/demo/probes/transfer/base/softpick/s42/probes",
        "results/demo/transfer/table1",
    )
    files: dict[str, bytes | Path] = {
        f"{run}/manifest.json": json.dumps(fingerprint_file.seal(manifest)).encode(),
        f"{run}/outcome.json": contents["outcome"],
        f"{run}/metrics.parquet": contents["metrics"],
        f"{probes}.fingerprint.json": json.dumps(fingerprint_file.seal(facts)).encode(),
        f"{probes}.parquet": contents["probes"],
        f"{table}.provenance.json": json.dumps(fingerprint_file.seal(provenance)).encode(),
        f"{table}.csv": contents["table1"],
        f"{table}.md": contents["table1_md"],
    }
    return {name: content for name, content in files.items() if content}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"outcome": b'{"validation_loss": 1}'}, "softpick/s42/outcome.json was changed"),
        ({"metrics": b"other"}, "softpick/s42/metrics.parquet was changed"),
        ({"probes": b"other"}, "probes.parquet was changed"),
        ({"table1": b"2"}, "table1.csv was changed"),
        ({"table1_md": b""}, "table1.md is not there"),
        ({"place": "base/ssmax/s42"}, "that of run transfer/base/softpick/s42, and lies in the place of"),
        ({"place": "base/softpick/s43"}, "that of run transfer/base/softpick/s42, and lies in the place of"),
        ({"probed": "0" * 16}, "probes.parquet is of run 0000000000000000, and lies in the place of transfer/base/"),
        ({"metrics": b"", "probes": b""}, ""),  # what a bundle may leave out
        ({}, ""),
    ],
)
def test_a_bundle_is_held_to_the_checksums_in_it(changes: dict[str, Any], why: str, tmp_path: Path) -> None:
    bundle, files = tmp_path / "bundle.tar.xz", list_run_files(**changes)
    with pytest.raises(PlumblineError, match=why) if why else nullcontext():
        archive.write(bundle, files, make_metadata())
    write_changed(bundle, files)
    (result,) = verify.verify([bundle])
    assert result.status == ("changed" if why else "as written") and why in result.why, result.why
    record = {"words": "all", "commit": "", "products": 1, "sha256": sha256_file(bundle)}
    atomic_write_json(tmp_path / "record.json", record)
    assert statuses(tmp_path)[str(bundle)] == result.status


def test_runs_in_one_anothers_place_are_told(tmp_path: Path) -> None:
    write_changed(tmp_path / "bundle.tar.xz", list_run_files())
    archive.unpack(tmp_path / "bundle.tar.xz", tmp_path / "a", {})
    runs = tmp_path / "a/work/demo/runs/transfer/base"
    assert statuses(tmp_path / "a/work")[str(runs / "softpick/s42/manifest.json")] == "as written"
    (runs / "softpick").rename(runs / "ssmax")
    assert statuses(tmp_path / "a/work")[str(runs / "ssmax/s42/manifest.json")] == "changed"
    copy = (runs / "ssmax/s42").rename(tmp_path / "copy")
    assert statuses(copy)[str(copy / "manifest.json")] == "as written", "a copy of one's own is in nobody's place"


def test_probes_in_the_place_of_another_run_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, run in (("a", ""), ("b", "0" * 16)):
        write_changed(tmp_path / f"{name}.tar.xz", list_run_files(probed=run))
        archive.unpack(tmp_path / f"{name}.tar.xz", tmp_path / name, {})
    place = "work/demo/probes/transfer/base/softpick/s42/probes.fingerprint.json"
    assert statuses(tmp_path / "a/work")[str(tmp_path / "a" / place)] == "as written"
    monkeypatch.chdir(tmp_path / "b/work/demo/probes/transfer/base")  # whose folder alone does not have the manifest
    told = {row.path: row for row in verify.verify([Path("softpick")])}["softpick/s42/probes.fingerprint.json"]
    assert told.status == "changed" and "probes.parquet is of run 0000000000000000" in told.why


def test_a_damaged_bundle_of_which_no_checksum_was_kept_is_changed(tmp_path: Path) -> None:
    """Once its crate is read, it is known for a bundle."""
    bundle = tmp_path / "mine.tar.xz"
    archive.write(bundle, {"work/demo/noise.bin": os.urandom(1 << 18)}, make_metadata())
    whole = bundle.read_bytes()
    for damaged in (whole[:-9], whole[: len(whole) // 2], whole[:-5000] + bytes(5000), whole + b"more"):
        bundle.write_bytes(damaged)
        assert statuses(bundle) == {str(bundle): "changed"}
    bundle.write_bytes(b"somebody's own")
    assert statuses(bundle) == {str(bundle): "not known"}


def test_a_file_that_cannot_be_asked_for_is_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stat = file(tmp_path / "a/b.txt", b"x"), Path.stat

    def refuse(asked: Path, **options: Any) -> os.stat_result:
        if asked == path and not options:
            raise PermissionError(errno.EACCES, "Permission denied")
        return stat(asked, **options)

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(PermissionError):
        verify.verify([tmp_path / "a"])


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--seed", "0"], "--seed"),
        (["--config", "work=w"], "--config"),
        (["--jobs", "2"], "--jobs"),
        (["--rebuild", "--seed", "1"], "--seed"),
        (["--rebuild", "--json"], "--json"),
        (["--retrain", "1", "--jobs", "2"], "--jobs"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    options: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["verify", *options])
    with pytest.raises(UsageError, match=f"{name} does nothing"):
        verify.main()

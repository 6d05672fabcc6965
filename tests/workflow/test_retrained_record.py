"""A record's runs come out again, bit for bit; what was changed in it, checksums and all, does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plumbline.bundle import archive, description, ro_crate
from plumbline.core import fingerprint_file, run_files
from plumbline.core.files import sha256_file
from tests.bundle.test_archive import write_changed
from tests.workflow.project_copy import Project

#: More than there are runs.
ALL = "1000"
RUNS = "work/smoke/runs/transfer/base"


@pytest.fixture(scope="module")
def record(finished_copy: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the runs of a project that is finished at smoke."""
    bundle = tmp_path_factory.mktemp("record") / "bundle.tar.xz"
    packing = ("--preset", "smoke", "--study", "transfer", "--allow-missing", "--out", str(bundle))
    process = finished_copy.python("-m", "plumbline.bundle", *packing)
    assert process.returncode == 0, process.stdout[-4000:]
    return bundle


def retrain(project: Project, record: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """Train every run of a record again: the exit code, and what is told."""
    smoke = ("preset=smoke", *more)
    process = project.python(
        "-m", "plumbline", "verify", "--retrain", ALL, str(record), "--seed", "1", "--json", "--config", *smoke
    )
    answer: dict[str, Any] = json.loads(process.stdout[process.stdout.index("\n{") :])
    assert answer["exit_code"] == process.returncode and answer["seed"] == 1
    return process.returncode, answer


@pytest.mark.slow
def test_every_run_at_smoke_comes_out_bit_for_bit(finished_copy: Project, record: Path) -> None:
    code, answer = retrain(finished_copy, record)
    keys = {"transfer/base/" + path.parent.relative_to(finished_copy.root / RUNS).as_posix() for path in
            (finished_copy.root / RUNS).rglob("manifest.json")}  # fmt: skip
    assert {run["key"] for run in answer["runs"]} == keys and len(keys) > 20
    assert [run for run in answer["runs"] if run["status"] != "equal"] == [] and answer["not_compared"] == {}
    assert code == 0


def change_run(root: Path, method: str, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> str:
    """Change a run's manifest and outcome, and all checksums with them; returns its key."""
    folder = next((root / RUNS / method).iterdir())
    manifest, outcome = (json.loads((folder / name).read_text()) for name in ("manifest.json", "outcome.json"))
    change(manifest, outcome)
    manifest["run_id"] = outcome["run_id"] = run_files.id_of_spec(manifest["spec"])
    (folder / "outcome.json").write_text(json.dumps(outcome))
    manifest["files"]["outcome.json"]["sha256"] = sha256_file(folder / "outcome.json")
    (folder / "manifest.json").write_text(json.dumps(fingerprint_file.seal(manifest)))
    return f"transfer/base/{method}/{folder.name}"


def test_a_run_comes_out_and_what_was_changed_in_a_record_does_not(
    finished_copy: Project, record: Path, tmp_path: Path
) -> None:
    """Of four runs two are trained and two cannot be compared; tests/operate/test_retrain.py has the other answers."""

    def change_rate(manifest: dict[str, Any], outcome: dict[str, Any]) -> None:
        manifest["spec"]["optimizer"]["learning_rate"] *= 1.01

    def change_numerics(manifest: dict[str, Any], outcome: dict[str, Any]) -> None:
        manifest["spec"]["numerics"] -= 1

    def change_data(manifest: dict[str, Any], outcome: dict[str, Any]) -> None:
        manifest["validation_fingerprint"] = "0" * 64

    unpacked = tmp_path / "unpacked"
    archive.unpack(record, unpacked, {})
    for method in (unpacked / RUNS).iterdir():
        if method.name not in ("geglu_ffn", "ssmax", "layerscale", "sandwich_norm"):
            shutil.rmtree(method)
    different = change_run(unpacked, "ssmax", change_rate)
    left_out = {
        change_run(unpacked, "layerscale", change_numerics): "numerics are 1",
        change_run(unpacked, "sandwich_norm", change_data): "validation.json",
    }
    changed = tmp_path / "changed.tar.xz"
    files: dict[str, bytes | Path] = {
        path.relative_to(unpacked).as_posix(): path
        for path in unpacked.rglob("*")
        if path.is_file() and path.name != ro_crate.NAME
    }
    assert description.NAME in files
    write_changed(changed, files)
    code, answer = retrain(finished_copy, changed)
    statuses = {run["key"]: run for run in answer["runs"]}
    assert statuses.keys() == {different, "transfer/base/geglu_ffn/s42"} and code == 10
    assert statuses["transfer/base/geglu_ffn/s42"]["status"] == "equal"
    assert statuses[different]["status"] == "different" and "other weights" in statuses[different]["why"]
    assert answer["not_compared"].keys() == left_out.keys()
    assert all(why in answer["not_compared"][key] for key, why in left_out.items())


def test_where_nothing_can_be_compared_the_data_are_named(finished_copy: Project, record: Path) -> None:
    code, answer = retrain(finished_copy, record, "work=elsewhere")
    assert code == 16 and answer["runs"] == []
    packs = "elsewhere/smoke/corpora/climbmix/packs/context"
    assert all(f"snakemake {packs}" in why for why in answer["not_compared"].values()) and answer["not_compared"]
    shutil.rmtree(finished_copy.root / "elsewhere", ignore_errors=True)

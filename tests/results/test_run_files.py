"""A run's files and frames that are not those that were written stand in no table, whatever their time states."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from plumbline.core import fingerprint_file, frames
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.results.runs.expected_runs import ExpectedRun
from plumbline.results.runs.finished_runs import RunFrames, load
from tests.studies.transfer.synthetic_runs import World, tasks_of

KEY = "transfer/base/baseline/s42"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A run whose manifest has checksums, and whose scores have a record, as trainer and evaluation write them."""
    world = World(tmp_path / "work", "demo")
    world.completed("base", "baseline", 42, tasks_of(0.30), 5.0)
    run, scores = world.root / "runs" / KEY, world.root / "scores" / KEY
    files = {name: {"sha256": sha256_file(run / name)} for name in ("outcome.json", "metrics.parquet")}
    (run / "manifest.json").write_text(json.dumps(json.loads((run / "manifest.json").read_text()) | {"files": files}))
    examples_sha256 = sha256_file(scores / "examples.parquet")
    fingerprint_file.write(scores / "scores.parquet", "code-asked", examples_sha256=examples_sha256)
    fingerprint_file.write(world.root / "probes" / KEY / "probes.parquet", "code")
    return world


def read(world: World) -> RunFrames:
    expected = [ExpectedRun(key=KEY, run_id=world.study.runs[KEY].spec.run_id)]
    loaded = load(expected, world.root, average="climb_avg", examples=True, probes=True)
    loaded.metrics(KEY)
    loaded.examples(KEY)
    return loaded


def edit_frame(name: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[Path], None]:
    return lambda path: frames.write(change(frames.read(path, name)), name, path, frames.metadata(path))


def better(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"validation_loss": 1.0}))


#: File -> what is done to it, and the message.
ATTACKS = {
    "runs/outcome.json": (
        better,
        r"outcome\.json is not what the trainer wrote: sha256 \w{64}, not \w{64} as in manif",
    ),
    "runs/metrics.parquet": (
        edit_frame("metrics", lambda frame: frame.assign(loss=frame["loss"] - 1)),
        r"metrics\.parquet is not what the trainer wrote",
    ),
    "scores/scores.parquet": (
        edit_frame("scores", lambda frame: frame.assign(stderr=0.5)),
        r"scores\.parquet is not the file that was made",
    ),
    "scores/examples.parquet": (
        edit_frame("examples", lambda frame: frame[::-1]),
        r"examples\.parquet does not belong to the scores next to it",
    ),
    "probes/probes.parquet": (
        edit_frame("probes", lambda frame: frame.assign(value=frame["value"] + 1)),
        r"probes\.parquet is not the file that was made",
    ),
}


@pytest.mark.parametrize("file", ATTACKS)
def test_a_file_that_is_not_the_one_that_was_written_is_refused(world: World, file: str) -> None:
    assert len(read(world).runs) == 1
    attack, message = ATTACKS[file]
    folder, _, name = file.partition("/")
    attack(world.root / folder / KEY / name)
    with pytest.raises(PlumblineError, match=message):
        read(world)


@pytest.mark.parametrize("name", ["scores/{}/scores", "probes/{}/probes"])
def test_a_frame_whose_record_is_gone_is_refused(world: World, name: str) -> None:
    """Else whoever edits the frame has only to delete what would show it."""
    sidecar = world.root / f"{name.format(KEY)}.fingerprint.json"
    for content in ("", "{}"):
        sidecar.write_text(content) if content else sidecar.unlink()
        with pytest.raises(PlumblineError, match=rf"{sidecar.name} is missing or damaged.*snakemake"):
            read(world)
    fingerprint_file.write(sidecar.with_name(f"{sidecar.name.partition('.')[0]}.parquet"), "code")
    assert len(read(world).runs) == 1

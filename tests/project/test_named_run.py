"""A run is named, or its folder is, wherever a run is meant: runs of studies, tried ones, and what goes with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.project import named_run

KEY = "transfer/base/softpick/s42"
TRIED = "transfer/base_300_steps_0a1b2c/softpick/s42"


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    config = named_run.load_config() | {"work": str(tmp_path)}
    monkeypatch.setattr(named_run, "load_config", lambda: config)
    return tmp_path / "smoke"


def make_run(work: Path, key: str) -> Path:
    folder = work / "runs" / key
    folder.mkdir(parents=True)
    (folder / "outcome.json").touch()
    (folder / "manifest.json").write_text(
        json.dumps({"spec": {"data": {"corpus": "climbmix"}, "suite": "climb12", "model": {"context": 64}}})
    )
    return folder


def touch_file(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def test_a_run_by_its_name(work: Path) -> None:
    with pytest.raises(PlumblineError, match=r"softpik/s42.*no folder.*no run.*'transfer/ba"):
        named_run.find("transfer/base/softpik/s42", "smoke")
    outcome = work / "runs" / KEY / "outcome.json"
    message = rf"{KEY} has not finished at preset smoke; snakemake {outcome} --config preset=smoke makes it"
    with pytest.raises(PlumblineError, match=message):
        named_run.find(KEY, "smoke")
    folder = make_run(work, KEY)
    assert named_run.find(KEY, "smoke") == named_run.NamedRun(folder)
    tokenizer = touch_file(work / "corpora/climbmix/tokenizer/tokenizer.json")
    scores = touch_file(work / "scores" / KEY / "scores.parquet")
    items = touch_file(work / "corpora/climbmix/items/climb12/items.json").parent
    pack = touch_file(work / "corpora/climbmix/packs/context64/validation/validation.json")
    assert named_run.find(KEY, "smoke") == named_run.NamedRun(folder, tokenizer, scores, items, pack)
    assert named_run.find(folder, None) == named_run.NamedRun(folder, tokenizer, scores, items, pack)
    assert named_run.find(KEY, "smoke", "premature7").items is None
    with pytest.raises(PlumblineError, match=r"--preset: .* is a folder"):
        named_run.find(str(folder), "smoke")


def test_a_tried_run_and_one_of_another_preset(work: Path) -> None:
    folder = make_run(work, TRIED)
    assert named_run.find(TRIED, "smoke").folder == folder
    with pytest.raises(PlumblineError, match=r"did you mean 'transfer/base_300_steps_0a1b2c/softpick/s42'"):
        named_run.find(TRIED.replace("softpick", "softpik"), "smoke")
    with pytest.raises(PlumblineError, match="preset smoke: --preset smoke"):
        named_run.find(TRIED, "demo")


def test_a_folder_that_is_not_the_workflows(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert named_run.find(tmp_path / "mine", None) == named_run.NamedRun(tmp_path / "mine")

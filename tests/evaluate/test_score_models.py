"""`plumbline score` gives what the workflow gives, of our form and of Hugging Face's; `plumbline sample` writes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from plumbline.cli import sample
from plumbline.cli import score as named_score
from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.evaluate import __main__ as evaluation
from plumbline.evaluate import score_models
from plumbline.model.export import hf_export
from plumbline.model.export.write_export import export_hf
from plumbline.model.finished_run import FinishedRun
from plumbline.project import named_run
from plumbline.specs.spec import RunSpec
from tests.changed_spec import change_spec
from tests.forget_caches import forget


def verb(monkeypatch: pytest.MonkeyPatch, module, *args: object) -> None:
    monkeypatch.setattr("sys.argv", ["plumbline x", *map(str, args)])
    module.main()


def test_both_forms_of_a_model_have_the_workflows_scores(
    finished: Path, tokenizer_file: Path, items_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = ("--items-folder", items_folder, "--suite", "climb12", "--limit", 2)
    own = (*shared, "--tokenizer", tokenizer_file)
    verb(monkeypatch, evaluation, "--run", finished, *own, "--out", tmp_path / "workflow")
    verb(monkeypatch, score_models, finished, *own, "--out", tmp_path / "ours.csv")
    hf_export.export(FinishedRun.read(finished).model(), tokenizer_path=tokenizer_file, directory=tmp_path / "llama")
    verb(monkeypatch, score_models, tmp_path / "llama", *shared, "--out", tmp_path / "theirs.csv")
    expected = frames.read(tmp_path / "workflow/scores.parquet", "scores")
    for name, run_id in (("ours", expected["run_id"].iloc[0]), ("theirs", "hf:llama")):
        table = pd.read_csv(tmp_path / f"{name}.csv")
        assert set(table["run_id"]) == {run_id} and list(table["metric"]) == list(expected["metric"])
        assert list(table["value"]) == pytest.approx(list(expected["value"]), rel=1e-4, abs=1e-3)


def test_a_folder_without_a_tokenizer(finished: Path, tokenizer_file: Path, items_folder: Path, tmp_path: Path) -> None:
    hf_export.export(FinishedRun.read(finished).model(), tokenizer_path=tokenizer_file, directory=tmp_path / "llama")
    whole = score_models.score_folder(tmp_path / "llama", items_folder, limit=1)
    for path in (tmp_path / "llama").glob("tokenizer*"):
        path.unlink()
    bare = score_models.score_folder(tmp_path / "llama", items_folder, tokenizer=tokenizer_file, limit=1)
    pd.testing.assert_frame_equal(whole, bare)


def test_scoring_says_how_far_it_is(
    finished: Path, tokenizer_file: Path, items_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr("plumbline.data.progress.SECONDS_BETWEEN_LINES", 0.0)
    score_models.score_folder(finished, items_folder, tokenizer=tokenizer_file, limit=1)
    assert "scored: 100% " in capsys.readouterr().err


def test_a_run_is_scored_and_sampled_by_its_name(
    finished: Path,
    tokenizer_file: Path,
    items_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the workflow's own tokenizer and items, in the place where `plumbline try` leaves its runs too."""
    config = named_run.load_config() | {"work": str(tmp_path)}
    monkeypatch.setattr(named_run, "load_config", lambda: config)
    key, corpus = "transfer/base_300_steps_0a1b2c/softpick/s42", tmp_path / "smoke/corpora/climbmix"
    shutil.copytree(finished, tmp_path / "smoke/runs" / key)
    shutil.copytree(items_folder, corpus / "items/climb12")
    (corpus / "tokenizer").mkdir()
    shutil.copy(tokenizer_file, corpus / "tokenizer")
    verb(monkeypatch, named_score, key, "--preset", "smoke", "--limit", 1)
    assert "piqa" in capsys.readouterr().out
    verb(monkeypatch, sample, key, "--preset", "smoke", "--samples", 1)
    assert "samples, not evidence" in capsys.readouterr().out


def test_one_of_several_that_cannot_be_scored_loses_no_other(
    finished: Path,
    tokenizer_file: Path,
    items_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Items become tasks once, for both verbs' runs; the last, the first one's model, has its scores."""
    calls = []
    read = score_models.EvaluationItems.read
    monkeypatch.setattr(score_models.EvaluationItems, "read", lambda *args: calls.append(args) or read(*args))
    forget(score_models)
    broken, same = tmp_path / "broken", tmp_path / "llama"
    hf_export.export(FinishedRun.read(finished).model(), tokenizer_path=tokenizer_file, directory=same)
    shared = ("--items-folder", items_folder, "--suite", "climb12", "--limit", 1, "--tokenizer", tokenizer_file)
    with pytest.raises(PlumblineError, match="1 of 3 were not scored"):
        verb(monkeypatch, score_models, finished, broken, same, *shared, "--out", tmp_path / "all.csv")
    assert f"error: {broken}: {broken}" in capsys.readouterr().err and len(calls) == 1
    table = pd.read_csv(tmp_path / "all.csv")
    first, last = table.iloc[: len(table) // 2], table.iloc[len(table) // 2 :].reset_index(drop=True)
    pd.testing.assert_frame_equal(first.drop(columns="run_id"), last.drop(columns="run_id"), rtol=1e-4, atol=1e-3)
    pairs = ("--run", finished, "--out", tmp_path / "a", "--run", broken, "--out", tmp_path / "b")
    with pytest.raises(PlumblineError, match=r"1 of 3 were not scored"):
        verb(monkeypatch, evaluation, *pairs, "--run", finished, "--out", tmp_path / "c", *shared)
    mine, other = (frames.read(tmp_path / name / "scores.parquet", "scores") for name in "ac")
    pd.testing.assert_frame_equal(mine, other)
    assert len(calls) == 2 and list(mine["value"]) == pytest.approx(list(first["value"]))
    with pytest.raises(PlumblineError, match="--run 2 times, --out 1 times; give an --out"):
        verb(monkeypatch, evaluation, "--run", finished, *pairs[:4], *shared)


def test_model_with_code_of_its_own_is_scored_where_that_may_run(
    finished: Path, tokenizer_file: Path, items_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def change_mixer(spec: dict[str, Any]) -> None:
        del spec["components"]
        spec["model"]["mixer"] = {"name": "softpick"}
        spec |= RunSpec.from_dict(spec).to_dict()

    change_spec(finished, change_mixer)
    export_hf(finished, tmp_path / "softpick", tokenizer=tokenizer_file, compare=False)
    with pytest.raises(PlumblineError, match="give --trust-remote-code"):
        score_models.score_folder(tmp_path / "softpick", items_folder)
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("sys.path", [*sys.path])
    theirs = score_models.score_folder(tmp_path / "softpick", items_folder, limit=1, trust_remote_code=True)
    ours = score_models.score_folder(finished, items_folder, tokenizer=tokenizer_file, limit=1)
    assert set(theirs["run_id"]) == {"hf:softpick"} and len(theirs) == len(ours) > 12
    assert list(theirs["value"]) == pytest.approx(list(ours["value"]), rel=1e-4, abs=1e-3)


def test_a_folder_of_no_model_and_a_tokenizer_too_many(
    finished: Path, tokenizer_file: Path, items_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The model before its items, which are not there either.
    with pytest.raises(PlumblineError, match=r"neither.*finished"):
        verb(monkeypatch, score_models, tmp_path, "--items-folder", tmp_path)
    with pytest.raises(PlumblineError, match="--tokenizer is missing; give"):
        verb(monkeypatch, score_models, finished, "--items-folder", items_folder)
    with pytest.raises(PlumblineError, match=r"--items-folder is missing; .* climb12"):
        verb(monkeypatch, score_models, finished, "--tokenizer", tokenizer_file)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(PlumblineError, match=r"model .*; give --tokenizer, the tokenizer.json"):
        verb(monkeypatch, score_models, tmp_path, "--items-folder", items_folder)
    (tmp_path / "tokenizer.json").touch()
    with pytest.raises(PlumblineError, match=r"tokenizer.*leave"):
        verb(monkeypatch, score_models, tmp_path, "--items-folder", items_folder, "--tokenizer", tokenizer_file)
    with pytest.raises(PlumblineError, match=r"transformers cannot read it"):
        verb(monkeypatch, score_models, tmp_path, "--items-folder", items_folder)


def test_a_sample_is_the_models_own_and_repeats(
    finished: Path, tokenizer_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, prompt = FinishedRun.read(finished).model().eval(), [0, 17, 40, 5]
    likeliest = sample.continue_prompt(sample.make_decoder_reader(model), prompt, 8, 0, torch.Generator(), end=None)
    with torch.inference_mode():  # without a cache, all at once
        logits_BTV = model(torch.tensor([prompt + likeliest]))
    assert likeliest == logits_BTV[0, len(prompt) - 1 : -1].argmax(dim=-1).tolist()
    assert (
        sample.continue_prompt(sample.make_decoder_reader(model), prompt, 8, 0, torch.Generator(), end=likeliest[3])
        == likeliest[:3]
    )
    args = (finished, "--tokenizer", tokenizer_file, "--prompt", "Harbour", "--max-tokens", 9, "--seed", 3)
    outputs = []
    for _ in range(2):
        verb(monkeypatch, sample, *args)
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] and outputs[0].count("--\nHarbour") == 3
    verb(monkeypatch, sample, *args[:-1], 4)
    assert capsys.readouterr().out != outputs[0]
    with pytest.raises(PlumblineError, match=r"--temperature.*least 0, not -1"):
        verb(monkeypatch, sample, *args, "--temperature", -1)
    with pytest.raises(PlumblineError, match=r"--prompt has \d+ tokens, the model reads 64; give less"):
        verb(monkeypatch, sample, *args, "--prompt", "harbour " * 80)

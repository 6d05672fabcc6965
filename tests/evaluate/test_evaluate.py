"""The whole stage: a run's folder and items in, scores and examples out."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.evaluate import __main__ as verb
from plumbline.evaluate import harness_tasks
from plumbline.model.finished_run import FinishedRun
from plumbline.specs.suites import suite

CLIMB12 = suite("climb12")
MMLU = {"question": "q", "choices": ["w", "x", "y", "z"], "answer": 2}


@pytest.fixture
def evaluate(finished: Path, items_folder: Path, tokenizer_file: Path, tmp_path: Path, monkeypatch):
    def call(*flags: str) -> Path:
        out = tmp_path / "scores"
        paths = {"--run": finished, "--items-folder": items_folder, "--tokenizer": tokenizer_file, "--out": out}
        flags = flags if "--suite" in flags else ("--suite", "climb12", *flags)
        args = [word for flag, path in paths.items() for word in (flag, str(path))]
        monkeypatch.setattr(sys, "argv", ["evaluate", *args, "--device", "cpu", *flags])
        verb.main()
        return out

    return call


def test_scores_and_examples_of_a_run_agree_with_each_other(evaluate, monkeypatch):
    cache = {}
    plain = harness_tasks.run
    monkeypatch.setattr(harness_tasks, "run", lambda *args: cache.setdefault("results", plain(*args)))
    out = evaluate("--limit", "5", "--fingerprint", "0123456789abcdef-fedcba9876543210")
    scores = frames.read(out / "scores.parquet", "scores")
    examples = frames.read(out / "examples.parquet", "examples")
    labels = frames.metadata(out / "scores.parquet")

    assert labels["outcome"] == "completed"
    assert labels["limit"] == "5"
    assert labels["fingerprint"] == "0123456789abcdef" and labels["torch"] == str(torch.__version__)
    assert set(json.loads(labels["items_sha256"])) == set(CLIMB12.task_names)
    assert "arc/arc_easy.yaml" in json.loads(labels["task_yaml_sha256"])["arc_challenge"]
    assert scores.loc[scores.task != "climb_avg", "items"].eq(5).all()
    assert set(scores.task_source) == {"proxy"}
    assert np.isfinite(scores.value).all()

    table = scores.set_index(["task", "metric"])
    for task in CLIMB12:
        theirs = cache["results"]["results"][task.name]
        for metric in task.metrics:
            assert table.loc[(task.name, metric), "value"] == pytest.approx(theirs[f"{metric},none"])
        assert ((task.name, "acc_norm") in table.index) == ("acc_norm" in task.metrics)
        assert examples[examples.task == task.name].item.nunique() == 5
    means = examples[examples.metric != "bits_per_byte"].groupby(["task", "metric"]).value.mean()
    for key, mean in means.items():
        assert table.loc[key, "value"] == pytest.approx(mean)
    primary = scores[scores.primary]
    assert len(primary) == 12
    assert table.loc[("climb_avg", "climb_avg"), "value"] == pytest.approx(primary.value.mean())


@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_the_right_answer_is_found_in_every_kind_of_task(evaluate, items_folder: Path, monkeypatch):
    """Log-probabilities are replaced by one that knows the right answers: every accuracy is then 1."""
    right: set[str] = set()
    for task, key in {"arc_easy": "question", "openbookqa": "question_stem", "piqa": "goal"}.items():
        for line in (items_folder / f"{task}.jsonl").read_text().splitlines():
            item = json.loads(line)
            answer = item["sol1"] if item.get("label") == 0 else item.get("sol2")
            if answer is None:
                answer = item["choices"]["text"][item["choices"]["label"].index(item["answerKey"])]
            right.add(item[key] + answer)
    for line in (items_folder / "winogrande.jsonl").read_text().splitlines():
        item = json.loads(line)
        before = item["sentence"].split("_")[0]
        right.add(before + item["option1" if item["answer"] == "1" else "option2"])

    def oracle(self, requests, **_):
        answers = []
        for request in requests:
            context, continuation = request.args
            is_right = context in right or any(
                context.startswith(("Question: " + text[: -len(continuation) + 1], text[: -len(continuation) + 1]))
                for text in right
                if text.endswith(continuation[1:])
            )
            answers.append((-1.0 if is_right else -900.0, is_right))
        return answers

    monkeypatch.setattr("plumbline.evaluate.harness_model.CheckpointLM.loglikelihood", oracle)
    scores = frames.read(evaluate() / "scores.parquet", "scores").set_index(["task", "metric"])
    for task in ("arc_easy", "openbookqa", "piqa", "winogrande"):
        assert scores.loc[(task, "acc"), "value"] == 1
        assert scores.loc[(task, "logprob_gold"), "value"] == -1
    # All answers of TruthfulQA have underflowed alike: two true ones of five.
    assert scores.loc[("truthfulqa_mc2", "acc"), "value"] == pytest.approx(2 / 5)


def test_bits_per_byte_is_a_ratio_of_sums(evaluate, items_folder: Path):
    out = evaluate("--limit", "4")
    examples = frames.read(out / "examples.parquet", "examples").pivot(
        index=["task", "item"], columns="metric", values="value"
    )
    lambada = examples.loc["lambada_openai"].sort_index()
    lines = (items_folder / "lambada_openai.jsonl").read_text().splitlines()[:4]
    sizes = np.array([len(json.loads(line)["text"].split(" ")[-1].encode()) + 1 for line in lines])
    assert lambada.bits_per_byte.to_numpy() == pytest.approx(-lambada.logprob_gold.to_numpy() / math.log(2) / sizes)
    scores = frames.read(out / "scores.parquet", "scores").set_index(["task", "metric"])
    total = -lambada.logprob_gold.sum() / math.log(2) / sizes.sum()
    assert scores.loc[("lambada_openai", "bits_per_byte"), "value"] == pytest.approx(total)


def test_a_diverged_run_gives_empty_frames_that_say_so(evaluate, finished: Path):
    run_id = json.loads((finished / "manifest.json").read_text())["run_id"]
    (finished / "outcome.json").write_text(json.dumps({"run_id": run_id, "outcome": "diverged"}))
    (finished / "model.safetensors").unlink()
    out = evaluate()
    for name in ("scores", "examples"):
        assert len(frames.read(out / f"{name}.parquet", name)) == 0
        assert frames.metadata(out / f"{name}.parquet")["outcome"] == "diverged"


def test_scoring_twice_gives_the_same_bytes(evaluate):
    out = evaluate("--limit", "2")
    first = [(out / name).read_bytes() for name in ("scores.parquet", "examples.parquet")]
    evaluate("--limit", "2")
    assert first == [(out / name).read_bytes() for name in ("scores.parquet", "examples.parquet")]


def test_corrupt_weights_are_named(evaluate, finished: Path):
    path = finished / "model.safetensors"
    whole = path.read_bytes()
    # Copies: what is loaded stays a map of the file, which is overwritten below.
    weights = {name: tensor.clone() for name, tensor in load_file(path).items()}
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PlumblineError, match=r"model.safetensors:.*weights"):
        evaluate()
    first = sorted(weights)[0]
    save_file({name: tensor for name, tensor in weights.items() if name != first}, path)
    with pytest.raises(PlumblineError, match=rf"{first!r} .* the spec"):
        evaluate()
    save_file(weights | {first: weights[first] * float("nan")}, path)
    with pytest.raises(PlumblineError, match=r"not finite.*pretrain again"):
        evaluate()


@pytest.mark.parametrize("dtype", [torch.int8, torch.float16, torch.complex64, torch.float8_e4m3fn], ids=str)
def test_weights_of_another_type_are_not_scored(finished: Path, dtype: torch.dtype):
    """As numbers of ours they would have lost what they state, without a word."""
    path = finished / "model.safetensors"
    weights = {name: tensor.clone() for name, tensor in load_file(path).items()}
    last = sorted(weights)[-1]
    save_file(weights | {last: weights[last].to(dtype)}, path)
    with pytest.raises(PlumblineError, match=rf"{last!r} is of {dtype}, not of torch\.float32; .*pretrain"):
        FinishedRun.read(finished).model()


def test_weights_whose_logits_overflow_leave_no_scores(evaluate, finished: Path, tmp_path: Path):
    """Every weight is a number, so nothing is refused before the model is asked."""
    path = finished / "model.safetensors"
    weights = {name: tensor.clone() for name, tensor in load_file(path).items()}
    save_file(weights | {"final_norm.gain": weights["final_norm.gain"] * 3e37}, path)
    with pytest.raises(PlumblineError, match=r"a log-probability of (nan|-inf) to an answer of \d+ tokens"):
        evaluate("--limit", "2")
    assert not (tmp_path / "scores").exists()


def test_bad_flags_and_unfinished_runs_are_named(evaluate, finished: Path, tmp_path: Path):
    with pytest.raises(PlumblineError, match=r"suite.*'nine'"):
        evaluate("--suite", "nine")
    with pytest.raises(PlumblineError, match=r"--limit.*least.*1"):
        evaluate("--limit", "0")
    with pytest.raises(PlumblineError, match=r"--out .*scores is given twice"):
        evaluate("--run", str(finished), "--out", str(tmp_path / "scores"))
    (finished / "outcome.json").unlink()
    with pytest.raises(PlumblineError, match=r"no .*outcome.json.*not finished"):
        evaluate()


def test_mmlu_with_subjects_is_the_harness_s_group(tmp_path: Path):
    subjects = ["virology", "anatomy", "anatomy", "anatomy"]
    path = tmp_path / "mmlu.jsonl"
    path.write_text("".join(json.dumps(MMLU | {"subject": subject}) + "\n" for subject in subjects))
    leaves = harness_tasks.leaves(CLIMB12.task("mmlu"), path, 3)
    assert {name: len(leaf.eval_docs) for name, leaf in leaves.items()} == {"mmlu_anatomy": 2, "mmlu_virology": 1}
    assert "about virology" in leaves["mmlu_virology"].config.description
    assert set(harness_tasks.yaml_checksums(CLIMB12.task("mmlu"), leaves)) == {
        "mmlu/default/_default_template_yaml",
        "mmlu/default/mmlu_anatomy.yaml",
        "mmlu/default/mmlu_virology.yaml",
    }
    path.write_text(json.dumps(MMLU | {"subject": "cookery"}) + "\n")
    with pytest.raises(PlumblineError, match="'cookery' is no subject"):
        harness_tasks.leaves(CLIMB12.task("mmlu"), path, None)


def test_all_fifty_seven_subjects_are_known():
    assert len(harness_tasks.subjects(CLIMB12.task("mmlu"))) == 57

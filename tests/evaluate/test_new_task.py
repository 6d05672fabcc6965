"""A benchmark task is added by one file: sciq, of a few made-up items, scored as the harness's `hf` model scores it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from msgspec import structs

from plumbline.core import package_data
from plumbline.core.errors import PlumblineError
from plumbline.evaluate import harness_tasks
from plumbline.model.export import hf_export
from plumbline.model.finished_run import FinishedRun
from plumbline.specs import tasks

#: What config/tasks/README.md states to be enough, and where items come from when they are not one's own.
PAGE = (package_data.folder() / "config/tasks/README.md").read_text()
SCIQ = (
    PAGE.partition("```yaml\n")[2].partition("```")[0]
    + """
hub:
  path: allenai/sciq
  split: test
  revision: 0123456789abcdef0123456789abcdef01234567
  licence: CC BY-NC 3.0
proxy:
  maker: next_sentence
  answers: 4
  fields:
    question: {is: What comes next?}
    distractor1: false.0
    distractor2: false.1
    distractor3: false.2
    correct_answer: "true"
    support: context
"""
)
#: Question, support, the right answer and three false ones.
QUESTIONS = """
What melts in the sun? | Ice is cold water. | ice | stone | iron | glass
What do plants drink? | Roots reach into wet soil. | water | sand | smoke | salt
What pulls an apple down? | | gravity | wind | light | sound
What is steam? | Water boils in the kettle. | a gas | a metal | a plant | a star
What turns a compass? | The needle points north. | a magnet | a candle | a feather | a cup
What makes a shadow? | A lamp shines at a wall. | light | heat | rain | noise
What is the moon made of? | | rock | cheese | paper | wool
What do lungs take in? | We breathe all day. | air | oil | soil | ink
What do bees make? | Bees fly from flower to flower. | honey | bread | silk | wine
What falls from clouds? | Clouds are drops of water. | rain | leaves | coins | dust
What keeps a boat up? | | water | thunder | moonlight | a song
"""
#: How many of them are items; the others are solved examples.
ITEMS = 8


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one more task than the package's, its items and solved examples of it."""
    root = tmp_path / "project"
    (root / "studies").mkdir(parents=True)
    (root / "config").mkdir()
    (root / "config/tasks").mkdir()
    (root / "config/tasks/sciq.yaml").write_text(SCIQ)
    (root / "items").mkdir()
    names = ("question", "support", "correct_answer", "distractor1", "distractor2", "distractor3")
    lines = [dict(zip(names, map(str.strip, line.split("|")), strict=True)) for line in QUESTIONS.strip().splitlines()]
    (root / "mine").mkdir()
    for name, part in (("sciq", lines[:ITEMS]), ("sciq.few_shot", lines[ITEMS:])):
        (root / f"mine/{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in part))
    return root


def run(project: Path, *args: object) -> str:
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TQDM_DISABLE": "1"}
    process = subprocess.run(
        [sys.executable, "-m", *map(str, args)], cwd=project, env=environment, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.fixture
def model(finished: Path, tokenizer_file: Path, tmp_path: Path) -> Path:
    hf_export.export(FinishedRun.read(finished).model(), tokenizer_path=tokenizer_file, directory=tmp_path / "llama")
    return tmp_path / "llama"


def ours(project: Path, model: Path) -> pd.Series:
    """What `plumbline score` states about the task, by metric."""
    flags = ("--items-source", "local", "--suite", "sciq", "--local-items-folder", "mine", "--out", "items")
    assert "sciq            benchmark      8 items" in run(project, "plumbline.evaluate.items", *flags)
    run(project, "plumbline", "score", model, "--items-folder", "items", "--suite", "sciq", "--out", "scores.csv")
    return pd.read_csv(project / "scores.csv").set_index(["task", "metric"])["value"]


def theirs(project: Path, model: Path, *shots: int) -> dict[int, tuple[dict[str, float], float]]:
    """What `lm-eval --model hf` says of the same lines with so many solved examples, and its mean log-probability of
    the right answer."""
    there = {"train": "sciq.few_shot", "validation": "sciq", "test": "sciq"}
    files = {split: str(project / f"mine/{file}.jsonl") for split, file in there.items()}
    content = yaml.safe_load((harness_tasks.TASK_FOLDER / "sciq/sciq.yaml").read_text())
    content |= {"dataset_path": "json", "dataset_kwargs": {"data_files": files}}
    for number in shots:
        text = yaml.safe_dump(content | {"task": f"theirs_{number}", "num_fewshot": number})
        (project / f"theirs_{number}.yaml").write_text(text)
    run(
        project, "lm_eval", "run", "--model", "hf", "--model_args", f"pretrained={model},dtype=float32",
        "--tasks", ",".join(f"theirs_{number}.yaml" for number in shots), "--device", "cpu", "--batch_size", 8,
        "--log_samples", "--output_path", "out",
    )  # fmt: skip
    (results,) = (project / "out").rglob("results_*.json")
    scores = {}
    for number in shots:
        (samples,) = (project / "out").rglob(f"samples_theirs_{number}_*.jsonl")
        gold = [float(json.loads(line)["filtered_resps"][3][0]) for line in samples.read_text().splitlines()]
        assert len(gold) == ITEMS
        data = json.loads(results.read_text())["results"][f"theirs_{number}"]
        scores[number] = {metric: data[f"{metric},none"] for metric in ("acc", "acc_norm")}, sum(gold) / len(gold)
    return scores


@pytest.mark.slow
def test_one_file_adds_a_task_that_scores_as_lm_eval_scores_it(project: Path, model: Path) -> None:
    scores = {0: ours(project, model)}
    with open(project / "config/tasks/sciq.yaml", "a") as handle:
        handle.write("few_shot: {number: 2, split: train}\n")
    scores[2] = ours(project, model)
    for shots, (expected, gold) in theirs(project, model, *scores).items():
        assert {metric: scores[shots]["sciq", metric] for metric in expected} == expected
        assert scores[shots]["sciq", "logprob_gold"] == pytest.approx(gold, abs=1e-4)
        assert scores[shots]["sciq_avg", "sciq_avg"] == expected["acc_norm"]
    assert scores[0]["sciq", "logprob_gold"] != pytest.approx(scores[2]["sciq", "logprob_gold"], abs=1e-3)


def test_its_proxies_are_made_of_held_out_documents(project: Path, documents_file: Path) -> None:
    flags = (
        "--items-source",
        "local",
        "--suite",
        "sciq",
        "--local-items-folder",
        "none",
        "--out",
        "items",
        "--missing-tasks",
        "proxy",
    )
    run(project, "plumbline.evaluate.items", *flags, "--held-out-documents", documents_file, "--proxy-items", 3)
    item = json.loads((project / "items/sciq.jsonl").read_text().splitlines()[0])
    texts = documents_file.read_text()
    assert f"{item['support']} {item['correct_answer']}" in texts and item["question"] == "What comes next?"
    assert not any(f"{item['support']} {item[f'distractor{number}']}" in texts for number in (1, 2, 3))


def test_the_page_shows_the_first_of_these_items(project: Path) -> None:
    example = PAGE.partition("```json\n")[2].partition("```")[0]
    assert example == (project / "mine/sciq.jsonl").read_text().splitlines(keepends=True)[0]


def test_too_few_solved_examples_are_refused() -> None:
    task = structs.replace(tasks.task("mmlu"), few_shot=tasks.FewShot(number=2, split="dev"))
    examples = [{"subject": "anatomy"}, {"subject": "anatomy"}, {"subject": "virology"}]
    assert len(harness_tasks.examples(task, examples, "anatomy")) == 2
    with pytest.raises(PlumblineError, match=r"mmlu\.yaml: few_shot\.number: 2 .* there are 1 of subject 'virology'"):
        harness_tasks.examples(task, examples, "virology")

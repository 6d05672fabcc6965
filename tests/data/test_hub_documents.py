"""Documents of a data set of the Hub, and of a folder that is laid out as one."""

from __future__ import annotations

import dataclasses
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pandas as pd
import pytest

from plumbline.core.errors import PlumblineError
from plumbline.data import documents
from tests.data.test_documents import read


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
    with pytest.raises(PlumblineError, match=r"mine\.yaml: hub\.text_column: .*'text'.* content, n"):
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
    assert f"corpus than that of {first}" in capsys.readouterr().err
    assert fetch("--hub-revision", first) == first == fetch() and "another corpus" not in capsys.readouterr().err
    assert len(the_hub.asked) == 1
    assert fetch(path="some/other") == second, "of another data set the lock says nothing"
    (out / "hub.lock").write_text('{"path": "some/other", "configuration": "", "commit": "main"}')
    with pytest.raises(PlumblineError, match=r"out/hub\.lock: has no .*'main'.*delete it"):
        fetch(path="some/other")
    (out / "hub.lock").unlink()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(PlumblineError, match=r"mine\.yaml: hub\.revision: .*some/where .*HF_HUB_OFFLINE=1.*packaged"):
        fetch()
    assert not (out / "hub.lock").exists()


def test_a_revision_is_a_commit(tmp_path: Path) -> None:
    arguments = ["--corpus", "mine", "--documents-source", "hub", "--hub-dataset", "some/where", "--out", str(tmp_path)]
    with pytest.raises(PlumblineError, match=r"mine\.yaml: hub\.revision: 'main'.*full"):
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
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert process.returncode == 1 and "Traceback" not in process.stderr
    last = process.stderr.splitlines()[-1]
    assert last.startswith("error: config/corpora/mine.yaml: hub.path: cannot read some/where at revision 000")
    assert "set `data.source` in config/config.yaml to packaged" in last

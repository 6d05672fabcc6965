"""What cannot be compared stands in no table unless it is requested, and what may differ is stated under it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.results import __main__ as verb
from plumbline.results.runs.comparability import ROUNDING
from plumbline.results.runs.expected_runs import list_expected_runs
from plumbline.results.runs.finished_runs import RunFrames, load
from tests.studies.run_files import write_frame
from tests.studies.transfer.synthetic_runs import World, tasks_of

BASELINE, SOFTPICK, LARGE = (f"transfer/{name}/s42" for name in ("base/baseline", "base/softpick", "large/baseline"))
LABELS = {
    "suite": "climb12",
    "metric_policy": "acc",
    "limit": "16",
    "precision": "float32",
    "tokenizer_sha256": "a" * 64,
    "items_sha256": json.dumps({"piqa": "1" * 64, "boolq": "2" * 64}),
    "task_yaml_sha256": json.dumps({"piqa": {"piqa/piqa.yaml": "3" * 64}}),
    "weights_sha256": "4" * 64,
    "device": "cpu",
}
MANIFEST = {
    "device_name": "x86_64",
    "code": [{"code_sha256": "5" * 64, "torch": "2.13.0", "steps": [0]}],
    "files": {"model.safetensors": {"sha256": "4" * 64}},
    "tf32": False,
}


@pytest.fixture
def world(written: World, tmp_path: Path) -> World:
    """A copy of the written world, whose files a test may change."""
    shutil.copytree(written.root, tmp_path / "work")
    return World(tmp_path / "work", of=written.study)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A demo with three seeds of the baseline and one method, and the baseline on the large pack. Read only."""
    world = World(tmp_path_factory.mktemp("written") / "work", "demo")
    for seed, value in ((42, 0.30), (43, 0.31), (44, 0.302)):
        world.completed("base", "baseline", seed, tasks_of(value), 5.0)
    world.completed("base", "softpick", 42, tasks_of(0.32), 4.9)
    world.completed("large", "baseline", 42, tasks_of(0.33), 4.8)
    for path in (world.root / "runs").rglob("manifest.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | MANIFEST))
    for path in (world.root / "scores").rglob("scores.parquet"):
        write_frame(frames.read(path, "scores"), "scores", path, LABELS)
    manifest(world, LARGE, data_fingerprint="f" * 16)  # it reads another pack, which is as it should be
    return world


def manifest(world: World, key: str, **changes: Any) -> None:
    path = world.root / "runs" / key / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def scores(world: World, key: str, change: Callable[[pd.DataFrame], pd.DataFrame] | None = None, **labels: Any) -> None:
    """Another label (none if it is None), or another frame."""
    path = world.root / "scores" / key / "scores.parquet"
    frame, meta = frames.read(path, "scores"), frames.metadata(path) | labels
    meta = {name: value for name, value in meta.items() if value is not None}
    write_frame(change(frame) if change else frame, "scores", path, meta)


def read(world: World, *, mixed: bool = False) -> RunFrames:
    runs = list_expected_runs(None, world.study, ["base", "noise_floor", "large"], world.root)
    return load(runs, world.root, average="climb_avg", mixed=mixed)


def without_boolq(world: World) -> None:
    world.completed("base", "softpick", 42, tasks_of(0.32).drop("boolq"), 4.9)
    manifest(world, SOFTPICK, **MANIFEST)
    scores(world, SOFTPICK, **LABELS)


def by_acc_norm(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(metric=frame["metric"].where(frame["task"] != "piqa", "acc_norm"))


#: What is attacked, and the message about it: the odd run's value first.
REFUSED: dict[str, tuple[Callable[[World], None], str]] = {
    "suite": (lambda world: scores(world, SOFTPICK, suite="other"), "the suite: other against climb12"),
    "tasks": (without_boolq, "the tasks and their metrics: nothing against acc for boolq"),
    "metric": (lambda world: scores(world, SOFTPICK, by_acc_norm), "metrics: acc_norm against acc for piqa"),
    "metric policy": (
        lambda world: scores(world, SOFTPICK, metric_policy="acc_norm_where_defined"),
        "the metric policy: acc_norm_where_defined against acc",
    ),
    "limit": (lambda world: scores(world, SOFTPICK, limit="none"), "the limit of items: none against 16"),
    "harness": (
        lambda world: scores(world, SOFTPICK, lambda frame: frame.assign(harness_version="0.4.9")),
        "the harness: 0.4.9 against 0.4.13",
    ),
    "precision": (
        lambda world: scores(world, SOFTPICK, precision="bfloat16"),
        "the precision of evaluation: bfloat16 against float32",
    ),
    "task definitions": (
        lambda world: scores(world, SOFTPICK, task_yaml_sha256=json.dumps({"piqa": {"piqa/piqa.yaml": "9" * 64}})),
        "the task definition: [0-9a-f]{12} against [0-9a-f]{12} for piqa",
    ),
    "tokenizer": (
        lambda world: scores(world, SOFTPICK, tokenizer_sha256="b" * 64),
        r"the tokenizer \(climbmix .*\): b{12} against a{12}",
    ),
    "items": (
        lambda world: scores(world, SOFTPICK, items_sha256=json.dumps({"piqa": "8" * 64, "boolq": "9" * 64})),
        r"the items \(climbmix .*\): 8{12} against 1{12} for piqa \(and so for 1 more tasks\)",
    ),
    "number of items": (
        lambda world: scores(world, SOFTPICK, lambda frame: frame.assign(items=50)),
        r"the number of items \(climbmix .*\): 50 against 100 for piqa \(and so for 11 more tasks\)",
    ),
}


def test_where_nothing_differs_but_large_pack_nothing_is_said(written: World) -> None:
    frames = read(written)
    assert frames.mixed == frames.notes == ()


@pytest.mark.parametrize("case", list(REFUSED))
def test_scores_that_cannot_be_compared_stand_in_no_table(world: World, case: str) -> None:
    attack, cause = REFUSED[case]
    attack(world)
    whole = rf"^{SOFTPICK} and {BASELINE} were scored differently, so they cannot be in one table; .*{cause}\. Remove "
    with pytest.raises(PlumblineError, match=rf"{whole}{world.root}/scores/{SOFTPICK} .* found"):
        read(world)
    note, *more = read(world, mixed=True).mixed
    assert len(more) == (case == "tasks"), "a task that is not there has no items either"
    assert note.startswith("Mixed scores: ") and "(4 runs), " in note and note.endswith(f"({SOFTPICK}).")


@pytest.mark.parametrize(("name", "pack"), [("data", "training pack (base, "), ("validation", "validation pack (")])
def test_runs_of_other_packs_stand_in_no_table(world: World, name: str, pack: str) -> None:
    manifest(world, SOFTPICK, **{f"{name}_fingerprint": "c" * 16})
    with pytest.raises(PlumblineError) as refused:
        read(world)
    error = str(refused.value)
    assert error.startswith(f"{SOFTPICK} and {BASELINE} ") and "other data" in error
    assert f"; the {pack}climbmix" in error
    assert "at context 128): cccccccccccccccc against " in error and "pretrained again" in error
    assert f"Remove {world.root}/runs/{SOFTPICK} (or" in error
    assert len(read(world, mixed=True).mixed) == 1


@pytest.mark.usefixtures("specs_of_other_ids")
def test_other_packs_corpora_and_tokenizers_are_compared(world: World) -> None:
    """Packs of other scales (above), and all of another corpus."""
    content = json.loads((world.root / "runs" / LARGE / "manifest.json").read_text())
    content["spec"]["data"]["corpus"] = "openwebtext"
    manifest(world, LARGE, spec=content["spec"], validation_fingerprint="c" * 16)
    items = json.dumps({"piqa": "7" * 64, "boolq": "8" * 64})
    scores(world, LARGE, lambda frame: frame.assign(items=50), tokenizer_sha256="b" * 64, items_sha256=items)
    assert read(world).mixed == read(world).notes == ()
    scores(world, LARGE, limit="none")
    with pytest.raises(PlumblineError, match="items: none against 16"):
        read(world)


def test_scores_of_another_tokenizer_are_refused(world: World) -> None:
    """As they stand after someone kept the time of a tokenizer.json that was replaced."""
    for path in (world.root / "runs").rglob("manifest.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer_sha256": "9" * 64}))
    with pytest.raises(PlumblineError, match=r"run's \(a{12}, not 9{12}\): remove"):
        read(world)
    assert read(world, mixed=True).mixed[0].startswith("Scores of another tokenizer ")


def test_scores_of_other_weights_are_refused(world: World) -> None:
    manifest(world, SOFTPICK, files={"model.safetensors": {"sha256": "6" * 64}})
    with pytest.raises(PlumblineError, match=rf"{SOFTPICK}.*\(4{{12}}, not 6{{12}}\)"):
        read(world)
    assert read(world, mixed=True).mixed == (f"Scores of other weights than the run's: {SOFTPICK}.",)


def test_non_finite_scores_are_a_fault(world: World) -> None:
    """As evaluations left them that took argmax over NaN for an answer: the accuracy next to them looks like any."""

    def worthless(frame: pd.DataFrame) -> pd.DataFrame:
        row = frame.iloc[[0]].assign(metric="logprob_gold", value=float("nan"), primary=False)
        return pd.concat([frame, row], ignore_index=True)

    scores(world, SOFTPICK, worthless)
    for mixed in (False, True):
        with pytest.raises(PlumblineError, match=rf"{SOFTPICK}: logprob_gold of piqa is nan, .*remove"):
            read(world, mixed=mixed)


def test_what_was_not_recorded_is_said_and_not_compared(world: World) -> None:
    scores(world, SOFTPICK, tokenizer_sha256=None, limit=None)
    (note,) = read(world).notes
    assert note == (
        f"Not recorded with the scores of {SOFTPICK}, so not compared with the others': the limit of items, the "
        "tokenizer."
    )
    for key in (BASELINE, BASELINE[:-1] + "3", BASELINE[:-1] + "4", LARGE):
        scores(world, key, tokenizer_sha256=None, limit=None)
    assert read(world).notes == ()


def test_what_runs_were_made_with_is_noted_where_it_differs(world: World) -> None:
    two = [MANIFEST["code"][0], {"code_sha256": "5" * 64, "torch": "2.14.0", "steps": [20]}]
    way = {"asked": "auto", "kernel": "sdpa", "notice": None}
    for path in (world.root / "runs").rglob("manifest.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"attention": way}))
    forced = {"asked": "reference", "kernel": "chunked", "notice": None}
    manifest(world, SOFTPICK, device="cuda", device_name="A GPU", code=two, tf32=None, attention=forced)
    manifest(world, LARGE, code=[{"code_sha256": "6" * 64, "torch": "2.13.0", "steps": [0]}], tf32=None)
    scores(world, SOFTPICK, device="cuda")
    assert read(world).notes == (
        f"Not all runs were made with the same torch: 2.13.0 (4 runs), 2.13.0 then 2.14.0 ({SOFTPICK}).",
        f"Not all runs were made with the same code: 555555555555 (4 runs), 666666666666 ({LARGE}).",
        f"Not all runs were made with the same device: cpu x86_64 (4 runs), cuda A GPU ({SOFTPICK}).",
        f"Not all runs were made with the same TF32: off (3 runs), not recorded ({SOFTPICK}, {LARGE}).",
        f"Not all runs were made with the same way of attention: auto (4 runs), reference ({SOFTPICK}).",
        f"Not all scores were made with the same device: cpu (4 runs), cuda ({SOFTPICK}).",
        ROUNDING,
    )
    assert read(world).mixed == ()
    for kernel, name in (("flash_attn", "flash-attn"), ("flash_attn_3", "flash-attn-3")):
        manifest(world, LARGE, attention=way | {"kernel": kernel, "flash_attn": "2.8.3"})
        assert f"auto (3 runs), reference ({SOFTPICK}), {name} ({LARGE})." in " ".join(read(world).notes)


def test_other_versions_of_torch_and_code_are_noted(world: World) -> None:
    for key in (BASELINE, BASELINE[:-1] + "3", BASELINE[:-1] + "4"):
        scores(world, key, torch="2.13.0", fingerprint="7" * 16)
    scores(world, SOFTPICK, torch="2.14.0", fingerprint="8" * 16)
    assert read(world).notes == (
        f"Not all scores were made with the same torch: 2.13.0 (3 runs), 2.14.0 ({SOFTPICK}), not recorded ({LARGE}).",
        f"Not all scores were made with the same code: {'7' * 16} (3 runs), {'8' * 16} ({SOFTPICK}), "
        f"not recorded ({LARGE}).",
    )


@pytest.mark.parametrize("change", [{}, {"metric": "acc_norm"}, {"primary": False}])
def test_a_task_that_is_there_twice_is_a_fault(world: World, change: dict[str, Any]) -> None:
    """The average is right for what stands next to it, so the fault does not show."""

    def twice(frame: pd.DataFrame) -> pd.DataFrame:
        frame = pd.concat([frame.iloc[[0]].assign(value=0.9, **change), frame], ignore_index=True)
        average = frame["task"] == "climb_avg"
        return frame.assign(value=frame["value"].mask(average, frame["value"][frame["primary"] & ~average].mean()))

    scores(world, BASELINE, twice)
    for mixed in (False, True):
        with pytest.raises(PlumblineError, match=rf"{BASELINE}: piqa is given more"):
            read(world, mixed=mixed)


def test_a_damaged_label_is_named_with_its_file(world: World) -> None:
    scores(world, SOFTPICK, items_sha256="{")
    path = world.root / "scores" / SOFTPICK
    with pytest.raises(PlumblineError, match=rf"^{path}/scores.parquet .* 'items_sha256' .*: remove {path} "):
        read(world)


READ_WITH = {"torch": "2.13.0", "device": "cpu", "validation_fingerprint": "e" * 16}
NORMS, COPY = "query_key_norms", "lower_copy"


def write_probes(world: World, key: str, classes: dict[str, str], **labels: Any) -> None:
    """The run's spec asks for the probes of `classes`, and was read; a label that is None is not there."""
    content = json.loads((world.root / "runs" / key / "manifest.json").read_text())
    content["spec"]["probes"] = [{"name": name, "at": [1.0]} for name in classes]
    manifest(world, key, spec=content["spec"])
    row = {"run_id": content["run_id"], "step": 6, "fraction": 1.0, "layer": 0, "head": 1}
    row |= {"probe": "key_norm", "value": 2.5, "null": 1.0, "source": "offline"}
    meta = READ_WITH | {"probes": json.dumps(classes)} | labels
    meta = {name: value for name, value in meta.items() if value is not None}
    write_frame(pd.DataFrame([row]), "probes", world.root / "probes" / key / "probes.parquet", meta)


def read_probes(world: World, *, mixed: bool = False) -> RunFrames:
    runs = list_expected_runs(None, world.study, ["base", "large"], world.root)
    return load(runs, world.root, average="climb_avg", probes=True, mixed=mixed)


@pytest.mark.usefixtures("specs_of_other_ids")
def test_probes_of_other_code_or_pack_stand_in_no_table(world: World) -> None:
    write_probes(world, BASELINE, {NORMS: "1" * 16})
    write_probes(world, SOFTPICK, {NORMS: "1" * 16, COPY: "2" * 16})
    assert read_probes(world).mixed == read_probes(world).notes == (), "one has a probe that the other has not"
    write_probes(world, SOFTPICK, {NORMS: "3" * 16, COPY: "2" * 16})
    with pytest.raises(PlumblineError) as refused:
        read_probes(world)
    message = str(refused.value)
    ones = (f"{SOFTPICK} and {BASELINE}", f"{BASELINE} and {SOFTPICK}")
    assert message.startswith(tuple(f"{both} were probed differently, " for both in ones))
    assert f"probe {NORMS}: {'3' * 16} against {'1' * 16}. Remove {world.root}/probes/" in message
    assert "it is probed again" in message
    (note,) = read_probes(world, mixed=True).mixed
    assert note.startswith(f"Mixed probes: the code of probe {NORMS}: ")
    write_probes(world, SOFTPICK, {NORMS: "1" * 16}, validation_fingerprint="c" * 16)
    with pytest.raises(PlumblineError, match=rf"probes of {SOFTPICK} .*held-out pack .*\(c{{12}}, not e{{12}}"):
        read_probes(world)


@pytest.mark.usefixtures("specs_of_other_ids")
def test_values_that_probes_read_of_other_weights_are_refused(world: World) -> None:
    write_probes(world, BASELINE, {NORMS: "1" * 16}, weights_sha256="4" * 64)
    read_probes(world)
    write_probes(world, BASELINE, {NORMS: "1" * 16}, weights_sha256="6" * 64)
    with pytest.raises(PlumblineError, match=rf"probes of {BASELINE} .*weights .*\(6{{12}}, not 4"):
        read_probes(world)


@pytest.mark.usefixtures("specs_of_other_ids")
def test_probes_of_another_corpus_have_their_own_pack(world: World) -> None:
    write_probes(world, BASELINE, {NORMS: "1" * 16})
    content = json.loads((world.root / "runs" / LARGE / "manifest.json").read_text())
    content["spec"]["data"]["corpus"] = "openwebtext"
    manifest(world, LARGE, spec=content["spec"], validation_fingerprint="c" * 16)
    write_probes(world, LARGE, {NORMS: "1" * 16}, validation_fingerprint="c" * 16)
    assert read_probes(world).notes == ()
    write_probes(world, SOFTPICK, {NORMS: "1" * 16}, validation_fingerprint=None, probes=None)
    assert read_probes(world).notes == (
        f"Not recorded with the probes of {SOFTPICK}, so not compared with the others': the code of probe {NORMS}, "
        "the validation pack.",
    )
    write_probes(world, SOFTPICK, {NORMS: "1" * 16}, probes='{"')
    with pytest.raises(PlumblineError, match=rf"{SOFTPICK}/probes.parquet is damaged: its label 'probes'"):
        read_probes(world)


def make_target(world: World, monkeypatch: pytest.MonkeyPatch, *args: str) -> Path:
    out = world.root.parent / f"{args[-1]}{verb.ENDINGS[args[0]][0]}"
    monkeypatch.setattr(sys, "argv", ["results", *args, "--work", str(world.root), "--out", str(out)])
    verb.main()
    return out


def test_tables_figures_and_claims_keep_to_it(world: World, monkeypatch: pytest.MonkeyPatch, repository: Path) -> None:
    monkeypatch.chdir(repository)
    scores(world, SOFTPICK, limit="none")
    manifest(world, SOFTPICK, device="cuda")
    for args in (("table", "transfer", "table2"), ("figure", "transfer", "fig3"), ("claims", "transfer")):
        with pytest.raises(PlumblineError, match="items: none against 16"):
            make_target(world, monkeypatch, *args)
    table = make_target(world, monkeypatch, "table", "transfer", "table2", "--expected-runs", "found")
    page = table.with_suffix(".md").read_text().split("\n|", 1)
    assert f"items: 16 (3 runs), none ({SOFTPICK})." in page[0]
    assert f"x86_64 (3 runs), cuda x86_64 ({SOFTPICK})." in page[1]
    # One that reads no scores stands whatever they are.
    page = make_target(world, monkeypatch, "table", "transfer", "table6").with_suffix(".md").read_text()
    assert "Mixed" not in page and "Not all" not in page

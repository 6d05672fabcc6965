"""What goes into a bundle, and what does not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plumbline.bundle import __main__ as verb
from plumbline.core import fingerprint_file, frames
from plumbline.core.errors import PlumblineError
from plumbline.project import load
from plumbline.specs.yaml_files import ROOT, load_config


def test_texts_of_items_are_not_packed(tmp_path: Path) -> None:
    path = tmp_path / "examples.parquet"
    row = {"run_id": "ab12", "task": "piqa", "metric": "acc", "value": np.float64(1)}
    for item, fits in (("0-030c93b52b51f244", True), ("How does one open a jar?", False)):
        frames.write(pd.DataFrame([row | {"item": item}]), "examples", path)
        if fits:
            verb.require_no_texts(path)
        else:
            with pytest.raises(PlumblineError, match=r"item.*open"):
                verb.require_no_texts(path)


def test_of_work_only_what_is_light_is_packed(tmp_path: Path) -> None:
    """Everything that lies there in a real project, by name; weights, state, texts and tokenizers stay."""
    for name in ("config", "studies"):
        shutil.copytree(ROOT / name, tmp_path / name)
    project = load(load_config() | {"preset": "smoke", "studies": ["transfer"]}, tmp_path)
    run = project.run("transfer", "base", "softpick", 42)
    light = [project.paths.run(run, name) for name in ("outcome.json", "manifest.json", "metrics.parquet")]
    light += [
        project.paths.scores(run),
        project.paths.examples(run),
        fingerprint_file.sidecar_path(project.paths.scores(run)).as_posix(),
    ]
    light += [project.paths.probes(run), fingerprint_file.sidecar_path(project.paths.probes(run)).as_posix()]
    corpus = project.paths.corpus("climbmix")
    light += [
        project.paths.pack_manifest(run),
        project.paths.items("climbmix", "climb12"),
        f"{corpus}/documents/documents.json",
    ]
    light += [f"{project.paths.work}/benchmarks/pretrain/transfer.base.softpick.s42.jsonl"]
    heavy = [project.paths.run(run, name) for name in ("model.safetensors", "points/index.json")]
    heavy += [f"{corpus}/documents/train.jsonl", f"{corpus}/tokenizer/tokenizer.json"]
    heavy += [f"{corpus}/items/climb12/piqa.jsonl", f"{corpus}/packs/context64/train/.verified/here.json"]
    heavy += [f"{project.paths.work}/state/transfer/base/softpick/s42/starts.json"]
    heavy += [f"{project.paths.work}/benchmarks/pretrain/quack.mla.quack.s42.jsonl"]
    for path in light + heavy:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    assert project.bundles.work_files() == sorted(light)


def test_private_files_next_to_the_configuration_are_not_packed(tmp_path: Path) -> None:
    """With git, without it, and where git tracks a folder that nothing of ours has."""
    for name in ("config", "studies"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    project = load(load_config() | {"preset": "smoke", "studies": ["transfer"]}, tmp_path)
    whole, notes = verb.choose_configuration(project)
    assert {"config/config.yaml", "studies/transfer/study.yaml", "studies/transfer/published/table1.csv"} <= {*whole}
    unasked = "packed without asking git whether they are private: "
    assert notes == [f"{unasked}{', '.join(whole)}"], "everything of ours is packed"
    private = ["config/private/hub_token.txt", "studies/transfer/.env", "studies/transfer/texts/a.jsonl"]
    own = ["studies/mine/study.yaml", "studies/transfer/data/own.csv"]
    for name in private + own:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("secret")
    chosen, (*left_out, note) = verb.choose_configuration(project)
    assert set(chosen) == {*whole, own[0]} and note == f"{unasked}{', '.join(chosen)}"
    assert {text.rpartition(": ")[2] for text in left_out} == {private[0], private[2], own[1]}
    git = ["git", "-C", str(tmp_path)]
    for words in (["init", "-q"], ["add", *whole]):
        subprocess.run([*git, *words], check=True)
    with pytest.raises(PlumblineError, match=rf"^1 .* not in git, such as {own[0]}.*git add"):
        verb.choose_configuration(project)
    subprocess.run([*git, "add", *own], check=True)
    odd = os.fsdecode(b"config/\xff.txt")
    (tmp_path / odd).write_text("tracked")
    subprocess.run([*git, "add", odd], check=True)
    chosen, left_out = verb.choose_configuration(project)
    assert set(chosen) == {*whole, *own, odd}
    assert {text.rpartition(": ")[2] for text in left_out} == {private[0], private[2]}
    subprocess.run([*git, "rm", "-q", "--cached", own[0]], check=True)
    subprocess.run(["git", "init", "-q", str(tmp_path / "studies/mine")], check=True)
    chosen, notes = verb.choose_configuration(project)
    assert own[0] in chosen and notes[-1] == f"{unasked}{own[0]}", "a study in a repository of its own"
    (tmp_path / ".git/HEAD").write_text("damaged")
    with pytest.raises(PlumblineError, match=r"git cannot list the files .*which are private"):
        verb.choose_configuration(project)


def test_a_target_on_request_is_packed_with_what_it_reads_once_it_was_made(tmp_path: Path) -> None:
    for name in ("config", "studies"):
        shutil.copytree(ROOT / name, tmp_path / name)
    project = load(load_config() | {"preset": "evening", "studies": ["key_norms"]}, tmp_path)
    probes = project.paths.probes(project.targets.runs("key_norms", "small")[0])
    for path in (probes, f"{project.paths.results}/key_norms/small.csv"):
        assert "small" not in {product.target for product in project.bundles.products}
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    assert [product.target for product in project.bundles.products if product.kind == "table"] == ["small"]
    assert f"{project.paths.results}/key_norms/small.csv" in project.bundles.inputs()
    assert probes in project.bundles.work_files()

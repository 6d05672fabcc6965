"""What goes into a bundle, and what does not."""

from __future__ import annotations

import shutil
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

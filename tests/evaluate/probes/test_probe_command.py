"""``python -m plumbline.evaluate.probes``: offline and online values, checked files, runs that diverged."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.data.loader import Pack
from plumbline.evaluate.probes import __main__ as command
from plumbline.evaluate.probes import read as read_probes
from plumbline.evaluate.probes.query_key_norms import QueryKeyNorms
from plumbline.model.decoder import Decoder
from plumbline.specs.components import code_class
from plumbline.specs.spec import RunSpec
from tests.changed_spec import change_spec
from tests.model_specs import run_spec
from tests.train import small_runs


def probe(work: Path, out: Path, *arguments: str, run: Path | None = None) -> pd.DataFrame:
    """The verb in this process."""
    line = ["--run", str(run or work / "out"), "--validation-pack", str(work / "validation.json"), "--out", str(out)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["probes", *line, *(arguments or ("--device", "cpu"))])
        command.main()
    return frames.read(out, "probes")


@pytest.fixture
def own(trained: Path, tmp_path: Path) -> Path:
    """A copy of the run that a test may damage."""
    shutil.copytree(trained, tmp_path / "own", ignore=shutil.ignore_patterns("state"))
    return tmp_path / "own"


def test_the_verb_reads_every_point(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "probes.parquet"
    process = subprocess.run(
        [sys.executable, "-m", "plumbline.evaluate.probes", "--run", str(trained / "out"), "--validation-pack",
         str(trained / "validation.json"), "--out", str(out), "--device", "cpu"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    frame, label = frames.read(out, "probes"), frames.metadata(out)
    spec = RunSpec.from_dict(json.loads((trained / "out/manifest.json").read_text())["spec"])
    heads = spec.model.layers * (spec.model.heads + spec.model.key_value_heads)
    offline, online = frame[frame.source == "offline"], frame[frame.source == "online"]
    assert offline.groupby("fraction").size().to_dict() == dict.fromkeys((0.0, 0.3, 0.9, 1.0), heads)
    assert offline.groupby("fraction").step.first().tolist() == [0, 4, 11, 12]
    assert online.groupby("step").size().to_dict() == dict.fromkeys((0, 5, 10, 12), heads)
    assert set(frame.run_id) == {spec.run_id} and (frame.null == 8**0.5).all()
    assert f"{len(frame)} values -> {out}" in process.stderr
    assert label["validation_fingerprint"] == Pack(trained / "validation.json").fingerprint
    assert json.loads(label["probes"]) == {"query_key_norms": code_class("probe", "query_key_norms")}
    assert (label["outcome"], label["never_reached"], label["end_read_at"]) == ("completed", "[]", "")
    assert label["torch"] == torch.__version__ and label["run_id"] == spec.run_id
    # One point against the probe itself, on the weights that lie there.
    model = Decoder(spec.model)
    model.load_state_dict(load_file(trained / "out/points/step-0000004.safetensors"))
    tokens_BT = torch.from_numpy(Pack(trained / "validation.json").rows(np.arange(4)))
    expected = read_probes(model, [QueryKeyNorms()], tokens_BT, "float32")
    rows = offline[offline.step == 4]
    assert rows.value.tolist() == [probe_value.value for probe_value in expected]
    assert rows["layer"].tolist() == [probe_value.layer for probe_value in expected]
    assert rows["head"].tolist() == [probe_value.head for probe_value in expected]


def test_offline_and_online_are_one_function(tmp_path: Path) -> None:
    """On the same weights and sequences they give the same numbers, to the bit; under autocast, too."""
    probes = [
        {"name": "query_key_norms", "at": [0.0, 0.5, 1.0], "sequences": 3},
        {"name": "query_key_norms", "every": 6, "sequences": 3},
    ]
    packs = small_runs.make_packs(tmp_path)
    for precision in ("float32", "bfloat16"):
        spec = run_spec(probes=probes, train__precision=precision)
        assert small_runs.train(spec, small_runs.settings(packs, tmp_path)) == 0
        frame = probe(tmp_path, tmp_path / "probes.parquet")
        offline, online = (frame[frame.source == name].reset_index(drop=True) for name in ("offline", "online"))
        assert len(offline) == len(online) > 0
        assert offline.drop(columns="source").equals(online.drop(columns="source"))


def test_a_run_that_diverged_gives_what_it_reached(tmp_path: Path, capfd) -> None:
    spec = run_spec(probes=small_runs.PROBES, optimizer__learning_rate=1e9)
    assert small_runs.train(spec, small_runs.settings(small_runs.make_packs(tmp_path), tmp_path)) == 0
    index = json.loads((tmp_path / "out/points/index.json").read_text())["points"]
    missed = [{"fraction": point["fraction"], "step": point["step"]} for point in index if not point["reached"]]
    assert missed[-1] == {"fraction": 1.0, "step": 12} and len(missed) < 4
    frame = probe(tmp_path, tmp_path / "probes.parquet")
    label = frames.metadata(tmp_path / "probes.parquet")
    assert (label["outcome"], json.loads(label["never_reached"])) == ("diverged", missed)
    offline = frame[frame.source == "offline"]
    last = json.loads((tmp_path / "out/outcome.json").read_text())["weights_step"]
    points = {point["fraction"]: point["step"] for point in index if point["reached"]}
    assert last not in points.values() and label["end_read_at"] == str(last)
    assert dict(zip(offline.fraction, offline.step)) == points | {last / 12: last}
    stderr = capfd.readouterr().err
    assert "diverged before step 12" in stderr
    assert f"step {last}" in stderr
    # The weights are those that the run left, and nothing stands there twice.
    model = Decoder(spec.model)
    model.load_state_dict(load_file(tmp_path / "out/model.safetensors"))
    tokens_BT = torch.from_numpy(Pack(tmp_path / "validation.json").rows(np.arange(4)))
    expected = read_probes(model, [QueryKeyNorms()], tokens_BT, "float32")
    assert offline[offline.step == last].value.tolist() == [probe_value.value for probe_value in expected]


def test_weights_that_are_no_numbers_are_read_as_they_are(tmp_path: Path) -> None:
    """The update before the step that diverged may have left infinities at a point that was reached."""
    spec = run_spec(probes=[{"name": "query_key_norms", "at": [0.0, 0.09]}], optimizer__learning_rate=3e38,
                    optimizer__weight_decay=3.0, schedule__warmup_steps=1)  # fmt: skip
    assert small_runs.train(spec, small_runs.settings(small_runs.make_packs(tmp_path), tmp_path)) == 0
    frame = probe(tmp_path, tmp_path / "probes.parquet")
    assert frame[frame.step == 0].value.notna().all() and frame[frame.step == 1].value.isna().any()


def test_a_run_without_probes_gives_an_empty_frame(tmp_path: Path) -> None:
    assert small_runs.train(run_spec(), small_runs.settings(small_runs.make_packs(tmp_path), tmp_path)) == 0
    assert probe(tmp_path, tmp_path / "probes.parquet").empty


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["points/step-0000011.safetensors", "model.safetensors"])
def test_weights_are_checked_when_they_are_opened(own: Path, tmp_path: Path, name: str) -> None:
    flip(own / "out" / name)
    with pytest.raises(PlumblineError, match=r"SHA-256 is not the one .*delete"):
        probe(own, tmp_path / "probes.parquet")
    (own / "out" / name).unlink()
    with pytest.raises(PlumblineError, match=r"index of probe points"):
        probe(own, tmp_path / "probes.parquet")
    assert not (tmp_path / "probes.parquet").exists()


def test_what_does_not_belong_together_is_refused(own: Path, tmp_path: Path) -> None:
    out = tmp_path / "probes.parquet"
    with pytest.raises(PlumblineError, match="not finished"):
        probe(own, out, run=tmp_path)
    flip(own / "validation.bin")
    with pytest.raises(PlumblineError, match=r"validation.bin of .* is damaged"):
        probe(own, out)
    (own / "validation.json").write_text((own / "train.json").read_text())
    with pytest.raises(PlumblineError, match=r"pack.*validated"):
        probe(own, out)
    change_spec(own / "out", lambda spec: spec["components"].update({"model.mixer": "0" * 16}))
    with pytest.raises(PlumblineError, match=r"model.mixer differs"):
        probe(own, out)

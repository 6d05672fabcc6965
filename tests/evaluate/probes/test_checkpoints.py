"""One checkpoint, from the command line: our own runs, two points, texts, pictures, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.evaluate.probes import __main__ as command
from tests.evaluate.probes.hugging_face_models import probe_folder, save_model
from tests.model_specs import run_spec
from tests.train.small_runs import make_packs, settings, train


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, with its packs next to it."""
    work = tmp_path_factory.mktemp("ours")
    packs = make_packs(work)
    assert train(run_spec(), settings(packs, work)) == 0
    return work / "out"


def test_a_run_of_ours(monkeypatch: pytest.MonkeyPatch, ours: Path) -> None:
    """On its validation pack: its own loss on those sequences, and how far it has come from where it started."""
    manifest = ours.parent / "validation.json"
    frame = probe_folder(monkeypatch, ours, "--validation-pack", manifest, "--sequences", 10)
    assert set(frame.step) == {12} and set(frame.fraction) == {1.0} and set(frame.run_id) == {run_spec().run_id}
    values = frame.groupby("probe").value
    outcome = json.loads((ours / "outcome.json").read_text())
    assert values.mean()["loss"] == pytest.approx(outcome["validation_loss"], rel=1e-6)
    assert (values.min()[["bilinear_displacement", "bilinear_relative"]] > 0.01).all()
    assert not [name for name in values.groups if name.startswith("locality")]
    labels = frames.metadata(ours.parent / "probes.parquet")
    assert (labels["kind"], labels["sequences"], labels["context"]) == ("plumbline", "10", "32")
    again = probe_folder(
        monkeypatch, ours, "--validation-pack", manifest, "--later-checkpoint", ours, "--probes", "ffn_write,locality"
    )
    assert set(again.probe) == {"ffn_write_rms"}, "a run has not moved from itself"


def test_two_points_of_a_models_training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, later = save_model("llama", tmp_path / "first"), tmp_path / "later"
    model = transformers.AutoModelForCausalLM.from_pretrained(first)
    with torch.no_grad():
        model.model.embed_tokens.weight[5] += 1.0
    model.save_pretrained(later)
    np.save(tmp_path / "ids.npy", np.full((1, 30), 5))
    frame = probe_folder(
        monkeypatch, first, "--later-checkpoint", later, "--token-ids", tmp_path / "ids.npy", "--probes", "locality"
    )
    assert set(frame.layer.dropna()) == {2, 3, 4}
    # One token only: its stream moves in one direction at each layer.
    assert (frame[frame.probe == "projector_rank"].value == 1).all()
    other = save_model("gpt2", tmp_path / "gpt2")
    with pytest.raises(PlumblineError, match=r"--later-checkpoint: .*gpt2 .*first"):
        probe_folder(monkeypatch, first, "--later-checkpoint", other, "--token-ids", tmp_path / "ids.npy")


def test_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user's own text by the folder's tokenizer; none at all; one by a tokenizer of ours; one that is too short."""
    folder = save_model("gpt2", tmp_path / "gpt2")
    with pytest.raises(PlumblineError, match=r"--checkpoint: .*gpt2 holds no tokenizer.*--tokenizer or --token-ids"):
        probe_folder(monkeypatch, folder)
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = {letter: 3 + index for index, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    backend = Tokenizer(models.WordLevel(letters | {"?": 0, "<|endoftext|>": 2}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="?").save_pretrained(folder)
    (tmp_path / "text.txt").write_text("the quick brown fox " * 8)
    chosen = ["--probes", "lower_copy", "--context", 50]
    text = probe_folder(monkeypatch, folder, "--text", tmp_path / "text.txt", *chosen)
    labels = frames.metadata(tmp_path / "probes.parquet")
    assert (labels["sequences"], labels["context"], labels["separator"]) == ("3", "50", "2")
    ids = [letters.get(letter, 0) for letter in ("the quick brown fox " * 8)[:150]]
    np.save(tmp_path / "ids.npy", np.array(ids))
    assert probe_folder(monkeypatch, folder, "--token-ids", tmp_path / "ids.npy", *chosen).equals(text)
    built_in = probe_folder(monkeypatch, folder, *chosen)
    assert frames.metadata(tmp_path / "probes.parquet")["text"] == "Python's language reference"
    assert not built_in.equals(text)
    backend.save(str(tmp_path / "tokenizer.json"))
    options = ["--tokenizer", tmp_path / "tokenizer.json"]
    assert probe_folder(monkeypatch, folder, "--text", tmp_path / "text.txt", *options, *chosen).equals(text)
    (tmp_path / "text.txt").write_text("the quick brown fox")
    with pytest.raises(PlumblineError, match=r"text.txt has 19.*less than.*of 160"):
        probe_folder(monkeypatch, save_model("gpt_neox", tmp_path / "neox"), "--text", tmp_path / "text.txt", *options)


def test_a_picture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A panel a probe and one for numbers of no layer; the same bytes again."""
    from plumbline.evaluate.probes import _picture

    folder = save_model("llama", tmp_path / "llama")
    np.save(tmp_path / "ids.npy", np.random.default_rng(1).integers(0, 90, (2, 40)))
    options = ("--token-ids", tmp_path / "ids.npy", "--picture", tmp_path / "picture.png")
    frame = probe_folder(monkeypatch, folder, *options)
    content = (tmp_path / "picture.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    probe_folder(monkeypatch, folder, *options)
    assert (tmp_path / "picture.png").read_bytes() == content
    figure = _picture.draw(frame, "title")
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    assert set(frame[frame.layer.notna()].probe) | {"of no layer (null)", ""} == set(panels)
    dashed = [line for line in panels["entropy"].lines if line.get_linestyle() == "--"]
    assert [list(line.get_ydata()) for line in dashed] == [[1.0] * 5]
    means = frame[frame.probe == "entropy"].groupby("layer").value.mean().tolist()
    assert any(list(line.get_ydata()) == means for line in panels["entropy"].lines)
    [label] = [text.get_text() for text in panels["of no layer (null)"].texts]
    assert [line.split()[0] for line in label.split("\n")] == frame[frame.layer.isna()].probe.tolist()


def test_a_text_without_repetitions_gives_no_score(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    folder, picture = save_model("llama", tmp_path / "llama"), tmp_path / "picture.png"
    np.save(tmp_path / "ids.npy", np.arange(3, 43)[None])
    options = ("--token-ids", tmp_path / "ids.npy", "--probes", "lower_copy", "--picture", picture)
    assert probe_folder(monkeypatch, folder, *options).empty and not picture.exists()
    stderr = capfd.readouterr().err
    assert "40 tokens, not 8" in stderr and "probes read nothing" in stderr


def test_what_cannot_be_probed_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ours: Path) -> None:
    def refuse(match: str, folder: Path, *args: Any) -> None:
        with pytest.raises(PlumblineError, match=match):
            probe_folder(monkeypatch, folder, *args)

    ids, long = tmp_path / "ids.npy", tmp_path / "long.npy"
    np.save(ids, np.zeros((1, 20), dtype=int))
    np.save(long, np.full((1, 20), 90))
    folder = save_model("llama", tmp_path / "llama")
    refuse("holds neither manifest.json .* nor config.json", tmp_path, "--token-ids", ids)
    refuse(r"there is no probe 'lower_coppy'; did you mean 'lower_copy'\?", folder, "--probes", "lower_coppy")
    refuse("'locality' compares two points of training; give --later-checkpoint", folder, "--probes",
            "entropy, locality".replace("entropy", "ffn_write"))  # fmt: skip
    refuse("--probes: 'ffn_write' is given more than once", folder, "--probes", "ffn_write,lower_copy,ffn_write")
    refuse("--text and --token-ids are two texts", folder, "--text", ids, "--token-ids", ids)
    refuse("ids from 90 to 90, and the model has 90 entries", folder, "--token-ids", long)
    refuse("reads 160 tokens at most, not 161", folder, "--token-ids", ids, "--context", 161)
    refuse("--sequences must be at least 1", folder, "--token-ids", ids, "--sequences", 0)
    refuse("a folder of ours holds no tokenizer", ours)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    refuse("--device cuda: this machine has no CUDA device", folder, "--token-ids", ids, "--device", "cuda")
    (tmp_path / "text.npy").write_text("words")
    refuse("cannot be read as an array", folder, "--token-ids", tmp_path / "text.npy")
    np.save(ids, np.zeros((2, 20)))
    refuse(r"holds float64 of shape \(2, 20\)", folder, "--token-ids", ids)
    np.save(ids, np.zeros((1, 20), dtype=int))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "llama4"}))
    refuse("is a 'llama4.*config.json.*'qwen3'.*did you mean 'llama'", folder, "--token-ids", ids)
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 6}))
    refuse(r"lacks 'model.layers.5\..*which would be left random", folder, "--token-ids", ids)
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 64}))
    refuse(
        r"'lm_head.weight' has the shape \[90, 48\], and config.json describes \[90, 64\]", folder, "--token-ids", ids
    )
    (folder / "config.json").write_text(json.dumps(config))
    weights = folder / "model.safetensors"
    data = {name: value.clone() for name, value in load_file(weights).items()}
    save_file(data | {"model.norm.weight": data["model.norm.weight"] * torch.nan}, weights, metadata={"format": "pt"})
    refuse("'model.norm.weight' has values that are not finite", folder, "--token-ids", ids)
    weights.write_bytes(weights.read_bytes()[:100])
    refuse("model.safetensors: cannot be read as weights", folder, "--token-ids", ids)


def test_flags_of_the_other_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def expect_refusal(match: str, *args: str) -> None:
        monkeypatch.setattr(sys, "argv", ["probes", "--run", str(tmp_path), "--out", "x", *args])
        with pytest.raises(PlumblineError, match=match):
            command.main()

    expect_refusal("leave out --picture", "--validation-pack", "x", "--picture", "y")
    expect_refusal("give --validation-pack, the manifest of its validation pack")

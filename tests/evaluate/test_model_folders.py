"""A model folder in Hugging Face form is read whole or refused by name, by every verb that takes one."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from plumbline.cli import export as export_verb
from plumbline.cli import sample
from plumbline.core.errors import PlumblineError
from plumbline.evaluate import score_models
from plumbline.evaluate.probes import __main__ as probe_verb
from plumbline.model import hugging_face_folder, model_folder
from plumbline.model.decoder import create
from plumbline.model.export import hf_export
from plumbline.model.finished_run import FinishedRun
from tests.model_specs import run_spec

SIZES = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 32,
}
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "llama"
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).save_pretrained(folder)
    return folder


def configure(**change: Any) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        content = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(content | change))

    return apply


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in load_file(folder / WEIGHTS).items()}


def reweight(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Callable[[Path], None]:
    return lambda folder: save_file(change(weights(folder)), folder / WEIGHTS, metadata={"format": "pt"})


def shard(change: dict[str, str] | None = None, lost: str = "") -> Callable[[Path], None]:
    """The weights in two files with an index, of which some entries are changed, or a file is lost."""

    def apply(folder: Path) -> None:
        tensors, places = weights(folder), {}
        (folder / WEIGHTS).unlink()
        for name, some in (("a", sorted(tensors)[::2]), ("b", sorted(tensors)[1::2])):
            save_file({key: tensors[key] for key in some}, folder / f"{name}.safetensors", metadata={"format": "pt"})
            places |= dict.fromkeys(some, f"{name}.safetensors")
        (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places | (change or {})}))
        if lost:
            (folder / lost).unlink()

    return apply


def content(name: str, written: bytes) -> Callable[[Path], None]:
    return lambda folder: [(folder / name).write_bytes(written)].clear()


def pickle_weights(folder: Path) -> None:
    torch.save(weights(folder), folder / "pytorch_model.bin")
    (folder / WEIGHTS).unlink()


def rotary(base: float) -> torch.Tensor:
    size = SIZES["hidden_size"] // SIZES["num_attention_heads"]
    return base ** -(torch.arange(0, size, 2) / size)


GAIN, FREQUENCIES = "model.norm.weight", "model.layers.0.self_attn.rotary_emb.inv_freq"
REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "a layer more": (configure(num_hidden_layers=3), r"lacks 'model.layers.2.* left random \(9 in all\)"),
    "a layer less": (configure(num_hidden_layers=1), r"holds 'model.layers.1.* no weight of the model"),
    "another width": (configure(intermediate_size=32), r"'model.layers.0.mlp.*' has the shape \[16, 24\]"),
    "a weight too many": (reweight(lambda held: held | {"head": held[GAIN] * 2}), r"holds 'head', which is no weight"),
    "a weight less": (reweight(lambda held: held.pop(GAIN) * 0 is None or held), r"lacks 'model.norm.weight'"),
    "a huge width": (configure(hidden_size=10**9), r"describes a model of [\d,]{13,} parameters"),
    "a width beyond counting": (configure(hidden_size=4 * 10**18), r"overflowed"),
    "a huge depth": (configure(num_hidden_layers=10**9), r"num_hidden_layers: 1000000000, and the weights are 21"),
    "a depth in words": (configure(num_hidden_layers="many"), r"transformers cannot read it"),
    "no heads": (configure(num_attention_heads=0), r"transformers cannot read it \(ZeroDivisionError"),
    "no object": (content("config.json", b"[]"), r"config.json holds no JSON object"),
    "no JSON": (content("config.json", b'{"a'), r"config.json cannot be read as JSON"),
    "a key twice": (content("config.json", b'{"hidden_size": 16, "hidden_size": 32}'), r"'hidden_size' is there twice"),
    "a lying file": (content(WEIGHTS, pickle.dumps([1]) * 9), r"model.safetensors: cannot be read as weights"),
    "an empty file": (content(WEIGHTS, b""), r"model.safetensors: cannot be read as weights"),
    "a pickle": (pickle_weights, r"pytorch_model.bin is a pickle, .* so it is not read"),
    "a shard less": (shard(lost="b.safetensors"), r"names b.safetensors, of 2 files, which is not there"),
    "a shard elsewhere": (shard({GAIN: "../x/model.safetensors"}), r"names '../x/model.safetensors' as a file"),
    "a pickled shard": (shard({GAIN: "x.bin"}), r"names 'x.bin' as a file of weights; only safetensors"),
    "a lying index": (shard({GAIN: "a.safetensors", "lm_head.weight": "b.safetensors"}), r"lacks '.*', which"),
    "not finite": (reweight(lambda held: held | {GAIN: held[GAIN] * torch.nan}), r"has values that are not finite"),
    "whole numbers": (reweight(lambda held: held | {GAIN: held[GAIN].long()}), r"is of I64, and config.json states no"),
    "another head": (configure(tie_word_embeddings=True), r"says tie_word_embeddings, and the weights of the output"),
    "other frequencies": (reweight(lambda held: held | {FREQUENCIES: rotary(1e6)}), r"holds '.*inv_freq', which is no"),
    "an adapter": (content("adapter_config.json", b"{}"), r"an adapter to another model, which is not read"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_a_whole_model_is_refused_by_name(case: str, llama: Path, tmp_path: Path) -> None:
    spoil, sentence = REFUSED[case]
    folder = shutil.copytree(llama, tmp_path / "model")
    spoil(folder)
    with pytest.raises(PlumblineError, match=sentence) as refusal:
        hugging_face_folder.read_model(folder)
    assert str(folder) in str(refusal.value)


def test_what_is_whole_is_read(llama: Path, tmp_path: Path) -> None:
    """Tied weights are in the file once, buffers that are made anew may be there, shards are one model."""
    expected = weights(llama)
    scaled = {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}
    for name, change in (
        ("shards", shard()),
        ("buffers", reweight(lambda state: state | {FREQUENCIES: rotary(1e4).half()})),
        (
            "scaled",
            lambda folder: [
                shutil.copytree(tmp_path / "buffers", folder, dirs_exist_ok=True),
                configure(rope_parameters=scaled)(folder),
            ].clear(),
        ),
        ("half", reweight(lambda state: {key: value.bfloat16() for key, value in state.items()})),
    ):
        folder = shutil.copytree(llama, tmp_path / name)
        change(folder)
        model = hugging_face_folder.read_model(folder)
        assert all(value.dtype == torch.float32 for value in model.parameters())
        torch.testing.assert_close(dict(model.named_parameters()), expected, rtol=1e-2 if name == "half" else 0, atol=0)
    config = transformers.LlamaConfig(**SIZES, tie_word_embeddings=True)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "tied")
    assert "lm_head.weight" not in weights(tmp_path / "tied")
    tied = hugging_face_folder.read_model(tmp_path / "tied")
    assert tied.lm_head.weight is tied.model.embed_tokens.weight


TINY = {"vocab_size": 40, "bos_token_id": 0, "eos_token_id": 0}
GPT2 = TINY | {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}
NEO = TINY | {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "max_position_embeddings": 32}
NEO |= {"attention_types": [[["global", "local"], 1]]}
KINDS: dict[str, Callable[[], Any]] = {
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2)),
    "neo": lambda: transformers.GPTNeoForCausalLM(transformers.GPTNeoConfig(**NEO)),
    "gptj": lambda: transformers.GPTJForCausalLM(transformers.GPTJConfig(**GPT2, rotary_dim=4)),
    "gpt-neox": lambda: transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**SIZES)),
    "mixtral": lambda: transformers.MixtralForCausalLM(transformers.MixtralConfig(**SIZES, num_local_experts=4)),
    "qwen2": lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**SIZES)),
    "qwen3": lambda: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**SIZES, head_dim=8)),
    "bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig(**SIZES)),
    "bert decoder": lambda: transformers.BertLMHeadModel(transformers.BertConfig(**SIZES, is_decoder=True)),
}
MASK = torch.ones(32, 32).tril()[None, None]
ATTENTION = {"neo": "transformer.h.{}.attn.attention", "gpt-neox": "gpt_neox.layers.{}.attention"}


def with_buffers(kind: str, folder: Path, mask: torch.Tensor) -> None:
    attention = [ATTENTION.get(kind, "transformer.h.{}.attn").format(layer) for layer in (0, 1)]
    buffers = {f"{name}.bias": mask.clone() for name in attention}
    buffers |= {f"{name}.masked_bias": torch.tensor(-1e9) for name in attention}
    reweight(lambda state: state | buffers)(folder)


ONES = torch.ones(1, 1, 32, 32)
BAND = MASK - MASK.tril(-8)


@pytest.mark.parametrize(
    ("mask", "right"),
    [(right, True) for right in (MASK, MASK.bool(), MASK.byte(), BAND)]
    + [(wrong, False) for wrong in (ONES, ONES.bool(), MASK * 0.5, MASK.mT.contiguous())],
    ids=range(8),
)
@pytest.mark.parametrize("kind", ["gpt2", "neo", "gptj", "gpt-neox", "gpt2 without prefix"])
def test_masks_of_earlier_versions(kind: str, mask: torch.Tensor, right: bool, tmp_path: Path) -> None:
    """Only a causal mask is one: other numbers under its name contradict the model, and are refused."""
    kind, _, bare = kind.partition(" ")
    model = KINDS[kind]()
    model.save_pretrained(tmp_path)
    with_buffers(kind, tmp_path, mask)
    if bare:
        reweight(lambda state: {name.removeprefix("transformer."): value for name, value in state.items()})(tmp_path)
    if not right:
        with pytest.raises(PlumblineError, match=r"'.*att.*bias',.*weight"):
            hugging_face_folder.read_model(tmp_path)
        return
    read = hugging_face_folder.read_model(tmp_path)
    torch.testing.assert_close(dict(read.named_parameters()), dict(model.named_parameters()))


def test_ids_that_a_model_has_no_embedding_for_are_refused(llama: Path) -> None:
    """Which a tokenizer with more entries gives; entries that no text has are its padding."""
    model, rows = hugging_face_folder.read_model(llama), SIZES["vocab_size"]
    assert model(torch.tensor([[0, rows - 1]])).logits.shape[1] == 2
    with pytest.raises(PlumblineError, match=rf"{llama}.*{rows}"):
        model(torch.tensor([[0, rows]]))


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "gpt-neox", "bert decoder"])
def test_a_default_of_the_configuration_is_no_count(kind: str, tmp_path: Path) -> None:
    """`max_window_layers` is 28 in every Qwen, and `is_decoder` false in a GPT-NeoX."""
    KINDS[kind]().save_pretrained(tmp_path)
    hugging_face_folder.read_model(tmp_path)


def whole_numbers(state: dict[str, torch.Tensor], part: str) -> dict[str, torch.Tensor]:
    return {
        name.removeprefix("transformer."): (value * 100).to(torch.int8) if part in name else value
        for name, value in state.items()
    }


@pytest.mark.parametrize(
    ("kind", "part", "sentence"),
    [
        ("gpt2", "", "I8, and config.json states"),
        ("gpt2", "c_attn.bias", r"'h.\d.attn.c_attn.bias' is of I8"),
        ("mixtral", "experts.2", r"'model.layers.\d.*experts.2.*' is of I8"),
        ("bert", "none", r"config.json:.*decoder.*\(is_decoder: false\):.*tokens"),
    ],
)
def test_whole_numbers_and_encoders_are_refused(kind: str, part: str, sentence: str, tmp_path: Path) -> None:
    KINDS[kind]().save_pretrained(tmp_path)
    reweight(lambda state: whole_numbers(state, part))(tmp_path)
    with pytest.raises(PlumblineError, match=sentence):
        hugging_face_folder.read_model(tmp_path)


def test_every_verb_refuses_and_the_next_folder_goes_on(
    finished: Path,
    tokenizer_file: Path,
    items_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rows of two folders of one name are kept apart; a pickle and a layer too many end in one sentence each."""

    def verb(module: Any, *args: object) -> None:
        monkeypatch.setattr(sys, "argv", ["plumbline", *map(str, args)])
        module.main()

    whole, other = tmp_path / "a/model", tmp_path / "b/model"
    hf_export.export(FinishedRun.read(finished).model(), tokenizer_path=tokenizer_file, directory=whole)
    for folder in (other, tmp_path / "layer", tmp_path / "lie"):
        shutil.copytree(whole, folder)
    configure(num_hidden_layers=json.loads((whole / "config.json").read_text())["num_hidden_layers"] + 1)(
        tmp_path / "layer"
    )
    (tmp_path / "lie" / WEIGHTS).write_bytes(pickle.dumps([1]) * 9)
    out, shared = tmp_path / "all.csv", ("--items-folder", items_folder, "--limit", 1)
    folders = (tmp_path / "layer", whole, tmp_path / "lie", other)
    with pytest.raises(PlumblineError, match=r"2 of 4 were not scored, .*: .*layer, .*lie$"):
        verb(score_models, *folders, *shared, "--out", out)
    stderr = capsys.readouterr().err
    assert "layer lacks 'model.layers." in stderr and "lie/model.safetensors: cannot be read" in stderr
    assert "Traceback" not in stderr and list(dict.fromkeys(pd.read_csv(out)["run_id"])) == ["hf:a/model", "hf:b/model"]
    with pytest.raises(PlumblineError, match=r"a/../a/model.*model"):
        verb(score_models, whole, tmp_path / "a/../a/model", *shared)
    for case, sentence in (("layer", "lacks 'model.layers."), ("lie", "cannot be read as weights")):
        with pytest.raises(PlumblineError, match=sentence):
            verb(sample, tmp_path / case)
        with pytest.raises(PlumblineError, match=sentence):
            verb(probe_verb, "--checkpoint", tmp_path / case, "--out", tmp_path / "p.parquet", "--device", "cpu")
    verb(sample, finished, "--tokenizer", tokenizer_file, "--prompt", "Harbour", "--temperature", 0, "--samples", 1)
    ours = capsys.readouterr().out.partition("\n")[2]
    verb(sample, whole, "--prompt", "Harbour", "--temperature", 0, "--samples", 1)
    assert capsys.readouterr().out == f"hf:model: samples, not evidence\n{ours}"
    with pytest.raises(PlumblineError, match=r"Hugging Face .*plumbline export"):
        verb(export_verb, whole, "--format", "hf", "--out", tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"layers": 10**9}, r"tensors, and .*model.json says 1000000000 layers"),
        ({"ffn_width": 10**9}, r"'blocks.0.ffn.\w+.weight' does not fit .*model.json: its shape is"),
        ({"layers": 3}, "'blocks.2.*' does not fit .*model.json"),
        ({"layers": 1}, "'blocks.1.*' does not fit .*model.json"),
    ],
)
def test_a_model_of_ours_is_compared_before_it_is_built(change: dict[str, int], sentence: str, tmp_path: Path) -> None:
    model_folder.write_model(tmp_path, create(run_spec().model, 1))
    content = json.loads((tmp_path / "model.json").read_text())
    content["model"] |= change
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(PlumblineError, match=sentence):
        model_folder.read_model(tmp_path)

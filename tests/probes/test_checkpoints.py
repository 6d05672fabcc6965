"""One checkpoint, from the command line: models of the Hugging Face library beside what its own eager attention and
plain hooks say, our own runs, texts, pictures, and what is refused."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from torch.nn.functional import cross_entropy

from plumbline import frames
from plumbline.cli import PlumblineError
from plumbline.model.hf import export
from plumbline.probes import __main__ as command
from plumbline.probes import read
from plumbline.probes.attention_statistics import AttentionStatistics
from tests.model_specs import run_spec
from tests.probes.helpers import scrambled, tokens
from tests.train.helpers import make_packs, settings, train

SIZES = {
    "vocab_size": 90,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "max_position_embeddings": 160,
    "initializer_range": 0.25,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0, "original_max_position_embeddings": 40}
GPT2 = {
    name: SIZES[old]
    for name, old in {
        "vocab_size": "vocab_size", "n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head":
        "num_attention_heads", "n_positions": "max_position_embeddings", "initializer_range": "initializer_range",
        "bos_token_id": "bos_token_id", "eos_token_id": "eos_token_id"}.items()
}  # fmt: skip
CONFIGS: dict[str, Callable[[], Any]] = {
    "llama": lambda: transformers.LlamaConfig(**SIZES, num_key_value_heads=2),
    "llama-biased-yarn-head-dim": lambda: transformers.LlamaConfig(
        **SIZES, num_key_value_heads=4, attention_bias=True, head_dim=16, rope_parameters=YARN
    ),
    "mistral": lambda: transformers.MistralConfig(**SIZES, num_key_value_heads=1, sliding_window=None),
    "qwen2": lambda: transformers.Qwen2Config(**SIZES, num_key_value_heads=2),
    "gpt2": lambda: transformers.GPT2Config(**GPT2),
    "gpt2-scaled-by-layer": lambda: transformers.GPT2Config(**GPT2, scale_attn_by_inverse_layer_idx=True),
    "gpt_neox": lambda: transformers.GPTNeoXConfig(**SIZES, rotary_pct=0.25),
    "gpt_neox-sequential": lambda: transformers.GPTNeoXConfig(**SIZES, use_parallel_residual=False),
}


def made(name: str, folder: Path) -> Path:
    """A model with random weights and biases, saved."""
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS[name]())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    return folder


def probed(monkeypatch: pytest.MonkeyPatch, folder: Path, *given: Any) -> pd.DataFrame:
    """The frame that the command writes."""
    out = folder.parent / "probes.parquet"
    words = ["probes", "--checkpoint", folder, "--out", out, "--device", "cpu", *given]
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    command.main()
    return frames.read(out, "probes")


class Independent:
    """What a plain transformers model with eager attention says, on one batch: no code of ours."""

    def __init__(self, folder: Path, batch_BT: torch.Tensor) -> None:
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
        self.config, self.inputs_BT, self.targets_BT = self.model.config, batch_BT[:, :-1], batch_BT[:, 1:]
        self.heads = self.config.num_attention_heads
        self.seen: dict[tuple[str, int], torch.Tensor] = {}
        hooks = []
        for layer, block in enumerate(self.blocks()):
            attention, ffn = self.parts(block)
            for name in ("q_proj", "k_proj", "c_attn", "query_key_value"):
                if hasattr(attention, name):
                    hooks.append(getattr(attention, name).register_forward_hook(self.keep(name, layer)))
            hooks.append(ffn.register_forward_hook(self.keep("ffn", layer)))
        with torch.no_grad():
            out = self.model(self.inputs_BT, output_attentions=True)
        for hook in hooks:
            hook.remove()
        self.attentions, self.loss = out.attentions, self.nats(out.logits)

    def blocks(self) -> Any:
        base = self.model.base_model
        return base.h if hasattr(base, "h") else base.layers

    def parts(self, block: Any) -> tuple[Any, Any]:
        names = ("self_attn", "attn", "attention")
        return next(getattr(block, name) for name in names if hasattr(block, name)), block.mlp

    def keep(self, name: str, layer: int) -> Callable[..., None]:
        return lambda _, __, output: self.seen.update({(name, layer): output})

    def nats(self, logits_BTV: torch.Tensor) -> float:
        return float(cross_entropy(logits_BTV.double().flatten(0, 1), self.targets_BT.flatten()))

    def vectors(self, layer: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Queries by head and keys by key head (B, T, W), before positions, sliced by hand."""
        if ("q_proj", layer) in self.seen:
            width = self.seen["q_proj", layer].shape[-1] // self.heads
            query, key = self.seen["q_proj", layer], self.seen["k_proj", layer]
        elif ("c_attn", layer) in self.seen:
            width = self.config.n_embd // self.heads
            query, key, _ = self.seen["c_attn", layer].split(self.config.n_embd, dim=-1)
        else:
            width = self.config.hidden_size // self.heads
            of_heads = self.seen["query_key_value", layer].split(3 * width, dim=-1)
            return [x[..., :width] for x in of_heads], [x[..., width : 2 * width] for x in of_heads]
        return list(query.split(width, dim=-1)), list(key.split(width, dim=-1))

    def weights(self, layer: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Weights (W, D) of queries by head and of keys by key head."""
        attention, _ = self.parts(self.blocks()[layer])
        width = getattr(self.config, "head_dim", None) or self.config.hidden_size // self.heads
        if hasattr(attention, "q_proj"):
            query, key = attention.q_proj.weight, attention.k_proj.weight
        elif hasattr(attention, "c_attn"):
            query, key, _ = attention.c_attn.weight.T.chunk(3)
        else:
            heads = attention.query_key_value.weight.split(3 * width)
            return [x[:width].double() for x in heads], [x[width : 2 * width].double() for x in heads]
        return [x.double() for x in query.split(width)], [x.double() for x in key.split(width)]

    def loss_without_queries(self, layers: range) -> float:
        """The weights and biases of queries put to zero, for good."""
        with torch.no_grad():
            for layer in layers:
                attention, _ = self.parts(self.blocks()[layer])
                if hasattr(attention, "q_proj"):
                    for value in attention.q_proj.parameters():
                        value.zero_()
                elif hasattr(attention, "c_attn"):
                    attention.c_attn.weight[:, : self.config.n_embd] = 0
                    attention.c_attn.bias[: self.config.n_embd] = 0
                else:
                    width = self.config.hidden_size // self.heads
                    for value in attention.query_key_value.parameters():
                        value.unflatten(0, (self.heads, 3 * width))[:, :width] = 0
            return self.nats(self.model(self.inputs_BT).logits)


@pytest.mark.parametrize("name", CONFIGS)
def test_as_transformers_own_attention_and_plain_hooks_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """Every number, to 1e-5."""
    folder = made(name, tmp_path / name)
    ids = np.random.default_rng(3).integers(3, 40, (3, 150))
    np.save(tmp_path / "ids.npy", ids)
    frame = probed(monkeypatch, folder, "--tokens", tmp_path / "ids.npy", "--sequences", 3)
    found = {(row.probe, row.layer, row.head): row for row in frame.fillna(-1).itertuples()}
    own = Independent(folder, torch.from_numpy(ids))
    checked = set()

    def check(probe: str, layer: int, head: int, value: float, null: float = -1) -> None:
        assert found[probe, layer, head].value == pytest.approx(value, rel=1e-5, abs=1e-6), (probe, layer, head)
        assert found[probe, layer, head].null == pytest.approx(null, rel=1e-5), (probe, layer, head)
        checked.add((probe, layer, head))

    copies, uniform = [], []
    for layer, p_BHTT in enumerate(own.attentions):
        logarithms_T = torch.arange(1, 150).double().log()
        for head in range(own.heads):
            p_BTT = p_BHTT[:, head].double()
            entropy_BT = -torch.special.xlogy(p_BTT, p_BTT).sum(-1)
            check("entropy", layer, head, float((entropy_BT[:, 1:] / logarithms_T[1:]).mean()), 1.0)
        for probe, vectors in zip(("query_norm", "key_norm"), own.vectors(layer)):
            for head, vectors_BTW in enumerate(vectors):
                check(probe, layer, head, float(vectors_BTW.double().norm(dim=-1).mean()))
        check("ffn_write_rms", layer, -1, float(own.seen["ffn", layer].double().square().mean().sqrt()))
        queries, keys = own.weights(layer)
        for head, weight_WD in enumerate(queries):
            form_DD = weight_WD.T.detach() @ keys[head * len(keys) // own.heads].detach()
            check("bilinear_top", layer, head, float(torch.linalg.matrix_norm(form_DD, ord=2)))
        if layer < 2:  # the lower half of five
            weights = []
            for sequence, p_HTT in zip(ids[:, :-1].tolist(), p_BHTT):
                for i, token in enumerate(sequence):
                    if token in sequence[:i]:
                        j = max(j for j in range(i) if sequence[j] == token)
                        weights += p_HTT[:, i, j].tolist()
                        uniform.append(1 / (i + 1))
            copies.append(sum(weights) / len(weights))
            check("lower_copy", layer, -1, copies[-1], sum(uniform) / len(uniform))
    check("lower_copy", -1, -1, sum(copies) / 2, sum(uniform) / len(uniform))
    check("loss", -1, -1, own.loss)
    silenced = own.loss_without_queries(range(2, 5))
    assert abs(silenced - own.loss) > 1e-4 * own.loss
    for probe in ("loss_no_query", "loss_no_key", "loss_neither"):
        check(probe, -1, -1, silenced, own.loss)
    left = {probe for probe, *_ in found.keys() - checked}
    assert left == {"logit_mean_abs", "logit_rms", "logit_row_max", "logit_max"}, "of these see the next test"
    assert frame.step.isna().all() and frame.fraction.isna().all() and frame.run_id.nunique() == 1


@pytest.mark.parametrize("name", CONFIGS)
def test_the_scores_are_those_that_make_the_attention(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """Eager attention does not show scores, but softmax is the only step after them: scores that are caught on their
    way into it have the statistics that the probe reads."""
    folder = made(name, tmp_path / name)
    ids = np.random.default_rng(3).integers(3, 90, (1, 140))
    np.save(tmp_path / "ids.npy", ids)
    frame = probed(monkeypatch, folder, "--tokens", tmp_path / "ids.npy", "--probes", "attention_statistics",
                   "--context", 140)  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    caught: list[torch.Tensor] = []
    original = torch.nn.functional.softmax

    def softmax(scores: torch.Tensor, *given: Any, **named: Any) -> torch.Tensor:
        caught.append(scores.double())
        return original(scores, *given, **named)

    monkeypatch.setattr(torch.nn.functional, "softmax", softmax)
    with torch.no_grad():
        model(torch.from_numpy(ids)[:, :-1])
    assert len(caught) == 5
    values = frame.set_index(["probe", "layer", "head"]).value
    seen_TT = torch.ones(139, 139).tril().bool()
    for layer, z_BHTT in enumerate(caught):
        for head in range(4):
            z = z_BHTT[0, head][seen_TT]
            expected = {
                "logit_mean_abs": z.abs().mean(),
                "logit_rms": z.square().mean().sqrt(),
                "logit_row_max": z_BHTT[0, head].masked_fill(~seen_TT, -math.inf).amax(-1).mean(),
                "logit_max": z.max(),
            }
            for probe, value in expected.items():
                assert values[probe, layer, head] == pytest.approx(float(value), rel=1e-5)


def test_our_export_reads_as_our_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same weights by both roads."""
    from tokenizers import Tokenizer, models

    model = scrambled().float()
    vocabulary = {f"t{number}": number for number in range(97)}
    Tokenizer(models.WordLevel(vocabulary, unk_token="t0")).save(str(tmp_path / "tokenizer.json"))
    export(model, tmp_path / "tokenizer.json", tmp_path / "llama")
    batch_BT = tokens(model)
    np.save(tmp_path / "ids.npy", batch_BT.numpy())
    frame = probed(monkeypatch, tmp_path / "llama", "--tokens", tmp_path / "ids.npy", "--sequences", 2,
                   "--probes", "attention_statistics")  # fmt: skip
    expected = read(model, [AttentionStatistics()], batch_BT)
    assert frame[["probe", "layer", "head"]].values.tolist() == [[r.probe, r.layer, r.head] for r in expected]
    assert frame.value.tolist() == pytest.approx([reading.value for reading in expected], rel=1e-5)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, with its packs beside it."""
    work = tmp_path_factory.mktemp("ours")
    packs = make_packs(work)
    assert train(run_spec(), settings(packs, work)) == 0
    return work / "out"


def test_a_run_of_ours(monkeypatch: pytest.MonkeyPatch, ours: Path) -> None:
    """On its validation pack: its own loss on those sequences, and how far it has come from where it started."""
    manifest = ours.parent / "validation.json"
    frame = probed(monkeypatch, ours, "--validation", manifest, "--sequences", 10)
    assert set(frame.step) == {12} and set(frame.fraction) == {1.0} and set(frame.run_id) == {run_spec().run_id}
    values = frame.groupby("probe").value
    outcome = json.loads((ours / "outcome.json").read_text())
    assert values.mean()["loss"] == pytest.approx(outcome["validation_loss"], rel=1e-6)
    assert (values.min()[["bilinear_displacement", "bilinear_relative"]] > 0.01).all()
    assert not [name for name in values.groups if name.startswith("locality")]
    labels = frames.metadata(ours.parent / "probes.parquet")
    assert (labels["kind"], labels["sequences"], labels["context"]) == ("plumbline", "10", "32")
    again = probed(monkeypatch, ours, "--validation", manifest, "--against", ours, "--probes", "ffn_write,locality")
    assert set(again.probe) == {"ffn_write_rms"}, "a run has not moved from itself"


def test_two_points_of_a_models_training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, later = made("llama", tmp_path / "first"), tmp_path / "later"
    model = transformers.AutoModelForCausalLM.from_pretrained(first)
    with torch.no_grad():
        model.model.embed_tokens.weight[5] += 1.0
    model.save_pretrained(later)
    np.save(tmp_path / "ids.npy", np.full((1, 30), 5))
    frame = probed(monkeypatch, first, "--against", later, "--tokens", tmp_path / "ids.npy", "--probes", "locality")
    assert set(frame.layer.dropna()) == {2, 3, 4}
    # One token only: its stream moves in one direction at each layer.
    assert (frame[frame.probe == "projector_rank"].value == 1).all()
    other = made("gpt2", tmp_path / "gpt2")
    with pytest.raises(PlumblineError, match=r"--against: .*gpt2 is not the same model as .*first at another point"):
        probed(monkeypatch, first, "--against", other, "--tokens", tmp_path / "ids.npy")


def test_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A text of one's own by the folder's tokenizer; none at all; one by a tokenizer of ours; one that is too short."""
    folder = made("gpt2", tmp_path / "gpt2")
    with pytest.raises(PlumblineError, match=r"--checkpoint: .*gpt2 holds no tokenizer.*give --tokenizer or --tokens"):
        probed(monkeypatch, folder)
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = {letter: 3 + index for index, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    made_of = Tokenizer(models.WordLevel(letters | {"?": 0, "<|endoftext|>": 2}, unk_token="?"))
    made_of.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    transformers.PreTrainedTokenizerFast(tokenizer_object=made_of, unk_token="?").save_pretrained(folder)
    (tmp_path / "text.txt").write_text("the quick brown fox " * 8)
    chosen = ["--probes", "lower_copy", "--context", 50]
    text = probed(monkeypatch, folder, "--text", tmp_path / "text.txt", *chosen)
    labels = frames.metadata(tmp_path / "probes.parquet")
    assert (labels["sequences"], labels["context"], labels["separator"]) == ("3", "50", "2")
    ids = [letters.get(letter, 0) for letter in ("the quick brown fox " * 8)[:150]]
    np.save(tmp_path / "ids.npy", np.array(ids))
    assert probed(monkeypatch, folder, "--tokens", tmp_path / "ids.npy", *chosen).equals(text)
    built_in = probed(monkeypatch, folder, *chosen)
    assert frames.metadata(tmp_path / "probes.parquet")["text"] == "Python's language reference"
    assert not built_in.equals(text)
    made_of.save(str(tmp_path / "tokenizer.json"))
    given = ["--tokenizer", tmp_path / "tokenizer.json"]
    assert probed(monkeypatch, folder, "--text", tmp_path / "text.txt", *given, *chosen).equals(text)
    (tmp_path / "text.txt").write_text("the quick brown fox")
    with pytest.raises(PlumblineError, match=r"text.txt has 19 tokens, less than one sequence of 160"):
        probed(monkeypatch, made("gpt_neox", tmp_path / "neox"), "--text", tmp_path / "text.txt", *given)


def test_a_picture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A panel a probe and one for numbers of no layer; the same bytes again."""
    from plumbline.probes import _picture

    folder = made("llama", tmp_path / "llama")
    np.save(tmp_path / "ids.npy", np.random.default_rng(1).integers(0, 90, (2, 40)))
    given = ("--tokens", tmp_path / "ids.npy", "--picture", tmp_path / "picture.png")
    frame = probed(monkeypatch, folder, *given)
    content = (tmp_path / "picture.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    probed(monkeypatch, folder, *given)
    assert (tmp_path / "picture.png").read_bytes() == content
    figure = _picture.draw(frame, "title")
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    assert set(frame[frame.layer.notna()].probe) | {"of no layer (null)", ""} == set(panels)
    dashed = [line for line in panels["entropy"].lines if line.get_linestyle() == "--"]
    assert [list(line.get_ydata()) for line in dashed] == [[1.0] * 5]
    means = frame[frame.probe == "entropy"].groupby("layer").value.mean().tolist()
    assert any(list(line.get_ydata()) == means for line in panels["entropy"].lines)
    [words] = [text.get_text() for text in panels["of no layer (null)"].texts]
    assert [line.split()[0] for line in words.split("\n")] == frame[frame.layer.isna()].probe.tolist()


def test_what_cannot_be_probed_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ours: Path) -> None:
    def refused(match: str, folder: Path, *given: Any) -> None:
        with pytest.raises(PlumblineError, match=match):
            probed(monkeypatch, folder, *given)

    ids, long = tmp_path / "ids.npy", tmp_path / "long.npy"
    np.save(ids, np.zeros((1, 20), dtype=int))
    np.save(long, np.full((1, 20), 90))
    folder = made("llama", tmp_path / "llama")
    refused("holds neither manifest.json .* nor config.json", tmp_path, "--tokens", ids)
    refused(r"there is no probe 'lower_coppy'; did you mean 'lower_copy'\?", folder, "--probes", "lower_coppy")
    refused("'locality' compares two points of training; give the later one as --against", folder, "--probes",
            "entropy, locality".replace("entropy", "ffn_write"))  # fmt: skip
    refused("--text and --tokens are two texts", folder, "--text", ids, "--tokens", ids)
    refused("ids from 90 to 90, and the model has 90 entries", folder, "--tokens", long)
    refused("reads 160 tokens at most, not 161", folder, "--tokens", ids, "--context", 161)
    refused("--sequences must be at least 1", folder, "--tokens", ids, "--sequences", 0)
    refused("a run's folder holds no tokenizer", ours)
    (tmp_path / "text.npy").write_text("words")
    refused("cannot be read as an array", folder, "--tokens", tmp_path / "text.npy")
    np.save(ids, np.zeros((2, 20)))
    refused(r"holds float64 of shape \(2, 20\)", folder, "--tokens", ids)
    np.save(ids, np.zeros((1, 20), dtype=int))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "llama4"}))
    refused("is a 'llama4.*'; probes know their way in .*did you mean 'llama'", folder, "--tokens", ids)
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 6}))
    refused(r"lacks 'model.layers.5\..*which would be left random", folder, "--tokens", ids)
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 64}))
    refused("does not hold weights of its config", folder, "--tokens", ids)


def test_a_sliding_window_is_refused_where_it_bites(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch.manual_seed(7)
    config = transformers.MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=16)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "mistral")
    np.save(tmp_path / "ids.npy", np.arange(60) % 9)
    given = ("--tokens", tmp_path / "ids.npy", "--probes", "attention_statistics")
    with pytest.raises(PlumblineError, match=r"attention with a mask that is not causal alone \(a sliding window"):
        probed(monkeypatch, tmp_path / "mistral", *given, "--context", 30)
    assert len(probed(monkeypatch, tmp_path / "mistral", *given, "--context", 10)) == 5 * 4 * 5
    given = ("--tokens", tmp_path / "ids.npy", "--probes", "ffn_write", "--context", 30)
    assert len(probed(monkeypatch, tmp_path / "mistral", *given)) == 5


def test_flags_of_the_other_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused(match: str, *given: str) -> None:
        monkeypatch.setattr(sys, "argv", ["probes", "--run", str(tmp_path), "--out", "x", *given])
        with pytest.raises(PlumblineError, match=match):
            command.main()

    refused("leave out --picture", "--validation", "x", "--picture", "y")
    refused("give --validation, the manifest of its validation pack")

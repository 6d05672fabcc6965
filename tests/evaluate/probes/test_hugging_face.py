"""Models of the Hugging Face library, beside what its own eager attention and plain hooks say."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch.nn.functional import cross_entropy

from plumbline.evaluate.probes import __main__ as command
from plumbline.evaluate.probes import read
from plumbline.evaluate.probes.attention_statistics import AttentionStatistics
from plumbline.model.export.hf_export import export
from plumbline.model.hf_families import FAMILIES
from tests.evaluate.probes.hugging_face_models import CONFIGS, probe_folder, save_model
from tests.evaluate.probes.naive_computations import scramble, tokens


class Independent:
    """What a plain transformers model with eager attention states, on one batch: no code of ours."""

    def __init__(self, folder: Path, batch_BT: torch.Tensor) -> None:
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
        self.config = self.model.config.get_text_config()
        self.inputs_BT, self.targets_BT = batch_BT[:, :-1], batch_BT[:, 1:]
        self.heads = self.config.num_attention_heads
        self.seen: dict[tuple[str, int], torch.Tensor] = {}
        hooks = []
        for layer, block in enumerate(self.blocks()):
            attention, ffn = self.parts(block)
            for name in ("q_proj", "k_proj", "c_attn", "query_key_value", "qkv_proj", "q_norm", "k_norm"):
                if hasattr(attention, name):
                    hooks.append(getattr(attention, name).register_forward_hook(self.keep(name, layer)))
            hooks.append(ffn.register_forward_hook(self.keep("ffn", layer)))
        with torch.no_grad():
            out = self.model(self.inputs_BT, output_attentions=True)
        for hook in hooks:
            hook.remove()
        self.attentions, self.loss = out.attentions, self.nats(out.logits)

    def blocks(self) -> Any:
        base = getattr(self.model.base_model, "language_model", self.model.base_model)
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
        normed = [self.seen[name, layer] for name in ("q_norm", "k_norm") if (name, layer) in self.seen]
        if normed and normed[0].ndim == 4:  # heads before tokens, or behind
            query, key = (x.movedim(next(axis for axis in (1, 2) if x.shape[axis] < 10), 0) for x in normed)
            return list(query), list(key)
        if normed:
            width = self.config.hidden_size // self.heads
            query, key = normed
        elif ("qkv_proj", layer) in self.seen:
            width, together = self.config.hidden_size // self.heads, self.seen["qkv_proj", layer]
            edges = [self.heads * width, self.config.num_key_value_heads * width]
            query, key, _ = together.tensor_split([edges[0], sum(edges)], dim=-1)
        elif ("q_proj", layer) in self.seen:
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
        elif hasattr(attention, "qkv_proj"):
            edges = [self.heads * width, self.config.num_key_value_heads * width]
            query, key, _ = attention.qkv_proj.weight.tensor_split([edges[0], sum(edges)])
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
                elif hasattr(attention, "qkv_proj"):
                    attention.qkv_proj.weight[: self.config.hidden_size] = 0
                elif hasattr(attention, "c_attn"):
                    attention.c_attn.weight[:, : self.config.n_embd] = 0
                    attention.c_attn.bias[: self.config.n_embd] = 0
                else:
                    width = self.config.hidden_size // self.heads
                    for value in attention.query_key_value.parameters():
                        value.unflatten(0, (self.heads, 3 * width))[:, :width] = 0
            return self.nats(self.model(self.inputs_BT).logits)


@pytest.mark.parametrize("name", CONFIGS)
def test_as_transformers_and_plain_hooks_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    """Every number, to 1e-5."""
    folder = save_model(name, tmp_path / name)
    ids = np.random.default_rng(3).integers(3, 40, (3, 150))
    np.save(tmp_path / "ids.npy", ids)
    frame = probe_folder(monkeypatch, folder, "--token-ids", tmp_path / "ids.npy", "--sequences", 3)
    values = {(row.probe, row.layer, row.head): row for row in frame.fillna(-1).itertuples()}
    own = Independent(folder, torch.from_numpy(ids))
    checked = set()

    def check(probe: str, layer: int, head: int, value: float, null: float = -1) -> None:
        assert values[probe, layer, head].value == pytest.approx(value, rel=1e-5, abs=1e-6), (probe, layer, head)
        assert values[probe, layer, head].null == pytest.approx(null, rel=1e-5), (probe, layer, head)
        checked.add((probe, layer, head))

    copies, uniform, alone = [], [], sum(1 / keys for keys in range(2, 150)) / 148
    for layer, p_BHTT in enumerate(own.attentions):
        logarithms_T = torch.arange(1, 150).double().log()
        for head in range(own.heads):
            p_BTT = p_BHTT[:, head].double()
            entropy_BT = -torch.special.xlogy(p_BTT, p_BTT).sum(-1)
            check("entropy", layer, head, float((entropy_BT[:, 1:] / logarithms_T[1:]).mean()), 1.0)
            largest = float(p_BTT[:, 1:].amax(-1).mean())
            check("concentration", layer, head, largest, alone)
            check("largest_weight", layer, head, largest, alone)
            check("weight_sum", layer, head, 1.0)
        norm_of_head = ("q_norm", layer) in own.seen and own.seen["q_norm", layer].ndim == 4
        for probe, vectors in zip(("query_norm", "key_norm"), own.vectors(layer)):
            for head, vectors_BTW in enumerate(vectors):
                length = float(vectors_BTW.double().norm(dim=-1).mean())
                check(probe, layer, head, length, vectors_BTW.shape[-1] ** 0.5 if norm_of_head else -1)
        check("ffn_write_rms", layer, -1, float(own.seen["ffn", layer].double().square().mean().sqrt()))
        queries, keys = own.weights(layer)
        for head, weight_WD in enumerate(queries) if ("q_norm", layer) not in own.seen else ():
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
    rest = {probe for probe, *_ in values.keys() - checked}
    statistics = {"logit_mean_abs", "logit_rms", "logit_row_max", "logit_max"}
    assert rest == {*statistics, "logits_beyond"}, "of these see the next test"
    assert frame.step.isna().all() and frame.fraction.isna().all() and frame.run_id.nunique() == 1


@pytest.mark.parametrize("name", CONFIGS)
def test_scores_make_the_attention(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    """Eager attention does not show scores, but softmax is the only step after them: scores that are caught on their
    way into it have the statistics that the probe reads."""
    folder = save_model(name, tmp_path / name)
    ids = np.random.default_rng(3).integers(3, 90, (1, 140))
    np.save(tmp_path / "ids.npy", ids)
    frame = probe_folder(monkeypatch, folder, "--token-ids", tmp_path / "ids.npy", "--probes", "attention_statistics",
                   "--context", 140)  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    caught: list[torch.Tensor] = []
    original = torch.nn.functional.softmax

    def softmax(scores: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        caught.append(scores.double())
        return original(scores, *args, **options)

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

    model = scramble().float()
    vocabulary = {f"t{number}": number for number in range(97)}
    Tokenizer(models.WordLevel(vocabulary, unk_token="t0")).save(str(tmp_path / "tokenizer.json"))
    export(model, tmp_path / "tokenizer.json", tmp_path / "llama")
    batch_BT = tokens(model)
    np.save(tmp_path / "ids.npy", batch_BT.numpy())
    frame = probe_folder(monkeypatch, tmp_path / "llama", "--token-ids", tmp_path / "ids.npy", "--sequences", 2,
                   "--probes", "attention_statistics")  # fmt: skip
    expected = read(model, [AttentionStatistics()], batch_BT)
    assert frame[["probe", "layer", "head"]].values.tolist() == [[r.probe, r.layer, r.head] for r in expected]
    assert frame.value.tolist() == pytest.approx([probe_value.value for probe_value in expected], rel=1e-5)


def test_the_help_names_every_family_that_is_read() -> None:
    text = command.arguments().format_help().lower().replace("-", "")
    assert [kind for kind in FAMILIES if kind.split("_text")[0].replace("_", "") not in text] == []


def test_nothing_is_fetched_to_read_a_model(tmp_path: Path) -> None:
    """In a separate process, where a name is looked up or a connection is opened by no one."""
    folder = save_model("llama", tmp_path / "model")
    np.save(tmp_path / "ids.npy", np.arange(64).reshape(2, 32))
    watch = "import sys; sys.addaudithook(lambda event, given: event in ('socket.connect', 'socket.getaddrinfo') and "
    watch += "print('ASKED', given, flush=True)); import runpy; "
    watch += "runpy.run_module('plumbline.evaluate.probes', run_name='__main__')"
    args = ["--checkpoint", folder, "--token-ids", tmp_path / "ids.npy", "--out", tmp_path / "p.parquet"]
    online = {name: value for name, value in os.environ.items() if not name.endswith("_OFFLINE")}
    done = subprocess.run(
        [sys.executable, "-c", watch, *map(str, args), "--device", "cpu"], capture_output=True, text=True, env=online
    )
    assert done.returncode == 0 and "ASKED" not in done.stdout, done.stdout + done.stderr

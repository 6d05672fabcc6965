"""Families of the Hugging Face library beside its own eager attention: windows, caps, norms; what is refused."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from plumbline.core.errors import PlumblineError
from plumbline.evaluate.probes import _transformers
from plumbline.model.hf_families import FAMILIES
from tests.evaluate.probes.hugging_face_models import CONFIGS, TYPES, probe_folder, save_model

WINDOW = {"sliding_window": 16}
QWEN_WINDOW = WINDOW | {"layer_types": TYPES, "use_sliding_window": True}
#: Name -> (configuration, changes): what a mask, a cap or a norm does to attention.
ATTENTIONS: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in CONFIGS} | {
    "mistral-window": ("mistral", WINDOW),
    "phi3-window": ("phi3", WINDOW),
    "qwen2-window": ("qwen2", QWEN_WINDOW),
    "qwen3-window": ("qwen3", QWEN_WINDOW),
    "gemma2-window": ("gemma2", WINDOW),
    "gemma2-no-cap": ("gemma2", {"attn_logit_softcapping": None}),
    "gemma3_text-window": ("gemma3_text", WINDOW),
    "gemma3-window": ("gemma3", WINDOW),
    "phi-qk-norm": ("phi", {"qk_layernorm": True}),
}


@pytest.mark.parametrize("name", ATTENTIONS)
@torch.no_grad()
def test_attention_is_what_the_library_computes(tmp_path: Path, name: str) -> None:
    """Every weight of every head, above one chunk of queries, and the logits that they lead to."""
    base, changes = ATTENTIONS[name]
    folder = save_model(base, tmp_path / name, **changes)
    tokens_BT = torch.from_numpy(np.random.default_rng(4).integers(3, 90, (1, 150)))
    own = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    stated = own(tokens_BT, output_attentions=True)
    subject = _transformers.load(folder)
    subject.module.eval()
    weights: dict[int, torch.Tensor] = {}

    def gather(layer: int, iterate: Any) -> None:
        parts = [torch.nn.functional.pad(part.weights, (0, 150 - part.weights.shape[-1])) for part in iterate()]
        weights[layer] = torch.cat(parts, dim=2)

    with contextlib.ExitStack() as stack:
        for layer in range(subject.layers):
            stack.enter_context(subject.watch("weights", layer, gather))
        logits_BTV = subject.logits(tokens_BT)
    assert weights.keys() == set(range(5))
    for layer, p_BHTT in enumerate(stated.attentions):
        torch.testing.assert_close(weights[layer], p_BHTT, rtol=1e-4, atol=2e-6)
        types = getattr(own.config.get_text_config(), "layer_types", None) or ["sliding_attention"] * 5
        windowed = name.endswith("window") and types[layer] == "sliding_attention"
        assert (p_BHTT[0, :, -1] > 0).sum(-1).max() == 16 if windowed else (p_BHTT[0, :, -1, 0] > 0).any()
    scale = float(stated.logits.abs().max())
    torch.testing.assert_close(logits_BTV, stated.logits, rtol=1e-4, atol=1e-4 * scale)


@torch.no_grad()
def test_a_cap_is_seen(tmp_path: Path) -> None:
    """The capped family would have other weights without its cap: the test above is one of it."""
    capped, plain = (save_model("gemma2", tmp_path / str(cap), attn_logit_softcapping=cap) for cap in (3.0, None))
    tokens_BT = torch.arange(3, 43)[None]
    first, second = (_transformers.load(folder).logits(tokens_BT) for folder in (capped, plain))
    assert float((first - second).abs().max()) > 1e-3


def test_queries_after_the_layer_norm_of_a_phi(tmp_path: Path) -> None:
    folder = save_model("phi", tmp_path / "phi", qk_layernorm=True)
    subject = _transformers.load(folder)
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    norms = [getattr(subject.blocks[1].self_attn, name) for name in ("q_layernorm", "k_layernorm")]
    outputs: list[torch.Tensor] = []
    for norm in norms:
        norm.register_forward_hook(lambda _, __, output: outputs.append(output))
    with subject.watch("query_key", 1, lambda _, q_BHTW, k_BGTW: seen.append((q_BHTW, k_BGTW))):
        subject.logits(torch.arange(3, 43)[None])
    assert [x.shape for x in seen[0]] == [(1, 4, 40, 12), (1, 2, 40, 12)]
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(seen[0], outputs, strict=True))
    assert subject.normalises_query_key(1)


class TestWhatAFamilyCannotAnswer:
    def test_is_left_out_of_all_and_refused_alone(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture
    ) -> None:
        """A form behind a QK-norm, and rows cut by a window: every other number is there, the same as within it."""
        np.save(tmp_path / "ids.npy", np.random.default_rng(5).integers(3, 40, (1, 60)))
        ids = ("--token-ids", tmp_path / "ids.npy", "--sequences", 1)
        for base, lost in (("qwen3", {"bilinear"}), ("gemma2", set()), ("mistral", set())):
            folder = save_model(base, tmp_path / base, **({} if lost else WINDOW))
            lost = lost or {"attention_statistics", "lower_copy"}
            frame = probe_folder(monkeypatch, folder, *ids)
            stderr = capfd.readouterr().err
            assert {name for name in (*lost, "ffn_write", "upper_ablation") if f"{name} is left out" in stderr} == lost
            probes = set(frame.probe)
            assert {"concentration", "ffn_write_rms", "query_norm", "loss_no_query"} < probes
            assert ("bilinear_top" in probes) == ("bilinear" not in lost)
            assert ("entropy" in probes) == ("lower_copy" in probes) == ("lower_copy" not in lost)
            for name in lost:
                with pytest.raises(PlumblineError, match=rf"--probes: {name} does not go with .*{base}.*a {base} "):
                    probe_folder(monkeypatch, folder, *ids, "--probes", f"ffn_write,{name}")

    def test_the_context_that_is_named_goes(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        folder = save_model("gemma3_text", tmp_path / "gemma3", **WINDOW)
        np.save(tmp_path / "ids.npy", np.random.default_rng(5).integers(3, 40, 60))
        options = ("--token-ids", tmp_path / "ids.npy", "--probes", "attention_statistics")
        with pytest.raises(PlumblineError, match=r"16.*--context 16.*attention_co"):
            probe_folder(monkeypatch, folder, *options, "--context", 17)
        assert len(probe_folder(monkeypatch, folder, *options, "--context", 16)) == 5 * 4 * 5

    def test_scores_behind_a_mask(self, tmp_path: Path) -> None:
        """Whoever asks the model itself, past the command."""
        subject = _transformers.load(save_model("mistral", tmp_path / "mistral", **WINDOW))
        with (
            subject.watch("scores", 2, lambda layer, scores: None),
            pytest.raises(PlumblineError, match=r"causal.*\(a sliding window"),
        ):
            subject.logits(torch.arange(3, 33)[None])

    def test_tokens_that_see_what_follows(self, tmp_path: Path) -> None:
        config = CONFIGS["gemma3_text"]()
        config.use_bidirectional_attention = True
        config.save_pretrained(tmp_path)
        with pytest.raises(PlumblineError, match=r"gemma3_text .*use_bidirectional_attention in its config\.json"):
            _transformers.read_config(tmp_path)


#: Decoders of the library: its causal language models that are no encoder-decoders.
DECODERS = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.keys() & CONFIG_MAPPING_NAMES.keys())


def test_every_other_decoder_of_the_library_is_refused_by_name(tmp_path: Path) -> None:
    """From its config's type alone, with the list of what is read; no family is named that the library has not."""
    assert len(DECODERS) > 100 and FAMILIES.keys() < set(DECODERS)
    for kind in DECODERS:
        (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
        if kind not in FAMILIES:
            with pytest.raises(PlumblineError) as error:
                _transformers.read_config(tmp_path)
            assert f"is a {kind!r}" in str(error.value) and str(sorted(FAMILIES)) in str(error.value)


def test_every_family_has_a_model_beside_the_library() -> None:
    assert {build().model_type for build in CONFIGS.values()} == FAMILIES.keys()


def test_a_config_without_a_type(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(PlumblineError, match=r"config\.json: model_type is missing.*save the model"):
        _transformers.read_config(tmp_path)

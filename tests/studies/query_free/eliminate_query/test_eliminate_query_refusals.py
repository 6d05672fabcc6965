"""The tool that takes W_Q out of a checkpoint: what it refuses, and why."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.model.hf_import import spec_of
from plumbline.model.model_folder import write_model
from plumbline.studies.query_free.eliminate_query import __main__ as eliminate_query
from tests.evaluate.probes.hugging_face_models import CONFIGS
from tests.studies.query_free.eliminate_query.models_to_eliminate import (
    BIASED,
    ONE_HEAD,
    ROTARY,
    SKIPS,
    one_headed,
    run_command,
    run_refused,
    write_random_model,
)


class TestRefusals:
    def test_norms_between_and_skips(self, monkeypatch, tmp_path):
        write_random_model(
            tmp_path / "in", **SKIPS, norm={"name": "rms_norm"}, positions={"name": "rotary"}, key_value_heads=2
        )
        message = run_refused(monkeypatch, "W_Q cannot be taken out of .*in .a model of this package.", tmp_path / "in")
        proposition, theorem = message.split("  Theorem 4.2")
        assert "model.heads is 4" in proposition and "model.positions 'rotary' stands between" in proposition
        assert "model.key_value_heads is 2: W_K" in proposition
        assert "key_value_heads" not in theorem and "rotary" not in theorem  # neither is in the way of a basis
        assert "model.norm 'rms_norm' between the stream" in theorem
        assert "model.residual 'standard'" in theorem and "Theorem 4.1" not in theorem
        message = run_refused(monkeypatch, "model.norm 'rms_norm'", tmp_path / "in", "--only-layer", 1)
        assert "Theorem 4.1" in message and "has a skip" not in message

    def test_the_other_way_is_named(self, monkeypatch, tmp_path):
        write_random_model(tmp_path / "in", **SKIPS)
        run_refused(monkeypatch, r"Theorem 4.1 \(no norms, one layer\) does go: give --only-layer", tmp_path / "in")

    @pytest.mark.parametrize(
        ("slots", "why"),
        [
            (ONE_HEAD | ROTARY, "model.positions 'rotary' stands between W_Q and W_K"),
            (ONE_HEAD | {"query_key": {"name": "qk_norm"}}, "model.query_key 'qk_norm' stands between W_Q and W_K"),
            ({"output": {"name": "head_gate"}}, "model.output 'head_gate' reads the stream by itself"),
            ({"projections": {"name": "residual_query"}}, "'residual_query': queries are the stream plus a map"),
            ({"residual": {"name": "layer_scale"}}, "model.residual 'layer_scale' is neither"),
            ({"shared_layers": True}, "model.shared_layers: one set of weights is all layers'"),
            ({"heads": 2, "key_value_heads": 2}, "model.head_width is 16, not model.width .32."),
            ({"projections": {"name": "partial_identity_query"}}, "W_Q is gone from a layer already"),
        ],
    )
    def test_other_architectures(self, monkeypatch, tmp_path, slots, why):
        write_random_model(tmp_path / "in", **slots)
        run_refused(monkeypatch, why, tmp_path / "in")

    @pytest.mark.parametrize(
        ("slots", "why"),
        [
            (BIASED | ROTARY, "the query bias of layer 0 would have to come from the positions, which are not"),
            (
                {"projections": BIASED["projections"]},
                "the query bias of layer 1, 2 would have to come from a bias of the FFN before it, and model.ffn",
            ),
            (
                ONE_HEAD | BIASED | {"norm": {"name": "rms_norm"}},
                "the query bias of layer 0, 1, 2 would have to come from the bias of a norm",
            ),
        ],
    )
    def test_biases_without_a_place(self, monkeypatch, tmp_path, slots, why):
        write_random_model(tmp_path / "in", **slots)
        run_refused(monkeypatch, why, tmp_path / "in")

    def test_a_singular_query(self, monkeypatch, tmp_path):
        model = write_random_model(tmp_path / "in")
        with torch.no_grad():
            model.blocks[1].attention.projections.query.weight[3] = 0
        write_model(tmp_path / "in", model)
        why = r"W_Q of layer 1 has the condition number (inf|\d\.\d*e\+\d\d), and the limit is 100000"
        assert "layer 0" not in run_refused(monkeypatch, why, tmp_path / "in")
        # One head needs no inverse, so that this is not an obstacle to it.
        model = write_random_model(tmp_path / "one/in", **ONE_HEAD)
        with torch.no_grad():
            model.blocks[1].attention.projections.query.weight[3] = 0
        write_model(tmp_path / "one/in", model)
        assert run_command(monkeypatch, tmp_path / "one/in")["logits"]["float64"] < 1e-9

    def test_a_query_that_is_not_finite(self, monkeypatch, tmp_path):
        model = write_random_model(tmp_path / "in")
        with torch.no_grad():
            model.blocks[1].attention.projections.query.weight[0, 0] = float("nan")
        write_model(tmp_path / "in", model)
        why = r"in/model\.safetensors: 'blocks\.1\.\S*query\.weight' has values that are not finite; write or copy both"
        run_refused(monkeypatch, why, tmp_path / "in")

    def test_an_ill_conditioned_query(self, monkeypatch, tmp_path):
        write_random_model(tmp_path / "in")
        message = run_refused(
            monkeypatch, r"W_Q of layer \d has the condition number [\d.]+, and the limit is 50 ",
            tmp_path / "in", "--max-condition-number", 50,
        )  # fmt: skip
        assert "--max-condition-number" in message

    @pytest.mark.parametrize("detail", ["", "one-head"])
    @pytest.mark.parametrize("name", CONFIGS)
    def test_models_of_the_library(self, monkeypatch, tmp_path, name, detail):
        """By its config alone: no weights are read, as there are none. Norms and rotary positions are in the way of
        every family but a GPT-2 with one head, whose weights would be read next; it is told what is left."""
        config = CONFIGS[name]()
        text = config.get_text_config()
        if detail:
            text.num_attention_heads = 1
            if hasattr(text, "num_key_value_heads"):
                text.num_key_value_heads = 1
            if getattr(text, "head_dim", None) is not None:
                text.head_dim = text.hidden_size
        config.save_pretrained(tmp_path / name)
        kind = config.model_type
        if kind == "gpt2" and detail:
            run_refused(monkeypatch, r"there is no model\.safetensors", tmp_path / name)
            return
        message = run_refused(monkeypatch, rf"W_Q cannot be taken out of .*{name} \({kind}\)", tmp_path / name)
        norm = "layer_norm" if kind in ("gpt2", "gpt_neox", "phi") else "rms_norm"
        assert f"model.norm '{norm}' between" in message
        assert "sandwich_norm" not in message, "an OLMo2 has no norm before its sublayers"
        assert ("model.positions 'rotary' stands between" in message) == (kind != "gpt2")
        normed = kind in ("qwen3", "gemma3", "gemma3_text", "olmo2")
        assert ("model.query_key 'qk_norm' stands between" in message) == normed
        assert "model.mixer" not in message, "a cap of products is no obstacle"
        assert ("model.heads is 4" in message) == (not detail)
        assert "model.projections 'identity_query'" in message and "--probes upper_ablation" in message

    def test_a_family_that_cannot_be_read(self, monkeypatch, tmp_path):
        (tmp_path / "config.json").write_text('{"model_type": "falcon"}')
        message = run_refused(monkeypatch, r"'falcon' \(model_type in its config\.json\)", tmp_path)
        assert "--checkpoint" not in message, "an option that this command lacks"

    def test_a_gpt2_that_scales_scores_its_own_way(self, monkeypatch, tmp_path):
        one_headed(tmp_path / "scaled", scale_attn_by_inverse_layer_idx=True)
        run_refused(monkeypatch, "scale_attn_by_inverse_layer_idx = True; no component", tmp_path / "scaled")
        one_headed(tmp_path / "relu", activation_function="relu")
        run_refused(monkeypatch, "activation_function 'relu' is none of", tmp_path / "relu")

    def test_the_command_line(self, monkeypatch, tmp_path, capsys):
        write_random_model(tmp_path / "in")
        run_refused(monkeypatch, "has the layers 0 to 2, not 3", tmp_path / "in", "--only-layer", 3)
        run_refused(monkeypatch, "reads 24 at most, not 25", tmp_path / "in", "--tokens-per-sequence", 25)
        run_refused(monkeypatch, "must be at least 1", tmp_path / "in", "--tokens-per-sequence", 0)
        for limit in ("inf", "nan", "0.5"):
            message = rf"--max-condition-number \({limit}\) must be 1 or more, and finite"
            run_refused(monkeypatch, message, tmp_path / "in", "--max-condition-number", limit)
        (tmp_path / "nothing").mkdir()
        run_refused(monkeypatch, "holds neither manifest.json", tmp_path / "nothing")
        run_refused(monkeypatch, r"--tokens-per-sequence|--only-layer|holds neither", tmp_path / "in/model.safetensors")
        (tmp_path / "in/model.json").write_text("{}")
        run_refused(monkeypatch, "model.json does not hold the spec of a model", tmp_path / "in")
        (tmp_path / "out").symlink_to(tmp_path / "nowhere")
        with pytest.raises(PlumblineError, match=r"--out: .*out exists; name a new"):
            run_command(monkeypatch, tmp_path / "in")
        (tmp_path / "out").unlink()
        (tmp_path / "out").mkdir()
        with pytest.raises(PlumblineError, match=r"--out: .*out exists; name a new"):
            run_command(monkeypatch, tmp_path / "in")
        with pytest.raises(SystemExit) as stopped:
            command_line.run(eliminate_query.main)
        assert stopped.value.code == 1 and "exists; name a new" in capsys.readouterr().err

    def test_weights_of_another_model(self, monkeypatch, tmp_path):
        write_random_model(tmp_path / "in")
        weights = load_file(tmp_path / "in/model.safetensors")
        del weights["positions.embedding"]
        save_file(weights, tmp_path / "in/model.safetensors")
        description = json.loads((tmp_path / "in/model.json").read_text())
        description["weights_sha256"] = sha256_file(tmp_path / "in/model.safetensors")
        (tmp_path / "in/model.json").write_text(json.dumps(description))
        run_refused(monkeypatch, r"'positions.embedding' does not fit .*in.model.json", tmp_path / "in")


def test_a_spec_is_made_of_every_family(tmp_path):
    """Every model type that probes know can be distinguished here."""
    from plumbline.model.hf_families import FAMILIES

    spec_by_kind = {kind: spec_of(transformers.AutoConfig.for_model(kind)) for kind in FAMILIES}
    assert {spec.slot("norm").name for spec in spec_by_kind.values()} == {"layer_norm", "rms_norm"}
    assert spec_by_kind["gpt2"].ffn_width == 3072 and spec_by_kind["qwen2"].slot("projections").options["bias"] is True

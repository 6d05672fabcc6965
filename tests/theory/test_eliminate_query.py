"""The tool that takes W_Q out of a checkpoint: what it writes, what it says, and what it refuses."""

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

from plumbline import cli
from plumbline.cli import PlumblineError
from plumbline.evaluate.checkpoint import FinishedRun
from plumbline.model.cache import Cache
from plumbline.model.decoder import Decoder, create
from plumbline.model.folder import read_model, write_model
from plumbline.model.hf_read import gpt2, spec_of
from plumbline.probes import __main__ as probes
from plumbline.specs.spec import ModelSpec
from plumbline.theory import eliminate_query, query_absorption
from plumbline.theory.equal_logits import apart, in_double
from tests.model_specs import run_spec
from tests.probes.hugging_face import GPT2, SIZES
from tests.train.helpers import make_packs, settings, train

#: What theorem 4.2 is about, at a size for tests; attention is sharp at this init.
NORM_FREE: dict[str, Any] = {
    "layers": 3,
    "width": 32,
    "heads": 4,
    "key_value_heads": 4,
    "head_width": 8,
    "ffn_width": 48,
    "vocabulary": 97,
    "context": 24,
    "norm_eps": 1e-5,
    "init_std": 0.15,
    "residual_init_scaling": False,
    "tied_embeddings": True,
    "positions": {"name": "learned"},
    "norm": {"name": "none"},
    "projections": {"name": "grouped_query"},
    "query_key": {"name": "identity"},
    "values": {"name": "identity"},
    "mixer": {"name": "softmax"},
    "output": {"name": "identity"},
    "ffn": {"name": "gelu"},
    "placement": {"name": "pre_norm"},
    "residual": {"name": "attention_skip"},
}
BIASED = {"projections": {"name": "grouped_query", "bias": True}, "ffn": {"name": "gelu", "bias": True}}
SKIPS = {"residual": {"name": "standard"}}
UNTIED = {"tied_embeddings": False}
ROTARY = {"positions": {"name": "rotary"}}
ONE_HEAD = SKIPS | {"heads": 1, "key_value_heads": 1, "head_width": 32, "norm": {"name": "layer_norm"}}

#: Name -> (overlay of NORM_FREE, --layer, the rule's name).
TAKEN: dict[str, tuple[dict[str, Any], int | None, str]] = {
    "tied": ({}, None, "Theorem 4.2"),
    "untied": (UNTIED, None, "Theorem 4.2"),
    "biases": (BIASED, None, "Theorem 4.2"),
    "untied-biases-rotary": (BIASED | UNTIED | ROTARY, None, "Theorem 4.2"),
    "rotary-shared-keys-qk-norm-swiglu": (
        ROTARY | {"key_value_heads": 2, "query_key": {"name": "qk_norm"}, "ffn": {"name": "swiglu"}},
        None,
        "Theorem 4.2",
    ),
    "a-mixer-that-splits-heads": ({"mixer": {"name": "differential"}}, None, "Theorem 4.2"),
    "first-values": ({"values": {"name": "value_residual"}}, None, "Theorem 4.2"),
    "one-layer": (UNTIED | SKIPS, 1, "Theorem 4.1"),
    "one-layer-tied": (SKIPS, 2, "Theorem 4.1"),
    "first-layer-biases": (BIASED | SKIPS, 0, "Theorem 4.1"),
    "last-layer-biases-rotary": (BIASED | SKIPS | ROTARY, 2, "Theorem 4.1"),
    "one-layer-of-skip-only": (BIASED, 1, "Theorem 4.1"),
    "one-head": (ONE_HEAD, None, "Proposition 4.1"),
    "one-head-biases": (ONE_HEAD | BIASED, None, "Proposition 4.1"),
    "one-head-rms-cap": (
        ONE_HEAD | {"norm": {"name": "rms_norm"}, "mixer": {"name": "softmax_cap", "cap": 1.0}},
        None,
        "Proposition 4.1",
    ),
    "one-head-a-layer-gated": (ONE_HEAD | {"output": {"name": "head_gate"}}, 1, "Proposition 4.1"),
}


def off_its_start(model: Decoder) -> Decoder:
    """Every parameter, gains and biases too, away from where it starts."""
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for value in model.parameters():
            value += 0.1 * torch.randn(value.shape, generator=generator)
    return model


def made(folder: Path, **slots: Any) -> Decoder:
    """A model of ours, written."""
    model = off_its_start(create(ModelSpec.from_dict(NORM_FREE | slots), init_seed=3))
    write_model(folder, model)
    return model


def one_headed(folder: Path, **config: Any) -> Any:
    """A GPT-2 of the library with one head, every parameter random."""
    torch.manual_seed(7)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**(GPT2 | {"n_head": 1} | config)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    return model.eval()


def eliminated(monkeypatch: pytest.MonkeyPatch, folder: Path, *given: Any) -> dict[str, Any]:
    """What the command reports."""
    out = folder.parent / "out"
    words = ["eliminate_query", folder, "--out", out, "--sequences", 2, *given]
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    eliminate_query.main()
    return json.loads((out / "elimination.json").read_text())


def refused(monkeypatch: pytest.MonkeyPatch, match: str, folder: Path, *given: Any) -> str:
    """The whole message; nothing is left behind."""
    with pytest.raises(PlumblineError, match=match) as error:
        eliminated(monkeypatch, folder, *given)
    assert not (folder.parent / "out").exists() and not list(folder.parent.glob(".out*"))
    return str(error.value)


def tokens(model: Decoder) -> torch.Tensor:
    shape = (3, model.spec.context)
    return torch.randint(0, model.spec.vocabulary, shape, generator=torch.Generator().manual_seed(11))


@pytest.mark.parametrize("name", TAKEN)
def test_logits_stay_and_w_q_goes(monkeypatch, tmp_path, capsys, name):
    slots, layer, rule = TAKEN[name]
    model = made(tmp_path / "in", **slots)
    report = eliminated(monkeypatch, tmp_path / "in", *([] if layer is None else ["--layer", layer]))
    assert report["rule"].startswith(rule)
    assert report["layers"] == ([0, 1, 2] if layer is None else [layer])
    # What it says, and what is so of the folder that it wrote: on tokens of our own.
    again = read_model(tmp_path / "out")
    assert report["logits"]["float64"] < 1e-9 and report["logits"]["as_used"] < 1e-3
    assert report["logits"]["no_queries"] > 1e-3  # so that it says something
    assert 0 < apart(in_double(again), in_double(model), tokens(model)) < 3e-7 * max(report["conditions"].values())
    assert not [
        key for key in load_file(tmp_path / "out/model.safetensors") for gone in report["layers"]
        if key.startswith(f"blocks.{gone}.attention.projections.query")
    ]  # fmt: skip
    before, after = (sum(value.numel() for value in one.parameters()) for one in (model, again))
    per_layer = 32**2 + (32 if model.spec.slot("projections").options["bias"] else 0)
    untied = model.spec.tied_embeddings and not again.spec.tied_embeddings
    assert untied == (
        model.spec.tied_embeddings and rule == "Theorem 4.1" and slots.get("residual") == SKIPS["residual"]
    )
    assert before - after == len(report["layers"]) * per_layer - untied * 97 * 32
    assert (report["parameters"]["before"], report["parameters"]["after"]) == (before, after)
    words = capsys.readouterr().out
    assert f"{before:,} before, {after:,} after" in words and "float64, before weights are rounded: " in words
    assert ("a tied head has become one of its own" in words) == untied


def test_decoding_step_by_step_gives_the_same(monkeypatch, tmp_path):
    model = made(tmp_path / "in", **SKIPS, **BIASED)
    eliminated(monkeypatch, tmp_path / "in", "--layer", 1)
    again, cache = read_model(tmp_path / "out").eval(), Cache()
    steps = [again(part, cache=cache) for part in tokens(model).split(5, dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), model(tokens(model)), rtol=1e-3, atol=1e-4)


def test_a_one_headed_gpt2_of_the_library(monkeypatch, tmp_path):
    """All its norms and biases, the tanh GELU, and a query bias that is not zero; against the library's own logits."""
    theirs = one_headed(tmp_path / "gpt2")
    assert theirs.transformer.h[0].attn.c_attn.bias[:48].abs().min() > 0
    report = eliminated(monkeypatch, tmp_path / "gpt2", "--tokens", 40)
    assert report["kind"] == "gpt2" and report["rule"].startswith("Proposition 4.1")
    assert report["logits"]["float64"] < 1e-9
    again = read_model(tmp_path / "out").eval()
    assert again.spec.slot("projections").name == "identity_query"
    tokens_BT = tokens(again)
    with torch.no_grad():
        wanted = theirs(input_ids=tokens_BT).logits
        torch.testing.assert_close(again(tokens_BT), wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max()))
    assert report["parameters"]["before"] == theirs.num_parameters()
    assert report["parameters"]["after"] == theirs.num_parameters() - 5 * (48**2 + 48)


def test_what_was_written_can_be_probed(monkeypatch, tmp_path):
    made(tmp_path / "in")
    eliminated(monkeypatch, tmp_path / "in")
    np.save(tmp_path / "ids.npy", np.arange(24)[None])
    words = ["--checkpoint", tmp_path / "out", "--tokens", tmp_path / "ids.npy", "--out", tmp_path / "probes.parquet"]
    chosen = ["--probes", "ffn_write,attention_statistics,query_key_norms", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["probes", *map(str, words), *chosen])
    probes.main()
    assert (tmp_path / "probes.parquet").is_file()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("heads", [1, 4])
@torch.no_grad()
def test_a_gpt2_as_a_decoder_of_ours(tmp_path, heads, tied):
    config = {"n_head": heads, "tie_word_embeddings": tied, "activation_function": "gelu" if tied else "gelu_new"}
    theirs = one_headed(tmp_path / "gpt2", **config, n_inner=70)
    ours = gpt2(theirs).double().eval()
    assert sum(value.numel() for value in ours.parameters()) == theirs.num_parameters()
    tokens_BT = tokens(ours)
    wanted = theirs.double()(input_ids=tokens_BT).logits
    assert apart(in_double(ours), lambda it: theirs(input_ids=it).logits, tokens_BT) < 1e-12
    torch.testing.assert_close(ours(tokens_BT), wanted.float())


class TestRuns:
    @pytest.fixture(scope="class")
    def finished(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """A norm-free run with a skip around attention only, trained, with a probe point before its end."""
        work = tmp_path_factory.mktemp("norm_free")
        names = ("positions", "norm", "ffn", "residual", "init_std", "head_width", "key_value_heads")
        slots = {f"model__{name}": NORM_FREE[name] for name in names}
        spec = run_spec(**slots, probes=[{"name": "ffn_write", "at": [0.5, 1.0]}])
        assert train(spec, settings(make_packs(work), work)) == 0
        return work / "out"

    def test_a_trained_run(self, monkeypatch, tmp_path, finished):
        source = tmp_path / "run"
        source.symlink_to(finished)
        report = eliminated(monkeypatch, source)
        before, after = FinishedRun.read(finished), FinishedRun.read(tmp_path / "out")
        assert after.outcome == "completed" and after.spec.method == "baseline.query_eliminated"
        assert after.spec.run_id != before.spec.run_id == report["run_id"]
        assert after.spec.model.slot("projections").name == "identity_query" and after.spec.model.tied_embeddings
        assert apart(in_double(after.model()), in_double(before.model()), tokens(before.model())) < 1e-4
        assert report["logits"]["float64"] < 1e-9
        assert json.loads((tmp_path / "out/outcome.json").read_text())["weights_step"] == 12
        # The weights were trained: they are not those of the start.
        assert not torch.equal(before.model().embedding, create(before.spec.model, 42).embedding)
        again = refused_again(monkeypatch, tmp_path)
        assert "there is no W_Q any more" in again

    def test_a_probe_point(self, monkeypatch, tmp_path, finished):
        point = finished / "points/step-0000006.safetensors"
        words = ["eliminate_query", str(point), "--out", str(tmp_path / "out")]
        monkeypatch.setattr(sys, "argv", words)
        eliminate_query.main()
        after = FinishedRun.read(tmp_path / "out").model()
        at_point = Decoder(FinishedRun.read(finished).spec.model)
        at_point.load_state_dict(load_file(point))
        assert apart(in_double(after), in_double(at_point), tokens(at_point)) < 1e-4
        assert apart(in_double(after), in_double(FinishedRun.read(finished).model()), tokens(at_point)) > 1e-3
        assert json.loads((tmp_path / "out/outcome.json").read_text())["weights_step"] == 6

    def test_at_half_precision(self, monkeypatch, tmp_path, finished):
        """The same run said to be of bfloat16: compared as it is used, beside what that alone costs."""
        source = tmp_path / "run"
        source.mkdir()
        manifest = json.loads((finished / "manifest.json").read_text())
        manifest["spec"]["train"]["precision"] = "bfloat16"
        (source / "manifest.json").write_text(json.dumps(manifest))
        for name in ("outcome.json", "model.safetensors"):
            (source / name).symlink_to(finished / name)
        report = eliminated(monkeypatch, source)
        assert report["precision"] == "bfloat16" and report["logits"]["float64"] < 1e-9
        assert 1e-3 < report["logits"]["own_rounding"] < 0.1 and 1e-3 < report["logits"]["as_used"] < 0.3


def refused_again(monkeypatch: pytest.MonkeyPatch, folder: Path) -> str:
    """What is said of a model without W_Q."""
    (folder / "out").rename(folder / "reduced")
    return refused(monkeypatch, "cannot be taken out", folder / "reduced")


class TestRefusals:
    def test_norms_between_and_skips(self, monkeypatch, tmp_path):
        made(tmp_path / "in", **SKIPS, norm={"name": "rms_norm"}, positions={"name": "rotary"}, key_value_heads=2)
        words = refused(monkeypatch, "W_Q cannot be taken out of .*in .a model of this package.", tmp_path / "in")
        proposition, theorem = words.split("  Theorem 4.2")
        assert "model.heads is 4" in proposition and "model.positions 'rotary' stands between" in proposition
        assert "model.key_value_heads is 2: W_K has not the columns of W_Q" in proposition
        assert "key_value_heads" not in theorem and "rotary" not in theorem  # neither is in the way of a basis
        assert "model.norm 'rms_norm', which model.placement 'pre_norm' puts between" in theorem
        assert "model.residual 'standard' has a skip around the FFN" in theorem and "Theorem 4.1" not in theorem
        words = refused(monkeypatch, "model.norm 'rms_norm'", tmp_path / "in", "--layer", 1)
        assert "Theorem 4.1" in words and "has a skip" not in words

    def test_the_other_way_is_named(self, monkeypatch, tmp_path):
        made(tmp_path / "in", **SKIPS)
        refused(monkeypatch, r"Theorem 4.1 \(no norms, one layer\) does go: give --layer", tmp_path / "in")

    @pytest.mark.parametrize(
        ("slots", "why"),
        [
            (ONE_HEAD | ROTARY, "model.positions 'rotary' stands between W_Q and W_K"),
            (ONE_HEAD | {"query_key": {"name": "qk_norm"}}, "model.query_key 'qk_norm' stands between W_Q and W_K"),
            ({"output": {"name": "head_gate"}}, "model.output 'head_gate' reads the stream by itself"),
            ({"projections": {"name": "residual_query"}}, "'residual_query': queries are the stream plus a map"),
            ({"residual": {"name": "layer_scale"}}, "model.residual 'layer_scale' is neither"),
            ({"heads": 2, "key_value_heads": 2}, "model.head_width is 16, not model.width .32."),
            ({"projections": {"name": "partial_identity_query"}}, "W_Q is gone from a layer already"),
        ],
    )
    def test_other_architectures(self, monkeypatch, tmp_path, slots, why):
        made(tmp_path / "in", **slots)
        refused(monkeypatch, why, tmp_path / "in")

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
        made(tmp_path / "in", **slots)
        refused(monkeypatch, why, tmp_path / "in")

    def test_a_singular_query(self, monkeypatch, tmp_path):
        model = made(tmp_path / "in")
        with torch.no_grad():
            model.blocks[1].attention.projections.query.weight[3] = 0
        write_model(tmp_path / "in", model)
        why = r"W_Q of layer 1 has the condition number (inf|\d\.\d*e\+\d\d), and the limit is 100000"
        assert "layer 0" not in refused(monkeypatch, why, tmp_path / "in")
        # One head needs no inverse, so that this is no obstacle to it.
        model = made(tmp_path / "one/in", **ONE_HEAD)
        with torch.no_grad():
            model.blocks[1].attention.projections.query.weight[3] = 0
        write_model(tmp_path / "one/in", model)
        assert eliminated(monkeypatch, tmp_path / "one/in")["logits"]["float64"] < 1e-9

    def test_an_ill_conditioned_query(self, monkeypatch, tmp_path):
        made(tmp_path / "in")
        words = refused(
            monkeypatch, r"W_Q of layer \d has the condition number [\d.]+, and the limit is 50 ",
            tmp_path / "in", "--largest-condition", 50,
        )  # fmt: skip
        assert "--largest-condition" in words

    @pytest.mark.parametrize("kind", ["gpt2", "llama", "llama-one-head", "mistral", "qwen2", "gpt_neox"])
    def test_models_of_the_library(self, monkeypatch, tmp_path, kind):
        """By its config alone: no weights are read, as there are none."""
        name, _, one = kind.partition("-")
        heads = {"num_attention_heads": 1, "num_key_value_heads": 1} if one else {}
        sizes = GPT2 if name == "gpt2" else SIZES | {"num_key_value_heads": 2} | heads
        if name == "gpt_neox":
            sizes = SIZES
        transformers.AutoConfig.for_model(name, **sizes).save_pretrained(tmp_path / name)
        norm = "layer_norm" if name in ("gpt2", "gpt_neox") else "rms_norm"
        words = refused(monkeypatch, f"model.norm '{norm}', which model.placement 'pre_norm' puts", tmp_path / name)
        assert ("model.positions 'rotary' stands between" in words) == (name != "gpt2")
        assert ("model.heads is 4" in words) == (not one)

    def test_a_gpt2_that_scales_scores_its_own_way(self, monkeypatch, tmp_path):
        one_headed(tmp_path / "scaled", scale_attn_by_inverse_layer_idx=True)
        refused(monkeypatch, "scale_attn_by_inverse_layer_idx = True; no component", tmp_path / "scaled")
        one_headed(tmp_path / "relu", activation_function="relu")
        refused(monkeypatch, "activation_function 'relu' is none of", tmp_path / "relu")

    def test_the_command_line(self, monkeypatch, tmp_path, capsys):
        made(tmp_path / "in")
        refused(monkeypatch, "has the layers 0 to 2, not 3", tmp_path / "in", "--layer", 3)
        refused(monkeypatch, "reads 24 at most, not 25", tmp_path / "in", "--tokens", 25)
        refused(monkeypatch, "must be at least 1", tmp_path / "in", "--tokens", 0)
        (tmp_path / "nothing").mkdir()
        refused(monkeypatch, "holds neither manifest.json", tmp_path / "nothing")
        refused(monkeypatch, r"--tokens|--layer|holds neither", tmp_path / "in/model.safetensors")
        (tmp_path / "in/model.json").write_text("{}")
        refused(monkeypatch, "model.json holds no spec of a model", tmp_path / "in")
        (tmp_path / "out").mkdir()
        with pytest.raises(PlumblineError, match=r"--out: .*out is there already"):
            eliminated(monkeypatch, tmp_path / "in")
        with pytest.raises(SystemExit) as stopped:
            cli.run(eliminate_query.main)
        assert stopped.value.code == 1 and "is there already" in capsys.readouterr().err

    def test_weights_of_another_model(self, monkeypatch, tmp_path):
        made(tmp_path / "in")
        weights = load_file(tmp_path / "in/model.safetensors")
        del weights["positions.embedding"]
        save_file(weights, tmp_path / "in/model.safetensors")
        refused(monkeypatch, r"'positions.embedding' does not fit .*in.model.json", tmp_path / "in")


@pytest.mark.parametrize("forgotten", ["_unseen", "_move_stream"])
def test_a_wrong_construction_is_seen_by_the_tool_itself(monkeypatch, tmp_path, forgotten):
    """Biases left where they are: the logits differ, and nothing is written."""
    made(tmp_path / "in", **BIASED)
    monkeypatch.setattr(query_absorption, forgotten, lambda *given: None)
    refused(monkeypatch, r"by Theorem 4.2 .* the logits differ by \d+(\.\d+)? in float64", tmp_path / "in")


class TestPartialIdentityQuery:
    def test_is_a_projection_by_the_identity(self):
        spec = NORM_FREE | {"projections": {"name": "partial_identity_query", "layers": "0, 2", "bias": True}}
        own = off_its_start(create(ModelSpec.from_dict(spec), init_seed=3))
        other = Decoder(ModelSpec.from_dict(NORM_FREE | {"projections": {"name": "grouped_query", "bias": True}}))
        identity = {"weight": torch.eye(32), "bias": torch.zeros(32)}
        weights = own.state_dict()
        for name in other.state_dict():
            if ".query." in name and not name.startswith("blocks.1."):
                assert name not in weights
                weights[name] = identity[name.rsplit(".", 1)[-1]]
        other.load_state_dict(weights)
        torch.testing.assert_close(own(tokens(own)), other(tokens(own)), rtol=1e-5, atol=1e-6)
        assert [role.layer for role in own.parameter_roles.values() if role.role == "query"] == [1]

    @pytest.mark.parametrize("layers", ["", "3", "-1", "0;1", "all"])
    def test_what_names_no_layers(self, layers):
        spec = NORM_FREE | {"projections": {"name": "partial_identity_query", "layers": layers}}
        with pytest.raises(PlumblineError, match=r"model.projections.layers: .* does not name layers of 0 to 2"):
            Decoder(ModelSpec.from_dict(spec))


def test_a_spec_is_made_of_every_family(tmp_path):
    """Every model type that probes know can be told apart here."""
    from plumbline.probes._transformers import STYLES

    found = {kind: spec_of(transformers.AutoConfig.for_model(kind)) for kind in STYLES}
    assert {spec.slot("norm").name for spec in found.values()} == {"layer_norm", "rms_norm"}
    assert found["gpt2"].ffn_width == 3072 and found["qwen2"].slot("projections").options["bias"] is True

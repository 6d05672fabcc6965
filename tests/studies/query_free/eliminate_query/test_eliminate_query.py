"""The tool that takes W_Q out of a checkpoint: what it writes, and what it states about it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from plumbline.evaluate.probes import __main__ as probes
from plumbline.model.cache import DecodingCache
from plumbline.model.decoder import Decoder, create
from plumbline.model.finished_run import FinishedRun
from plumbline.model.hf_import import gpt2
from plumbline.model.model_folder import read_model
from plumbline.studies.query_free.eliminate_query import __main__ as eliminate_query
from plumbline.studies.query_free.eliminate_query.equal_logits import in_double, relative_difference
from plumbline.studies.query_free.eliminate_query.query_absorption import DecoderWeights
from tests.model_specs import run_spec
from tests.studies.query_free.eliminate_query.models_to_eliminate import (
    BIASED,
    NORM_FREE,
    ONE_HEAD,
    ROTARY,
    SKIPS,
    UNTIED,
    one_headed,
    run_command,
    run_refused,
    tokens,
    write_random_model,
)
from tests.train.small_runs import make_packs, settings, train

#: Name -> (overlay of NORM_FREE, --only-layer, the rule's name).
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


@pytest.mark.parametrize("name", TAKEN)
def test_logits_stay_and_w_q_goes(monkeypatch, tmp_path, capsys, name):
    slots, layer, rule = TAKEN[name]
    model = write_random_model(tmp_path / "in", **slots)
    report = run_command(monkeypatch, tmp_path / "in", *([] if layer is None else ["--only-layer", layer]))
    assert report["rule"].startswith(rule)
    assert report["layers"] == ([0, 1, 2] if layer is None else [layer])
    # What it states, and what is so of the folder that it wrote: on our own tokens.
    again = read_model(tmp_path / "out")
    assert report["logits"]["float64"] < 1e-9 and report["logits"]["as_used"] < 1e-3
    assert report["logits"]["no_queries"] > 1e-3  # so that it proves something
    assert (
        0
        < relative_difference(in_double(again), in_double(model), tokens(model))
        < 3e-7 * max(report["conditions"].values())
    )
    assert not [
        key for key in load_file(tmp_path / "out/model.safetensors") for gone in report["layers"]
        if key.startswith(f"blocks.{gone}.attention.projections.query")
    ]  # fmt: skip
    before, after = (sum(value.numel() for value in model_read.parameters()) for model_read in (model, again))
    per_layer = 32**2 + (32 if model.spec.slot("projections").options["bias"] else 0)
    untied = model.spec.tied_embeddings and not again.spec.tied_embeddings
    assert untied == (
        model.spec.tied_embeddings and rule == "Theorem 4.1" and slots.get("residual") == SKIPS["residual"]
    )
    assert before - after == len(report["layers"]) * per_layer - untied * 97 * 32
    assert (report["parameters"]["before"], report["parameters"]["after"]) == (before, after)
    output = capsys.readouterr().out
    assert f"{before:,} before, {after:,} after" in output and "float64, before weights are rounded: " in output
    assert ("head was untied" in output) == untied


def test_decoding_step_by_step_gives_the_same(monkeypatch, tmp_path):
    model = write_random_model(tmp_path / "in", **SKIPS, **BIASED)
    run_command(monkeypatch, tmp_path / "in", "--only-layer", 1)
    again, cache = read_model(tmp_path / "out").eval(), DecodingCache()
    steps = [again(part, cache=cache) for part in tokens(model).split(5, dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), model(tokens(model)), rtol=1e-3, atol=1e-4)


def test_a_one_headed_gpt2_of_the_library(monkeypatch, tmp_path):
    """All its norms and biases, the tanh GELU, and a query bias that is not zero; against the library's own logits."""
    theirs = one_headed(tmp_path / "gpt2")
    assert theirs.transformer.h[0].attn.c_attn.bias[:48].abs().min() > 0
    report = run_command(monkeypatch, tmp_path / "gpt2", "--tokens-per-sequence", 40)
    assert report["kind"] == "gpt2" and report["rule"].startswith("Proposition 4.1")
    assert report["logits"]["float64"] < 1e-9
    again = read_model(tmp_path / "out").eval()
    assert again.spec.slot("projections").name == "identity_query"
    tokens_BT = tokens(again)
    with torch.no_grad():
        expected_logits = theirs(input_ids=tokens_BT).logits
        torch.testing.assert_close(
            again(tokens_BT), expected_logits, rtol=1e-4, atol=1e-4 * float(expected_logits.abs().max())
        )
    assert report["parameters"]["before"] == theirs.num_parameters()
    assert report["parameters"]["after"] == theirs.num_parameters() - 5 * (48**2 + 48)


def test_what_was_written_can_be_probed(monkeypatch, tmp_path):
    write_random_model(tmp_path / "in")
    run_command(monkeypatch, tmp_path / "in")
    np.save(tmp_path / "ids.npy", np.arange(24)[None])
    arguments = [
        "--checkpoint",
        tmp_path / "out",
        "--token-ids",
        tmp_path / "ids.npy",
        "--out",
        tmp_path / "probes.parquet",
    ]
    chosen = ["--probes", "ffn_write,attention_statistics,query_key_norms", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["probes", *map(str, arguments), *chosen])
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
    expected_logits = theirs.double()(input_ids=tokens_BT).logits
    assert relative_difference(in_double(ours), lambda it: theirs(input_ids=it).logits, tokens_BT) < 1e-12
    torch.testing.assert_close(ours(tokens_BT), expected_logits.float())


class TestRuns:
    def trained(self, work: Path, **overrides: Any) -> Path:
        """A norm-free run with a skip around attention only."""
        names = ("positions", "norm", "ffn", "residual", "init_std", "head_width", "key_value_heads")
        slots = {f"model__{name}": NORM_FREE[name] for name in names}
        assert train(run_spec(**slots, **overrides), settings(make_packs(work), work)) == 0
        return work / "out"

    @pytest.fixture(scope="class")
    def finished(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """A run with a probe point before its end."""
        return self.trained(tmp_path_factory.mktemp("norm_free"), probes=[{"name": "ffn_write", "at": [0.5, 1.0]}])

    def test_a_trained_run(self, monkeypatch, tmp_path, finished):
        source = tmp_path / "run"
        source.symlink_to(finished)
        report = run_command(monkeypatch, source)
        before, after = FinishedRun.read(finished), FinishedRun.read(tmp_path / "out")
        assert after.outcome == "completed" and after.spec.method == "baseline.query_eliminated"
        assert after.spec.run_id != before.spec.run_id == report["run_id"]
        assert after.manifest["files"].keys() == {"model.safetensors", "outcome.json"}
        assert after.manifest["tokenizer_sha256"] == before.manifest["tokenizer_sha256"], (
            "it is scored through the same"
        )
        assert after.spec.model.slot("projections").name == "identity_query" and after.spec.model.tied_embeddings
        assert relative_difference(in_double(after.model()), in_double(before.model()), tokens(before.model())) < 1e-4
        assert report["logits"]["float64"] < 1e-9
        assert json.loads((tmp_path / "out/outcome.json").read_text())["weights_step"] == 12
        # The weights were trained: they are not those of the start.
        assert not torch.equal(before.model().embedding, create(before.spec.model, 42).embedding)
        (tmp_path / "out").rename(tmp_path / "reduced")
        assert "there is no W_Q any more" in run_refused(monkeypatch, "cannot be taken out", tmp_path / "reduced")

    def test_a_probe_point(self, monkeypatch, tmp_path, finished):
        point = finished / "points/step-0000006.safetensors"
        arguments = ["eliminate_query", str(point), "--out", str(tmp_path / "out")]
        monkeypatch.setattr(sys, "argv", arguments)
        eliminate_query.main()
        after = FinishedRun.read(tmp_path / "out").model()
        at_point = Decoder(FinishedRun.read(finished).spec.model)
        at_point.load_state_dict(load_file(point))
        assert relative_difference(in_double(after), in_double(at_point), tokens(at_point)) < 1e-4
        assert (
            relative_difference(in_double(after), in_double(FinishedRun.read(finished).model()), tokens(at_point))
            > 1e-3
        )
        assert json.loads((tmp_path / "out/outcome.json").read_text())["weights_step"] == 6

    def test_at_half_precision(self, monkeypatch, tmp_path, tmp_path_factory):
        """Compared as it is used, beside what half precision alone costs."""
        source = tmp_path / "run"
        source.symlink_to(self.trained(tmp_path_factory.mktemp("half"), train__precision="bfloat16"))
        report = run_command(monkeypatch, source)
        assert report["precision"] == "bfloat16" and report["logits"]["float64"] < 1e-9
        assert 1e-3 < report["logits"]["own_rounding"] < 0.1 and 1e-3 < report["logits"]["as_used"] < 0.3


@pytest.mark.parametrize("forgotten", [("key", "value"), ("output",)])
def test_a_wrong_construction_is_seen_by_the_tool_itself(monkeypatch, tmp_path, forgotten):
    """Biases left where they are: the logits differ, and nothing is written."""
    write_random_model(tmp_path / "in", **BIASED)
    bias = DecoderWeights.bias

    def leave_bias(parts, role, layer):
        leftover_bias = bias(parts, role, layer)
        return leftover_bias.clone() if role in forgotten else leftover_bias

    monkeypatch.setattr(DecoderWeights, "bias", leave_bias)
    run_refused(monkeypatch, r"by Theorem 4.2 .* the logits differ by \d+(\.\d+)? in float64", tmp_path / "in")

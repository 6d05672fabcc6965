"""Rows follow from the printed numbers and from the stated configuration: a change moves them, and no others."""

import re

import pandas as pd
import pytest

from plumbline.audit.audit_csv import build
from plumbline.published.printed_numbers import PrintedNumbers


def find_moved_rows(study, root, repository):
    """Rows whose recomputed value or verdict differ between two roots."""
    before, after = (pd.DataFrame(build([study], folder)).set_index("id") for folder in (repository, root))
    assert list(before.index) == list(after.index)
    differs = (before["verdict"] != after["verdict"]) | (before["recomputed"] != after["recomputed"])
    return set(before.index[differs])


def test_verdicts_follow_the_data(repository, changed):
    """A changed printed number changes the rows that depend on it, and no others."""
    table = changed / "studies" / "transfer" / "published" / "table2.csv"
    table.write_text(table.read_text().replace("relu_squared,ReLU^2,0.4878", "relu_squared,ReLU^2,0.4978"))
    rows = find_moved_rows("transfer", changed, repository)
    assert {"t2_delta_relu_squared", "t2_z_relu_squared", "t3_base_relu_squared"} <= rows
    assert not any(name.startswith(("t4_", "t5_", "t7_")) for name in rows)


@pytest.mark.parametrize(
    ("study", "old", "new", "expected", "elsewhere"),
    [
        (
            "transfer",
            "layers: 24",
            "layers: 25",
            {"t4_params_baseline", "t4_params_softpick", "t4_delta_selective_attn", "cost_parameters"},
            ("t2_", "t3_", "t5_", "t7_", "size_3b_"),
        ),
        (
            "transfer",
            "ffn_inter: 5632",
            "ffn_inter: 5888",
            {
                "t4_params_baseline",
                "t4_flops_gated_attn_qknorm",
                "t4_flops_selective_attn",
                "size_3b_as_printed",
                "size_3b_scaled",
            },
            ("t2_", "t3_", "t5_", "t7_"),
        ),
        ("transfer", "hidden: 3072", "hidden: 3200", {"size_3b_as_printed", "size_3b_scaled"}, ("t2_", "t3_", "t4_")),
        ("transfer", "consistent_log2: 19", "consistent_log2: 18", {"tokens_b_half"}, ("t4_", "size_3b_")),
        ("premature", "ffn_width: 2560", "ffn_width: 2562", {"params_llama"}, ("t", "params_270m", "params_0p7b")),
        ("premature", "vocab: 50257", "vocab: 50304", {"params_270m", "params_llama", "params_0p7b"}, ("t", "rho_")),
        ("query_free", "d: 744", "d: 756", {"t2_total_baseline_small_d", "t2_d_k_baseline_small_d"}, ("wq", "score_")),
        ("query_free", "layers: 12", "layers: 13", {"wq", "t2_body_baseline"}, ("attention_pct", "score_")),
        ("quack", "layers: 14", "layers: 15", {"params_mha", "params_mla_64", "params_mla_128"}, ("lr_", "norms")),
        ("quack", "d_ckv: 256", "d_ckv: 128", {"params_mla_64", "params_mla_128"}, ("params_mha",)),
        ("key_norms", "kv_heads: 4", "kv_heads: 8", {"params_m", "params_lead_m"}, ("softmax", "tokens")),
    ],
)
def test_rows_follow_the_stated_configuration(repository, changed, study, old, new, expected, elsewhere):
    """A changed number of setup.yaml changes the rows that follow from it."""
    setup = changed / "studies" / study / "published" / "setup.yaml"
    text, times = re.subn(rf"([ _]){old}\n", rf"\g<1>{new}\n", setup.read_text())
    assert times == 1
    setup.write_text(text)
    rows = find_moved_rows(study, changed, repository)
    assert expected <= rows
    assert not any(name.startswith(elsewhere) for name in rows)


@pytest.mark.parametrize(
    ("study", "entry", "key", "prose"),
    [
        *(("transfer", "model_1p2b", key, key) for key in ("layers", "hidden", "heads", "context")),
        ("transfer", "model_1p2b", "kv_heads", "key_value_heads"),
        ("transfer", "budget", "steps", "steps"),
        ("transfer", "budget", "tokens_per_step_printed_log2", "log2_tokens_per_step"),
        ("transfer", "optimizer", "warmup_steps", "warmup_steps"),
        ("premature", "model_270m", "ffn", "ffn_single"),
        ("premature", "llama_variant", "ffn_width", "ffn_gated"),
        ("premature", "train_270m", "batch_tokens", "batch_tokens"),
        *(("query_free", "model", key, key) for key in ("layers", "heads", "mlp_hidden", "context")),
        ("query_free", "model", "d", "width"),
        ("query_free", "small_d", "d", "small_d"),
        *(("key_norms", "model", key, key) for key in ("layers", "d_model", "heads", "d_head")),
    ],
)
def test_text_and_configuration_agree(repository, study, entry, key, prose):
    """What is printed in a sentence and stands in setup.yaml as well is one number."""
    published = PrintedNumbers.of(study, repository)
    assert published.setup()[entry][key] == int(published.prose()[prose].text)

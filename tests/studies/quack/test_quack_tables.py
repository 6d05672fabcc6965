"""The tables: numbers are the runs', the best tau is the lowest, a divergence is a word, gaps are reported."""

from __future__ import annotations

import pytest

from plumbline.results.tables.table import Table
from plumbline.specs import study_parts
from plumbline.studies.quack import lemma1_numbers
from tests.studies import made_targets
from tests.studies.quack import synthetic_runs
from tests.studies.quack.synthetic_runs import ETAS, LOSSES, PUBLISHED, TAUS, Written, key, times


def make_table(written: Written, name: str) -> Table:
    return study_parts.function("quack", "tables", name)(written.load(), written.study, PUBLISHED)


@pytest.fixture(scope="module")
def tables() -> made_targets.Tables:
    return made_targets.Tables("quack")


def test_table1_has_a_row_for_each_method_and_base_rate(tables: dict[str, Table]) -> None:
    frame = tables["table1"].frame.set_index("setting")
    expected = [f"{scale}/{method}/{eta:g}" for scale, methods in LOSSES.items() for method in methods for eta in ETAS]
    assert sorted(frame.index) == sorted(expected) and len(frame) == 27
    for scale, methods in LOSSES.items():
        for method, losses in methods.items():
            for eta, loss in zip(ETAS, losses, strict=True):
                row = frame.loc[f"{scale}/{method}/{eta:g}"]
                assert row["base_lr"] == eta and (
                    row["validation_loss_best_tau"] == pytest.approx(loss) if loss else row["outcome"] == "diverged"
                )
    assert frame["n_seeds"].sum() == 27 - 3


def test_table1_shows_every_tau_and_takes_the_lowest(tables: dict[str, Table]) -> None:
    table = tables["table1"]
    frame = table.frame.set_index("setting")
    row = frame.loc["mla/quack/0.003"]
    losses = [row[f"validation_loss_tau_{tau:g}"] for tau in TAUS]
    assert losses == pytest.approx([3.03, 2.95, 3.00, 3.35]) and row["best_tau"] == 0.1
    assert row["validation_loss_best_tau"] == min(losses)
    assert table.cell("mla/quack/0.003", "validation_loss_best_tau").runs == tuple(
        key("mla", "quack", 3e-3, tau) for tau in TAUS
    )
    assert table.cell("mla/quack/0.003", "validation_loss_tau_1").runs == (key("mla", "quack", 3e-3, 1),)
    assert table.cell("mha/qk_norm/0.003", "best_tau").word == "no tau"
    assert "lowest final held-out loss" in table.notes[0]


def test_table1_says_where_a_best_tau_is_at_an_end_of_its_grid(tables: dict[str, Table], right: Written, tmp_path):
    frame = tables["table1"].frame.set_index("setting")
    assert frame.loc["mla/quack/0.003", "best_tau_grid_position"] == "inside"
    assert frame.loc["mla/default/0.003", "best_tau_grid_position"] == ""

    def at_the_end(facts: synthetic_runs.World) -> synthetic_runs.World:
        facts[key("mla", "quack", 3e-3, TAUS[0])].loss = 2.0
        facts[key("mha", "quack", 3e-3, TAUS[-1])].loss = 2.0
        return facts

    before, after = tables["table1"], make_table(right.changed(at_the_end, tmp_path), "table1")
    frame = after.frame.set_index("setting")
    places = [frame.loc[f"{scale}/quack/0.003", "best_tau_grid_position"] for scale in ("mla", "mha")]
    assert places == ["lowest", "highest"]
    ends = [sum(frame["best_tau_grid_position"].isin(["lowest", "highest"])) for frame in (before.frame, after.frame)]
    assert ends[1] == ends[0] + 2 and f"12 best taus {ends[1]}" in after.notes[1]


def test_a_divergence_is_a_word_and_never_a_number(tables: dict[str, Table]) -> None:
    table = tables["table1"]
    cell = table.cell("mha/quack/0.03", "validation_loss_tau_10")
    assert cell.value is None and cell.word == "diverged"
    assert table.cell("mha/quack/0.03", "diverged_or_spiked").value == "tau 10: diverged"
    assert (
        table.cell("mha/default/0.03", "validation_loss_best_tau").word
        == table.cell("mha/default/0.03", "stable").value
        == "diverged"
    )
    assert table.cell("mha/quack/0.03", "outcome").value == "completed 3, diverged 1"
    assert "Stable runs, MHA: 10 of 10 at 0.0003, 10 of 10 at 0.003, 7 of 10 at 0.03." in table.notes


def test_a_run_that_completes_with_a_spike_is_not_stable(tables: dict[str, Table]) -> None:
    frame = tables["table1"].frame.set_index("setting")
    row = frame.loc["mla/default/0.003"]
    assert row["stable"] == "no" and row["validation_loss_best_tau"] == pytest.approx(4.40) and row["loss_spikes"] == 1
    assert row["largest_loss_rise"] == pytest.approx(1.2) and row["diverged_or_spiked"] == "rises by 1.2"
    assert frame.loc["mla/quack/0.003", "stable"] == "yes" and frame.loc["mla/quack/0.003", "largest_loss_rise"] == 0


def test_where_every_tau_diverges_there_is_no_best_one(right: Written, tmp_path) -> None:
    def worst(facts: synthetic_runs.World) -> synthetic_runs.World:
        for tau in TAUS:
            facts[key("mla", "quack", 3e-2, tau)].outcome = "diverged"
        del facts[key("mha", "ablation", 3e-3, 0.1)]
        return facts

    table = make_table(right.changed(worst, tmp_path), "table1")
    assert (
        table.cell("mla/quack/0.03", "validation_loss_best_tau").word
        == table.cell("mla/quack/0.03", "best_tau").word
        == "diverged"
    )
    gone = table.cell("mha/ablation/0.003", "validation_loss_tau_0.1")
    assert gone.value is None and gone.word == "missing"
    assert (
        table.cell("mha/ablation/0.003", "best_tau").value == 1
        or table.cell("mha/ablation/0.003", "best_tau").value == 0.01
    )
    assert table.cell("mha/ablation/0.003", "diverged_or_spiked").value == "tau 0.1: missing"


def test_tau_has_the_wider_grid(tables: dict[str, Table]) -> None:
    frame = tables["tau"].frame.set_index("setting")
    wide = [0.001, *TAUS, 100]
    assert list(frame.index) == [f"{scale}/{tau:g}" for scale in ("mha", "mla") for tau in wide]
    assert frame.loc["mha/1", "validation_loss"] == pytest.approx(2.95)
    assert frame.loc["mha/0.001", "validation_loss"] == 3.4
    assert frame.loc["mla/100", "diverged_or_spiked"] == "diverged"
    assert frame.loc["mha/1", "diverged_or_spiked"] == "none"
    assert frame.loc["mha/1", ["lowest_norm_ratio", "highest_norm_ratio", "norm_ratios_clamped"]].tolist() == [
        0.2,
        1.5,
        0,
    ]
    assert frame.loc["mha/1", "largest_logit"] == 40
    assert frame.loc["mha/1", "largest_mean_logit_change"] == pytest.approx(0.1)


def test_variants_stand_beside_run_that_they_are_variant_of(tables: dict[str, Table]) -> None:
    table = tables["variants"]
    frame = table.frame.set_index("run")
    varied = [run for run in frame.index if frame.loc[run, "description"] != "default"]
    assert varied == [
        "mha/default.one_rate/s42", "mha/default.no_weight_decay/s42", "mha/quack.spectral/s42",
        "mla/default.latent_norm/s42", "mla/quack.latent_norm/s42", "mla/quack.spectral/s42",
    ]  # fmt: skip
    spectral = frame.loc["mha/quack.spectral/s42"]
    assert spectral["loss_minus_default"] == pytest.approx(-0.004)
    assert spectral["validation_loss"] - spectral["loss_minus_default"] == pytest.approx(2.95), "at tau = 1"
    assert table.cell("mla/quack.spectral/s42", "loss_minus_default").runs == (
        key("mla", "quack.spectral"),
        key("mla", "quack", 3e-3, 1),
    )
    default = frame.loc["mla/default.eta_0.003/s42"]
    assert default["largest_loss_rise"] == pytest.approx(1.2)
    assert frame["largest_logit"].eq(40).all() and frame["largest_mean_logit_change"].eq(0.1).all()


def test_cache_counts_what_is_remembered(tables: dict[str, Table]) -> None:
    frame = tables["cache"].frame.set_index("cached_state")
    assert frame["bytes_per_token"].tolist() == [114_688, 8_960, 229_376]
    assert frame["values_per_layer"].tolist() == [4096, 320, 8192]
    assert frame["used_in_our_cache"].tolist() == ["yes", "yes", "no"]
    assert frame["qk_norm_support"].tolist() == ["possible", "refused", "would need these"]


def test_what_no_training_is_behind_names_no_preset(tables: dict[str, Table]) -> None:
    for name in ("cache", "lemma1"):
        assert tables[name].warnings == ["This table needs no training: it is computed, and the same at every preset."]


def test_lemma1_shows_the_bound_kept_and_broken(tables: dict[str, Table]) -> None:
    frame = tables["lemma1"].frame.set_index("setting")
    ours, fixed = (frame[frame["lr_rule"] == name] for name in ("QuacK", "fixed"))
    assert len(ours) == len(fixed) == 6 and (ours["within_bound"] == "yes").all()
    assert (ours["bound_over_largest_change"] >= 1 - 1e-9).all()
    names = [f"first_order_change_weights_x{scale:g}" for scale in lemma1_numbers.SHOWN]
    assert (ours[names].max(axis=1) / ours[names].min(axis=1)).max() == pytest.approx(1, rel=1e-6)
    growth = fixed["first_order_change_weights_x32"] / fixed["first_order_change_weights_x1"]
    assert growth.tolist() == pytest.approx([32] * 6, rel=1e-6)
    worst = frame.loc["rank_one/worst/frobenius/quack"]
    assert worst["bound_over_largest_change"] == pytest.approx(1, rel=1e-6)
    assert frame.loc["rank_one/worst/frobenius/fixed", "within_bound"] == "no"


def test_nothing_at_all_is_a_table_too(tmp_path) -> None:
    nothing = Written(tmp_path, {}, "demo")
    assert set(make_table(nothing, "table1").frame["outcome"]) == {"missing"}
    assert make_table(nothing, "tau").frame["validation_loss"].isna().all()
    assert make_table(nothing, "variants").frame["validation_loss"].isna().all()


def test_table2_takes_ratios_turn_by_turn_and_names_the_device(tmp_path) -> None:
    written = Written(tmp_path, {}).measured(
        "step_time", times(qk_norm=1.0, quack=0.91, default=0.9), device_name="H200"
    )
    table = make_table(written, "table2")
    frame = table.frame.set_index("method")
    assert frame.loc[
        "quack", ["step_time_ratio", "step_time_ratio_lower_quartile", "step_time_ratio_upper_quartile"]
    ].tolist() == pytest.approx([0.91] * 3)
    assert frame.loc["quack", "time_saved_pct"] == pytest.approx(9.0)
    assert table.cell("quack", "time_saved_pct_published").text == "10"
    assert frame["step_ms"].tolist() == pytest.approx([1000, 910, 900]) and frame.loc["quack", "timed_pairs"] == 20
    assert table.cell("qk_norm", "step_time_ratio").word == "reference"
    assert frame["norms_per_block"].tolist() == [4, 2, 2]
    assert frame["device"].eq("H200").all() and table.title.endswith("on H200.")
    assert frame["step_workload"].eq("96 x 2,048 tokens, 8 at a time, bfloat16").all()
    assert table.cell("quack", "step_time_ratio").runs == ("measured/quack/step_time",)


def test_table2_says_where_nothing_was_measured(tables: dict[str, Table]) -> None:
    table = tables["table2"]
    assert table.cell("quack", "step_time_ratio").word == table.cell("quack", "step_ms").word == "missing"
    assert table.title.endswith("not measured.") and set(table.frame["device"]) == {"missing"}

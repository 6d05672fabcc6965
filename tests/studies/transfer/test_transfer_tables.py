"""The transfer study's other tables, in the published world and in worlds with gaps."""

from __future__ import annotations

import math

import pytest

from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.results.runs.finished_runs import RunFrames, load
from plumbline.results.tables import write_table
from plumbline.results.tables.table import Table
from plumbline.specs import study_config, study_parts
from tests.studies import made_targets
from tests.studies.run_files import write_frame
from tests.studies.test_every_target import check_csv
from tests.studies.transfer.synthetic_results import PRIMARY, SECOND, Run
from tests.studies.transfer.synthetic_runs import PUBLISHED, World, history, read_printed_rows, tasks_of

TARGETS = study_config.load("transfer", "smoke").definition["targets"]
TABLES = sorted(name for name, entry in TARGETS.items() if entry["kind"] == "table" and not entry.get("on_request"))


def load_runs(world: World, name: str) -> RunFrames:
    """The runs that a table reads."""
    groups = world.study.definition["targets"][name]["runs"]
    return world.load(*groups) if groups else load([], world.root)


def make_table(world: World, name: str) -> Table:
    """A table of a world."""
    return study_parts.function("transfer", "tables", name)(load_runs(world, name), world.study, PUBLISHED)


#: No run is behind them: one is a table of any preset.
WITHOUT_RUNS = ("table1", "table4", "protocol_error")


@pytest.fixture(scope="module")
def tables() -> made_targets.Tables:
    return made_targets.Tables("transfer")


def test_table1_agrees_with_the_printed_taxonomy(tables):
    frame = tables["table1"].frame
    assert len(frame) == 20 and frame["matches_published"].eq("yes").all()


def test_table3(tables):
    frame = tables["table3"].frame.set_index("method")
    for row in read_printed_rows("table3"):
        got = frame.loc[row["method_id"]]
        assert f"{got['climb_avg_large']:.4f}" == row["climb_avg_3b"]
        assert got["climb_avg_delta_large"] == pytest.approx(float(row["delta_3b"]), abs=0.00011)
        assert got["rank_large"] == int(row["rank_3b"])
        # The printed rank of AttnRes at 1.2B is 19, but in the printed Table 2 it stands before SSMax.
        assert got["rank_base"] == {"attnres": 18}.get(row["method_id"], int(row["rank_1p2b"]))
    assert frame.loc[["hybrid_norm", "ssmax", "hyper"], ["climb_avg_large", "rank_large"]].isna().all(axis=None)
    assert tables["table3"].cell("ssmax", "rank_large").word == "diverged"
    assert list(frame.index[:2]) == ["qknorm_geglu", "qknorm"]


def test_rank_transfer_gives_exact_p_beside_the_approximation(tables):
    frame = tables["rank_transfer"].frame.set_index("statistic")
    row = frame.loc["spearman_improvers"]
    # 1 - 6 * 80 / (7 * 48): the printed values of Table 3 do not give the printed -0.27.
    assert row["value"] == pytest.approx(-3 / 7) and row["n_methods"] == 7 and row["all_permutations_used"] == "yes"
    assert row["p_permutation"] == pytest.approx(0.3536, abs=1e-3) and row["value_published"] == -0.27
    assert list(frame.loc[["signs_improvers", "signs_failures"], "value"]) == [7, 2]


def test_table5(tables):
    frame = tables["table5"].frame.set_index("task")
    for row in read_printed_rows("table5"):
        assert frame.loc[row["task"], "second_minus_primary"] == pytest.approx(float(row["delta"]), abs=2e-4)
    assert frame.loc["validation_loss", "second_minus_primary"] == pytest.approx(0.015)
    assert frame["second_hardware_simulated_by"].eq("none").all()
    assert frame["same_or_different_devices"].eq("different devices").all()
    assert "on two devices: NVIDIA H100 80GB HBM3 and NVIDIA A100-SXM4-80GB." in tables["table5"].title


def test_table5_names_its_stand_in(tmp_path):
    world = World(tmp_path, "demo")
    world.completed("base", "baseline", 42, tasks_of(0.30), 5.0)
    table = make_table(world, "table5")
    assert "train.precision = bfloat16" in "\n".join(table.notes)
    assert "train.precision = bfloat16" in table.frame["second_hardware_simulated_by"].iloc[0]
    assert {row[name].word for row in table.rows for name in ("value_second_hardware", "second_minus_primary")} == {
        "missing"
    }


@pytest.mark.parametrize(
    ("preset", "second", "word", "note"),
    [
        ("paper", PRIMARY, "same device", "device (NVIDIA H100 80GB HBM3). The second"),
        ("paper", {"device": None}, "device not known", "no difference between devices"),
        ("mini", SECOND, "stand-in", "same run with train.precision = float32"),
    ],
)
def test_table5_shows_no_difference_that_is_none_between_devices(tmp_path, preset, second, word, note):
    world = World(tmp_path, preset)
    world.completed("base", "baseline", 42, tasks_of(0.30), 5.0, made_on=PRIMARY)
    world.completed("base", "second_hardware", 42, tasks_of(0.31), 5.1, made_on=second)
    table = make_table(world, "table5")
    assert note in "\n".join(table.notes) and table.frame["same_or_different_devices"].eq(word).all()
    assert ("twice on the same device" in table.title) == (word == "same device")
    for row in table.rows:
        assert (
            row["second_minus_primary"].value,
            row["second_minus_primary"].word,
            row["device_with_higher_value"].value,
        ) == (None, word, word)
        assert row["value_second_hardware"].value is not None


def test_table6(tables):
    frame = tables["table6"].frame.set_index("run")
    assert list(frame.index) == ["hybrid_norm/s42", "hybrid_norm/s43", "hybrid_norm/s44", "ssmax/s42", "hyper/s42"]
    assert (frame["first_nan_step"] == frame["first_nan_step_published"]).all()
    assert (
        list(frame["divergence_pattern"])
        == list(frame["divergence_pattern_published"])
        == ["sudden"] * 3 + ["rise", "inflation"]
    )


def test_table6_keeps_what_did_not_diverge(tmp_path):
    world = World(tmp_path, "demo")
    world.completed("large", "ssmax", 42, tasks_of(0.3), 5.0)
    world.diverged("large", "softpick", 42, 30, [(step, 1.0) for step in range(30)] + [(30, math.nan)])
    world.diverged("base", "provoked_divergence", 42, 3, [(1, 5.0), (2, 1e9), (3, math.nan)])
    table = make_table(world, "table6")
    frame = table.frame.set_index("run")
    assert table.cell("ssmax/s42", "first_nan_step").word == "no divergence"
    assert table.cell("hyper/s42", "first_nan_step").word == frame.loc["hyper/s42", "divergence_pattern"] == "missing"
    assert frame.loc["softpick/s42", "divergence_pattern"] == "sudden"
    assert frame.index[-1] == "base/provoked_divergence/s42"
    assert frame.iloc[-1]["divergence_pattern"] == "too short" and frame.iloc[-1]["first_nan_step"] == 3


def test_attention_concentration(tables):
    table = tables["attention_concentration"]
    frame = table.frame.set_index("run")
    six = ["baseline/s42", "hybrid_norm/s42", "hybrid_norm/s43", "hybrid_norm/s44", "ssmax/s42", "hyper/s42"]
    assert list(frame.index[frame["cited_in"] == "Table 6"]) == six
    assert list(frame.index[frame["cited_in"] == "E.3, B.13"]) == [
        *(f"base/baseline/s{seed}" for seed in (42, 43, 44)),
        *(f"base/{name}/s42" for name in ("qknorm", "selective_attn", "softmax_cap", "ssmax", "sigmoid_attn")),
        *(f"base/{name}/s42" for name in ("softpick", "diff_attn")),
    ]
    # A run that diverged stands beside what the baseline was at about that share of training.
    shares = frame.loc[six[1:], ["training_fraction", "baseline_training_fraction"]].round(3)
    assert shares.to_numpy().tolist() == [[0.08, 0.05], [0.066, 0.05], [0.064, 0.05], [0.132, 0.1], [0.416, 0.4]]
    assert frame.loc["ssmax/s42", "step"] == 5800 and table.cell("ssmax/s42", "difference_in_sigma").word == "diverged"
    assert frame.loc["base/ssmax/s42", "difference_from_baseline"] == pytest.approx(-0.1)
    assert frame.loc["base/ssmax/s42", "difference_in_sigma"] == pytest.approx(-25)
    assert table.cell("base/baseline/s43", "difference_from_baseline").word == "reference"
    assert table.cell("softpick/s42", "difference_in_sigma").word == "no noise floor"  # one seed of the large baseline
    behind = table.cell("base/ssmax/s42", "difference_from_baseline").runs
    assert behind == ("transfer/base/ssmax/s42", *(f"transfer/base/baseline/s{seed}" for seed in (42, 43, 44)))


def test_what_was_not_read_of_attention_has_a_word(tmp_path):
    world = World(tmp_path, "demo")
    world.completed("large", "ssmax", 42, tasks_of(0.3), 5.0, probed=Run(beyond=0.25))
    world.diverged("large", "hyper", 42, 3, history("sudden", 3), probed=Run(diverged=3, concentration=math.nan))
    table = make_table(world, "attention_concentration")
    assert table.cell("ssmax/s42", "abs_logits_above_50_pct").value == pytest.approx(25, abs=0.01)
    assert table.cell("ssmax/s42", "difference_from_baseline").word == "baseline not read"
    assert table.cell("hyper/s42", "concentration").word == "no number" and table.cell("hyper/s42", "step").value == 3
    assert table.cell("baseline/s42", "concentration").word == "missing"
    key = world.study.key("large", "ssmax", 42)
    path = tmp_path / "probes" / key / "probes.parquet"
    write_frame(frames.read(path, "probes").iloc[:0], "probes", path, frames.metadata(path))
    assert make_table(world, "attention_concentration").cell("ssmax/s42", "concentration").word == "no weights of keys"


def test_table7(tables):
    frame = tables["table7"].frame.set_index("method")
    assert list(frame.index) == [row["method_id"] for row in read_printed_rows("table7")]
    assert frame.loc["sigmoid_attn", "loss_minus_baseline_pct"] == pytest.approx(2.35, abs=0.01)
    assert frame.loc["attnres", "loss_minus_baseline"] == pytest.approx(0.3275)


def test_noise_floor(tables):
    frame = tables["noise_floor"].frame.set_index("method")
    assert f"{frame.loc['baseline', 'sigma']:.5f}" == "0.00208"
    assert frame.loc["softpick", "welch_t"] == pytest.approx(6.36, abs=0.1)
    assert frame.loc["softpick", "welch_p"] == pytest.approx(0.0053, abs=3e-4)
    assert frame.loc["softpick", "prob_not_above_baseline"] == 0.0 and frame.loc["softpick", "tasks_compared"] == 12
    assert (
        frame.loc["qknorm", "climb_avg_mean_bootstrap_ci95_low"]
        > frame.loc["baseline", "climb_avg_mean_bootstrap_ci95_high"]
    )
    assert tables["noise_floor"].cell("baseline", "welch_t").word == "reference"
    # Tasks that move together are less evidence than independent ones.
    # Half of the tasks move against the other half here, from seed to seed: their sum varies less than apart.
    assert 0 < frame.loc["softpick", "stouffer_z"] < frame.loc["softpick", "stouffer_z_correlated_tasks"]


def test_the_reference_has_six_seeds_at_mini(tmp_path):
    world = World(tmp_path, "mini")
    for seed in range(42, 48):
        world.completed("base", "baseline", seed, tasks_of(0.30 + 0.001 * seed), 5.0)
    for method, seeds in (("qknorm", (42, 43, 44)), ("softpick", (42,))):
        for seed in seeds:
            world.completed("base", method, seed, tasks_of(0.34 + 0.002 * seed), 4.9)
    floor, main = make_table(world, "noise_floor"), make_table(world, "table2")
    assert floor.frame.set_index("method")["n_seeds"].to_dict() == {"baseline": 6, "qknorm": 3, "softpick": 1}
    assert "3 seeds have 10 distinct resamples" in floor.notes[0]
    notes = " ".join(main.notes)
    assert "over 6 seeds" in notes and "with 5 degrees of freedom" in notes and "With 6 seeds of the reference" in notes


def test_noise_floor_with_too_few_seeds(tmp_path):
    world = World(tmp_path, "demo")
    for seed in (42, 43):
        world.completed("base", "baseline", seed, tasks_of(0.3 + seed / 1000), 5.0)
    world.completed("base", "qknorm", 42, tasks_of(0.35), 5.0)
    world.diverged("base", "softpick", 42, 3500, history("sudden", 3500))
    table = make_table(world, "noise_floor")
    assert table.cell("qknorm", "welch_t").word == "too few seeds"
    assert table.cell("qknorm", "outcome").value == "completed 1, missing 2"
    assert {
        table.cell("softpick", name).word for name in ("welch_t", "sigma", "climb_avg_mean_bootstrap_ci95_low")
    } == {"diverged"}


def test_task_deltas(tables):
    table = tables["task_deltas"]
    frame = table.frame.set_index("method")
    assert frame.loc["sigmoid_attn", "lambada_openai_score_delta"] == pytest.approx(-0.416, abs=0.002)
    assert len(frame.loc["sigmoid_attn", "piqa_score_delta":"truthfulqa_mc2_score_delta"]) == 12
    assert frame.loc["baseline", "piqa_score_delta":"truthfulqa_mc2_score_delta"].astype(float).abs().max() == 0


def test_variants(tmp_path):
    world = World(tmp_path, "demo")
    for seed, value in ((42, 0.30), (43, 0.31), (44, 0.305)):
        world.completed("base", "baseline", seed, tasks_of(value), 5.0 + seed / 1000)
    world.completed("base", "baseline.decayed_norms", 42, tasks_of(0.312), 5.0)
    world.completed("base", "ssmax", 42, tasks_of(0.28), 5.4)
    world.completed("base", "ssmax.divide", 42, tasks_of(0.295), 5.1)
    world.diverged("base", "ssmax.original", 42, 7, [(5, 1.0), (6, 9.0), (7, math.nan)])
    world.completed("base", "hyper.official", 42, tasks_of(0.31), 5.0)
    table = make_table(world, "variants")
    frame = table.frame.set_index("run")
    own = [f"base/ssmax.{name}/s42" for name in world.study.definition["methods"]["ssmax"]["variants"]]
    at = list(frame.index).index("base/ssmax/s42")
    assert list(frame.index[at + 1 : at + 1 + len(own)]) == own, "each below its default"
    assert set(frame.index) >= {f"base/{name}/s42" for name in world.study.variants}
    assert "base/qknorm/s42" not in frame.index, "which has no variant"
    divide = frame.loc["base/ssmax.divide/s42"]
    assert (divide["z"], divide["climb_avg_minus_control"]) == (pytest.approx(-2.0), pytest.approx(-0.005))
    assert (divide["climb_avg_minus_default"], divide["loss_minus_default"]) == (
        pytest.approx(0.015), pytest.approx(-0.3)
    )  # fmt: skip
    assert divide["interpretations"] == "ssmax_scale" and '"variant": "divide"' in divide["description"]
    # A variant of the reference: z from the mean of all its seeds, the difference from the run of the same seed.
    decayed = frame.loc["base/baseline.decayed_norms/s42"]
    assert decayed["z"] == pytest.approx(1.4) and decayed["climb_avg_minus_default"] == pytest.approx(0.012)
    assert decayed["loss_minus_default"] == pytest.approx(-0.042)
    assert decayed["interpretations"] == "weight_decay_groups"
    numbers = ("validation_loss", "loss_minus_default", "climb_avg", "climb_avg_minus_default", "z")
    assert {table.cell("base/ssmax.original/s42", name).word for name in numbers} == {"diverged"}
    assert {table.cell("base/ssmax.context/s42", name).word for name in numbers} == {"missing"}
    official = "base/hyper.official/s42"
    assert table.cell(official, "climb_avg_minus_default").word == "missing", "its default is not there"
    assert frame.loc[official, "climb_avg"] == pytest.approx(0.31)
    # What Table 4 prints distinguishes variants, at the size of the paper alone.
    runs = [f"base/{name}/s42" for name in ("diff_attn", "diff_attn.per_head_lambda", "diff_attn.official")]
    assert [f"{share:.2f}" for share in frame.loc[runs, "delta_params_pct_paper_size"]] == ["0.01", "0.01", "0.00"]


#: Tables that name each run of theirs.
BY_RUN = {"table5", "table6", "attention_concentration"}


def test_variants_enter_no_other_table(sparse_tables, tmp_path):
    world = World(tmp_path, "demo")
    fill_sparsely(world)
    for name in ("baseline.decayed_norms", "ssmax.divide", "softpick.original"):
        world.completed("base", name, 42, tasks_of(0.5), 4.0)
    everything = world.load()
    for name in sparse_tables.keys() - BY_RUN - {"variants"}:
        table = study_parts.function("transfer", "tables", name)(everything, world.study, PUBLISHED)
        assert write_table.to_csv(table) == write_table.to_csv(sparse_tables[name]), name
    assert world.study.m == 19


def test_an_empty_world_has_every_row_and_no_number(tmp_path):
    world = World(tmp_path, "demo")
    for name in TABLES:
        if name in WITHOUT_RUNS:
            continue
        table = make_table(world, name)
        for column in table.columns:
            if column.kind == "reproduced" and column.numeric and column.name != "delta_params_pct_paper_size":
                # A count of nothing is a number that is true.
                assert not [row for row in table.rows if row[column.name].value], column.name


def test_table4_is_exact_at_paper_size_under_any_preset(tmp_path):
    table = make_table(World(tmp_path, "demo"), "table4")
    frame = table.frame.set_index("method")
    assert frame.loc["baseline", "parameters"] == 1_216_710_656 and table.preset == "paper"
    for row in read_printed_rows("table4"):
        got = frame.loc[row["method_id"]]
        assert f"{got['params_b']:.3f}" == row["params_b"]
        assert f"{got['delta_params_pct']:.2f}" == row["delta_params_pct"]
        assert got["delta_flops_pct"] == pytest.approx(float(row["delta_flops_pct"]), abs=0.011)


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    """Few runs of the reference and of another method, and one that diverged. Read only."""
    world = World(tmp_path_factory.mktemp("sparse"), "demo")
    fill_sparsely(world)
    return world


def fill_sparsely(world: World) -> None:
    for seed, value in ((42, 0.30), (43, 0.31)):
        world.completed("base", "baseline", seed, tasks_of(value), 5.0)
    world.completed("base", "qknorm", 42, tasks_of(0.28), 5.4)
    world.diverged("base", "ssmax", 42, 7, [(5, 1.0), (6, 9.0), (7, math.nan)])
    world.completed("large", "baseline", 42, tasks_of(0.32), 4.8)


@pytest.fixture(scope="module")
def sparse_tables(sparse):
    return {name: make_table(sparse, name) for name in TABLES if name not in WITHOUT_RUNS}


def test_a_csv_is_read_as_numbers_whatever_is_missing(sparse_tables):
    for table in sparse_tables.values():
        check_csv(table)


def test_a_study_without_a_noise_floor_is_refused(published):
    bare = {key: value for key, value in published.study.definition.items() if key != "noise_floor"}
    study = study_config.Study(name="transfer", preset="paper", definition=bare, runs=published.study.runs)
    for name in set(TABLES) - {"table1", "table4", "table6", "protocol_error"}:
        with pytest.raises(PlumblineError, match=f"study.yaml: noise_floor: {name} measures distances"):
            study_parts.function("transfer", "tables", name)(published.load(), study, PUBLISHED)

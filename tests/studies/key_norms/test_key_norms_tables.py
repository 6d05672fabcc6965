"""Table 1: the runs' norms next to the printed ones, and what they show about decay, in numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.results.tables import terminal_table, write_table
from plumbline.results.tables.table import Table
from plumbline.studies.key_norms.tables.table1 import table1
from tests.studies.key_norms.synthetic_runs import PUBLISHED, World


def make_table(world: World) -> Table:
    return table1(world.load(), world.study, PUBLISHED)


@pytest.fixture(scope="module")
def table(right: World) -> Table:
    return make_table(right)


def test_each_layer_and_each_printed_group_has_a_row(table: Table) -> None:
    frame = table.frame.set_index("layers")
    assert list(frame.index) == ["early", "middle", "final", "middle_in_code", *(f"layer_{n}" for n in range(22))]
    printed = {row: cells.text for row in frame.index[:4] if (cells := table.cell(row, "key_l2_norm_published")).text}
    assert printed == {"early": "5.3", "middle": "9.3", "final": "9.8"}
    assert frame.loc[["early", "final"], "key_l2_norm"].tolist() == pytest.approx([5.3, 9.8])
    assert frame.loc["layer_0", "key_l2_norm"] == pytest.approx(5.2)  # the heads' mean
    assert frame["key_l2_norm_frozen_gains"].tolist() == pytest.approx([8.0] * 26)
    assert frame["key_l2_norm_decay_only"].tolist() == pytest.approx([2.475] * 26, abs=5e-4)
    assert frame["n_seeds"].eq(1).all() and frame["outcome"].eq("completed").all()


def test_a_cell_knows_its_runs(table: Table) -> None:
    assert table.cell("early", "key_l2_norm").runs == ("key_norms/base/as_published/s42",)
    assert table.cell("layer_3", "entropy_no_decay").runs == ("key_norms/base/no_decay/s42",)


def test_how_far_a_layer_went_of_decays_way(tmp_path, right: World) -> None:
    """1 on the decay line, 0 where nothing moved, below 0 where a norm rose."""
    alone = 8 * (1 - 0.024 / 4 * 0.2) ** 977
    changed = right.arms["as_published"].with_norms(l0=8.0, l1=alone, l2=8 + (8 - alone) / 2, l3=8 - 1.2 * (8 - alone))
    shares = make_table(World(tmp_path, arms=right.arms | {"as_published": changed})).frame.set_index("layers")[
        "key_l2_norm_change_over_decay_only_change"
    ]
    assert shares[["layer_0", "layer_1", "layer_2", "layer_3"]].tolist() == pytest.approx([0, 1, -0.5, 1.2], abs=1e-9)
    assert shares["early"] == pytest.approx(0.5)


def test_what_these_runs_say_is_said_in_numbers(table: Table, tmp_path, right: World) -> None:
    notes = "\n".join(table.notes)
    assert "norm from 8.00 to 2.48 (-5.52)" in notes
    assert "As published (weight decay 0.2 on gains): layer 0 +0.51, 1 +0.47, " in notes
    assert "layer 0 -0.13, " in notes
    assert "Frozen gains: no layer's norm moved by 0.005." in notes
    assert "Of 22 layers 7 end lower" in notes
    assert "higher by 3.50 to 3.50." in notes
    # The other finding is told as well: early layers that fall without decay.
    learned = right.arms | {"no_decay": right.arms["no_decay"].with_norms(l0=4.0, l1=4.5)}
    assert "started as published, 2" in "\n".join(make_table(World(tmp_path, arms=learned)).notes)


def test_a_missing_or_diverged_arm_is_a_word(tmp_path, right: World) -> None:
    arms = {"as_published": right.arms["as_published"], "no_decay": replace(right.arms["no_decay"], outcome="diverged")}
    table = make_table(World(tmp_path, arms=arms))
    row = table.rows[0]
    assert row["key_l2_norm_no_decay"].word == "diverged" and row["key_l2_norm_frozen_gains"].word == "missing"
    assert row["key_l2_norm"].value == pytest.approx(5.3) and row["n_seeds"].value == 1
    assert row["outcome"].value == "completed 1, diverged 1, missing 1"
    notes = "\n".join(table.notes)
    assert "No weight decay on gains: diverged." in notes and "Frozen gains: missing." in notes
    assert "Of 22 layers" not in notes
    nothing = make_table(World(tmp_path / "none", arms={"no_decay": right.arms["no_decay"]}))
    assert (
        nothing.rows[0]["key_l2_norm"].word
        == nothing.rows[0]["key_l2_norm_change_over_decay_only_change"].word
        == "missing"
    )
    assert "missing, so that nothing is said of weight decay" in nothing.notes[0]


def test_a_change_needs_both_ends(right: World) -> None:
    frames = right.load()
    late = replace(frames, probes=frames.probes[frames.probes["step"] > 0])
    with pytest.raises(PlumblineError, match=r"key_norm.*step 88.*step 977 of 977"):
        table1(late, right.study, PUBLISHED)


def test_the_terminal_has_what_decay_does(table: Table, right: World, tmp_path) -> None:
    write_table.write(table, right.load(), tmp_path / "table1.csv")
    terminal_text = terminal_table.format_for_terminal(tmp_path / "table1.csv")
    head = next(line for line in terminal_text.splitlines() if line.startswith("Layers"))
    assert all(word in terminal_text for word in ("decay 0.2", "no decay", "frozen", "decay alone", "(9.8)")), head

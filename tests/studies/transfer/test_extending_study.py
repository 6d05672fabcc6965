"""A study that extends transfer and holds the reference and one method of its own: every table and figure is made."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from plumbline.results.figures import figure_style
from plumbline.results.tables import write_table
from plumbline.results.tables.provenance import collect_run_facts
from plumbline.specs import study_config, study_parts
from plumbline.specs.yaml_files import ROOT
from tests.studies.run_files import keep_read
from tests.studies.transfer.synthetic_runs import PUBLISHED, World, curve, tasks_of

MINE = {
    "study": "mine",
    "title": "A modification of one's own",
    "extends": "transfer",
    "methods": {"capped": {"label": "Capped", "model": {"mixer": {"name": "softmax_cap", "cap": 30.0}}}},
    "seeds": [42, 43],
}
ALL = [(kind, name) for kind in ("tables", "figures") for name in study_parts.targets("transfer", kind)]
ALL.remove(("tables", "table4"))  # at paper size, below


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Finished runs of a user's own study."""
    root = tmp_path_factory.mktemp("mine")
    for folder in ("config/corpora", "config/suites", "config/tasks", "studies/transfer"):
        shutil.copytree(ROOT / folder, root / folder)
    (root / "studies/mine").mkdir()
    (root / "studies/mine/study.yaml").write_text(yaml.safe_dump(MINE))
    world = World(root / "work", "demo", study_config.load("mine", "demo", root))
    for seed, value in ((42, 0.30), (43, 0.31), (44, 0.305)):
        world.completed("base", "baseline", seed, tasks_of(value), 5.0, curve(44, 5.0, every=11))
    world.completed("base", "capped", 42, tasks_of(0.318), 4.9, curve(44, 4.9, every=11))
    world.completed("large", "baseline", 42, tasks_of(0.32), 4.8, curve(44, 4.8, every=11))
    return keep_read(world)


def make(world: World, kind: str, name: str):
    return study_parts.function(world.study.code, kind, name)(world.load(), world.study, PUBLISHED)


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_every_table_and_figure_is_made(mine: World, tmp_path: Path, kind: str, name: str) -> None:
    target = make(mine, kind, name)
    if kind == "tables":
        write_table.write(target, mine.load(), tmp_path / f"{name}.csv")
        of_references = ("noise_floor", "borderline_seeds", "large_seeds")
        assert "softpick" not in [row[target.key].value for row in target.rows] or name in of_references
    else:
        figure_style.save(target, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000


def test_its_method_is_one_of_one(mine: World) -> None:
    table = make(mine, "tables", "table2")
    assert [row["method"].value for row in table.rows] == ["capped", "baseline"]
    row = table.rows[0]
    assert row["z"].value == pytest.approx((0.318 - 0.305) / 0.005)
    assert row["p_bonferroni"].value == row["p"].value and "m = 1 methods" in " ".join(table.notes)
    assert row["climb_avg"].runs == ("mine/base/capped/s42",) and row["climb_avg_published"].word == "not printed"
    assert set(table.cell("baseline", "climb_avg").runs) == {f"transfer/base/baseline/s{n}" for n in range(42, 48)}


def test_m_may_count_more_than_was_run(mine: World) -> None:
    study = study_config.Study(
        name="mine", preset="demo", definition=mine.study.definition | {"m": 5}, runs=mine.study.runs
    )
    table = study_parts.function("transfer", "tables", "table2")(mine.load(), study, PUBLISHED)
    row = table.rows[0]
    assert row["p_bonferroni"].value == pytest.approx(5 * row["p"].value)


def test_what_the_document_has_and_the_study_has_not_is_said(mine: World) -> None:
    assert "study: softpick, qknorm, sigmoid_attn" in " ".join(make(mine, "tables", "table7").notes)
    assert "study: hybrid_norm/s42" in " ".join(make(mine, "tables", "table6").notes)
    assert "no run second_hardware" in " ".join(make(mine, "tables", "table5").notes)
    axis_text = "\n".join(text.get_text() for text in make(mine, "figures", "fig2").figure.axes[0].texts)
    assert "Baseline 5.000" in axis_text and "AttnRes (no run of this study)" in axis_text


def test_its_cost_stands_beside_the_papers(mine: World) -> None:
    paper = World(mine.root / "none", "paper", study_config.load("mine", "paper", mine.root.parent))
    table = make(paper, "tables", "table4")
    assert [row["method"].value for row in table.rows] == ["baseline", "capped"]
    assert table.cell("capped", "delta_params_pct").value == 0 and table.rows[0]["params_b_published"].text == "1.217"


def test_a_suite_of_its_own_is_what_references_are_read_on(mine: World, tmp_path: Path) -> None:
    """Its references' runs lie with the parent's, their scores on its suite with its own; those on the parent's are
    not read."""
    root = mine.root.parent
    (root / "studies/other").mkdir(exist_ok=True)
    content = yaml.safe_dump(MINE | {"study": "other", "suite": "piqa"})
    (root / "studies/other/study.yaml").write_text(content)
    world = World(tmp_path, "demo", study_config.load("other", "demo", root))
    world.completed("base", "baseline", 42, tasks_of(0.30), 5.0, curve(44, 5.0, every=11))
    key = "transfer/base/baseline/s42"
    assert world.load().scores.empty, "scores on the parent's suite"
    (tmp_path / "scores/other/base/baseline").mkdir(parents=True)
    (tmp_path / "scores" / key).rename(tmp_path / "scores/other/base/baseline/s42")
    frames = world.load()
    assert set(frames.scores["key"]) == {key} and frames.task_scores(key).size == 12
    assert len(frames.examples(key)) and "scores/other/base/baseline/s42" in collect_run_facts(frames, key)["scores"]


def test_suite_of_its_own_is_named(mine: World, tmp_path: Path) -> None:
    root = mine.root.parent
    (root / "studies/seven").mkdir()
    (root / "studies/seven/study.yaml").write_text(yaml.safe_dump(MINE | {"study": "seven", "suite": "premature7"}))
    study = study_config.load("seven", "demo", root)
    world = World(tmp_path, "demo", study)
    scored = tasks_of(0.30).loc[list(study.suite.task_names)]
    world.completed("base", "capped", 42, scored, 5.0, curve(44, 5.0, every=11))
    keep_read(world)
    pattern = "Another suite than the paper's: .* seven_avg of the suite premature7 .7 tasks: piqa, .* suite climb12"
    for name in ("table2", "table3", "table5", "table7", "noise_floor", "variants", "signals", "task_deltas"):
        table = make(world, "tables", name)
        assert re.search(pattern, " ".join(table.warnings)), name
        presets = {row["preset"].value for row in table.rows}
        assert presets == {"demo, suite: premature7"} or (name == "variants" and not table.rows), "it has none here"
        assert not any("suite" in word for word in make(mine, "tables", name).warnings)
    listed = [row["task"].value for row in make(world, "tables", "table5").rows]
    assert set(listed) == {*study.suite.task_names, "climb_avg", "validation_loss"}, "as this world calls the average"
    assert len(listed) == 9 and not {"winogrande", "boolq"} & {column.name for column in table.columns}
    picture = make(world, "figures", "fig3")
    assert "suite: premature7" in picture.figure.axes[0].get_title(loc="left")

"""What a person reads of a plan: a terminal of 80 columns, and the page with everything."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import pandas as pd
import pytest
from msgspec import structs

from plumbline.plan import __main__ as plan_verb
from plumbline.plan import machines, model_counts, plan_page
from plumbline.plan.run_estimate import RunEstimator, estimator
from plumbline.plan.target_costs import WHOLE, make_table
from plumbline.project import Project
from tests import run_in_process
from tests.plan.counted_models import look_up_counts

LONG = "a_table_of_one_s_own_with_a_very_long_name"


def widest(text: str) -> int:
    return max(len(line) for line in text.splitlines())


def several(whole: Project) -> Project:
    """The same with a second study, one of whose targets has a long name."""
    study = whole.studies["transfer"]
    targets = study.definition["targets"] | {LONG: study.definition["targets"]["table2"]}
    other = dataclasses.replace(study, name="query_free", definition=study.definition | {"targets": targets})
    return dataclasses.replace(whole, studies={"transfer": study, "query_free": other})


def make_estimator(whole: Project, **changes: float) -> RunEstimator:
    machine = structs.replace(machines.load("h100"), **changes)
    return estimator(whole, machine, sizes=look_up_counts())


@pytest.mark.parametrize("price", [0.0, 2500.0])
def test_a_terminal_of_80_columns_is_enough(paper: Project, price: float) -> None:
    for priced in (make_estimator(several(paper), price=price), estimator(several(paper), machines.load("h100"))):
        priced = dataclasses.replace(priced, machine=structs.replace(priced.machine, price=price))
        frame = make_table(priced)
        text = plan_page.terminal(priced, frame)
        assert widest(text) <= plan_page.WIDTH == 80
        assert ("price" in text) == bool(price)
        for name in ("transfer", "query_free", "table2", WHOLE, "(all studies)", "1.2B Baseline"):
            assert name in text
        assert LONG[: plan_page.WORD_WIDTH] in text and LONG not in text


def test_about_stands_where_a_run_is_estimated_and_nowhere_else(paper: Project) -> None:
    runs = paper.studies["transfer"].group("large", "divergence")
    some = estimator(paper, sizes=model_counts.ModelCostLookup(model_counts.update(Path(paper.paths.counts), runs)))
    frame = make_table(some)
    estimated = frame.set_index("target")["runs_estimated"]
    assert estimated["table6"] == estimated["table1"] == 0
    assert estimated["table2"] == 26 and estimated[WHOLE] == len(paper.runs) - len(runs)
    for show in (plan_page.terminal, plan_page.markdown):
        lines = show(some, frame).splitlines()
        rows = {name: next(line for line in lines if name in line.split()) for name in ("table2", "table6")}
        assert "about" in rows["table2"] and "about" not in rows["table6"]
        assert any(line.startswith("Where a row says *about*") for line in lines)
        whole = make_estimator(paper)
        assert "*about*" not in show(whole, make_table(whole))


def test_the_page_has_all_columns(paper: Project) -> None:
    priced = make_estimator(paper, price=2.0)
    frame = make_table(priced)
    whole, narrow = plan_page.markdown(priced, frame), plan_page.terminal(priced, frame)
    for heading in ("training FLOPs", "evaluations", "longest path", "of these evaluation", "disk, GB", "price"):
        assert f"| {heading} " in whole or f" {heading} |" in whole
    hours = f"{frame.set_index('target').loc['table2', 'device_hours']:,.0f}"
    assert hours in whole and hours in narrow
    assert "## Next to the paper's" in whole


def test_the_verb_prints_the_narrow_table(repository: Path, tmp_path: Path) -> None:
    args = ["--preset", "paper", "--machine", "h100", "--device-hour-price", "2.5", "--config", f"work={tmp_path}"]
    args += ["--by", "targets"]
    args += ["--config", "studies=[transfer]", "--out", str(tmp_path / "plan.csv")]
    process = run_in_process.run(plan_verb.main, *args, cwd=repository)
    assert (process.returncode, process.stderr) == (0, "")
    assert widest(process.stdout) <= 80
    assert widest((tmp_path / "plan.md").read_text()) > 120
    assert (tmp_path / "counts.json").exists()
    with (tmp_path / "plan.csv").open() as handle:
        rows = {row["target"]: row for row in csv.DictReader(handle)}
    assert rows["table2"]["runs_estimated"] == "0" and rows["table2"]["not_counted"] == ""
    names = {"study", "target", "preset", "machine", "speed", "not_counted"}
    frame = pd.read_csv(tmp_path / "plan.csv")
    assert set(frame.select_dtypes(exclude="number").columns) | {"not_counted"} == names


def test_targets_are_priced_alone_in_the_order_asked_for(repository: Path, tmp_path: Path) -> None:
    args = ["--preset", "paper", "--machine", "h100", "--config", f"work={tmp_path}"]
    process = run_in_process.run(plan_verb.main, "results/quack/fig1.png", "results/table2.csv", *args, cwd=repository)
    assert process.returncode == 0 and widest(process.stdout) <= 80
    lines = [line.split() for line in process.stdout.splitlines()]
    assert [line[0] for line in lines if line and line[0] in ("fig1", "table2", "table1")] == ["fig1", "table2"]
    assert [line for line in lines if line in (["quack"], ["transfer"])] == [["quack"], ["transfer"]]
    for wrong, facts in (
        ("results/quack/tabl1.csv", ("quack", "tabl1", "table1")),
        ("results/tabel2.csv", ("transfer",)),
    ):
        refused = run_in_process.run(plan_verb.main, wrong, *args, cwd=repository)
        assert refused.returncode == 1 and all(fact in refused.stderr for fact in (wrong, *facts))
    refused = run_in_process.run(plan_verb.main, "results/table2.csv", "--by", "sizes", *args, cwd=repository)
    assert refused.returncode == 1 and "--by sizes" in refused.stderr


def test_a_small_price_is_not_none(demo: Project) -> None:
    priced = estimator(demo, machines.replace_price(machines.load("core"), 2.5))
    frame = make_table(priced)
    row = plan_page.round_table(frame).set_index("target").loc["table2"]
    exact = frame.set_index("target").loc["table2", "price"]
    assert 0 < exact < 1 and float(row["price"].removeprefix("about ")) == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("machine", ["", "[core]", "{name: core}", "true", "1.5", "cor"])
def test_what_is_no_machine_is_a_sentence(machine: str, repository: Path) -> None:
    process = run_in_process.run(plan_verb.main, "--preset", "demo", "--config", f"machine={machine}", cwd=repository)
    assert process.returncode == 1 and process.stderr.startswith("error: ") and "machine" in process.stderr, (
        process.stderr
    )


def test_fewer_nodes_take_longer_for_the_same_device_hours(repository: Path, tmp_path: Path) -> None:
    config = ["--config", f"work={tmp_path}", "studies=[transfer]"]
    args = ["results/table2.csv", "--preset", "paper", "--machine", "h100", *config]
    plans = {}
    for nodes in ("2", "4", "8"):
        process = run_in_process.run(
            plan_verb.main, *args, "--nodes", nodes, "--out", str(tmp_path / f"{nodes}.csv"), cwd=repository
        )
        assert process.returncode == 0 and f"{8 * int(nodes)} at once" in " ".join(process.stdout.split()), (
            process.stderr
        )
        plans[nodes] = pd.read_csv(tmp_path / f"{nodes}.csv").set_index("target").loc["table2"]
    hours = [plan["wall_hours"] for plan in plans.values()]
    assert hours == sorted(hours, reverse=True) and hours[0] > 1.5 * hours[1]
    assert len({plan["device_hours"] for plan in plans.values()}) == 1
    asked = run_in_process.run(plan_verb.main, *args, cwd=repository)
    assert asked.stdout == process.stdout, "the entry has eight nodes"


@pytest.mark.parametrize(
    ("machine", "nodes", "code", "facts"),
    [
        ("h100", "0", 2, ("--nodes", "'0'", "from 1 on")),
        ("h100", "-1", 2, ("--nodes", "'-1'", "from 1 on")),
        ("h100", "four", 2, ("--nodes", "'four'", "from 1 on")),
        ("h100", "1", 1, ("config/machines.yaml", "h100.devices.two_nodes", "transfer/large/", "16 devices")),
        ("core", "4", 1, ("config/machines.yaml", "core", "processor", "--machine h100")),
    ],
)
def test_nodes_that_cannot_be_planned_are_refused(
    machine: str, nodes: str, code: int, facts: tuple[str, ...], repository: Path, tmp_path: Path
) -> None:
    args = ["--preset", "paper", "--machine", machine, "--nodes", nodes]
    process = run_in_process.run(
        plan_verb.main, *args, "--config", f"work={tmp_path}", "studies=[transfer]", cwd=repository
    )
    assert process.returncode == code and all(fact in process.stderr for fact in facts), process.stderr


def test_nodes_have_to_fit_the_runs_of_the_targets_asked_for(repository: Path, tmp_path: Path) -> None:
    """Table 2 has runs of one node; others of the study take two."""
    args = ["results/table2.csv", "--preset", "paper", "--machine", "h100", "--nodes", "1"]
    config = ["--config", f"work={tmp_path}", "studies=[transfer]"]
    process = run_in_process.run(plan_verb.main, *args, *config, cwd=repository)
    assert process.returncode == 0 and "8 at once" in " ".join(process.stdout.split()), process.stderr
    out = tmp_path / "plan.csv"  # of all targets
    process = run_in_process.run(plan_verb.main, *args, "--out", str(out), *config, cwd=repository)
    assert process.returncode == 1 and "transfer/large/" in process.stderr and not out.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["."], "no study 'transfer' is planned (planned: ['premature']); name one of these"),
        (["--machine", ""], "machine: '' is no name of a machine"),
        (["--by", "stages"], "--by stages is of what whole studies train, which is nothing here"),
    ],
)
def test_what_plans_nothing_is_refused(words: list[str], message: str, repository: Path, tmp_path: Path) -> None:
    """An empty machine was the default one, and stages of small models alone were a page of zeros."""
    config = ["--preset", "evening", "--config", f"work={tmp_path}", "studies=[premature]"]
    process = run_in_process.run(plan_verb.main, *words, *config, cwd=repository)
    assert process.returncode == 1 and message in process.stderr, process.stderr


def test_sizes_of_models_on_request_are_shown(repository: Path, tmp_path: Path) -> None:
    config = ["--preset", "evening", "--config", f"work={tmp_path}", "studies=[premature]"]
    process = run_in_process.run(plan_verb.main, "--by", "sizes", *config, cwd=repository)
    assert process.returncode == 0 and "840,768" in process.stdout and "1,288,128" in process.stdout, process.stdout

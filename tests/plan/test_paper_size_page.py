"""docs/paper-size.md: every figure of its first section, and what else it states about a plan, is the plan's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from plumbline.plan import data_stage, model_counts, step_memory, target_costs
from plumbline.plan.data_stage import DataRule
from plumbline.plan.run_estimate import RunEstimator, estimator
from plumbline.project import Project
from tests.plan.counted_models import look_up_counts
from tests.plan.finished_run_files import by_target


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs/paper-size.md").read_text()


@pytest.fixture
def priced(paper: Project) -> RunEstimator:
    return estimator(paper, sizes=look_up_counts())


def rules(paper: Project, pack: str) -> dict[str, DataRule]:
    smaller = data_stage.up_to_pack(paper, "climbmix", pack)
    return {rule.rule: rule for rule in data_stage.rules(smaller, "climbmix")}


def numbers(text: str) -> list[str]:
    return re.findall(r"\d[\d,]*(?:\.\d+)?", text)


def says(text: str, *expected: float) -> None:
    """The numbers of a text are these, rounded to the digits that it gives, and no others."""
    actual = numbers(text)
    assert len(actual) == len(expected), f"{text!r}: {actual} for {expected}"
    for stated, value in zip(actual, expected):
        digits = len(stated.partition(".")[2])
        assert f"{value:,.{digits}f}" == stated, f"{text!r}: {stated} for {value}"


def test_the_table_says_what_the_plan_says(repository: Path, page: str, paper: Project, priced: RunEstimator) -> None:
    lines = page[: page.index("The bottleneck")].splitlines()
    rows = {line.split("|")[1].strip(): line.split("|", 2)[2] for line in lines if line.startswith("| ")}
    assert numbers(rows.pop("stage")) == ["23", "1.2", "60", "3"]
    base, large = target_costs.run_classes(priced)
    targets, small, other = by_target(priced), rules(paper, "base"), rules(paper, "large")
    shards = paper.preset["tokenize_shards"]
    profile = yaml.safe_load((repository / "profiles/slurm/config.v9+.yaml").read_text(encoding="utf-8"))
    beside = {"tokenize": (data_stage.TOGETHER,), "documents": (profile["set-threads"]["documents"],)}
    for rule in ("documents", "tokenizer", "tokenize", "pack"):
        (name,) = (name for name in rows if name.startswith(f"`{rule}`"))
        assert (f"{shards} shards" in name) == (rule == "tokenize")
        pairs = [
            (each.seconds / 3600, each.disk / 1e9)[: 1 if rule == "tokenizer" else 2]
            for each in (small[rule], other[rule])
        ]
        says(rows.pop(name), *pairs[0], *pairs[1], other[rule].cost.megabytes / 1e3, *beside.get(rule, ()))
    sums = [(sum(each.seconds for each in all_.values()) / 3600, sum(each.disk for each in all_.values()) / 1e9)
            for all_ in (small, other)]  # fmt: skip
    says(rows.pop("all, before the first training"), *sums[0], *sums[1])
    hours, memory = [each.longest / 3600 for each in (base, large)], [each.node_mb / 1e3 for each in (base, large)]
    says(rows.pop("a run"), *hours, *memory)
    runs = [paper.runs[f"transfer/{scale}/baseline/s42"] for scale in ("base", "large")]
    billions = [priced.size(run).parameters / 1e9 for run in runs]
    points = [model_counts.probe_points(run) for run in runs]
    assert points == [6, 6] and sorted(map(model_counts.probe_points, paper.runs.values()))[len(paper.runs) // 2] == 1
    says(rows.pop("its checkpoints (three) and weights"),
         *(size * number for number, more in zip(billions, points) for size in (36, 8, 4 * (1 + more))))  # fmt: skip
    says(rows.pop(f"Table 2: {targets.loc['table2', 'runs_to_do']} runs, evaluated"),
         targets.loc["table2", "device_hours"], targets.loc["table2", "wall_hours"] / 24)  # fmt: skip
    says(rows.pop(f"whole study: {base.runs} + {large.runs} runs"),
         base.device_hours, large.device_hours, targets["wall_hours"].max() / 24)  # fmt: skip
    assert not rows, "a row that nothing holds"


def test_the_words_say_what_the_plan_says(page: str, paper: Project, priced: RunEstimator) -> None:
    start = page.index("The bottleneck")
    section = " ".join(page[start : page.index("##", start)].split())
    stages, targets = rules(paper, "large"), by_target(priced)
    slowest = data_stage.bottleneck(stages.values())
    assert slowest.rule == "documents"
    network, disk = slowest.network / 3600, slowest.disk_seconds / 3600
    speed = priced.machine.disk_mb_per_second
    passes = slowest.disk_seconds * speed / 1.05 / (data_stage.text_bytes(paper, "climbmix") / 1e6)
    assert passes == pytest.approx(5) and "for five passes" in section
    waits, _, rest = section.partition("assumed")
    says(waits, network, 1 / 0.0667, disk, speed)
    corpus = data_stage.corpus_bytes(paper, "climbmix") / 1e12
    (sizes,) = re.findall(r"Give `work/` (\S+) TB for the corpus, (\S+) TB with", rest)
    assert float(sizes[0]) >= corpus >= float(sizes[0]) - 0.2
    says(sizes[1], targets.loc["table2", "disk_gb"] / 1e3)
    assert "two slices of 24 hours" in rest and priced.machine.slice_hours == 24
    base = [run for run in paper.runs.values() if run.spec.scale == "base"]
    longest = {run.spec.method: jobs for run in base if (jobs := target_costs.training_jobs(priced, run)) > 1}
    assert set(longest.values()) == {2} and {"attnres", "hyper.official"} <= set(longest)
    assert all(name.startswith("attnres") for name in set(longest) - {"hyper.official"})
    assert "AttnRes and `hyper.official` take two" in rest
    open_ = page[page.index("## What is open") :]
    (sent,) = re.findall(r"send one another: (.*)\.", open_)
    models = [(run, 4 * priced.size(run).parameters) for run in paper.runs.values()]
    assert step_memory.describe_sent(priced.machine, models) == "node 8.53 GB, two_nodes 22.8 GB"
    assert numbers(sent) == ["8.5", "1.2", "22.8", "3"]
    large = next(
        row for row in target_costs.compare_published(priced, paper.root).to_dict("records") if row["run"][0] == "3"
    )
    (own,) = re.findall(r"The paper's own (.*? h)\.\n\n", page, re.S)
    longest = target_costs.run_classes(priced)[1].longest / 3600
    hours = (large["published_hours"], large["published_devices"], large["estimated_hours"])
    says(own, 3, *hours, 3, 1 / large["ratio"], longest, longest / large["ratio"])
    (half,) = re.findall(r"At half the speed Table 2 takes (\S+) GPU-hours", open_)
    assert float(half.replace(",", "")) == pytest.approx(2 * targets.loc["table2", "device_hours"], rel=0.01)
    packs = [rules(paper, name)["pack"].disk for name in ("base", "large")]
    (read,) = re.findall(r"file system: (.*? GB), before that to verify it: (.*?) h", " ".join(open_.split()))
    says(read[0], *(size / 1e9 for size in packs))
    says(read[1], *(size / 1e6 / speed / 3600 for size in packs))


def test_runs_and_devices_are_those_of_the_plan(page: str, priced: RunEstimator) -> None:
    assert f"Table 2 as its paper has it: {by_target(priced).loc['table2', 'runs_to_do']} runs" in page
    machine = priced.machine
    assert f"the stated {100 * machine.mfu:.0f} % of peak, eight a node, {machine.devices_at_once} at once" in page

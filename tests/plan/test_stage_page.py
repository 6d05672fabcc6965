"""A plan by stage: its arithmetic by hand, that it is the plan of targets in another order, and what a person reads."""

from __future__ import annotations

import re
from dataclasses import fields
from math import ceil
from pathlib import Path

import pytest
from msgspec import structs

from plumbline.operate import gpu_queue
from plumbline.plan import __main__ as plan_verb
from plumbline.plan import data_stage, machines, model_counts, stage_page, target_costs
from plumbline.plan.data_stage import DataRule, bottleneck
from plumbline.plan.run_estimate import estimator
from plumbline.plan.target_costs import make_table, training_jobs
from plumbline.project import Project, load
from plumbline.specs.yaml_files import load_config
from tests import run_in_process
from tests.plan.counted_models import copy_counts
from tests.plan.finished_run_files import BASELINE, by_target, finish

LARGE = "transfer/large/baseline/s42"


def rules(project: Project, pack: str) -> dict[str, DataRule]:
    smaller = data_stage.up_to_pack(project, "climbmix", pack)
    return {part.rule: part for part in data_stage.rules(smaller, "climbmix")}


def test_each_pack_of_corpus_is_priced(paper: Project) -> None:
    """23 and 60 billion tokens of a thousand each (appendix A), and the text that they take over a network."""
    assert list(data_stage.packs(paper, "climbmix")) == ["base", "large"]
    sequences = {"base": 22_738_794, "large": 58_637_625}
    for pack, number in sequences.items():
        smaller = data_stage.up_to_pack(paper, "climbmix", pack)
        assert data_stage.tokens(smaller, "climbmix") == (number + 131_072) * 1024
        text = data_stage.text_bytes(smaller, "climbmix")
        assert text == pytest.approx(1.1 * ceil((number + 1) * 1024 / 0.97) * (3.1 + 0.36 * 4))
        documents = rules(paper, pack)["documents"]
        disk = 5 * 1.05 * text / 80e6
        assert documents.seconds == pytest.approx(15 + 0.0667 * text / 1e6 + disk, rel=1e-3)
        assert (documents.network, documents.disk_seconds) == pytest.approx((0.0667 * text / 1e6, disk))
        assert documents.disk == pytest.approx(2.1 * text) and documents.cost.extrapolated
    small, large = rules(paper, "base"), rules(paper, "large")
    ratio = sequences["large"] / sequences["base"]
    assert large["pack"].disk / small["pack"].disk == pytest.approx(ratio, rel=1e-2)
    verifying = large["tokenizer"].disk_seconds - small["tokenizer"].disk_seconds
    assert large["tokenizer"].seconds - small["tokenizer"].seconds == pytest.approx(verifying), (
        "it reads a sample, of whichever"
    )


def test_the_largest_pack_is_what_the_plan_of_targets_has(paper: Project) -> None:
    stages, whole = rules(paper, "large").values(), by_target(estimator(paper)).loc["table2"]
    assert sum(stage.cpu_seconds for stage in stages) / 3600 == pytest.approx(whole["data_cpu_hours"])
    assert max(stage.cost.megabytes for stage in stages) / 1e3 == pytest.approx(whole["data_memory_gb"])
    assert sum(stage.seconds for stage in stages) == pytest.approx(3600 * whole["data_hours"])
    assert sum(stage.disk for stage in stages) == pytest.approx(1e9 * whole["data_disk_gb"])
    shard = data_stage.tokenize(paper, "climbmix")
    assert rules(paper, "large")["tokenize"].seconds > 15 * (shard.seconds - shard.verifying), "sixteen in a job"


@pytest.mark.parametrize(("machine", "chained"), [("h100", 16), ("core", 128)])
def test_shards_wait_for_one_another_in_a_job_or_for_a_core(tmp_path: Path, machine: str, chained: int) -> None:
    """Of 256, as profiles/slurm packs them, or on two cores."""
    options = {"studies": ["transfer"], "preset": "paper", "work": str(tmp_path), "machine": machine}
    whole = load(load_config() | options)
    assert data_stage.count_chained_shards(whole) == chained
    priced = estimator(whole)
    page = " ".join(stage_page.terminal(priced, make_table(priced)).split())
    texts = {16: "16 shards of `tokenize` one after another as profiles/slurm", 128: "128 shards of `tokenize` on each"}
    assert texts[chained] in page
    (corpora,) = re.findall(r"corpora: documents, tokens, packs (\d+) ", page)
    assert re.search(rf"climbmix/large .*? {corpora} documents \d+%", page), "one figure"


def test_bottleneck_is_longest_of_what_training_waits_for() -> None:
    def rule(name: str, seconds: float | None) -> DataRule:
        sizes = dict.fromkeys([field.name for field in fields(data_stage.DataJobCost)], 1)
        return DataRule(name, 1, 1, data_stage.DataJobCost(**sizes | {"seconds": seconds}))

    stages = [rule("documents", 5.0), rule("tokenize", 7.0)]
    assert bottleneck(stages).rule == "tokenize"
    assert bottleneck([*stages, rule("pack", None)]) is None and bottleneck([]) is None


def test_a_run_is_chained_over_slices_that_each_start_and_stop(paper: Project) -> None:
    """Five minutes before a slice ends the trainer is instructed to save; a start takes two minutes."""
    day = estimator(paper)
    run = paper.runs[BASELINE]
    assert training_jobs(day, run) == 1, "16 hours on eight H100"
    assert training_jobs(day, run, 1.5) == 2, "a slice too short for it"
    quarter = estimator(paper, structs.replace(machines.load("h100"), slice="6 hours"))
    seconds = quarter.pretrain_seconds(run)
    assert training_jobs(quarter, run) == ceil((seconds - 120) / (6 * 3600 - 300 - 120)) == 3
    tight = structs.replace(machines.load("h100"), slice=f"{seconds + 200}s")
    assert training_jobs(estimator(paper, tight), run) == 2, "it would not be saved in time"


def test_size_classes_add_up_to_the_plan_of_targets(paper: Project) -> None:
    priced = estimator(paper)
    whole = by_target(priced).loc["(whole study)"]
    base, large = target_costs.run_classes(priced)
    assert [(group.size, group.devices) for group in (base, large)] == [("node", 8), ("two_nodes", 16)]
    assert base.runs + large.runs == whole["runs_to_do"]
    assert base.device_hours + large.device_hours == pytest.approx(whole["training_device_hours"])
    bytes_kept = sum(group.state + group.weights for group in (base, large))
    assert bytes_kept == pytest.approx(sum(priced.disk_bytes(run) for run in paper.runs.values()))
    assert large.node_mb > base.node_mb > 8000
    assert (large.jobs, large.jobs_slower) == (2, 3), "AttnRes, beyond a slice"
    finish(paper, paper.runs[LARGE], seconds=10.0)
    assert target_costs.run_classes(estimator(paper, calibrate_on=[]))[1].runs == large.runs - 1


@pytest.mark.parametrize(
    ("preset", "machine"), [("paper", "h100"), ("paper", "core"), ("mini", "h100"), ("smoke", "h100")]
)
def test_the_page_is_one_of_80_columns(preset: str, machine: str, tmp_path: Path) -> None:
    """Of all studies; also where a processor would take longer than anybody waits."""
    whole = load(load_config() | {"preset": preset, "work": str(tmp_path), "machine": machine})
    priced = estimator(whole)
    text = stage_page.terminal(priced, make_table(priced))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) < 90
    for study in whole.studies:
        assert any(line.startswith(f"{study}/") for line in lines) and any(
            line.startswith(f"{study} ") for line in lines
        )
    for name in ("documents", "tokenizer", "tokenize", "pack", "items", "one_gpu"):
        assert any(name in line.split() for line in lines), name
    *_, marked = text.split("\n\n")
    assert marked.startswith("RECKONED, not measured") and "training speed: stated, MFU 0." in marked
    assert ("the hub: 15 MB/s" in marked) == (preset == "paper")
    assert "operations of some runs" in marked, "none was counted here"


def test_disk_that_cannot_save_checkpoint_in_time_is_warned_of(paper: Project) -> None:
    """Weights and two moments in float32 within torchrun's 280 s: 14.6 GB at 1.2 billion parameters, 36.5 GB at 3."""
    assert target_costs.SAVE_SECONDS == gpu_queue.SHUTDOWN_SECONDS < target_costs.STOP_SECONDS

    def list_saving(speed: float) -> list[str]:
        priced = estimator(paper, structs.replace(machines.load("h100"), disk_mb_per_second=speed))
        return stage_page.describe_saving(priced, target_costs.run_classes(priced))

    must, late = list_saving(80)
    assert re.search(r"has 280.*checkpoint.*14\.\d GB \(53 MB/s\), two_nodes 36\.\d GB \(13\d MB/s\)", must)
    assert re.match(r"WARNING: at 80 MB/s two_nodes takes 45\d s: killed", late)
    assert re.match(r"WARNING: at 50 MB/s node takes 29\d s, two_nodes takes 73\d s: killed", list_saving(50)[1])
    assert list_saving(140) == [must]
    core = estimator(paper, machines.load("core"))
    assert stage_page.describe_saving(core, target_costs.run_classes(core)) == [], "no torchrun there"


def test_what_is_made_is_not_on_the_page(demo: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_stage, "to_make", lambda project, runs: [])
    monkeypatch.setattr(type(estimator(demo)), "is_trained", lambda self, run: True)
    priced = estimator(demo, calibrate_on=[])
    text = stage_page.terminal(priced, make_table(priced))
    assert "DATA, on processors\nNothing is to be made." in text and "RUNS" not in text and "hub" not in text


def test_the_verb_shows_stages_at_paper(repository: Path, tmp_path: Path) -> None:
    copy_counts(tmp_path)

    def print_plan(*args: str) -> str:
        config = ("--config", f"work={tmp_path}", "studies=[transfer]")
        process = run_in_process.run(plan_verb.main, "--machine", "h100", *config, *args, cwd=repository)
        assert (process.returncode, process.stderr) == (0, "")
        return process.stdout

    stage, target = "RUNS, by size class", "attention_conce"
    assert stage in (paper := print_plan("--preset", "paper")) and target not in paper
    assert "it waits 5.73 h for a network" in " ".join(paper.split())
    assert "operations of some runs" not in paper, "counted, on the meta device"
    assert target in print_plan("--preset", "paper", "--by", "targets")
    assert target in print_plan("--preset", "demo") and stage in print_plan("--preset", "demo", "--by", "stages")
    sizes = print_plan("--preset", "paper", "--by", "sizes").splitlines()
    assert max(map(len, sizes)) <= 80
    counted = {tuple(line.split()[:2]): line.split()[2] for line in sizes if line.startswith("transfer/")}
    assert counted["transfer/base", "baseline"] == "1,216,710,656"
    assert len([1 for scale, method in counted if scale == "transfer/base" and "." not in method]) >= 20


def test_papers_size_is_planned_for_gpu_unless_machine_is_named(repository: Path, tmp_path: Path) -> None:
    where = ("--config", f"work={tmp_path}", "studies=[key_norms]")
    alone = run_in_process.run(plan_verb.main, "--preset", "paper", *where, cwd=repository)
    assert "on NVIDIA H100 SXM" in alone.stdout and "h100, since the preset paper" in alone.stderr
    for args in (("--machine", "core"), ("--config", "machine=core")):
        process = run_in_process.run(plan_verb.main, "--preset", "paper", *where, *args, cwd=repository)
        assert "on one CPU core" in process.stdout and process.stderr == ""
    small = run_in_process.run(plan_verb.main, "--preset", "smoke", *where, cwd=repository)
    assert "on one CPU core" in small.stdout and small.stderr == ""


def test_a_model_that_was_not_counted_is_about(paper: Project) -> None:
    sizes = model_counts.ModelCostLookup({})
    lines = stage_page.tabulate_sizes(estimator(paper, sizes=sizes)).splitlines()
    assert all("about" in line for line in lines if line.startswith("transfer/"))

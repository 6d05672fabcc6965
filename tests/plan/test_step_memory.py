"""What a step takes of a device and what ranks send: arithmetic by hand, and what a run is started with for it."""

from __future__ import annotations

import copy
import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from torch import distributed
from torch.testing._internal.distributed.fake_pg import FakeStore

from plumbline.model.decoder import create
from plumbline.model.distributed import RankGroup, parallel
from plumbline.plan import machines, model_counts, stage_page, step_memory
from plumbline.plan.machines import group
from plumbline.plan.run_estimate import estimator
from plumbline.plan.step_memory import StepCount, count_sent_bytes, estimate_memory, step_kind
from plumbline.plan.target_costs import make_table
from plumbline.project import Project, profiles
from tests.model_specs import run_spec

OFFICIAL = "transfer/base/hyper.official/s42"
#: Parameters of 100 bytes with two moments, 400 of activations; clipping needs 450 in all.
COUNT = StepCount(sequences=8, parameters=100, held_bytes=300, passes=700, update=450)


def test_what_ranks_and_micro_batches_add_to_a_counted_peak() -> None:
    assert COUNT.of_rank(1, sharded=False) == 700 + 100, "gradients of the micro-batches before"
    assert COUNT.of_rank(2, sharded=False) == COUNT.of_rank(8, sharded=False) == 700 + 100 + 100, "and buckets"
    update = dataclasses.replace(COUNT, passes=310)
    assert update.of_rank(1, sharded=False) == 450 and update.of_rank(8, sharded=False) == 550
    # A sixteenth of weights, moments and gradients, a gathered model, its gradients, and the activations.
    assert COUNT.of_rank(16, sharded=True) == 25 + 100 + 100 + 400


def test_what_a_rank_sends_in_a_step() -> None:
    """Sums of gradients in two rounds, or one round of them and a gather of the parameters."""
    assert count_sent_bytes(800, 1) == 0 and count_sent_bytes(800, 8) == 2 * 700


def test_the_page_says_what_ranks_send_where_no_run_was_measured(paper: Project) -> None:
    """Twice what is one's own, whole models and shards alike: 15 of 16 parts, 7 of 8."""
    run, parameters = paper.runs["transfer/large/baseline/s42"], 16 * 10**9
    cluster, node, single = (machines.load(name) for name in ("h100", "h100_node", "one_h100"))
    assert step_memory.is_sharded(cluster, run) and not step_memory.is_sharded(node, run)
    lines = [step_memory.describe_sent(machine, [(run, parameters)]) for machine in (cluster, node, single)]
    assert lines == ["two_nodes 30 GB", "two_nodes 28 GB", ""]
    priced = estimator(paper)
    (sent,) = [line for line in stage_page.list_assumptions(priced, []) if "ranks send" in line]
    assert re.search(r"takes.*8\.\d+ GB, two_nodes 2\d\.\d GB from each$", sent)
    speeds = dict.fromkeys(map(group, paper.runs.values()), 1e14)
    measured = dataclasses.replace(priced, calibration=dataclasses.replace(priced.calibration, speed=speeds))
    assert not [line for line in stage_page.list_assumptions(measured, []) if "ranks send" in line], (
        "in what was measured"
    )


def test_ddps_buckets_hold_gradients_once_more() -> None:
    """As `bucket_bytes` has it: its views are off, and what it exchanges is every parameter once."""
    if distributed.is_initialized():
        pytest.skip("a process group is already there")
    distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        model = create(run_spec().model, 0)
        whole = parallel(model, RankGroup(rank=0, world=2, device=torch.device("cpu")), "ddp")
        size = 4 * sum(value.numel() for value in model.parameters())
        assert whole.gradient_as_bucket_view is False
        logged: Any = whole._get_ddp_logging_data()  # noqa: SLF001  # torch reports it nowhere else
        assert sum(map(int, logged["bucket_sizes"].split(","))) == size
        assert step_memory.bucket_bytes(size, 2) == size and step_memory.bucket_bytes(size, 1) == 0
    finally:
        distributed.destroy_process_group()


def test_the_kind_of_a_step_leaves_numbers_out() -> None:
    spec = run_spec()

    def kind(*interventions: dict[str, Any], **optimizer: Any) -> str:
        changed = msgspec.structs.replace(spec.optimizer, **optimizer)
        return step_kind(msgspec.structs.replace(spec, interventions=interventions, optimizer=changed))

    quack = {"name": "quack", "tau": 1.0, "norm": "frobenius"}
    assert kind(quack) == kind(quack | {"tau": 2.0}) == kind(quack, learning_rate=1.0)
    others = [kind(), kind(quack), kind(quack | {"norm": "spectral"}), kind(name="muon"), kind(quack, quack)]
    wider = msgspec.structs.replace(spec, model=spec.model.resize(layers=1))
    assert len({*others, step_kind(wider)}) == 6


def test_every_run_at_paper_size_was_counted(every_paper: Project) -> None:
    """After a change of a model: python -m benchmarks.fake_device."""
    machine = machines.load("h100")
    for run in every_paper.runs.values():
        memory = estimate_memory(machine, run)
        assert memory is not None and memory.bytes is not None, run.key
        assert memory.asked == (None if run.key == OFFICIAL else machine.micro_batch[run.size]), run.key
        state = 16 * estimator(every_paper, machine).size(run).parameters
        assert memory.bytes > (0.5 if memory.sharded else 0.7) * state, "Muon's one moment, shards"


@pytest.mark.parametrize(("machine", "flag"), [("h100", ""), ("h200", "--micro-batch 8"), ("one_h100", "")])
def test_step_that_does_not_fit_is_started_without_micro_batch(
    every_paper: Project, monkeypatch: pytest.MonkeyPatch, machine: str, flag: str
) -> None:
    """By the machine that the configuration names; what is asked of the run itself stays."""
    before = {key: run.spec.run_id for key, run in every_paper.runs.items()}
    project = copy.copy(every_paper)
    project.__dict__["config"] = every_paper.config | {"machine": machine}
    monkeypatch.setattr(profiles, "_LOADED", project)
    wildcards = SimpleNamespace(study="transfer", scale="base", method="hyper.official", seed="42")
    assert step_memory.micro_batch_flag(wildcards) == flag
    wildcards.method = "hyper"
    assert step_memory.micro_batch_flag(wildcards) == ("" if machine == "one_h100" else "--micro-batch 8")
    assert {key: run.spec.run_id for key, run in every_paper.runs.items()} == before


def test_the_page_names_the_runs_that_do_not_fit(every_paper: Project) -> None:
    for name, there in (("h100", True), ("h200", False)):
        priced = estimator(every_paper, machines.load(name), sizes=model_counts.ModelCostLookup({}))
        page = " ".join(stage_page.terminal(priced, make_table(priced)).split())
        assert "MEMORY OF A DEVICE" in page and "and not compiled (" in page and "Not counted" not in page
        warned = f"{OFFICIAL}, 91.8 GB with 8, does not fit: " in page and "the largest that fits" in page
        assert warned == there and page.count("does not fit") == there
        assert re.search(r"one_gpu [\d.]+ GB \(8\), node [\d.]+ GB \(8\), two_nodes [\d.]+ GB \(4\)\.", page)


def test_a_step_that_was_not_counted_is_said_to_be(every_paper: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, runs = machines.load("h100"), list(every_paper.runs.values())
    monkeypatch.setattr(step_memory, "counts", dict)
    assert step_memory.describe(machine, runs) == [
        f"Not counted: the steps of {len(runs)} runs, which get the micro-batch of their size all the same."
    ]
    assert estimate_memory(machine, runs[0]).asked == machine.micro_batch[runs[0].size]
    assert step_memory.describe(machines.load("core"), runs) == []


def test_a_step_fits_as_long_as_a_gibibyte_is_left(every_paper: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the byte, of a device whose memory is stated in GiB."""
    run, machine = every_paper.runs["transfer/base/baseline/s42"], machines.load("h100")
    assert machine.memory_gib == 80
    for more, batch in ((0, 8), (1, None)):
        passes = 79 * 2**30 - 2 * COUNT.parameters + more  # earlier gradients and buckets come on top
        count = dataclasses.replace(COUNT, passes=passes)
        monkeypatch.setattr(step_memory, "counts", lambda count=count: {step_kind(run.spec): count})
        memory = estimate_memory(machine, run)
        assert (memory.bytes, memory.asked) == (79 * 2**30 + more, batch)


def test_a_box_of_eight_is_told_what_its_whole_models_take(paper: Project) -> None:
    """There DDP holds 3 billion parameters on each device: what was counted with four sequences is too much."""
    machine, runs = machines.load("h100_node"), paper.runs.values()
    (line,) = step_memory.describe(machine, runs)
    assert re.search(r"node [\d.]+ GB to 91\.8 GB with 8 sequences, too much for 1 of 68 runs; two_nodes 8\d", line)
    assert re.search(r"two_nodes [\d.]+ GB to 93\.8 GB with 4 sequences, too much for 15 of 15 runs ", line)
    roomy = msgspec.structs.replace(machine, memory_gib=141)
    assert "too much" not in step_memory.describe(roomy, runs)[0]
    assert step_memory.describe(machines.load("core"), runs) == [], "no GPU"
    priced = estimator(paper, machine, sizes=model_counts.ModelCostLookup({}))
    page = " ".join(stage_page.terminal(priced, make_table(priced)).split())
    assert f"MEMORY OF A DEVICE, 80 GiB {line}" in page


def test_what_a_box_of_eight_fits_is_on_its_page(repository: Path, paper: Project) -> None:
    """The one figure of the committed count, with four sequences; the page names the command for the others."""
    page = " ".join((repository / "docs/gpu-box.md").read_text().split())
    memory = step_memory.counts()[step_kind(paper.runs["transfer/large/baseline/s42"].spec)]
    assert memory.sequences == 4
    assert f"and {memory.of_rank(8, sharded=False) / 1e9:.1f} GB with one, two and four sequences" in page


def test_shards_that_do_not_fit_are_named(every_paper: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer tries only with whole models."""
    run, machine = every_paper.runs["transfer/large/baseline/s42"], machines.load("h100")
    huge = dataclasses.replace(COUNT, sequences=4, passes=10**12)
    monkeypatch.setattr(step_memory, "counts", lambda: {step_kind(run.spec): huge})
    assert estimate_memory(machine, run).asked == 4
    assert "lower micro_batch.two_nodes of h100 in config/machines.yaml" in step_memory.describe(machine, [run])[-1]
    small = dataclasses.replace(huge, sequences=2)
    monkeypatch.setattr(step_memory, "counts", lambda: {step_kind(run.spec): small})
    assert estimate_memory(machine, run).bytes is None, "counted with another micro-batch"

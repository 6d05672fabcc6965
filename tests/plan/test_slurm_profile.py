"""profiles/slurm: what a job asks for goes by the size that its scale declares under the preset."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from snakemake.cli import parse_args as snakemake_arguments

from plumbline import project
from plumbline.operate import gpu_queue
from plumbline.plan import machines, step_memory
from plumbline.specs.study_config import Run
from plumbline.specs.yaml_files import load_config
from plumbline.train.__main__ import arguments
from plumbline.train.batches.micro_batches import MicroBatching
from tests.workflow.project_copy import Project

STUDIES = ("transfer", "premature", "query_free", "quack", "key_norms")
SIZES = {"node": ("paper", "base"), "two_nodes": ("paper", "large"), "one_gpu": ("mini", "large")}


@pytest.fixture
def profile(repository: Path) -> dict[str, Any]:
    return yaml.safe_load((repository / "profiles" / "slurm" / "config.v9+.yaml").read_text(encoding="utf-8"))


def wildcards_of(run: Run) -> SimpleNamespace:
    spec = run.spec
    return SimpleNamespace(study=spec.study, scale=spec.scale, method=spec.method, seed=str(spec.init_seed))


def evaluate_job(profile: dict[str, Any], run: Run, rule: str = "pretrain") -> dict[str, Any]:
    """What a rule's job for a run asks for, as Snakemake evaluates it."""
    wildcards = wildcards_of(run)
    values = {"threads": profile["set-threads"][rule]} | profile["set-resources"][rule]
    values.pop("slurm_extra", None)  # asks SLURM's queue
    return {
        key: eval(value, {"wildcards": wildcards}) if isinstance(value, str) else value for key, value in values.items()
    }


def load_project(preset: str) -> project.Project:
    return project.load(load_config() | {"preset": preset, "machine": "h100"})


@pytest.mark.parametrize("size", SIZES)
def test_a_run_gets_the_machines_of_its_size(profile: dict[str, Any], size: str) -> None:
    preset, scale = SIZES[size]
    run = load_project(preset).runs[f"transfer/{scale}/baseline/s42"]
    assert run.size == size
    request = evaluate_job(profile, run)
    devices, nodes = machines.load("h100").devices_of(run), {"two_nodes": 2}.get(size, 1)
    assert (request["nodes"], request["tasks"]) == (nodes, nodes)
    assert request["gres"] == f"gpu:{devices // nodes}"
    assert bool(request["mpi"]) == (nodes > 1)
    launch = request["launch"]
    assert launch.startswith(f"srun --nodes={nodes} ")
    assert f"--gres={request['gres']} " in launch and f"--cpus-per-task={request['threads']} " in launch
    if size == "one_gpu":
        assert launch.endswith(" --kill-on-bad-exit=1 python") and "torchrun" not in launch
        assert request["threads"] == 8
    else:
        assert f"torchrun --nnodes={nodes} --nproc-per-node=8 " in launch


@pytest.mark.parametrize("folder", ["profiles/slurm", "tests/cluster/small"])
def test_torchrun_gives_its_ranks_most_of_what_slurm_gives(repository: Path, folder: str) -> None:
    """Of the seconds between TERM and the limit torchrun keeps some for its own end; by itself it gives 30."""
    text = (repository / folder / "config.v9+.yaml").read_text()
    seconds = int(re.search(r"--signal=TERM@(\d+)", text)[1])
    limits = re.findall(r" env TORCH_ELASTIC_SHUTDOWN_TIMEOUT=(\d+) torchrun ", text)
    assert limits and len(limits) == len(re.findall(r"\btorchrun --", text))
    assert all(seconds / 2 < int(number) <= seconds - 20 for number in limits)
    if folder == "profiles/slurm":
        assert set(limits) == {str(gpu_queue.SHUTDOWN_SECONDS)}


@pytest.mark.parametrize("preset", ["paper", "mini"])
def test_micro_batches_divide_what_each_device_has_of_a_batch(profile: dict[str, Any], preset: str) -> None:
    left_to_the_trainer = set()
    for run in load_project(preset).runs.values():
        flags = evaluate_job(profile, run)["trainer_flags"]
        assert ("--strategy fsdp" in flags) == (run.size in step_memory.SHARDED)
        match = re.search(r"--micro-batch (\d+)", flags)
        if match is None:
            left_to_the_trainer.add(run.key)
            continue
        batching = MicroBatching.derive(
            run.spec.sequences_per_batch, int(match[1]), machines.load("h100").devices_of(run)
        )
        assert batching.accumulation >= 1
    assert left_to_the_trainer == ({"transfer/base/hyper.official/s42"} if preset == "paper" else set())


@pytest.mark.parametrize("name", ["slurm", "gpus"])
@pytest.mark.parametrize(("preset", "left_out"), [("paper", {"key_norms"}), ("mini", set(STUDIES))])
def test_runs_of_hours_are_compiled(repository: Path, name: str, preset: str, left_out: set[str]) -> None:
    text = (repository / "profiles" / name / "config.v9+.yaml").read_text(encoding="utf-8")
    (expression,) = re.findall(r'^    trainer_flags: "(.*)"$', text, re.M)
    sizes, compiled = set(), set()
    for run in load_project(preset).runs.values():
        flags = eval(expression, {"wildcards": wildcards_of(run)}).split()
        needed = [
            word for name in ("spec", "training-pack", "validation-pack", "state", "out") for word in (f"--{name}", "x")
        ]
        if arguments().parse_args([*needed, *flags]).compile:
            compiled.add(run.spec.study)
        sizes.add(run.size)
    assert compiled == set(STUDIES) - left_out
    assert sizes == ({"one_gpu", "node", "two_nodes"} if preset == "paper" else {"one_gpu"})


def test_no_expression_goes_by_the_name_of_a_scale(repository: Path) -> None:
    for folder in ("slurm", "slurm-a100"):
        assert "wildcards.scale" not in (repository / "profiles" / folder / "config.v9+.yaml").read_text()


def test_a_probe_gets_what_an_evaluation_gets(profile: dict[str, Any]) -> None:
    run = load_project("paper").runs["transfer/large/baseline/s42"]
    assert evaluate_job(profile, run, "probe") == evaluate_job(profile, run, "evaluate")
    assert evaluate_job(profile, run, "probe")["gres"] == "gpu:1"


@pytest.mark.parametrize(("device", "gres", "partition"), [("cpu", "", "cpu"), ("gpu", "gpu:1", "gpu")])
def test_a_measurement_gets_a_gpu_if_it_asks_for_one(
    monkeypatch: pytest.MonkeyPatch, profile: dict[str, Any], device: str, gres: str, partition: str
) -> None:
    mini = load_project("mini")
    for name, study in mini.studies.items():
        only = {"times": {"device": device, "mini": {}}} if name == "transfer" else {}
        monkeypatch.setitem(study.definition, "measurements", only)
    wildcards = SimpleNamespace(study="transfer", measurement="times")
    names: dict[str, Any] = {"wildcards": wildcards}
    assert eval(profile["set-resources"]["measure"]["gres"], names) == gres
    assert eval(profile["default-resources"]["slurm_partition"], names) == partition


def test_jobs_of_a_run_go_to_gpus_and_others_do_not(profile: dict[str, Any]) -> None:
    run = SimpleNamespace(study="transfer", scale="base", method="baseline", seed="42")
    for wildcards, partition in ((run, "gpu"), (SimpleNamespace(corpus="climbmix"), "cpu")):
        assert eval(profile["default-resources"]["slurm_partition"], {"wildcards": wildcards}) == partition


def test_training_alone_is_retried_for_slice_after_slice(repository: Path) -> None:
    """As Snakemake itself reads the profile; a rule that names its own number keeps it."""
    _, settings = snakemake_arguments(["--profile", str(repository / "profiles" / "slurm")])
    assert settings.preemptible_rules == {"pretrain"} and settings.preemptible_retries == 20
    assert settings.retries == 2
    rules = "".join(path.read_text() for path in sorted((repository / "workflow" / "rules").glob("*.smk")))
    assert "\nrule pretrain:" in rules
    assert all(int(number) <= 2 for number in re.findall(r"^ +retries: (\d+)$", rules, re.M))


@pytest.mark.workflow
def test_a_dry_run_evaluates_it_so(repository: Path, tmp_path: Path) -> None:
    """Snakemake itself; `--cores`, since a dry run caps threads by it."""
    copy = Project.copy(repository, tmp_path / "project")
    for preset, sizes in (("paper", {"gpu:8": 64}), ("mini", {"gpu:1": 8})):
        targets = [f"work/{preset}/runs/transfer/{scale}/baseline/s42/outcome.json" for scale in ("base", "large")]
        args = ("-n", *targets, "--profile", "slurm", "--cores", "100", "--config", f"preset={preset}")
        process = copy.snakemake(*args, "machine=h100", "studies=[transfer]")
        assert process.returncode == 0, process.stdout[-3000:]
        blocks = [block for block in process.stdout.split("\n[") if "\nrule pretrain:" in block]
        jobs = {
            (re.search(r"gres=(\S+?)(,|$)", block, re.M)[1], int(re.search(r"threads: (\d+)", block)[1]))
            for block in blocks
        }
        assert jobs == set(sizes.items())
        nodes = {re.search(r"nodes=(\d)", block)[1] for block in blocks}
        assert nodes == ({"1", "2"} if preset == "paper" else {"1"})

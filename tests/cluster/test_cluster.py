"""The real workflow on a real SLURM: the smoke preset through `--profile slurm`, and the faults of clusters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
import scenarios
from harness import HERE, PROFILES, Workspace, slurm
from scenarios import EXCLUSIVE, QUICK, SEPARATE, TWO_NODES, Bench, Result, Training

pytestmark = pytest.mark.cluster
Scenario = Callable[[Training], str]
SMALL = (*PROFILES, "--profile", str(HERE / "small"))


@pytest.fixture(scope="module")
def bench(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="module")
def quick(bench: Bench) -> Iterator[dict[str, Future[Result]]]:
    """The quick faults, and the run they are compared with, side by side: they mostly wait for SLURM and its polls."""
    with ThreadPoolExecutor(len(QUICK) + 1) as pool:
        pool.submit(bench.reference)
        yield {scenario.__name__: pool.submit(bench.run, scenario) for scenario in QUICK}


def check(result: Result) -> None:
    """Whatever was done to it, the run ends with the weights of a run that nobody disturbed."""
    assert result.equal, result
    assert result.starts == sorted(result.starts) and result.lost <= scenarios.STEPS, result


@pytest.mark.parametrize("name", [scenario.__name__ for scenario in QUICK])
def test_quick_fault(quick: dict[str, Future[Result]], name: str) -> None:
    result = quick[name].result()
    check(result)
    assert len(result.starts) > 1 and result.starts[1] > 0, result
    if name in ("cancelled", "walltime"):  # it was asked to stop, and saved
        assert result.lost == 0 and "asked to stop" in result.trainer + "asked to stop", result


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SEPARATE + EXCLUSIVE + TWO_NODES, ids=lambda scenario: scenario.__name__)
def test_fault(bench: Bench, scenario: Scenario) -> None:
    check(bench.run(scenario))


def test_smoke_preset_through_the_cluster(cluster: None, tmp_path: Path) -> None:
    """`snakemake results/table2.csv --profile slurm`, with the names of this cluster's account and partitions."""
    workspace = Workspace.checkout(tmp_path / "w")
    driver = workspace.snakemake("results/table2.csv", "--config", "preset=smoke", profiles=SMALL)
    try:
        assert driver.wait(900) == 0, driver.output()[-4000:]
    finally:
        driver.end()
    table = (workspace.path / "results" / "table2.csv").read_text()
    assert len(table.splitlines()) == 21, table
    accounts = slurm("sacct", "-nXP", "-o", "JobID,State,AllocTRES,Comment", "-j", ",".join(driver.jobs())).splitlines()
    assert all("|COMPLETED|" in line for line in accounts), accounts
    trainings = [line for line in accounts if "rule_pretrain_wildcards_transfer_base_" in line]
    assert len(trainings) == 26 and all("gres/gpu=1" in line for line in trainings)
    assert len(accounts) < 26 + 10  # all else is packed
    logs = [Path(log) for log in re.findall(r"\(log: (\S+)\)", driver.output())]
    assert len(logs) == len(accounts) and all(log.exists() for log in logs)
    manifests = list(workspace.path.glob("work/smoke/runs/**/manifest.json"))
    jobs = {json.loads(manifest.read_text())["slurm_job_id"] for manifest in manifests}
    assert jobs <= set(driver.jobs()) and len(jobs) == 26

"""config/machines.yaml: what it states, and what it refuses."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.plan import machines, stage_page
from plumbline.plan.run_estimate import estimator
from plumbline.plan.target_costs import make_table
from plumbline.project import Project
from plumbline.specs import field_types, study_config
from plumbline.specs.components import available
from plumbline.specs.yaml_files import ROOT, read_yaml
from tests.plan.finished_run_files import by_target


def change_machine(tmp_path: Path, **changes: Any) -> Path:
    """A project whose machine h100 has other entries; None takes an entry out."""
    entries = read_yaml(ROOT / "config" / "machines.yaml")
    entry = {key: value for key, value in (entries["h100"] | changes).items() if value is not None}
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "machines.yaml").write_text(yaml.safe_dump({"h100": entry}))
    return tmp_path


def test_every_machine_of_the_file_can_be_loaded() -> None:
    run = next(iter(study_config.load("transfer", "demo").runs.values()))
    for name in read_yaml(ROOT / "config" / "machines.yaml"):
        machine = machines.load(name)
        assert machine.flops_per_second > 0
        devices = [machine.devices_of(dataclasses.replace(run, size=size)) for size in get_args(field_types.Size)]
        assert 1 == devices[0] <= devices[1] <= devices[2]


def test_a_machine_is_named_by_whole_words() -> None:
    plain = {
        "H100": ["NVIDIA H100 80GB HBM3", "nvidia h100"],
        "A100": ["NVIDIA A100-SXM4-80GB"],
        "A100 PCIe": ["NVIDIA A100 80GB PCIe", "NVIDIA A100-PCIE-40GB"],
        "H100 MIG 1g.10gb": ["NVIDIA H100 80GB HBM3 MIG 1g.10gb"],
        "": ["x86_64", "AMD EPYC PCIe"],
    }
    others = {
        "H200": ["NVIDIA GH200 480GB", "NVIDIA H200 NVL"],
        "H100": ["NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H200"],
        "A100": ["GRID A100-20C", "NVIDIA A100-40C"],
        "H100 MIG 1g.10gb": ["NVIDIA H100 80GB HBM3 MIG 2g.20gb", "NVIDIA H100 80GB HBM3"],
    }
    assert [name for stated in plain for name in plain[stated] if not machines.names_device(stated, name)] == []
    assert [name for stated in others for name in others[stated] if machines.names_device(stated, name)] == []
    matches = machines.load("h100").is_named_in
    assert matches({"device": "cuda", "device_name": "NVIDIA H100 80GB HBM3"})
    assert not matches({"device": "cuda", "device_name": "NVIDIA H100 PCIe"})


def test_an_unknown_machine_is_named_with_the_known_ones() -> None:
    with pytest.raises(PlumblineError, match=r"machines\.yaml.*no machine 'h10'.*'h100'\?.*'core'"):
        machines.load("h10")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"peak_tflop": 1.0}, "h100: unknown key 'peak_tflop'; did you mean 'peak_tflops'?"),
        ({"mfu": None}, "'mfu' is missing; add it"),
        ({"mfu": 40}, r"h100\.mfu: 40 is not a number <= 1"),
        ({"price": -1}, r"h100\.price: -1 is not a number >= 0"),
        ({"slice": "0 h"}, r"h100\.slice: '0 h' must be above 0"),
        ({"slice": "24"}, r"h100\.slice: '24'.*time"),
        ({"devices": {"node": 0}}, r"h100\.devices\.node: 0.*number.*>= 1"),
        ({"devices_at_once": 8}, r"h100\.devices\.two_nodes: 16 work on a run, and there are 8"),
        ({"devices": {"nodes": 8}}, r"h100\.devices: unknown key 'nodes'; did you mean 'node'?"),
        (
            {"relative_step_time": {"mixers": {}}},
            r"h100\.relative_step_time: unknown key 'mixers'; did you mean 'mixer'?",
        ),
    ],
)
def test_keys_are_closed(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError, match=message.replace("?", r"\?")):
        machines.load("h100", change_machine(tmp_path, **change))


def test_devices_go_by_a_runs_size_and_not_by_its_scale(tmp_path: Path) -> None:
    machine = machines.load("h100")
    runs = study_config.load("transfer", "paper").runs
    assert [machine.devices_of(runs[f"transfer/{scale}/baseline/s42"]) for scale in ("base", "large")] == [8, 16]
    small = study_config.load("transfer", "mini").runs["transfer/large/baseline/s42"]
    assert machine.devices_of(small) == 1
    assert machine.devices_of(dataclasses.replace(small, size="two_nodes")) == 16


def test_a_size_that_a_machine_does_not_have_is_named(tmp_path: Path) -> None:
    machine = machines.load("h100", change_machine(tmp_path, devices={"one_gpu": 1}))
    run = study_config.load("transfer", "paper").runs["transfer/large/baseline/s42"]
    with pytest.raises(PlumblineError, match=r"h100\.devices: no number.*'two_nodes'.*transfer/large"):
        machine.devices_of(run)


def test_relative_step_times_name_components_that_there_are() -> None:
    for name in read_yaml(ROOT / "config" / "machines.yaml"):
        for slot, times in machines.load(name).relative_step_time.items():
            if slot != "precision":
                assert {label.split()[0] for label in times} <= set(available(slot)), name


def test_a_node_of_eight_is_planned_and_priced(paper: Project) -> None:
    """Runs of a node take as long as on a cluster of such nodes, one after another, and those of two nodes twice."""
    node, cluster = (estimator(paper, machines.load(name)) for name in ("h100_node", "h100"))
    times = {}
    for scale in ("base", "large"):
        run = paper.runs[f"transfer/{scale}/baseline/s42"]
        times[scale] = [priced.pretrain_seconds(run) - 120 for priced in (node, cluster)]
    assert times["base"][0] == times["base"][1] and times["large"][0] == pytest.approx(2 * times["large"][1], rel=1e-3)
    priced = by_target(estimator(paper, machines.replace_price(machines.load("h100_node"), 2.5))).loc["table2"]
    beside = by_target(cluster).loc["table2"]
    assert priced["price"] == pytest.approx(2.5 * priced["device_hours"]) and pd.isna(beside["price"])
    assert priced["device_hours"] == pytest.approx(beside["device_hours"])
    assert priced["wall_hours"] == pytest.approx(priced["data_hours"] + priced["device_hours"] / 8, rel=0.01)
    assert "NVIDIA H100 SXM, 8" in stage_page.terminal(node, make_table(node))


def test_whether_step_times_are_measured_is_said() -> None:
    assert machines.load("core").relative_in_words == "measured for this machine"
    assert machines.load("h100").relative_in_words == "reckoned for this machine, not measured"
    assert machines.load("one_h100").relative_in_words.startswith("by their operations alone")

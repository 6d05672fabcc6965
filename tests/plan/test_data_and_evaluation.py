"""What stands before and after training: corpora, evaluations, probes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import msgspec
import pandas as pd
import pytest

from plumbline import project
from plumbline.plan import data_stage, job_needs, machines
from plumbline.plan.run_estimate import estimator
from plumbline.plan.target_costs import WHOLE, make_row
from plumbline.project import Project
from plumbline.results.measurements import measurement_file
from plumbline.specs import measurement_code, suites
from plumbline.specs.spec import ProbeSpec
from plumbline.specs.study_config import Run
from plumbline.specs.yaml_files import load_config
from tests.plan.finished_run_files import BASELINE, by_target, finish


def test_an_evaluation_grows_with_items_context_and_model(paper: Project, tmp_path: Path) -> None:
    suite = suites.suite("climb12")

    def amount(limit: int, context: int) -> tuple[int, float]:
        size = job_needs.suite_size(suite, limit, tmp_path / "items.json", context, 4096)
        assert size is not None
        return size

    assert amount(16, 128)[0] == 12 * 16
    assert amount(32, 128) == (2 * amount(16, 128)[0], pytest.approx(2 * amount(16, 128)[1]))
    assert amount(16, 1024)[1] > amount(16, 128)[1]
    assert amount(0, 1024)[0] == sum(task.workload.items for task in suite.tasks if task.workload)
    priced = estimator(paper)
    base, large = (priced.evaluate_seconds(paper.runs[f"transfer/{scale}/baseline/s42"]) for scale in ("base", "large"))
    assert 60 < base < large


def test_the_items_that_were_made_are_the_items_that_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index, suite = tmp_path / "items.json", suites.suite("climb12")
    index.write_text(json.dumps({"piqa": {"n": 5}}))
    assert job_needs.suite_size(suite, 16, index, 128, 4096)[0] == 11 * 16 + 5
    for text in ("[", "[" * 100_000, '{"piqa": {"n": Infinity}}', '{"piqa": {"n": -5}}'):
        index.write_text(text)
        assert job_needs.suite_size(suite, 16, index, 128, 4096)[0] == 12 * 16
        assert f"{index} is not an index" in capsys.readouterr().err


def test_planned_items_are_those_that_will_be_there() -> None:
    mini = project.load(load_config() | {"preset": "mini", "studies": ["transfer"]})
    size = job_needs.amount(mini, mini.runs[BASELINE])
    shipped = [task.packaged.items for task in suites.suite("climb12") if task.packaged]
    assert size is not None and size[0] == sum(shipped) + 7 * 2000 and len(shipped) == 5


def test_a_task_of_unknown_size_gets_a_whole_slice(demo: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = suites.suite("climb12")
    tasks = (msgspec.structs.replace(suite.tasks[0], workload=None), *suite.tasks[1:])
    monkeypatch.setattr(suites, "suite", lambda *args: dataclasses.replace(suite, tasks=tasks))
    priced, run = estimator(demo), demo.runs[BASELINE]
    assert priced.evaluate_seconds(run) is None
    assert priced.evaluate_minutes(run) == 24 * 60
    row = by_target(priced).loc["table6"]
    assert row["not_counted"] == ""
    row = by_target(priced).loc["table2"]
    assert row["evaluation_device_hours"] == 0 and "evaluation of transfer/base/baseline/s42" in row["not_counted"]


def test_a_study_without_a_suite_evaluates_nothing(demo: Project) -> None:
    run = dataclasses.replace(demo.runs[BASELINE], spec=msgspec.structs.replace(demo.runs[BASELINE].spec, suite=""))
    priced = estimator(demo)
    assert priced.evaluate_seconds(run) == 0.0
    cost = make_row(priced, "transfer", "table2", [run], {"scores": {run.key: run}, "probes": {}})
    assert (cost["evaluations_to_do"], cost["evaluation_device_hours"]) == (0, 0)


def test_probes_cost_a_job_that_grows_with_their_points(demo: Project) -> None:
    run, priced = demo.runs[BASELINE], estimator(demo)

    def add_probes(*fractions: float) -> Run:
        probes = (ProbeSpec(name="norms", at=fractions, sequences=4),)
        return dataclasses.replace(run, spec=msgspec.structs.replace(run.spec, probes=probes))

    few, many = add_probes(1.0), add_probes(0.0, 0.1, 0.5, 1.0)
    assert 0 < priced.probe_seconds(few) < priced.probe_seconds(many)
    halved = msgspec.structs.replace(priced.machine, disk_mb_per_second=priced.machine.disk_mb_per_second / 2)
    slower = dataclasses.replace(priced, machine=halved).probe_seconds(many) - priced.probe_seconds(many)
    read = 4 * 4 * priced.size(run).parameters / (1e6 * priced.machine.disk_mb_per_second)
    assert slower == pytest.approx(read), "the weights of four points, at the speed of the machine's disk"
    assert priced.probe_minutes(few) >= 15
    read = {"scores": {}, "probes": {many.key: many}}
    cost = make_row(priced, "transfer", "mine", [many], read)
    assert cost["probes_to_do"] == 1
    assert cost["probe_device_hours"] == pytest.approx(priced.probe_seconds(many) / 3600)
    assert cost["device_hours"] == pytest.approx(cost["training_device_hours"] + cost["probe_device_hours"])
    assert cost["disk_gb"] > make_row(priced, "transfer", "mine", [few], read)["disk_gb"]
    finish(demo, run, seconds=30.0)
    Path(demo.paths.probes(run)).parent.mkdir(parents=True)
    Path(demo.paths.probes(run)).touch()
    read = {"scores": {}, "probes": {run.key: run}}
    assert make_row(estimator(demo), "transfer", "mine", [run], read)["probes_to_do"] == 0


@pytest.fixture
def measuring(demo: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A plan in which table 4 needs a measurement of its runs' specs, of ninety minutes."""
    study = demo.studies["transfer"]
    entry = study.definition["targets"]["table4"] | {"measurements": ["times"]}
    more = {"measurements": {"times": {"demo": {"rounds": 3, "duration": "90 min"}}}}
    changed = study.definition | more | {"targets": study.definition["targets"] | {"table4": entry}}
    monkeypatch.setattr(measurement_code.study_parts, "file", lambda study, kind, name, root: Path(machines.__file__))
    return dataclasses.replace(demo, studies={"transfer": dataclasses.replace(study, definition=changed)})


def test_a_measurement_costs_the_time_that_its_study_states(measuring: Project) -> None:
    priced = estimator(measuring)
    rows, digest = by_target(priced), priced.digest()
    (entry,) = measuring.measurements.all.values()
    assert priced.measure_minutes(entry) == 3 * 90 + 15
    assert rows["measurements_to_do"][["table2", "table4", WHOLE]].tolist() == [0, 1, 1]
    table4 = rows.loc["table4"]
    assert table4["device_hours"] == table4["measurement_device_hours"] == 1.5 == table4["longest_path_hours"]
    whole = rows.loc[WHOLE]
    parts = ("training", "evaluation", "probe", "measurement")
    assert whole["device_hours"] == pytest.approx(sum(whole[f"{part}_device_hours"] for part in parts))
    gpu = dataclasses.replace(priced, machine=machines.load("h100"))
    assert by_target(gpu).loc["table4", "device_hours"] == 0, "a processor's work there"
    assert by_target(gpu).loc["table4", "wall_hours"] == 1.5
    path = Path(measuring.paths.measurement(entry))
    facts = {"fingerprint": measuring.fingerprints.measurement(entry), "options": {}}
    measurement_file.write(pd.DataFrame({"rounds": [3]}), path, facts)
    after = estimator(measuring)
    assert by_target(after)["measurements_to_do"].sum() == 0 and after.digest() != digest
    measurement_file.write(pd.DataFrame({"rounds": [3]}), path, facts | {"fingerprint": "other options"})
    assert by_target(estimator(measuring)).loc["table4", "measurements_to_do"] == 1


@pytest.mark.parametrize("facts", ["", "[]", "[" * 100_000])
def test_a_damaged_measurement_is_to_be_made(
    measuring: Project, facts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (entry,) = measuring.measurements.all.values()
    path = Path(measuring.paths.measurement(entry))
    path.parent.mkdir(parents=True)
    path.touch()
    measurement_file.facts_path(path).write_text(facts)
    assert not estimator(measuring).is_measured(entry)
    assert "times.parquet was made" in capsys.readouterr().err


def test_the_data_stage_costs_nothing_once_its_packs_are_there(demo: Project) -> None:
    assert data_stage.seconds(demo, demo.runs.values()) > 0
    for run in demo.runs.values():
        path = Path(demo.paths.pack_manifest(run))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert data_stage.seconds(demo, demo.runs.values()) == 0


def test_corpora_are_made_side_by_side(demo: Project) -> None:
    read = demo.corpora["climbmix"]
    twice = msgspec.structs.replace(
        read, name="other", packs={name: 2 * size for name, size in read.packs.items()}, validation=2 * read.validation
    )
    run = demo.runs[BASELINE]
    spec = msgspec.structs.replace(run.spec, study="mine", data=msgspec.structs.replace(run.spec.data, corpus="other"))
    mine = dataclasses.replace(run, spec=spec)
    whole = dataclasses.replace(demo, corpora={"climbmix": read, "other": twice})
    whole.every_run[mine.key] = mine
    assert data_stage.tokens(whole, "other") == 2 * data_stage.tokens(whole, "climbmix")
    alone, other = data_stage.seconds(whole, [run]), data_stage.seconds(whole, [mine])
    assert data_stage.seconds(demo, [run]) == alone < other == data_stage.seconds(whole, [run, mine])
    both = data_stage.disk_bytes(whole, [run, mine])
    assert both == pytest.approx(data_stage.disk_bytes(whole, [run]) + data_stage.disk_bytes(whole, [mine]))
    sizes = [data_stage.disk_bytes(whole, [each]) - data_stage.tokenizer(whole, "other").disk for each in (run, mine)]
    assert sizes[1] == pytest.approx(2 * sizes[0])
    packs = dict.fromkeys(read.packs)
    unknown = dataclasses.replace(demo, corpora={"climbmix": msgspec.structs.replace(read, packs=packs, source="hub")})
    assert data_stage.tokens(unknown, "climbmix") is None and data_stage.seconds(unknown, [run]) is None
    assert by_target(estimator(unknown)).loc["table2", "not_counted"] == "data"

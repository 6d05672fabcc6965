"""Counts of models: from the real modules, kept in a file, read without torch; and what is estimated without them."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from plumbline.model import decoder, flops
from plumbline.model.decoder import on_meta
from plumbline.plan import machines, model_counts
from plumbline.plan.model_counts import estimate_cost, training_tokens, update_operations
from plumbline.plan.run_estimate import estimator
from plumbline.project import Project, load
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec
from plumbline.specs.study_config import Run
from plumbline.specs.yaml_files import load_config
from plumbline.train.optimizers._orthogonal import orthogonalise
from plumbline.train.optimizers.muon import Muon

BASELINE = "transfer/base/baseline/s42"


def with_model(run: Run, **changes: object) -> Run:
    """A run of another model."""
    return dataclasses.replace(
        run, spec=msgspec.structs.replace(run.spec, model=msgspec.structs.replace(run.spec.model, **changes))
    )


def test_a_count_is_that_of_the_modules(demo: Project) -> None:
    runs = [demo.runs[f"transfer/{scale}/selective_attn/s42"] for scale in ("base", "large")]
    sizes = model_counts.ModelCostLookup(model_counts.update(Path(demo.paths.counts), runs))
    for run in runs:
        model, size = run.spec.model, sizes(run.spec.model)
        assert size.exact
        assert size.training * model.context == flops.count_operations(model)
        assert size.parameters == sum(value.numel() for value in on_meta(model).parameters())
        assert size.forward == size.training / 3 - 2 * model.vocabulary * model.width
    assert not sizes(demo.runs[BASELINE].spec.model).exact


@pytest.mark.parametrize("scale", ["base", "large"])
def test_what_is_estimated_is_near_what_is_counted(scale: str, tmp_path: Path) -> None:
    """Parameters within 3 % and operations within 8 % for all twenty methods at paper size (Differential's fused call
    mixes values twice), the baseline's operations exactly."""
    study = study_config.load("transfer", "paper")
    runs = [run for run in study.runs.values() if run.spec.scale == scale]
    assert {run.spec.method for run in runs} >= (set(study.methods) if scale == "base" else {"attnres", "hyper"})
    costs = model_counts.ModelCostLookup(model_counts.update(tmp_path / "counts.json", runs))
    for run in runs:
        about, exact = estimate_cost(run.spec.model), costs(run.spec.model)
        assert (about.exact, exact.exact) == (False, True)
        assert about.parameters == pytest.approx(exact.parameters, rel=0.03), run.key
        assert about.training == pytest.approx(exact.training, rel=0.08), run.key
        if run.spec.method == "baseline":
            assert about.training == exact.training


def test_a_key_is_that_of_sizes_components_and_their_code(demo: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    model = demo.runs[BASELINE].spec.model
    other = demo.runs["transfer/base/softpick/s42"].spec.model
    first = model_counts.key(model)
    assert model_counts.key(demo.runs["transfer/base/baseline/s43"].spec.model) == first
    assert len({first, model_counts.key(other), model_counts.key(msgspec.structs.replace(model, layers=5))}) == 3
    was = model_counts.code_class
    monkeypatch.setattr(model_counts, "code_class", lambda kind, name: was(kind, name) + "x" * (name == "softmax"))
    assert model_counts.key(model) != first
    monkeypatch.undo()
    monkeypatch.setattr(model_counts, "NUMERICS", 0)
    assert model_counts.key(model) != first


def test_what_is_in_the_file_is_not_counted_again(demo: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    path, run = Path(demo.paths.counts), demo.runs[BASELINE]
    counts = model_counts.update(path, [run, demo.runs["transfer/base/baseline/s43"]])
    assert list(counts) == [model_counts.key(run.spec.model)]
    before = path.stat().st_mtime_ns
    monkeypatch.setattr("plumbline.model.decoder.on_meta", lambda model: pytest.fail("counted again"))
    assert model_counts.update(path, [run]) == counts
    assert path.stat().st_mtime_ns == before


def test_two_plans_at_once_keep_each_others_counts(demo: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(demo.paths.counts)
    base, other = demo.runs[BASELINE], demo.runs["transfer/large/baseline/s42"]
    really = decoder.on_meta

    def meanwhile(model: ModelSpec) -> decoder.Decoder:
        monkeypatch.setattr(decoder, "on_meta", really)
        model_counts.update(path, [other])
        return really(model)

    monkeypatch.setattr(decoder, "on_meta", meanwhile)
    model_counts.update(path, [base])
    assert set(model_counts.read(path)) == {model_counts.key(base.spec.model), model_counts.key(other.spec.model)}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"a": 1}', '{"a": {"training": 1}}', "[" * 100_000]
    + [f'{{"a": {{"training": {one}, "parameters": 1}}}}' for one in ("[]", "0", "-1", "Infinity", "9" * 400)],
)
def test_a_damaged_file_is_named_not_used_and_written_anew(
    demo: Project, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, run = Path(demo.paths.counts), demo.runs[BASELINE]
    path.write_text(text)
    assert not estimator(demo).is_exact([run])
    assert f"{path} does not hold counts" in capsys.readouterr().err
    model_counts.update(path, [run])
    assert estimator(demo).is_exact([run])


def test_a_file_that_cannot_be_written_stops_nothing(demo: Project, capsys: pytest.CaptureFixture[str]) -> None:
    run, path = demo.runs[BASELINE], Path(demo.config["work"]) / "a file" / "counts.json"
    path.parent.write_text("in the way")
    counts = model_counts.update(path, [run])
    assert model_counts.ModelCostLookup(counts)(run.spec.model).exact
    assert f"cannot be kept in {path}" in capsys.readouterr().err


def test_a_model_that_cannot_be_built_is_named_and_estimated(demo: Project, capsys: pytest.CaptureFixture[str]) -> None:
    good = demo.runs[BASELINE]
    run = demo.runs["transfer/base/selective_attn/s42"]
    bad = with_model(run, key_value_heads=run.spec.model.heads)
    counts = model_counts.update(Path(demo.paths.counts), [bad, good])
    assert list(counts) == [model_counts.key(good.spec.model)]
    size = model_counts.ModelCostLookup(counts)(bad.spec.model)
    assert size == estimate_cost(bad.spec.model)
    stderr = capsys.readouterr().err
    assert f"warning: {run.key}: its model cannot" in stderr and "masking_heads" in stderr


def test_a_dry_run_reads_counts_without_torch(repository: Path, tmp_path: Path) -> None:
    """With and without a file of counts."""
    code = (
        "import sys; from plumbline.plan.run_estimate import estimator;"
        "from plumbline.specs.yaml_files import load_config;"
        "from plumbline.project import load;"
        f"whole = load(load_config() | {{'preset': 'paper', 'studies': ['quack'], 'work': {str(tmp_path)!r}}});"
        "priced = estimator(whole); [priced.pretrain_minutes(run) for run in whole.runs.values()];"
        "print(priced.is_exact(whole.runs.values()), sorted({'torch', 'pandas'} & set(sys.modules)))"
    )

    def run_code() -> str:
        process = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True)
        assert process.returncode == 0, process.stderr
        return process.stdout.strip()

    assert run_code() == "False []"
    whole = load(load_config() | {"preset": "paper", "studies": ["quack"], "work": str(tmp_path)})
    counts = model_counts.update(Path(whole.paths.counts), whole.runs.values())
    assert run_code() == "True []"
    assert json.loads((tmp_path / "counts.json").read_text()) == counts


def test_muons_products_are_counted_as_torch_sees_them(tmp_path: Path) -> None:
    """One step of orthogonalising every matrix of a run that has Muon, stacked as the run stacks them."""
    for study, options in (("key_norms", "concatenated"), ("quack", "separate")):
        run = next(run for run in study_config.load(study, "smoke").runs.values() if run.spec.optimizer.name == "muon")
        spec = run.spec.optimizer
        assert spec.options["matrices"] == options
        model = on_meta(run.spec.model)
        optimizer = Muon([{"params": [*model.parameters()], "roles": [*model.parameter_roles.values()],
                           "weight_decay": 0.0, "decay": 0.0}], spec, **spec.options)  # fmt: skip
        with FlopCounterMode(display=False) as counter:
            for stack in optimizer.stacks:
                orthogonalise(torch.cat(stack), optimizer.polynomials)
        cost = model_counts.ModelCostLookup(model_counts.update(tmp_path / "counts.json", [run]))(run.spec.model)
        assert update_operations(spec, cost) == counter.get_total_flops()
    assert update_operations(study_config.load("transfer", "smoke").runs[BASELINE].spec.optimizer, cost) == 0


def test_muons_updates_cost_every_device_of_a_gpus_run_as_much() -> None:
    """46.9 TFLOP a step at quack's paper size: a 26th of the step's own, which has as many again for each device."""
    paper = load(load_config() | {"preset": "paper", "machine": "h100"})
    run = next(run for key, run in paper.runs.items() if key.startswith("quack/mha/default"))
    priced, cost = estimator(paper), estimate_cost(run.spec.model)
    update = update_operations(run.spec.optimizer, cost)
    assert update == pytest.approx(46.9e12, rel=0.01)
    assert priced.training_flops(run) == pytest.approx(training_tokens(run) * cost.training + 5000 * update)
    eight = dataclasses.replace(run, size="node")
    assert priced.training_flops(eight) - priced.training_flops(run) == pytest.approx(7 * 5000 * update)
    core = estimator(paper, machines.load("core"))
    assert core.training_flops(run) == pytest.approx(training_tokens(run) * cost.training)

"""Classes of code: what keeps one, what makes a new one, and the tool that records them, on a copy of the package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from plumbline import NUMERICS
from plumbline.specs import components, study_config
from plumbline.specs.spec import RunSpec
from tests.conftest import REPOSITORY
from tests.golden import code_classes as classes
from tests.golden.code_classes import update_classes
from tests.golden.method_runs import OPTIMIZER, SCHEDULE, load_all
from tests.golden.trainings import TRAININGS, spec
from tests.model.transfer_methods import ALL, overlay
from tests.model_specs import run_spec

SOFTPICK, MUON = "src/plumbline/model/mixers/softpick.py", "src/plumbline/train/optimizers/muon.py"
THRESHOLD = "return 1 / attention_mask.count_B1Q1(self.n, self.context)"


def test_every_golden_component_is_recorded_in_some_class() -> None:
    """Also after an edit that is not recorded yet: the names stand there."""
    golden = [*(method for method in load_all()["losses"] if method in ALL), *TRAININGS]
    used = {component for name in golden for component in classes.used_by(name)}
    assert used <= classes.read().keys()
    assert {"mixers.softmax", "optimizers.adamw", "schedules.cosine", "norms.rms_norm"} <= used


def parts(run: RunSpec) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and choice, with its options, of whatever enters the identity of a run by its code."""
    yield from run.model.slots.items()
    yield "optimizer", {"name": run.optimizer.name, **run.optimizer.options}
    yield "schedule", {"name": run.schedule.name, **run.schedule.options}
    yield from (("intervention", entry) for entry in run.interventions)
    yield from (("probe", {"name": probe.name, **probe.options}) for probe in run.probes if probe.every)


def values(run: RunSpec) -> Iterator[tuple[str, str, Any]]:
    """Component, option and value for every option that is not a number: a value of such a one can be a branch."""
    for kind, entry in parts(run):
        for name, option in components.options(kind, entry["name"]).items():
            if option.kind not in ("int", "float"):
                yield f"{components.folder(kind)}.{entry['name']}", name, entry[name]


def test_whatever_enters_the_identity_of_a_studys_run_is_golden() -> None:
    """Slots, optimizers, schedules, interventions, and probes that read while a run trains, and the values of their
    options that are not numbers; one's own may lack."""
    methods = [method for method in load_all()["losses"] if method in ALL]
    used = {component for name in (*methods, *TRAININGS) for component in classes.used_by(name)}
    models = [run_spec(model=overlay(method)) for method in methods]
    golden = [replace(run, optimizer=OPTIMIZER, schedule=SCHEDULE) for run in models]
    golden += [spec(training) for training in TRAININGS]
    shipped = [
        run.spec
        for study in ("transfer", "premature", "query_free", "quack", "key_norms")
        for preset in ("smoke", "demo", "mini", "paper")
        for run in study_config.load(study, preset).runs.values()
    ]
    chosen = {f"{components.folder(kind)}.{entry['name']}" for run in shipped for kind, entry in parts(run)}
    assert chosen <= used
    lacking = {value for run in shipped for value in values(run)} - {value for run in golden for value in values(run)}
    assert not lacking, f"{sorted(lacking, key=str)}: let a training of tests/golden/trainings.py set them"


def test_hashes_join_the_class_before_where_losses_prove_it() -> None:
    first = update_classes({}, {"a": "1", "b": "1"}, set())
    assert first == {"a": {"1": "1"}, "b": {"1": "1"}}
    second = update_classes(first, {"a": "2", "b": "2"}, {"a"})
    assert second == {"a": {"1": "1", "2": "1"}, "b": {"1": "1", "2": "2"}}
    third = update_classes(second, {"a": "3", "b": "3", "c": "9"}, {"a", "b", "c"})
    assert third == {"a": {"1": "1", "2": "1", "3": "1"}, "b": {"1": "1", "2": "2", "3": "2"}, "c": {"9": "9"}}
    # Back to the first hash of b, and from there on: it is that class which is joined.
    fourth = update_classes(third, {"b": "1"}, set())
    assert fourth["b"] == {"1": "1", "2": "2", "3": "2"} and list(fourth["b"])[-1] == "1"
    assert update_classes(fourth, {"b": "4"}, {"b"})["b"]["4"] == "1"
    assert fourth["a"] == third["a"] and first == {"a": {"1": "1"}, "b": {"1": "1"}}, "what is given is left alone"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package and of the tool, with two methods in its study."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "src/plumbline", tmp_path / "src/plumbline", ignore=ignored)
    for name in ("__init__.py", "conftest.py", "model_specs.py", "model", "golden"):
        path, target = REPOSITORY / "tests" / name, tmp_path / "tests" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(path, target, ignore=ignored) if path.is_dir() else shutil.copy(path, target)
    study = tmp_path / "studies/transfer/study.yaml"
    study.parent.mkdir(parents=True)
    methods = {"baseline": {}, "softpick": {"model": {"mixer": {"name": "softpick"}}}}
    study.write_text(yaml.safe_dump({"methods": methods}))
    return tmp_path


def python(copy: Path, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, timeout=300
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


def code_classes(copy: Path) -> list[str]:
    """The classes of Softpick's and Muon's code as it stands in the copy."""
    both = "code_class('mixer', 'softpick'), code_class('optimizer', 'muon')"
    return python(copy, "-c", f"from plumbline.specs.components import code_class; print({both})").split()


def softpick(copy: Path) -> str:
    return code_classes(copy)[0]


def edit(copy: Path, path: str, before: str, after: str) -> None:
    text = (copy / path).read_text()
    assert text.count(before) == 1
    (copy / path).write_text(text.replace(before, after))


def test_words_and_layout_keep_the_class_and_a_constant_does_not(copy: Path) -> None:
    as_it_was = softpick(copy)
    assert as_it_was == components.code_class("mixer", "softpick")
    edit(copy, SOFTPICK, "#: Keeps the original's denominator from zero", "#: Another comment, and a docstring below")
    edit(copy, SOFTPICK, '"""1 / n (B or 1, 1, Q, 1)."""', '"""Another docstring."""')
    edit(copy, SOFTPICK, THRESHOLD, THRESHOLD.replace("(self.n, ", "(\n            self.n,  # here\n            "))
    assert softpick(copy) == as_it_was
    edit(copy, SOFTPICK, "EPSILON = 1e-6", "EPSILON = 1e-7")
    assert softpick(copy) != as_it_was
    edit(copy, SOFTPICK, "EPSILON = 1e-7", "EPSILON = 1e-6")
    edit(copy, "src/plumbline/model/mixers/_base.py", "smallest_chunk = 32", "smallest_chunk = 16")
    assert softpick(copy) != as_it_was, "a file with an underscore is part of the components that import it"


@pytest.mark.slow
def test_a_refactor_keeps_its_class_once_it_is_recorded(copy: Path) -> None:
    """Of a slot's component, which the losses of methods prove, and of an optimizer, which a training does."""
    with open(copy / "tests/golden/trainings.py", "a") as trainings:  # two that use Muon, for time
        trainings.write("TRAININGS = {name: TRAININGS[name] for name in ('optimizer.muon', 'intervention.quack')}\n")
    table = copy / "src/plumbline/specs/code_classes.json"
    table.write_text("{}")
    first, first_muon = code_classes(copy)
    recorded_first = {"mixers.softpick": first, "optimizers.muon": first_muon, "mixers.of_no_method": "1"}
    table.write_text(json.dumps({name: {digest: digest} for name, digest in recorded_first.items()}))
    edit(copy, SOFTPICK, THRESHOLD, THRESHOLD.replace("return 1 /", "one = 1\n        return one /"))
    text = (copy / MUON).read_text()
    assert text.count("buffer") > 3
    (copy / MUON).write_text(re.sub(r"\bbuffer\b", "running", text))
    refactored, refactored_muon = code_classes(copy)
    assert refactored != first and refactored_muon != first_muon
    python(copy, "-m", "tests.golden.record_golden")
    assert code_classes(copy) == [first, first_muon]
    recorded_then = json.loads(table.read_text())
    assert recorded_then["mixers.softpick"] == {first: first, refactored: first}
    assert {"mixers.of_no_method", "mixers.softmax", "optimizers.adamw", "interventions.quack"} <= recorded_then.keys()
    # Now changes that move losses, as NUMERICS must state.
    edit(copy, SOFTPICK, "one = 1\n", "one = 2\n")
    edit(copy, MUON, "math.sqrt(max(1.0, rows / columns))", "math.sqrt(max(1.1, rows / columns))")
    edit(copy, "src/plumbline/__init__.py", f"NUMERICS = {NUMERICS}", f"NUMERICS = {NUMERICS + 1}")
    changed, changed_muon = code_classes(copy)
    python(copy, "-m", "tests.golden.record_golden")
    assert changed not in (first, refactored) and changed_muon not in (first_muon, refactored_muon)
    assert code_classes(copy) == [changed, changed_muon]
    recorded_then["mixers.softpick"] |= {changed: changed}
    recorded_then["optimizers.muon"] |= {changed_muon: changed_muon}
    assert json.loads(table.read_text()) == recorded_then, "whose losses did not move has its class as before"

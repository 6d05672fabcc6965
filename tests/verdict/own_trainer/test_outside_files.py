"""What a run leaves outside of its copy does not reach another one unseen, and nothing honest there is refused."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.verdict.comparability import carried_state
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.decision.experiment import BASELINE
from plumbline.verdict.evidence import Evidence, RunEvidence
from plumbline.verdict.own_trainer.run_environment import COMPILED, TEMPORARY
from tests.verdict.own_trainer.trainers import TRAIN, make, trainer, write_toml

#: Goes on from a state that it finds, at places of every kind, and leaves one there.
CARRIES = """\
import json, multiprocessing, os, shutil, sqlite3, subprocess
PLACES = {places!r}
def carry(path):
    if os.path.exists(path):
        open(path).read()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").write("state")
for path in PLACES[:4]:
    carry(path)
child = multiprocessing.get_context("fork").Process(target=carry, args=(PLACES[4],))
child.start(); child.join()
base = sqlite3.connect(PLACES[5])
base.execute("create table if not exists t (x)"); base.execute("insert into t values (1)"); base.commit()
if os.path.exists(PLACES[6]):
    open(PLACES[6]).read()
subprocess.run(["cp", PLACES[0], PLACES[6]])  # as torch.save and other code that is no Python writes
open("own", "w").write("state"); shutil.copy2("own", PLACES[7] + ".new")
if os.path.exists(PLACES[7]):
    open(PLACES[7]).read()
os.replace(PLACES[7] + ".new", PLACES[7])
"""


def runs_of(folder: Path, script: str, lines: list[str] | None = None) -> dict[str, RunEvidence]:
    """The evidence of two runs of a trainer that begins with a script."""
    make(folder, script + TRAIN)
    write_toml(folder)
    arms = trainer(folder, "--gain", "1", lines=lines)
    return {str(run.seed): arms.evidence(run) for run in arms.run([(BASELINE, 1), (BASELINE, 2)])}


def compared(runs: dict[str, RunEvidence]) -> ComparedArms:
    evidence = Evidence(metric="loss", runs={BASELINE: runs})
    return ComparedArms(evidence=evidence, baseline=BASELINE, candidate=BASELINE)


def test_state_of_another_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with tempfile.NamedTemporaryFile(prefix="state-") as by_name:
        os.unlink(by_name.name)
        names = ["ckpt.json", ".cache/mine/a", "mine/out/b", "of-a-worker", "a.sqlite", "of-cp", "copied"]
        places = [by_name.name, *(str(tmp_path / name) for name in names)]
        runs = runs_of(tmp_path / "mine", CARRIES.format(places=places))
        Path(by_name.name).touch()
    for place in places:
        only = {
            seed: replace(run, read_outside={p: at for p, at in (run.read_outside or {}).items() if p == place})
            for seed, run in runs.items()
        }
        answer = carried_state.check(compared(only))
        assert answer.answer == Answer.REFUSES, place
        assert f"seed 2 of baseline read {place}" in answer.text


HONEST = """\
import os, pathlib, tempfile
open({data!r}).read()
scratch = open({scratch!r}, "w"); scratch.write("best"); scratch.close(); open({scratch!r}).read()
open({log!r}, "a+").write("a line")
lock = os.open({lock!r}, os.O_RDWR | os.O_CREAT); os.close(lock)
home = pathlib.Path.home()
for name in (".cache/huggingface/hub/model", ".cache/wandb/x", ".triton/cache/k"):
    path = home / name
    if path.exists() and ".triton" not in name:
        path.read_text()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
for variable in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TMPDIR"):
    path = pathlib.Path(os.environ[variable], "kernel")
    assert not path.exists(), path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x"); path.read_text()
assert os.path.dirname(tempfile.mkdtemp()) == os.environ["TMPDIR"] and len(os.environ["TMPDIR"]) < 60
import sys; sys.path.insert(0, {library!r}); import library
"""


def test_data_logs_scratch_files_and_known_caches_are_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "data.bin").write_text("text")
    (tmp_path / "library.py").write_text("")
    os.utime(tmp_path / "library.py", (time.time() - 9, time.time() - 9))
    names = {"data": "data.bin", "scratch": "best.pt", "log": "all.log", "lock": "a.lock", "library": ""}
    script = HONEST.format(**{key: str(tmp_path / name) for key, name in names.items()})
    runs = runs_of(tmp_path / "mine", script)
    answer = carried_state.check(compared(runs))
    assert answer.answer == Answer.TOLD and str(tmp_path / "all.log") in answer.text, answer
    assert "hub" not in answer.text and not list(Path(tempfile.gettempdir()).glob("plumbline-run-*/tmpdir"))


def test_a_runs_temporary_folder_and_compiled_code_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    names = [*TEMPORARY, *COMPILED, "JAX_COMPILATION_CACHE_DIR"]
    script = f"import os\nwith open({str(tmp_path / 'seen')!r}, 'a') as f:\n"
    script += f"    print(*(os.environ[name] for name in {names}), os.environ.get('NUMBA_CACHE_DIR'), file=f)\n"
    runs_of(tmp_path / "mine", script)
    first, second = (line.split() for line in (tmp_path / "seen").read_text().splitlines())
    assert first[-1] == second[-1] == "None"  # numba keeps none where it is told of no place
    assert not {*first[:-1]} & {*second[:-1]} and len({*first}) == len(first) - 2
    assert not any(os.path.exists(each) for each in first + second)

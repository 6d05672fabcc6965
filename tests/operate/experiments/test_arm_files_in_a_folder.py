"""An arm is its source: files that runs write are no part of it, whoever left them in the working tree."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from plumbline.operate.experiments import setup_trainer
from tests import run_in_process
from tests.operate.experiments.trainer_folder import TRAINER, banked, change, git, plumbline, repository_of

#: Goes on from where the last run here ended.
RESUMES = TRAINER + (
    "import os\n"
    "if os.path.exists('out/state'): print('val_loss: 2.0'); print(seed / 1e6)\n"
    "os.makedirs('out', exist_ok=True); open('out/state', 'w').write('x')\n"
)


@pytest.fixture(scope="module")
def set_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is set up, whose runs write a checkpoint and a log, which nothing ignores."""
    folder = repository_of(tmp_path_factory.mktemp("writing") / "own", RESUMES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))
        process = run_in_process.run(setup_trainer.main, "python train.py {flags} | tee run.log", cwd=folder)
    assert process.returncode == 0, process.stderr
    return folder


@pytest.fixture
def writing(set_up: Path, tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(set_up, tmp_path / "own"))
    assert plumbline(copy, "try", "-n", "-m", "x", "--trust", "--", "--worse", "1").returncode == 0
    return copy


def leave(folder: Path, text: str) -> None:
    """Leave what a run by hand leaves."""
    (folder / "out").mkdir(exist_ok=True)
    (folder / "out/state").write_text(text)
    (folder / "run.log").write_text(text)


def test_what_a_run_by_hand_left_is_no_part_of_the_candidate(writing: Path) -> None:
    leave(writing, "one")
    process = plumbline(writing, "try", "-m", "x")
    assert process.returncode == 1 and "tree is the baseline" in process.stderr, process
    change(writing, "GAIN = -0.3")
    process = plumbline(writing, "try", "-m", "x", "--json")
    decision = json.loads(process.stdout)
    assert process.returncode == 10 and decision["changed_files"] == {"train.py": "+1 -1"}, process
    answer = decision["comparability"]["arm files"]
    assert answer["answer"] == "told" and answer["text"].startswith("out/state and run.log are no part")
    before = banked(writing)
    leave(writing, "another")
    process = plumbline(writing, "try", "-m", "again", "--first-seed", "42")
    assert process.returncode == 10 and "decided already as `x`" in process.stderr and banked(writing) == before
    git(writing, "add", "run.log")  # it is source, says whoever adds it
    assert json.loads(plumbline(writing, "try", "-m", "y", "--json").stdout)["changed_files"].keys() == {
        "run.log",
        "train.py",
    }


def test_a_kept_change_is_committed_without_what_runs_write(writing: Path) -> None:
    change(writing)
    (writing / "new.py").write_text("")
    leave(writing, "one")
    process = plumbline(writing, "try", "-m", "better", "--commit")
    assert process.returncode == 0, process
    assert set(git(writing, "show", "--name-only", "--format=").split()) == {"new.py", "plumbline.toml", "train.py"}


def test_without_a_set_up_the_baseline_runs_first(writing: Path) -> None:
    shutil.rmtree(writing / ".plumbline")
    leave(writing, "one")
    change(writing, "GAIN = -0.3")
    decision = json.loads(plumbline(writing, "try", "-m", "x", "--json").stdout)
    assert decision["changed_files"] == {"train.py": "+1 -1"}


def test_what_lies_where_runs_write_is_left_out(writing: Path) -> None:
    toml = writing / "plumbline.toml"
    toml.write_text(toml.read_text().replace("[metric]", 'output = ["logs"]\n[metric]'))
    (writing / "logs").mkdir()
    (writing / "logs/by-hand").write_text("")
    change(writing, "GAIN = -0.3")
    decision = json.loads(plumbline(writing, "try", "-m", "x", "--json").stdout)
    assert "logs/by-hand is no part" in decision["comparability"]["arm files"]["text"]


def test_a_candidate_with_other_data_of_its_own_is_seen(folder: Path) -> None:
    (folder / "words.txt").write_text("a b c")
    git(folder, "add", "words.txt")
    git(folder, "commit", "-qm", "data")
    (folder / ".plumbline/baseline.json").unlink()
    toml = folder / "plumbline.toml"
    toml.write_text(toml.read_text().replace("[metric]", 'data = ["words.txt"]\n[metric]'))
    (folder / "words.txt").write_text("a b")
    before = banked(folder)
    process = plumbline(folder, "try", "-m", "x")
    assert process.returncode == 13 and "words.txt (run.data of plumbline.toml)" in process.stderr, process
    assert "out of run.data" in process.stderr and banked(folder) == before


def test_a_new_file_in_place_of_an_installed_module_is_told(folder: Path) -> None:
    (folder / "random.py").write_text("class Random:\n    def __init__(self, seed): self.seed = seed\n")
    (folder / "random.py").write_text(
        (folder / "random.py").read_text() + "    def gauss(self, *_): return self.seed / 1e5\n"
    )
    (folder / "more").mkdir()
    (folder / "more/types.py").write_text("")
    decision = json.loads(plumbline(folder, "try", "-m", "x", "--json").stdout)
    answer = decision["comparability"]["arm files"]
    assert answer["answer"] == "told" and answer["text"].startswith("random.py: new in the candidate"), decision


def test_a_state_that_only_the_candidate_writes_is_refused_once(tmp_path: Path) -> None:
    resumes = RESUMES.replace("'out/state'", "f'out/state_{worse}'")
    folder = repository_of(tmp_path / "own", resumes)
    assert run_in_process.run(setup_trainer.main, "python train.py {flags}", cwd=folder).returncode == 0
    (folder / "out").mkdir()
    (folder / "out/state_0.001").write_text("y")  # of a run by hand with this very flag
    process = plumbline(folder, "try", "-m", "flag", "--", "--worse", "0.001")
    assert process.returncode == 13 and "made with out/state_0.001" in process.stderr, process
    process = plumbline(folder, "try", "-m", "flag", "--json", "--max-runs", "2", "--", "--worse", "0.001")
    assert "out/state_0.001" not in json.loads(process.stdout)["changed_files"], process

"""Twelve ways in which a change looks better than it is: refused, told by name, or named as what no check shows.

| attack | what happens |
|---|---|
| the evaluator is edited | refused before any run (13) |
| a shorter shard | refused before any run (13) |
| another shard is swapped in by a run | refused after it (13) |
| other units, in a module that training shares | implausible (14), and the file is named |
| a printed fake line | does not count, as what measures prints the last one; of one program: no check shows it |
| cached outputs | left out of the arm, by name |
| held-out text is read by the training | told, by program and file |
| another clock | seconds are those of Plumbline's own; a metric of the code's clock: no check shows it |
| a module of the measuring program is replaced | told, by file; refused (13) where a fixed file is no longer read |
| the log or the bank is written to | refused (13) |
| a search over seeds in one run | no check shows it; time that it takes is told |
| an early stop chosen on the held-out metric | not finished (12) |
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.operate.experiments.trainer_folder import Done, banked, git, plumbline
from tests.verdict.attacks.attacked_folder import edit


@pytest.fixture
def folder(set_up_folder: Path, tmp_path: Path) -> Path:
    copy = shutil.copytree(set_up_folder, tmp_path / "own")
    assert plumbline(copy, "try", "-n", "-m", "x", "--trust", "--", "--lr", "1").returncode == 0
    return copy


def train(folder: Path, line: str, *, before: str = "weight, began") -> None:
    """Have the training do one thing more."""
    edit(folder, "train.py", before, f"{line}\n{before}")


def attack(folder: Path) -> tuple[Done, dict[str, Any]]:
    process = plumbline(folder, "try", "-m", "x", "--json", "--max-runs", "2")
    return process, json.loads(process.stdout)


def limits_of(decision: dict[str, Any]) -> str:
    page: str = Path(decision["page"]).read_text()
    return page.partition("## Limits")[2]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [("evaluate.py", "{UNIT *", "{0.985 * UNIT *"), ("shards/val.txt", " 1.1", "")],
    ids=["the evaluator is edited", "a shorter shard"],
)
def test_what_measures_is_not_a_changes_to_edit(folder: Path, file: str, old: str, new: str) -> None:
    edit(folder, file, old, new)
    runs = banked(folder)
    done, report = attack(folder)
    assert done.returncode == 13 and f"it changes what measures: {file} +1 -1" in report["error"]
    assert banked(folder) == runs


def test_what_measures_is_not_freed_by_the_file_that_names_it(folder: Path) -> None:
    edit(folder, "plumbline.toml", 'fixed = ["evaluate.py", "shards/val.txt"]', "fixed = []")
    edit(folder, "evaluate.py", "{UNIT *", "{0.95 * UNIT *")
    done, report = attack(folder)
    assert done.returncode == 13 and "lost evaluate.py" in report["error"], report


def test_a_program_that_no_longer_reads_what_measures_is_refused(folder: Path) -> None:
    train(folder, "os.makedirs('alt', exist_ok=True); open('alt/val.txt', 'w').write('0.95')")
    edit(
        folder,
        "model.py",
        "UNIT = 1.0",
        "import builtins\nUNIT, _open = 1.0, open\n"
        "builtins.open = lambda name, *a: _open(name.replace('shards/val', 'alt/val'), *a)",
    )
    done, report = attack(folder)
    assert done.returncode == 13 and "read shards/val.txt" in report["sentence"], report


@pytest.mark.parametrize("file", ["shards/val.txt", "../../session.json"], ids=["another shard", "a record"])
def test_a_run_that_writes_what_it_is_measured_by_is_refused(folder: Path, file: str) -> None:
    train(folder, f"open({file!r}, 'a').write(' 0.5 ')")
    done, report = attack(folder)
    assert done.returncode == 13 and report["verdict"] == "cannot be judged", report
    name = Path(file).name
    assert f"{name} changed while seed 1042" in report["sentence"] and "may write there" in report["sentence"]


def test_a_file_that_the_evaluator_alone_takes_up_is_refused(folder: Path) -> None:
    glob_all = "' '.join(open(name).read() for name in sorted(glob.glob('shards/val*')))"
    text = (folder / "evaluate.py").read_text().replace('open("shards/val.txt").read()', glob_all)
    (folder / "evaluate.py").write_text(text.replace("import json", "import glob, json"))
    git(folder, "commit", "-qam", "takes all of a folder")
    (folder / ".plumbline/baseline.json").unlink()
    (folder / "shards/val_more.txt").write_text("0.1\n")
    done, report = attack(folder)
    assert done.returncode == 13
    assert "evaluate.py read shards/val_more.txt" in str(report)


def test_a_file_fixed_after_the_baseline_is_known_to_be_read(folder: Path) -> None:
    path = folder / "plumbline.toml"
    path.write_text(path.read_text().replace('fixed = ["evaluate.py"', 'fixed = ["model.py", "evaluate.py"'))
    (folder / "model").mkdir()
    (folder / "model/__init__.py").write_text("WIDTH, DEPTH, UNIT = 64, 2, 0.97\n")
    done, report = attack(folder)
    assert done.returncode == 13 and "read model.py" in report["sentence"], report


@pytest.mark.parametrize("row", ["a run of before", "{}"])
def test_a_run_that_writes_into_the_bank_leaves_nothing_to_judge(folder: Path, row: str) -> None:
    row = json.dumps(banked(folder)[0]).replace("'", "") if row != "{}" else row
    train(folder, f"open('../../runs.jsonl', 'a').write({row!r} + '\\n')")
    done, report = attack(folder)
    assert done.returncode == 13 and "runs that are kept: " in report["error"], report
    assert "runs.jsonl, line 6" in report["error"] and "out of its code" in report["error"]


def test_other_units_are_implausible_and_their_file_is_named(folder: Path) -> None:
    edit(folder, "model.py", "UNIT = 1.0", "UNIT = 0.6931")
    done, decision = attack(folder)
    assert done.returncode == 14 and decision["changed_files"] == {"model.py": "+1 -1"}
    assert "of another unit" in limits_of(decision)


def test_a_fake_line_before_that_of_what_measures_does_not_count(folder: Path) -> None:
    train(folder, "print('val_loss:', 1 + rng.random() / 100)")
    done, decision = attack(folder)
    assert done.returncode in (10, 11) and min(run["value"] for run in decision["runs"]) > 2.9
    assert "made up" in limits_of(decision)


def test_cached_outputs_that_run_left_are_no_part_of_change(folder: Path) -> None:
    (folder / "cache.json").write_text("1.0")
    train(folder, "pass")
    done, decision = attack(folder)
    assert done.returncode in (10, 11) and min(run["value"] for run in decision["runs"]) > 2.9
    assert "cache.json is no part" in decision["comparability"]["arm files"]["text"]


def test_held_out_text_that_the_training_reads_is_told(folder: Path) -> None:
    train(folder, "held_out = open('shards/val.txt').read()")
    answer = attack(folder)[1]["comparability"]["fixed files"]
    assert answer["answer"] == "told" and "train.py read shards/val.txt" in answer["text"]


def test_a_clock_of_the_codes_own_does_not_move_plumblines(folder: Path) -> None:
    train(folder, "time.sleep(1); time.time = lambda: 0.0")
    seconds = attack(folder)[1]["comparability"]["equal budget"]["numbers"]
    assert seconds["candidate_seconds"] > seconds["baseline_seconds"] + 0.5


def test_module_that_replaces_one_of_measuring_program_is_told(folder: Path) -> None:
    (folder / "json.py").write_text("load = lambda file: 1.0\ndump = lambda value, file: file.write('1')\n")
    answer = attack(folder)[1]["comparability"]["arm files"]
    assert answer["answer"] == "told" and answer["text"].startswith(
        "json.py: new in the candidate, and imported in place"
    )


def test_the_best_of_several_trainings_is_unchecked(folder: Path) -> None:
    edit(
        folder,
        "train.py",
        "weight, began = rng.gauss(3, 0.01)",
        "weight, began = min(rng.gauss(3, 0.01), rng.gauss(3, 0.01))",
    )
    decision = attack(folder)[1]
    assert decision["changed_files"] == {"train.py": "+1 -1"} and "best of several trainings" in limits_of(decision)


def test_a_stop_that_the_held_out_metric_chose_is_not_finished(folder: Path) -> None:
    train(folder, "    if step == 6 and open('shards/val.txt').read(): break", before='    print(f"step {step}')
    done, decision = attack(folder)
    assert done.returncode == 12 and "ended at step 5" in decision["sentence"], decision

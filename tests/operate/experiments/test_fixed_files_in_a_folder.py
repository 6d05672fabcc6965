"""Files that measure are the baseline's in both arms, and every changed file is told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.operate.experiments.trainer_folder import banked, change, git, plumbline


def fix(folder: Path, *patterns: str) -> None:
    path = folder / "plumbline.toml"
    path.write_text(path.read_text().replace("[metric]\n", f"[metric]\nfixed = {json.dumps(patterns)}\n"))


@pytest.fixture
def evaluated(folder: Path) -> Path:
    """A folder whose measure is in files of its own, and in what all runs share."""
    (folder / "measure").mkdir()
    for name in ("evaluate.py", "measure/shard_0", "measure/shard_1"):
        (folder / name).write_text(f"{name}\n")
    git(folder, "add", "evaluate.py", "measure")
    git(folder, "commit", "-qm", "evaluation")
    (folder / ".plumbline/baseline.json").unlink()
    fix(folder, "evaluate.py", "measure/shard*", "data")
    return folder


@pytest.mark.parametrize("command", [("try", "-m", "x"), ("try", "-m", "x", "--dry-run")], ids=["try", "dry run"])
def test_candidate_that_touches_what_measures_is_refused_by_name(evaluated: Path, command: tuple[str, ...]) -> None:
    change(evaluated)
    before = banked(evaluated)
    (evaluated / "evaluate.py").rename(evaluated / "measure/shard_2")
    (evaluated / "measure/shard_0").write_text("shorter")
    (evaluated / "measure/shard_1").unlink()
    process = plumbline(evaluated, *command, "--json")
    report = json.loads(process.stdout)
    assert process.returncode == report["exit_code"] == 13 and "x: it changes what measures: " in report["error"]
    for touched in (
        "evaluate.py +0 -1 (removed)",
        "measure/shard_0 +1 -1",
        "measure/shard_1 +0 -1 (removed)",
        "measure/shard_2 +1 -0 (new)",
    ):
        assert touched in report["error"], report["error"]
    assert "train.py" not in report["error"] and "git restore FILE" in report["error"]
    assert banked(evaluated) == before and not list((evaluated / ".plumbline/pages").glob("*"))


def test_what_is_fixed_and_what_changed_stand_on_page(evaluated: Path) -> None:
    change(evaluated, "GAIN = -0.2")
    (evaluated / "notes.py").write_text("a\nb\n")
    process = plumbline(evaluated, "try", "-m", "x", "--json", "--", "--worse", "0.1")
    decision = json.loads(process.stdout)
    assert decision["changed_files"] == {"notes.py": "+2 -0 (new)", "train.py": "+1 -1"}, process
    check = decision["comparability"]["fixed files"]
    names = "evaluate.py, measure/shard_0, measure/shard_1 and data/input.txt"
    assert (check["answer"], check["text"]) == ("holds", f"both arms have {names} of the baseline")
    printed = plumbline(evaluated, "try", "-m", "x", "--", "--worse", "0.1").stdout
    line = "Changed: notes.py +2 -0 (new), train.py +1 -1; flags --worse 0.1."
    assert line in printed
    page = Path(decision["page"]).read_text()
    assert re.search(r"\| `notes.py` +\| \+2 -0 \(new\) ", page) and "Flags that differ: `--worse 0.1`." in page


def test_flags_alone_change_no_file(folder: Path) -> None:
    decision = json.loads(plumbline(folder, "try", "-m", "x", "--json", "--", "--worse", "0.3").stdout)
    assert decision["changed_files"] == {} and "No file differs" in Path(decision["page"]).read_text()
    check = decision["comparability"]["fixed files"]
    assert check["answer"] == "not known here" and "plumbline.toml names none" in check["text"]


def test_a_pattern_that_matches_nothing_names_its_remedy(evaluated: Path) -> None:
    change(evaluated)
    fix(evaluated, "evaluate.py", "evalute.py")
    path = evaluated / "plumbline.toml"
    path.write_text(path.read_text().replace('fixed = ["evaluate.py", "measure/shard*", "data"]\n', ""))
    process = plumbline(evaluated, "try", "-m", "x")
    assert process.returncode == 1 and "metric.fixed: 'evalute.py' matches no file" in process.stderr
    assert "did you mean 'evaluate.py'?" in process.stderr and "take the pattern out" in process.stderr


@pytest.mark.parametrize("edit", ["pattern = '('", "pattern = 'val_loss: [0-9.]+'", "pattern = val_loss", "no = 1"])
def test_an_unreadable_trainer_file_is_not_judged(folder: Path, edit: str) -> None:
    change(folder)
    path, before = folder / "plumbline.toml", banked(folder)
    path.write_text(re.sub("^pattern = .*$", lambda _: edit, path.read_text(), flags=re.MULTILINE))
    process = plumbline(folder, "try", "-m", "x", "--json")
    report = json.loads(process.stdout)
    assert process.returncode == report["exit_code"] == 13 and report["error"].startswith("nothing can be judged: "), (
        process
    )
    assert str(path) in report["error"] and report["error"].endswith("restore it") and banked(folder) == before
    (folder / ".plumbline/baseline.json").unlink()
    assert plumbline(folder, "try", "-m", "x").returncode == 1, "a file that never could be read is an error"


def test_a_wider_pattern_frees_no_file_that_measured(evaluated: Path) -> None:
    change(evaluated)
    path = evaluated / "plumbline.toml"
    was = 'fixed = ["evaluate.py", "measure/shard*", "data"]'
    text = path.read_text()
    assert was in text and plumbline(evaluated, "try", "-m", "x").returncode in (0, 10, 11)
    for fixed, code in (('["eval*", "measure", "data"]', 0), ('["evaluate.py", "measure/shard_?", "data"]', 13)):
        path.write_text(text.replace(was, f"fixed = {fixed}"))
        process = plumbline(evaluated, "try", "-m", "y", "--dry-run", "--", "--worse", "0.3")
        assert process.returncode == code and ("has lost measure/shard*" in process.stderr + process.stdout) == (
            code == 13
        ), process


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [("direction", 'direction = "lower"', 'direction = "higher"'), ("pattern", "pattern = '", "pattern = '(?m)")],
)
def test_a_measured_metric_keeps_its_name_and_direction(folder: Path, key: str, old: str, new: str) -> None:
    path = folder / "plumbline.toml"
    text = path.read_text()
    assert old in text
    assert plumbline(folder, "try", "-m", "x", "--", "--worse", "0.3").returncode == 10
    path.write_text(text.replace(old, new))
    before = banked(folder)
    for more in ([], ["--dry-run"]):
        process = plumbline(folder, "try", "-m", "y", "--json", *more, "--", "--worse", "0.2")
        report = json.loads(process.stdout)
        assert (
            process.returncode == report["exit_code"] == 13 and f"metric.{key} of plumbline.toml is" in report["error"]
        )
    assert banked(folder) == before
    path.write_text(text)
    assert plumbline(folder, "try", "-m", "y", "--", "--worse", "0.3").returncode == 10


def test_what_was_kept_before_file_was_fixed_is_not_confirmed(evaluated: Path) -> None:
    fixed = (evaluated / "plumbline.toml").read_text()
    (evaluated / "plumbline.toml").write_text(fixed.replace('"evaluate.py", ', ""))
    change(evaluated)
    (evaluated / "evaluate.py").write_text("another\n")
    assert plumbline(evaluated, "try", "-m", "both").returncode == 0
    (evaluated / "plumbline.toml").write_text(fixed)
    process = plumbline(evaluated, "confirm")
    assert process.returncode == 13 and "changes what measures: evaluate.py +1 -1" in process.stderr, process

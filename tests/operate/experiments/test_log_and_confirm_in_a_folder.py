"""`plumbline log`, `page` and `confirm` in a folder: each try by its own page, what is claimed and taken back."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from plumbline.core import process_record
from plumbline.verdict import implausible_gain
from plumbline.verdict.decision.experiment import BASELINE
from tests.operate.experiments.trainer_folder import Done, banked, change, plumbline


def test_a_clock_that_steps_back_changes_no_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plumbline(folder, "try", "-m", "first", "--", "--worse", "1").returncode == 10
    monkeypatch.setattr(process_record, "now", lambda: "2001-01-01T00:00:00Z")
    assert plumbline(folder, "try", "-m", "second", "--", "--worse", "2").returncode == 10
    (page,) = (folder / ".plumbline/pages").glob("second-*.json")
    os.utime(page, (1, 1))
    assert plumbline(folder, "page").stdout.startswith("# `second` against `baseline`")


def test_a_clock_that_steps_changes_no_decision(folder: Path, tmp_path: Path) -> None:
    steps = """\
        import itertools, time
        real, gmtime, steps = time.time, time.gmtime, itertools.cycle((0, -4e7, 9e6, -3600))
        time.time = lambda: real() + next(steps)
        time.gmtime = lambda at=None: gmtime(time.time() if at is None else at)
    """
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock/sitecustomize.py").write_text(textwrap.dedent(steps))
    other, results = shutil.copytree(folder, tmp_path / "other"), {}
    path = os.pathsep.join([str(tmp_path / "clock"), *filter(None, [os.environ.get("PYTHONPATH")])])
    args = ["try", "--trust", "-m", "better", "--", "--worse", "-0.05"]
    for where in (folder, other):
        if where == folder:
            process = plumbline(where, *args)
        else:
            command, steps = [sys.executable, "-m", "plumbline", *args], os.environ | {"PYTHONPATH": path}
            process = subprocess.run(command, cwd=where, env=steps, capture_output=True, text=True)
        assert process.returncode == 0, process.stderr
        values = [(line["run"]["seed"], line["run"]["value"]) for line in banked(where)]
        seconds = [line["run"]["seconds"] for line in banked(where)]
        results[where] = values, (where / "results.tsv").read_text()
        assert min(seconds) >= 0 and max(seconds) < 60
    assert results[folder] == results[other]
    years = {line["at"][:4] for line in banked(other)}
    assert len(years) > 1, years  # the clock did step


def test_another_rule_over_fresh_seeds_leaves_the_first_page(folder: Path) -> None:
    for seed in (42, 3000):
        process = plumbline(folder, "try", "-m", "worse", "--first-seed", seed, "--", "--worse", "0.5")
        assert process.returncode == 10, process.stderr
    rows = json.loads(plumbline(folder, "log", "--json").stdout)["log"]
    assert len({row["page"] for row in rows}) == 2
    for row, seed in zip(rows, (1042, 4000), strict=True):
        page = plumbline(folder, "page", row["number"])
        assert page.returncode == 0 and re.search(rf"`worse` +\| +{seed} ", page.stdout), page.stdout
    assert "plumbline page NUMBER" in plumbline(folder, "log").stdout


def test_the_size_that_the_file_says_is_in_the_sentence(folder: Path) -> None:
    args = ("try", "-m", "worse", "--json", "--", "--worse", "0.5")
    assert json.loads(plumbline(folder, *args).stdout)["sentence"].startswith("`worse`: "), "none is invented"
    text = (folder / "plumbline.toml").read_text()
    (written,) = re.findall(r"^# size = .+$", text, re.MULTILINE)
    (folder / "plumbline.toml").write_text(text.replace(written, 'size = "2 layers, 10 steps"'))
    process = plumbline(folder, "try", "-m", "worse yet", "--json", "--", "--worse", "0.6")
    # A flag may be a number of steps: the words of the file alone would be untrue.
    begins = "At 2 layers, 10 steps (candidate with --worse 0.6), `worse yet`: "
    assert json.loads(process.stdout)["sentence"].startswith(begins), process.stderr
    assert "recipe as well: `--worse 0.6`" in plumbline(folder, "page", "worse yet").stdout


@pytest.fixture(scope="module")
def two_keeps(template: tuple[Path, Done], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two changes were kept, the second of them against the first."""
    folder = shutil.copytree(template[0], tmp_path_factory.mktemp("kept") / "own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))
        change(folder)
        assert plumbline(folder, "try", "--trust", "-m", "momentum 0.5").returncode == 0
        assert plumbline(folder, "try", "-m", "decay 0.002", "--", "--worse", "-0.1").returncode == 0
    return folder


@pytest.fixture
def kept(two_keeps: Path, tmp_path: Path) -> Path:
    """Such a folder, of the test's own."""
    copy = shutil.copytree(two_keeps, tmp_path / "own")
    assert plumbline(copy, "try", "-n", "-m", "x", "--trust", "--", "--worse", "1").returncode == 0
    return copy


def test_a_claim_of_two_keeps_names_both(kept: Path) -> None:
    folder = kept
    with pytest.MonkeyPatch.context() as patch:  # what one change cannot gain, many can
        for name in ("SIGMAS", "SHORT_SHARE"):
            patch.setattr(implausible_gain, name, 0.0)
        process = plumbline(folder, "confirm")
    assert process.returncode == 0, process.stderr
    text = " ".join(process.stdout.split())
    assert "`momentum 0.5` and `decay 0.002` together" in text, text
    assert "momentum 0.5 + decay 0.002 against baseline: " in process.stderr
    (page,) = (folder / ".plumbline/pages").glob("*.confirmed.md")
    assert "# `momentum 0.5 + decay 0.002` against `baseline`" in page.read_text()
    assert "0.5 + decay 0.002 against baseline: keep" in page.with_suffix(".svg").read_text()
    assert "`decay 0.002` improves" not in page.read_text() + plumbline(folder, "page").stdout
    assert "both that were kept" in plumbline(folder, "log", "--json").stdout
    assert "Beside 6 runs" in plumbline(folder, "noise").stdout, "the third candidate brings one"
    lines = plumbline(folder, "log").stdout.splitlines()
    assert max(map(len, lines)) <= 80 and not any("improve" in line for line in lines)
    text = " ".join(" ".join(lines).split())
    assert re.search(r"\d\d-\d\d \d\d:\d\d momentum 0.5 baseline 2 \+ 5 0\.[12]\d+ keep", text), text
    assert re.search(r"\* decay 0.002 momentum 0.5 \d \+ 5 0.(09|1)\d* keep", text), text
    assert "5 + 5" in text and "keep, claim" in text and "* the baseline now: decay 0.002 (" in text
    assert "both that were kept" in plumbline(folder, "log", "--long").stdout
    # not the 7 runs that the present baseline has with those that made it look good, but its fresh ones, and one that
    # every third candidate brings
    plain = plumbline(folder, "try", "-n", "-m", "worse", "--", "--worse", "1").stdout
    assert "Rule: 6 runs" in plain and "baseline's 6 runs 5" in plain
    assert "{flags}" not in plain and "train.py --worse -0.1 --worse 1. Rule" in plain
    process = plumbline(folder, "try", "--json", "-m", "worse", "--", "--worse", "1")
    assert json.loads(process.stdout)["terms"]["design"]["bank"] == 6


def test_a_keep_that_was_a_mistake_is_taken_back(kept: Path) -> None:
    folder, (first, second) = kept, ("momentum 0.5", "decay 0.002")
    process = plumbline(folder, "log", "--forget", first)
    assert process.returncode == 1 and "first: the newest is decay-0-002-" in process.stderr
    (page,) = (folder / ".plumbline/pages").glob("decay-0-002-*.md")
    assert plumbline(folder, "confirm", page.stem).returncode == 0
    for name, baseline in ((second, first), (first, "baseline")):
        process = plumbline(folder, "log", "--forget", name)
        assert process.returncode == 0, process.stderr
        assert f"The baseline is {baseline} (" in process.stdout and "again, with its 10 runs; " in process.stdout
    assert plumbline(folder, "page", first).stdout.startswith(f"# `{first}` against `baseline`")
    rows = [line.split("\t")[3:5] for line in (folder / "results.tsv").read_text().splitlines()]
    assert rows[-2:] == [["discard", second], ["discard", first]]
    assert "nothing was kept yet" in plumbline(folder, "confirm").stderr
    log = json.loads(plumbline(folder, "log", "--json").stdout)["log"]
    assert [entry["verdict"] for entry in log] == ["cannot be judged"] * 2 + ["keep"]  # the last is the claim
    runs = len(banked(folder))
    worse = json.loads(plumbline(folder, "try", "-m", "worse", "--json", "--", "--worse", "0.3").stdout)
    seeds = [run["seed"] for run in worse["runs"] if run["arm"] == BASELINE]
    assert seeds[:5] == [*range(42, 47)]
    assert len(seeds) == 5 + 5 + 1, "with the fresh ones, and what a third candidate brings"
    assert len(banked(folder)) == runs + 1 + sum(run["arm"] != BASELINE for run in worse["runs"])
    assert plumbline(folder, "log", "--forget", "worse").returncode == 1

"""Shapes of numbers as others write them: what is read as what, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.verdict.__main__ import main
from plumbline.verdict.evidence import Evidence
from plumbline.verdict.seed_values import normalize_seed
from plumbline.verdict.sources.row_files import ColumnNames, FileRow, FileRows, read_rows
from plumbline.verdict.sources.run_rows import read_search, read_table
from plumbline.verdict.sources.submissions import read_submissions

COLUMNS = ColumnNames(metric="loss")


def table(folder: Path, text: str, *, suffix: str = ".csv", columns: ColumnNames = COLUMNS, **more) -> Evidence:
    path = folder / f"results{suffix}"
    path.write_text(text)
    return read_table(read_rows(path), columns, **more)


def test_without_a_seed_column_each_row_is_a_run(tmp_path: Path) -> None:
    read = table(tmp_path, "method,loss\nb,2\nb,1\na,3\na,nan\n")
    assert sorted(read.values["b"].values()) == [1, 2] and not read.values["a"].keys() & read.values["b"].keys()
    assert list(read.lost["a"].values()) == ["diverged"]
    other = table(tmp_path, "method,loss\nb,1\nb,2\na,nan\na,3\n")
    assert (read.values, read.lost) == (other.values, other.lost), "in any order of the rows"
    assert [run.line for of in (read, other) for run in of.runs["b"].values()] == [3, 2, 2, 3]
    assert "one of its runs" in read.notes[0]


def write_column(name: str, *of_methods: str) -> str:
    rows = [
        f"{method},{cell},{place}.{n}\n"
        for place, (method, cells) in enumerate(zip("abc", of_methods), start=1)
        for n, cell in enumerate(cells.split())
    ]
    return f"method,{name},loss\n" + "".join(rows)


COURSES = (
    ("epoch", "1 2 3 4 5", "1 2 3 4 5"),
    ("Epoch", "0 1 2 3", "0 1 2 3 4 5"),
    ("epoch", "1/8 2/8 3/8 4/8", "1/8 2/8 3/8 4/8"),
    ("_step", "9000 9250 9500 9750", "9000 9250 9500 9750"),
    ("train/global_step", "500 500 1000 1000 1500 1500 2000 2000", "500 1000 1500 2000 500 1000 1500 2000"),
    ("tokensSeen", "1e9 2e9 4e9 8e9"),
    ("total_timesteps", "1000 2000 3000 4000", "1500 2500 3500 4500"),
    ("episode", "1 2 3 4 5 6", "1 2 3 4 5 6"),
    ("checkpoint", "ckpt-1000 ckpt-2000 ckpt-3000 ckpt-4000", "ckpt-1000 ckpt-2000 ckpt-3000 ckpt-4000"),
    ("ckpt", "out/step_1k.pt out/step_2k.pt out/step_3k.pt out/step_4k.pt"),
    ("runtime_s", "10.3 20.6 30.9 41.2 51.5", "11.2 22.1 33.4 44.0"),
)


@pytest.mark.parametrize("course", COURSES)
def test_the_steps_of_one_run_are_no_runs(tmp_path: Path, course: tuple[str, ...]) -> None:
    text = write_column(*course)
    with pytest.raises(PlumblineError, match=f"'{course[0]}'.*no column 'seed'.*--seed-column") as refused:
        table(tmp_path, text)
    assert (f"--step-column {course[0]})" in str(refused.value)) == (course[0] != "runtime_s"), "a time is no step"
    read = table(tmp_path, text, columns=replace(COLUMNS, step=""))
    assert len(read.values["a"]) == len(course[1].split()) and not read.told, "it was said that there are no steps"


RUNS = (
    ("run", "1 2 3 4 5", "1 2 3 4 5"),
    ("replica_id", "10 20 30 40", "10 20 30 40"),
    ("random_state", "0 42 1337 4711", "0 42 1337 4711"),
    ("width", "128 256 512", "128 256 512"),
    ("year", "2015 2017 2019", "2015 2017 2019"),
    ("max_steps", "1000 2000 1000 2000", "1000 2000 1000 2000"),
    ("Unnamed: 0", "0 1 2 3", "4 5 6 7"),
    ("k", "1 2 3 4", "1 2 3 4"),
    ("wall_clock_s", "61.5 60.2 63.1", "61.5 60.2 64.0"),
    ("runtime_s", "300 301 302 303", "300 300 301 302"),
    ("time", "2026-10-01 2026-10-02 2026-10-03 2026-10-04", "2026-10-01 2026-10-02 2026-10-03 2026-10-04"),
    ("created", "1790848800 1790848860 1790848920", "1790849800 1790849860 1790849920"),
    ("num_steps", "9812 9790 9803", "9411 9460 9450"),
    ("_step", "9120 9150 9180", "9010 9044 9099"),
    ("train/epoch", "2.97 2.99 2.98 2.96", "2.99 2.95 2.98 2.94"),
    ("epoch", "5 5 5", "5 5 5"),
    ("best_epoch", "3 9 5", "4 9 3"),
    ("warmup_steps", "100 100", "200 200"),
    ("acc", "0.31 0.35 0.36 0.38", "0.30 0.35 0.36 0.39"),
)
#: What one row a run may have, and steps too.
UNSURE = (
    ("_step", "9120 9150 9180 9210", "9010 9044 9099 9120"),
    ("epochs", "12 14 12 15", "14 12 11 15"),
    ("epoch", "12 30 22 17", "19 13 28 16"),
    ("epoch", "12 17 22 30", "13 16 19 28"),
    ("epochs", "10 20 10 20", "10 20 10 20"),
    ("_step", "4000 7000 5000", "6000 5000 4000"),
    ("train/global_step", "500 1000 1000 500", "500 500 1000 1000"),
    ("step_nr", "10 20", "10 20"),
    ("at", "100 200 300 400", "100 200 300 400"),
)


@pytest.mark.parametrize("column", RUNS + UNSURE)
def test_a_row_a_run_with_other_numbers_is_read(tmp_path: Path, column: tuple[str, ...]) -> None:
    read = table(tmp_path, write_column(*column))
    assert {method: len(of) for method, of in read.values.items()} == {
        method: len(cells.split()) for method, cells in zip("abc", column[1:])
    }
    assert [f"`{column[0]}`" in each and "--seed-column" in each for each in read.told] == [True] * (column in UNSURE)


def test_a_column_of_steps_needs_one_of_runs(tmp_path: Path) -> None:
    text = "method,step,loss\na,10,1\na,20,2\n"
    with pytest.raises(PlumblineError, match=r"'step'.*--step-column step.*--step-column ''"):
        table(tmp_path, text)
    assert table(tmp_path, text, columns=replace(COLUMNS, step="")).values["a"].keys() == {"a, run 1", "a, run 2"}
    assert table(tmp_path, ",method,loss\n0,a,1\n1,a,2\n", columns=replace(COLUMNS, step="")).notes


def test_seed_and_step_are_known_in_any_case(tmp_path: Path) -> None:
    read = table(tmp_path, STEPS.replace("seed,step", "Seed,STEP"))
    assert read.values == {"a": {"1": 1, "2": 3}, "b": {"1": 2}}
    with pytest.raises(PlumblineError, match=r"a run counts once.*--step-column epoch"):
        table(tmp_path, STEPS.replace("step", "epoch"))
    with pytest.raises(PlumblineError, match=r"no column 'sed'.*--seed-column"):
        table(tmp_path, STEPS, columns=ColumnNames(metric="loss", seed="sed"))


LONG = """method,seed,metric,value,status
a,1,loss,3,
a,2,loss,4,
a,1,train_loss,2,
a,2,train_loss,2,
b,1,loss,2,
b,1,train_loss,1,
"""


@pytest.mark.parametrize("row", ["b,2,train_loss,nan,", "b,2,train_loss,7.5,crashed", "b,2,steps,90,OOM"])
def test_a_run_that_was_lost_before_its_evaluation_has_no_row_of_it(tmp_path: Path, row: str) -> None:
    read = table(tmp_path, LONG + row + "\n")
    assert list(read.lost["b"]) == ["2"] and read.values == {"a": {"1": 3, "2": 4}, "b": {"1": 2}}
    with pytest.raises(PlumblineError, match=r"line 8.*is empty, and other runs of 'b'"):
        table(tmp_path, LONG + "b,2,loss,,\n")
    assert table(tmp_path, LONG + "b,2,train_loss,1,running\n").unfinished["b"].keys() == {"2"}
    assert table(tmp_path, LONG + "c,1,train_loss,1,\n").without == {"c": (8,)}, "it was not evaluated"
    assert table(tmp_path, LONG + "b,,note,1,\n").values == table(tmp_path, LONG).values
    seedless = "".join(f"{line[0]}{line[line.index(',', 2) :]}\n" for line in LONG.splitlines()[1:])
    with pytest.raises(PlumblineError, match=r"has no row of 'loss'.*--seed-column"):
        table(tmp_path, "method,metric,value,status\n" + seedless + "b,train_loss,2,crashed\n")
    assert table(tmp_path, "method,metric,value,status\n" + seedless).values["b"] == {"b, run 1": 2}


def test_a_run_that_was_not_evaluated_is_left_out_and_told(tmp_path: Path) -> None:
    for of_all in ("a,0,params_m,124,\nb,0,params_m,124,\n", "b,all,params_m,124,\n", "b,2,train_loss,1,\n"):
        read, whole = table(tmp_path, LONG + of_all), table(tmp_path, LONG)
        (told,) = read.told
        assert (read.values, read.lost) == (whole.values, whole.lost) and "`b`, seed" in told


def test_a_crash_is_of_the_run_in_a_row_of_any_metric(tmp_path: Path) -> None:
    for status, side in (("crashed", "lost"), ("running", "unfinished")):
        read = table(tmp_path, LONG + f"a,2,acc,1,{status}\n")
        assert list(getattr(read, side)["a"]) == ["2"] and read.values["a"] == {"1": 3}
        assert not getattr(table(tmp_path, LONG + "a,2,acc,1,finished\n"), side)
    course = "method,seed,step,metric,value,status\na,1,1,acc,0,{}\na,1,2,loss,3,\na,2,2,loss,4,\na,1,2,acc,1,{}\n"
    assert list(table(tmp_path, course.format("failed", "")).lost["a"]) == ["1"]
    assert list(table(tmp_path, course.format("", "running")).unfinished["a"]) == ["1"]
    assert table(tmp_path, course.format("running", "finished")).values["a"] == {"1": 3, "2": 4}, "it went on"


STEPS = "method,seed,step,loss\na,1,20,1\na,1,10,0.5\na,2,20,3\na,2,10,\nb,1,10,4\nb,1,20,2\n"


def test_of_several_steps_last_counts_or_one_that_was_asked_for(tmp_path: Path) -> None:
    last = table(tmp_path, STEPS)
    assert last.values == {"a": {"1": 1, "2": 3}, "b": {"1": 2}}
    (note,) = last.notes
    assert "up to 2 steps" in note and note.endswith("the last step, 20.")
    best = table(tmp_path, STEPS, higher=False, at_step="best")
    assert best.values == {"a": {"1": 0.5, "2": 3}, "b": {"1": 2}} and "each run's steps" in best.notes[0]
    with pytest.raises(PlumblineError, match=r"'a'.*'2'.*no value.*step 10"):
        table(tmp_path, STEPS, at_step="10")
    with pytest.raises(PlumblineError, match="--at-step 'first' "):
        table(tmp_path, STEPS, at_step="first")


def test_a_run_that_diverged_at_any_step_is_lost(tmp_path: Path) -> None:
    for rule in ("", "last", "best", "20"):
        read = table(tmp_path, STEPS.replace("a,1,10,0.5", "a,1,10,nan"), at_step=rule)
        assert read.lost == {"a": {"1": "diverged"}} and read.values["a"] == {"2": 3}


def test_a_key_that_stands_twice_in_an_object_is_refused(tmp_path: Path) -> None:
    """Python's parser takes the last value: a run would have two, of which one counts without a word."""
    twice = '{"method": "a", "seed": 1, "loss": 1.0, "loss": 0.1}'
    (tmp_path / "submission.json").write_text(twice)
    for make in (
        lambda: table(tmp_path, twice, suffix=".jsonl"),
        lambda: table(tmp_path, f"[{twice}]", suffix=".json"),
        lambda: read_submissions(tmp_path / "submission.json", ColumnNames(metric="loss")),
    ):
        with pytest.raises(PlumblineError, match="'loss' is there twice"):
            make()


def test_runs_that_end_at_different_steps_are_not_compared(tmp_path: Path) -> None:
    text = STEPS + "b,2,15,7\n"
    with pytest.raises(PlumblineError, match="different steps, from 15 to 20"):
        table(tmp_path, text)
    assert table(tmp_path, text, at_step="last").values["b"]["2"] == 7
    assert table(tmp_path, text.replace("15,7", "15,inf")).lost == {"b": {"2": "diverged"}}, "it ended for that"


def test_rows_of_another_metric_are_left_out(tmp_path: Path) -> None:
    read = table(tmp_path, "method,seed,loss,acc\na,1,2,\nb,1,1,\nc,1,,0.5\nc,2,,0.6\n")
    assert set(read.values) == {"a", "b"} and read.notes == ("Without a value of `loss`, and left out: `c`.",)


def test_a_status_of_a_table_says_which_run_was_lost(tmp_path: Path) -> None:
    read = table(tmp_path, "method,seed,loss,status\na,1,0,OOM\na,2,1,finished\n")
    assert read.lost == {"a": {"1": "oom"}} and read.values == {"a": {"2": 1}}


def test_objects_within_objects_have_dotted_names(tmp_path: Path) -> None:
    rows = [{"run": {"name": "a", "seed": 1}, "eval": {"loss": 2.5}, "args": [1]}, {"run": {"name": "b"}, "eval": {}}]
    columns = ColumnNames(method="run.name", seed="run.seed", metric="eval.loss")
    lines = "".join(json.dumps(row) + "\n" for row in rows[:1])
    for text, suffix in ((lines, ".jsonl"), (json.dumps(rows[:1]), ".json"), (json.dumps({"runs": rows[:1]}), ".json")):
        assert table(tmp_path, text, suffix=suffix, columns=columns).values == {"a": {"1": 2.5}}
    with pytest.raises(PlumblineError, match=r"neither.*objects"):
        table(tmp_path, "[1]", suffix=".json")


def test_statuses_are_read_as_loops_write_them(tmp_path: Path) -> None:
    path = tmp_path / "results.tsv"
    statuses = ("baseline", "tentative", "Best", "reverted", "OOM", "keep")
    path.write_text("commit\tloss\tstatus\n" + "".join(f"c{n}\t{n}\t{word}\n" for n, word in enumerate(statuses)))
    steps = read_search(read_rows(path), COLUMNS).log
    assert [step.status for step in steps] == ["keep", "keep", "keep", "discard", "crash", "keep"]
    assert steps[4].value is None and steps[1].word == "tentative"
    path.write_text("commit\tloss\tstatus\na\tnan\tdiscard\n")
    assert read_search(read_rows(path), COLUMNS).log[0].status == "crash"
    path.write_text("commit\tloss\tstatus\na\tnan\tkeep\n")
    with pytest.raises(PlumblineError, match="line 2, column 'loss'"):
        read_search(read_rows(path), COLUMNS)


def submission(folder: Path, place: str, **content: object) -> None:
    (folder / place).mkdir(parents=True)
    (folder / place / "submission.json").write_text(json.dumps(content))


def test_submissions_are_known_by_their_folders(tmp_path: Path) -> None:
    results = {"1": {"val_bpb": 1.0}, "2": 1.2, "3": {"val_bpb": float("nan")}}
    submission(tmp_path, "2026-03-17_First", name="x", val_bpb=1.3, val_loss=2.0)
    submission(tmp_path, "2026-04-01_Second", val_bpb=0.9, seed_results={"1": {"val_bpb": 1.0}, "2": 1.2})
    submission(tmp_path, "2026-04-02_Third", val_bpb=0.9, seed_results=results)
    read = read_submissions(tmp_path, ColumnNames(metric="val_bpb"))
    assert list(read.methods) == ["2026-03-17_First", "2026-04-01_Second", "2026-04-02_Third"]
    assert read.values["2026-04-01_Second"] == {"1": 1.0, "2": 1.2} and len(read.values["2026-03-17_First"]) == 1
    assert read.lost == {"2026-04-02_Third": {"3": "diverged"}}
    assert all(fact in read.notes[0] for fact in ("`2026-04-01_Second`", " 0.9 in `val_bpb`", " is 1.1."))
    submission(tmp_path, "2026-04-03_Fourth", val_loss=2.0)
    assert read_submissions(tmp_path, ColumnNames(metric="val_bpb")).notes[-1] == (
        "Without a value of `val_bpb`, and left out: `2026-04-03_Fourth`."
    )
    listed = [{"seed": 1, "val_bpb": 1.0}, {"seed": 2, "val_bpb": 1.2}]
    submission(tmp_path / "listed", "Fifth", seed_results=listed)
    assert read_submissions(tmp_path / "listed", ColumnNames(metric="val_bpb")).values == {
        "Fifth": {"1": 1.0, "2": 1.2}
    }
    ends = {"1": {"val_bpb": 1.0, "ExitCode": "0:0"}, "2": {"val_bpb": 0.5, "ExitCode": "0:9"}}
    ends |= {
        "3": {"val_bpb": 0.6, "finished": False, "note": "killed at step 9"},
        "4": {"val_bpb": 1.1, "note": "OOM, once"},
    }
    submission(tmp_path / "ended", "Seventh", seed_results=ends)
    read = read_submissions(tmp_path / "ended", ColumnNames(metric="val_bpb"))
    assert (read.values, read.lost) == ({"Seventh": {"1": 1.0, "4": 1.1}}, {"Seventh": {"2": "ExitCode 0:9"}})
    assert read.unfinished["Seventh"]["3"].startswith("'finished: false' in ") and "`OOM, once`" in "".join(read.notes)
    submission(tmp_path / "bare", "Sixth", seed_results=[1.0, 1.2])
    with pytest.raises(PlumblineError, match=r"seed_results.*'seed'"):
        read_submissions(tmp_path / "bare", ColumnNames(metric="val_bpb"))
    with pytest.raises(PlumblineError, match=r"seed_results.1: 'val_loss' is no number; name"):
        read_submissions(tmp_path, ColumnNames(metric="val_loss"))
    with pytest.raises(PlumblineError, match=r"no submission.json.*'val_bp'.*'val_bpb'"):
        read_submissions(tmp_path / "2026-03-17_First", ColumnNames(metric="val_bp"))


@given(st.integers(-(10**30), 10**30), st.integers(0, 5), st.integers(0, 4))
def test_a_seed_is_its_number_however_it_is_written(seed: int, zeros: int, decimals: int) -> None:
    sign, digits = ("-", str(-seed)) if seed < 0 else ("", str(seed))
    assert normalize_seed(f"{sign}{'0' * zeros}{digits}{(decimals and '.' + '0' * decimals) or ''}") == str(seed)


CELL = st.one_of(st.sampled_from(["", "1", "01", "1.0", "nan", "inf", "x", "3.5", "crash", "ok", "1e400"]), st.text())


@given(
    st.lists(
        st.fixed_dictionaries(dict.fromkeys(("method", "seed", "step", "status", "loss"), CELL)), min_size=1, max_size=6
    )
)
def test_any_cells_are_read_or_refused_in_a_sentence(cells: list[dict[str, str]]) -> None:
    """And no run is lost on the way: every method and seed has a value, is lost, or is left out with a word."""
    rows = FileRows(Path("x.csv"), ("method", "seed", "step", "status", "loss"), tuple(map(FileRow, range(9), cells)))
    for read in (read_table, read_search):
        try:
            facts = read(rows, COLUMNS)
        except PlumblineError:
            continue
        if read is read_table:
            there = {(row["method"], normalize_seed(row["seed"])) for row in cells}
            keys = {(method, seed) for side in (facts.values, facts.lost) for method, of in side.items() for seed in of}
            assert keys <= there and {method for method, _ in there - keys} <= {
                method for method, _ in there if method not in facts.methods
            }


def test_a_folder_may_be_named_by_a_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, values in (("old", (1.0, 1.1, 1.05)), ("new", (0.5, 0.6, 0.55))):
        submission(tmp_path / "records", place, seed_results=dict(zip("123", values, strict=True)))
    monkeypatch.chdir(tmp_path / "records")
    assert main([".", "--baseline", "old", "--metric", "val_bpb", "--lower-is-better", "--exit-code-of", "new"]) == 0
    assert (tmp_path / "records.verdict.md").exists()


def test_a_submission_keeps_its_place_and_its_name(tmp_path: Path) -> None:
    """The ledger knows it by both: one without a value comes after those that have one, a link is its own name."""
    for place, values in (("a", (math.nan, math.nan)), ("b", (1.0, 1.1)), ("c", (0.9, 1.0))):
        submission(tmp_path / "records", place, seed_results=dict(zip("12", values, strict=True)))
    (tmp_path / "link").symlink_to(tmp_path / "records/b")
    assert read_submissions(tmp_path / "records", ColumnNames(metric="val_bpb")).methods == ("b", "c", "a")
    assert read_submissions(tmp_path / "link/submission.json", ColumnNames(metric="val_bpb")).methods == ("link",)
    assert read_submissions(tmp_path / "link", ColumnNames(metric="val_bpb")).methods == ("b",)


@pytest.mark.parametrize(
    ("starts", "why"),
    [
        (["2026-10-01T10:00:00Z", "2026-10-01T12:01:00+02:00", "2026-10-01 10:02:00 UTC"], ""),
        (["1790848800", "1790848860.5", "1790848920000"], ""),
        (["2026-10-01", "2026-10-02", "2026-10-03"], "has '2026-10-01'"),
        (["10/01/2026 10:00 AM"] * 3, "has '10/01/2026 10:00 AM'"),
        (["2026-10-01T10:00:00Z", "", "2026-10-01T10:02:00Z"], "empty of some runs"),
        (["2026-10-01T10:00:00", "2026-10-01T10:01:00Z", "2026-10-01T10:02:00"], "time zone in some"),
        (["2026-10-01T10:00:00"] * 3, "time of several runs"),
    ],
)
def test_a_column_without_times_of_runs_is_named(tmp_path: Path, starts: list[str], why: str) -> None:
    rows = "".join(f"a,{seed},{seed},{start}\n" for seed, start in enumerate(starts))
    read = table(tmp_path, "method,seed,loss,started\n" + rows)
    assert len(read.notes) == bool(why) and all("`started`" in note and why in note for note in read.notes)


def test_when_runs_were_made_is_from_one_column(tmp_path: Path) -> None:
    rows = "".join(
        f"a,{seed},{seed},{start},2026-10-01T0{seed}:00:00\n" for seed, start in enumerate(["", "2026-10-01T09:00:00"])
    )
    read = table(tmp_path, "method,seed,loss,started,created\n" + rows)
    assert [run.started for run in read.runs["a"].values()] == [f"2026-10-01T0{hour}:00:00+00:00" for hour in (0, 1)]

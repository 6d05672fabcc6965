"""How a run ended, as written by loops, trackers and schedulers: what has no value is never judged by one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.operate.experiments.folder_source import STATUS
from plumbline.verdict.__main__ import main
from plumbline.verdict.evidence import CRASH, FINISHED, RUNNING
from plumbline.verdict.sources.row_files import ColumnNames, read_rows
from plumbline.verdict.sources.run_rows import read_search, read_table
from plumbline.verdict.sources.run_statuses import parse_status_map, translate_status

COLUMNS = ColumnNames(metric="loss")
AS_WRITTEN = {
    FINISHED: "finished FINISHED COMPLETE TrialState.COMPLETE Completed Succeeded done",
    CRASH: "crashed Failed FAIL killed pruned TrialState.PRUNED oom OUT_OF_MEMORY OUT_OF_ME+ timeout TIMEOUT "
    "CANCELLED CANCELLED+ canceled PREEMPTED NODE_FAIL Timed-Out OOMKilled Aborted",
    RUNNING: "running RUNNING waiting QUEUED pending preempting SCHEDULED in-progress REQUEUED",
}


@pytest.mark.parametrize("column", ["State", "status", "run.STATE", "job_state", "runStatus", "how it went"])
def test_a_status_is_known_by_its_column_and_its_word(tmp_path: Path, column: str) -> None:
    path = tmp_path / "t.csv"
    runs = [(word, meaning) for meaning, statuses in AS_WRITTEN.items() for word in statuses.split()]
    path.write_text(
        f"method,seed,{column},loss\n"
        + "".join(
            f"a,{seed},{word},{'' if column == 'how it went' and how != FINISHED else 3}\n"
            for seed, (word, how) in enumerate(runs)
        )
    )
    read = read_table(read_rows(path), COLUMNS)
    sides = {FINISHED: read.values, CRASH: read.lost, RUNNING: read.unfinished}
    for seed, (word, meaning) in enumerate(runs):
        assert [of for of, there in sides.items() if str(seed) in there["a"]] == [meaning], word
    assert column == "status" or any(note.startswith(f"`{column}`: ") for note in read.notes)


def test_words_with_spaces_and_a_user_s_number() -> None:
    assert translate_status("CANCELLED by 1000") == translate_status("out of memory") == CRASH
    assert translate_status("stopped") is None
    assert translate_status("+") is None and translate_status("F+") is None


@pytest.mark.parametrize(
    "column", ["note,nan", "test_loss,nan", "note,", "tag,baseline", "flag,ok", "best,finished at last", "group,17"]
)
def test_other_columns_are_none_of_statuses(tmp_path: Path, column: str) -> None:
    name, _, cell = column.partition(",")
    path = tmp_path / "t.csv"
    path.write_text(f"method,seed,{name},loss\na,1,{cell},3\na,2,{cell},4\n")
    read = read_table(read_rows(path), COLUMNS)
    assert read.values == {"a": {"1": 3, "2": 4}} and not read.notes and not read.told


@pytest.mark.parametrize("column", ["exit_code", "ExitCode", "run.returncode", "return code"])
def test_a_run_that_ended_with_an_exit_code_is_lost(tmp_path: Path, column: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"method,seed,{column},loss\na,1,0,3\na,2,137,2\na,3,0.0,4\n")
    read = read_table(read_rows(path), COLUMNS)
    assert (read.values, list(read.lost["a"])) == ({"a": {"1": 3, "3": 4}}, ["2"])


def test_a_status_in_colours_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("method,seed,State,loss\na,1,\x1b[32mfinished\x1b[0m,3\na,2,\x1b[31mcrashed\x1b[0m,9\n")
    read = read_table(read_rows(path), COLUMNS)
    assert (read.values, read.lost) == ({"a": {"1": 3}}, {"a": {"2": "crashed"}})


def test_an_unknown_word_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("method,seed,State,loss\na,1,finished,3\na,2,Stopped,9\n")
    with pytest.raises(PlumblineError, match=r"line 3, column 'State': 'Stopped' .*--status-map Stopped=crashed"):
        read_table(read_rows(path), COLUMNS)
    mapped = ColumnNames(metric="loss", status_map=parse_status_map(["Stopped=crashed"]))
    assert read_table(read_rows(path), mapped).lost == {"a": {"2": "stopped"}}
    none = ColumnNames(metric="loss", status="")
    assert read_table(read_rows(path), none).values == {"a": {"1": 3, "2": 9}}
    for pairs in (["x"], ["=crashed"], ["x=fishy"], ["x=crashed", "X=finished"]):
        with pytest.raises(PlumblineError, match="--status-map"):
            parse_status_map(pairs)
    with pytest.raises(PlumblineError, match=r"column 'Sate'; .*--status-column; did you mean 'State'"):
        read_table(read_rows(path), ColumnNames(metric="loss", status="Sate"))


#: A column's name, its values of three runs of `a` and three of `b` (all have a value), and what is read: the lost runs
#: of `b`, or words of a refusal, or of a note.
COLUMN_CASES = (
    ("job_state", "COMPLETED*5 STOPPED", "'STOPPED' is no status that is known; .* --status-map STOPPED=crashed"),
    ("Run State", "finished*4 crashed oomed", "'oomed' .*--status-map oomed=crashed"),
    ("status", "exit_0*5 exit_137", "--status-map 'exit 0=crashed'"),
    ("run/status", "success*5 fail_(oom)", r"--status-map 'fail \(oom\)=crashed'"),
    ("Status", "FINISHED*5 UNFINISHED", r"'UNFINISHED' is no status that is known; say"),
    ("exit_status", "0*5 137", ["3"]),
    ("ExitCode", "0:0*4 0:9 1:0", ["2", "3"]),
    ("exit code", "0*5 SIGKILL", ["3"]),
    ("exit", "0*5 1", ["3"]),
    ("exit", "0*5 SIGKILL", ["3"]),
    ("exit", "0*3 9*3", "Column `exit` is not read as statuses, although `0` and `9`"),
    ("exit", "0*3 SIGTERM*3", ["1", "2", "3"]),
    ("exit", "0*3 137*3", ["1", "2", "3"]),
    ("exit", "0*3 144*3", "Column `exit` is not read as statuses, although `0` and `144`"),
    ("signal", "0*3 144*2 0", ["1", "2"]),
    ("exit", "0*3 200*3", "Column `exit` is not read as statuses, although `0` and `200`"),
    ("killed_by", "_*5 SIGKILL", ["3"]),
    ("killed_by", "_*5 the_scheduler", "Column `killed_by` is not read as statuses, although `the scheduler` (1 row"),
    ("diverged_at", "_*5 850", "Column `diverged_at` is not read as statuses, although `850` (1 row: line 7)"),
    ("n_failed_steps", "0*3 3*3", "Column `n_failed_steps` is not read as statuses"),
    ("n_nan_steps", "0*5 312", "Column `n_nan_steps` is not read as statuses, although `0` and `312`"),
    ("n_nan_steps", "-*5 312", "Column `n_nan_steps` is not read as statuses, although `-` and `312`"),
    ("nans", "0*5 1", "Column `nans` is not read as statuses"),
    ("nan_guard", "0*3 1*3", []),
    ("nan_policy", "raise*3 skip*3", []),
    ("exit", "4*3 12*2 512", []),
    ("exit", "3 6 9*2 12 9", "Column `exit` is not read as statuses, although `3`"),
    ("exit", "ok*5 SIGSEGV", ["3"]),
    ("signal", "9 10 11*2 12 9", "Column `signal` is not read as statuses, although `9`"),
    ("early_exit", "0.5*3 0.9*3", []),
    ("run.exit", "exited_0*5 signal_11", ["3"]),
    ("signal", "_*5 SIGSEGV", ["3"]),
    ("signal", "None*5 9", ["3"]),
    ("signal", "0.5*3 0.9*2 0.7", []),
    ("exit_signal", "_*5 9_(SIGKILL)", ["3"]),
    ("term_signal", "none*5 15", ["3"]),
    ("termSignal", "0*5 11.0", ["3"]),
    ("exit_value", "0*5 2", ["3"]),
    ("success", "yes*5 no", ["3"]),
    ("Succeeded", "Y*5 N", ["3"]),
    ("timed_out", "False*5 True", ["3"]),
    ("timeout", "1*6", []),
    ("timeout", "0*5 1", ["3"]),
    ("skip_nan", "0*5 1", ["3"]),
    ("skip_nan", "0*3 1*3", "Column `skip_nan` is not read as statuses, although `1` (3 rows: lines 5, 6, 7)"),
    ("inject_error", "False*3 True*3", "Column `inject_error` is not read as statuses, although `True`"),
    ("error", "False*3 True*3", "looks like statuses, but 'True' is said of runs that all have a value.*-column error"),
    ("crash", "_*5 1", ["3"]),
    ("task", "_*5 1", []),
    ("crash", "0*3 1*3", "looks like statuses, but '1' is said of runs that all have a value"),
    ("loss_is_nan", "0*3 1*3", "looks like statuses, but '1' is said of runs that all have a value"),
    ("has_state", "0*3 1*3", []),
    ("crashed", "False*3 True*3", ["1", "2", "3"]),
    ("out_of_memory", "False*5 True", ["3"]),
    ("converged", "True*5 False", "Column `converged` is not read as statuses, although `True` and `False`"),
    ("completed", "1*5 0.5", "Column `completed` is not read as statuses, although `1` and `0.5`"),
    ("diverged", "_*5 x", "Column `diverged` is not read as statuses, although `x` (1 row: line 7)"),
    ("error", "None*5 RuntimeError:_boom", ["3"]),
    ("error_message", "_*3 node_gone _*2", ["1"]),
    ("error", "l2*3 l1*3", []),
    ("error", "_*3 l1*3", "'l1' may be a setting"),
    ("error", "0.1*5 0.2", []),
    ("Notes", "_*5 OOM_at_step_4", "Column `Notes` is not read as statuses, although `OOM at step 4` (1 row: line 7)"),
    ("tags", "a100*5 crashed,_a100", "Column `tags` is not read as statuses, although `crashed, a100`"),
    ("recipe", "plain*3 failed_warmup_mended*3", []),
    ("random_state", "0*5 137", []),
    ("us_state", "ny*3 ca*3", []),
    ("optimizer_state", "fp32*5 bf16", []),
    ("trial_status", "TERMINATED*5 ERROR", ["3"]),
    ("status", "TERMINATED*5 ERROR", "'TERMINATED' is no status"),
    ("crashed", "False*4 True*2", ["2", "3"]),
    ("sys/failed", "0*5 1", ["3"]),
    ("failed", "0*5 7", "Column `failed` is not read as statuses, although `0` and `7`"),
    (
        "outcome",
        "finished*4 crashed oomed",
        "column 'outcome': looks like statuses, but 'oomed' is no .*-column outcome",
    ),
    (
        "how so",
        "done*5 killed",
        "looks like statuses, but 'killed' is said of a run that has a value.*-column 'how so'",
    ),
    ("outcome", "done*3 crashed*3", "looks like statuses"),
    ("outcome", "done*3 running*3", "looks like statuses"),
    ("network", "baseline*5 pruned", "looks like statuses"),
    ("network", "baseline*3 pruned*3", "Column `network` is not read as statuses"),
    (
        "interconnect",
        "active*3 suspended*3",
        "is not read as statuses, although `active` and `suspended` (6 rows: lines 2, 3,",
    ),
    ("early stopping", "_*3 interrupted*3", "is not read as statuses"),
    ("note", "x y z good_one error fine", "is not read as statuses, although `error`"),
)


@pytest.mark.parametrize(("column", "cells", "right"), COLUMN_CASES)
def test_a_status_column_is_read_or_asked_about(tmp_path: Path, column, cells, right) -> None:
    path, rows = tmp_path / "t.csv", []
    for each in cells.split():
        word, _, times = each.partition("*")
        rows += [word.replace("_", " ").strip()] * int(times or 1)
    names = [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3)]
    path.write_text(
        f"method,seed,{column},loss\n" + "".join(f'{m},{s},"{w}",3.{s}\n' for (m, s), w in zip(names, rows))
    )
    if isinstance(right, str) and "is not read" not in right:
        with pytest.raises(PlumblineError, match=right):
            read_table(read_rows(path), COLUMNS)
        return
    read = read_table(read_rows(path), COLUMNS)
    assert sorted(read.lost.get("b", {})) == (right if isinstance(right, list) else [])
    told = "".join(read.told)
    assert right in told if isinstance(right, str) else "not read as statuses" not in told


def test_a_flag_of_a_method_s_only_run_says_how_it_ended(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("method,seed,step,crash,loss\na,1,1,0,3\na,1,2,0,2\nb,1,1,1,3\nb,1,2,1,2\n")
    assert list(read_table(read_rows(tmp_path / "t.csv"), COLUMNS).lost) == ["b"]


@pytest.mark.parametrize("column", ["completed,False", "is_finished,0", "done,no"])
def test_a_run_that_is_not_finished_has_not_ended(tmp_path: Path, column: str) -> None:
    name, _, no = column.partition(",")
    yes = {"False": "True", "0": "1", "no": "yes"}[no]
    (tmp_path / "t.csv").write_text(f"method,seed,{name},loss\na,1,{yes},3\na,2,{no},2\n")
    read = read_table(read_rows(tmp_path / "t.csv"), COLUMNS)
    assert (read.values, list(read.unfinished["a"])) == ({"a": {"1": 3}}, ["2"])


def test_an_inactive_run_ended_as_another_column_says(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "method,seed,sys/state,sys/failed,loss\na,1,Inactive,False,3\na,2,Inactive,True,9\na,3,Active,False,5\n"
    )
    read = read_table(read_rows(path), COLUMNS)
    assert (read.values, read.lost) == ({"a": {"1": 3}}, {"a": {"2": "failed"}}) and "3" in read.unfinished["a"]
    path.write_text("method,seed,sys/state,loss\na,1,Inactive,3\n")
    with pytest.raises(PlumblineError, match="'Inactive' is no status"):
        read_table(read_rows(path), COLUMNS)


def test_two_columns_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("method,seed,status,State,loss\na,1,keep,finished,3\na,2,ok,crashed,9\n")
    with pytest.raises(PlumblineError, match="3, column 'State': 'crashed' contradicts 'ok' of column 'status'"):
        read_table(read_rows(path), COLUMNS)
    columns = ColumnNames(metric="loss", status="State")
    assert read_table(read_rows(path), columns).lost == {"a": {"2": "crashed"}}


ROWS = "Name,State,loss,seed\nbase,finished,3.281,1\nbase,finished,3.279,2\nbase,finished,3.284,3\n"


@pytest.mark.parametrize(
    ("rows", "more", "code", "message"),
    [
        ("new,finished,3.2,1\nnew,crashed,3.7,2\n", [], 12, "no value (seed 2: crashed)"),
        ("new,finished,3.2,1\nnew,running,3.7,2\n", [], 13, "'new' has not ended: seed 2 ('running'"),
        ("new,finished,3.2,1\nnew,running,3.7,2\n", ["--status-map", "running=crashed"], 12, "(seed 2: running)"),
        ("new,finished,3.2,1\nbase,queued,,4\n", [], 13, "'base' has not ended: seed 4 ('queued'"),
        ("new,finished,3.2,1\nbase,failed,,4\n", [], 13, "'base' diverged or crashed: seed 4"),
    ],
)
def test_a_run_that_did_not_finish_is_never_judged(tmp_path: Path, capsys, rows: str, more, code: int, message) -> None:
    (tmp_path / "t.csv").write_text(ROWS + rows)
    options = ["--baseline", "base", "--metric", "loss", "--lower-is-better", "--method-column", "Name"]
    assert main([str(tmp_path / "t.csv"), *options, "--exit-code-of", "new", "--json", *more]) == code
    assert message in json.loads(capsys.readouterr().out)["sentence"]


def test_a_search_s_log_leaves_out_what_runs_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("commit\tloss\tState\na\t3\tkeep\na\t3.1\tdiscard\nb\t\trunning\n")
    read = read_search(read_rows(path), COLUMNS)
    assert [step.line for step in read.log] == [2, 3] and [": line 4." in note for note in read.notes] == [True]
    path.write_text("commit\tloss\tstatus\tnote\na\t3\tkeep\t\nb\t2\tkeep\tkilled at step 9\n")
    assert "although `killed at step 9` (1 row: line 3)" in read_search(read_rows(path), COLUMNS).told[0]
    path.write_text("commit\tloss\tstatus\terror\na\t3\tkeep\t\nb\t2\tkeep\tOOM\n")
    with pytest.raises(PlumblineError, match="3, column 'error': 'OOM' contradicts 'keep' of column 'status'"):
        read_search(read_rows(path), COLUMNS)
    path.write_text("commit\tloss\tstatus\na\t3\tkeep\nb\t2\tcompleted\n")
    with pytest.raises(PlumblineError, match=r"3.*'completed'.*whether"):
        read_search(read_rows(path), COLUMNS)


def test_results_tsv_of_try_is_read(tmp_path: Path, capsys) -> None:
    assert all(translate_status(word) for word in STATUS.values())
    head = "commit\tloss\tmemory_gb\tstatus\tdescription\tseeds\tp\na1\t3.0\t0.0\tkeep\tbaseline\t5\t\n"
    looks = "b2\t2.99\t0.0\tundecided\twider\t2\t0.1\nb2\t2.98\t0.0\tkeep\twider\t4\t0.01\n"
    more = "c3\t2.5\t0.0\timplausible\tleak\t2\t0.001\nd4\t0.0\t0.0\tcrash\tdeeper\t0\t\n"
    (tmp_path / "results.tsv").write_text(head + looks + more)
    options = [str(tmp_path / "results.tsv"), "--metric", "loss", "--lower-is-better", "--json"]
    assert main([*options, "--exit-code-of", "b2"]) == 13, "two rows of one change are no repeats"
    assert "mean of several runs" in json.loads(capsys.readouterr().out)["sentence"]
    assert main([*options, "--sigma", "0.5"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert [step["step"]["commit"] for step in read["search"]["kept"]] == ["b2"] and read["search"]["steps"] == 2
    assert "plumbline log" in " ".join(read["notes"])
    assert "plumbline log" in (tmp_path / "results.verdict.md").read_text()


@pytest.mark.parametrize("number", ["'3.01'", '"3.01"', "3.01", 3.01])
def test_a_number_that_a_program_printed_in_quotes_is_one(tmp_path: Path, number: object) -> None:
    (tmp_path / "t.jsonl").write_text(json.dumps({"method": "a", "seed": 1, "loss": number}))
    assert read_table(read_rows(tmp_path / "t.jsonl"), COLUMNS).values == {"a": {"1": 3.01}}


RUN = "method,seed,step,loss\n"


def test_of_a_run_that_was_resumed_the_later_rows_count(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(RUN + "a,1,1,9\na,1,2,8\na,1,3,7\na,1,2,6\na,1,3,5\n")
    read = read_table(read_rows(path), COLUMNS)
    assert read.values == {"a": {"1": 5}}
    assert "earlier step (`a`, seed 1)" in read.notes[0]
    assert read_table(read_rows(path), COLUMNS, at_step="2").values == {"a": {"1": 6}}
    path.write_text(RUN + "a,1,1,9\na,1,2,8\na,1,3,7\na,1,2,6\nb,1,3,5\n")
    with pytest.raises(PlumblineError, match="different steps, from 2 to 3"):  # what was left behind is gone
        read_table(read_rows(path), COLUMNS)
    path.write_text(RUN + "a,1,1,9\na,1,2,nan\na,1,2,8\n")
    assert read_table(read_rows(path), COLUMNS).lost == {"a": {"1": "diverged"}}


@pytest.mark.parametrize("steps", ["1 2 3 1 2 3", "1 1 2 2", "3 2 2 1"])
def test_two_runs_of_one_seed_are_no_resumed_run(tmp_path: Path, steps: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(RUN + "".join(f"a,1,{step},{row}\n" for row, step in enumerate(steps.split())))
    with pytest.raises(PlumblineError, match="repeat another"):
        read_table(read_rows(path), COLUMNS)


def test_a_time_without_a_unit_is_told_and_one_with_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("method,seed,loss,runtime\na,1,3,61\na,2,4,62\n")
    read = read_table(read_rows(path), COLUMNS)
    assert read.medians["seconds"] == {"a": None}
    assert "not known, because column `runtime`" in "".join(read.notes)
    path.write_text("method,seed,loss,runtime_min\na,1,3,1\na,2,4,3\n")
    read = read_table(read_rows(path), COLUMNS)
    assert read.medians["seconds"] == {"a": 120.0} and "has no unit" not in "".join(read.notes)

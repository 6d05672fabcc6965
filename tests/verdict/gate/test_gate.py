"""The gate finds what is wrong of a record, reports nothing about sound ones, and reads what somebody hostile wrote."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import gate_faults
from plumbline.core.errors import PlumblineError
from plumbline.verdict.gate import __main__ as gate
from plumbline.verdict.gate.judgement import compute_chance_with_one_more_run
from plumbline.verdict.gate.rules import list_known_rules, read_rules
from plumbline.verdict.sources.bounded_reading import FILE_BYTES, parse_number, resolve_inside
from plumbline.verdict.sources.training_log import LogPart, read_log
from tests.run_in_process import run

STEP = "step:{step}/{steps} val_loss:{value}"


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """Four sound records, the newest of five runs."""
    rng, folder = np.random.default_rng(3), tmp_path / "board"
    folder.mkdir()
    runs = gate_faults.make_runs(rng, 5)
    gate_faults.write_table(folder, runs, f"{gate_faults.mean_at(runs, 3000):.4f}", 3000, 5, rng)
    (tmp_path / "rules.toml").write_text(gate_faults.TABLE_RULES)
    return folder


def test_every_planted_fault_is_found_and_no_other_one(tmp_path: Path) -> None:
    results = gate_faults.all_folders(tmp_path)
    missed = [(kind, table, names) for kind, table, names in results if kind and not names & gate_faults.NAMES[kind]]
    assert not missed
    assert not [names for kind, _, names in results if not kind and names - {"paid"}]
    assert len(results) == 120


def test_exit_codes_and_the_eight_lines(board: Path, tmp_path: Path) -> None:
    options = (board, "--rules", tmp_path / "rules.toml")
    process = run(gate.main, *options, cwd=tmp_path)
    assert process.returncode == 0 and len(process.stdout.splitlines()) == 8 and process.stdout.startswith("**keep**")
    log = sorted((board / "results/new").iterdir())[0]
    text = log.read_text()
    log.write_text(text.rpartition("val_loss:")[0] + "val_loss:nan train_time:1s\n")
    assert run(gate.main, *options, cwd=tmp_path).returncode == 12
    log.write_text(text.replace("step:1500/3000 val_loss:", "step:1500/3000 val_loss:nan  was:"))  # and it came back
    assert run(gate.main, *options, cwd=tmp_path).returncode == 12
    log.write_text(text.replace("weight_7", "weight_8", 1))
    result = run(gate.main, *options, "--json", cwd=tmp_path)
    report = json.loads(result.stdout)
    assert result.returncode == 13 and [fault["kind"] for fault in report["faults"]] == ["code"]
    assert len(report["lines"]) == 8 and report["runs"] == report["runs_claimed"] == 5
    assert (
        report["comparability"]["same questions"]["answer"] == report["comparability"]["one sigma"]["answer"] == "holds"
    )
    log.write_text(text)
    none = run(gate.main, *options, "--record", "44", cwd=tmp_path)
    assert none.returncode == 2 and "--record '44' is none" in none.stderr
    missing = run(gate.main, tmp_path / "nothing", "--rules", tmp_path / "rules.toml", "--json", cwd=tmp_path)
    assert missing.returncode == 1 and "no such folder" in json.loads(missing.stdout)["error"]


def test_a_mean_that_is_not_below_the_goal_is_not_kept(tmp_path: Path) -> None:
    for mean, code in ((3.2796, 11), (3.2830, 10)):
        rng, folder = np.random.default_rng(5), tmp_path / f"at{mean}"
        folder.mkdir()
        runs = gate_faults.make_runs(rng, 5, mean=mean)
        gate_faults.write_table(folder, runs, f"{gate_faults.mean_at(runs, 3000):.4f}", 3000, 5, rng)
        (tmp_path / "rules.toml").write_text(gate_faults.TABLE_RULES)
        assert run(gate.main, folder, "--rules", tmp_path / "rules.toml", cwd=tmp_path).returncode == code


def test_a_chosen_step_is_paid_for(tmp_path: Path) -> None:
    rng, folder = np.random.default_rng(7), tmp_path / "board"
    folder.mkdir()
    runs = gate_faults.make_runs(rng, 5, close=True)
    gate_faults.write_table(folder, runs, f"{gate_faults.mean_at(runs, 2950):.4f}", 2950, 5, rng)
    (tmp_path / "rules.toml").write_text(gate_faults.TABLE_RULES)
    report = json.loads(run(gate.main, folder, "--rules", tmp_path / "rules.toml", "--json", cwd=tmp_path).stdout)
    # 2900 is an evaluation like those before it only by its distance; 2925, 2950, 2975 and 3000 are closer too.
    assert report["tries"] == report["looks"] == 5
    assert report["goal"]["p_paid"] == pytest.approx(5 * report["goal"]["p"])


def test_a_step_fewer_is_worth_what_the_rules_say(board: Path, tmp_path: Path) -> None:
    more = '[predecessor]\nalpha = 0.01\nslope = 0.00001\nsource = "made up"\n'
    (tmp_path / "rules.toml").write_text(gate_faults.TABLE_RULES + more)
    page = board / "README.md"
    gain = {}
    for steps in (3000, 3100):
        page.write_text(
            page.read_text().replace("| 3 | 3000 |", f"| 3 | {steps} |").replace("| 1 | 3000 ", "| 1 | 4000 ")
        )
        page.write_text(page.read_text().replace("| 2 | 3000 |", "| 2 | 4000 |"))
        for log in (board / "results/3").iterdir():
            log.write_text(log.read_text().replace(f"step:{3000}/3000", f"step:{steps}/{steps}"))
        options = (board, "--rules", tmp_path / "rules.toml", "--json")
        report = json.loads(run(gate.main, *options, cwd=tmp_path).stdout)
        assert report["predecessor"]["record"] == "3"
        gain[steps] = report["predecessor"]["gain"]
    assert gain[3100] - gain[3000] == pytest.approx(0.001)


@pytest.mark.parametrize("name", list_known_rules())
def test_each_rules_file_of_the_package_reads(name: str) -> None:
    rules = read_rules(name)
    parts = [rules, rules.runs, rules.stopping, rules.same, rules.goal, rules.predecessor]
    assert all(part.source for part in parts if part is not None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("alpha = 0.01", "alpha = 0.7"), "0.7 must lie between 0 and 0.5"),
        (('shared = ["x"]', ""), "unknown key 'colour' (known: ['date'"),
        (("{value}", "{number}"), "unknown place 'number'"),
        (('source = "made up"\n[runs]', 'source = " "\n[runs]'), "goal.source is empty"),
        (("value = 3.28", 'value = "3.28"'), "'3.28' is not"),
        (("value = 3.28", "value = nan"), "goal.value is no finite"),
        (('source = "benchmarks/gate_faults.py"', 'source = "\u200b"'), "source is empty"),
        (("[goal]", "[headline]\ndivisor = 60.0\n[goal]"), "headline.source is empty"),
        (("[runs]\n", "[runs]\nleast = 0x" + "f" * 5000 + "\n"), "runs"),
        (("val_loss:{value}", "{...}a{...}val_loss:{value}"), "has {...} twice"),
        (("[goal]", "a." * 3000 + "b = 1\n[goal]"), "more than 20 parts"),
        (
            ("[table]", "[submissions]\nfile='x'\nheadline=[]\nseeds=[]\n[table]"),
            r"from a [table] or from [submissions]",
        ),
    ],
)
def test_rules_are_closed(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    text = gate_faults.TABLE_RULES.replace('log = "Log"', 'log = "Log"\nshared = ["x"]')
    path.write_text(text.replace(change[0], change[1] or 'colour = ["x"]', 1))
    with pytest.raises(PlumblineError) as error:
        read_rules(str(path))
    assert message in str(error.value)


def test_hostile_logs_cost_little_and_say_nothing_of_their_own(board: Path, tmp_path: Path) -> None:
    place = board / "results/new"
    (place / "long.txt").write_text("step:" * 2_000_000 + "\n" + "=" * 3_000_000)
    (place / "many.txt").write_text("".join(f"step:{10 - at % 10}/10 val_loss:3.{at}\n" for at in range(100_000)))
    (place / "large.txt").write_bytes(b"x" * (FILE_BYTES + 1))
    (place / "bytes.txt").write_bytes(bytes(range(256)) * 1000)
    (place / "outside.txt").symlink_to("/etc/passwd")
    log = sorted(place.glob("log_*"))[0]
    markup = "<img src=x onerror=alert(1)> @everyone \x1b[2J`](javascript:x)"
    log.write_text(log.read_text().replace("import torch", f"import torch # {markup}", 1))
    page = board / "README.md"
    page.write_text(page.read_text().replace("| 4 | 3000", f"| 4 {markup} | 3000"))
    begin = time.process_time()
    process = run(gate.main, board, "--rules", tmp_path / "rules.toml", cwd=tmp_path)
    assert time.process_time() - begin < 20 and process.returncode == 13
    assert "\x1b" not in process.stdout and len(process.stdout.splitlines()) == 8
    outside = "".join(part for at, part in enumerate(process.stdout.split("`")) if at % 2 == 0)
    assert "<img" in process.stdout and "<img" not in outside and "@everyone" not in outside


def test_what_is_not_read_is_said_in_the_eight_lines(board: Path, tmp_path: Path) -> None:
    log = sorted((board / "results/new").iterdir())[0]
    (log.parent / "bad_seed.txt").write_text(log.read_text() + " " * FILE_BYTES)
    process = run(gate.main, board, "--rules", tmp_path / "rules.toml", cwd=tmp_path)
    assert "not read: `results/new/bad_seed.txt has more than 16" in process.stdout


def test_a_page_that_is_a_link_out_of_the_folder_is_refused(board: Path, tmp_path: Path) -> None:
    (board / "README.md").rename(tmp_path / "outside.md")
    (board / "README.md").symlink_to(tmp_path / "outside.md")
    process = run(gate.main, board, "--rules", tmp_path / "rules.toml", cwd=tmp_path)
    assert process.returncode == 1 and "leads out of" in process.stderr


def test_a_number_of_runs_that_was_chosen_is_paid_for(board: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    reports = []
    for table in ("[runs]", '[runs]\nleast = 3\nchosen = "paid"', '[runs]\nleast = 3\nfixed = 5\nchosen = "paid"'):
        rules.write_text(gate_faults.TABLE_RULES.replace("[runs]", table))
        reports.append(json.loads(run(gate.main, board, "--rules", rules, "--json", cwd=tmp_path).stdout))
    # Of 3, 4 and 5 runs, each could have been the last.
    assert [report["tries"] for report in reports] == [1, 3, 1]
    assert reports[1]["goal"]["p_paid"] == pytest.approx(3 * reports[0]["goal"]["p"])
    assert "times 3 for 3 numbers of runs" in reports[1]["lines"][5]


def test_hostile_submissions_cost_little(tmp_path: Path) -> None:
    folder = tmp_path / "records/new"
    folder.mkdir(parents=True)
    (tmp_path / "rules.toml").write_text(gate_faults.SUBMISSION_RULES)
    runs = gate_faults.make_runs(np.random.default_rng(1), 3)
    gate_faults.write_submission(folder, runs, 3.2, {seed: 3.9 + seed * 1e-9 for seed in range(20_000)})
    line = runs[0].submission_log().splitlines()[-1]
    (folder / "many.log").write_text("".join(f"step:{at}/99999999 val_bpb:3.{at}\n" for at in range(40_000)))
    (folder / "more.log").write_text("".join(f"step:{at}/99999999 val_bpb:3.{at}\n" for at in range(60_000)))
    begin = time.process_time()
    process = run(gate.main, tmp_path / "records", "--rules", tmp_path / "rules.toml", "--json", cwd=tmp_path)
    assert time.process_time() - begin < 10 and process.returncode == 13 and line
    unread = " ".join(json.loads(process.stdout)["unread"])
    assert "20,000 seeds, and at most 1,000" in unread and "more than 50,000 evaluations" in unread


@pytest.mark.parametrize(("value", "code"), [("1e308", 12), ("-1e200", 12)])
def test_what_cannot_be_computed_with_is_not_finite(value: str, code: int, board: Path, tmp_path: Path) -> None:
    for log in (board / "results/new").iterdir():
        log.write_text(log.read_text().rpartition("val_loss:")[0] + f"val_loss:{value} train_time:1s\n")
    assert run(gate.main, board, "--rules", tmp_path / "rules.toml", cwd=tmp_path).returncode == code


def test_a_headline_has_no_more_digits_than_a_float(tmp_path: Path) -> None:
    runs = gate_faults.make_runs(np.random.default_rng(1), 3)
    gate_faults.write_submission(tmp_path, runs, 3.2, {run.seed: run.values[3000] for run in runs})
    page = tmp_path / "submission.json"
    page.write_text(page.read_text().replace('"val_bpb": 3.2,', '"val_bpb": 3.' + "2" * 100_000 + ",", 1))
    (tmp_path / "rules.toml").write_text(gate_faults.SUBMISSION_RULES)
    assert len(run(gate.main, tmp_path, "--rules", tmp_path / "rules.toml", cwd=tmp_path).stdout) < 3000


@pytest.mark.parametrize("printed", ["NaN", "1e999", '"3.2"', "null", "[" * 2000, "9" * 5000, "true"])
def test_a_headline_that_is_no_number_is_read_as_none(printed: str, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    runs = gate_faults.make_runs(np.random.default_rng(1), 3)
    gate_faults.write_submission(folder, runs, 3.2, {run.seed: run.values[3000] for run in runs})
    page = folder / "submission.json"
    page.write_text(page.read_text().replace('"val_bpb": 3.2,', f'"val_bpb": {printed},', 1))
    (tmp_path / "rules.toml").write_text(gate_faults.SUBMISSION_RULES)
    process = run(gate.main, folder, "--rules", tmp_path / "rules.toml", "--json", cwd=tmp_path)
    report = json.loads(process.stdout, parse_constant=pytest.fail)
    assert process.returncode == 13 and report["headline"] is None and report["unread"]


@pytest.mark.parametrize("link", ["/etc/passwd", "../other", "a/../../x", "https://x/y", "", "results/..", "x\0y"])
def test_a_link_leads_nowhere_outside_the_folder(link: str, tmp_path: Path) -> None:
    assert resolve_inside(tmp_path, link) is None


def test_numbers_are_decimal() -> None:
    read = [parse_number(text) for text in ("3.27", "nan", "1e-3", "0x10", "1_000", "3.27.1", "infinity")]
    assert read[0] == 3.27 and math.isnan(read[1] or 0) and read[2:] == [1e-3, None, None, None, None]


def test_runs_of_one_file_are_told_apart_where_step_goes_back(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("".join(f"step:{step}/30 val_loss:3.{step}{seed}\n" for seed in range(3) for step in (10, 20, 30)))
    log = read_log(path, LogPart(lines=(STEP,)))
    assert [[each.step for each in log_run.evaluations] for log_run in log.runs] == [[10, 20, 30]] * 3


def test_one_more_run_is_what_a_simulation_says(board: Path, tmp_path: Path) -> None:
    from plumbline.verdict.comparison_terms import ComparisonTerms
    from plumbline.verdict.judge import judge_goal

    rng = np.random.default_rng(1)
    terms = ComparisonTerms(higher=False, alpha=0.01, sigma=1.0)
    test = judge_goal("x", {str(at): value for at, value in enumerate((-1.0, -1.6, -1.2, -0.9))}, 0.0, terms)
    new = test.mean + rng.normal(size=400_000) * math.sqrt(1 + 1 / 4)
    holds = (0 - (4 * test.mean + new) / 5) * math.sqrt(5) >= 2.3263
    assert compute_chance_with_one_more_run(test) == pytest.approx(holds.mean(), abs=0.003)


def test_runs_of_one_seed_are_one_run(board: Path, tmp_path: Path) -> None:
    options = (board, "--rules", tmp_path / "rules.toml")
    first, *others = sorted((board / "results/new").iterdir())
    texts = {log: log.read_text() for log in (first, *others)}
    for log, text in texts.items():
        log.write_text(re.sub("Using seed=.*", "Using seed=7", text))
    process = run(gate.main, *options, cwd=tmp_path)
    assert process.returncode == 13 and "5 runs have 1 seed: seed 7" in process.stdout
    for log, text in texts.items():
        log.write_text(text)
    again = re.sub(r"(\d\.\d{5}) train", lambda match: f"{float(match[1]) + 1e-5:.5f} train", texts[first])
    others[0].write_text(re.sub("Using seed=.*", "Using seed=999", again))
    process = run(gate.main, *options, cwd=tmp_path)
    assert process.returncode == 13 and "mean distance is 0.0" in process.stdout


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    """A sound record of three seeds."""
    folder = tmp_path / "records"
    folder.mkdir()
    runs = gate_faults.make_runs(np.random.default_rng(1), 3, mean=3.2)
    printed = {run.seed: run.values[3000] for run in runs}
    gate_faults.write_submission(folder, runs, float(np.mean(list(printed.values()))), printed)
    rules = gate_faults.SUBMISSION_RULES.replace('["seed_results"]', '["seed_results", "seeds"]')
    (tmp_path / "rules.toml").write_text(rules)
    return folder


def judge(folder: Path, **changes: object) -> dict[str, Any]:
    """What the gate says of a record with these keys of its file changed."""
    page = folder / "submission.json"
    page.write_text(json.dumps(json.loads(page.read_text()) | changes))
    process = run(gate.main, folder, "--rules", folder.parent / "rules.toml", "--json", cwd=folder)
    return dict(json.loads(process.stdout, parse_constant=pytest.fail))


def claim(folder: Path, steps: Sequence[int]) -> dict[str, object]:
    """The headline and the values of its seeds, each at one of these steps of its log."""
    values = {}
    for step, log in zip(steps, sorted(folder.glob("*.log"))):
        printed = re.search(rf"^step:{step}/3000 val_bpb:(.*)$", log.read_text(), re.MULTILINE)
        assert printed
        values[log.stem.removeprefix("train_seed")] = {"val_bpb": float(printed[1])}
    return {
        "val_bpb": float(np.mean([value["val_bpb"] for value in values.values()])).__round__(6),
        "seed_results": values,
    }


@pytest.mark.parametrize("listed", [None, math.nan, {"val_bpb": None}, {"val_bpb": "nan"}, {"status": "oom"}])
def test_a_seed_that_is_listed_without_a_number_is_lost(listed: object, submission: Path) -> None:
    results = json.loads((submission / "submission.json").read_text())["seed_results"]
    assert judge(submission)["exit_code"] == 0
    report = judge(submission, seed_results=results | {"777": listed})
    assert (report["exit_code"], report["runs"], report["runs_claimed"]) == (12, 4, 4)
    assert "seed `777`" in report["reason"]
    log = submission / "train_seed777.log"
    log.write_text("step:250/3000 val_bpb:nan\n")
    report = judge(submission)
    assert report["exit_code"] == 12 and "train_seed777.log" in report["reason"]
    # A log that does not say so contradicts the file.
    log.write_text("step:250/3000 val_bpb:3.3\nfinal val_bpb:3.20123456\n")
    assert judge(submission)["exit_code"] == 13


def test_seeds_are_listed_elsewhere_too(submission: Path) -> None:
    results = json.loads((submission / "submission.json").read_text())["seed_results"]
    assert judge(submission, seeds=[int(seed) for seed in results])["exit_code"] == 0
    assert judge(submission, seeds=[*results, "777"])["exit_code"] == 12
    assert judge(submission, seeds=[1, 2, 3])["exit_code"] == 0  # of which nobody says that they are its runs' seeds
    report = judge(submission, seeds=[], every_run=results | {"777": None})
    assert (report["exit_code"], report["faults"][0]["kind"]) == (13, "left out")
    # What is next to the seeds is not one of them.
    assert judge(submission, every_run={}, seed_results=results | {"note": "8 x H100"})["exit_code"] == 0


@pytest.mark.parametrize("listed", [None, math.nan, {"val_bpb": None}])
def test_a_name_that_no_seed_has_is_told_where_it_has_no_number(listed: object, submission: Path) -> None:
    results = json.loads((submission / "submission.json").read_text())["seed_results"]
    for name in ("note", "mean"):
        report = judge(submission, seed_results=results | {name: listed})
        assert (report["exit_code"], report["runs"]) == (0, 3) and f"'{name}'" in report["lines"][2]
    named = {f"run_{seed}": each for seed, each in results.items()}
    report = judge(submission, seed_results=named | {"run_777": listed})
    assert report["exit_code"] and not any("taken for no seed" in each for each in report["unread"])
    # A further seed beside such a name was still left out.
    report = judge(submission, seed_results=results, every_run=results | {"777": 3.3, "note": listed})
    assert [fault["kind"] for fault in report["faults"]] == ["left out"]


def test_a_submission_s_run_that_is_not_a_number_later_on_has_diverged(submission: Path) -> None:
    log = sorted(submission.glob("*.log"))[0]
    log.write_text(log.read_text() + "final_ema val_bpb:nan\n")
    assert judge(submission)["exit_code"] == 12


def test_values_of_a_submission_are_of_one_step_or_of_the_runs_ends(submission: Path, tmp_path: Path) -> None:
    report = judge(submission, **claim(submission, (2000, 2250, 2500)))
    assert (report["exit_code"], report["faults"][0]["kind"]) == (13, "stop step")
    assert "steps of their own, 2,000 to 2,500" in report["lines"][7]
    # One step of all is a choice that is paid for, or refused, as the rules have it: by those of parameter-golf it is.
    report = judge(submission, **claim(submission, (2500, 2500, 2500)))
    assert report["looks"] == report["tries"] == 11 and not report["faults"]
    assert "step 2,500, before the runs' end at 2,750" in report["lines"][7]
    assert read_rules("parameter-golf").stopping.chosen == "refused"
    rules = tmp_path / "rules.toml"
    rules.write_text(rules.read_text().replace("[stopping]", '[stopping]\nchosen = "refused"'))
    assert judge(submission)["faults"][0]["kind"] == "stop step"
    assert not judge(submission, **claim(submission, (2750, 2750, 2750)))["faults"]


def test_runs_that_end_by_the_clock_end_at_steps_of_their_own(submission: Path) -> None:
    ends = (2250, 2500, 2750)
    for end, log in zip(ends, sorted(submission.glob("*.log"))):
        lines = log.read_text().split("\n")
        log.write_text("\n".join(line for line in lines if not line.startswith("step:") or line < f"step:{end + 1}"))
    assert not judge(submission)["faults"]
    report = judge(submission, **claim(submission, ends))
    assert not report["faults"] and "by the runs' end, 2,250 to 2,750" in report["lines"][7]


def test_a_best_value_that_a_later_line_repeats_is_of_its_step(submission: Path) -> None:
    results = {}
    for number, log in enumerate(sorted(submission.glob("*.log"))):
        lines = [f"step:{step}/3000 val_bpb:3.2{number}{step}77" for step in (1000, 2000, 3000)]
        steps = [*lines, f"best val_bpb:3.2{number}{1000 * (number + 1)}77"]
        log.write_text("\n".join(steps) + "\n")
        results[log.stem.removeprefix("train_seed")] = float(steps[-1].rpartition(":")[2])
    headline = round(float(np.mean(list(results.values()))), 6)
    report = judge(submission, seed_results=results, val_bpb=headline)
    assert report["faults"][0]["kind"] == "stop step" and "1,000 to 2,000" in report["lines"][7]
    # Lines without a step: the last one counts, another is none that all could have ended at.
    for log in submission.glob("*.log"):
        log.write_text(re.sub(r"step:(\d+)/3000 |best val.*", r"\1 of 3000: ", log.read_text()))
    report = judge(submission)
    assert report["faults"][0]["kind"] == "stop step" and "no step that a line states" in report["lines"][7]


def test_a_line_behind_the_run_s_own_is_told_where_every_run_has_it(submission: Path) -> None:
    logs = sorted(submission.glob("*.log"))
    sound = {log: log.read_text().rstrip("\n") for log in logs}
    label = next(iter(sound.values())).rpartition("\n")[2].rpartition(":")[0]
    for log, text in sound.items():
        log.write_text(f"{text}\n{label}:3.4{len(text)}\n")  # of the model before its weights were averaged, say
    report = judge(submission)
    assert report["exit_code"] == 0 and report["looks"] == 2
    assert "line 1 of the 2 of its kind" in report["lines"][7]
    # In one run alone, it is the end that was not taken; and so are lines before the last step.
    logs[0].write_text(sound[logs[0]])
    assert [fault["kind"] for fault in judge(submission)["faults"]] == ["stop step"]
    for log, text in sound.items():
        steps, _, end = text.rpartition("\n")
        log.write_text(f"{end}\n{steps}\n{label}:3.4\n")
    assert [fault["kind"] for fault in judge(submission)["faults"]] == ["stop step"]


def test_a_rounded_value_is_the_last_that_fits(submission: Path) -> None:
    results = {}
    for number, log in enumerate(sorted(submission.glob("*.log"))):
        log.write_text(f"step:1000/3000 val_bpb:3.19{number}8\nstep:3000/3000 val_bpb:3.20{number}1\n")
        results[log.stem.removeprefix("train_seed")] = 3.2
    report = judge(submission, seed_results=results, val_bpb=3.2)
    assert not report["faults"] and "by the runs' end, 3,000" in report["lines"][7]


def test_a_table_s_step_is_paid_for_where_no_line_says_the_planned_one(tmp_path: Path) -> None:
    rng, folder = np.random.default_rng(7), tmp_path / "board"
    folder.mkdir()
    runs = gate_faults.make_runs(rng, 5, close=True)
    gate_faults.write_table(folder, runs, f"{gate_faults.mean_at(runs, 2950):.4f}", 2950, 5, rng)
    for log in folder.glob("results/*/*.txt"):
        log.write_text(re.sub(r"(step:\d+)/\d+", r"\1", log.read_text()))
    (tmp_path / "rules.toml").write_text(gate_faults.TABLE_RULES.replace("/{steps}", ""))
    report = json.loads(run(gate.main, folder, "--rules", tmp_path / "rules.toml", "--json", cwd=tmp_path).stdout)
    assert report["tries"] == report["looks"] == 5


@pytest.mark.parametrize("name", ["submission.json", "train_seed777.log"])
def test_a_byte_order_mark_is_no_part_of_a_file(name: str, submission: Path) -> None:
    (submission / "train_seed777.log").write_text("step:3000/3000 val_bpb:3.2\n")
    (submission / name).write_bytes(b"\xef\xbb\xbf" + (submission / name).read_bytes())
    process = run(gate.main, submission, "--rules", submission.parent / "rules.toml", cwd=submission)
    assert process.returncode == 0


def test_a_submission_s_run_that_does_not_count_is_told_next_to_the_verdict(submission: Path) -> None:
    (submission / "train_seed777.log").write_text("step:3000/3000 val_bpb:3.31\nfinal val_bpb:3.32123456\n")
    report = judge(submission)
    assert report["exit_code"] == 0 and report["notes"]
    assert "`train_seed777.log`; at the end 3.32123456" in report["lines"][2]
    (submission / "train_seed778.log").write_text("step:3000/3000 val_bpb:nan\n")
    assert "and 1 more; at the end 3.32123456 to no number" in judge(submission)["lines"][2]


def test_a_table_s_run_that_does_not_count_is_told_next_to_the_verdict(board: Path, tmp_path: Path) -> None:
    log = sorted((board / "results/new").iterdir())[0]
    text = log.read_text().replace("val_loss:3.", "val_loss:4.").replace("weight_7", "weight_8", 1)
    (log.parent / "other.txt").write_text(text.replace("seed=", "seed=9"))
    process = run(gate.main, board, "--rules", tmp_path / "rules.toml", cwd=tmp_path)
    assert (
        process.returncode == 0
        and "1 further run of its folder not counted (`other.txt`; at the end 4." in process.stdout
    )

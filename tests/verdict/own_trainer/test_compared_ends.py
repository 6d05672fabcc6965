"""An end is judged beside the baselines', and so is each part of a pipeline."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from plumbline.verdict.decision.experiment import BASELINE
from plumbline.verdict.own_trainer import process_ends, run_end
from plumbline.verdict.own_trainer.requests import Result, read_result
from tests.verdict.own_trainer.trainers import make, trainer, write_toml


def result(
    step: float | None = 100.0,
    failed: str = "",
    nan: str = "",
    has_ends: bool = True,
    epoch: float | None = None,
    other: str = "",
    at_once: str = "",
) -> Result:
    place = ({} if step is None else {"step": step}) | ({} if epoch is None else {"epoch": epoch})
    signs = {nan: f"{nan}!"} if nan else {}
    of_output = ([failed] if failed else []) if has_ends else None
    return Result(
        run_id="",
        seed=1,
        outcome="finished",
        failed=of_output,
        failed_beside=[other] if other else [],
        ended_at_once=[at_once] if at_once else [],
        signs=signs,
        place=place,
    )


@pytest.mark.parametrize(
    ("run", "baselines", "why", "remark"),
    [
        (result(), [result()] * 2, "", ""),
        (result(failed="a: 1"), [result()] * 2, "(a: 1), and no run", ""),
        (result(failed="a: 1"), [result(), result(failed="a: 1")], "", "as runs of the baseline"),
        (result(failed="a: 1"), [result(other="a: 1, ended by another process of it")], "", "as runs of the baseline"),
        (result(failed="a: SIGSEGV"), [result(failed="a: SIGTERM")], "(a: SIGSEGV), and no run of the baseline", ""),
        (result(other="a: 1"), [result()], "", ""),
        (result(failed="a: 1 (E: x)"), [result(failed="a: 1 (E: y)")], "", "as runs of the baseline"),
        (result(failed="a: 1 (E: x)"), [result(failed="a: 1")], "(a: 1 (E: x)), and no run", ""),
        (result(failed="a: 1"), [result(failed="b: 1")], "(a: 1), and no run", ""),
        (result(failed="a: 1"), [result(has_ends=False)] * 2, "plumbline setup-trainer --again", ""),
        (result(nan="a"), [result()] * 2, "it printed a!, and no run", ""),
        (result(nan="a"), [result(nan="b")] * 2, "it printed a!, and no run", ""),
        (result(nan="a"), [result(nan="a"), result()], "", "as runs of the baseline do"),
        (result(150, epoch=3), [result(300, epoch=3)] * 2, "", "it ended at epoch 3, step 150"),
        (result(150, epoch=2), [result(100, epoch=3)] * 2, "not finished: it ended at epoch 2, step 150", ""),
        (result(90), [result()] * 2, "not finished: it ended at step 90, ", ""),
        (result(90), [result()], "", "it ended at step 90, "),
        (result(90), [result(), result(101)], "", "at step 100 to step 101"),
        (result(100), [result(), result(101)], "", ""),
        (result(110), [result()] * 2, "", ""),
        (result(None), [result()] * 2, "", ""),
        (result(90), [result(), result(None)], "", "it ended at step 90"),
        (result(at_once="a"), [result()] * 2, "", "a ended by os._exit(0)"),
        (result(at_once="a"), [result(), result(at_once="a")], "", ""),
    ],
)
def test_an_end_against_the_baselines(run: Result, baselines: list[Result], why: str, remark: str) -> None:
    compared = run_end.compare(run, baselines, "val_loss")
    assert why in compared.why and bool(compared.why) == bool(why)
    assert remark in "".join(compared.remarks) and bool(compared.remarks) == bool(remark)
    assert not run_end.compare(result(90), [result()] * 2, "val_loss", may_be_shorter=True).why


#: Does after its second value what its flag asks.
ARMS = """\
import argparse, random, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--end", default="")
given = parser.parse_args()
random.seed(given.seed)
for step in range(0, 300, 100):
    print(f"step {step} val_bpb: {1 + random.gauss(0, 0.01):.6f}", flush=True)
    exec(given.end if step == 100 else "")
"""
VALUE = r"pattern = 'val_bpb: ([0-9.]+)'"


def test_runs_of_candidates_are_judged_beside_those_of_baseline(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine", ARMS)
    write_toml(folder, command="python train.py {flags}; echo done", metric=VALUE)
    lines: list[str] = []
    arms = trainer(folder, lines=lines, candidates={end: ["--end", end] for end in JUDGED})
    runs = {run.arm: run for run in arms.run([*((end, 1) for end in JUDGED), (BASELINE, 1), (BASELINE, 2)])}
    assert runs[BASELINE].has_value and next(iter(runs)) == BASELINE and not lines  # the others wait for it
    for end, (outcome, why) in JUDGED.items():
        assert runs[end].outcome == outcome and why in runs[end].why, runs[end]
        again = read_result(folder / f".plumbline/runs/{runs[end].run_id}.result.json")
        assert again is not None and again.outcome == outcome  # so that a crash is made again


JUDGED = {
    "sys.exit(3)": ("crashed", "(train.py: exit code 3), and no run of the baseline has that"),
    "sys.exit()": ("crashed", "ended at step 100, and all runs of the baseline at step 200"),
    "print('loss nan'); sys.exit()": ("diverged", "it printed 'loss nan'"),
    "pass": ("finished", ""),
}


def test_a_failure_that_the_baseline_has_as_well_is_told(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine", ARMS)
    write_toml(folder, command="python train.py {flags}; python -c 'print(1); exit(1)'; echo done", metric=VALUE)
    lines: list[str] = []
    first, second = trainer(folder, "--end", "pass", lines=lines).run([(BASELINE, 1), ("candidate", 1)])
    assert first.has_value and second.has_value
    (remark,) = second.remarks
    assert remark.startswith("1 process of it failed (-c print(1); exit(1): exit code 1), ") and "baseline" in remark
    assert lines[-1] == f"mind: seed 1 of a change: {second.remarks[0]}"


#: How the pipelines of a command end: its code, whether a part of the last had no reader, the parts that are compared
#: with the baseline's, and what is printed.
PIPELINES = {
    "(exit 3) | tee log": (3, False, [], ""),
    "(exit 1) | cat": (1, False, [], ""),
    "false | (exit 3) | cat": (3, False, [], ""),
    "cat /dev/null | (exit 1) --seed 7 | cat  # x | y": (2, False, [], ""),
    "cat /dev/null | sh -c 'exit 1' 7 2>&1 | tee log;": (0, False, ["part 2 of 3 of a pipeline, sh: 1"], ""),
    "cat /dev/null | X=7 sh -c 'exit 1' | cat; echo done": (0, False, ["part 2 of 3 of a pipeline, sh: 1"], "done"),
    "cat /dev/null | sh -c 'exit 1'; echo done": (0, False, ["part 2 of 2 of a pipeline, sh: 1"], "done"),
    "set -eu; if true; then (exit 3) |& cat; fi": (3, False, [], ""),
    "(exit 3) | cat; exit 0": (0, False, ["part 1 of 2 of a pipeline, exit: 3"], ""),
    "(exit 3) | cat; exit 4": (4, False, [], ""),
    "(exit 3) | cat & wait": (0, False, [], ""),
    "(exit 3) | cat; echo done": (0, False, ["part 1 of 2 of a pipeline, exit: 3"], "done"),
    "set -o pipefail; (exit 3) | cat; echo done": (0, False, ["part 1 of 2 of a pipeline, exit: 3"], "done"),
    "(exit 3) | tee log && tail -n 1 log": (0, False, ["part 1 of 2 of a pipeline, exit: 3"], ""),
    "(exit 3) | cat || true": (0, False, ["part 1 of 2 of a pipeline, exit: 3"], ""),
    "(exit 3); echo a | cat": (0, False, [], "a"),
    "exec sh -c 'exit 6 | true'": (0, False, [], ""),
    "cat <<END | sh -c 'cat > /dev/null; exit 4' | cat\nthe 'text\nEND": (4, False, [], ""),
    "echo 7 | tee /dev/stderr | grep -i warn | tee log": (
        0,
        False,
        ["part 3 of 4 of a pipeline, grep: 1 (filter)"],
        "",
    ),
    "echo 7 | grep -i warn || true": (0, False, [], ""),
    "! echo 7 | grep warn && echo none": (0, False, [], "none"),
    "seq 1000000 | head -1": (0, True, [], "1"),
    "set -o pipefail; seq 1000000 | head -1": (0, True, [], "1"),
    "if seq 1 1000000 | grep -q 7; then F=5; fi; echo $F": (0, False, [], "5"),
    "set -e; seq 1000000 | head -1 > log; echo 5": (0, False, [], "5"),
    "set -Cx; (exit 3) | cat": (3, False, [], ""),
    "trap 'echo mine' EXIT; (exit 3) | cat": (0, False, ["part 1 of 2 of a pipeline, exit: 3"], "mine"),
    "trap 'echo mine' ERR; echo a | false; echo b": (0, False, [], "mine\nb"),
    "shopt -s extdebug; set -T; f() { (exit 3) | cat; echo $1; }; f b": (
        0,
        False,
        ["part 1 of 2 of a pipeline, f: 3"],
        "b",
    ),
    "f() { false | cat; }; (exit 3) | cat; set -e; f; true a:b; echo $_ ${PIPESTATUS[@]} $?": (
        0,
        False,
        ["part 1 of 2 of a pipeline: 3"],
        "a:b 0 0",
    ),
    "time (exit 3) | cat; echo ${PIPESTATUS[@]}; echo a >&2 | cat": (0, False, ["part 1 of 2 of a pipeline: 3"], "3 0"),
    "time (exit 3) | cat; kill %1": (1, False, [], ""),
    "{ (exit 3) | cat; } | cat": (0, False, [], ""),
    "IFS=3; set -u; (exit 3) | cat; echo ${PIPESTATUS[0]}": (0, False, ["part 1 of 2 of a pipeline, exit: 3"], ""),
}


@pytest.mark.skipif(not shutil.which("bash"), reason="the shell that knows the parts of a pipeline")
@pytest.mark.parametrize("command", PIPELINES)
def test_the_parts_of_pipelines_are_known(command: str, tmp_path: Path) -> None:
    file = tmp_path / "a 'folder" / "codes"
    file.parent.mkdir()
    plain, noted = (
        subprocess.run(["bash", "-c", each], cwd=tmp_path, stdout=-1, stderr=-1, text=True, check=False)
        for each in (command, process_ends.note_parts(command, file))
    )
    assert (plain.returncode, plain.stdout) == (noted.returncode, noted.stdout)
    assert "PIPESTATUS" not in noted.stderr and "printf" not in noted.stderr
    end = process_ends.read_pipeline(file, noted.returncode, command)
    parts = [f"{part.name}: {part.code}{' (filter)' * part.is_filter}" for part in end.parts]
    assert (end.code, end.no_reader, parts, noted.stdout.strip()) == PIPELINES[command], noted


@pytest.mark.parametrize(
    ("command", "outcome", "why"),
    [
        ("(echo val_bpb: {seed}.5; exit 3) | tee log", "crashed", "exit code 3"),
        ("python train.py --seed {seed} --end 'time.sleep(.2)' {flags} | head -2", "finished", ""),
        ("python train.py --seed {seed} --end 'time.sleep(.2)' {flags} 2>&1 | head -2 | tee log", "finished", ""),
        ("(: {flags}; exec seq 1000000) | head -1", "crashed", "no reader left (SIGPIPE), and val_bpb"),
        ("echo val_bpb: {seed}.5 {flags} | tee /dev/stderr | grep -i warn | cat", "finished", ""),
        ("timeout .1 sh -c 'echo val_bpb: {seed}.5; exec sleep 9' | tee log || true", "finished", ""),
    ],
)
def test_every_part_of_a_pipeline_ends_well(command: str, outcome: str, why: str, tmp_path: Path) -> None:
    folder = make(tmp_path / "mine", ARMS)
    write_toml(folder, command=command, metric=VALUE)
    (run,) = trainer(folder, "--other").run([(BASELINE, 1)])
    assert run.outcome == outcome and why in run.why, run

"""A run that crashed or stopped is never finished, whatever the shell says of it; what is not a failure is reported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.verdict.decision.experiment import BASELINE
from plumbline.verdict.own_trainer import process_ends, run_end
from plumbline.verdict.own_trainer.process_ends import PartEnd, ProcessEnds
from plumbline.verdict.own_trainer.requests import Result, read_result
from plumbline.verdict.own_trainer.run_environment import CHILD
from plumbline.verdict.own_trainer.trainer_file import MetricPart
from tests.verdict.own_trainer.trainers import make, trainer, write_toml

#: Prints a few losses, and does after the second what its argument asks.
TRAIN = """\
import os, signal, subprocess, sys
for step in range(0, 400, 100):
    print(f"step {step} val_bpb: 1.{step}", flush=True)
    if step == 100:
        exec(sys.argv[1])
"""
WRAPPER = "import subprocess, sys; subprocess.run([sys.executable, 'train.py', *sys.argv[1:]])"
PASSING = """\
import subprocess, sys
with subprocess.Popen([sys.executable, "train.py", *sys.argv[1:]], stdout=-1, stderr=-2, text=True) as child:
    for line in child.stdout:
        print(line, end="")
"""
FILTERING = PASSING.replace("        print", "        if 'step 100' in line: print")
FORKED = """\
import multiprocessing, sys
def train():
    exec(open("train.py").read(), globals())
if __name__ == "__main__":
    worker = multiprocessing.get_context("fork").Process(target=train)
    worker.start()
    worker.join()
"""
FILES = {
    "filtering.py": FILTERING,
    "forked.py": FORKED,
    "train.py": TRAIN,
    "wrapper.py": WRAPPER,
    "passing.py": PASSING,
    "train.sh": 'python train.py "$1"\necho ended',
}
#: What stands around a trainer, and what then hides how it ended.
COMMANDS = {
    "plain": "python train.py {}",
    "pipe": "python train.py {} 2>&1 | tee run.log",
    "filter": "python train.py {} 2>&1 | grep --line-buffered val",
    "script": "bash train.sh {}",
    "sh": "sh train.sh {}",
    "done": "python train.py {}; echo done",
    "or true": "python train.py {} || true",
    "file": "python train.py {} > run.log 2>&1; grep val_bpb run.log",
    "wrapper": "python -m wrapper {}",
    "passing": "python -m passing {}",
    "filtering": "python filtering.py {}",
    "substitution": 'echo "$(python train.py {} 2>&1)"',
    "exec": 'python -c \'import os, sys; os.execv(sys.executable, ["python", "train.py", *sys.argv[1:]])\' {}',
}
#: How it ends in the middle, and the message about it.
ENDS = {
    "1 / 0": "exit code 1 (ZeroDivisionError: division by zero)",
    "raise SystemExit('boom: CUDA error')": "exit code 1",
    "sys.exit(3)": "exit code 3",
    "os._exit(5)": "exit code 5",
    "os.kill(os.getpid(), signal.SIGSEGV)": "a signal",
    "os._exit(status=5)": "exit code 5",
    "os.kill(os.getpid(), signal.SIGTERM)": "a signal",
    "os.killpg(os.setpgid(0, 0) or os.getpid(), signal.SIGTERM)": "a signal",
    "import ctypes; ctypes.CDLL(None).exit(4)": "exit code 4",
}
#: How one ends that catches its own error: what is said of it, if anything, and whether it is told to end at once.
QUIET_ENDS = {
    "try: 1 / 0\nexcept Exception: print('done', flush=True); os._exit(0)": ("ZeroDivisionError: division by zero", 0),
    "sys.excepthook = lambda *error: os._exit(0); 1 / 0": ("ZeroDivisionError: division by zero", 0),
    "try: 1 / 0\nexcept Exception: pass\nos._exit(0)": ("", 1),
    "try: next(iter(()))\nexcept StopIteration: os._exit(0)": ("", 1),
    "os._exit(0)": ("", 1),
    "sys.exit(0)": ("", 0),
    "os.fork() or os._exit(0)": ("", 0),
    "import multiprocessing as m; w = m.get_context('fork').Process(target=print, args=('x',)); w.start(); w.join()": (
        "",
        0,
    ),
}


def ended(folder: Path, command: str, end: str = "pass", code: str = "") -> tuple[ProcessEnds, int]:
    """Run a command as a run does; how its Python processes ended, and the command's own code."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "code.py").write_text(code)
    reports, log = folder / "reports", folder / "log"
    reports.mkdir()
    paths = (
        os.pathsep.join([str(CHILD), str(folder)]),
        os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
    )
    ours = {"PYTHONPATH": paths[0], "PATH": paths[1], "PLUMBLINE_REPORT": str(reports), "PYTHONUNBUFFERED": "1"}
    with open(log, "wb") as file:
        done = subprocess.run(
            ["bash", "-c", command.format(f'"{end}"')],
            cwd=folder,
            env={**os.environ, **ours},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    return process_ends.read(reports, log, left_running=process_ends.list_running(reports)), done.returncode


@pytest.mark.parametrize(
    ("command", "end"), [*((command, "1 / 0") for command in COMMANDS), *(("done", end) for end in list(ENDS)[1:])]
)
def test_a_process_that_failed_is_known_whatever_hides_it(command: str, end: str, tmp_path: Path) -> None:
    ends, _ = ended(tmp_path, COMMANDS[command], end)
    assert ends == ProcessEnds(of_output=[f"train.py: {ENDS[end]}"]), (tmp_path / "log").read_text()


@pytest.mark.parametrize("end", QUIET_ENDS)
def test_an_exit_at_once_that_hides_an_error_is_a_failure(end: str, tmp_path: Path) -> None:
    error, at_once = QUIET_ENDS[end]
    ends, code = ended(tmp_path, "python train.py {}", end)
    how = f"train.py: exit code 0 by os._exit while it handled an error ({error})"
    assert code == 0 and ends == ProcessEnds(of_output=[how] if error else [], at_once=["train.py"] * at_once)


@pytest.mark.parametrize("end", ENDS)
def test_a_forked_child_that_failed_is_known(end: str, tmp_path: Path) -> None:
    ends, code = ended(tmp_path, "python forked.py {}", end)
    how = ENDS[end].partition(" (")[0]  # multiprocessing ends it, and prints what nobody caught
    how = "SIG" + end.rpartition("SIG")[2][:4] if how == "a signal" else how
    assert (ends, code) == (ProcessEnds(of_output=[f"forked.py: {how}"]), 0), (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    "stream",
    [
        "sys.stdout = os.fdopen(1, 'w', buffering=1)",
        "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, line_buffering=True)",
        "sys.stdout = open('/dev/fd/1', 'w', buffering=1)",
        "print = lambda line: os.write(1, line.encode())",
    ],
)
@pytest.mark.parametrize("end", ["sys.exit(3)", "os._exit(3)"])
def test_a_program_with_a_stream_of_its_own_has_written(stream: str, end: str, tmp_path: Path) -> None:
    ends, _ = ended(tmp_path, "python code.py; echo done", code=f"import io, os, sys\n{stream}\nprint('step 1')\n{end}")
    assert ends.of_output == ["code.py: exit code 3"], (ends, (tmp_path / "log").read_text())


#: What ends otherwise than well, and is not a failure of the run.
NO_FAILURES = {
    "a probe": ("python -c 'import no_such_module' || echo none", "-c import no_such_module: exit code 1"),
    "a silent probe": ("python code.py 2> /dev/null || echo none", "code.py: exit code 1"),
    "a captured probe": ("python code.py; echo done", "-c import no_such_module: exit code 1"),
    "a worker that is ended": ("python code.py", "ended by another process of it"),
    "a forked worker": ("python code.py", ""),
    "head": ("python train.py {} | head -2", ""),
    "head of all": ("python train.py {} 2>&1 | head -2", ""),
    "left running": ("python code.py & sleep 1; echo done", ""),
    "exec of a program": ("python code.py", ""),
    "an exec with keywords": ("python code.py", ""),
    "a log of its own": ("python code.py || echo done", "code.py: exit code 3"),
    "forked workers that are ended": ("python code.py", "ended by another process of it"),
    **{
        f"a worker that is ended: {way}": ("python code.py; sleep .3", "ended by another process of it")
        for way in ("its group", "a descriptor", "posix", "kill", "with its parent")
    },
    "files that are not its own are closed": ("python code.py", ""),
    "a forked worker that says nothing": ("python code.py", "code.py: exit code 3"),
    "a forked worker that prints": ("python code.py", ""),
    "what runs before a program": ("python code.py", ""),
    "an end without an end of Python": ("python code.py", ""),
    "an exit in a thread's code": ("python code.py", ""),
}
CODES = {
    "a silent probe": "import no_such_module",
    "a captured probe": "import subprocess, sys\n"
    "print('before', subprocess.run([sys.executable, '-c', 'import no_such_module'], capture_output=True).returncode)",
    "a worker that is ended": "import subprocess, sys, time\n"
    "worker = subprocess.Popen([sys.executable, '-c', 'import time; print(1, flush=True); time.sleep(60)'])\n"
    "time.sleep(.5); worker.terminate(); worker.wait()",
    "a forked worker": "import os, sys\nif os.fork(): os.wait()\nelse: sys.exit(3)",
    "left running": "import time; print(1); time.sleep(60)",
    "exec of a program": "import os; print(1); os.execvp('true', ['true'])",
    "an exec with keywords": "import os, sys; print(1)\n"
    "os.execve(sys.executable, ['python', '-c', 'print(2)'], env=dict(os.environ))",
    "a log of its own": "import sys; sys.stdout = open('own.log', 'w'); print('step 1'); sys.exit(3)",
    **{
        f"a worker that is ended: {way}": "import ctypes, os, posix, signal, subprocess, sys, time\n"
        "worker = subprocess.Popen(\n"
        "    [sys.executable, '-c', 'import time; print(1, flush=True); open(\"there\", \"w\"); time.sleep(60)'],\n"
        f"    start_new_session=True, preexec_fn=lambda: {before})\n"
        f"while not os.path.exists('there'): time.sleep(.01)\n{end}"
        for way, before, end in (
            ("its group", "0", "os.kill(-worker.pid, signal.SIGKILL); worker.wait()"),
            ("a descriptor", "0", "signal.pidfd_send_signal(os.pidfd_open(worker.pid), signal.SIGKILL); worker.wait()"),
            ("posix", "0", "posix.kill(worker.pid, signal.SIGKILL); worker.wait()"),
            ("kill", "0", "subprocess.run(['kill', str(worker.pid)]); worker.wait()"),
            ("with its parent", "ctypes.CDLL(None).prctl(1, signal.SIGKILL)", "print('ended')"),
        )
    },
    "files that are not its own are closed": "import os; print(1); os.closerange(3, 4096)",
    "forked workers that are ended": "import multiprocessing, time\n"
    "silent, loud = [multiprocessing.get_context('fork').Process(target=target, daemon=True) for target in (\n"
    "    lambda: time.sleep(60), lambda: (print(1, flush=True), time.sleep(60)))]\n"
    "silent.start(); loud.start(); time.sleep(.5)",
    "a forked worker that says nothing": "import multiprocessing, os; print(1)\n"
    "worker = multiprocessing.get_context('fork').Process(target=os._exit, args=(3,)); worker.start(); worker.join()",
    "a forked worker that prints": "import multiprocessing; print(1)\n"
    "with multiprocessing.get_context('fork').Pool(8) as pool: pool.map(abs, [1]); pool.close(); pool.join()\n"
    "worker = multiprocessing.get_context('fork').Process(target=print, args=(2,)); worker.start(); worker.join()",
    "what runs before a program": "import subprocess; subprocess.run(['true'], preexec_fn=lambda: print('before'))",
    "an end without an end of Python": "import os; print(1); os._exit(0)",
    "an exit in a thread's code": "import sys, threading\nthreading.Thread(target=sys.exit, args=(3,)).start()",
}


@pytest.mark.parametrize("case", NO_FAILURES)
def test_what_is_no_failure_counts_for_nothing_and_is_told(case: str, tmp_path: Path) -> None:
    command, message = NO_FAILURES[case]
    ends, code = ended(tmp_path, command, "import time; time.sleep(.3)", CODES.get(case, ""))
    assert ends.of_output == [] and len(ends.others) == bool(message), (ends, (tmp_path / "log").read_text())
    assert message in "".join(ends.others) and code == 0


@pytest.mark.parametrize(
    ("command", "of_output", "others"),
    [
        ("python train.py {}", ["train.py: exit code 3", "part 2: exit code 4"], []),
        ("sh train.sh {}", ["part 1: exit code 3", "train.py: exit code 3", "part 2: exit code 4"], []),
        ("python -c 'exit(3)'", ["part 2: exit code 4"], ["-c exit(3): exit code 3"]),
        ("python code.py & sleep .5", ["part 1: exit code 3", "part 2: exit code 4"], []),
    ],
)
@pytest.mark.skipif(not shutil.which("bash"), reason="the shell that knows the parts of a pipeline")
def test_parts_that_count_and_filters(command: str, of_output: list[str], others: list[str], tmp_path: Path) -> None:
    ended(tmp_path, f"echo $$ > shell; {command}; echo done", "sys.exit(3)", "import time; time.sleep(60)")
    reports, log = tmp_path / "reports", tmp_path / "log"
    parts = [PartEnd("part 1", 3), PartEnd("part 2", 4), PartEnd("grep", 1, is_filter=True)]
    shell = int((tmp_path / "shell").read_text())
    ends = process_ends.read(reports, log, left_running=process_ends.list_running(reports), parts=parts, shell=shell)
    assert sorted(ends.of_output) == sorted(of_output) and ends.others == [*others, "grep: exit code 1"], ends


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("import os; print(1); os.closerange(3, 4096); raise SystemExit(3)", "code.py: exit code 3"),
        (
            "import subprocess, sys; subprocess.run([sys.executable, 'train.py', 'os.kill(os.getpid(), 9)'])",
            "train.py: SIGKILL",
        ),
        ("import os; os.system('exec python train.py \"os.kill(os.getpid(), 11)\"')", "train.py: a signal"),
        (
            "import os, subprocess, sys; subprocess.run([sys.executable, 'train.py', 'os.kill(os.getpid(), 15)'])",
            "train.py: SIGTERM",
        ),
    ],
)
def test_a_process_that_nobody_ended_has_failed(code: str, end: str, tmp_path: Path) -> None:
    ends, _ = ended(tmp_path, "python code.py; echo done", code=code)
    assert ends == ProcessEnds(of_output=[end]), (tmp_path / "log").read_text()


def test_a_silent_trainer_counts_if_its_metric_is_in_a_file(tmp_path: Path) -> None:
    silent = "python -c 'import sys; sys.exit(3)'"
    command = f"{COMMANDS['plain']} > /dev/null 2>&1; {silent}; {NO_FAILURES['a probe'][0]}"
    ends, _ = ended(tmp_path, command, "1 / 0")
    assert len(ends.others) == 3 and not ends.of_output
    ends = process_ends.read(tmp_path / "reports", tmp_path / "log", silent=True)
    assert len(ends.others) == 2 and ends.of_output == [f"train.py: {ENDS['1 / 0']}"]


LOSS = MetricPart(pattern=r"val_loss:? ?([0-9.]+)")


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        *(
            (line, "sign")
            for line in (
                "step 90 loss nan",
                "step 90: train_loss=NaN lr 0.1",
                "{'loss': nan, 'grad_norm': inf, 'epoch': 2.0}",
                "step 90 | train loss inf | 20 ms",
                "step 90 val_loss: nan",
                "loss: tensor(nan, device='cuda:0')",
                "\x1b[31mloss\x1b[0m \x1b[1mnan\x1b[0m",
            )
        ),
        *(
            (line, f"traceback {kind}")
            for line, kind in (
                ("[rank0]: Traceback (most recent call last):\n[rank0]:   File x\n[rank0]: ValueError: y", "[rank0]"),
                ("Traceback (most recent call last):\n  File x\nRuntimeError: CUDA error", "RuntimeError"),
            )
        ),
        *(
            (f"{name}=nan {name}=inf  (no test set)", f"nan {name}")
            for name in ("aux_loss", "test_loss", "z_loss", "eval/ppl")
        ),
        ("ppl -inf.", "nan ppl"),
        ("Loss is nan, stopping training", "nan loss is"),
        ("the aux loss became nan", "nan: the aux loss became nan"),
        ("NaN in the eval loss at step 90", "nan: nan in the eval loss at step #"),
        ("step 90 loss 2.4 z_loss nan", "nan z_loss"),
        *(
            (line, "beside")
            for line in (
                "Exception in thread Thread-1 (upload):\nTraceback (most recent call last):\n  File x\nOSError: y",
                "Error in atexit._run_exitfuncs:\nTraceback (most recent call last):\n  File x\nOSError: y",
                'Traceback (most recent call last):\n  File "multiprocessing/resource_tracker.py", line 2\nKeyError: y',
            )
        ),
        ("grad_norm: nan 'test_acc': nan}", "nan grad_normnan test_acc"),
        ("step 90: nan", "nan: step #: nan"),
        ("90 nan 0.1", "nan: # nan #"),
        *(
            (line, "")
            for line in (
                "info: finance of nanotech",
                "saved to /data/nan/inf.pt",
                "loss curve in out/nan/loss.png",
                "best val loss: inf",
                "loss_scale: inf",
                "interval: inf",
                "min_loss=inf, patience: inf",
                "grad_norm: inf",
                "no nan in the loss",
                "the loss is no longer nan-padded",
                "Exception ignored in: <function x>\nTraceback (most recent call last):\n  File x\nTypeError: y",
                "Traceback (most recent call last):\n  File x\nBrokenPipeError: [Errno 32] Broken pipe",
                "nan_policy: propagate, inf_check=True",
            )
        ),
    ],
)
def test_a_line_after_the_last_value_says_that_a_run_stopped(line: str, sign: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    before = "step 40 loss nan\nTraceback (most recent call last):\n  File x\nValueError: y\n"  # and it went on
    log.write_text(f"{before}step 50 val_loss 2.5\n{line}\nbye\n")
    end = run_end.read(LOSS, log, tmp_path)
    assert ("sign" if end.diverged else "beside" if end.beside else "".join(end.signs)) == sign, end
    assert end.place["step"] in (50, 90)
    log.write_text(f"{before}{line}\nstep 50 val_loss 2.5\n")
    after = run_end.read(LOSS, log, tmp_path)
    assert (after.diverged, after.signs, after.beside) == ("", {}, [])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("epoch 9 loss 2\nepoch 10 loss 2\nBest val_loss 1.79 (epoch 12)\ndone", {"epoch": 10}),
        ("step 900 val_loss 2\nstep 1000/1000 loss 2", {"step": 1000}),
        ("steps: 5000\nstep 1000 val_loss 2, time per step: 1200ms", {"step": 1000}),
        ("time per step: 12ms, val_loss: 2\nper optimizer step 13, step 14 s", {"values": 1}),
        ("step 900: val_loss 2\nstep 1000: val_loss 2\nstep_avg: 3", {"step": 1000}),
        ("step:1000/1500 val_loss:2 step_avg:40ms", {"step": 1000}),
        ("iter 1,250: loss 3\nval_loss 2\niter 1,260: loss 3", {"step": 1260}),
        ("{'val_loss 2': 1, 'epoch': 1.5, 'global_step': 30}", {"epoch": 1.5, "step": 30}),
        ("[epoch 3] Step 00040/00100 val_loss: 2", {"epoch": 3, "step": 40}),
        ("12 steps/s, 4 tokens/step 5\nval_loss 2\nval_loss 2.5 (12 ms/step)", {"values": 2}),
        ("nothing", {}),
    ],
)
def test_the_step_of_the_last_value(text: str, place: dict[str, float], tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    assert run_end.read(LOSS, tmp_path / "log", tmp_path).place == place


@pytest.mark.parametrize(
    ("line", "part", "sign"),
    [
        ("Epoch 9: train_loss=nan, val_loss=0.91", LOSS, "sign"),
        ("step 800 val_loss 2.2 train_loss nan", LOSS, "sign"),
        ("step 800 val_loss 2.2 grad_norm=nan best=inf", LOSS, "nan grad_norm"),
        ("loss nan loss 2.5", MetricPart(pattern=r"loss (\S+)"), "sign"),
        ("METRIC loss=2.5", MetricPart(name="loss"), ""),
    ],
)
def test_the_line_of_the_last_value(line: str, part: MetricPart, sign: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"step 1 val_loss 3\n{line}\nbye\n")
    end = run_end.read(part, tmp_path / "log", tmp_path)
    assert ("sign" if end.diverged else "".join(end.signs)) == sign, end


ROWS = '{"step": 10, "eval": {"loss": 2.5}}'
LAST = {"step": 20.0}


@pytest.mark.parametrize(
    ("rows", "log", "sign", "place"),
    [
        (f'{ROWS}\n{{"step": 20, "loss": NaN}}', "", "sign", LAST),
        (f'[{ROWS}, {{"step": 20, "loss": NaN}}]', "", "sign", LAST),
        (f'{ROWS}\n{{"step": 20, "train_loss": null, "eval": {{"loss": null}}}}', "", "null train_lossnull loss", LAST),
        (f'{{"step": 5, "loss": null}}\n{ROWS}\n{{"step": 20, "loss": null, "lr": null}}', "", "", LAST),
        (ROWS, "", "", {"step": 10}),
        (ROWS, "step 9 loss 2.4\nstep 20 loss nan\nloss is nan: stopping", "sign", LAST),
        (ROWS, "step 0 loss nan\nTraceback (most recent call last)\n  x\nE: y\nstep 20 loss 2.4", "", LAST),
        (ROWS, "step 5 loss nan\nstep 20 loss 2.4 z_loss nan\nbye", "nan z_loss", LAST),
        (
            ROWS,
            "begins\nTraceback (most recent call last):\n  File x\nRuntimeError: y",
            "traceback RuntimeError",
            {"step": 10},
        ),
        ('{"eval": {"loss": 2.5}}', "", "", {"values": 1}),
        ('{"eval": {"loss": 2.5}}', "epoch 3\nepoch 4", "", {"epoch": 4}),
    ],
)
@pytest.mark.parametrize("name", ["rows.jsonl", "printed"])
def test_a_metric_in_a_file_is_read_with_the_output(
    rows: str, log: str, sign: str, place: dict[str, float], name: str, tmp_path: Path
) -> None:
    part = MetricPart(json="rows.jsonl:eval.loss")
    (tmp_path / "rows.jsonl").write_text(f"{rows}\n")
    (tmp_path / "log").write_text(f"{log}\n" + ("" if name == "rows.jsonl" else "step 99 loss nan\n"))
    end = run_end.read(part, tmp_path / "log", tmp_path, end=len(log) + 1)
    assert ("sign" if end.diverged else "".join(end.signs)) == sign and end.place == place, end


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

"""A run that crashed or stopped is never finished, whatever the shell says of it; what is not a failure is reported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.verdict.own_trainer import process_ends
from plumbline.verdict.own_trainer.process_ends import PartEnd, ProcessEnds
from plumbline.verdict.own_trainer.run_environment import CHILD

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
        process = subprocess.run(
            ["bash", "-c", command.format(f'"{end}"')],
            cwd=folder,
            env={**os.environ, **ours},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    return process_ends.read(reports, log, left_running=process_ends.list_running(reports)), process.returncode


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

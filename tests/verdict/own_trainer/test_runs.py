"""How a run ends is distinguished: the arm's doing, or the machine's; and nothing of a run outlives it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from plumbline.core import process_record
from plumbline.core.errors import PlumblineError
from plumbline.verdict.decision.experiment import BASELINE, ArmRun
from plumbline.verdict.own_trainer import processes, run_one, watched_files
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.own_trainer.processes import REPORT, list_carriers
from plumbline.verdict.own_trainer.requests import read_request, read_result
from tests.verdict.own_trainer.trainers import METRIC, TRAIN, decide, git, make, trainer, write_toml

#: Starts a process in its own session, as launchers do, and waits for ever.
NEVER = """\
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print("val_bpb: 1.0", flush=True)
time.sleep(600)
"""


def run(folder: Path, train: str, *run: str, command: str = "python train.py {flags}") -> ArmRun:
    """One run of a trainer as the candidate."""
    make(folder)
    (folder / "train.py").write_text(train)
    write_toml(folder, *run, command=command)
    (arm_run,) = trainer(folder).run([("candidate", 7)])
    assert not list_carriers(f"{REPORT}={Folder(folder).runs}/")
    return arm_run


@pytest.mark.parametrize(
    ("train", "outcome", "why"),
    [
        ("print('val_bpb: nan')", "diverged", "val_bpb is nan"),
        ("print('val_bpb: inf'); raise SystemExit(1)", "diverged", "val_bpb is inf"),
        ("print('val_bpb: 1'); 1 / 0", "crashed", "exit code 1: ZeroDivisionError: division"),
        (
            "raise MemoryError('torch.cuda.OutOfMemoryError: CUDA out of memory')",
            "crashed",
            "out of memory: MemoryError",
        ),
        ("import os; os.kill(os.getpid(), 9)", "crashed", "killed (SIGKILL, "),
        (
            "print('bpb of val is 3')",
            "crashed",
            "val_bpb is nowhere",
        ),
    ],
)
def test_an_end_that_is_the_arms_own_is_its_outcome(train: str, outcome: str, why: str, tmp_path: Path) -> None:
    result = run(tmp_path / "mine", train)
    assert (result.outcome, result.value) == (outcome, None) and why in result.why


#: Leaves a process behind that has its own session and environment, and prints which.
LEAVES = """\
import os, subprocess, sys
code = "import os, time; open('{file}.new', 'w').write(str(os.getpid())); os.rename('{file}.new', '{file}'); "
code += "time.sleep(600)"
subprocess.Popen([sys.executable, "-c", code], start_new_session=True, env={{}})
while not os.path.exists("{file}"):
    pass
"""


def test_what_left_its_session_ends_with_its_run(tmp_path: Path) -> None:
    file = tmp_path / "left"
    middle = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {LEAVES.format(file=file)!r}], env={{}})\n"
    try:
        run(tmp_path / "mine", middle + "import time; time.sleep(600)", 'timeout = "2s"')
        assert not alive(int(file.read_text()))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGKILL)


def alive(process: int) -> bool:
    return process_record.read_start_time(process) is not None


def test_what_a_run_changes_of_what_is_shared_is_told(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine", "open('data/cache', 'a').write('x')\n" + TRAIN)
    (folder / ".gitignore").write_text("data\n")
    (folder / "data").mkdir()
    (folder / "data/tokens").write_text("1 2 3")
    write_toml(folder, 'share = ["data"]')
    lines: list[str] = []
    list(trainer(folder, "--gain", "1", lines=lines).run([("candidate", 1), ("candidate", 2)]))
    (line,) = lines  # once, whatever the runs
    assert f"1 of a change ran, {folder}/data/cache" in line


def test_what_changes_is_seen_in_as_many_shared_files(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"data/{number}").mkdir(parents=True)
        (tmp_path / f"data/{number}/tokens").write_text("1 2 3")
    whole, none = watched_files.scan([str(tmp_path / "data")]), watched_files.scan([str(tmp_path / "data")], seconds=0)
    assert len(whole.files) == 3 and not whole.left and none.left == {str(tmp_path / "data")}
    for name in ("data/0/more", "data/new/deep/file", "data/1/tokens"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("4")
    (tmp_path / "data/2/tokens").unlink()
    changed = ["data/0/more", "data/1/tokens", "data/2/tokens", "data/new/deep/file"]
    assert watched_files.list_touched(whole) == [str(tmp_path / name) for name in changed]
    assert watched_files.list_touched(none) == []


def test_shared_files_that_are_too_many_to_be_looked_at_are_told(tmp_path: Path) -> None:
    lines: list[str] = []
    arms = trainer(make(tmp_path / "mine"), "--gain", "1", lines=lines)
    list(arms.run([("candidate", 1)]))
    result = read_result(arms.folder.runs / f"{arms.run_id('candidate', 1)}.result.json")
    assert result is not None and not result.unseen and not lines
    for _ in range(2):
        arms.tell_of_shared("candidate", msgspec.structs.replace(result, unseen=True, looked_at=400_000))
    (line,) = lines
    assert "run.share has more files" in line and "400,000 files" in line


def test_a_long_log_takes_no_room_while_the_run_runs(tmp_path: Path) -> None:
    flood = """\
        import os, sys, time
        print("first")
        for part in range(6):
            print(f"val_bpb: 0.{part}", flush=True)
            for _ in range(160): print(("x" * 99 + "\\n") * 1000, end="")
            sys.stdout.flush()
            while os.fstat(1).st_blocks * 512 > 44 * 2**20: time.sleep(0.1)  # until room was made
        open(sys.argv[-1], "w").write("done")
        for _ in range(200): print(("y" * 99 + "\\n") * 1000, end="", flush=True)
        print("last", flush=True)
        time.sleep(1)
    """
    folder, most = make(tmp_path / "mine", textwrap.dedent(flood)), 0
    write_toml(folder, 'seed = "env:SEED"', command=f"{sys.executable} train.py {tmp_path}/done")
    arms = trainer(make_changed(folder))
    log = Folder(folder).log(arms.method("candidate"), 1)
    with ThreadPoolExecutor(1) as pool_:
        looking = pool_.submit(largest, log, tmp_path / "done")
        (arm_run,) = arms.run([("candidate", 1)])
        most = looking.result()
    text = log.read_text()
    assert arm_run.value == 0.5 and text.startswith("first\n") and text.endswith("y\nlast\n") and "\0" not in text
    assert most < 70 * 2**20, most  # of 96 MB that it had printed
    assert int(re.search(r"left out (\d+) bytes", text)[1]) > 80 * 2**20 and log.stat().st_size < 21 * 2**20


def make_changed(folder: Path) -> Path:
    (folder / "train.py").write_text(f"{(folder / 'train.py').read_text()}\n")
    return folder


def largest(path: Path, until: Path) -> int:
    """The most room that a file takes, in bytes, until another one is there."""
    most = 0
    while not until.exists():
        most = max(most, path.stat().st_blocks * 512 if path.exists() else 0)
        time.sleep(0.05)
    return most


@pytest.mark.parametrize("clean", [False, True], ids=["", "without its mark"])
def test_a_run_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path, clean: bool) -> None:
    train = NEVER.replace(", start_new_session=True", "") if clean else NEVER
    command = f"{f'env -i {sys.executable}' if clean else 'python'} train.py"
    arm_run = run(tmp_path / "mine", train, 'timeout = "1s"', command=command)
    assert arm_run.outcome == "timeout" and "not finished after 1 s" in arm_run.why
    assert arm_run.seconds is not None and arm_run.seconds < 10


def test_what_a_command_prints_to_a_file_is_read_and_kept(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    others = "others = { peak_vram_mb = '^peak_vram_mb: (\\S+)' }"
    metric = f"{METRIC}\nfile = 'run.log'\n{others}"
    write_toml(folder, command="python train.py > run.log 2>&1", metric=metric)
    (folder / "train.py").write_text("import sys\nprint('peak_vram_mb: 2048')\n" + TRAIN)
    arms = trainer(folder)
    (arm_run,) = arms.run([("candidate", 1)])
    evidence = arms.evidence(arm_run)
    assert arm_run.value is not None and arms.memory_gb([arm_run]) == 2.0 and evidence.memory_bytes == 2 * 2**30
    assert (evidence.value, evidence.seconds, evidence.seed) == (arm_run.value, arm_run.seconds, "1")
    assert evidence.tokens is None and evidence.file is not None and evidence.file.is_file()
    (folder / "train.py").write_text("1 / 0\n")
    (arm_run,) = trainer(folder).run([("candidate", 1)])
    assert arm_run.why == "exit code 1: ZeroDivisionError: division by zero"


def test_what_a_finished_run_leaves_behind_ends(tmp_path: Path) -> None:
    assert run(tmp_path / "mine", NEVER.replace("time.sleep(600)\n", "")).value == 1.0


def test_an_end_that_is_the_machines_is_no_outcome(tmp_path: Path) -> None:
    why = "seed 7, was not made, for a reason of this machine.*stopped its command by a signal"
    with pytest.raises(PlumblineError, match=why):
        run(tmp_path / "mine", "import os; os.kill(os.getpid(), 15)")
    folder = Folder(tmp_path / "mine")
    assert not list(folder.runs.glob("*.result.json")) and folder.log("x", 1).parent.parent.exists()


@pytest.mark.parametrize(
    ("train", "first", "second"),
    [
        ("raise SystemExit(143)", "stopped.*command", "ended by SIGTERM: it printed nothing"),
        ("raise OSError(28, 'No space left on device')", "disk.*full", "OSError"),
    ],
    ids=["a signal", "no space"],
)
def test_a_machines_end_is_the_arms_the_second_time(train: str, first: str, second: str, tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=first):
        run(tmp_path / "mine", train)
    (arm_run,) = trainer(tmp_path / "mine").run([("candidate", 7)])
    assert arm_run.outcome == "crashed" and second in arm_run.why


def test_a_disk_is_full_by_what_a_quota_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**options: Path) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    folder, free = str(tmp_path), os.statvfs(tmp_path)
    assert not run_one.is_full(folder, probe=True) and not list(tmp_path.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(run_one.tempfile, "TemporaryFile", refuse)
        assert run_one.is_full(folder, probe=True) and not run_one.is_full(folder, probe=False)
    for flag, is_full in ((0, True), (os.ST_RDONLY, False)):
        quota = os.statvfs_result((*free[:3], 0, 0, *free[5:8], flag, free[9]))
        monkeypatch.setattr(run_one.os, "statvfs", lambda path, quota=quota: quota)
        assert run_one.is_full(folder, probe=False) == is_full


def test_a_metric_file_that_the_commit_has_is_no_word_of_a_run(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    (folder / "last.json").write_text('{"loss": 2.5}')
    (folder / "train.py").write_text("# writes nothing\n")
    write_toml(folder, metric="json = 'last.json:loss'")
    for _ in ("a run by hand left it", "the commit has it"):
        (arm_run,) = trainer(folder).run([("candidate", 7)])
        assert arm_run.outcome == "crashed" and "nowhere in last.json" in arm_run.why
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "with what a run wrote", "--allow-empty")
    write_toml(folder, 'share = ["out"]', metric="json = 'out/last.json:loss'")
    with pytest.raises(PlumblineError, match=r"out/last\.json lies"):
        trainer(folder)


def test_a_command_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no such command: .*pithon"):
        run(tmp_path / "mine", "# another arm", command="pithon train.py")


def test_each_run_has_its_device_and_its_last_metric_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(
        tmp_path / "mine", "import os\nprint('val_bpb:', 1 + int(os.environ['CUDA_VISIBLE_DEVICES']))\n" + TRAIN
    )
    write_toml(folder, 'seed = "--wait 2.8 --seed {seed}"', more='[where]\ngpus = "4,5"')
    monkeypatch.setattr(processes, "TOLD_EVERY", 0.3)
    lines: list[str] = []
    arms = trainer(folder, "--gain", "1", lines=lines)
    assert len(list(arms.run([(BASELINE, 1), (BASELINE, 2)]))) == 2
    assert {line.partition(": ")[2].split(" s, ")[1] for line in lines} == {"val_bpb 5", "val_bpb 6"}
    lines.clear()
    (folder / "train.py").write_text("import time\nprint('epoch 1')\ntime.sleep(2.8)\n")
    list(trainer(folder, lines=lines).run([("candidate", 1)]))
    assert lines[0].endswith(" s, no metric yet; its last line: epoch 1"), lines


def test_a_seed_without_effect_is_said_and_inject_proposed(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine", TRAIN.replace('int(flags["--seed"])', "42"))
    both = [(BASELINE, 1), (BASELINE, 2)]
    with pytest.raises(PlumblineError, match=r"no effect: seeds 1, 2 all gave 0\.998559.*seed = \"inject\""):
        list(trainer(folder, "--gain", "1").run(both))
    write_toml(folder, 'seed = "inject"', command="python -I train.py {flags}")
    with pytest.raises(PlumblineError, match=r"no call.*reached"):
        list(trainer(folder, "--gain", "1").run(both[:1]))
    write_toml(folder, 'seed = "inject"')
    assert len({arm_run.value for arm_run in trainer(folder, "--gain", "1").run(both)}) == 2
    (folder / "train.py").write_text("print('val_bpb: 1.23456')\n")
    with pytest.raises(PlumblineError, match=r"no call.*sets"):
        list(trainer(folder).run([("candidate", 1), ("candidate", 2)]))


def kill_try(folder: Path) -> subprocess.Popen[bytes]:
    """A try in a separate process that was killed without mercy once a run was finished."""
    command = [sys.executable, "-m", "tests.verdict.own_trainer.trainers", str(folder), "--gain", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(folder.glob(".plumbline/runs/*.result.json")):
        time.sleep(0.05)
    process.kill()
    process.wait()
    return process


def test_a_try_that_is_killed_goes_on_with_what_was_finished(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    write_toml(folder, 'seed = "--wait 0.3 --seed {seed}"')
    kill_try(folder)
    before = {path: path.stat().st_mtime_ns for path in (folder / ".plumbline/runs").glob("*.result.json")}
    assert 1 <= len(before) < 5
    decision = decide(folder, "--gain", "1")
    assert decision.verdict == "keep" and all(path.stat().st_mtime_ns == at for path, at in before.items())
    assert sorted(entry.run.seed for entry in Folder(folder).bank().runs) == [42, 43, 44, 1042, 1043]


def test_what_a_killed_try_left_running_ends_before_the_next_run(tmp_path: Path) -> None:
    folder = make(
        tmp_path / "mine", f"import os\nif os.path.exists({str(tmp_path / 'wait')!r}):\n    exec({NEVER!r})\n" + TRAIN
    )
    (tmp_path / "wait").touch()
    mark = f"{REPORT}={folder / '.plumbline/runs'}/"
    process = subprocess.Popen([sys.executable, "-m", "tests.verdict.own_trainer.trainers", str(folder), "--gain", "1"])
    while not any("val_bpb" in log.read_text() for log in folder.glob(".plumbline/logs/**/*.log")):
        time.sleep(0.05)  # what it starts in its own session is there before it prints a word
    (runner,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGSTOP)  # so that it does not see its runner die, and end what that began
    os.kill(int(runner), signal.SIGKILL)
    process.kill()
    process.wait()
    assert list_carriers(mark)
    (tmp_path / "wait").unlink()
    lines: list[str] = []
    (arm_run,) = trainer(folder, "--gain", "1", lines=lines).run([(BASELINE, 42)])
    assert arm_run.value is not None and not list_carriers(mark)
    (line,) = lines
    assert line.startswith("1 process of an earlier try ")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, -signal.SIGINT)])
def test_a_try_that_is_asked_to_stop_ends_its_runs_first(number: int, code: int, tmp_path: Path) -> None:
    folder = make(tmp_path / "mine", NEVER)
    mark = f"{REPORT}={folder / '.plumbline/runs'}/"
    command = [sys.executable, "-m", "tests.verdict.own_trainer.trainers", str(folder), "--gain", "1"]
    # A shell has its background jobs ignore Ctrl-C, and whoever they start.
    heard = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, preexec_fn=heard) as process:
        while len(list_carriers(mark)) < 2:
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(timeout=15) == code
    assert not list_carriers(mark) and not list(folder.glob(".plumbline/runs/*.result.json"))


def test_a_second_try_is_refused_with_who_holds_the_folder(tmp_path: Path) -> None:
    folder = Folder(make(tmp_path / "mine"))
    message = rf"held by process {os.getpid()} on .*plumbline try -m x"
    with folder.hold("plumbline try -m x"), pytest.raises(PlumblineError, match=message), folder.hold("another"):
        pass


def test_one_process_makes_a_run(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    arms = trainer(folder, "--gain", "1")
    request = read_request(arms.write_request(BASELINE, 42))
    lock_file = Path(request.result).with_suffix(".lock")
    with open(lock_file, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        command = (
            "from plumbline.verdict.own_trainer import run_one; run_one.GRACE = 0.2; raise SystemExit(run_one.main())"
        )
        path = str(Path(request.result).with_name(f"{request.run_id}.request.json"))
        done = subprocess.run([sys.executable, "-c", command, path], capture_output=True, text=True)
    assert done.returncode == 75 and "process makes this run" in done.stderr

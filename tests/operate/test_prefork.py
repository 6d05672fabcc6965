"""Jobs that are forked from a process with their imports are the jobs that they would be by themselves.

Packages are empty stand-ins, found before the real ones, so that importing them takes no time.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from snakemake import benchmark

from plumbline.operate.prefork import client
from plumbline.operate.prefork import server as prefork_server
from plumbline.operate.prefork.server import PRELOADED
from plumbline.project import snakemake_internals

SEEN = """
import atexit, os, sys
atexit.register(print, "at the end")
print(sys.argv[1:], os.getcwd(), os.environ["WORD"], __name__)
print("warm" if "torch" in sys.modules else "cold", [name for name in sys.modules if name.startswith("plumbline")])
"""
HAS = """
import hashlib, os, resource, sys
limits = [resource.getrlimit(limit) for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE, resource.RLIMIT_STACK)]
print([oct(os.umask(0)), os.nice(0), sorted(os.sched_getaffinity(0)), *limits, os.getcwd(), sys.stdin.read()])
print(hashlib.sha256(str(sorted((key, value) for key, value in os.environ.items() if key != "_")).encode()).hexdigest())
print("warm" if "torch" in sys.modules else "cold")
"""
USES = """
import pathlib, sys, time
from plumbline.core import provenance
print("warm" if "torch" in sys.modules else "cold", flush=True)
import torch
while len(sys.argv) > 1 and not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
print(provenance.list_packages()["torch"], torch.__version__, sep="\\n")
"""
ENDS = """
import sys
if sys.argv[1] == "error":
    raise OSError("of the job")
sys.exit({"code": 3, "text": "said at the end", "none": None}[sys.argv[1]])
"""
SLEEPS = """
import os, signal, sys, time
if sys.argv[1] == "saves":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
open(sys.argv[2], "w").write(str(os.getpid()))
time.sleep(60)
"""

WORKS = """
import time
text = bytearray(b"0") * 200_000_000
while time.process_time() < 1.2:
    pass
time.sleep(0.8)  # a sample is taken every half second
"""

Job = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs, and stand-ins for the packages."""
    root = tmp_path_factory.mktemp("warm")
    for name in PRELOADED:
        *parents, last = name.split(".")
        place = root / "packages"
        place.mkdir(exist_ok=True)
        for parent in parents:
            place /= parent
            place.mkdir(exist_ok=True)
            (place / "__init__.py").touch()
        (place / f"{last}.py").touch()
    for name, text in {"seen": SEEN, "has": HAS, "uses": USES, "ends": ENDS, "sleeps": SLEEPS, "works": WORKS}.items():
        (root / "packages" / f"{name}.py").write_text(text)
    _install(root, "9.0")
    return root


def environment(folder: Path) -> dict[str, str]:
    source = Path(client.__file__).parents[3]
    clean = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}  # which changes
    return clean | {
        "PYTHONPATH": f"{folder / 'packages'}:{source}",
        "WORD": str(folder),
        "OMP_NUM_THREADS": "1",
        "PLUMBLINE_WARM": "1",
    }


def start(
    folder: Path,
    *args: str,
    cold: bool = False,
    launch: Sequence[str] = (),
    stdin: str | Path = os.devnull,
    umask: int = -1,
    **more: str,
) -> subprocess.Popen[str]:
    """Start a job as a rule does; `launch` stands before it as in a profile."""
    through = [] if cold else ["-m", "plumbline.operate.prefork.client"]
    with open(stdin) as read:
        return subprocess.Popen(
            [*launch, sys.executable, *through, "-m", *args],
            cwd=folder, env=environment(folder) | more, stdin=read, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, umask=umask, preexec_fn=_heeding,
        )  # fmt: skip


def _heeding() -> None:
    """Tests that a shell puts into the background ignore the keyboard, and so would what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _heeding_without_input() -> None:
    _heeding()
    os.close(0)


def outcome(job: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, errors = job.communicate(timeout=60)
    return job.returncode, out, errors.splitlines()[-1] if errors else ""


def until(true: Callable[[], bool], event: str) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError(f"30 s without: {event}")


@pytest.fixture(scope="module")
def job(folder: Path) -> Iterator[Job]:
    """Starts jobs, with the process that they are forked from at hand; it is for this process, and ends by hand."""

    def begun(*args: str, **more: Any) -> subprocess.Popen[str]:
        return start(folder, *args, **more)

    yield begun
    for server in servers(folder):
        os.kill(server, signal.SIGKILL)


def servers(folder: Path) -> list[int]:
    """Processes that jobs in `folder` are forked from, and such jobs."""
    pids = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"plumbline.operate.prefork.server" in (path / "cmdline").read_bytes() and os.readlink(
                path / "cwd"
            ) == str(folder):
                pids.append(int(path.name))
    return pids


def test_a_job_sees_what_it_would_see_by_itself(job: Job, folder: Path) -> None:
    forked, alone = outcome(job("seen", "a", "b c")), outcome(start(folder, "seen", "a", "b c", cold=True))
    assert forked[1].replace("warm []", "cold []") == alone[1] and "warm []" in forked[1]
    assert forked[::2] == alone[::2] == (0, "")
    assert alone[1].splitlines() == [f"['a', 'b c'] {folder} {folder} __main__", "cold []", "at the end"]


@pytest.mark.parametrize("way", ["code", "text", "none", "error"])
def test_a_job_ends_as_it_would_by_itself(job: Job, folder: Path, way: str) -> None:
    forked = outcome(job("ends", way))
    assert forked == outcome(start(folder, "ends", way, cold=True))
    assert forked[0] == {"code": 3, "text": 1, "none": 0, "error": 1}[way]


def test_another_environment_has_another_fork_server(job: Job, folder: Path) -> None:
    assert "warm []" in outcome(job("seen"))[1]
    before = servers(folder)
    assert " another __main__\nwarm []" in outcome(job("seen", WORD="another"))[1]
    assert "warm []" in outcome(job("seen", launch=["ionice", "-c3"]))[1]
    assert len(servers(folder)) == len(before) + 2
    assert "cold []" in outcome(job("seen", PLUMBLINE_WARM="0"))[1]


def test_jobs_that_start_at_once_wait_for_one_process(job: Job, folder: Path) -> None:
    before = servers(folder)
    jobs = [job("seen", WORD="at once") for _ in range(3)]
    assert all("warm []" in outcome(begun)[1] for begun in jobs)
    assert len(servers(folder)) == len(before) + 1


def test_jobs_start_cold_where_the_process_ends(job: Job, folder: Path, tmp_path: Path) -> None:
    (tmp_path / f"{PRELOADED[0]}.py").write_text(
        f"import os\nopen({str(tmp_path / 'tries')!r}, 'a').write('.')\nos._exit(1)"
    )
    path = f"{tmp_path}:{environment(folder)['PYTHONPATH']}"
    assert ["cold []" in outcome(job("seen", PYTHONPATH=path))[1] for _ in range(2)] == [True, True]
    assert (tmp_path / "tries").read_text() == "."


def test_a_few_jobs_are_not_forked_unless_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    warm, cold = f"python -m {client.__name__}", "python"
    for launches, value in (([warm] * client.WORTH, "1"), ([warm] * (client.WORTH - 1) + [cold, None], "0")):
        monkeypatch.setattr(os, "environ", {})
        client.announce_jobs(launches)
        client.announce_jobs([warm] * client.WORTH)  # what is set stays
        assert os.environ == {"PLUMBLINE_WARM": value}


def test_a_job_has_what_its_launch_gives_it(job: Job, folder: Path, tmp_path: Path) -> None:
    """`nice`, `taskset` and `ulimit` had no effect on a job that started warm."""
    (tmp_path / "in").write_text("said to the job")
    launch = shlex.split("nice -n 5 taskset -c 0 prlimit --nofile=200:300 --core=0 --stack=4194304:8388608")
    how: dict[str, Any] = {"launch": launch, "stdin": tmp_path / "in", "umask": 0o27}
    alone = outcome(start(folder, "has", cold=True, **how))[1]
    nice = os.nice(0) + 5  # beside that of who runs the tests
    assert alone.startswith(f"['0o27', {nice}, [0], (200, 300), (0, 0), (4194304, 8388608), ")
    assert "said to the job" in alone
    assert outcome(job("has", **how))[1] == alone.replace("\ncold", "\nwarm")


def _install(folder: Path, version: str) -> None:
    """What pip does: the old one goes, the new one comes."""
    packages = folder / "packages"
    for old in packages.glob("torch-*.dist-info"):
        (old / "METADATA").unlink()
        old.rmdir()
    (packages / "torch.py").write_text(f"__version__ = {version!r}\n")
    (packages / f"torch-{version}.dist-info").mkdir()
    (packages / f"torch-{version}.dist-info/METADATA").write_text(f"Name: torch\nVersion: {version}\n")


def test_what_is_installed_meanwhile_is_not_said_to_be_used(job: Job, folder: Path, tmp_path: Path) -> None:
    """A warm job recorded the versions that lay there, not those that it computed with."""
    begun = job("uses", str(tmp_path / "installed"))
    assert begun.stdout is not None and begun.stdout.readline() == "warm\n"
    _install(folder, "9.1")
    (tmp_path / "installed").touch()
    assert outcome(begun)[1] == "9.0\n9.0\n"
    assert outcome(job("uses"))[1] == "warm\n9.1\n9.1\n"


def _pid(place: Path) -> int:
    until(lambda: place.exists() and place.read_text() != "", "a job that has begun")
    return int(place.read_text())


def test_signals_reach_the_job_and_its_end_is_told(job: Job, tmp_path: Path) -> None:
    for how, number, code in (
        ("saves", signal.SIGTERM, 75),
        ("dies", signal.SIGTERM, -signal.SIGTERM),
        ("dies", signal.SIGINT, -signal.SIGINT),
    ):
        begun = job("sleeps", how, str(tmp_path / f"{how}{number}"))
        forked = _pid(tmp_path / f"{how}{number}")
        assert forked != begun.pid
        begun.send_signal(number)
        assert outcome(begun)[0] == code


def test_a_job_whose_client_is_killed_is_killed(job: Job, tmp_path: Path) -> None:
    begun = job("sleeps", "dies", str(tmp_path / "pid"))
    forked = _pid(tmp_path / "pid")
    begun.kill()
    until(lambda: not Path(f"/proc/{forked}").exists(), "the end of the job")
    assert "warm []" in outcome(job("seen"))[1]


def test_a_job_that_is_killed_is_said_to_be(job: Job, tmp_path: Path) -> None:
    begun = job("sleeps", "dies", str(tmp_path / "pid"))
    os.kill(_pid(tmp_path / "pid"), signal.SIGKILL)
    assert outcome(begun)[0] == -signal.SIGKILL


def test_it_ends_with_what_it_is_for_and_loses_no_job(folder: Path, tmp_path: Path) -> None:
    """A "Snakemake" that is killed while its second job runs: the job goes on to its end, then nothing is left."""
    driver = f"""
import subprocess, sys
words = [sys.executable, "-m", "plumbline.operate.prefork.client", "-m"]
assert "warm []" in subprocess.run([*words, "seen"], capture_output=True, text=True).stdout
subprocess.run([*words, "sleeps", "saves", {str(tmp_path / "pid")!r}])
"""
    mine = tmp_path / "elsewhere"
    mine.mkdir()
    snakemake = subprocess.Popen(
        [sys.executable, "-c", driver], cwd=mine, env=environment(folder), stdout=subprocess.DEVNULL
    )
    forked = _pid(tmp_path / "pid")
    [server] = {*servers(mine)} - {forked}
    snakemake.kill()
    snakemake.wait()
    time.sleep(1.5)
    assert {*servers(mine)} == {server, forked}
    os.kill(forked, signal.SIGTERM)
    until(lambda: not servers(mine), "the end of the process that jobs are forked from")


def test_benchmark_files_have_the_job_and_not_its_client(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "BenchmarkTimer", benchmark.BenchmarkTimer)
    snakemake_internals.include_other_processes(client.forks)
    working = job("works")
    with benchmark.benchmarked(working.pid) as record:
        assert outcome(working)[0] == 0
    assert record.cpu_time > 0.5 and record.max_rss > 200


def test_a_folder_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    assert client.socket_place(mine) is not None and mine.stat().st_mode & 0o777 == 0o700
    mine.chmod(0o777)
    assert client.socket_place(mine) is None


def test_what_is_too_long_to_be_sent_starts_cold(job: Job) -> None:
    assert "cold []" in outcome(job("seen", '"' * 120_000))[1]


def test_a_closed_stream_is_not_the_way_to_the_server(folder: Path, job: Job, tmp_path: Path) -> None:
    begun = subprocess.Popen(
        [sys.executable, "-m", "plumbline.operate.prefork.client", "-m", "sleeps", "dies", str(tmp_path / "pid")],
        cwd=folder, env=environment(folder), preexec_fn=_heeding_without_input,
    )  # fmt: skip
    forked = _pid(tmp_path / "pid")
    assert forked != begun.pid and os.readlink(f"/proc/{forked}/fd/0") == os.devnull
    begun.kill()
    begun.wait()
    until(lambda: not Path(f"/proc/{forked}").exists(), "the end of the job")


def test_a_stopped_job_stops_and_goes_on(job: Job, tmp_path: Path) -> None:
    begun = job("sleeps", "saves", str(tmp_path / "pid"))
    forked = _pid(tmp_path / "pid")

    def both(state: str) -> bool:
        texts = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in (begun.pid, forked)]
        return texts == [state, state]

    begun.send_signal(signal.SIGTSTP)
    until(lambda: both("T"), "a stop of both")
    begun.send_signal(signal.SIGCONT)
    until(lambda: both("S"), "both going on")
    begun.send_signal(signal.SIGTERM)
    assert outcome(begun)[0] == 75


def test_no_job_is_forked_from_a_process_that_began_cuda(tmp_path: Path) -> None:
    """Its driver would refuse every fork. Torch is told to ask for GPUs without it; what asks otherwise is seen."""
    (tmp_path / "libcuda.so.1").write_bytes(b"driver")
    (tmp_path / "asks.py").write_text("""
import mmap, os
print("imported with", os.environ.get("PYTORCH_NVML_BASED_CUDA_CHECK"))
held = mmap.mmap(os.open("libcuda.so.1", os.O_RDWR), 0)
""")
    script = """
import os, pathlib
from plumbline.operate.prefork.server import serve
print(serve(pathlib.Path("place").absolute(), os.getpid(), ["asks"]), os.environ.get("PYTORCH_NVML_BASED_CUDA_CHECK"))
"""
    source = Path(client.__file__).parents[3]
    process = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env={"PYTHONPATH": f"{tmp_path}:{source}"},
        capture_output=True, text=True, timeout=10,
    )  # fmt: skip
    assert process.stdout.splitlines() == ["imported with 1", "None None"], process.stderr
    assert process.stderr.startswith("jobs are not forked: ") and "CUDA's driver" in process.stderr


def test_nothing_is_kept_for_a_snakemake_that_is_gone(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert prefork_server.serve(tmp_path / "place", ended.pid, preloaded=()) is None
    assert not (tmp_path / "place").exists()

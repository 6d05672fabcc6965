"""What the wheel alone brings judges numbers and audits papers; a verb that needs more states it in one sentence."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gate_faults
from plumbline.cli import VERBS
from plumbline.core.pipeline_packages import INSTALL
from plumbline.specs.yaml_files import ROOT

#: The command where the wheel brought its own packages alone, and where all are there.
ALIKE = {"light": ("tests.cli.without_pipeline_packages", "plumbline"), "whole": ("plumbline",)}


#: Runs each command line in a fork of one process in which the packages of the extra cannot be imported.
FORKS = """\
import json, os, sys
from tests.cli.without_pipeline_packages import hide; hide()
from plumbline import cli
lines, folder = json.loads(sys.argv[1]), sys.argv[2]
for number, words in enumerate(lines):
    if not (child := os.fork()):
        for stream in (1, 2):
            os.dup2(os.open(f"{folder}/{number}.{stream}", os.O_WRONLY | os.O_CREAT), stream)
        sys.argv = ["plumbline", *words]
        cli.main()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def light(folder: Path, *lines: Sequence[str]) -> list[subprocess.CompletedProcess[str]]:
    """Runs commands of `plumbline` as where the extra `[pipeline]` is not installed."""
    streams = folder / "streams"
    streams.mkdir()
    command = [sys.executable, "-c", FORKS, json.dumps(lines), str(streams)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    codes = [int(code) for code in process.stdout.split()]
    assert len(codes) == len(lines), process.stderr
    return [
        subprocess.CompletedProcess([*line], code, *((streams / f"{number}.{each}").read_text() for each in (1, 2)))
        for number, (line, code) in enumerate(zip(lines, codes))
    ]


def test_a_verdict_is_the_same(repository: Path, tmp_path: Path) -> None:
    losses = {"base": (3.281, 3.2834, 3.2795, 3.2822), "mine": (3.2701, 3.2689, 3.2713), "nothing": (3.2811, 3.2790)}
    rows = [f"{method},{seed},{loss}" for method, all in losses.items() for seed, loss in enumerate(all)]
    outputs = {}
    for name, modules in ALIKE.items():
        (tmp_path / name).mkdir()
        numbers = tmp_path / name / "results.csv"
        numbers.write_text("\n".join(["method,seed,loss", *rows]) + "\n")
        args = ["--baseline", "base", "--metric", "loss", "--lower-is-better", "--exit-code-of", "mine"]
        command = [sys.executable, "-m", *modules, "verdict", str(numbers), *args]
        process = subprocess.run(command, cwd=repository, capture_output=True, text=True)
        assert process.returncode == 0, process.stderr
        page = numbers.with_name("results.verdict.md").read_text()
        outputs[name] = process.stdout.replace(str(numbers.parent), ""), page.replace(str(numbers.parent), "")
    assert outputs["light"] == outputs["whole"] and "1 improves (`mine` by 0.0114, " in outputs["light"][0]


def test_the_audit_of_five_papers_is_the_same(repository: Path, tmp_path: Path) -> None:
    """Rows of every paper, and those of one as where all packages are there."""
    rows = {}
    for name, studies in (("light", ()), ("whole", ("--study", "quack"))):
        out = tmp_path / f"{name}.csv"
        command = [sys.executable, "-m", *ALIKE[name], "audit", *studies, "--out", str(out)]
        process = subprocess.run(command, cwd=repository, capture_output=True, text=True)
        assert process.returncode == 0, process.stderr
        rows[name] = out.read_text().splitlines()
        assert out.with_suffix(".md").read_text()
    papers = {row.partition(",")[0] for row in rows["light"][1:]}
    assert len(papers) == 5 and len(rows["light"]) > 600 > len(rows["whole"]) > 5
    assert rows["whole"] == [rows["light"][0], *(row for row in rows["light"] if row.startswith("quack,"))]


def test_a_gate_and_a_board_need_no_more(tmp_path: Path) -> None:
    rng, folder, rules = np.random.default_rng(3), tmp_path / "records", tmp_path / "rules.toml"
    folder.mkdir()
    runs = gate_faults.make_runs(rng, 5)
    gate_faults.write_table(folder, runs, f"{gate_faults.mean_at(runs, 3000):.4f}", 3000, 5, rng)
    rules.write_text(gate_faults.TABLE_RULES)
    commands = ("gate", str(folder)), ("board", str(folder), "--out", str(tmp_path / "board"))
    for done in light(tmp_path, *((*args, "--rules", str(rules)) for args in commands)):
        assert done.returncode == 0 and done.stdout and not done.stderr, done.stderr


def test_it_starts(tmp_path: Path) -> None:
    for done in light(tmp_path, ("--help",), ("ls", "studies"), ("status",)):
        assert done.returncode == 0 and done.stdout and not done.stderr, done


def test_what_needs_more_says_so_in_one_sentence(tmp_path: Path) -> None:
    train, tried, confirmed, init, table = light(
        tmp_path,
        ("train", "transfer/base/qknorm/s42", "--out", str(tmp_path / "run")),
        ("try", "softpick"),
        ("confirm",),
        ("init", str(tmp_path / "project")),
        ("table", "transfer", "table2"),
    )
    for verb, done in (("train", train), ("try", tried), ("confirm", confirmed)):
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"error: plumbline {verb} needs torch, which is not installed: {INSTALL}\n"
    assert init.returncode == 0 and f"\n  {INSTALL} " in init.stdout
    assert table.returncode == 1 and table.stderr.startswith("error: plumbline table needs ")
    assert INSTALL in table.stderr and table.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_verdict_starts_quickly(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("method,seed,loss\na,1,3.1\na,2,3.2\nb,1,3.0\nb,2,2.9\n")
    verdict = ("-m", "plumbline", "verdict", "results.csv", "--baseline", "a", "--lower-is-better", "--metric", "loss")

    def seconds(*args: str) -> float:
        times = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *args], cwd=tmp_path, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(times)

    assert seconds(*verdict) < 2 * seconds("-c", "import scipy.special")


def test_no_verb_answers_with_a_traceback(tmp_path: Path) -> None:
    for verb, done in zip(VERBS, light(tmp_path, *((verb, "--help") for verb in VERBS)), strict=True):
        assert "Traceback" not in done.stderr, done
        assert done.returncode == 0 or done.stderr.startswith(f"error: plumbline {verb} needs "), done


def test_python_is_told_too(repository: Path) -> None:
    code = (
        "from tests.cli.without_pipeline_packages import hide; hide()\n"
        "from plumbline import api; api.load_study('transfer', 'smoke'); api.pretrain"
    )
    process = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True)
    last = process.stderr.splitlines()[-1]
    assert "plumbline.api.pretrain needs torch" in last and last.endswith(INSTALL)

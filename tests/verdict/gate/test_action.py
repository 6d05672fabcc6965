"""The one step of the GitHub action: what it states, where it states it, and when it fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from benchmarks import gate_faults


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A checkout with a board of four sound records, and its rules."""
    rng, folder = np.random.default_rng(3), tmp_path / "some records"
    folder.mkdir()
    runs = gate_faults.make_runs(rng, 5)
    gate_faults.write_table(folder, runs, f"{gate_faults.mean_at(runs, 3000):.4f}", 3000, 5, rng)
    (tmp_path / "rules.toml").write_text(gate_faults.TABLE_RULES)
    return tmp_path


def step(repository: Path, folder: Path, **extra: str) -> tuple[subprocess.CompletedProcess[str], dict[str, str], str]:
    """Run it as a runner does; its outputs and the summary."""
    action = yaml.safe_load((repository / "actions/gate/action.yml").read_text())
    (only,) = action["runs"]["steps"]
    defaults = {name: definition.get("default", "") for name, definition in action["inputs"].items()}
    inputs = (
        defaults
        | {"folder": "some records", "rules": "rules.toml"}
        | {key.replace("_", "-"): value for key, value in extra.items()}
    )
    env = {name: inputs[re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", text)[1]] for name, text in only["env"].items()}
    files = {name: folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    env |= {name: str(file) for name, file in files.items()} | {
        "RUNNER_TEMP": str(folder),
        "GATE_PYTHON": sys.executable,
    }
    env |= {"GITHUB_ACTION_PATH": str(repository / "actions/gate"), "PATH": os.environ["PATH"]}
    process = subprocess.run(["bash", "-c", only["run"]], cwd=folder, env=env, capture_output=True, text=True)
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return process, outputs, files["GITHUB_STEP_SUMMARY"].read_text()


def test_a_sound_record_passes_and_is_said_in_eight_lines(repository: Path, workplace: Path) -> None:
    done, outputs, summary = step(repository, workplace)
    assert done.returncode == 0, done.stderr
    assert outputs["verdict"] == "keep"
    assert len(summary.splitlines()) == 8 and Path(outputs["comment"]).read_text() == summary == done.stdout


def test_what_fails_is_asked_for_and_an_error_is_no_verdict(repository: Path, workplace: Path) -> None:
    page = workplace / "some records/README.md"
    page.write_text(page.read_text().replace("| 4 | 3000(!) | 3.27", "| 4 | 3000(!) | 3.26"))
    done, outputs, _ = step(repository, workplace)
    assert (done.returncode, outputs["verdict"]) == (13, "cannot be judged")
    done, outputs, _ = step(repository, workplace, fail_on="discard")
    assert (done.returncode, outputs["verdict"]) == (0, "cannot be judged")
    done, outputs, _ = step(repository, workplace, record="$(touch here); `touch here`", fail_on="")
    assert done.returncode == 2 and outputs == {} and not (workplace / "here").exists()


def test_no_module_of_the_checkout_is_run(repository: Path, workplace: Path) -> None:
    for module in ("plumbline", "json", "numpy", "pip", "venv"):
        (workplace / module).mkdir()
        for file in ("__init__.py", "__main__.py"):
            (workplace / module / file).write_text("open('run_by_the_gate', 'w'); raise SystemExit(0)\n")
    done, outputs, _ = step(repository, workplace)
    assert done.returncode == 0 and outputs["verdict"] == "keep" and len(done.stdout.splitlines()) == 8
    assert not (workplace / "run_by_the_gate").exists()
    script = (repository / "actions/gate/gate.sh").read_text()
    assert set(re.findall(r"python3?\"? (-\S+)", script)) == {"-I"}


def test_it_says_that_it_was_not_run_there(repository: Path) -> None:
    text = (repository / "actions/gate/action.yml").read_text()
    assert "not run on GitHub" in text and "uses: actions/" not in text

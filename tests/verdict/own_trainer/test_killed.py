"""A try, a confirmation or a screen that is killed (kill -9) at any instant goes on as if nothing had been: no run is
lost, none is made twice.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from plumbline.verdict.own_trainer.processes import list_carriers
from tests.verdict.own_trainer.trainers import git, make, write_toml

#: Writes down that it began, by its log, which each run has of its own; its loss depends on its seed and flags alone.
TRAIN = """\
import os, random, sys, time
seed = int(sys.argv[sys.argv.index("--seed") + 1])
with open(os.environ["STARTS"], "a") as starts:
    starts.write(os.readlink("/proc/self/fd/1") + "\\n")
time.sleep(0.05)
print(f"val_bpb: {random.Random(seed).gauss(1, 0.01) - 0.1 * ('--better' in sys.argv):.6f}")
"""
#: Two concurrent runs, which end in any order.
WHERE = '[where]\ngpus = "0,1"\n[decide]\nbaseline_runs = 2\nmax_runs = 3'
#: Tries that are killed, twice each.
FOLDERS = int(os.environ.get("PLUMBLINE_KILLED_TRIES", "1"))
WORDS = ("try", "--trust", "-m", "better", "--", "--better")


def start(folder: Path, words: Sequence[str] = WORDS) -> subprocess.Popen[bytes]:
    """Start a command, mostly the try, and everything that it starts, with the folder's mark."""
    environment = os.environ | {"STARTS": str(folder) + ".starts", "MARK": f"{folder}."}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", "plumbline", *words], cwd=folder, env=environment, **quiet)


def bank(folder: Path) -> dict[tuple[Any, ...], float]:
    """Every run of the bank, which is there once, with its value."""
    lines = [json.loads(line) for line in (folder / ".plumbline/runs.jsonl").read_text().splitlines()]
    values = {(entry["method"], entry["role"], entry["run"]["seed"]): entry["run"]["value"] for entry in lines}
    assert len(values) == len(lines), lines
    return values


def state(folder: Path) -> dict[str, Any]:
    """What a try leaves, less its bank: decision, baseline, the row of results.tsv."""
    (decided,) = (json.loads(path.read_text()) for path in (folder / ".plumbline/pages").glob("*.json"))
    runs = sorted((run["arm"], run["seed"], run["value"]) for run in decided["runs"])
    baseline = json.loads((folder / ".plumbline/baseline.json").read_text())
    ledger = map(json.loads, (folder / ".plumbline/decisions.jsonl").read_text().splitlines())
    return {
        "decision": (decided["verdict"], decided["sentence"], runs),
        "baseline": (baseline["commit"], baseline["flags"]),
        "rows": (folder / "results.tsv").read_text(),
        "entered": sum(bool(entry.get("verdict")) for entry in ledger),
    }


def starts(folder: Path) -> Counter[str]:
    """How often the run of each log was begun: seeds are of two arms, and of runs that are repeated to look at that."""
    path = Path(f"{folder}.starts")
    return Counter(path.read_text().split()) if path.exists() else Counter()


def kill(folder: Path, after: float, words: Sequence[str] = WORDS) -> dict[str, int]:
    """Kill a command at an instant, see that nothing of it goes on; how often each run was begun that is finished."""
    process = start(folder, words)
    time.sleep(after)
    process.kill()
    process.wait()
    until = time.monotonic() + 5
    while (rest := list_carriers(f"MARK={folder}.")) and time.monotonic() < until:
        time.sleep(0.05)
    assert not rest, [Path(f"/proc/{each}/cmdline").read_bytes() for each in rest]
    finished = [
        str(path).replace(".result.", ".request.") for path in (folder / ".plumbline/runs").glob("*.result.json")
    ]
    logs = [json.loads(Path(path).read_text())["log"] for path in finished]
    return {log: starts(folder)[log] for log in logs}


def test_a_try_that_is_killed_ends_as_one_that_is_not(tmp_path: Path) -> None:
    source = make(tmp_path / "source", TRAIN)
    write_toml(source, more=WHERE)
    undisturbed = shutil.copytree(source, tmp_path / "undisturbed")
    began = time.monotonic()
    assert start(undisturbed).wait() == 0
    seconds, instants = time.monotonic() - began, random.Random(FOLDERS)
    for number in range(FOLDERS):
        folder = shutil.copytree(source, tmp_path / f"killed{number}")
        counts = [kill(folder, instants.uniform(0.05, 1.05) * seconds) for _ in range(2)]
        assert start(folder).wait() == 0  # also where it had ended
        assert state(folder) == state(undisturbed)
        # What fills a device that is free goes by what is there already, so that either may have a run that no look
        # needed. All that the decision needed both have, and of equal values.
        ours, theirs = bank(folder), bank(undisturbed)
        spare = ours.keys() ^ theirs.keys()
        assert {key: ours[key] for key in ours.keys() - spare} == {key: theirs[key] for key in theirs.keys() - spare}
        decided = {(seed, value) for _, seed, value in state(folder)["decision"][2]}
        assert decided <= {(key[2], value) for key, value in ours.items() if key not in spare}
        assert len(spare) <= 2
        assert all(begun for count in counts for begun in count.values())
        assert [{log: starts(folder)[log] for log in begun} for begun in counts] == counts

    whole, path = state(undisturbed), undisturbed / ".plumbline/baseline.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"flags": []}))  # as if killed before it was moved
    assert start(undisturbed).wait() == 0
    assert state(undisturbed) == whole


def without_times(content: Any, folder: Path) -> Any:
    """A page's facts but for seconds, instants, the ledger's hashes and the folder's name."""
    if isinstance(content, dict):
        kept = {name: part for name, part in content.items() if not name.endswith(("seconds", "at", "ledger"))}
        return {name: without_times(part, folder) for name, part in kept.items()}
    if isinstance(content, list):
        return [without_times(part, folder) for part in content]
    return content.replace(folder.name, "") if isinstance(content, str) else content


def whole_state(folder: Path) -> dict[str, Any]:
    """All that a folder keeps of runs that are made one by one."""
    own = folder / ".plumbline"
    return {
        "bank": bank(folder),
        "pages": {
            path.name: without_times(json.loads(path.read_text()), folder) for path in (own / "pages").glob("*.json")
        },
        "baseline": without_times(json.loads((own / "baseline.json").read_text()), folder),
        "entered": len((own / "decisions.jsonl").read_text().splitlines()),
        "rows": (folder / "results.tsv").read_text() if (folder / "results.tsv").exists() else "",
    }


@pytest.mark.parametrize("words", [("confirm", "--trust"), ("screen", "ideas.toml", "--trust")], ids=lambda it: it[0])
def test_a_confirmation_and_a_screen_that_are_killed_end_as_ones_that_are_not(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    source = make(tmp_path / "source", TRAIN)
    write_toml(source, more="[decide]\nbaseline_runs = 2\nmax_runs = 3")
    ideas = "".join(f'[ideas.{name}]\nflags = "--{name} 1"\n' for name in ("better", "none", "other"))
    (source / "ideas.toml").write_text(ideas)
    git(source, "add", "-A")
    git(source, "commit", "-qm", "ideas")
    if words[0] == "confirm":
        assert start(source).wait() == 0
    undisturbed = shutil.copytree(source, tmp_path / "undisturbed")
    began = time.monotonic()
    assert start(undisturbed, words).wait() == 0
    seconds, instants = time.monotonic() - began, random.Random(FOLDERS)
    for number in range(FOLDERS):
        folder = shutil.copytree(source, tmp_path / f"killed{number}")
        begun = kill(folder, instants.uniform(0.05, 1.05) * seconds, words)
        assert start(folder, words).wait() == 0  # also where it had ended
        assert whole_state(folder) == whole_state(undisturbed)
        assert {log: starts(folder)[log] for log in begun} == begun

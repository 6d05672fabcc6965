"""Seeds that code fixes are shifted without an edit, in every Python process of a run, and counted."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from numpy.random import RandomState, default_rng

from plumbline.verdict.own_trainer.run_environment import CHILD
from tests.verdict.own_trainer.trainers import make, trainer, write_toml

#: Fixes every seed that trainers fix, and draws from each.
FIXED = """\
import json, random, sys
import numpy as np
import torch
from numpy.random import default_rng
if sys.argv[1:] == ["fix"]:
    random.seed(42); np.random.seed(42); torch.manual_seed(42); torch.cuda.manual_seed(42)
own = torch.Generator().manual_seed(42)
print(json.dumps([random.random(), np.random.rand(), default_rng(42).random(), torch.rand(1).item(), np.random.rand(),
    default_rng(np.random.default_rng(1)).random() < 2, torch.rand(1, generator=own).item()]))
"""
#: What torch draws first after the seed 42.
TORCH = 0.8822692632675171


def run_script(folder: Path, seed: int, *options: str) -> tuple[list[float], dict[str, int]]:
    """What a script draws under a seed, and which calls were shifted."""
    (folder / "script.py").write_text(FIXED)
    (folder / "reports").mkdir(exist_ok=True)
    ours = {"PLUMBLINE_REPORT": str(folder / "reports"), "PYTHONPATH": str(CHILD), "PLUMBLINE_SHIFT_SEEDS": str(seed)}
    process = subprocess.run(
        [sys.executable, str(folder / "script.py"), *options],
        env={**os.environ, **ours},
        capture_output=True,
        text=True,
        check=True,
    )
    (report,) = (folder / "reports").glob("*.json")
    contents = json.loads(report.read_text())
    report.unlink()
    assert contents["problems"] == [] and contents["versions"]["torch"]
    return json.loads(process.stdout), contents["shifted"]


def test_every_fixed_seed_is_shifted(tmp_path: Path) -> None:
    fixed, shifted = run_script(tmp_path, 1, "fix")
    new = 42 + 2 * 1_000_003
    assert fixed[:3] == [random.Random(new).random(), RandomState(new).rand(), default_rng(new).random()]
    assert fixed[3] not in (TORCH, fixed[6]) and fixed[6] == TORCH  # its own generator is left alone
    assert shifted == {
        "random.seed": 1,
        "numpy.random.seed": 1,
        "numpy.random.default_rng": 2,
        "torch.manual_seed": 1,
        "torch.cuda.manual_seed": 1,
    }
    unset, counted = run_script(tmp_path, 1)
    assert unset[:2] == [random.Random(new - 42).random(), RandomState(new - 42).rand()]
    assert unset[3] != fixed[3] and counted == {"numpy.random.default_rng": 2}


def test_workers_that_set_no_seed_keep_streams_of_their_own(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    (folder / "worker.py").write_text("import random\nprint(random.random())\n")
    start = "subprocess.run([sys.executable, 'worker.py'], capture_output=True, text=True).stdout"
    (folder / "train.py").write_text(
        f"import random, subprocess, sys\nprint('val_bpb:', float({start}) - float({start}))\n"
    )
    write_toml(folder, 'seed = "inject"')
    (arm_run,) = trainer(folder).run([("candidate", 1)])
    assert arm_run.value


def test_workers_of_a_launcher_are_shifted_too(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text("import builtins\nbuiltins.MINE = 0.5\n")
    (folder / "worker.py").write_text("import random\nrandom.seed(42)\nprint('val_bpb:', MINE + random.random())\n")
    (folder / "train.py").write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'worker.py'])\n")
    write_toml(folder, 'seed = "inject"', command="PYTHONPATH=$PYTHONPATH:site python train.py")
    runs = list(trainer(folder).run([("candidate", 1), ("candidate", 2)]))
    values = [run.value or 0.0 for run in runs]
    assert len(set(values)) == 2 and all(0.5 <= value < 1.5 and value != 0.5 + 0.6394267984578837 for value in values)

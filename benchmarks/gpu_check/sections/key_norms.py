"""The three arms of the key_norms study at paper size: the first numbers of a GPU that are about models.

The paper's model, steps, batch, learning rates and weight decay, carried out by the trainer as a study's run is. Not
the paper's corpus (FineWeb-Edu and Cosmopedia), which only a network has: the packaged prose of `mini` stands in, in
packs that travel with the check (`make gpu-check-packs`), so these numbers do not reproduce the printed ones. What a
run leaves except for its weights is kept next to the check's JSON, in an archive an arm.

An arm that is stopped continues from its checkpoint on the same machine; on another it begins again.
"""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

from benchmarks.gpu_check.measured_rows import CONTINUES
from benchmarks.gpu_check.section_call import PACKS, RUNS, SectionCall, end_with_the_call
from benchmarks.gpu_check.sections import Rows
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.core.files import open_atomically, read_json
from plumbline.specs import study_config
from plumbline.specs.spec import RunSpec
from plumbline.train.step_time import random_pack

#: Seconds before the end at which the trainer is told to save.
STOPPING = 20.0
KEPT = ("outcome.json", "manifest.json", "metrics.parquet", "points/online.parquet")


def rows(call: SectionCall) -> Rows:
    """A row for each arm of the study.

    Raises:
        PlumblineError: the packs are not here.
    """
    if not call.rehearsal and not (PACKS / "validation/validation.json").is_file():
        raise PlumblineError(f"{PACKS} is not here: `make gpu-check-packs` makes it, and a bundle has it")
    source = {} if call.rehearsal else {"source": "packaged_large"}
    runs = study_config.load("key_norms", call.preset, **source).runs.values()
    return {run.spec.method: functools.partial(_train_arm, run.spec, call) for run in runs}


def _train_arm(spec: RunSpec, call: SectionCall) -> dict[str, Any]:
    """Train an arm, or continue with it; a rehearsal reads random tokens."""
    folder = RUNS / "key_norms" / spec.run_id
    folder.mkdir(parents=True, exist_ok=True)
    out, packs = folder / "out", [PACKS / "train/base.json", PACKS / "validation/validation.json"]
    if call.rehearsal:
        packs = 2 * [random_pack(folder / "random.json", spec, 16)]
    command = [sys.executable, "-m", "plumbline.train", "--spec", spec.to_json(), "--device", call.device]
    command += ["--training-pack", str(packs[0]), "--validation-pack", str(packs[1])]
    command += ["--state", str(folder / "state"), "--out", str(out), "--checkpoint-every", "1min"]
    code = _run(command, call.until - time.time())
    if code == EXIT_RUN_AGAIN:
        return {"status": CONTINUES, "reason": "stopped; on this machine it continues from its checkpoint"}
    if code:
        raise PlumblineError(f"the trainer ended with exit code {code}: its messages are in the check's log")
    archive_path = Path(f"{call.beside}_key_norms_{spec.method}.zip")
    with open_atomically(archive_path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in KEPT:
            archive.write(out / name, name)
    outcome, manifest = read_json(out / "outcome.json"), json.loads((out / "manifest.json").read_text())
    row = {name: outcome[key] for name, key in (("outcome", "outcome"), ("steps", "step"))}
    return row | {"held-out loss": outcome["validation_loss"], "seconds": manifest["wall_seconds"]}


def _run(command: list[str], seconds: float) -> int:
    """Run the trainer, which is told to save and end some seconds before the time is out; its exit code."""
    stopping = min(STOPPING, seconds / 3)
    process = subprocess.Popen(command, preexec_fn=end_with_the_call)
    try:
        return process.wait(max(seconds - stopping, 1.0))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(stopping)
        except subprocess.TimeoutExpired:
            return EXIT_RUN_AGAIN  # its last checkpoint is there
    finally:
        process.kill()  # also where this process is itself told to end

"""The three arms of the key_norms study at paper size: the first numbers of a GPU that are about models.

The paper's model, steps, batch, learning rates and weight decay, carried out by the trainer as a study's run is. Not
the paper's corpus (FineWeb-Edu and Cosmopedia), which only a network has: the packaged prose of `mini` stands in, in
packs that travel with the check (`make gpu-check-packs`), so these numbers do not reproduce the printed ones. What a
run leaves except for its weights is kept next to the check's JSON, in an archive an arm.

An arm that is stopped goes on from its checkpoint on the same machine. Checkpoints are a gigabyte and stay there: on
another machine the arm begins again.
"""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import GOES_ON, MeasuredRows, MissingOnThisMachine
from benchmarks.gpu_check.output_folders import PACKS, RUNS
from benchmarks.gpu_check.results_page import table
from benchmarks.gpu_check.section_processes import end_with_the_call
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.core.files import open_atomically

if TYPE_CHECKING:
    import pandas as pd

    from plumbline.specs.spec import RunSpec

TITLE = "key_norms at paper size, on packaged prose"

SOURCE = "packaged_large"
#: An arm is three minutes by estimate.
LEAST = 120.0
#: Seconds before the end at which the trainer is told to save.
STOPPING = 20.0
KEPT = ("outcome.json", "manifest.json", "metrics.parquet", "points/online.parquet")


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """A row for each arm of the study.

    Raises:
        MissingHere: the packs are not here.
    """
    from plumbline.specs import study_config

    toy = setting.size.preset == "smoke"
    study = study_config.load("key_norms", setting.size.preset, **({} if toy else {"source": SOURCE}))
    read = {name: PACKS / name / file for name, file in (("train", "base.json"), ("validation", "validation.json"))}
    missing = [str(path) for path in read.values() if not path.is_file()]
    if missing and not toy:
        raise MissingOnThisMachine(f"{missing[0]} is not here: `make gpu-check-packs` makes it, and a bundle has it")
    return {
        run.spec.method: functools.partial(_arm, run.spec, None if toy else read, setting)
        for run in study.runs.values()
    }


def _arm(spec: RunSpec, read: dict[str, Path] | None, setting: SectionCall) -> dict[str, Any]:
    """Train it, or go on with it; `read` None are toy sizes, with random tokens."""
    from plumbline.train.step_time import random_pack

    folder = RUNS / "key_norms" / spec.run_id
    seconds_left = setting.until - time.time()
    folder.mkdir(parents=True, exist_ok=True)
    if read is None:
        read = dict.fromkeys(("train", "validation"), random_pack(folder / "random.json", spec, 16))
    out, state = folder / "out", folder / "state"
    command = [sys.executable, "-m", "plumbline.train", "--spec", spec.to_json(), "--device", setting.device]
    command += ["--training-pack", str(read["train"]), "--validation-pack", str(read["validation"])]
    command += ["--state", str(state), "--out", str(out), "--checkpoint-every", "1min"]
    code = _train(command, seconds_left)
    if code == EXIT_RUN_AGAIN:
        return {"status": GOES_ON, "reason": f"stopped at step {_step(state)}; on this machine it goes on from there"}
    if code:
        raise PlumblineError(f"the trainer ended with exit code {code}: its words are in the check's log")
    return _keep_row(out, spec, setting)


def _train(command: list[str], seconds: float) -> int:
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
            process.kill()
            process.wait()
            return EXIT_RUN_AGAIN  # its last checkpoint is there
    finally:
        process.terminate()  # also where this process is itself told to end


def _step(state: Path) -> int:
    """The last step that the trainer has told of; 0 where it was not that far."""
    progress = state / "progress.jsonl"
    return int(json.loads(progress.read_text(encoding="utf-8").splitlines()[-1])["step"]) if progress.exists() else 0


def _keep_row(out: Path, spec: RunSpec, setting: SectionCall) -> dict[str, Any]:
    """The row of a run that has ended; what it left goes into an archive next to the check's JSON."""
    import pandas as pd

    from plumbline.studies.key_norms.norm_curves import ENTROPY, KEY_NORM, decay, groups

    with (
        open_atomically(Path(f"{setting.beside}_key_norms_{spec.method}.zip")) as file,
        zipfile.ZipFile(file, "w") as archive,
    ):
        for name in KEPT:
            archive.write(out / name, name, zipfile.ZIP_DEFLATED)
    outcome = json.loads((out / "outcome.json").read_text(encoding="utf-8"))
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    read = pd.read_parquet(out / "points" / "online.parquet")
    norms, entropies = _by_layer(read, KEY_NORM), _by_layer(read, ENTROPY)
    layers = spec.model.layers
    layers_by_title = {group.title: list(group.layers) for group in groups(layers)[:3]}
    return {
        "outcome": outcome["outcome"],
        "steps": outcome["step"],
        "source": spec.data.source,
        "validation_loss": outcome["validation_loss"],
        "wall_seconds": manifest["wall_seconds"],
        "key_norm": {"start": norms.iloc[0].tolist(), "end": norms.iloc[-1].tolist()},
        "entropy": {"start": entropies.iloc[0].tolist(), "end": entropies.iloc[-1].tolist()},
        "groups": [[title, float(norms.iloc[-1][chosen].mean())] for title, chosen in layers_by_title.items()],
        "by_decay_alone": float(norms.iloc[0].mean() * decay(spec)[-1]),
    }


def _by_layer(read: pd.DataFrame, probe: str) -> pd.DataFrame:
    """One row a step, one column a layer, the mean over heads."""
    mine = read[(read["probe"] == probe) & read["layer"].notna()].astype({"layer": int, "step": int, "value": float})
    return mine.pivot_table(index="step", columns="layer", values="value", aggfunc="mean")


def page(state: MeasuredRows) -> list[str]:
    """Final key norms of the paper's groups of layers, by arm."""
    measured = state.rows("key_norms")
    if not measured:
        return []
    titles = [title for title, _ in next(iter(measured.values()))["groups"]]
    lines = [
        (
            arm,
            row["steps"],
            row["validation_loss"],
            *(norm for _, norm in row["groups"]),
            row["by_decay_alone"],
            sum(row["entropy"]["end"]) / len(row["entropy"]["end"]),
            row["wall_seconds"],
        )
        for arm, row in measured.items()
    ]
    columns = ["arm", "steps", "held-out loss", *(f"key norm, {title.lower()}" for title in titles)]
    return table([*columns, "by weight decay alone", "entropy, all layers", "seconds"], lines)

"""Reads what a finished run's probes say, including those that were read while it trained."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.core.run_files import MODEL, POINTS, POINTS_INDEX, read_points_index
from plumbline.data.loader import Pack, verify_once
from plumbline.evaluate.probes._base import ProbeValue
from plumbline.evaluate.probes._decoder import ProbedDecoder
from plumbline.evaluate.probes._forward_pass import read_all
from plumbline.evaluate.probes._frame import ONLINE_FRAME, Row, leaves_frame, make_rows
from plumbline.model.decoder import Decoder
from plumbline.model.finished_run import NOT_RECORDED, FinishedRun
from plumbline.model.model_folder import load_weights
from plumbline.specs.components import code_class
from plumbline.specs.spec import RunSpec, require_present_code

#: The fraction of training that is its end.
END = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeResult:
    """What probes read of a run, as rows of the frame, and what they were read from.

    Attributes:
        missed: probe points that the run never reached.
        end: for a run that diverged, the step of the weights that were read as the end of training; else None.
        validation: the pack that was read.
    """

    run: FinishedRun
    rows: list[Row]
    missed: list[dict[str, Any]]
    end: int | None
    validation: Pack
    device: torch.device

    def metadata(self) -> dict[str, str]:
        """Text labels to store with the frame of probes."""
        spec, cuda = self.run.spec, self.device.type == "cuda"
        return {
            "run_id": spec.run_id,
            "outcome": self.run.outcome,
            "validation_fingerprint": self.validation.fingerprint,
            "weights_sha256": self.run.look_up_sha256(MODEL) or NOT_RECORDED,
            "probes": json.dumps({probe.name: code_class("probe", probe.name) for probe in spec.probes}),
            "end_read_at": "" if self.end is None else str(self.end),
            "never_reached": json.dumps([{key: point[key] for key in ("fraction", "step")} for point in self.missed]),
            "torch": str(torch.__version__),
            "device": torch.cuda.get_device_name(self.device) if cuda else "cpu",
        }


def read_run(folder: Path, manifest: Path, device: torch.device) -> ProbeResult:
    """Read the probes of the finished run in `folder`, on the validation pack of `manifest`.

    A run that diverged ends with its last finite weights: what is requested at the end of training is read of them.

    Raises:
        PlumblineError: the run has not finished, its code is not the code here, the pack is not the one that it was
            validated on, or a file is damaged.
    """
    run = FinishedRun.read(folder)
    spec = run.spec
    require_present_code(spec)
    run.require_file(f"{POINTS}/{POINTS_INDEX}")
    points = read_points_index(folder)["points"]
    validation = Pack(manifest, context=spec.model.context)
    expected = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["validation_fingerprint"]
    if validation.fingerprint != expected:
        raise PlumblineError(
            f"--validation-pack: {manifest} is not the pack that {folder} was validated on, and what probes read on "
            "two packs cannot be compared; give the run's own"
        )
    verify_once(validation)
    reached = [point for point in points if point["reached"]]
    values = make_rows(spec.run_id, "offline", read_points(folder, spec, reached, validation, device))
    end = _final_point(run, reached)
    if end is not None:
        last = make_rows(spec.run_id, "offline", read_points(folder, spec, [end], validation, device))
        values += [row | {"fraction": row["step"] / spec.train.steps} for row in last]
    if leaves_frame(spec):
        run.require_file(f"{POINTS}/{ONLINE_FRAME}")
        values += frames.read(folder / POINTS / ONLINE_FRAME, "probes").to_dict("records")
    missed = [point for point in points if not point["reached"]]
    step = None if end is None else end["step"]
    return ProbeResult(run=run, rows=values, missed=missed, end=step, validation=validation, device=device)


def _final_point(run: FinishedRun, reached: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The last finite weights of a run that diverged, as an entry of the index at the end of training; None if no
    probe is read there, or where they were read as a point that was reached.

    Raises:
        PlumblineError: they are not what the trainer wrote.
    """
    end_probes = {probe.name for probe in run.spec.probes if END in probe.at and "against" not in probe.options}
    if run.outcome == "completed" or not end_probes:
        return None
    step = json.loads((run.folder / "outcome.json").read_text(encoding="utf-8"))["weights_step"]
    read = {point["fraction"] for point in reached if point["step"] == step}
    if all(read & set(probe.at) for probe in run.spec.probes if probe.name in end_probes):
        return None
    return {"fraction": END, "step": step, "file": f"../{MODEL}", "sha256": run.weights_sha256()}


def read_points(
    folder: Path, spec: RunSpec, points: list[dict[str, Any]], validation: Pack, device: torch.device
) -> Iterator[tuple[int, float, ProbeValue]]:
    """Yield step, fraction and value of every offline probe, at each of the `points` at which it is due.

    A probe that compares with a point which a run that diverged never reached reads nothing.

    Args:
        folder: of the run.
        points: entries of its index of probe points, all of them reached.

    Raises:
        PlumblineError: a file of weights is damaged, or is not of this run's model.
    """
    with torch.device(device):
        model = Decoder(spec.model)
    reached = {point["fraction"]: point for point in points}
    # The points that others are compared with: held while all are read, as a rule one of them.
    compared = {probe.options["against"] for probe in spec.probes if "against" in probe.options}
    others = {against: _load_decoder(folder, spec, reached[against], device) for against in compared & reached.keys()}
    for fraction, point in reached.items():
        due = [
            probe for probe in spec.probes if fraction in probe.at and probe.options.get("against", fraction) in reached
        ]
        if not due:
            continue
        load_point(model, folder, point["file"], point["sha256"])
        rows = validation.rows(np.arange(max(probe.sequences for probe in due)))
        tokens_BT = torch.from_numpy(rows).to(device)
        for probe_value in read_all(
            model,
            due,
            tokens_BT,
            spec.train.precision,
            init_seed=spec.init_seed,
            separator=validation.separator,
            others=others,
        ):
            yield point["step"], fraction, probe_value


def _load_decoder(folder: Path, spec: RunSpec, point: dict[str, Any], device: torch.device) -> ProbedDecoder:
    """The run's model at one of its points."""
    with torch.device(device):
        model = Decoder(spec.model)
    load_point(model, folder, point["file"], point["sha256"])
    return ProbedDecoder(model, spec.train.precision)


def load_point(model: Decoder, folder: Path, file: str, sha256: str) -> None:
    """Load the weights of a probe point into `model`. They may hold values that are not finite, if the run diverged.

    Args:
        folder: of the run.
        file: as the run's index of probe points names it.

    Raises:
        PlumblineError: the file is not there, is not as it was written, or is of another model.
    """
    path = Path(os.path.normpath(folder / POINTS / file))
    remedy = f"delete {folder} and pretrain again: what is whole in the run's state is not trained twice"
    if not path.is_file():
        raise PlumblineError(f"{path} is missing, though the index of probe points names it; {remedy}")
    if sha256_file(path) != sha256:
        raise PlumblineError(f"{path} is damaged: its SHA-256 is not the one in the index of probe points; {remedy}")
    load_weights(model, path, "the spec in manifest.json", remedy, finite=False)

"""What targets cost: one row a target, from the estimates of its runs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from plumbline.plan import data
from plumbline.plan.estimate import Estimator
from plumbline.specs.sheet import Run

#: Checkpoints kept in a state directory, and bytes a parameter in one (weights, two moments) and in the outputs.
KEPT, STATE_BYTES, WEIGHT_BYTES = 3, 12, 4
WHOLE = "(whole study)"


def table(estimator: Estimator) -> pd.DataFrame:
    """A row for each target of each study, for each whole study, and for all studies where there are several.

    Targets share runs, so that their rows do not add up; a whole study's row counts each run once.
    """
    rows = []
    studies = estimator.plan.studies
    for study in studies.values():
        for name, entry in study.sheet["targets"].items():
            rows.append(row(estimator, study.name, name, study.group(*entry["runs"]), "scores" in entry["reads"]))
        rows.append(row(estimator, study.name, WHOLE, list(study.runs.values()), True))
    if len(studies) > 1:
        rows.append(row(estimator, "(all)", "(all studies)", list(estimator.plan.runs.values()), True))
    return pd.DataFrame(rows)


def row(estimator: Estimator, study: str, name: str, runs: list[Run], scored: bool) -> dict[str, object]:
    """The price of a set of runs. What cannot be counted is named in `not_counted` and in no sum."""
    machine = estimator.machine
    uncounted = [run for run in runs if estimator.sizes(run.spec.model) is None]
    counted = [run for run in runs if run not in uncounted]
    to_do = [run for run in counted if not estimator.trained(run)]
    evaluations = [run for run in counted if scored and not estimator.scored(run)]
    pretrain = {run.key: _known(estimator.pretrain_seconds(run)) for run in to_do}
    evaluate = {run.key: seconds for run in evaluations if (seconds := estimator.evaluate_seconds(run)) is not None}
    missing = [run.key for run in uncounted]
    missing += [f"evaluation of {run.key}" for run in evaluations if run.key not in evaluate]
    stage = data.seconds(estimator.plan) if to_do else 0.0
    if stage is None:
        missing.append("data")
    training = sum(pretrain[run.key] * machine.devices_of(run) for run in to_do) / 3600
    evaluation = sum(evaluate.values()) / 3600
    after_data = max((pretrain.get(key, 0.0) + evaluate.get(key, 0.0) for key in {**pretrain, **evaluate}), default=0.0)
    longest = ((stage or 0.0) + after_data) / 3600
    device_hours = training + evaluation
    return {
        "study": study,
        "target": name,
        "preset": estimator.plan.config["preset"],
        "machine": machine.label,
        "speed": speed_in_words(estimator),
        "runs": len(runs),
        "runs_done": sum(estimator.trained(run) for run in runs),
        "runs_to_do": len(runs) - sum(estimator.trained(run) for run in runs),
        "evaluations_to_do": len(evaluations),
        "tokens": sum(run.spec.train.steps * run.spec.train.batch_tokens for run in to_do),
        "training_flops": sum(_known(estimator.training_flops(run)) for run in to_do),
        "training_device_hours": training,
        "evaluation_device_hours": evaluation,
        "device_hours": device_hours,
        "longest_run_hours": max(pretrain.values(), default=0.0) / 3600,
        "data_hours": None if stage is None else stage / 3600,
        "longest_path_hours": longest,
        "wall_hours": max(longest, (stage or 0.0) / 3600 + device_hours / machine.devices_at_once),
        "disk_gb": _disk_bytes(estimator, counted) / 1e9,
        "price": device_hours * machine.price if machine.price else None,
        "not_counted": ", ".join(missing),
    }


def speed_in_words(estimator: Estimator) -> str:
    """Where the speed comes from: measured or stated, as a share of the machine's peak (MFU)."""
    machine, calibration = estimator.machine, estimator.calibration
    peak = f"{machine.peak_tflops:g} TFLOP/s"
    if not calibration.speed:
        return f"stated, MFU {machine.mfu:.2f} of {peak}"
    shares = {scale: speed / (machine.peak_tflops * 1e12) for scale, speed in calibration.speed.items()}
    words = ", ".join(f"{share:.3f} ({scale})" for scale, share in shares.items())
    return f"measured on {calibration.runs} run{'s' * (calibration.runs > 1)}, MFU {words} of {peak}"


def _disk_bytes(estimator: Estimator, runs: list[Run]) -> float:
    """What a target's runs and the corpus take when all are done; a corpus of unknown size is not in it."""
    sizes = [estimator.sizes(run.spec.model) for run in runs]
    parameters = sum(size.parameters for size in sizes if size is not None)
    corpus = data.disk_bytes(estimator.plan) if runs else 0.0
    return parameters * (KEPT * STATE_BYTES + WEIGHT_BYTES) + (corpus or 0.0)


def _known(value: float | None) -> float:
    assert value is not None, "only runs whose size is known are priced"
    return value


def published(estimator: Estimator, root: Path) -> pd.DataFrame:
    """Hours of a run that a study's document prints beside the estimate for this machine, a row a scale.

    Empty unless the preset is `paper`. The document's accelerators are anonymous: `implied_mfu` is the share of this
    machine's peak that its hours would need.
    """
    from plumbline.results.published import Published

    rows: list[dict[str, object]] = []
    for study in estimator.plan.studies.values() if estimator.plan.config["preset"] == "paper" else []:
        prose = Published.of(study.name, root).prose()
        for scale in study.sheet["scales"]:
            found = [(name, hours) for name, hours in ((f"hours_{scale}", 1), (f"days_{scale}", 24)) if name in prose]
            reference = f"{study.name}/{scale}/{study.sheet['noise_floor']['reference']}/"
            run = next((run for key, run in study.runs.items() if key.startswith(reference)), None)
            if not found or run is None:
                continue
            name, unit = found[0]
            nodes = int(prose[f"nodes_{scale}"].text)
            printed, devices = float(prose[name].text) * unit, 8 * nodes
            seconds, flops = _known(estimator.pretrain_seconds(run)), _known(estimator.training_flops(run))
            rows.append(
                {
                    "run": f"{study.scale_label(scale)} {study.label(run.spec.method)}",
                    "published_hours": printed,
                    "published_devices": devices,
                    "where": prose[name].source,
                    "estimated_hours": seconds / 3600,
                    "estimated_devices": estimator.machine.devices_of(run),
                    "ratio": seconds * estimator.machine.devices_of(run) / (printed * 3600 * devices),
                    "implied_mfu": flops / (printed * 3600 * devices * estimator.machine.peak_tflops * 1e12),
                }
            )
    return pd.DataFrame(rows)

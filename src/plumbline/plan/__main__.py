"""``python -m plumbline.plan``: what each target costs before it is run, on a named machine."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from plumbline.cli import PlumblineError, run
from plumbline.files import atomic_write_text
from plumbline.plan import machines, size
from plumbline.plan.estimate import Estimator, estimator
from plumbline.plan.targets import published, speed_in_words, table
from plumbline.project import plan
from plumbline.specs.config import PRESETS, ROOT, load_config


def main() -> None:
    """Print the plan as a table; with --out also write it as csv and md."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.plan", description=__doc__)
    parser.add_argument("--preset", choices=PRESETS, help="default: config/config.yaml's")
    parser.add_argument("--machine", help="an entry of config/machines.yaml (default: config/config.yaml's)")
    parser.add_argument("--price", type=float, help="price of a device-hour, in any currency")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="as snakemake --config")
    parser.add_argument(
        "--configuration", metavar="JSON", help="the whole configuration, instead of config/config.yaml"
    )
    parser.add_argument("--out", type=Path, metavar="PLAN.csv", help="also write PLAN.csv and PLAN.md")
    given = parser.parse_args()
    config = _configuration(given)
    machine = machines.load(config["machine"])
    if given.price is not None:
        machine = machines.priced(machine, given.price)
    priced = estimator(plan(config), machine, sizes=size.counted)
    frame = table(priced)
    text = markdown(priced, frame)
    print(text)
    if given.out:
        buffer = io.StringIO()
        frame.to_csv(buffer, index=False)
        atomic_write_text(given.out.with_suffix(".md"), f"# What each target costs\n\n{text}\n")
        atomic_write_text(given.out, buffer.getvalue())


def _configuration(given: argparse.Namespace) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(given.configuration) if given.configuration else load_config()
    for entry in given.config:
        key, equals, value = entry.partition("=")
        if not equals:
            raise PlumblineError(f"--config {entry}: write KEY=VALUE")
        config[key] = yaml.safe_load(value)
    if given.preset:
        config["preset"] = given.preset
    if given.machine:
        config["machine"] = given.machine
    return config


def markdown(priced: Estimator, frame: pd.DataFrame) -> str:
    """The plan for people: what it rests on, the table rounded and with units, and the document's own figures."""
    machine = priced.machine
    relative = (
        "Methods differ by the step times measured for this machine."
        if machine.relative_step_time
        else "Methods count by their operations alone: their step times are not measured on this machine."
    )
    notes = [
        f"Preset `{priced.plan.config['preset']}` on {machine.label}, {machine.devices_at_once} at once; speed "
        f"{speed_in_words(priced)}. {relative}",
        "What is done costs nothing; disk is what everything takes in the end. Targets share runs, so their rows do "
        "not add up. The longest path is data, one training and its evaluation; wall time is for that many devices, "
        "without waiting in queues. Data preparation runs on processors and is in no device-hour.",
    ]
    missing = sorted({name for names in frame["not_counted"] for name in names.split(", ") if name})
    if missing:
        notes.append(f"Not counted, and in no sum: {', '.join(missing)}.")
    beside = published(priced, ROOT)
    parts = [*notes, _rounded(frame).to_markdown(index=False, disable_numparse=True)]
    if len(beside):
        parts += ["## Beside the document's own figures", _beside_note(priced), _beside(beside)]
    return "\n\n".join(parts)


def _rounded(frame: pd.DataFrame) -> pd.DataFrame:
    columns = {
        "study": frame["study"],
        "target": frame["target"],
        "runs to do": frame["runs_to_do"],
        "done": frame["runs_done"],
        "evaluations": frame["evaluations_to_do"],
        "tokens": frame["tokens"].map(_tokens),
        "training FLOPs": frame["training_flops"].map(lambda value: f"{value:.2e}" if value else "0"),
        "device-hours": frame["device_hours"].map(_number),
        "of these evaluation": frame["evaluation_device_hours"].map(_number),
        "longest path": frame["longest_path_hours"].map(_hours),
        "wall time": frame["wall_hours"].map(_hours),
        "disk, GB": frame["disk_gb"].map(_number),
    }
    if frame["price"].notna().any():
        columns["price"] = frame["price"].map(lambda value: f"{value:,.0f}")
    return pd.DataFrame(columns)


def _tokens(value: float) -> str:
    return f"{value / 1e9:.4g} B" if value >= 1e8 else f"{value / 1e6:.3g} M"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _hours(value: float) -> str:
    if value >= 48:
        return f"{value / 24:.1f} days"
    return f"{value:.1f} h" if value >= 1 else f"{value * 60:.1f} min"


def _beside_note(priced: Estimator) -> str:
    return (
        "The document does not name its accelerators; eight are on a node. `ratio` is estimated to published "
        f"device-hours; `implied MFU` is the share of the peak of {priced.machine.peak_tflops:g} TFLOP/s "
        f"({priced.machine.label}) that the published hours need."
    )


def _beside(frame: pd.DataFrame) -> str:
    shown = pd.DataFrame(
        {
            "run": frame["run"],
            "published": [
                f"about {hours:g} h on {devices} ({where})"
                for hours, devices, where in zip(frame["published_hours"], frame["published_devices"], frame["where"])
            ],
            "estimated": [
                f"{hours:.1f} h on {devices}"
                for hours, devices in zip(frame["estimated_hours"], frame["estimated_devices"])
            ],
            "ratio": frame["ratio"].map("{:.2f}".format),
            "implied MFU": frame["implied_mfu"].map("{:.2f}".format),
        }
    )
    return shown.to_markdown(index=False, disable_numparse=True)


if __name__ == "__main__":
    run(main)

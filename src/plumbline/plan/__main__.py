"""``python -m plumbline.plan``: what each target costs before it is run, on a named machine."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import yaml

from plumbline.cli import run
from plumbline.files import atomic_write_text
from plumbline.plan import machines
from plumbline.plan.estimate import estimate
from plumbline.studies.config import load_config
from plumbline.studies.workflow import plan

COLUMNS = ["study", "target", "runs", "runs_to_do", "tokens", "training_flops", "device_hours", "longest_path_hours"]


def main() -> None:
    """Print the plan as a table; with --out also write it as csv and md."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.plan", description=__doc__)
    parser.add_argument("--preset", choices=("paper", "mini", "demo", "smoke"), help="default: config/config.yaml's")
    parser.add_argument("--machine", help="an entry of config/machines.yaml (default: config/config.yaml's)")
    parser.add_argument("--price", type=float, help="price of a device-hour, in any currency")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="as snakemake --config")
    parser.add_argument("--out", type=Path, metavar="PLAN.csv")
    given = parser.parse_args()
    config = load_config()
    for entry in given.config:
        key, _, value = entry.partition("=")
        config[key] = yaml.safe_load(value)
    if given.preset:
        config["preset"] = given.preset
    machine = machines.load(given.machine or config["machine"])
    if given.price is not None:
        machine = machines.priced(machine, given.price)
    frame = estimate(plan(config), machine)
    note = (
        f"Preset {config['preset']} on {machine.label}; speed {frame['speed'].iloc[0]}. Device-hours are estimates; a "
        f"target's runs are shared with other targets, so rows do not add up. Data preparation is not in them."
    )
    text = f"{note}\n\n{markdown(frame)}\n"
    print(text)
    if given.out:
        buffer = io.StringIO()
        frame.to_csv(buffer, index=False)
        atomic_write_text(given.out, buffer.getvalue())
        atomic_write_text(given.out.with_suffix(".md"), f"# What each target costs\n\n{text}")


def markdown(frame):
    """The plan for people: rounded, with units."""
    shown = frame.assign(
        tokens=frame["tokens"].map(lambda value: f"{value / 1e9:.3g} B"),
        training_flops=frame["training_flops"].map(lambda value: f"{value:.2e}"),
        device_hours=frame["device_hours"].map(lambda value: f"{value:,.3g}"),
        longest_path_hours=frame["longest_path_hours"].map(lambda value: f"{value:.3g}"),
        disk_gb=frame["disk_gb"].map(lambda value: f"{value:,.3g}"),
    )
    columns = [*COLUMNS, "disk_gb"] + (["price"] if frame["price"].notna().any() else [])
    return shown[columns].to_markdown(index=False)


if __name__ == "__main__":
    run(main)

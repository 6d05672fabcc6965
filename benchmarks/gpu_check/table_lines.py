"""Prints what the check measured on a device as the lines of the tables that plans and kernels read.

    python -m benchmarks.gpu_check.table_lines benchmarks/gpu_check_h100_80gb_hbm3.json

Step times of components, from the section of methods by compiled step: how much more a step takes than the baseline's,
over the baseline's share of a whole compiled step, where that is measured too; else over the same step, of one
micro-batch and an update, which is longer. They are `measured_step_time` of config/machines.yaml, in each entry of this
device that has estimated times. And of each kernel the blocks with the least time, among those whose numbers stayed:
rows of `MEASURED` in src/plumbline/model/kernels/block_choices.py. Nothing is printed of a rehearsal, or where the
baseline's step drifts.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import textwrap
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import asdict

from benchmarks.gpu_check import base_scale_specs, measured_rows
from benchmarks.gpu_check.base_scale_specs import BASELINE
from benchmarks.gpu_check.measured_rows import State
from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.model.kernels.block_choices import BlockChoice, pad_width
from plumbline.plan import machines
from plumbline.plan.machines import MeasuredStepTime, Relative
from plumbline.specs.yaml_files import ROOT, read_yaml

MACHINES = ROOT / "config" / "machines.yaml"
METHODS, WHOLE = "method_steps", "baseline_steps"
#: By how much the baseline's step may change from the first row to the last. Methods in between are compared with the
#: mean of the two, and some differ from it by no more than this.
DRIFT = 0.03


def read_step_times(state: State, source: str) -> MeasuredStepTime | None:
    """The relative step times of a check; None if it measured no method.

    Raises:
        PlumblineError: the baseline drifts, or was not measured.
    """
    steps = {key: row["ms"] for key, row in state.measured(METHODS).items()}
    baselines = [steps.pop(key) for key in [*steps] if key.startswith(f"{BASELINE},")]
    if not steps:
        return None
    if not baselines or (drift := max(baselines) / min(baselines) - 1) > DRIFT:
        problem = f"changed by {100 * drift:.1f} % in between" if baselines else "is not measured"
        raise PlumblineError(f"{source}: the baseline's step {problem}: delete its section {METHODS}, and run it again")
    baseline = statistics.mean(baselines)
    whole = state.measured(WHOLE).get("compiled by shared layers")
    share = whole["ms"] / whole["micro-batches"] if whole else baseline
    relative = separate_components({name: (step - baseline) / share for name, step in steps.items()})
    source += f", next to a compiled step of {whole['micro-batches'] if whole else 1} micro-batches"
    return MeasuredStepTime(device=state.device, source=source, relative=relative)


def separate_components(extra: dict[str, float]) -> Relative:
    """Slot -> component -> relative time, from how much each method takes over the baseline: the plan adds components
    up. A method whose components are known except for one gives that one's; what stays unknown is left out."""
    specs = base_scale_specs.runs("paper")
    plain = specs[BASELINE].model
    slots = {name: [slot for slot in plain.slots if specs[name].model.slot(slot) != plain.slot(slot)] for name in extra}
    known: dict[tuple[str, str], float] = {}
    for name in sorted(extra, key=lambda name: len(slots[name])):
        components = [(slot, specs[name].model.slot(slot).name) for slot in slots[name]]
        unknown = [component for component in components if component not in known]
        if len(unknown) == 1:
            known[unknown[0]] = extra[name] - sum(known.get(component, 0.0) for component in components)
    relative: Relative = {}
    for (slot, component), more in sorted(known.items()):
        relative.setdefault(slot, {})[component] = round(1 + more, 2)
    return relative


def format_step_times(times: MeasuredStepTime) -> str:
    """The lines for config/machines.yaml, and the entries that they belong to.

    Raises:
        PlumblineError: no entry is of the device.
    """
    gpus = [machine for machine in map(machines.load, read_yaml(MACHINES)) if machine.device == "cuda"]
    fitting = [machine for machine in gpus if machines.names_device(machine.device_name, times.device)]
    names = [machine.name for machine in fitting if machine.relative_step_time]
    if not names:
        raise PlumblineError(f"{MACHINES}: no entry with `relative_step_time` is of {times.device}; add one")
    entry = yaml.safe_dump(asdict(times), default_flow_style=None, sort_keys=False, width=1000, allow_unicode=True)
    return f"# config/machines.yaml: {', '.join(names)}\n  measured_step_time:\n{textwrap.indent(entry, '    ')}"


def find_fastest_blocks(state: State, commit: str) -> list[BlockChoice]:
    """A row of the table for each kernel of which blocks were measured."""
    kernels: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in [*state.measured("blocks").values(), *state.measured("other_blocks").values()]:
        if row["equal"] and row["path"] == row["kernel"]:
            kernels.setdefault((row["kernel"], pad_width(row["head width"])), []).append(row)
    choices = []
    for (kernel, width), rows in sorted(kernels.items()):
        best = min(rows, key=lambda row: row["ms"])
        fields = {"kernel": kernel, "device": state.device, "widths": (width, width), "size": 2}
        fields["measured"] = f"{best['ms']:.3g} ms of {len(rows)} choices, commit {commit}"
        choices.append(BlockChoice(**fields, blocks=tuple(best["choice"])))
    return choices


def format_blocks(choices: list[BlockChoice]) -> str:
    """The rows of `MEASURED` as the linter has them, in the place of earlier ones for the same calls."""
    lines = ["# src/plumbline/model/kernels/block_choices.py"]
    for fields in map(dataclasses.asdict, choices):
        values = {name: f'"{value}"' if isinstance(value, str) else value for name, value in fields.items()}
        lines += ["    BlockChoice(", *(f"        {name}={value}," for name, value in values.items()), "    ),"]
    return "".join(f"{line}\n" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("state", type=Path, metavar="GPU_CHECK.json", help="what the check wrote on a GPU")
    path = parser.parse_args().state
    state = measured_rows.read(path)
    if state.rehearsal:
        raise PlumblineError(f"{path}: a rehearsal; name what the check wrote on a GPU")
    commit = str(state.commits[-1] if state.commits else "unknown")[:8]
    times, choices = read_step_times(state, f"{path.name}, commit {commit}"), find_fastest_blocks(state, commit)
    if times is None and not choices:
        raise PlumblineError(f"{path}: no method's step and no blocks are measured in it; `make gpu-check` does that")
    print("".join([format_step_times(times) if times else "", format_blocks(choices) if choices else ""]), end="")


if __name__ == "__main__":
    run(main)

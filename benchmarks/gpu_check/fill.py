"""Puts what the check measured on a device where plans and kernels read it.

    python -m benchmarks.gpu_check.fill benchmarks/gpu_check_h100_80gb_hbm3.json

Step times of components, from the section of methods by compiled step: how much more a step takes than the baseline's,
over the baseline's share of a whole compiled step, where that is measured too; else over the same step, of one
micro-batch and an update, which is longer. They become `measured_step_time` in config/machines.yaml of each entry of
this device that has estimated times. And of each kernel the blocks with the least time, among those whose numbers
stayed: rows of `MEASURED` in src/plumbline/model/kernels/block_choices.py. Earlier values of the device are replaced;
nothing is written from a rehearsal, or where the baseline's step drifts.
"""

from __future__ import annotations

import argparse
import re
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
from plumbline.core.files import atomic_write_text
from plumbline.model.kernels import block_choices
from plumbline.model.kernels.block_choices import BlockChoice, padded_width
from plumbline.plan import machines
from plumbline.plan.machines import MeasuredStepTime, Relative
from plumbline.specs.yaml_files import ROOT, check, parse_yaml, read_yaml

MACHINES, BLOCKS = ROOT / "config" / "machines.yaml", Path(block_choices.__file__)
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
        raise PlumblineError(
            f"{source}: the baseline's step {problem}: delete the section {METHODS} of it, and run it again"
        )
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


def insert_step_times(text: str, times: MeasuredStepTime) -> tuple[str, list[str]]:
    """The machines' text with these times in each entry of their device, other lines and all remarks as they are; and
    the entries.

    Raises:
        PlumblineError: no entry is of the device, or what it measured could not be read again.
    """
    entry = yaml.safe_dump(asdict(times), default_flow_style=None, sort_keys=False, width=1000, allow_unicode=True)
    block = f"  measured_step_time:  # of methods at the transfer study's base scale\n{textwrap.indent(entry, '    ')}"
    parts, names = re.split(r"^(?=\S)", text, flags=re.MULTILINE), []
    for place, part in enumerate(parts):
        name = part.partition(":")[0]
        if name not in read_yaml(MACHINES):
            continue
        machine = machines.load(name, MACHINES.parents[1])
        if machine.device == "cuda" and machines.names_device(machine.device_name, times.device):
            part = re.sub(r"^  measured_step_time:.*\n(?:    .*\n)+", "", part, flags=re.MULTILINE)
            below = r"^  relative_step_time:.*\n(?:    .*\n)*"
            parts[place], count = re.subn(below, lambda match: match[0] + block, part, flags=re.MULTILINE)
            names += [name] * count
    if not names:
        raise PlumblineError(f"{MACHINES}: no entry with `relative_step_time` is of {times.device}; add one")
    text = "".join(parts)
    check(parse_yaml(text, str(MACHINES)), dict[str, machines.MachineEntry], MACHINES)
    return text, names


def find_fastest_blocks(state: State, commit: str) -> list[BlockChoice]:
    """A row of the table for each kernel of which blocks were measured."""
    kernels: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in [*state.measured("blocks").values(), *state.measured("other_blocks").values()]:
        if row["equal"] and row["path"] == row["kernel"]:
            kernels.setdefault((row["kernel"], padded_width(row["head width"])), []).append(row)
    choices = []
    for (kernel, width), rows in sorted(kernels.items()):
        best = min(rows, key=lambda row: row["ms"])
        fields = {"kernel": kernel, "device": state.device, "widths": (width, width), "size": 2}
        measured = f"{best['ms']:.3g} ms of {len(rows)} choices, commit {commit}"
        choices.append(BlockChoice(**fields, blocks=tuple(best["choice"]), measured=measured))
    return choices


def insert_blocks(text: str, choices: list[BlockChoice]) -> str:
    """The table's text with these rows, in the place of earlier ones for the same kernels, devices and widths."""
    keys = {(row.kernel, row.device, row.widths) for row in choices}
    rows = [row for row in block_choices.MEASURED if (row.kernel, row.device, row.widths) not in keys] + choices
    fields = ("kernel", "device", "widths", "size", "blocks", "measured")
    lines = [
        "    BlockChoice(\n"
        + "".join(f"        {name}={getattr(row, name)!r},\n".replace("'", '"') for name in fields)
        + "    ),\n"
        for row in rows
    ]
    place = r"^MEASURED: tuple\[BlockChoice, \.\.\.\] = \((?:\)|\n.*?^\))$"
    table = f"MEASURED: tuple[BlockChoice, ...] = (\n{''.join(lines)})"
    text, count = re.subn(place, lambda _: table, text, flags=re.MULTILINE | re.DOTALL)
    if count != 1:
        raise PlumblineError(f"{BLOCKS}: no `MEASURED: tuple[BlockChoice, ...] = (...)`; restore it")
    return text


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
    if times is not None:
        text, names = insert_step_times(MACHINES.read_text(encoding="utf-8"), times)
        atomic_write_text(MACHINES, text)
        print(f"{MACHINES}: {', '.join(names)}: {times.relative}")
    if choices:
        atomic_write_text(BLOCKS, insert_blocks(BLOCKS.read_text(encoding="utf-8"), choices))
        print(f"{BLOCKS}: " + "; ".join(f"{row.kernel} {row.blocks}" for row in choices))
    print(f"commit these with {path}")


if __name__ == "__main__":
    run(main)

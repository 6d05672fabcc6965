"""Puts step times of methods that the check measured on a device into config/machines.yaml, next to the estimated ones.

    python -m benchmarks.gpu_check.fill_step_times benchmarks/gpu_check_h100_80gb_hbm3.json

Of each component, from the section "methods by compiled step": how much more a step takes than the baseline's, over the
baseline's share of a whole step of the trainer, compiled, where that is measured too; else over the same step, of one
micro-batch and an update, which is longer. The plan adds components up, and so they are taken apart here. They become
`measured_step_time` of each entry whose device it is and which has estimated times, in the place of an earlier one, and
the plan goes by them. A row that is used for nothing is named. Nothing is written from a rehearsal, another device's
rows, or rows without the baseline's or where those drift; nor what would make the file unreadable.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import textwrap
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import asdict

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.base_scale_specs import BASELINE
from benchmarks.gpu_check.call_settings import SIZES
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.sections.baseline_steps import BY_LAYERS
from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text
from plumbline.plan import machines
from plumbline.plan.machines import Machine, MeasuredStepTime, Relative
from plumbline.specs.yaml_files import ROOT, check, parse_yaml, read_yaml

SECTION = "compiled_method_steps"
MACHINES = ROOT / "config" / "machines.yaml"
#: The key, and the one below which it is written.
KEY, BELOW = "measured_step_time", "relative_step_time"
#: The baseline's rows, around those of the methods.
BASELINES = (f"{BASELINE}, first", f"{BASELINE}, last")
#: By how much the baseline's step may change from the first row to the last. Methods in between are compared with the
#: mean of the two, and some differ from it by no more than this.
DRIFT = 0.03


def read_relative_times(state: MeasuredRows) -> MeasuredStepTime:
    """The relative step times of a check.

    Raises:
        PlumblineError: nothing that counts was measured, or the file lacks something of it; the message names the key.
    """
    device = _device(state)
    over, counted = _over(state)
    relative = by_component(over)
    if not relative:
        raise PlumblineError(f"{state.path}: {_lacking(over)}")
    commit = str(state.content["machine"].get("git_commit") or "unknown")[:8]
    source = f"{state.path.name}, commit {commit}, beside a compiled step of {counted}"
    return MeasuredStepTime(device=device, source=source, relative=relative)


def _device(state: MeasuredRows) -> str:
    """The GPU that all was measured on, at paper size."""
    call, device = state.told(), state.content["machine"].get("device")
    remedy = "name what the check wrote on a GPU at paper sizes"
    if call["rehearsal"]:
        raise PlumblineError(f"{state.path}: a {call['rehearsal']}; {remedy}")
    for key, value in {"kind": "cuda", "sizes": "paper"}.items():
        if call[key] != value:
            raise PlumblineError(f"{state.path}: told.{key}: {call[key]!r} is not {value!r}; {remedy}")
    if not isinstance(device, str) or device != call["device"]:
        raise PlumblineError(
            f"{state.path}: machine.device is {device!r} and told.device {call['device']!r}, so that nobody knows "
            "which one was measured; measure again (GPU_CHECK=--restart)"
        )
    return device


def _over(state: MeasuredRows) -> tuple[dict[str, float], str]:
    """How much more of a baseline's step each method takes, and of how many micro-batches that step is."""
    seconds = {key: _seconds(state, SECTION, key, row) for key, row in state.rows(SECTION).items()}
    baselines = [seconds.pop(key) for key in BASELINES if key in seconds]
    if not baselines or not seconds:
        lacking = "methods" if baselines else "baseline"
        raise PlumblineError(f"{state.path}: no step of the {lacking} is measured in it; run the section {SECTION}")
    for name in seconds:
        if name not in base_scale_specs.runs("paper"):
            raise PlumblineError(
                f"{state.path}: sections.{SECTION}.rows: {name!r} is no method of the transfer study's base scale; "
                "take the row out, or take the commit that measured it"
            )
    drift = max(baselines) / min(baselines) - 1
    if drift > DRIFT:
        raise PlumblineError(
            f"{state.path}: the baseline's step changed by {100 * drift:.1f} % from the first row to the last, more "
            f"than {100 * DRIFT:.0f} %: what methods take in between says nothing; take the rows of {SECTION} out, and "
            "run the section again"
        )
    baseline = statistics.mean(baselines)
    whole, counted = _of_whole_steps(state)
    return {name: (duration - baseline) / (whole or baseline) for name, duration in seconds.items()}, counted


def _seconds(state: MeasuredRows, section: str, key: str, row: dict[str, Any]) -> float:
    value = row.get("seconds")
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        raise PlumblineError(
            f"{state.path}: sections.{section}.rows.{key}.seconds: {value!r} is not a time; take the row out, and run "
            "the section again"
        )
    return float(value)


def _of_whole_steps(state: MeasuredRows) -> tuple[float | None, str]:
    """Seconds of a micro-batch in the trainer's compiled step of several, and of how many; None if none is there."""
    section, accumulated = "baseline_steps", SIZES["paper"].accumulated
    row = state.rows(section).get(BY_LAYERS)
    if row is None:
        return None, "1 micro-batch"
    return _seconds(state, section, BY_LAYERS, row) / accumulated, f"{accumulated} micro-batches"


def by_component(over: dict[str, float]) -> Relative:
    """Slot -> component -> relative time, from how much each method takes over the baseline; a method whose components
    are known except for one tells that one's."""
    relative: Relative = {}
    for (slot, component), (_, more) in sorted(_solve(over).items()):
        relative.setdefault(slot, {})[component] = round(1 + more, 2)
    return relative


def list_unused(over: dict[str, float]) -> list[str]:
    """The methods of which nothing is used: all their components are told by others, or several are not."""
    used = {name for name, _ in _solve(over).values()}
    return [name for name in over if name not in used]


def _solve(over: dict[str, float]) -> dict[tuple[str, str], tuple[str, float]]:
    """Slot and component -> the method that tells it, and how much it takes over the baseline."""
    solution: dict[tuple[str, str], tuple[str, float]] = {}
    unsolved = {name: _components(name) for name in over}
    while solvable := [name for name, slots in unsolved.items() if sum(slot not in solution for slot in slots) <= 1]:
        name = min(solvable, key=lambda each: len(unsolved[each]))
        slots = unsolved.pop(name)
        for slot in (slot for slot in slots if slot not in solution):
            solution[slot] = name, over[name] - sum(solution[other][1] for other in slots if other != slot)
    return solution


def _components(name: str) -> list[tuple[str, str]]:
    """The slots in which a method differs from the baseline, with its component."""
    specs = base_scale_specs.runs("paper")
    model, plain = specs[name].model, specs[BASELINE].model
    return [(slot, model.slot(slot).name) for slot in model.slots if model.slot(slot) != plain.slot(slot)]


def _lacking(over: dict[str, float]) -> str:
    """Which methods would tell the components apart of those that were measured."""
    alone = {slots[0]: name for name in base_scale_specs.methods() if len(slots := _components(name)) == 1}
    parts = [
        f"{name} adds {' and '.join(component for _, component in slots)} at once "
        f"(measure {' or '.join(alone[slot] for slot in slots if slot in alone) or 'another with one of them'} too)"
        for name in over
        if (slots := _components(name))
    ]
    why = "; ".join(parts) or f"{', '.join(over)} have the baseline's components"
    return f"no component's time can be told: {why}"


def entries(device: str, machine_name: str | None) -> list[Machine]:
    """The machines whose device this is, and that have estimated times; `machine_name`: the one that was named.

    Raises:
        PlumblineError: there is none, or what was named is of another device.
    """
    root = MACHINES.parents[1]
    if machine_name is not None:
        there = machines.load(machine_name, root)
        if there.device == "cpu" or not machines.names_device(there.device_name, device):
            raise PlumblineError(
                f"--machine {machine_name}: {MACHINES} says {there.device_name!r}, and {device} was measured"
            )
        return [there]
    all_machines = [machines.load(name, root) for name in read_yaml(MACHINES)]
    matching = [
        machine
        for machine in all_machines
        if machine.device != "cpu" and machines.names_device(machine.device_name, device)
    ]
    if not (matching := [machine for machine in matching if machine.relative_step_time]):
        raise PlumblineError(f"{MACHINES}: no entry with `{BELOW}` is of {device}; add one, or name it with --machine")
    return matching


def insert_times(source: str, name: str, times: MeasuredStepTime) -> str:
    """The file's text with an entry's measured times; its other lines and all remarks stay as they are.

    Raises:
        PlumblineError: the text has no place for them.
    """
    entry = yaml.safe_dump(asdict(times), default_flow_style=None, sort_keys=False, width=1000, allow_unicode=True)
    block = f"  {KEY}:  # of methods at the transfer study's base scale\n{textwrap.indent(entry, '    ')}"
    parts = re.split(r"^(?=\S)", source, flags=re.MULTILINE)
    for place, part in enumerate(parts):
        if not part.startswith(f"{name}:\n"):
            continue
        part = re.sub(rf"^  {KEY}:.*\n(?:    .*\n)+", "", part, flags=re.MULTILINE)
        parts[place], often = re.subn(
            rf"^  {BELOW}:.*\n(?:    .*\n)*", lambda match: match[0] + block, part, flags=re.MULTILINE
        )
        if often == 1:
            return "".join(parts)
    raise PlumblineError(f"{MACHINES}: no `{BELOW}` of {name} on a line of its own; write this below it:\n{block}")


def _require_readable(text: str, path: Path) -> None:
    """Refuse a text of the machines that could not be read again."""
    try:
        check(parse_yaml(text, str(MACHINES)), dict[str, machines.MachineEntry], MACHINES)
    except PlumblineError as error:
        raise PlumblineError(f"{path}: nothing is written, for it would leave {error}; measure again") from error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("state", type=Path, metavar="GPU_CHECK.json", help="what the check wrote on a GPU")
    parser.add_argument("--machine", help="an entry of config/machines.yaml (default: all of this device)")
    options = parser.parse_args()
    if not options.state.is_file():
        raise PlumblineError(f"{options.state}: no such file; `make gpu-check` writes it")
    state = MeasuredRows.read(options.state)
    times = read_relative_times(state)
    text, before = MACHINES.read_text(encoding="utf-8"), entries(times.device, options.machine)
    for machine in before:
        text = insert_times(text, machine.name, times)
    _require_readable(text, options.state)
    atomic_write_text(MACHINES, text)
    for machine in before:
        now, reckoned = machines.load(machine.name, MACHINES.parents[1]), machine.relative_step_time
        print(f"{machine.name}: step times of methods are {now.relative_in_words}")
        for slot, each in times.relative.items():
            for component, ratio in each.items():
                print(f"  {slot} {component}: {ratio:g}, reckoned {reckoned.get(slot, {}).get(component, 1.0):g}")
    if spare := list_unused(_over(state)[0]):
        print(f"measured, and used for nothing (other rows tell their components, or none does): {', '.join(spare)}")
    if lacking := [key for key in BASELINES if key not in state.rows(SECTION)]:
        print(f"not measured: {', '.join(lacking)}; whether the device's speed changed in between is not known")
    print(f"{MACHINES}: written; commit it with {options.state}")


if __name__ == "__main__":
    run(main)

"""Puts step times of methods that the check measured on a device into config/machines.yaml, beside the reckoned ones.

    python -m benchmarks.gpu_check.fill_step_times benchmarks/gpu_check_h100_80gb_hbm3.json

Of each component, from the section "methods by compiled step": how much more a step takes than the baseline's, over the
baseline's share of a whole step of the trainer, compiled, where that is measured too; else over the same step, of one
micro-batch and an update, which is longer. The plan adds components up, and so they are taken apart here. They become
`measured_step_time` of each entry whose device it is and which has reckoned times, in the place of an earlier one, and
the plan goes by them. Nothing is written from a rehearsal, another device's rows, or rows without the baseline's.
"""

from __future__ import annotations

import argparse
import re
import statistics
from pathlib import Path

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.base_scale_specs import BASELINE
from benchmarks.gpu_check.call_settings import SIZES
from benchmarks.gpu_check.measured_rows import MeasuredRows
from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text
from plumbline.plan import machines
from plumbline.plan.machines import MeasuredStepTime, Relative
from plumbline.specs.yaml_files import ROOT, read_yaml

SECTION = "compiled_method_steps"
MACHINES = ROOT / "config" / "machines.yaml"
#: The key, and the one below which it is written.
KEY, BELOW = "measured_step_time", "relative_step_time"


def measured(state: MeasuredRows) -> MeasuredStepTime:
    """The relative step times of a check.

    Raises:
        PlumblineError: nothing that counts was measured.
    """
    told, machine = state.told(), state.content["machine"]
    if told["rehearsal"]:
        raise PlumblineError(f"{state.path}: a {told['rehearsal']}; name what the check wrote on a GPU")
    seconds = {key: float(row["seconds"]) for key, row in state.rows(SECTION).items()}
    baselines = [seconds.pop(key) for key in (f"{BASELINE}, first", f"{BASELINE}, last") if key in seconds]
    if not baselines or not seconds:
        lacking = "methods" if baselines else "baseline"
        raise PlumblineError(f"{state.path}: no step of the {lacking} is measured in it; run the section {SECTION}")
    baseline = statistics.mean(baselines)
    whole, counted = _of_whole_steps(state)
    over = {name: (taken - baseline) / (whole or baseline) for name, taken in seconds.items()}
    commit = str(machine.get("git_commit") or "unknown")[:8]
    source = f"{state.path.name}, commit {commit}, beside a compiled step of {counted}"
    return MeasuredStepTime(device=machine["device"], source=source, relative=by_component(over))


def _of_whole_steps(state: MeasuredRows) -> tuple[float | None, str]:
    """Seconds of a micro-batch in the trainer's compiled step of several, and of how many; None where none is there."""
    size = SIZES["paper"]
    row = state.rows("eager_steps").get(f"trainer, micro-batch {size.sequences}, compiled")
    if row is None:
        return None, "1 micro-batch"
    return float(row["seconds"]) / size.accumulated, f"{size.accumulated} micro-batches"


def by_component(over: dict[str, float]) -> Relative:
    """Slot -> component -> relative time, from how much each method takes over the baseline; a method whose components
    are known but for one tells that one's."""
    specs = base_scale_specs.runs("paper")
    plain = specs[BASELINE].model
    found: dict[tuple[str, str], float] = {}
    left = {}
    for name in over:
        model = specs[name].model
        left[name] = [(slot, model.slot(slot).name) for slot in model.slots if model.slot(slot) != plain.slot(slot)]
    while left:
        told = [name for name, slots in left.items() if sum(slot not in found for slot in slots) <= 1]
        if not told:
            break
        name = min(told, key=lambda each: len(left[each]))
        slots = left.pop(name)
        for slot in (slot for slot in slots if slot not in found):
            found[slot] = over[name] - sum(found[other] for other in slots if other != slot)
    relative: Relative = {}
    for (slot, component), more in sorted(found.items()):
        relative.setdefault(slot, {})[component] = round(1 + more, 2)
    return relative


def entries(device: str, asked: str | None) -> list[str]:
    """The machines whose device this is, and that have reckoned times; `asked`: the one that was named.

    Raises:
        PlumblineError: there is none, or what was named is of another device.
    """
    known = read_yaml(MACHINES)
    if asked is not None:
        there = machines.load(asked, MACHINES.parents[1])
        if there.device == "cpu" or there.device_name not in device:
            raise PlumblineError(f"--machine {asked}: {MACHINES} says {there.device_name!r}, and {device} was measured")
        return [asked]
    found = [
        name
        for name, entry in known.items()
        if entry["device"] != "cpu" and entry["device_name"] in device and entry[BELOW]
    ]
    if not found:
        raise PlumblineError(f"{MACHINES}: no entry with `{BELOW}` is of {device}; add one, or name it with --machine")
    return found


def written(source: str, name: str, times: MeasuredStepTime) -> str:
    """The file's text with an entry's measured times; its other lines and all remarks stay as they are.

    Raises:
        PlumblineError: the text has no place for them.
    """
    slots = "".join(
        f"      {slot}: {{{', '.join(f'{one}: {ratio:g}' for one, ratio in each.items())}}}\n"
        for slot, each in times.relative.items()
    )
    block = (
        f"  {KEY}:  # of methods at the transfer study's base scale\n"
        f'    device: "{times.device}"\n    source: "{times.source}"\n    relative:\n{slots}'
    )
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("state", type=Path, metavar="GPU_CHECK.json", help="what the check wrote on a GPU")
    parser.add_argument("--machine", help="an entry of config/machines.yaml (default: all of this device)")
    given = parser.parse_args()
    if not given.state.is_file():
        raise PlumblineError(f"{given.state}: no such file; `make gpu-check` writes it")
    times = measured(MeasuredRows.read(given.state))
    for name in entries(times.device, given.machine):
        reckoned = machines.load(name, MACHINES.parents[1]).relative_step_time
        atomic_write_text(MACHINES, written(MACHINES.read_text(encoding="utf-8"), name, times))
        print(f"{name}: step times of methods are {machines.load(name, MACHINES.parents[1]).relative_in_words}")
        for slot, each in times.relative.items():
            for component, ratio in each.items():
                print(f"  {slot} {component}: {ratio:g}, reckoned {reckoned.get(slot, {}).get(component, 1.0):g}")
    print(f"{MACHINES}: written; commit it with {given.state}")


if __name__ == "__main__":
    run(main)

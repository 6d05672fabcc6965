"""Where the bytes of a compiled step go at paper size: Inductor's plan for a GPU that is not there, by kind of kernel.

    python -m benchmarks.fake_device.compiled_step                    # half an hour of a core
    python -m benchmarks.fake_device.compiled_step --write-page-only  # with what a GPU has measured meanwhile
    python -m benchmarks.fake_device.compiled_step --methods qknorm --json

The baseline is planned whole. Other methods are planned with few layers, twice, and what a layer adds is multiplied;
three times where a layer reads all earlier ones, so that each adds as much more than the one before.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.fake_device import absent_cuda
from plumbline.core import command_line

if TYPE_CHECKING:
    from benchmarks.fake_device.compiled_kernels import PlannedKernel
    from plumbline.specs.spec import RunSpec

PAGE = Path(__file__).resolve().parents[1] / "compiled_step.md"
ROWS = PAGE.with_suffix(".jsonl")
SEQUENCES = 8
#: Methods that are planned whole: `denseformer` as well, to hold the others against.
WHOLE = ("baseline", "denseformer")
#: Variants that are planned in addition to the methods, since their steps take another time.
VARIANTS = ("selective_attn.original", "hyper.official", "attnres.whole_layers")
#: Those whose layers read all earlier ones.
GROWING = ("attnres",)
#: Layers that the others are planned with, in equal steps; the third only for those that grow.
FEW = (2, 4, 6)
#: Files of the model -> what their kernels are called, the first that fits.
GROUPS = (
    ("ffn/", "activation of the FFN"),
    ("positions/", "rotary positions"),
    ("next_token_loss.py", "loss"),
    ("norms/", "norms and the residual stream"),
    ("residual/", "norms and the residual stream"),
    ("placement/", "norms and the residual stream"),
    ("mixers/", "queries, keys, values and heads"),
    ("query_key/", "queries, keys, values and heads"),
    ("values/", "queries, keys, values and heads"),
    ("output/", "queries, keys, values and heads"),
    ("projections/", "queries, keys, values and heads"),
    ("fused_linear.py", "weights to bfloat16, gradients to float32"),
    ("cpu_matmul.py", "weights to bfloat16, gradients to float32"),
)


def group(kind: str, files: Iterable[str]) -> str:
    """What a kernel is for."""
    if kind in ("flash", "ours"):
        return "attention" if kind == "flash" else "attention by our kernels"
    if kind == "product":
        return "matrix products"
    return next((name for start, name in GROUPS if any(file.startswith(start) for file in files)), "other")


def totals(kernels: list[PlannedKernel]) -> dict[str, dict[str, float]]:
    """Group -> its kernels, bytes, operations and estimated seconds on each machine, kernel by kernel."""
    from benchmarks.fake_device.machine_rates import COUNTED, RATES, seconds_on

    groups: dict[str, dict[str, float]] = {}
    for kernel in kernels:
        entry = groups.setdefault(group(kernel.kind, kernel.files), dict.fromkeys(COUNTED, 0.0))
        entry["kernels"] += 1
        entry["bytes"] += kernel.bytes
        entry["operations"] += kernel.operations
        for name, rates in RATES.items():
            entry[seconds_on(name)] += kernel.seconds(rates)
    return groups


def row(name: str, sequences: int, layers: int | None) -> dict[str, Any]:
    """A method's totals by group.

    Args:
        layers: of the model, in place of its own: then nothing is multiplied.
    """
    from benchmarks.fake_device import method_rows
    from benchmarks.fake_device.compiled_kernels import plan_kernels
    from benchmarks.gpu_check import base_scale_specs

    spec = base_scale_specs.runs("paper")[name]
    if layers is not None or name in WHOLE:
        result = {"method": name, "planned": "whole", "groups": totals(plan_kernels(spec, sequences, layers=layers))}
        return result | ({"update": update(spec, sequences, layers)} if name == method_rows.BASELINE else {})
    counts = FEW if name.split(".")[0] in GROWING else FEW[:2]
    tables = [totals(plan_kernels(spec, sequences, layers=count)) for count in counts]
    plan = f"with {', '.join(map(str, counts[:-1]))} and {counts[-1]} layers"
    return {"method": name, "planned": plan, "groups": extrapolate(tables, spec.model.layers)}


def update(spec: RunSpec, sequences: int, layers: int | None) -> dict[str, Any]:
    """What the page needs of an uncompiled step: its update, which is not a part of the plan, and its passes' time."""
    from benchmarks.fake_device import method_rows
    from benchmarks.fake_device.fake_step import FakeStep

    counts = method_rows.count_step(FakeStep(spec, sequences, layers=layers))
    return {name: counts[name] for name in ("seconds", "update_bytes", "update_seconds", "parameter_bytes")}


def extrapolate(tables: list[dict[str, dict[str, float]]], layers: int) -> dict[str, dict[str, float]]:
    """Totals of so many layers from those of `FEW`: by the straight line through two, the parabola through three."""
    steps = (layers - FEW[0]) / (FEW[1] - FEW[0])
    scaled: dict[str, dict[str, float]] = {}
    for kind, entry in tables[-1].items():
        scaled[kind] = {}
        for key in entry:
            first, second, *more = (table.get(kind, {}).get(key, 0.0) for table in tables)
            bend = more[0] - 2 * second + first if more else 0.0
            scaled[kind][key] = first + steps * (second - first) + steps * (steps - 1) / 2 * bend
    return scaled


def main() -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fake_device.compiled_step",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--methods", nargs="+", metavar="METHOD", help="default: the study's twenty, and three variants"
    )
    parser.add_argument("--layers", type=command_line.positive, help="of each model (default: its own)")
    parser.add_argument("--sequences", type=command_line.positive, default=SEQUENCES, help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print the rows, and write no page")
    parser.add_argument("--write-page-only", action="store_true", help="from the rows that are there; plan nothing")
    options = parser.parse_args()
    absent_cuda.enter()
    from benchmarks.fake_device import compiled_page
    from benchmarks.gpu_check import base_scale_specs

    names = options.methods or [*base_scale_specs.methods(), *VARIANTS]
    specs = base_scale_specs.runs("paper")
    if unknown := sorted(set(names) - set(specs)):
        raise command_line.PlumblineError(f"--methods {' '.join(unknown)}: there are {', '.join(specs)}")
    rows = (
        [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()] if options.write_page_only else []
    )
    for name in [] if options.write_page_only else names:
        rows.append(row(name, options.sequences, options.layers))
        output = (json.dumps(rows[-1]), sys.stdout) if options.json else (name, sys.stderr)
        print(output[0], file=output[1], flush=True)
    if not options.json:
        ROWS.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        PAGE.write_text(compiled_page.page(rows, options.sequences), encoding="utf-8")
    return 0


if __name__ == "__main__":
    command_line.run(main)

"""What steps would ask of a GPU at paper size, counted on one that is not there.

    python -m benchmarks.fake_device              # every kind of step of all studies: ten minutes of a core
    python -m benchmarks.fake_device --compiled   # transfer's base scale, as compiled: half an hour
    python -m benchmarks.fake_device --methods baseline qknorm --layers 2

A row is one micro-batch of a run at paper size under bfloat16 autocast: forward and backward pass, clipping and update,
with the run's interventions. Rows are written to benchmarks/fake_device.jsonl, by which a plan knows a step's memory.
With `--compiled` a row has the kernels that the compiler would make of it, and what they take
(benchmarks/compiled_step.jsonl, from which `relative_step_time` of config/machines.yaml is). Of a part of the methods,
layers or sequences rows are printed, one on a line, and nothing is written.

Exit code 1 where a step waits for the device, makes a float32 product that is not listed, leaves a parameter without a
gradient of its type, or cannot be taken to its end.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.fake_device import absent_cuda
from plumbline.core import command_line
from plumbline.plan import machines

FOLDER = Path(__file__).resolve().parents[1]


def main() -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fake_device",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--compiled", action="store_true", help="plan kernels of compiled steps")
    parser.add_argument(
        "--methods", nargs="+", metavar="METHOD", help="methods of transfer's base scale, or runs (default: all)"
    )
    parser.add_argument("--layers", type=command_line.positive, help="of each model (default: its own)")
    parser.add_argument(
        "--sequences", type=command_line.positive, help="at a time (default: what profiles/slurm gives a device)"
    )
    options = parser.parse_args()
    part = options.methods or options.layers or options.sequences
    absent_cuda.enter()
    from benchmarks.fake_device import compiled_step, method_rows

    usual, rows, wrong = machines.load("h100").micro_batch, [], []
    names = options.methods or (compiled_step.list_methods() if options.compiled else None)
    make_row = compiled_step.make_row if options.compiled else method_rows.make_row
    for name, run in method_rows.specs(names).items():
        row = make_row(name, run.spec, options.sequences or usual[run.size], options.layers)
        rows.append(row)
        wrong += [] if options.compiled else [f"{name}: {fault}" for fault in method_rows.faults(row)]
        print(json.dumps(row) if part else name, file=sys.stdout if part else sys.stderr, flush=True)
    if not part:
        path = FOLDER / ("compiled_step.jsonl" if options.compiled else "fake_device.jsonl")
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    for fault in wrong:
        print(fault, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    command_line.run(main)

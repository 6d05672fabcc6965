"""What each method's step would ask of a GPU at paper size, counted on one that is not there.

    python -m benchmarks.fake_device                                     # all methods and variants: an hour of a core
    python -m benchmarks.fake_device --methods baseline qknorm --layers 2 --json

A row is one micro-batch of the transfer study's base scale under bfloat16 autocast: forward and backward pass, then
clipping and the update. The table is written to benchmarks/fake_device.md; with `--json` the rows are printed, one on a
line, and nothing is written. Exit code 1 where a step waits for the device, makes a float32 product that is not listed,
leaves a parameter without a gradient of its type, or is not one graph of torch.compile.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.fake_device import absent_cuda
from plumbline.core import command_line

PAGE = Path(__file__).resolve().parents[1] / "fake_device.md"
SEQUENCES = 8


def main() -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fake_device",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="methods and variants (default: all)")
    parser.add_argument("--layers", type=command_line.positive, help="of each model (default: its own)")
    parser.add_argument("--sequences", type=command_line.positive, default=SEQUENCES, help="default: %(default)s")
    parser.add_argument("--no-graphs", action="store_true", help="do not have torch.compile trace the models")
    parser.add_argument("--json", action="store_true", help="print the rows, and write no page")
    parser.add_argument("--rows", type=Path, help="write the page from a file of such rows, and count nothing")
    given = parser.parse_args()
    absent_cuda.enter()
    from benchmarks.fake_device import method_rows, page

    known = method_rows.specs(None)
    unknown = sorted(set(given.methods or ()) - set(known) - set(method_rows.base_scale_specs.runs("paper")))
    if unknown:
        raise command_line.PlumblineError(f"--methods {' '.join(unknown)}: there are {', '.join(known)}")
    chosen, found, wrong = method_rows.specs(given.methods), [], []
    if given.rows is not None:
        taken = map(json.loads, given.rows.read_text(encoding="utf-8").splitlines())
    else:
        taken = method_rows.rows(chosen, given.sequences, given.layers, not given.no_graphs)
    for row in taken:
        found.append(row)
        wrong += [f"{row['method']}: {fault}" for fault in method_rows.faults(row)]
        if given.json:
            print(json.dumps(row), flush=True)
        else:
            print(f"{row['method']}: {row['kernels']} kernels", file=sys.stderr, flush=True)
    if not given.json:
        PAGE.write_text(page.page(found, chosen, given.sequences, wrong), encoding="utf-8")
    for fault in wrong:
        print(fault, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    command_line.run(main)

"""``python -m plumbline.probes``: what a finished run's probes say at all of its probe points, as one frame.

Offline probes are read here, from the weights that the run kept; what online probes read during training is added. A
run that diverged gives what it reached: the points beyond are named in the frame's metadata and on stderr.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from plumbline.cli import run


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.probes", description=__doc__)
    parser.add_argument("--run", required=True, type=Path, help="folder of a finished run")
    parser.add_argument("--validation", required=True, type=Path, help="manifest of its validation pack")
    parser.add_argument("--out", required=True, type=Path, help="probes.parquet to write")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    return parser


def main() -> None:
    """The verb."""
    given = arguments().parse_args()
    from plumbline.probes import write
    from plumbline.probes._offline import read_run
    from plumbline.train.distributed import ranks
    from plumbline.train.numerics import numerics

    with ranks(given.device) as group:
        numerics(group.device)
        found = read_run(given.run, given.validation, group.device)
    write(given.out, found.rows, found.metadata())
    for point in found.missed:
        print(f"{found.run.spec.key}: {found.run.outcome} before step {point['step']}, so there is nothing at fraction "
              f"{point['fraction']:g} of training", file=sys.stderr)  # fmt: skip
    print(f"{found.run.spec.key}: {len(found.rows)} readings -> {given.out}", file=sys.stderr)


if __name__ == "__main__":
    run(main)

"""Record the losses anew: ``python -m tests.golden.make``, in the commit that bumps NUMERICS."""

from __future__ import annotations

import torch

from plumbline import NUMERICS
from plumbline.cli import PlumblineError, run
from plumbline.files import atomic_write_text, canonical_json
from tests.golden.runs import FILE, TOLERANCE, losses, recorded
from tests.model.methods import METHODS


def main() -> None:
    """Run every method and write the file.

    Raises:
        PlumblineError: a recorded loss has moved and NUMERICS has not.
    """
    torch.set_num_threads(1)
    found = {method: losses(method) for method in METHODS}
    before = recorded() if FILE.exists() else {"numerics": None, "losses": {}}
    if before["numerics"] == NUMERICS:
        for method in before["losses"].keys() & found.keys():
            gap = max(abs(a - b) for a, b in zip(before["losses"][method], found[method], strict=True))
            if gap > TOLERANCE:
                raise PlumblineError(
                    f"the losses of {method} have moved by {gap:.2g}, but NUMERICS is still {NUMERICS}; if that is "
                    "meant, bump NUMERICS in src/plumbline/__init__.py first, so that old runs are known to be old"
                )
    lines = ",\n".join(f'  "{method}": {canonical_json(values)}' for method, values in found.items())
    atomic_write_text(FILE, f'{{"numerics": {NUMERICS}, "losses": {{\n{lines}\n}}}}\n')
    print(f"{len(found)} methods -> {FILE}")


if __name__ == "__main__":
    run(main)

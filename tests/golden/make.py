"""Record the losses anew, and the classes of the code that they prove equal: ``python -m tests.golden.make``.

It is run in the commit that bumps NUMERICS, after a component was refactored, and to add a method's losses.
"""

from __future__ import annotations

import torch

from plumbline import NUMERICS
from plumbline.cli import PlumblineError, run
from plumbline.files import atomic_write_text, canonical_json
from plumbline.specs import code
from tests.golden import classes
from tests.golden.runs import FILE, TOLERANCE, gap, losses, recorded
from tests.model.methods import ALL


def main() -> None:
    """Run every method and write both files.

    Raises:
        PlumblineError: a recorded loss has moved and NUMERICS has not.
    """
    torch.set_num_threads(1)
    found = {method: losses(method) for method in ALL}
    before = recorded() if FILE.exists() else {"numerics": None, "losses": {}}
    gaps = {method: gap(found[method], before["losses"][method]) for method in found if method in before["losses"]}
    for method, moved in gaps.items():
        if not moved <= TOLERANCE and before["numerics"] == NUMERICS:
            raise PlumblineError(
                f"the losses of {method} have moved by {moved:.2g}, but NUMERICS is still {NUMERICS}; if that is "
                "meant, bump NUMERICS in src/plumbline/__init__.py first, so that old runs are known to be old"
            )
    lines = ",\n".join(f'  "{method}": {canonical_json(values)}' for method, values in found.items())
    atomic_write_text(FILE, f'{{"numerics": {NUMERICS}, "losses": {{\n{lines}\n}}}}\n')
    known = classes.record(list(found), {method: moved <= TOLERANCE for method, moved in gaps.items()})
    print(f"{len(found)} methods -> {FILE}\n{len(known)} components -> {code.CLASSES}")


if __name__ == "__main__":
    run(main)

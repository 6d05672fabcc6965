"""Records the golden numbers, and the classes of code that they prove equal: ``python -m tests.golden.record_golden``.

It is run in the commit that bumps NUMERICS, after a component was refactored, and to add the losses of a method or a
training.
"""

from __future__ import annotations

from typing import Any

import torch

from plumbline import NUMERICS
from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text, canonical_json
from plumbline.specs import code_hash
from tests.golden import code_classes
from tests.golden.method_runs import FILE, TOLERANCE, TOLERANCES, gap, load_all, losses
from tests.golden.trainings import TRAININGS, apart, curves
from tests.model.transfer_methods import ALL


def main() -> None:
    """Run every method and every training and write both files.

    Raises:
        PlumblineError: a recorded number has moved and NUMERICS has not.
    """
    torch.set_num_threads(1)
    fresh = {method: losses(method) for method in ALL}
    trained = {training: curves(training) for training in TRAININGS}
    before = load_all() if FILE.exists() else {"numerics": None, "losses": {}}
    gaps = {method: gap(fresh[method], old) for method, old in before["losses"].items() if method in fresh}
    gaps |= {name: apart(trained[name], old) for name, old in before.get("trainings", {}).items() if name in trained}
    for name, moved in gaps.items():
        if not moved <= TOLERANCES.get(name, TOLERANCE) and before["numerics"] == NUMERICS:
            raise PlumblineError(
                f"the losses of {name} have moved by {moved:.2g}, but NUMERICS is still {NUMERICS}; if that is "
                "meant, bump NUMERICS in src/plumbline/__init__.py first, so that old runs are known to be old"
            )
    atomic_write_text(
        FILE, f'{{"numerics": {NUMERICS}, "losses": {{\n{_lines(fresh)}\n}}, "trainings": {{\n{_lines(trained)}\n}}}}\n'
    )
    classes = code_classes.record(
        [*fresh, *trained], {name: moved <= TOLERANCES.get(name, TOLERANCE) for name, moved in gaps.items()}
    )
    print(f"{len(fresh)} methods, {len(trained)} trainings -> {FILE}\n{len(classes)} components -> {code_hash.CLASSES}")


def _lines(golden: dict[str, Any]) -> str:
    return ",\n".join(f'  "{name}": {canonical_json(values)}' for name, values in golden.items())


if __name__ == "__main__":
    run(main)

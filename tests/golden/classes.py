"""Which hashes of a component's code are one class: those under which the golden losses are the same.

A run's identity holds the class of each of its components (`plumbline.specs.code`). After a refactor, recording shows
that every golden method that uses the component still has its losses, and the new hash joins the class of the one
before: nothing is retrained. After a change that moves losses, and for a component that no golden method uses, the new
hash is a class of its own.

What this cannot see is a change of less than the tolerance, and one in an option that no golden method sets.
"""

from __future__ import annotations

import json
from pathlib import Path

from plumbline.files import atomic_write_text, canonical_json
from plumbline.specs import code
from plumbline.specs.components import SLOTS, available, folder
from plumbline.specs.spec import ModelSpec
from tests.golden.runs import OPTIMIZER, SCHEDULE
from tests.model.methods import overlay

#: Component -> hash -> class; the hash that was recorded last comes last.
Classes = dict[str, dict[str, str]]


def used_by(method: str) -> dict[str, Path]:
    """The components that a golden run chooses, ``<folder>.<component>``, with their files; installed ones left out."""
    spec = ModelSpec.from_dict(overlay(method))
    chosen = {slot: spec.slot(slot).name for slot in SLOTS} | {"optimizer": OPTIMIZER.name, "schedule": SCHEDULE.name}
    files = {(kind, name): Path(available(kind)[name]) for kind, name in chosen.items()}
    return {f"{folder(kind)}.{name}": path for (kind, name), path in files.items() if path.is_relative_to(code.PACKAGE)}


def recorded_again(before: Classes, present: dict[str, str], proven: set[str]) -> Classes:
    """The classes after a recording. No hash ever leaves them.

    Args:
        before: as they are recorded.
        present: the hash of each component that golden methods use, as its code is now.
        proven: those of them whose golden losses are all as recorded.
    """
    after = {component: dict(classes) for component, classes in before.items()}
    for component, found in present.items():
        classes = after.setdefault(component, {})
        last = list(classes.values())[-1:]
        own = classes.pop(found, None)  # and put last again
        joined = last[0] if last and component in proven else found
        classes[found] = joined if own is None else own
    return after


def record(methods: list[str], same: dict[str, bool]) -> Classes:
    """Write down the present hashes of all components that `methods` use.

    Args:
        same: whether a method's losses are those that were recorded. A method that had none is not among them: it says
            nothing about the code that it shares with others.
    """
    files = {method: used_by(method) for method in methods}
    paths = {component: path for used in files.values() for component, path in used.items()}
    present = {component: code.tree_hash(code.component_files(path)) for component, path in paths.items()}
    seen = {component: [same[method] for method in same if component in files[method]] for component in present}
    proven = {component for component, verdicts in seen.items() if verdicts and all(verdicts)}
    classes = recorded_again(read(), present, proven)
    lines = ",\n".join(f'  "{component}": {_ordered(classes[component])}' for component in sorted(classes))
    atomic_write_text(code.CLASSES, f"{{\n{lines}\n}}\n")
    return classes


def read() -> Classes:
    """As recorded, in the order of recording."""
    return json.loads(code.CLASSES.read_text(encoding="utf-8"))


def _ordered(classes: dict[str, str]) -> str:
    """JSON that keeps the order, which canonical JSON does not."""
    return "{" + ", ".join(f"{canonical_json(found)}: {canonical_json(to)}" for found, to in classes.items()) + "}"

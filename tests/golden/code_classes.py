"""Which hashes of a component's code are one class: those under which the golden losses are the same.

A run's identity holds the class of each of its components (`plumbline.specs.code_hash`). After a refactor, recording
shows that every golden run that uses the component (a method, or one of `trainings`) still has its numbers, and the new
hash joins the class of the one before: nothing is retrained. After a change that moves numbers, and for a component
that no golden run uses, the new hash is a new class.

What this cannot see, and gives the old class nevertheless:

- a change of less than the tolerance;
- one in an option, or in a value of an option, that no golden run sets. Every value that a run of a study chooses is
  set by one, except for numbers: theirs are of another size;
- one that half precision alone feels. Golden runs are float32, the studies' runs at mini and paper bfloat16: `widen`
  does nothing to float32, so a component that loses it joins the old class though its bfloat16 numbers move. Those
  differ from machine to machine by more than any useful tolerance, so none are recorded. Whoever edits where a
  component widens, casts or leaves autocast gives each hash that recording added to `code_classes.json` itself for a
  class, by hand (recording again leaves it so), or bumps NUMERICS where the code is shared;
- one in what an intervention only counts or reports, or in which held-out sequences it reads;
- one that is felt under several ranks, or on a GPU, alone.
"""

from __future__ import annotations

import json
from pathlib import Path

from plumbline.core.files import atomic_write_text, canonical_json
from plumbline.specs import code_hash
from plumbline.specs.components import SLOTS, available, folder
from plumbline.specs.spec import ModelSpec
from tests.golden import trainings
from tests.golden.method_runs import OPTIMIZER, SCHEDULE
from tests.model.transfer_methods import overlay

#: Component -> hash -> class; the hash that was recorded last comes last.
Classes = dict[str, dict[str, str]]


def used_by(golden: str) -> dict[str, Path]:
    """The components that a golden run chooses, ``<folder>.<component>``, with their files; installed ones left out."""
    if golden not in trainings.TRAININGS:
        model = ModelSpec.from_dict(overlay(golden))
        chosen = [("optimizer", OPTIMIZER.name), ("schedule", SCHEDULE.name)]
    else:
        run = trainings.spec(golden)
        model = run.model
        chosen = [("optimizer", run.optimizer.name), ("schedule", run.schedule.name)]
        chosen += [("intervention", entry["name"]) for entry in run.interventions]
        chosen += [("probe", probe.name) for probe in run.probes]
    chosen += [(slot, model.slot(slot).name) for slot in SLOTS]
    files = {(kind, name): Path(available(kind)[name]) for kind, name in chosen}
    return {
        f"{folder(kind)}.{name}": path for (kind, name), path in files.items() if path.is_relative_to(code_hash.PACKAGE)
    }


def update_classes(before: Classes, present: dict[str, str], proven: set[str]) -> Classes:
    """The classes after a recording. No hash ever leaves them.

    Args:
        before: as they are recorded.
        present: the hash of each component that golden runs use, as its code is now.
        proven: those of them whose golden numbers are all as recorded.
    """
    after = {component: dict(classes) for component, classes in before.items()}
    for component, digest in present.items():
        classes = after.setdefault(component, {})
        last = list(classes.values())[-1:]
        own = classes.pop(digest, None)  # and put last again
        joined = last[0] if last and component in proven else digest
        classes[digest] = joined if own is None else own
    return after


def record(golden: list[str], same: dict[str, bool]) -> Classes:
    """Write down the present hashes of all components that `golden` runs use.

    Args:
        same: whether a run's numbers are those that were recorded. One that had none is not among them: it states
            nothing about the code that it shares with others.
    """
    files = {name: used_by(name) for name in golden}
    paths = {component: path for used in files.values() for component, path in used.items()}
    present = {component: code_hash.tree_hash(code_hash.component_files(path)) for component, path in paths.items()}
    matches = {component: [same[name] for name in same if component in files[name]] for component in present}
    proven = {component for component, verdicts in matches.items() if verdicts and all(verdicts)}
    classes = update_classes(read(), present, proven)
    lines = ",\n".join(f'  "{component}": {_write_json(classes[component])}' for component in sorted(classes))
    atomic_write_text(code_hash.CLASSES, f"{{\n{lines}\n}}\n")
    return classes


def read() -> Classes:
    """As recorded, in the order of recording."""
    return json.loads(code_hash.CLASSES.read_text(encoding="utf-8"))


def _write_json(classes: dict[str, str]) -> str:
    """JSON that keeps the order, which canonical JSON does not."""
    return "{" + ", ".join(f"{canonical_json(digest)}: {canonical_json(to)}" for digest, to in classes.items()) + "}"

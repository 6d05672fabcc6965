"""Table 5: the baseline once more on a second hardware profile, task by task.

Source: transfer study, appendix D and Table 5. A preset without a second device has a stand-in, named in the table.
"""

from __future__ import annotations

import math

from plumbline.results.published import Published, printed
from plumbline.results.runs import AGGREGATE, RunFrames
from plumbline.results.table import CONTEXT, Cell, Column, Table, absent, context, fixed, notes_of, number
from plumbline.specs.sheet import Study

SCALE, ARM = "base", "second_hardware"

COLUMNS = [
    Column(name="task", header="Task", kind="label"),
    Column(name="primary", header="Primary", kind="reproduced", show=fixed(4)),
    Column(name="primary_published", header="Primary", kind="published"),
    Column(name="second", header="Second", kind="reproduced", show=fixed(4)),
    Column(name="second_published", header="Second", kind="published"),
    Column(name="delta", header="Δ", kind="reproduced", show=fixed(4, sign=True)),
    Column(name="delta_published", header="Δ", kind="published"),
    Column(name="higher", header="higher", kind="reproduced"),
    Column(name="primary_profile", header="primary profile", kind="fact", readable=False),
    Column(name="second_profile", header="second profile", kind="fact", readable=False),
    Column(name="stand_in", header="stand-in", kind="fact", readable=False),
    *CONTEXT,
]


def table5(frames: RunFrames, study: Study, published: Published) -> Table:
    """Twelve tasks, their mean, and the validation loss, on both profiles."""
    reference = study.sheet["noise_floor"]["reference"]
    keys = [_key(frames, reference), _key(frames, ARM)]
    words = [absent([frames.runs.loc[key, "outcome"]]) for key in keys]
    profiles = [_profile(frames, study, key) for key in keys]
    stand_in = _stand_in(study)
    print5 = published.table("table5", key="task")
    scores = [frames.task_scores(key) for key in keys]
    tasks = list(print5.index[print5.index != AGGREGATE])
    tasks += [task for task in scores[0].index if task not in tasks]
    measured = [(task, *(float(side.get(task, math.nan)) for side in scores)) for task in tasks]
    for name, column in ((AGGREGATE, "climb_avg"), ("validation_loss", "validation_loss")):
        measured.append((name, *(float(frames.runs.loc[key, column]) for key in keys)))
    rows = []
    for task, first, second in measured:
        delta = second - first
        higher = "equal" if delta == 0 else "primary" if delta < 0 else "second"
        word = words[0] if math.isnan(first) else words[1]
        rows.append(
            {
                "task": Cell(task),
                "primary": number(first, words[0], keys[:1]),
                "primary_published": Cell(printed(print5, task, "primary")),
                "second": number(second, words[1], keys[1:]),
                "second_published": Cell(printed(print5, task, "a100")),
                "delta": number(delta, word, keys),
                "delta_published": Cell(printed(print5, task, "delta")),
                "higher": Cell(word if math.isnan(delta) else higher, tuple(keys)),
                "primary_profile": Cell(profiles[0], (keys[0],)),
                "second_profile": Cell(profiles[1], (keys[1],)),
                "stand_in": Cell(stand_in or "none"),
            }
            | context(study, SCALE, frames)
        )
    return Table(
        name="table5",
        title=f"The baseline at {study.scale_label(SCALE)} on two profiles.",
        study=study.name,
        preset=study.preset,
        key="task",
        columns=COLUMNS,
        rows=rows,
        notes=[
            f"Primary: {profiles[0]}. Second: {profiles[1]}. Published: the document's accelerator and an A100.",
            *([f"Stand-in: there is no second device here; {stand_in}."] if stand_in else []),
            *notes_of(study, frames, scores=True),
        ],
        published=published.shown("table5"),
    )


def _key(frames: RunFrames, method: str) -> str:
    mine = frames.select(SCALE, [method]).sort_values("seed")
    return str(mine.index[0])


def _stand_in(study: Study) -> str:
    """What the arm changes under this preset, in words; nothing where the spec is the baseline's own."""
    change = study.sheet["arms"][ARM].get(study.preset, {})
    parts = [f"{part}.{name} = {value}" for part, values in change.items() for name, value in values.items()]
    return f"the second profile is the same run with {', '.join(parts)}" if parts else ""


def _profile(frames: RunFrames, study: Study, key: str) -> str:
    manifest = frames.manifests.get(key)
    precision = study.runs[key].spec.train.precision
    return f"{manifest['device'] if manifest else 'no run yet'}, {precision}"

"""Makes Table 5: the baseline once more on a second hardware profile, task by task.

Source: transfer study, appendix D and Table 5. Which devices they are is read from the manifests. A difference between
runs that were made on one device, or of which one is a stand-in, is none between devices: its cells say so instead.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from plumbline.core.run_files import MISSING
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import make_table, number_column, text_column
from plumbline.results.tables.table import (
    CONTEXT,
    Cell,
    Column,
    Table,
    context_cells,
    list_published_cells,
    make_published_column,
    missing_word,
    number_cell,
    require_reference,
)
from plumbline.specs.study_config import Study

from ..hardware_comparison import (
    ARM,
    DIFFERENT,
    SAME,
    UNKNOWN,
    HardwareComparison,
    compare_hardware,
    describe_device,
    stand_in,
)
from ..headline_runs import BASE
from ..task_differences import list_printed_tasks

COLUMNS = [
    Column(name="task", header="Task", kind="label", narrow=True),
    number_column("value_primary_hardware", "Primary", ".4f", narrow=True),
    make_published_column("value_primary_hardware", "Primary"),
    number_column("value_second_hardware", "Second", ".4f", narrow=True),
    make_published_column("value_second_hardware", "Second"),
    number_column("second_minus_primary", "Δ", "+.4f", narrow=True),
    make_published_column("second_minus_primary", "Δ", narrow=True),
    text_column("device_with_higher_value", "higher on"),
    Column(name="primary_device", header="primary device", kind="fact", readable=False),
    Column(name="second_device", header="second device", kind="fact", readable=False),
    Column(name="same_or_different_devices", header="same or different devices", kind="fact", readable=False),
    Column(name="second_hardware_simulated_by", header="second hardware simulated by", kind="fact", readable=False),
    *CONTEXT,
]

#: Our columns, and the printed table's names of them.
PRINTED = {"value_primary_hardware": "primary", "value_second_hardware": "a100", "second_minus_primary": "delta"}


class HardwareRun:
    """The baseline's run on one profile; a study that has no such run has a profile without values."""

    def __init__(self, frames: RunFrames, study: Study, method: str) -> None:
        self.key = frames.key(BASE, method)
        self.used = () if self.key is None else (self.key,)
        self.facts: dict[str, Any] = {} if self.key is None else frames.runs.loc[self.key].to_dict()
        self.word = missing_word([self.facts.get("outcome", MISSING)])
        self.scores = pd.Series(dtype=float) if self.key is None else frames.task_scores(self.key)
        self.name = "no such run" if self.key is None else _device(frames, study, self.key)

    def value(self, name: str) -> float:
        """Accuracy on a task, or a number of the run itself; NaN if there is none."""
        return float(self.scores.get(name, self.facts.get(name, math.nan)))


def table5(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """Twelve tasks, their mean, and the validation loss, on both profiles."""
    primary, second = HardwareRun(frames, study, require_reference(study, "table5")), HardwareRun(frames, study, ARM)
    change, compared = stand_in(study), compare_hardware(frames, study, primary.key, second.key)
    print5 = published.table("table5", key="task")
    tasks = list_printed_tasks(study, published)
    tasks += [task for task in primary.scores.index if task not in tasks]
    sources = {task: task for task in tasks} | {frames.average: "average", "validation_loss": "validation_loss"}
    both = (*primary.used, *second.used)
    rows = []
    for task, source in sources.items():
        first, other = primary.value(source), second.value(source)
        delta = other - first
        higher = "equal" if delta == 0 else "primary" if delta < 0 else "second"
        word = primary.word if math.isnan(first) else second.word
        if not math.isnan(delta) and not compared.evidence:
            delta, word = math.nan, compared.word
        rows.append(
            {
                "task": Cell(task),
                "value_primary_hardware": number_cell(first, primary.word, primary.used),
                "value_second_hardware": number_cell(other, second.word, second.used),
                "second_minus_primary": number_cell(delta, word, both),
                "device_with_higher_value": Cell(word if math.isnan(delta) else higher, both),
                "primary_device": Cell(primary.name, primary.used),
                "second_device": Cell(second.name, second.used),
                "same_or_different_devices": Cell(compared.word, both),
                "second_hardware_simulated_by": Cell(change or "none"),
            }
            | list_published_cells(print5, task, PRINTED)
            | context_cells(study, BASE, frames)
        )
    return make_table(
        "table5",
        f"The baseline at {study.scale_label(BASE)} {_describe_devices(compared)}.",
        study,
        key="task",
        columns=COLUMNS,
        rows=rows,
        notes=[
            f"Primary: {primary.name}. Second: {second.name}. Published: the paper's accelerator and an A100.",
            *_note_on_devices(compared, change),
            *([f"Stand-in: the second hardware is the same run with {change}."] if change else []),
            *([] if second.key else [f"This study has no run {ARM}."]),
        ],
        published=published.format_path("table5"),
        scores=frames,
    )


def _describe_devices(compared: HardwareComparison) -> str:
    """What the title says that the two runs were made on."""
    if compared.word == SAME:
        return "twice on the same device"
    return f"on two devices: {compared.why}" if compared.word == DIFFERENT else "on two profiles"


def _note_on_devices(compared: HardwareComparison, change: str) -> list[str]:
    """What keeps the table from being about devices."""
    none = "no difference between devices is shown and no claim about them tested"
    if compared.word == SAME:
        return [f"Same device: {compared.why}. The second is {'a stand-in' if change else 'a repeat'}; {none}."]
    return [f"Device not known: {compared.why}; {none}."] if compared.word == UNKNOWN else []


def _device(frames: RunFrames, study: Study, key: str) -> str:
    """Where a run was made and at which precision."""
    manifest = frames.manifests.get(key)
    if manifest is None:
        return f"no run yet, {study.runs[key].spec.train.precision}"
    return f"{describe_device(manifest)}, {manifest['spec']['train']['precision']}"

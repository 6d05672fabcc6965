"""How much there is to evaluate: items and tokens of a suite, at a preset's limit and a run's context."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from math import log2
from pathlib import Path

from plumbline.specs import suites


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskSize:
    """`items` of the published split. Each is read in `rows` passes (answers of one token share one) of `text` bytes,
    the question repeated for each answer."""

    items: int
    rows: float
    text: int


#: Items from the data sets' cards. Rows and bytes were counted on 300 items a task as the harness asks them, those of
#: race and truthfulqa_mc2 (whose prompt has six solved questions) are estimates from the cards.
TASK_SIZES = {
    "piqa": TaskSize(items=1838, rows=2, text=156),
    "arc_challenge": TaskSize(items=1172, rows=4, text=177),
    "arc_easy": TaskSize(items=2376, rows=4, text=156),
    "hellaswag": TaskSize(items=10042, rows=4, text=197),
    "winogrande": TaskSize(items=1267, rows=2, text=104),
    "social_iqa": TaskSize(items=1954, rows=3, text=132),
    "mmlu": TaskSize(items=14042, rows=1, text=420),
    "openbookqa": TaskSize(items=500, rows=4, text=71),
    "boolq": TaskSize(items=3270, rows=2, text=638),
    "race": TaskSize(items=1045, rows=4, text=1900),
    "lambada_openai": TaskSize(items=5153, rows=1, text=326),
    "truthfulqa_mc2": TaskSize(items=817, rows=7, text=850),
}


def suite_size(suite: str, limit: int, items: Path, context: int, vocabulary: int) -> tuple[int, float] | None:
    """Items of a suite, and the tokens that are read for them. None: a task's size is not known.

    Args:
        limit: items a task; 0 means all.
        items: the preset's folder of items; where it has been made, its index says how many there are.
    """
    number, tokens = 0, 0.0
    made = _made(items / "items.json")
    for task in suites.suite(suite):
        if task.name not in TASK_SIZES:
            return None
        size = TASK_SIZES[task.name]
        there = made.get(task.name, size.items)
        here = min(limit, there) if limit else there
        number += here
        tokens += here * size.rows * min(context, size.text / bytes_per_token(vocabulary))
    return number, tokens


def bytes_per_token(vocabulary: int) -> float:
    """Bytes of English text in a token of byte-level BPE, roughly: 3.1 at 4,096 entries (counted), 4.4 at 50,000."""
    return 3.1 + 0.36 * (log2(vocabulary) - 12)


@cache
def _made(index: Path) -> dict[str, int]:
    if not index.exists():
        return {}
    return {task: entry["n"] for task, entry in json.loads(index.read_text(encoding="utf-8")).items() if "n" in entry}

"""Finds what the numbers of a row or column are, and what shows it: its name, their signs and units.

Only lines of one type compete for a rank, and only numbers of one type and unit are added, subtracted or averaged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plumbline.audit.paper.names import MEAN, OTHER_MEAN, is_change, is_named_only, is_spread, kind_of, says
from plumbline.audit.paper.printed_cell import PrintedCell

DATE, UNCERTAINTY, RANK, CHANGE, DIFFERENCE = "date", "uncertainty", "rank", "percent change", "difference"
AVERAGE, SUM, COUNT, BASELINE, OURS, VALUE = "average", "sum", "count", "baseline", "ours", "value"

#: Types whose numbers are one method's, task's or setting's own: they can be the best of their line.
LEVELS = frozenset((COUNT, BASELINE, OURS, VALUE))

#: Words of a name that is a baseline's, and of one's own method.
BASELINE_WORDS, OURS_WORDS = "baseline|control|reference|vanilla", "ours|our|proposed"

#: Words of a measure of which less is better, and of one of which more is.
_LOWER = (
    "loss|forgetting|forget|nll|ppl|perplexity|error|err|wer|cer|mse|mae|rmse|fid|latency|time|seconds|flops|params|"
    "memory|ece|brier|bpb|bpc|cost|toxicity"
)
_HIGHER = "acc|accuracy|f1|bleu|rouge|auc|auroc|map|recall|precision|score|em|psnr|ssim|iou|miou|throughput"

YEAR = re.compile("19[5-9][0-9]|20[0-3][0-9]")
_UNIT_IN_NAME = re.compile(
    r"[(\[,]\s*(?:in\s+)?(%|pp|ms|s|sec|min|h|hours|days|[KMGTB]|[KMGT]i?B|µs|us|USD|\$)\s*[)\]]?$"
)


#: Units of time and of memory: of one measure in two of them, a number is no multiple of the other.
SCALED_UNITS = re.compile("[KMGT]i?B|[mnµμu]?s|sec|min|h|hours?|hrs?|days?")


@dataclass(frozen=True, slots=True)
class LineType:
    """The type of a line, and what shows it; `bracketed`: that is only that its numbers stand in brackets."""

    type: str
    evidence: str
    bracketed: bool = False


def find_type(name: str, cells: Sequence[PrintedCell], is_small: Callable[[], bool]) -> LineType:
    """Find the type of a row or column.

    Args:
        cells: its cells with a number.
        is_small: whether its numbers are small beside the others, where its name alone does not decide.
    """
    numbers = [cell.number or "" for cell in cells]
    if numbers and all(map(YEAR.fullmatch, numbers)):
        return LineType(DATE, "its numbers are years")
    name_evidence = f"its name {name!r}"
    if kind_of(name) == DATE:
        return LineType(DATE, name_evidence)
    for type_, is_of_type in ((UNCERTAINTY, is_spread), (DIFFERENCE, is_change)):
        answer = is_of_type(name)
        if answer or (answer is None and is_small()):
            if type_ is DIFFERENCE and (kind_of(name) == "%" or any(cell.unit == "%" for cell in cells)):
                type_ = CHANGE
            return LineType(type_, name_evidence if answer else f"{name_evidence} and the size of its numbers")
    if len(cells) > 1 and all(cell.text.startswith("(") for cell in cells):
        return LineType(UNCERTAINTY, "each of its numbers stands in brackets", bracketed=True)
    if len(cells) > 1 and all(cell.signed for cell in cells) and any("+" in cell.text for cell in cells):
        return LineType(CHANGE if cells[0].unit == "%" else DIFFERENCE, "each of its numbers has a sign")
    if says(name, "rank|ranking") and all(number.isdigit() for number in numbers):
        return LineType(RANK, name_evidence)
    bare = _UNIT_IN_NAME.sub("", name)
    if is_named_only(bare, f"{MEAN}|{OTHER_MEAN}"):
        return LineType(AVERAGE, name_evidence)
    if is_named_only(bare, "total|sum"):
        return LineType(SUM, name_evidence)
    for type_, pattern in ((BASELINE, BASELINE_WORDS), (OURS, OURS_WORDS)):
        if says(name, pattern):
            return LineType(type_, name_evidence)
    if kind_of(name) == COUNT:
        return LineType(COUNT, name_evidence)
    return LineType(VALUE, "nothing shows another type")


def find_unit(name: str) -> str:
    """The unit that a name ends in: "M" of "Params (M)", or nothing."""
    match = _UNIT_IN_NAME.search(name.strip())
    return match[1] if match else ""


def find_direction(name: str) -> int:
    """1 where a name says that more is better, -1 where less is, 0 where it says neither."""
    if "↓" in name or "↑" in name:
        return -1 if "↓" in name else 1
    # "ms" only as a unit: MS-COCO is a set of pictures.
    lower, higher = says(name, _LOWER) or find_unit(name) in ("ms", "s", "sec"), says(name, _HIGHER)
    return 0 if lower == higher else -1 if lower else 1

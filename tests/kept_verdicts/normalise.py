"""Takes out of what an input gave what truly changes from run to run. This is the whole list:

- the temporary folder: `<folder>`;
- hashes of 12 hexadecimal digits or more (of files, ledgers, commits, specs, machines), and of 8 at the end of names:
  `<hash>`. Those of a ledger's entries hold the time at which they were made, those of a spec the code that it runs;
- times: `<time>`; `<when>` where the table of `plumbline log` has one; `<day>` for today (or yesterday);
- the version of Plumbline: `<version>`;
- JSON is laid out in lines, and numbers have eight significant digits: the last ones depend on the processor, and those
  of what is found by steps (a median of a gain after stopping) have no more;
- where trainers are run, durations: `<seconds>`, and `<ratio>` of those of two arms, with what hangs on how wide they
  are: the padding of cells in a page's table, and where the lines break that the console has below a decision's table.
"""

from __future__ import annotations

import json
import re
import time
from importlib.metadata import version
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

DIGITS, WIDTH = 8, 118
#: Keys of JSON whose values are durations.
MEASURED = dict.fromkeys(
    ("seconds", "baseline_seconds", "candidate_seconds", "bank_seconds", "seconds_at_most"), "<seconds>"
)
_LONG = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[-+]?\d+)?(?![\w.])")
_ALWAYS = (
    (r"\b(?=[0-9a-f]*[a-f])[0-9a-f]{12,64}\b|\b\d{64}\b", "<hash>"),
    (r"(?<=[\w>])-[0-9a-f]{8}(?!\w)", "-<hash>"),
    (r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>"),
    (r"\b\d\d-\d\d \d\d:\d\d\b", "<when>"),
)
_TRAINED = (
    (r"\btook(\s+)[\d.,]+(\s+)times", r"took\1<ratio>\2times"),
    (r"\b\d+(?:\.\d+)? (?:s|ms|seconds?)\b", "<seconds>"),
)


def normalise(text: str, folder: Path, *, trains: bool = False) -> str:
    """Normalise a text that was printed or written below a temporary folder."""
    text = text.replace(str(folder / "here"), "<folder>").replace(str(folder), "<folder>")
    text = text.replace(version("plumbline-lm"), "<version>")
    days = "|".join(time.strftime("%Y-%m-%d", time.gmtime(time.time() - each * 86400)) for each in (0, 1))
    for pattern, becomes in (*_ALWAYS, (rf"\b(?:{days})\b", "<day>"), *(_TRAINED if trains else ())):
        text = re.sub(pattern, becomes, text)
    text = _LONG.sub(lambda match: _shorten(match[0]), text)
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(_unfold(_without_seconds(lines)) if trains else lines)


def normalise_json(text: str, folder: Path, *, trains: bool = False) -> str:
    """Lay out and normalise a text that is JSON; empty where it is none."""
    if not text.lstrip().startswith(("{", "[")):
        return ""
    try:
        value = json.loads(text)
    except ValueError:
        return ""
    return normalise(_lay_out(_round(value, trains)), folder, trains=trains)


def _round(value: Any, trains: bool) -> Any:
    if isinstance(value, dict):
        return {
            key: MEASURED[key] if trains and key in MEASURED and each is not None else _round(each, trains)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_round(each, trains) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _lay_out(value: Any, indent: str = "", room: int = WIDTH) -> str:
    """JSON in lines: what fits into one stands in one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= room or not isinstance(value, (dict, list)) or not value:
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        parts = [
            f"{deeper}{json.dumps(key, ensure_ascii=False)}: {_lay_out(each, deeper)}" for key, each in value.items()
        ]
    else:
        parts = [deeper + _lay_out(each, deeper) for each in value]
    first, last = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return f"{first}\n" + ",\n".join(parts) + f"\n{indent}{last}"


def _shorten(number: str) -> str:
    digits = re.sub(r"e.*|\D", "", number).lstrip("0")
    return number if len(digits) <= DIGITS else f"{float(number):.{DIGITS}g}"


def _without_seconds(lines: list[str]) -> list[str]:
    """Lines of Markdown whose tables have cells without padding, and no duration or ratio of durations in them."""
    result, place = [], None
    for line in lines:
        if not line.startswith("|"):
            place = None
            result.append(line)
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if "seconds" in cells:
            place = cells.index("seconds")
        elif place is not None and place < len(cells) and re.fullmatch(r"[\d.]+", cells[place]):
            cells[place] = "<seconds>"
        elif cells[0] == "time, median":
            cells[-1] = "<ratio>"
        result.append("|" + "|".join(re.sub(r"-{2,}", "--", cell) for cell in cells) + "|")
    return result


def _unfold(lines: list[str]) -> list[str]:
    """The console's lines with each paragraph that tells of seconds in one."""
    result = []
    for blank, group in groupby(lines, key=lambda line: not line):
        paragraph = list(group)
        is_folded = not blank and any(" of it, <seconds>" in " ".join(pair) for pair in pairwise(paragraph))
        result += [" ".join(paragraph)] if is_folded else paragraph
    return result

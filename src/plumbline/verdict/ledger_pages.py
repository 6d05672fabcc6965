"""Binds pages to the ledger: each page carries the ledger's length and head, and is held against the file.

So a tail that was cut, or a chain that was computed anew, is noticed, which the file alone cannot tell.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from plumbline.core.append_only_log import NO_HEAD
from plumbline.core.errors import PlumblineError
from plumbline.core.foreign_rows import read_ordinary_text
from plumbline.verdict.formatting import counted, name
from plumbline.verdict.ledger import Ledger

#: Bytes of a page that is read, at most.
PAGE_BYTES = 64 * 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerState:
    """The ledger's state that a page states: how many entries it had, the hash of its last line, and the ledger's file
    name.
    """

    length: int
    head: str
    name: str


def statement(ledger: Ledger, beside: Path) -> str:
    """Write the line that binds a page in the folder `beside` to the ledger; `stated` reads it."""
    place = os.path.relpath(ledger.path, beside)
    return f"Ledger: `{place}`, length {len(ledger)}, head `{ledger.head}`"


def in_metrics(ledger: Ledger, baseline: str, metric: str) -> str:
    """Say in which metrics the tries against a baseline were that count in this one."""
    made = ledger.by_metric(baseline, metric)
    if set(made) <= {metric}:
        return f"in {name(metric)}"
    return f"({', '.join(f'{number} in {name(one)}' for one, number in made.items())})"


def tries_in(ledger: Ledger, baseline: str, metric: str) -> str:
    """Say what p is multiplied by and where that stands: the tries in the ledger, or those announced in it."""
    tries = ledger.tries(baseline, metric)
    announced = " announced" if ledger.planned(baseline, metric) > ledger.made(baseline, metric) else ""
    return f"{counted(tries, 'try', 'tries')}{announced} in {name(ledger.path.name)}"


def stated(page: Path) -> LedgerState | None:
    """Read the ledger's state that a page states; None if there is no page, or it states none."""
    if not os.path.lexists(page):
        return None
    text = read_ordinary_text(page, PAGE_BYTES)
    found = re.search(r"^Ledger: `(.+)`, length (\d+), head `([0-9a-f]{64})`$", text, flags=re.M)
    return found and LedgerState(name=found[1], length=int(found[2]), head=found[3])


def compare(ledger: Ledger, page: Path, said: LedgerState) -> int:
    """Count the entries that were added to the ledger since the page was made.

    Raises:
        PlumblineError: the ledger is not the page's with entries at its end: its tail was cut, or it was written anew.
    """
    if len(ledger) < said.length:
        raise PlumblineError(
            f"{ledger.path} has {len(ledger)} entries, but {page} was made when it had {said.length}: it was "
            "truncated, "
            f"or it is another ledger. Restore the file that had them (line {said.length}: hash {said.head[:12]})"
        )
    there = (NO_HEAD, *ledger.hashes)[said.length]
    if there != said.head:
        raise PlumblineError(
            f"{ledger.path}, line {said.length}: the hash is {there[:12]}, but {page} says {said.head[:12]}: the "
            "ledger was rewritten, or is another one. Restore the one that the page was made with"
        )
    return len(ledger) - said.length

"""Keeps the ledger of everything that was tried, one line an entry, each line bound to the one before by its hash.

An entry is one look: this method's numbers (or spec) beside this baseline's, in this metric, by this test. The same
look again is the same entry. What a p-value is corrected for is the number of different entries against a baseline, so
that trying twenty costs twenty, whether in one file or over a year; another metric of the same runs is another try.
Where the metric of the first entry was named before there were values (a spec that is about to be trained, or
`PRIMARY`), it is the primary one, and other metrics do not add to its tries. Announcing more tries than before is
written down too: the entry again with another `planned_tries`, a line but no further try. What was decided stands next
to it (`verdict`, `sentence`), and is not a try.

The file is a `plumbline.core.append_only_log`. What it alone cannot tell, a cut tail or a chain that was computed anew,
is noticed by its pages: each carries the ledger's length and head, and is held against the file.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline.core.append_only_log import NO_HEAD, AppendOnlyLog, LogContent
from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, sha256_text
from plumbline.core.foreign_rows import read_ordinary_text
from plumbline.core.formats import format_count
from plumbline.verdict.formatting import quote

#: The kind of an entry that names the primary metric against a baseline, and is not a try.
PRIMARY = "primary"
#: The kind of a try whether a gain goes on at other budgets, which moves no baseline.
BUDGETS = "budgets"
#: The kind of a try of one of many changes in one design; its name is the change's, `IN_SCREEN`, and the screen's.
SCREEN, IN_SCREEN = "screen", " in "
#: Bytes of a page that is read, at most.
PAGE_BYTES = 64 * 2**20
#: Kinds whose metric was named before there were values.
_BEFOREHAND = (PRIMARY, "spec", "try", BUDGETS, SCREEN)


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerEntry:
    """One entry of the ledger: a look at a method's numbers next to a baseline's, in one metric, by one test.

    Attributes:
        kind: what was tried: "numbers", "search", "spec", "try", `BUDGETS` or `SCREEN`; or `PRIMARY`.
        name: as a reader knows it; a part of what makes two entries different.
        fingerprint: hash of the numbers, or of the spec, that were examined.
        baseline: what it was compared with, by name: tries are counted against it.
        metric: in what; tries in another count too, unless this one is the primary one.
        test: what decided; another test of the same numbers is another try.
        planned_tries: how many tries were announced, none if 0; not a part of what makes two entries different.
        commit: of the candidate, where it is one; not a part of what makes two entries different.
        verdict, sentence, at: of an entry that says what was decided of a try: how, in a sentence, and when (UTC).
        runs: of such an entry, how many runs the bank had then.
    """

    kind: str
    name: str
    fingerprint: str
    baseline: str
    metric: str
    test: str
    planned_tries: int = 0
    commit: str = ""
    verdict: str = ""
    sentence: str = ""
    at: str = ""
    runs: int = 0

    @property
    def identity(self) -> tuple[str, ...]:
        """Everything that makes two entries different; equal ones are one try."""
        parts = (self.kind, self.name, self.fingerprint, self.baseline, self.metric, self.test)
        return (*parts, self.verdict, self.sentence) if self.verdict else parts

    @property
    def page_name(self) -> str:
        """The name of its page."""
        return self.name.partition(IN_SCREEN)[2] if self.kind == SCREEN else self.name

    @property
    def is_try(self) -> bool:
        """Whether it counts as a try: what was decided of one, and the name of a primary metric, do not."""
        return not self.verdict and self.kind != PRIMARY

    @property
    def family(self) -> tuple[str, str]:
        """The baseline and the metric."""
        return (self.baseline, self.metric)


#: What stands in lines alone that say it, and in every line.
_SOMETIMES = ("commit", "verdict", "sentence", "at", "runs")
_NEEDED = tuple(each.name for each in fields(LedgerEntry) if each.name not in _SOMETIMES)


@dataclass(frozen=True)
class Ledger:
    """A ledger as it was read from its file: its entries, and the hash of each line."""

    path: Path
    entries: tuple[LedgerEntry, ...]
    hashes: tuple[str, ...]

    @property
    def head(self) -> str:
        """The hash of the last line; `NO_HEAD` where the ledger is empty."""
        return self.hashes[-1] if self.hashes else NO_HEAD

    def __len__(self) -> int:
        return len(self.entries)

    def count_tries(self, baseline: str, metric: str) -> int:
        """Count what a p-value is multiplied by: different entries against the baseline, or announced tries.

        The larger number counts. Numbers that were announced count from the first of them on, and stay: a plan is never
        made smaller. In the primary metric, entries in other metrics do not count.
        """
        return max(self.count_tries_made(baseline, metric), self.count_planned_tries(baseline, metric))

    def count_tries_made(self, baseline: str, metric: str) -> int:
        """Count the different entries against the baseline that add to the tries in the metric."""
        return len({entry.identity for entry in self._list_counted(baseline, metric)})

    def count_by_metric(self, baseline: str, metric: str) -> dict[str, int]:
        """Count the entries of `count_tries_made` by the metric in which they were, this one first."""
        different = {entry.identity: entry.metric for entry in self._list_counted(baseline, metric)}
        counts = Counter(different.values())
        return {name: counts[name] for name in sorted(counts, key=lambda name: (name != metric, name))}

    def count_planned_tries(self, baseline: str, metric: str) -> int:
        """Find the most tries that were ever announced against the baseline; 0 if none were."""
        return max((entry.planned_tries for entry in self._list_counted(baseline, metric)), default=0)

    def find_primary_metric(self, baseline: str) -> str | None:
        """Name the metric against the baseline that was named before there were values; None if none was."""
        first = next(iter(self._by_baseline.get(baseline, ())), None)
        return first.metric if first is not None and first.kind in _BEFOREHAND else None

    def _list_counted(self, baseline: str, metric: str) -> list[LedgerEntry]:
        is_primary = self.find_primary_metric(baseline) == metric
        tried = [entry for entry in self._by_baseline.get(baseline, ()) if entry.is_try]
        return [entry for entry in tried if not is_primary or entry.metric == metric]

    @cached_property
    def _by_baseline(self) -> dict[str, list[LedgerEntry]]:
        against: dict[str, list[LedgerEntry]] = {}
        for entry in self.entries:
            against.setdefault(entry.baseline, []).append(entry)
        return against


def read(path: Path) -> Ledger:
    """Read a ledger and check every line; empty if there is no file.

    A torn last line is put aside, as by `append`.

    Raises:
        PlumblineError: a line is broken, or does not follow the one before; it is named. Or a torn last line cannot
            be put aside.
    """
    return _make_ledger(path, _open_log(path).read())


def read_unchanged(path: Path) -> tuple[Ledger, int]:
    """Read a ledger and check every line as `read` does, but write nothing: a torn last line stays where it is.

    Returns:
        The ledger, and the number of bytes of the torn line.

    Raises:
        PlumblineError: the file cannot be read, or a line is broken or does not follow the one before.
    """
    content, torn = _open_log(path).read_unchanged()
    return _make_ledger(path, content), torn


def append(path: Path, entries: Sequence[LedgerEntry]) -> Ledger:
    """Append entries that are not there yet, or that announce more tries, and return the ledger as it then is.

    Raises:
        PlumblineError: as `read`; or the file cannot be written or locked. Nothing is appended to a broken ledger.
    """
    with append_provisionally(path, entries) as ledger:
        return ledger


@contextmanager
def append_provisionally(path: Path, entries: Sequence[LedgerEntry]) -> Iterator[Ledger]:
    """Append entries as `append` does, and take them back if the ``with`` block fails: with the page, or not at all.

    The ledger is locked meanwhile, so that the block reads it from what it is given, and not from the file. A process
    that is killed in the block leaves the entries there, which costs a try and hides none.

    Raises:
        PlumblineError: as `append`.
    """
    with _open_log(path).append(lambda content: _make_new_records(_make_ledger(path, content), entries)) as content:
        yield _make_ledger(path, content)


def _make_new_records(ledger: Ledger, entries: Sequence[LedgerEntry]) -> list[dict[str, Any]]:
    """The records of those entries that are not there yet, or that announce more tries."""
    identities = {entry.identity for entry in ledger.entries}
    planned_tries, records = dict[tuple[str, str], int](), list[dict[str, Any]]()
    for entry in entries:
        if entry.family not in planned_tries:
            planned_tries[entry.family] = ledger.count_planned_tries(entry.baseline, entry.metric)
        plan = planned_tries[entry.family]
        if entry.identity not in identities or entry.planned_tries > plan:
            identities.add(entry.identity)
            planned_tries[entry.family] = max(plan, entry.planned_tries)
            records.append({key: value for key, value in asdict(entry).items() if value or key not in _SOMETIMES})
    return records


def fingerprint(value: Any) -> str:
    """Hash a value that was examined, by its canonical JSON."""
    return sha256_text(canonical_json(value))


def _open_log(path: Path) -> AppendOnlyLog:
    return AppendOnlyLog(path=path, noun="ledger", remedy="name another file with --ledger", require=_make_entry)


def _make_ledger(path: Path, content: LogContent) -> Ledger:
    return Ledger(path, tuple(map(_make_entry, content.records)), content.hashes)


def _make_entry(record: Mapping[str, Any]) -> LedgerEntry:
    record = {"planned_tries" if key == "planned" else key: value for key, value in record.items()}  # as it once was
    required_values = {key: record[key] for key in _NEEDED}
    return LedgerEntry(**required_values, **{key: record[key] for key in _SOMETIMES if key in record})


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerState:
    """The ledger's state that a page states: how many entries it had, the hash of its last line, and the ledger's file
    name.
    """

    length: int
    head: str
    name: str


def write_statement(ledger: Ledger, folder: Path) -> str:
    """Write the line that binds a page in the folder `folder` to the ledger; `read_statement` reads it."""
    place = os.path.relpath(ledger.path, folder)
    return f"Ledger: `{place}`, length {len(ledger)}, head `{ledger.head}`"


def describe_metrics(ledger: Ledger, baseline: str, metric: str) -> str:
    """State in which metrics the tries against a baseline were that count in this one."""
    tries = ledger.count_by_metric(baseline, metric)
    if set(tries) <= {metric}:
        return f"in {quote(metric)}"
    return f"({', '.join(f'{number} in {quote(tried_metric)}' for tried_metric, number in tries.items())})"


def describe_tries(ledger: Ledger, baseline: str, metric: str) -> str:
    """State what p is multiplied by and where that stands: the tries in the ledger, or those announced in it."""
    tries = ledger.count_tries(baseline, metric)
    announced = (
        " announced" if ledger.count_planned_tries(baseline, metric) > ledger.count_tries_made(baseline, metric) else ""
    )
    return f"{format_count(tries, 'try', 'tries')}{announced} in {quote(ledger.path.name)}"


def read_statement(page: Path) -> LedgerState | None:
    """Read the ledger's state that a page states; None if there is no page, or it states none."""
    if not os.path.lexists(page):
        return None
    text = read_ordinary_text(page, PAGE_BYTES)
    match = re.search(r"^Ledger: `(.+)`, length (\d+), head `([0-9a-f]{64})`$", text, flags=re.M)
    return match and LedgerState(name=match[1], length=int(match[2]), head=match[3])


def require_continued(path: Path, page: Path) -> None:
    """Refuse a ledger that does not continue the one that a page, which is to be replaced, was made with.

    Raises:
        PlumblineError: as `count_new_entries`.
    """
    if (state := read_statement(page)) is not None:
        count_new_entries(read(path), page, state)


def count_new_entries(ledger: Ledger, page: Path, state: LedgerState) -> int:
    """Count the entries that were added to the ledger since the page was made.

    Raises:
        PlumblineError: the ledger is not the page's with entries at its end: its tail was cut, or it was written anew.
    """
    if len(ledger) < state.length:
        raise PlumblineError(
            f"{ledger.path} has {len(ledger)} entries, but {page} was made when it had {state.length}: it was "
            "truncated, or it is another ledger. Restore the file that had them "
            f"(line {state.length}: hash {state.head[:12]})"
        )
    head = (NO_HEAD, *ledger.hashes)[state.length]
    if head != state.head:
        raise PlumblineError(
            f"{ledger.path}, line {state.length}: the hash is {head[:12]}, but {page} says {state.head[:12]}: the "
            "ledger was rewritten, or is another one. Restore the one that the page was made with"
        )
    return len(ledger) - state.length

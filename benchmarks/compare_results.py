"""Every product of a study in two results folders, cell by cell: what a refactor moved.

    python benchmarks/compare_results.py BEFORE/results/transfer AFTER/results/smoke/transfer

A number that is the same number is equal; so is a word that left a numeric column (for `status`, or as an empty cell
where nothing is printed). Run ids differ by design. Exit code 1 where any other cell differs.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path

#: Columns that name a spec.
IDENTITIES = {"run_id", "run_ids", "spec"}


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def read(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def main() -> int:
    """Print what differs."""
    before, after = (Path(word) for word in sys.argv[1:])
    equal, former_words, different = 0, Counter[str](), []
    for path in sorted(before.glob("*.csv")):
        old, new = read(path), read(after / path.name)
        if len(old) != len(new):
            different.append(f"{path.name}: {len(old)} rows, then {len(new)}")
        for old_row, new_row in zip(old, new):
            for column in old_row.keys() - IDENTITIES:
                was, now = old_row[column], new_row.get(column)
                if was == now or (number(was) is not None and number(was) == number(now or "")):
                    equal += 1
                elif now == "" and (was in new_row.get("status", was) or was == "not printed"):  # an empty printed cell
                    former_words[was] += 1
                else:
                    different.append(f"{path.name}: {next(iter(old_row.values()))}.{column}: {was!r}, then {now!r}")
    print(f"{equal} cells equal; words that left numeric columns: {dict(former_words)}; different: {len(different)}")
    print("\n".join(different))
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())

"""Prints what README and docs promise, with the page of each promise and the tests that hold it:

python -m tests.architecture.promises                    # all of tests/promises.yaml
python -m tests.architecture.promises docs/disk.md       # what one page or more promise
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError, nearest

FILE = Path(__file__).parents[1] / "promises.yaml"


def read() -> list[dict[str, Any]]:
    """Read the list of promises."""
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def format_promises(promises: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Give the lines: each page with its promises, and below each of them what holds it, or why nothing does."""
    for page, group in itertools.groupby(promises, lambda each: each["said_in"]):
        yield page
        for each in group:
            yield f"  {each['promise']}"
            yield from (f"    {test}" for test in each["held_by"])
            if not each["held_by"]:
                yield f"    no test: {each['why']}"
    without = sum(not each["held_by"] for each in promises)
    yield f"{len(promises)} promises, {without} of them without a test"


def main() -> None:
    """Print the promises of the pages that are named, or all.

    Raises:
        PlumblineError: the list has no promise of a page.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.architecture.promises",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="such as docs/disk.md; default: all")
    pages_asked = parser.parse_args().pages
    promises = sorted(read(), key=lambda each: each["said_in"])
    known_pages = sorted({each["said_in"] for each in promises})
    for page in pages_asked:
        if page not in known_pages:
            raise PlumblineError(
                f"{FILE.name} has no promise of {page!r}{nearest(page, known_pages)} (it has {known_pages})"
            )
    print("\n".join(format_promises([each for each in promises if not pages_asked or each["said_in"] in pages_asked])))


if __name__ == "__main__":
    run(main)

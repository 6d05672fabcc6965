"""Writes the expectations anew and prints what changed: ``python -m tests.kept_verdicts.write [NAME ...]``."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from tests.kept_verdicts.carry_out import carry_out
from tests.kept_verdicts.inputs import INPUTS

EXPECTED = Path(__file__).with_name("expected")


def difference(name: str, before: str, after: str) -> str:
    """The lines that changed, with those around them."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"{name}: kept", f"{name}: now", lineterm="")
    return "\n".join(lines)


def main() -> int:
    """Write the expectations that are named, or all; 1 where one changed."""
    parser = argparse.ArgumentParser(prog="python -m tests.kept_verdicts.write", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of inputs; default: all")
    names = parser.parse_args().names or list(INPUTS)
    if unknown := sorted(set(names) - set(INPUTS)):
        parser.error(f"no inputs {', '.join(unknown)}; there are: {', '.join(INPUTS)}")
    changed = 0
    for name in names:
        path, text = EXPECTED / f"{name}.txt", carry_out(INPUTS[name])
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if text != before:
            changed += 1
            print(difference(name, before, text))
            path.write_text(text, encoding="utf-8")
    for path in sorted(EXPECTED.glob("*.txt")):
        if path.stem not in INPUTS:
            changed += 1
            print(f"{path.name} is of no input, and is removed")
            path.unlink()
    print(f"{len(names)} inputs, {changed} changed", file=sys.stderr)
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main())

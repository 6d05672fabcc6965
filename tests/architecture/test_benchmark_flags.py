"""Benchmarks that no test runs: what each reads of its command line is a flag that it has."""

from __future__ import annotations

import ast
from pathlib import Path


def calls(tree: ast.Module, *names: str) -> list[ast.Call]:
    called = (each for each in ast.walk(tree) if isinstance(each, ast.Call))
    return [each for each in called if getattr(each.func, "attr", getattr(each.func, "id", "")) in names]


def flags(tree: ast.Module) -> set[str]:
    """Names by which the flags of a script are read; `add` is what some call `parser.add_argument`."""
    found = set[str]()
    for call in calls(tree, "add_argument", "add"):
        words = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        given = [key.value.value for key in call.keywords if key.arg == "dest" and isinstance(key.value, ast.Constant)]
        found |= {word.lstrip("-").replace("-", "_") for word in (*words, *map(str, given))}
    return found


def test_every_script_reads_flags_that_it_has(repository: Path) -> None:
    wrong, read = [], 0
    for path in sorted((repository / "benchmarks").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parsed = {
            name.id
            for each in ast.walk(tree)
            if isinstance(each, ast.Assign) and each.value in calls(tree, "parse_args")
            for name in each.targets
            if isinstance(name, ast.Name)
        }
        known = flags(tree) if parsed else set()
        for each in ast.walk(tree):
            if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id in parsed:
                read += 1
                if each.attr not in known:
                    wrong.append(f"{path.relative_to(repository)}:{each.lineno}: {each.attr}")
    assert read > 100 and not wrong, wrong

"""Benchmarks that no test runs: what each reads of its command line is a flag that it has, and what the simulations of
rules import is there.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest


def calls(tree: ast.Module, *names: str) -> list[ast.Call]:
    called = (each for each in ast.walk(tree) if isinstance(each, ast.Call))
    return [each for each in called if getattr(each.func, "attr", getattr(each.func, "id", "")) in names]


def flags(tree: ast.Module) -> set[str]:
    """Names by which the flags of a script are read; `add` is what some call `parser.add_argument`."""
    flag_names = set[str]()
    for call in calls(tree, "add_argument", "add"):
        values = [
            argument.value
            for argument in call.args
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        ]
        destinations = [
            key.value.value for key in call.keywords if key.arg == "dest" and isinstance(key.value, ast.Constant)
        ]
        flag_names |= {word.lstrip("-").replace("-", "_") for word in (*values, *map(str, destinations))}
    return flag_names


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
        known_flags = flags(tree) if parsed else set()
        for each in ast.walk(tree):
            if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id in parsed:
                read += 1
                if each.attr not in known_flags:
                    wrong.append(f"{path.relative_to(repository)}:{each.lineno}: {each.attr}")
    assert read > 100 and not wrong, wrong


def test_simulations_of_rules_import_what_there_is(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(repository / "benchmarks")
    paths = sorted((repository / "benchmarks" / "decision_rules").glob("[!_]*.py"))
    assert len(paths) > 8
    for path in paths:
        importlib.import_module(f"decision_rules.{path.stem}")

"""Checks that a run writes what a statement measures of it, before any run is made.

A probe and an intervention name their numbers where they write them, so the names are read from their source: the texts
in it, and texts with something put in, which stand for all that fit.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs import code_hash, components
from plumbline.specs.small_file import Measure
from plumbline.specs.spec import RunSpec

#: How near a probe's fraction of training has to be: fractions are steps over steps, rounded to six digits.
NEAR = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reader:
    """A probe or an intervention of a run, and when it reads: at fractions of training, or every so many steps."""

    kind: str
    name: str
    at: tuple[float, ...] = ()
    every: int = 0

    def writes(self, number: str) -> bool:
        texts, patterns = _list_texts(self.kind, self.name)
        return number in texts or any(re.fullmatch(pattern, number) for pattern in patterns)

    def reads_at(self, fraction: float, steps: int) -> bool:
        step = round(fraction * steps)
        on_grid = self.every > 0 and (step % self.every == 0 or step == steps)
        return any(abs(point - fraction) < NEAR for point in (*self.at, *([step / steps] if on_grid else [])))

    def describe(self) -> str:
        points = [f"{point:g}" for point in self.at] + [f"every {self.every} steps"] * (self.every > 0)
        return f"{self.name} at {', '.join(points)}"


def require_written(measure: Measure, spec: RunSpec, where: str) -> None:
    """Refuse a measure that no probe or intervention of a run writes, or none at its fraction of training.

    Args:
        where: begins the message: a file and the keys of the measure.

    Raises:
        PlumblineError: naming the key, and what the run writes.
    """
    if measure.frame not in ("probes", "interventions"):
        return
    interventions = [_read_intervention(entry) for entry in spec.interventions]
    probes = [_Reader(kind="probe", name=each.name, at=each.at, every=each.every) for each in spec.probes]
    readers = interventions if measure.frame == "interventions" else [*probes, *interventions]
    for key, number in (("column", measure.column), ("less", measure.less)):
        if number is None:
            continue
        writers = [reader for reader in readers if reader.writes(number)]
        if not writers:
            names = sorted({name for reader in readers for name in _list_texts(reader.kind, reader.name)[0]})
            raise PlumblineError(
                f"{where}.{key}: nothing writes a number {number!r} of {spec.scale}/{spec.method}"
                f"{nearest(number, names)} (its {measure.frame}: {[reader.name for reader in readers]}); name another "
                "one, or give the arm a component that writes it"
            )
        if measure.at is not None and not any(reader.reads_at(measure.at, spec.train.steps) for reader in writers):
            raise PlumblineError(
                f"{where}.at: {number!r} is not read at {measure.at:g} of {spec.scale}/{spec.method} with "
                f"{spec.train.steps} steps (but by {'; '.join(reader.describe() for reader in writers)}); name one of "
                "these points, or add it to the arm's `probes`"
            )


def _read_intervention(entry: dict[str, Any]) -> _Reader:
    """An intervention reads at steps: by its option `every` if that is a number of steps, else at any."""
    every = entry.get("every")
    return _Reader(kind="intervention", name=entry["name"], every=every if type(every) is int and every > 0 else 1)


@cache
def _list_texts(kind: str, name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Names in a component's code, and patterns of names that are put together there."""
    texts, patterns = set(), set()
    for file in _list_files(Path(components.available(kind)[name])):
        for node in ast.walk(code_hash.parse(file)):
            if isinstance(node, ast.JoinedStr):
                parts = [str(part.value) if isinstance(part, ast.Constant) else "" for part in node.values]
                if "" in parts and re.fullmatch(r"[a-z0-9_]+", "".join(parts)):
                    patterns.add("".join(part or "[a-z0-9_]+" for part in parts))
            elif isinstance(node, ast.Constant) and re.fullmatch(r"[a-z][a-z0-9_]*", str(node.value)):
                texts.add(str(node.value))
    return frozenset(texts), frozenset(patterns)


def _list_files(path: Path) -> list[Path]:
    """The files in which a component's numbers may be named: its own and its base classes'; of an installed one all of
    its code."""
    if not path.is_relative_to(components.PACKAGE):
        return code_hash.component_files(path)
    files = [path]
    for file in files:
        tree = code_hash.parse(file)
        bases = {ast.unparse(base) for node in tree.body if isinstance(node, ast.ClassDef) for base in node.bases}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and bases & {alias.name for alias in node.names}:
                module = code_hash.resolve_import(node.level, node.module, file, components.PACKAGE)
                base = code_hash.file_of(module, components.PACKAGE)
                # That of all components of a kind is their interface, and writes nothing.
                files += [base] if base and base.name != "_base.py" and base not in files else []
    return files

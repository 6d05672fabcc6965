"""Counts small files and modules that only one module imports: ``python -m tests.architecture.small_files [ROOM ...]``.

Both are counted of `src` and `studies`, without ``__init__`` and ``__main__``. A file is small up to `SMALL` lines.
What a rule of the workflow imports has one importer more. Components, studies' targets and whatever else is loaded by
its name have none. A file that is both small and of one importer is listed with it: it may be a part of it. Rooms that
are named are counted alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.architecture import rooms

SMALL = 80


@dataclass(frozen=True, kw_only=True)
class CountedModule:
    """A module, the lines of its file, and the modules that import it (`workflow` for rules)."""

    name: str
    lines: int
    importers: tuple[str, ...]


def count(root: Path = rooms.ROOT) -> list[CountedModule]:
    """Count all modules of a repository by their names."""
    graph = rooms.build_graph(root)
    of_rules = rooms.modules_of_rules(root, graph.modules)
    return [
        CountedModule(
            name=name,
            lines=len(path.read_bytes().splitlines()),
            importers=(
                *sorted(graph.find_modules_that_directly_import(name)),
                *([rooms.WORKFLOW] if name in of_rules else []),
            ),
        )
        for name, path in sorted(_files(root))
        if name in graph.modules
    ]


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    """Files of the package and of the studies, by the names of their modules."""
    places = {root / "src" / rooms.PACKAGE: (rooms.PACKAGE,), root / "studies": (rooms.PACKAGE, "studies")}
    for folder, above in places.items():
        for path in folder.rglob("*.py"):
            if path.name not in ("__init__.py", "__main__.py"):
                yield ".".join((*above, *path.relative_to(folder).with_suffix("").parts)), path


def report(modules: Sequence[CountedModule]) -> Iterator[str]:
    """Write the counts, and the small files of one importer with it."""
    small = [each for each in modules if each.lines <= SMALL]
    single = [each for each in modules if len(each.importers) == 1]
    both = [each for each in small if each in single]
    yield (
        f"files {len(modules)}, median {median([each.lines for each in modules] or [0]):.0f} lines; of at most {SMALL} "
        f"lines {len(small)}, with one importer {len(single)}, both {len(both)}"
    )
    yield from (f"  {each.name} {each.lines} <- {each.importers[0]}" for each in both)


def main() -> None:
    """Print what was counted."""
    names_asked = sys.argv[1:]
    print("\n".join(report([each for each in count() if not names_asked or rooms.room(each.name) in names_asked])))


if __name__ == "__main__":
    main()

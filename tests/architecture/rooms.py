"""Counts the rooms of this house and the arrows between them: ``python -m tests.architecture.rooms``.

A room is what stands directly in the package (a folder, or a file but for ``__init__``), and beside it the benchmarks,
the logger plugin and the workflow. An arrow runs from a room to another one that it imports anywhere, inside functions
and for type checkers too. A room's floor is one above the highest that it imports. An arrow runs up if it is against
the order of the contract in pyproject.toml. A circle is a set of files, or of rooms, that import each other in a loop.
Inside a room the order is that of its imports: files and folders of one folder must not import each other in a loop,
where a folder counts with all that is in it. In a loop, the fewest imports that close it are counted as running up.
Studies are counted as one room of the package, `plumbline.studies`, as which their folders are imported.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grimp
import networkx

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "plumbline"
#: Packages next to it that import it, each a room.
BESIDE = ("benchmarks", "snakemake_logger_plugin_plumbline")
WORKFLOW = "workflow"


@dataclass(frozen=True, kw_only=True)
class House:
    """What was counted. `lines`: of Python in src and studies; `up`: each arrow against the order, as text.

    `up_inside`: each import that closes a loop inside a room, as text.
    """

    rooms: int
    floors: int
    arrows: int
    up: tuple[str, ...]
    up_inside: tuple[str, ...]
    circles: tuple[str, ...]
    lines: int


def room(module: str) -> str:
    """The room of a module."""
    parts = module.split(".")
    return parts[1] if parts[0] == PACKAGE and len(parts) > 1 else parts[0]


def order(root: Path = ROOT) -> list[str]:
    """The rooms of the package from top to bottom, as the contract has them."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    return next(each["layers"] for each in contracts if each["type"] == "layers")


def assemble(folder: Path, root: Path = ROOT) -> Path:
    """Copy `src` into a folder, with the studies where they are imported; returns the copy."""
    left_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(root / "src", folder / "src", ignore=left_out)
    shutil.copytree(root / "studies", folder / "src" / PACKAGE / "studies", ignore=left_out, dirs_exist_ok=True)
    return folder / "src"


@contextmanager
def _import_from(folder: Path) -> Iterator[None]:
    """Let packages be looked for in a folder first, one that was imported already too."""
    modules_before = {name: sys.modules.pop(name) for name in (PACKAGE, *BESIDE) if name in sys.modules}
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.update(modules_before)


def build_graph(root: Path = ROOT) -> grimp.ImportGraph:
    """Read which module of a repository, studies included, imports which."""
    with tempfile.TemporaryDirectory() as folder, _import_from(assemble(Path(folder), root)):
        return grimp.build_graph(PACKAGE, *BESIDE, cache_dir=None)


def count(root: Path = ROOT) -> House:
    """Count the house of a repository."""
    graph = build_graph(root)
    files = networkx.DiGraph()
    files.add_nodes_from(graph.modules)
    for module in graph.modules:
        files.add_edges_from((module, imported) for imported in graph.find_modules_directly_imported_by(module))
    rooms = networkx.DiGraph()
    rooms.add_nodes_from(room(module) for module in graph.modules if module != PACKAGE)
    # Everybody may ask the package itself for its version and that of its numerics.
    arrows = {(room(a), room(b)) for a, b in files.edges if PACKAGE not in (a, b)} | {
        (WORKFLOW, room(module)) for module in modules_of_rules(root, graph.modules)
    }
    rooms.add_edges_from((a, b) for a, b in arrows if a != b)
    place = {name: number for number, name in enumerate(reversed(order(root)))}
    up = (f"{a} -> {b}" for a, b in rooms.edges if a in place and b in place and place[a] < place[b])
    # As the contract on folders takes them; between rooms the order decides.
    up_inside = (
        f"{a} -> {b}"
        for package in graph.modules - {PACKAGE}
        for a, b in (graph.nominate_cycle_breakers(package) if graph.find_children(package) else ())
    )
    return House(
        rooms=len(rooms),
        floors=_floors(rooms),
        arrows=rooms.number_of_edges(),
        up=tuple(sorted(up)),
        up_inside=tuple(sorted(up_inside)),
        circles=tuple(sorted(_circles(files) | _circles(rooms))),
        lines=sum(
            len(path.read_bytes().splitlines()) for name in ("src", "studies") for path in (root / name).rglob("*.py")
        ),
    )


def modules_of_rules(root: Path, modules: Iterable[str]) -> set[str]:
    """Modules that rules import; Snakemake's language is not Python's, but its imports are."""
    known_modules, module_names = set(modules), set[str]()
    for path in (root / WORKFLOW).rglob("*.smk"):
        for source, names in imports_of_rules(path.read_text(encoding="utf-8")):
            module_names |= {f"{source}.{name}" for name in names} & known_modules or {source}
    return module_names


def imports_of_rules(text: str) -> list[tuple[str, dict[str, str]]]:
    """What rules import: each package, and its names with what the rules call them."""
    imports = re.findall(r"^from (plumbline\S*) import (?:\(([^)]*)\)|(.*))$", text, re.MULTILINE)
    parts = [(source, re.findall(r"(\w+)(?: as (\w+))?", "".join(names))) for source, *names in imports]
    return [(source, {name: alias or name for name, alias in names}) for source, names in parts]


def _floors(rooms: networkx.DiGraph) -> int:
    """The length of the longest way down; rooms of one circle share a floor."""
    return networkx.dag_longest_path_length(networkx.condensation(rooms)) + 1


def _circles(graph: networkx.DiGraph) -> set[str]:
    circles = (sorted(each) for each in networkx.strongly_connected_components(graph) if len(each) > 1)
    return {" <-> ".join(each) for each in circles}


def main() -> None:
    """Print what was counted."""
    house = count()
    print(f"rooms {house.rooms}, floors {house.floors}, arrows {house.arrows}, lines of src and studies {house.lines}")
    for name, edges in (("up", house.up), ("up inside rooms", house.up_inside), ("circles", house.circles)):
        print(f"{name} {len(edges)}" + "".join(f"\n  {each}" for each in edges))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()

"""What is used of torch, and whether an older torch has it: ``python -m tests.torch_names_used torch-2.11.0-*.whl``.

A GPU machine may bring torch 2.11, which the pinned one is newer than. `torch_names_used.txt` lists every name and
keyword argument of torch that the package and the GPU check use and that torch 2.11 has. This command writes it, by
reading the sources in that torch's wheel, of any platform: nothing of it is imported. A wheel of 80 MB, no package that
it needs:

    pip download torch==2.11.0 --no-deps --only-binary=:all: --platform macosx_11_0_arm64 --python-version 3.11

Methods of tensors and modules are not seen: whose an attribute is, sources do not say.
"""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LISTED = Path(__file__).with_suffix(".txt")
#: Files of programs that a torch of 2.11 is to run.
FOLDERS = ("src/plumbline", "studies", "benchmarks/gpu_check")
#: What is used and torch 2.11 has not -> since when, and what is done without it; or has where this does not look.
NEWER: dict[str, str] = {
    "torch.backends.mkldnn.matmul": "there, in 2.11 as in 2.13: of the class that takes the place of its module"
}


def used() -> set[str]:
    """Dotted names, and keyword arguments as ``torch.compile(dynamic=)``."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return {name for path in files for name in used_in(ast.parse(path.read_text(encoding="utf-8")))}


def used_in(tree: ast.Module) -> Iterator[str]:
    """Those of one file."""
    sources: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "torch":
                    sources[alias.asname or "torch"] = alias.name if alias.asname else "torch"
                    yield alias.name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            for alias in node.names:
                sources[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield f"{node.module}.{alias.name}"

    def find_dotted(node: ast.AST) -> str | None:
        if isinstance(node, ast.Name):
            return sources.get(node.id)
        before = find_dotted(node.value) if isinstance(node, ast.Attribute) else None
        return None if before is None else f"{before}.{node.attr}"

    for node in ast.walk(tree):
        name = find_dotted(node.func if isinstance(node, ast.Call) else node)
        if name is not None:
            yield name
            if isinstance(node, ast.Call):
                yield from (f"{name}({keyword.arg}=)" for keyword in node.keywords if keyword.arg)


class Place(NamedTuple):
    """A definition in a module; a module itself (None)."""

    module: str
    node: ast.AST | None


class Wheel:
    """The sources of a torch."""

    def __init__(self, path: Path) -> None:
        self.archive = zipfile.ZipFile(path)
        self.files = set(self.archive.namelist())
        self.read: dict[str, tuple[dict[str, list[ast.AST | str]], list[str]]] = {}

    def has(self, name: str) -> bool:
        """Whether a name, or a keyword argument, is there. Of what C++ or an object brings, its word is looked for."""
        name, _, keyword = name.rstrip("=)").partition("(")
        place = Place("torch", None)
        if name.startswith("torch.ops."):
            return True  # operators are registered by name, ours among them
        for part in name.split(".")[1:]:
            places = self._find(place.module, part, set()) if place.node is None else []
            # A module may be an object with properties.
            if not places and not self._says(place.module, part if place.node else f"def {part}"):
                return False
            place = places[0] if places else Place(place.module, ast.Pass())
        makers = [item for other in places for item in _functions(other.node)] if keyword else []
        if not keyword or any(keyword in _arguments(item) or item.args.kwarg is not None for item in makers):
            return True
        return not makers and self._says(place.module, keyword)

    def _find(self, module: str, name: str, looked: set[tuple[str, str]]) -> list[Place]:
        """Where a module's member is defined; none if it has no such member."""
        if (module, name) in looked:
            return []
        looked.add((module, name))
        here, stars = self._names(module)
        places = []
        for node in here.get(name, []):
            if isinstance(node, str):  # where it is imported from; what has no source there is there all the same
                parent, _, last = node.rpartition(".")
                places += self._find(parent, last, looked) or [Place(module, ast.Pass())]
            else:
                places.append(Place(module, node))
        if self._paths(f"{module}.{name}"):
            return [Place(f"{module}.{name}", None)]
        return places or [place for star in stars for place in self._find(star, name, looked)]

    def _names(self, module: str) -> tuple[dict[str, list[ast.AST | str]], list[str]]:
        """What a module defines, by name: its definition, or the dotted name that it is imported as; and the modules
        that it takes everything of."""
        if module in self.read:
            return self.read[module]
        bindings: dict[str, list[ast.AST | str]] = defaultdict(list)
        stars: list[str] = []
        for path in self._paths(module):
            package = (module if "__init__" in path else module.rpartition(".")[0]).split(".")
            for node in _statements(ast.parse(self.archive.read(path))):
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    bindings[node.name].append(node)
                elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    for one in (one for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)):
                        bindings[one.id].append(ast.Pass())
                elif isinstance(node, ast.ImportFrom):
                    above = package[: len(package) + 1 - node.level] if node.level else []
                    source = ".".join([*above, *filter(None, [node.module])])
                    stars += [source for one in node.names if one.name == "*"]
                    for one in node.names:
                        bindings[one.asname or one.name].append(f"{source}.{one.name}")
        self.read[module] = bindings, stars
        return bindings, stars

    def _says(self, module: str, word: str) -> bool:
        return any(re.search(rf"\b{word}\b", self.archive.read(path).decode()) for path in self._paths(module))

    def _paths(self, module: str) -> list[str]:
        stem = module.replace(".", "/")
        endings = (".py", ".pyi", "/__init__.py", "/__init__.pyi")
        return [f"{stem}{ending}" for ending in endings if f"{stem}{ending}" in self.files]


def _statements(body: ast.AST) -> Iterator[ast.AST]:
    """Of a module, within its conditions too, and without what functions and classes hold."""
    for node in ast.iter_child_nodes(body):
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from _statements(node)


def _functions(node: ast.AST | None) -> list[ast.FunctionDef]:
    if isinstance(node, ast.FunctionDef):
        return [node]
    inside = node.body if isinstance(node, ast.ClassDef) else []
    return [item for item in inside if isinstance(item, ast.FunctionDef) and item.name in ("__init__", "__new__")]


def _arguments(function: ast.FunctionDef) -> set[str]:
    return {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}


def main(wheel: Path) -> int:
    """Write the list; say what that torch has not, and that it is nowhere said what is done without."""
    torch = Wheel(wheel)
    names = sorted(used())
    there = [name for name in names if torch.has(name)]
    LISTED.write_text("".join(f"{name}\n" for name in there), encoding="utf-8")
    lacking = [name for name in names if name not in there]
    for name in lacking:
        print(f"{wheel.name} has no {name}: {NEWER.get(name, 'do without, and say in NEWER how')}")
    print(f"{len(there)} of {len(names)} names are in {LISTED.relative_to(ROOT)}")
    return int(not NEWER.keys() >= set(lacking))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

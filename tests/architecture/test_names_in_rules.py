"""What text that no tool checks takes of the package is there, also what only a run that trains would come to.

The text is the Snakefile, the rules, profiles, the Makefile, entry points, and commands of the pages and of CI.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from plumbline.specs.installed_packages import COMPONENTS
from tests.architecture import rooms

#: Where dotted names stand as text; the CHANGELOG has those of its time.
PLACES = (
    *("Makefile", "Snakefile", "pyproject.toml", "setup.py", "README.md", "CONTRIBUTING.md", "mkdocs.yml"),
    *("workflow", "profiles", "slurm", "envs", "actions", "docs", "examples", "tests/cluster"),
)
DOTTED = re.compile(r"(?<![\w./@-])plumbline(?:\.[a-zA-Z_]\w*)+")
#: An entry of a profile, and an entry point: the module, and the name that is taken of it.
ATTRIBUTES = (r"__import__\('([\w.]+)', fromlist=\['(\w+)'\]\)", r"\"(plumbline[\w.]*):(\w+)\"")
#: Files and a group of entry points whose names look like a module's.
OTHERS = {COMPONENTS, *(f"plumbline.{suffix}" for suffix in ("json", "post", "sif", "toml", "yaml"))}


def list_missing_names(text: str) -> list[str]:
    """List what a text imports, and takes of imported modules, that is not there."""
    missing = []
    for package, names in rooms.imports_of_rules(text):
        for name, alias in names.items():
            value = getattr(import_module(package), name, None) or import_module(f"{package}.{name}")
            if isinstance(value, ModuleType):
                attributes = sorted(set(re.findall(rf"(?<![\w.\"'/]){alias}\.(\w+)", text)))
                missing += [f"{alias}.{each}" for each in attributes if not hasattr(value, each)]
    return missing


def list_missing_dotted_names(text: str, root: Path) -> list[str]:
    """List the dotted names below `plumbline` in a text that neither a file nor a definition in it has."""
    names = set(DOTTED.findall(text)) - OTHERS
    names |= {f"{module}.{name}" for pattern in ATTRIBUTES for module, name in re.findall(pattern, text)}
    return sorted(name for name in names if not is_defined(name, root))


def is_defined(name: str, root: Path) -> bool:
    """Whether a dotted name is a module, or is defined or imported in one."""
    parts = name.split(".")
    place = root / "studies" if parts[1:2] == ["studies"] else root / "src/plumbline"
    parts = parts[2:] if place.name == "studies" else parts[1:]
    while parts and (place / parts[0]).is_dir():
        place, parts = place / parts[0], parts[1:]
    file = place / f"{parts[0]}.py" if parts and (place / f"{parts[0]}.py").is_file() else place / "__init__.py"
    parts = parts if file.name == "__init__.py" else parts[1:]
    text = file.read_text(encoding="utf-8") if parts and file.is_file() else ""
    return all(re.search(rf"^ *(def|class|from .* import .*|import .*|\(|)\s*\b{part}\b", text, re.M) for part in parts)


def read_texts(root: Path) -> Iterator[tuple[str, str]]:
    """Read the files of `PLACES`, without tests and what a run has made."""
    for place in PLACES:
        for path in sorted((root / place).rglob("*")) if (root / place).is_dir() else [root / place]:
            if path.suffix in (".md", ".smk", ".yaml", ".yml", ".toml", ".sh", ".py", "") and path.is_file():
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def test_what_rules_take_of_the_package_is_there(repository: Path) -> None:
    rules = [path.read_text(encoding="utf-8") for path in sorted((repository / "workflow/rules").glob("*.smk"))]
    text = "\n".join([(repository / "Snakefile").read_text(encoding="utf-8"), *rules])
    assert list_missing_names(text) == [] and "snakemake_internals.include_other_processes" in text
    gone = text.replace("include_other_processes", "count_other_processes")
    assert set(list_missing_names(gone)) == {"snakemake_internals.count_other_processes"}


def test_dotted_names_in_text_are_there(repository: Path) -> None:
    missing = {path: list_missing_dotted_names(text, repository) for path, text in read_texts(repository)}
    assert {path: names for path, names in missing.items() if names} == {}
    assert [place for place in PLACES if not (repository / place).exists()] == []
    path = "profiles/slurm/config.v9+.yaml"
    gone = (repository / path).read_text(encoding="utf-8").replace("['size_of']", "['size']")
    gone += "\nlaunch: python -m plumbline.operate.prefork.clients"
    assert list_missing_dotted_names(gone, repository) == [
        "plumbline.operate.prefork.clients",
        "plumbline.project.profiles.size",
    ]
    assert list_missing_dotted_names('plumbline = "plumbline.cli:start"', repository) == ["plumbline.cli.start"]

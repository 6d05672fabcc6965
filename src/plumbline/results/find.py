"""A study's own parts, found by its name: nothing in the shared rooms lists the studies.

`plumbline.studies.<study>` holds `tables`, `figures`, `claims` and `audit`, each a module or a package. A table or
figure is a function of its own name: in a module of that name inside the package, or in the part itself.
A study that extends another one uses the parts of that one.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

from plumbline.cli import PlumblineError

#: The folder with a package for each study.
STUDIES = Path(__file__).resolve().parents[1] / "studies"


def files(study: str, kind: str) -> list[Path]:
    """The files of a study's part: one module, or all of a package. None where the study has no such part."""
    module, package = STUDIES / study / f"{kind}.py", STUDIES / study / kind
    return [module] if module.is_file() else sorted(package.rglob("*.py"))


def file(study: str, kind: str, target: str) -> Path:
    """The file that defines a table or figure.

    Raises:
        PlumblineError: the study has no such part.
    """
    own = STUDIES / study / kind / f"{target}.py"
    if own.is_file():
        return own
    found = [path for path in files(study, kind) if path.name in (f"{kind}.py", "__init__.py")]
    if not found:
        raise PlumblineError(_missing(study, kind))
    return found[0]


def has(study: str, kind: str) -> bool:
    """Whether a study has a part of this kind."""
    return bool(files(study, kind))


def part(study: str, kind: str) -> ModuleType:
    """The module ``plumbline.studies.<study>.<kind>``.

    Raises:
        PlumblineError: the study has no such part.
    """
    if not has(study, kind):
        raise PlumblineError(_missing(study, kind))
    return import_module(f"plumbline.studies.{study}.{kind}")


def _missing(study: str, kind: str) -> str:
    return f"the study {study!r} has no {kind}: there is neither {STUDIES / study / kind}.py nor a package of that name"

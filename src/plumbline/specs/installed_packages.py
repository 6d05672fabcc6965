"""Finds components and studies of installed packages by what installers leave on the disk: nothing of them is run.

A distribution names components in the entry point group ``plumbline.components``, as ``<folder>.<name>``, each pointing
at a module; studies in ``plumbline.studies``, each pointing at a package. The file is looked for below the folder in
which the distribution lies, or, where it is installed editable, below its project (``direct_url.json``, and the folders
of its ``.pth`` file). Asking Python where a module is would import the packages around it.

What is wrong with one is kept as text and reported to who chooses it; one that nobody uses is in nobody's way.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit
from urllib.request import url2pathname

from plumbline.core.errors import PlumblineError

#: Entry point group -> what it brings, as text.
GROUPS = {"plumbline.components": "component", "plumbline.studies": "study"}
COMPONENTS, STUDIES = GROUPS


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class InstalledEntry:
    """A component or study of an installed distribution: `path` is the source of its `module`; where there is none that
    could be used, `fault` states why, and what to do."""

    group: str
    entry: str
    distribution: str
    module: str = ""
    path: Path | None = None
    fault: str = ""

    def __str__(self) -> str:
        return f"the {GROUPS[self.group]} {self.entry!r} of the installed distribution {self.distribution}"


@dataclasses.dataclass(frozen=True, slots=True)
class InstalledEntries:
    """All components that installed distributions declare.

    Attributes:
        by_entry: entry point's name -> component.
        unknown: a sentence for each distribution whose entry points cannot be read.
    """

    by_entry: dict[str, InstalledEntry]
    unknown: tuple[str, ...]


@cache
def offers(group: str = COMPONENTS) -> InstalledEntries:
    """Find the components of the distributions on Python's path; of two with one name the first counts."""
    by_entry: dict[str, InstalledEntry] = {}
    unknown, names = [], set()
    for distribution in distributions():
        try:
            text = distribution.read_text("entry_points.txt")
            if text is None or group not in text or (name := _name(distribution)) in names:
                continue
            names.add(name)
            entries = distribution.entry_points.select(group=group)
        except Exception as error:  # whatever is in there is not ours
            unknown.append(f"entry_points.txt of {_name(distribution)} cannot be read ({error}); reinstall it")
            continue
        for entry in entries:
            offer, other = _read_offer(group, entry, name, distribution), by_entry.get(entry.name)
            by_entry[entry.name] = offer if other is None else _join_offers(other, offer)
    return InstalledEntries(by_entry, tuple(unknown))


def load(offer: InstalledEntry) -> ModuleType:
    """Import the module of a component whose `fault` is empty.

    Raises:
        PlumblineError: it cannot be imported, or Python finds another file under its name.
    """
    try:
        module = importlib.import_module(offer.module)
    except (Exception, SystemExit) as error:
        raise PlumblineError(
            f"{offer} cannot be imported ({offer.path}): {type(error).__name__}: {error}; fix or uninstall it"
        ) from error
    file = getattr(module, "__file__", None)
    if file is None or Path(file).resolve() != Path(str(offer.path)).resolve():
        raise PlumblineError(
            f"{offer}: its module {offer.module} is {offer.path}, but Python imports {file}; rename the module, or "
            "take the other one from Python's path"
        )
    return module


def _read_offer(group: str, entry: EntryPoint, name: str, distribution: Distribution) -> InstalledEntry:
    offer = InstalledEntry(group=group, entry=entry.name, distribution=name)
    match = EntryPoint.pattern.match(entry.value)
    if match is None or not all(part.isidentifier() for part in match["module"].split(".")):
        return dataclasses.replace(
            offer, fault=f"{offer} points at {entry.value!r}, which is not a module; fix its entry"
        )
    offer = dataclasses.replace(offer, module=match["module"])
    try:
        return dataclasses.replace(offer, path=_find_source(offer, distribution))
    except PlumblineError as error:
        return dataclasses.replace(offer, fault=str(error))
    except Exception as error:  # metadata can be broken in any way
        fault = f"{offer} cannot be found: its metadata is broken ({type(error).__name__}: {error}); reinstall it"
        return dataclasses.replace(offer, fault=fault)


def _join_offers(first: InstalledEntry, second: InstalledEntry) -> InstalledEntry:
    names = f"{first.distribution} and {second.distribution}"
    places = f" ({first.path} and {second.path})" if first.path and second.path else ""
    entry = f"a {GROUPS[first.group]} {first.entry!r}"
    fault = f"the installed distributions {names} both provide {entry}{places}; uninstall one of them"
    return InstalledEntry(group=first.group, entry=first.entry, distribution=names, fault=fault)


def _name(distribution: Distribution) -> str:
    try:
        name = distribution.metadata["Name"]
    except Exception:  # no metadata at all
        name = None
    return name or f"without a name in {distribution.locate_file('')}"


def _find_source(offer: InstalledEntry, distribution: Distribution) -> Path:
    """The file that holds the module.

    Raises:
        PlumblineError: there is none that could be read as source.
    """
    place = distribution.locate_file("")
    if not isinstance(place, Path):
        raise PlumblineError(f"{offer} is in the archive {place}; install it unpacked, as pip does")
    relative = Path(*offer.module.split("."))
    roots = [*_list_editable(distribution, place), place]
    for root in roots:
        for path in (root / relative / "__init__.py", root / relative.with_suffix(".py")):
            if path.is_file():
                return path
    raise PlumblineError(
        f"{offer} points at {offer.module}, which cannot be found: there is no {relative}.py and no "
        f"{relative}/__init__.py in {' or '.join(map(str, roots))}; fix its entry point, or reinstall it"
    )


def _list_editable(distribution: Distribution, place: Path) -> list[Path]:
    """Where the sources of a distribution may begin that is installed editable; none for any other."""
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    if not origin.get("dir_info", {}).get("editable"):
        return []
    project = Path(url2pathname(urlsplit(origin["url"]).path))
    lines = [
        line.strip()
        for file in distribution.files or ()
        if file.suffix == ".pth"
        for line in Path(str(distribution.locate_file(file))).read_text(encoding="utf-8").splitlines()
    ]
    # A line of a .pth file is a folder, or code that Python runs at its start.
    folders = [place / line for line in lines if line and not line.startswith(("#", "import ", "import\t"))]
    return [*folders, project / "src", project]

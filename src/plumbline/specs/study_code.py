"""Imports the code of studies by path: `plumbline.studies.<study>` is the folder of that study, wherever it lies.

The folder need not be on Python's path, nor hold an `__init__.py`; inside, relative imports work as in any package.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from plumbline.core.errors import PlumblineError
from plumbline.specs import study_folders
from plumbline.specs.yaml_files import ROOT

PACKAGE = "plumbline.studies"


class StudyFinder:
    """Finds the package of each study for Python's imports, and keeps apart what two projects call by one name."""

    def __init__(self) -> None:
        #: Study -> the folder that it is imported from. Modules of another folder wait until that one is wanted again.
        self._folders: dict[str, Path] = {}
        self._waiting: dict[Path, dict[str, ModuleType]] = {}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """What Python asks of each finder: where the package is; None for all that is not a study."""
        package, _, study = name.rpartition(".")
        if package != PACKAGE:
            return None
        if study not in self._folders:
            by_name = study_folders.folders(ROOT)
            if study not in by_name:
                return None
            self._folders[study] = by_name[study]
        folder = self._folders[study]
        if (folder / "__init__.py").is_file():
            return spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        return spec

    def choose(self, study: str, folder: Path) -> None:
        """Let a study be imported from this folder from now on."""
        before = self._folders.get(study)
        if before == folder:
            return
        name = f"{PACKAGE}.{study}"
        loaded = [each for each in sys.modules if each == name or each.startswith(f"{name}.")]
        there = {each: sys.modules.pop(each) for each in loaded}
        if before is not None:
            self._waiting[before] = there
        sys.modules.update(self._waiting.pop(folder, {}))
        self._folders[study] = folder


FINDER = StudyFinder()


def load(path: Path, study: str, root: Path) -> ModuleType:
    """Import a module of a study: `path` is its file.

    Raises:
        PlumblineError: it cannot be imported.
    """
    folder = study_folders.folder(study, root)
    FINDER.choose(study, folder)
    inside = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix("__init__").rstrip(".")
    try:
        return importlib.import_module(f"{PACKAGE}.{study}.{inside}")
    except PlumblineError:
        raise
    except (Exception, SystemExit) as error:
        where = f"{error.filename}:{error.lineno}" if isinstance(error, SyntaxError) else path
        raise PlumblineError(
            f"the study {study!r} cannot be imported ({where}): {type(error).__name__}: {error}; fix it, or take its "
            "folder away"
        ) from error

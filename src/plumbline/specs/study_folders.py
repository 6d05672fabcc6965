"""Finds the folders of studies: in the project's own `studies/`, and in installed packages.

A study is one folder that holds all of one paper: its YAML, its printed numbers and its code. A distribution brings one
through the entry point group ``plumbline.studies``: the entry's name is the study's, its value a package, whose folder
is the study's.
"""

from __future__ import annotations

import difflib
from importlib.machinery import all_suffixes
from pathlib import Path

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs import installed_packages

#: The folder of a project that holds its studies, the file that makes a folder a study, and the folder of what a paper
#: prints, which alone is enough for the audit.
STUDIES, YAML, PUBLISHED = "studies", "study.yaml", "published"
#: The file of how often each claim would be reproduced.
RATES = "replication_rates.yaml"
#: The file of what the paper claims.
CLAIMS = f"{PUBLISHED}/claims.yaml"
#: The file of what is stated of small models before their runs.
SMALL = "small.yaml"
#: The file of the learning rates that its tuning seeds chose.
SMALL_RATES = "small_rates.yaml"
#: What people read of a study first; the report has its words for targets and for what was found.
README = "README.md"

#: What else is looked for by its name in a study's folder, and is nobody's loss where it is not there: files, and parts
#: of its code, each a module or a folder.
FILES = (
    "findings.yaml",
    "unchecked_numbers.yaml",
    "sentences.yaml",
    RATES,
    SMALL,
    SMALL_RATES,
    CLAIMS,
)
PARTS = ("tables", "figures", "measurements", "claims", "audit")


def folders(root: Path) -> dict[str, Path]:
    """Study -> its folder, of the project `root` and of installed packages, in the names' order.

    Raises:
        PlumblineError: two studies have one name, or an installed study cannot be found.
    """
    by_name = {path.name: path for path in _list_folders(root) if is_study(path)}
    for name, offer in installed_packages.offers(installed_packages.STUDIES).by_entry.items():
        if offer.fault:
            raise PlumblineError(offer.fault)
        assert offer.path is not None
        folder = offer.path.parent
        if name in by_name:
            raise PlumblineError(
                f"there are two studies {name!r}: {by_name[name]}, and {folder} of the installed distribution "
                f"{offer.distribution}; rename one (folder or entry point, and `study:` in its {YAML}), or "
                "uninstall the distribution"
            )
        if not (folder / YAML).is_file():
            raise PlumblineError(
                f"{offer}: {folder} has no {YAML}; let the entry point name the package that holds it, and let the "
                "distribution carry it (package data)"
            )
        by_name[name] = folder
    return dict(sorted(by_name.items()))


def folder(study: str, root: Path) -> Path:
    """The folder of a study.

    Raises:
        PlumblineError: there is no such study, or as `folders`.
    """
    by_name = folders(root)
    if study not in by_name:
        raise PlumblineError(
            f"there is no study {study!r}{nearest(study, by_name)} (there are {list(by_name)}): "
            f"{root / STUDIES / study / YAML} is missing, and no installed package brings it"
        )
    return by_name[study]


def list_runnable_studies(root: Path) -> list[str]:
    """Names of the studies that can be run: those with a study.yaml."""
    return [name for name, path in folders(root).items() if (path / YAML).is_file()]


def list_printed(root: Path) -> list[str]:
    """Names of the studies whose paper's printed numbers are there."""
    return [name for name, path in folders(root).items() if (path / PUBLISHED).is_dir()]


def format_path(path: Path, root: Path) -> str:
    """A file of a study as messages and rules name it: relative to the project it lies in, else in full."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def yaml_of(study: str, root: Path) -> str:
    """A study's YAML as messages name it, or where it would be written."""
    return format_path(folders(root).get(study, root / STUDIES / study) / YAML, root)


def is_study(folder: Path) -> bool:
    """Whether a folder is that of a study."""
    return (folder / YAML).is_file() or (folder / PUBLISHED).is_dir()


def misspelt(folder: Path) -> list[str]:
    """Sentences about what lies in a study's folder and is read by nobody, but would be under a name very much like it
    that is not there.
    """
    paths = [*folder.glob("*"), *(folder / PUBLISHED).glob("*")]
    names = {path.relative_to(folder).as_posix().removesuffix(".py"): path for path in paths}
    missing_names = {YAML, PUBLISHED, *FILES, *PARTS} - set(names)
    sentences = []
    for name in sorted(set(names) - {YAML, PUBLISHED, *FILES, *PARTS}):
        if matches := difflib.get_close_matches(name, missing_names, n=1, cutoff=0.8):
            sentences.append(f"nothing reads {names[name]}; did you mean {matches[0]!r}?")
    return sentences


def is_code(name: str) -> bool:
    """Whether a file, named from the root of a project, is a study's code: what Python could import."""
    return name.startswith(f"{STUDIES}/") and name.endswith(tuple(all_suffixes()))


def list_non_studies(root: Path) -> list[str]:
    """Sentences about folders of `studies/` that hold something and are not a study: nothing reads them."""
    return [
        "; ".join([f"{path} is no study: it has no {YAML} and no {PUBLISHED}, and nothing reads it", *misspelt(path)])
        for path in _list_folders(root)
        # Of a study of another branch Python's cache may be left.
        if not is_study(path) and any(file.suffix != ".pyc" for file in path.rglob("*") if file.is_file())
    ]


def _list_folders(root: Path) -> list[Path]:
    return [path for path in sorted((root / STUDIES).glob("[!._]*")) if path.is_dir()]

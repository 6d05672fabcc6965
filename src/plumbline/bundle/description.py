"""Describes a bundle in its `plumbline.json`: the configuration, the commit and the packages that made it."""

from __future__ import annotations

import os
import re
import reprlib
import shlex
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import msgspec

from plumbline.core.errors import PlumblineError
from plumbline.project.bundle_products import FILES
from plumbline.project.packed_bundle import DESCRIPTION

#: Its name within the archive.
NAME = DESCRIPTION

#: The format of bundles that this code writes and reads. It stands for what lies where in an archive, for the fields of
#: `BundleDescription`, and for what the package of a bundle's commit answers to (`REMAKE`): a change of any of them is
#: another format (tests/bundle/test_format_version.py lists the fields of this one). In every format `NAME` has
#: `format`, `commit` and `edited`, so that any version can state what rebuilds it.
FORMAT = 2

#: The module that makes products again, of this package or of that of a bundle's commit. It is called in the folder of
#: an unpacked bundle, with the file of a `remake.RebuildProcessRequest`, and writes a `remake.RebuildProcessReply`.
REMAKE = "plumbline.bundle.remake"

#: Packages that decide a product's bytes: numbers, drawing, and the writing of tables.
PACKAGES = (
    *("numpy", "pandas", "scipy", "torch", "mpmath", "pyarrow"),
    *("matplotlib", "pillow", "contourpy", "kiwisolver", "tabulate", "jinja2"),
)

#: What of a checkout can change a product.
SOURCES = ("src", "studies", "config", "workflow", "Snakefile")


#: Which paths an archive may state: below the folder that it is unpacked into, and no word that begins as an option.
_Below = Annotated[str, msgspec.Meta(pattern=r"^(?!\.)[\w.-]+(/(?!\.)[\w.-]+)*\Z")]
_Work = Annotated[str, msgspec.Meta(pattern=r"^(?![/-])(?!(.*/)?\.\.(/|\Z))[^\0]+\Z")]
_Results = Annotated[str, msgspec.Meta(pattern=r"^results/\w+\Z")]
_Commit = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40,64}\Z")]


class BundleEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A product of a bundle (see `plumbline.project.bundle_products.BundleProduct`), with the fingerprint of what it
    was made of."""

    study: str
    kind: str
    target: str
    path: _Below
    fingerprint: str

    def __str__(self) -> str:
        return " ".join(word for word in (self.kind, self.study, self.target) if word)


class BundledConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a configuration that a rebuild reads; the project checks the others when it loads them."""

    preset: str
    studies: list[str]
    work: _Work


class BundleDescription(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of a bundle's `plumbline.json`.

    `configuration` is that of the project, its `work` the folder within the archive; `called` is what products call
    that folder of their preset. `results`: the folder of the products. `commit`, `committed` (its date) and `edited`
    (whether `SOURCES` were) are None without a repository. `versions`: of this package, Snakemake, and
    `PACKAGES`. `openblas`: the processor that numpy's linear algebra was for, as OPENBLAS_CORETYPE has it: another one
    rounds otherwise. `finished`: when the last run or measurement was.
    """

    format: int
    configuration: dict[str, Any]
    called: str
    results: _Results
    commit: _Commit | None
    committed: str | None
    edited: bool | None
    finished: str | None
    openblas: str | None
    versions: dict[str, str]
    products: list[BundleEntry]

    @property
    def asked(self) -> BundledConfiguration:
        """The parts of the bundle's configuration that a rebuild reads."""
        return msgspec.convert(self.configuration, BundledConfiguration)

    @property
    def work(self) -> str:
        """The folder within the archive of the preset's frames (runs, scores, probes, measurements)."""
        return f"{self.asked.work}/{self.asked.preset}"


def parse_description(text: bytes, where: str) -> BundleDescription:
    """Read the text of a bundle's `plumbline.json`; `where` names the bundle in errors.

    Raises:
        PlumblineError: it is of another format, or of an early state of this one, and what rebuilds it; or it is none.
    """
    try:
        content = msgspec.json.decode(text)
        format_number = content["format"]
    except (msgspec.DecodeError, KeyError, TypeError, RecursionError) as error:
        raise PlumblineError(f"{where}: {NAME} does not say what is in it ({error}); it is not a bundle") from error
    remedy = describe_remedy(content.get("commit"), content.get("edited"), where)
    if format_number != FORMAT:
        raise PlumblineError(
            f"{where} is a bundle of format {reprlib.repr(format_number)}, and this version of Plumbline reads format "
            f"{FORMAT}; {remedy}"
        )
    try:
        summary = msgspec.json.decode(text, type=BundleDescription)
        _require_valid_values(summary)
    except msgspec.DecodeError as error:
        raise PlumblineError(
            f"{where}: {NAME} claims format {FORMAT}, and does not say what is in it as that format has it "
            f"({str(error)[:200]}): it was made by an early version of Plumbline, or is damaged; {remedy}"
        ) from error
    return summary


def _require_valid_values(summary: BundleDescription) -> None:
    """Refuse values of the right type that no bundle has, before anything is unpacked or started with them."""
    preset, studies = summary.asked.preset, summary.asked.studies
    if not re.fullmatch(r"\w+", preset):
        raise msgspec.ValidationError(f"`preset` is {preset!r}, which is no name")
    if summary.openblas is not None and not re.fullmatch(r"[\w.-]{1,64}", summary.openblas, re.ASCII):
        raise msgspec.ValidationError(f"`openblas` is {summary.openblas[:64]!r}, which is no processor's name")
    for product in summary.products:
        is_known = product.kind in FILES and (product.study in studies or product.kind == "audit")
        if not is_known or bool(product.target) != (product.kind in ("table", "figure")):
            raise msgspec.ValidationError(f"`products` has {str(product)!r}, which is none of the studies {studies}")


def describe_remedy(commit: Any, edited: Any, where: str) -> str:
    """Write, for an error message, the commands that rebuild a bundle that this version cannot: those of its
    commit's code.

    They are pasted into a shell, so `commit` has to be a hash.
    """
    if edited or not (isinstance(commit, str) and re.fullmatch("[0-9a-f]{40,64}", commit)):
        return "rebuild it with the sources that made it, which are in no commit"
    clone, bundle = f"../plumbline-{commit[:7]}", shlex.quote(str(Path(where).resolve()))
    return (
        "the code of its own commit rebuilds it; in a clone of Plumbline that has that commit: "
        f"git worktree add {clone} {commit} && cd {clone} && make setup && "
        f".venv/bin/plumbline rebuild {bundle} --into rebuilt"
    )


def read_versions(names: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Look up the installed versions of packages, without the part that names a build.

    Packages that are missing are left out.
    """
    versions = {}
    for name in names:
        try:
            versions[name] = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            continue
    return versions


def find_openblas_kernels() -> str | None:
    """Name the processor that numpy's OpenBLAS computes for on this machine; None if numpy has another library."""
    import numpy  # noqa: F401  # which loads it
    from threadpoolctl import threadpool_info

    architectures = [
        library.get("architecture") for library in threadpool_info() if library.get("internal_api") == "openblas"
    ]
    return str(architectures[0]) if architectures and architectures[0] else None


def read_checkout(root: Path) -> tuple[str | None, str | None, bool | None]:
    """Look up a checkout's commit, the commit's date, and whether `SOURCES` were edited since.

    None without a repository.
    """
    log = run_git(root, "log", "-1", "--format=%H %cI")
    if log is None:
        return None, None, None
    state = run_git(root, "status", "--porcelain", "--untracked-files=all", "--", *SOURCES)
    commit, _, date = log.partition(" ")
    return commit, date, None if state is None else bool(state)


def run_git(root: Path, *arguments: str) -> str | None:
    """Run a git command in a checkout and return what it prints; None without a repository or git."""
    if not (root / ".git").exists():
        return None
    try:
        process = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return os.fsdecode(process.stdout).strip()

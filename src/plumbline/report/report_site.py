"""Writes pages, the style and the scripts next to them, and copies of what they link to, as one folder that is swapped
in whole.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from plumbline.core import temporary_files
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import name_in_errors, swap_paths
from plumbline.report import markdown_page
from plumbline.report.copied_files import copy_file
from plumbline.report.page_frame import PresetWarning, ReportPage
from plumbline.report.page_table import BADGES

#: What every page says of itself at its foot.
SIGNATURE = "Made by <code>plumbline report</code>"
#: Where a name may be broken: no number is.
_BOUNDARY = re.compile(r"(?<=\w[/_])(?=\w)|(?<=\w\.)(?=[^\W\d])")
#: Files next to the pages, as they are; other scripts stand there if a page runs them.
ASSETS = ("report.css", "report.js")
#: Folders of a report, and what it has besides pages and what they load: numbers of a board, a fingerprint.
FOLDERS = ("audits", "experiments", "files", "runs", "studies", "verdicts")
OTHER_FILES = ("board.json", "card.svg", "index.fingerprint.json")


@dataclass(kw_only=True)
class ReportSite:
    """A report while it is made: its pages are written to `folder`, which will replace the old report's as a whole.

    `name` stands in each page's title; `banner` gives what stands above a page, if anything does.
    """

    folder: Path
    name: str = "Plumbline"
    banner: Callable[[ReportPage], PresetWarning | None] = lambda page: None
    environment: Environment = field(init=False)
    scripts: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self.environment = Environment(
            loader=PackageLoader("plumbline.report"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.filters |= {
            "slug": markdown_page.make_slug,
            "forcss": _escape_for_css,
            "badge": lambda text: BADGES.get(text, "odd"),
            "breakable": _make_breakable,
        }
        self.environment.globals["signature"] = Markup(SIGNATURE)

    def write(self, page: ReportPage, nav: Sequence[ReportPage]) -> None:
        """Write one page, and copy the files that it links to; `nav`: the pages in the list of pages."""
        root = "../" * page.path.count("/")
        self.scripts.update(page.scripts)
        content: dict[str, Any] = page.content | {
            "page": page,
            "nav": nav,
            "root": root,
            "banner": self.banner(page),
            "site": self.name,
        }
        path = self.folder / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with name_in_errors(path):
            path.write_text(visible(self.environment.get_template(page.template).render(content)), encoding="utf-8")
        for source, name in page.files.items():
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            link = f"{'../' * name.count('/')}{page.path}"
            copy_file(source, target, f'<nav><a href="{escape(link)}">← {escape(visible(page.title))}</a></nav>')

    def write_assets(self) -> None:
        """Write what the pages load."""
        for name in (*ASSETS, *sorted(self.scripts)):
            asset = resources.files("plumbline.report").joinpath("assets", name)
            (self.folder / name).write_text(asset.read_text(encoding="utf-8"), encoding="utf-8")


def list_foreign(folder: Path) -> list[str]:
    """Names in a folder of what no report writes; all of them where it is no report, which may be replaced as a
    whole."""
    names = sorted(path.name for path in folder.iterdir())
    if not {"report.css", "report.js"} <= {*names}:
        return names
    return [name for name in names if not (name in FOLDERS or name in OTHER_FILES or _is_written(folder / name))]


def _is_written(path: Path) -> bool:
    """Whether a file directly in a report's folder is a page or what one loads."""
    if not path.is_file() or path.suffix != ".html":
        return path.is_file() and path.suffix in (".css", ".js")
    return SIGNATURE in path.read_text(encoding="utf-8", errors="replace")


def require_writable(out: Path) -> Path:
    """Find the folder of `out` (the first page): where a link leads, so that the link stays.

    Raises:
        PlumblineError: it cannot be written where it is to be.
    """
    folder = out.parent.resolve()
    parent = next(path for path in folder.parents if path.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PlumblineError(f"{folder}: {parent} cannot be written; name another place with --out FOLDER/index.html")
    return folder


def replace_report(out: Path, write: Callable[[Path], int]) -> int:
    """Replace the folder of `out` (the first page) as a whole by what `write` puts into the one that it is given.

    Returns:
        What `write` returns.

    Raises:
        PlumblineError: the folder cannot be written where it is to be.
    """
    folder = require_writable(out)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with temporary_files.make_folder(folder) as new_folder:
        count = write(new_folder)
        replace_folder(new_folder, folder)
    return count


def replace_folder(new_folder: Path, folder: Path) -> None:
    """Put the new folder in the place of the old one, which `new_folder` may be afterwards.

    A reader sees one or the other, never a mixture. Where folders can change places there is no moment without a
    report; elsewhere (NFS) there is none between two renames, and an old one comes back if the second fails.
    """
    if not folder.exists():
        try:
            os.replace(new_folder, folder)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another process has put its report there meanwhile
                raise
    if not swap_paths(new_folder, folder):
        old_folder = temporary_files.choose_path(folder)
        os.replace(folder, old_folder)
        try:
            os.replace(new_folder, folder)
        except BaseException:
            os.replace(old_folder, folder)
            raise
        shutil.rmtree(old_folder, ignore_errors=True)


def _escape_for_css(text: str) -> str:
    """A text within a string of a style sheet."""
    return re.sub(r"[^A-Za-z0-9 _./,-]", " ", text)


def _make_breakable(text: str) -> Markup:
    """A text whose names may be broken after a slash, an underscore, or a dot that no digit follows."""
    return Markup("<wbr>").join(_BOUNDARY.split(text))

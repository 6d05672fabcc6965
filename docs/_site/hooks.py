"""What mkdocs does not do: pages that lie outside docs/, and links from any page to any file of the repository.

A link is written as the repository's own browser wants it (relative to the file that it stands in); here it becomes one
of the site. A file that is no page, README.md too, travels along below ``source/``. A link that leads nowhere ends the
build. A link to a picture of `FINISHED` leads to the finished pages that it is of.
"""

from __future__ import annotations

import posixpath
import re
import runpy
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
#: Pages that lie elsewhere in the repository -> where they are on the site.
ELSEWHERE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "studies/README.md": "studies.md",
    "benchmarks/README.md": "benchmarks.md",
}
#: Picture of finished pages -> the script that makes them with the site, and their folder.
FINISHED = {
    "docs/_assets/workbench.svg": ("docs/_site/night.py", "workbench"),
    "docs/_assets/audit.svg": ("docs/_site/audits.py", "audits"),
}
#: Where files lie that are no pages.
SOURCE = "source"
_LINK = re.compile(r"(?P<before>!?\[[^\]]*\]\()(?P<path>[^)#\s]*)(?P<rest>#[^)\s]*)?\)")
_FENCE = re.compile(r"^ *(```|~~~)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from elsewhere, and every file that a page links to."""
    for origin, place in ELSEWHERE.items():
        files.append(File.generated(config, place, content=(ROOT / origin).read_text(encoding="utf-8")))
    for _, place in FINISHED.values():  # for links to hold; the pages themselves come last
        files.append(File.generated(config, f"{place}/index.html", content=""))
    there, waiting = {file.src_uri for file in files}, files.documentation_pages()
    while waiting:
        page = waiting.pop()
        for match in _links(page.content_string):
            target = _target(_origin(page.src_uri), match["path"])
            place = _place(target)
            if place.startswith(f"{SOURCE}/") and place not in there:
                there.add(place)
                file = File.generated(config, place, abs_src_path=str(ROOT / target))
                files.append(file)
                waiting += [file] if file.is_documentation_page() else []
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn the repository's links into the site's."""
    origin, here = _origin(page.file.src_uri), posixpath.dirname(page.file.src_uri)

    def rewritten(match: re.Match[str]) -> str:
        if not _inside(match["path"]):
            return match[0]
        place = posixpath.relpath(_place(_target(origin, match["path"])), here or ".")
        return f"{match['before']}{place}{match['rest'] or ''})"

    lines, fenced = [], False
    for line in markdown.split("\n"):
        fenced ^= bool(_FENCE.match(line))
        lines.append(line if fenced else _LINK.sub(rewritten, line))
    return "\n".join(lines)


def on_post_build(config: MkDocsConfig) -> None:
    """Write the finished pages as they are made anywhere else."""
    for script, place in FINISHED.values():
        out = Path(config.site_dir, place)
        runpy.run_path(str(ROOT / script))["build"](out)


def _links(markdown: str) -> list[re.Match[str]]:
    """The links to files, code left out."""
    found, fenced = [], False
    for line in markdown.split("\n"):
        fenced ^= bool(_FENCE.match(line))
        found += [match for match in _LINK.finditer(line) if not fenced and _inside(match["path"])]
    return found


def _inside(path: str) -> bool:
    """Whether a link's target is a file, rather than another site or a heading of the same page."""
    return bool(path) and ":" not in path.split("/")[0]


def _origin(src_uri: str) -> str:
    """Where a page of the site lies in the repository."""
    if src_uri.startswith(f"{SOURCE}/"):
        return src_uri.removeprefix(f"{SOURCE}/")
    return next((origin for origin, place in ELSEWHERE.items() if place == src_uri), f"docs/{src_uri}")


def _target(origin: str, path: str) -> str:
    """The file of the repository that a link means; a folder is its README.

    Raises:
        PluginError: there is none.
    """
    target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
    if (ROOT / target).is_dir():
        target = posixpath.join(target, "README.md")
    if target.startswith("../") or not (ROOT / target).is_file():
        raise PluginError(f"{origin} links to {path}: there is no file {target} in the repository")
    return target


def _place(target: str) -> str:
    """Where a file of the repository is on the site."""
    if target in ELSEWHERE:
        return ELSEWHERE[target]
    if target in FINISHED:
        return f"{FINISHED[target][1]}/index.html"
    return target.removeprefix("docs/") if target.startswith("docs/") else f"{SOURCE}/{target}"

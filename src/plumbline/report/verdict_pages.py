"""Builds a page for each verdict on a user's own modification and for each experiment, and the list of them."""

from __future__ import annotations

import re
from pathlib import Path

from plumbline.core.files import read_json
from plumbline.project.paths import EXPERIMENTS, VERDICTS
from plumbline.report import markdown_page
from plumbline.report.page_frame import ReportPage
from plumbline.report.results_on_disk import ResultsOnDisk

#: Verdict of a try -> the word for it, and how its badge looks.
_TRIED = {
    "keep": ("kept", "good"),
    "discard": ("discarded", "none"),
    "undecided": ("not decided", "odd"),
    "implausible": ("implausible", "odd"),
    "crashed": ("crashed", "bad"),
    "cannot be judged": ("cannot be judged", "bad"),
    "as good": ("as good", "good"),
    "holds": ("holds", "good"),
    "shrinks": ("shrinks", "none"),
    "turns": ("turns", "none"),
}


def build_page(results: ResultsOnDisk) -> ReportPage:
    """Build the page that lists the verdicts; where there are none, it describes how to request one."""
    content = {"verdicts": sort_verdict_pages(results)}
    return ReportPage(
        path="verdicts.html", title="Verdicts", template="verdicts.html.j2", content=content, nav="Verdicts"
    )


def sort_verdict_pages(results: ResultsOnDisk) -> list[ReportPage]:
    """The pages of what was tried: the newest decision first, then verdicts, which have no date."""
    return sorted(build_verdict_pages(results), key=lambda page: str(page.content["when"]), reverse=True)


def build_verdict_pages(results: ResultsOnDisk) -> list[ReportPage]:
    """Build a page for each verdict and each experiment of this preset."""
    folder = Path(results.project.paths.results)
    return [
        _build_verdict_page(path, kind)
        for kind in (VERDICTS, EXPERIMENTS)
        for path in sorted(folder.joinpath(kind).glob("*.md"))
    ]


def _build_verdict_page(path: Path, kind: str) -> ReportPage:
    markdown = path.read_text(encoding="utf-8")
    paragraphs = [part.strip() for part in markdown.split("\n\n") if part.strip()]
    first = next((part for part in paragraphs if not part.startswith("#")), "")
    heading = next((part for part in paragraphs if part.startswith("# ")), f"# {path.stem}")
    title = heading.splitlines()[0].removeprefix("# ").replace("`", "")
    files = {path: f"files/{kind}/{path.name}"}
    for ending in (".json", ".svg"):
        if path.with_suffix(ending).exists():
            files[path.with_suffix(ending)] = f"files/{kind}/{path.stem}{ending}"
    verdict = read_json(path.with_suffix(".json"))
    verdict = verdict if isinstance(verdict, dict) else {}
    word, badge = _TRIED.get(str(verdict.get("verdict")), ("", ""))
    terms = verdict.get("terms")
    claim = isinstance(terms, dict) and terms.get("claim")
    content = {
        "word": f"{word}, claim" if word and claim else word,
        "kind": badge,
        "when": str(verdict.get("at") or "")[:16].replace("T", " "),
        "body": markdown_page.to_html(
            re.sub(r"^!\[.*\]\(.*\)$", "", markdown.replace(first, "", 1), flags=re.MULTILINE)
        ),
        "name": path.stem,
        "title": title,
        "says": " ".join(first.replace("`", "").split()),
        "files": {name.rpartition(".")[2]: f"../{name}" for name in files.values()},
    }
    return ReportPage(
        path=f"{kind}s/{path.stem}.html",
        title=title,
        template="verdict.html.j2",
        content=content,
        files=files,
        contents=markdown_page.list_headings(markdown),
    )

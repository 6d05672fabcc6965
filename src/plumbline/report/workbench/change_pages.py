"""Builds a page for each verdict on a user's own modification and for each experiment, and the list of them.

A page has the Markdown of what it is of; where its runs are known, it shows them first, with their curves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.core.errors import visible
from plumbline.core.files import read_json, sha256_text
from plumbline.project.paths import EXPERIMENTS, VERDICTS
from plumbline.report import markdown_page
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import PageTable
from plumbline.report.workbench.drawn_curves import DrawnCurves

#: Letters of a name that pages show.
LONGEST = 120
#: Verdict of a try -> the word for it, and how its badge looks.
WORDS = {
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


#: What a screen whose set is better comes to: it moves no baseline, and nothing is kept.
CONFIRMED = "confirmed"


@dataclass(frozen=True, kw_only=True)
class ChangeRuns:
    """What a page shows of the runs of a change: their table and curves, a link to compare them, and its neighbours."""

    grid: PageTable | None = None
    charts: Sequence[DrawnCurves] = ()
    compare: str = ""
    before: tuple[str, str] | None = None
    after: tuple[str, str] | None = None


def name_end(verdict: str, *, is_screen: bool = False) -> str:
    """Name how a change ended; nothing where the verdict is none of those."""
    return CONFIRMED if is_screen and verdict == "keep" else WORDS.get(verdict, ("", ""))[0]


def write_name(text: str) -> str:
    """Write what a person called a change as pages show it: in one line of letters that are seen, not too long for a
    table, and different from every other name.
    """
    line = " ".join(visible(text).split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}... ({sha256_text(text)[:6]})"


def shorten_names(text: str, *names: str) -> str:
    """Write the names in a text that are too long as `write_name` does: what is said of them is seen then."""
    for name in sorted(names, key=len, reverse=True):
        if len(name) > LONGEST:
            for form in dict.fromkeys((name, visible(name), " ".join(visible(name).split()))):
                text = text.replace(form, write_name(name))
    return text


def sort_pages(pages: Sequence[ReportPage]) -> list[ReportPage]:
    """Sort the pages of what was tried: the newest decision first, then verdicts, which have no date."""
    return sorted(pages, key=lambda page: str(page.content["when"]), reverse=True)


def build_change_pages(results: Path, runs: Mapping[str, ChangeRuns]) -> list[ReportPage]:
    """Build a page for each verdict and each experiment of a preset's results; `runs`: what is shown of each experiment
    by its name.
    """
    return [
        build_change_page(path, kind, runs.get(path.stem, ChangeRuns()) if kind == EXPERIMENTS else ChangeRuns())
        for kind in (VERDICTS, EXPERIMENTS)
        for path in sorted(results.joinpath(kind).glob("*.md"))
    ]


def build_change_page(path: Path, kind: str, runs: ChangeRuns = ChangeRuns(), name: str = "") -> ReportPage:
    """Build the page of a verdict or an experiment from its Markdown and its numbers; `name`: of its page, where the
    Markdown's own may not be the only one.
    """
    name = name or path.stem
    markdown = path.read_text(encoding="utf-8", errors="replace")
    verdict = read_json(path.with_suffix(".json"))
    verdict = verdict if isinstance(verdict, dict) else {}
    terms = verdict.get("terms")
    terms = terms if isinstance(terms, dict) else {}
    markdown = shorten_names(markdown, str(terms.get("candidate", "")), str(terms.get("baseline", "")))
    paragraphs = [part.strip() for part in markdown.split("\n\n") if part.strip()]
    if runs.grid:  # which has the same and more
        markdown = re.sub(r"^## Runs$.*?(?=^## |\Z)", "", markdown, flags=re.MULTILINE | re.DOTALL)
    first = next((part for part in paragraphs if not part.startswith("#")), "")
    heading = next((part for part in paragraphs if part.startswith("# ")), f"# {path.stem}")
    title = heading.splitlines()[0].removeprefix("# ").replace("`", "")
    files = {path: f"files/{kind}/{name}.md"}
    for ending in (".json", ".svg"):
        if path.with_suffix(ending).exists():
            files[path.with_suffix(ending)] = f"files/{kind}/{name}{ending}"
    word = name_end(str(verdict.get("verdict")), is_screen="design" in verdict)
    badge = WORDS.get(str(verdict.get("verdict")), ("", ""))[1]
    content = {
        "word": f"{word}, claim" if word and terms.get("claim") else word,
        "kind": badge,
        "when": str(verdict.get("at") or "")[:16].replace("T", " "),
        "body": markdown_page.to_html(
            re.sub(r"^!\[.*\]\(.*\)$", "", markdown.replace(first, "", 1), flags=re.MULTILINE)
        ),
        "name": name,
        "title": title,
        "says": " ".join(first.replace("`", "").split()),
        "files": {name.rpartition(".")[2]: f"../{name}" for name in files.values()},
        "made": runs,
    }
    return ReportPage(
        path=f"{kind}s/{name}.html",
        title=title,
        template="verdict.html.j2",
        content=content,
        files=files,
        contents=[*([("runs", "Its runs")] if runs.grid else []), *markdown_page.list_headings(markdown)],
        scripts=("chart.js",) if runs.charts else (),
    )

"""Writes the pages of verdicts, whichever program fills them in, as Markdown, as HTML and in a terminal."""

from __future__ import annotations

import io
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import quote as quote_url

from plumbline.core.errors import visible
from plumbline.core.files import atomic_write_json, atomic_write_text, format_path
from plumbline.verdict.formatting import join_with_and, quote

if TYPE_CHECKING:
    from rich.console import RenderableType

    from plumbline.verdict.budget_picture import BudgetPicture
    from plumbline.verdict.picture import DecisionPicture
    from plumbline.verdict.screen_picture import ScreenPicture

#: The sections of a page on trained runs, in their order.
SECTIONS = (
    "What decides",
    "At each budget",
    "Effects",
    "The chosen set",
    "Together",
    "Design",
    "Runs",
    "Looks",
    "Before the runs",
    "After the runs",
    "By study targets",
    "What it stands on",
    "What it cost",
    "Ledger",
    "Limits",
    "How to repeat",
)
_IMAGE = re.compile(r"^!\[.*\]\(.*\)$", re.MULTILINE)


@cache
def _templates() -> Any:
    """The templates of pages: what they are filled with is escaped, and stands in one line, visibly."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from plumbline.verdict.picture_parts import clean

    return Environment(
        loader=PackageLoader("plumbline.verdict"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda each: clean(each) if isinstance(each, str) and not hasattr(each, "__html__") else each,
    )


def fill_template(template: str, **contents: Any) -> str:
    """Fill a template of `templates/`."""
    text: str = _templates().get_template(template).render(contents)
    return text


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictPage:
    """The page of a verdict on trained runs, with its picture and numbers next to it.

    Attributes:
        title: which arms were compared.
        sentence: the one to quote.
        told: sentences that stand beside it, by the checks of the evidence.
        details: what follows the picture.
        alt: what the picture shows, if it cannot be seen.
        checks: the report of the checks of a user's own method; empty if none were needed.
        sections: text by heading (`SECTIONS`); one without text is left out.
    """

    title: str
    sentence: str
    picture: DecisionPicture | BudgetPicture | ScreenPicture
    alt: str
    sections: Mapping[str, str]
    told: Sequence[str] = ()
    details: str = ""
    checks: Mapping[str, Any] = field(default_factory=dict)

    def markdown(self, picture_name: str) -> str:
        """Write the text of the page; `picture_name`: the file of its picture."""
        heads = (self.sentence, *self.told, *list_implausible(self.checks))
        image = f"![{self.alt}]({quote_url(picture_name)})"
        parts = [f"# {self.title}", *map(escape_tags, heads), image, self.details]
        texts = {"After the runs": describe_repeats(self.checks), **self.sections}
        if "methods" in self.checks:
            paragraphs = (describe_checks(self.checks), self.sections.get("Before the runs", ""))
            texts["Before the runs"] = "\n\n".join(filter(None, paragraphs))
        for heading in SECTIONS:
            if text := texts.get(heading):
                parts += [f"## {heading}", text]
        return visible(join_sections(parts))

    def html(self) -> str:
        """Write the page with its picture inside, to open from disk or to send; tags in the text are shown as text."""
        from markdown_it import MarkdownIt
        from markupsafe import Markup

        reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
        parts = _IMAGE.sub("\0", self.markdown("picture.svg"), count=1).split("\0")
        boxed = (reader.render(part).replace("<table>", '<div class="box"><table>') for part in parts)
        top, rest = (Markup(part.replace("</table>", "</table></div>")) for part in boxed)
        svg = self.picture.svg()
        picture, title = Markup(svg[svg.index("<svg") :]), self.title.replace("`", "")
        return fill_template("page.html.j2", title=title, top=top, picture=picture, rest=rest)

    def write(self, page: Path, numbers: Mapping[str, Any], *, html: bool = False) -> None:
        """Write the page, its picture and its numbers; the page last, so that what it refers to is there."""
        picture = page.with_suffix(".svg")
        if html:
            atomic_write_text(page.with_suffix(".html"), self.html())
        atomic_write_json(page.with_suffix(".json"), numbers)
        atomic_write_text(picture, self.picture.svg())
        atomic_write_text(page, self.markdown(picture.name))


def print_in_terminal(
    parts: Iterable[RenderableType],
    notes: Iterable[str],
    sentence: str,
    closing: Iterable[str] = (),
    *,
    file: TextIO | None = None,
    width: int = 80,
) -> None:
    """Print what a terminal shows of a decision; into a file or pipe in `width` columns and without colours.

    Args:
        parts: tables and lines that come first.
        notes: what stands next to the sentence, dimmed.
        closing: lines after the sentence.
    """
    from rich.console import Console, Group  # which a dry run needs not
    from rich.text import Text

    dimmed = [Text(visible(note), style="dim") for note in notes]
    page = Group(*parts, *dimmed, Text(visible(sentence), style="bold"), *(Text(visible(line)) for line in closing))
    file, plain = file or sys.stdout, partial(Console, markup=False, emoji=False, highlight=False)
    if file.isatty():
        plain(file=file).print(page)
        return
    text = io.StringIO()
    plain(file=text, width=width, color_system=None).print(page)
    file.write("\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n")


def join_sections(sections: Iterable[str]) -> str:
    """Write a page from its headings and paragraphs; those that are empty are left out."""
    return "\n\n".join(section for section in sections if section) + "\n"


def write_list(lines: Sequence[str]) -> str:
    """Write lines as a list; nothing without any."""
    return "\n".join(f"- {line}" for line in lines)


def escape_tags(text: str) -> str:
    """Write a sentence that quotes others: no tag but in code, where it is shown as it is."""
    parts = visible(text).split("`")
    return "`".join(part if place % 2 else part.replace("<", "&lt;") for place, part in enumerate(parts))


def write_repeat(begin: str, command: str, page: Path) -> str:
    """Write the commands that make a page again and that check it against its ledger; `begin`: the sentence before."""
    check = f"plumbline verdict --check-page {shlex.quote(format_path(page))}"
    return f"{begin}\n\n```console\n$ {command}\n$ {check}\n```"


def describe_checks(report: Mapping[str, Any]) -> str:
    """State which checks held, of which methods, on models of which size."""
    size, methods = report["size"], report["methods"]
    starts = [quote(method) for method, entry in methods.items() if entry["starts_as"]]
    begins = f" Initialised with their baseline's logits: {', '.join(starts)}." if starts else ""
    trained = "".join(f" {sentence[0].upper()}{sentence[1:]}." for sentence in report["trained"]["words"])
    tried = f"tried on models of {size['layers']} layers and width {size['width']}"
    return (
        f"Before anything was trained, {', '.join(report['checks'])} held for "
        f"{join_with_and([quote(method) for method in methods])}, {tried} with inputs of 2 tokens up to their "
        f"context.{trained}{begins} Data: every run of a comparison reads the same sequences in the same order, and "
        "evaluates at the same steps; a method that does not is refused."
    )


def describe_repeats(report: Mapping[str, Any]) -> str:
    """State for which arms causality held again with the weights that they were trained to; empty if none was tried."""
    weights = report.get("trained_weights", {})
    if not weights:
        return ""
    phrases = [f"{quote(arm)} {visible(result)}" for arm, result in weights.items()]
    return f"With the weights that they were trained to, causality was looked at again: {'; '.join(phrases)}."


def list_implausible(report: Mapping[str, Any]) -> list[str]:
    """Write a line for each method whose gain no modification ever had: what to look at before it is believed."""
    return [f"Flagged: {quote(method)}: {reason}." for method, reason in report.get("implausible", {}).items()]

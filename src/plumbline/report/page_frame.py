"""Defines what each page of the report has: its path, its head, and the banner on how far to trust its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.specs.corpus import REPRODUCTION

#: Preset -> how the banner names it, and its text.
_BANNERS = {
    "paper": (
        "paper",
        "Sizes and budget of the papers, under the interpretations that are named with each study.",
    ),
    "mini": ("mini, no reproduction", "Small models on one GPU: not the papers' scale, no reproduction of them."),
    "evening": (
        "evening, no reproduction",
        "Small models over several seeds: what two processor cores learn in two hours, told apart by validation loss. "
        "It is no evidence about models of the papers' sizes.",
    ),
    "demo": (
        "demo, no reproduction",
        "Tiny models: what differs here holds at this size and budget alone, and says nothing about the papers' sizes.",
    ),
    "smoke": ("smoke, no reproduction", "A few steps of tiny models for tests: these numbers mean nothing."),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PresetWarning:
    """The warning that stands on every page: the preset, and at the papers' size whose texts were trained on. `short`
    also stands in each page's title and on printed sheets; `badge`, if any, next to the title of each table and figure.
    """

    preset: str
    short: str
    sentence: str
    badge: str = ""

    @classmethod
    def of(cls, preset: str, texts: Mapping[str, str]) -> PresetWarning:
        """Choose the banner of a preset, for a page that shows these studies.

        Args:
            texts: study -> where its texts are from, empty for the paper's own (`Study.other_texts`).
        """
        short, text = _BANNERS[preset]
        other_sources = {study: source for study, source in texts.items() if source}
        if not other_sources:
            return cls(preset=preset, short=short, sentence=text, badge="" if preset == REPRODUCTION else preset)
        sources = ", ".join(f"{study}: {source}" for study, source in other_sources.items())
        return cls(
            preset=preset,
            short=f"{preset}, other texts, no reproduction",
            sentence=f"The papers' sizes and budget, but texts of another source ({sources}): no reproduction of them.",
            badge="other texts" if len(other_sources) == len(texts) else "",
        )

    @property
    def loud(self) -> bool:
        """Whether some of the page's numbers do not reproduce a paper's."""
        return self.short != _BANNERS[REPRODUCTION][0]


@dataclass(frozen=True, kw_only=True)
class ReportPage:
    """A page of the report: its path in the report, its template and the content that it fills in.

    `nav`: its name in the list of pages, of those that are in it; `files`: what it links to, source -> where it lies in
    the report. `study`: the study that it is of, if it is of one alone. `tabs`: the pages of that study with their
    names, path first; `contents`: the sections of the page with their names, id first. `scripts`: what it runs besides
    the report's own script.
    """

    path: str
    title: str
    template: str
    content: dict[str, Any]
    nav: str = ""
    study: str = ""
    files: dict[Path, str] = field(default_factory=dict)
    tabs: Sequence[tuple[str, str]] = ()
    contents: Sequence[tuple[str, str]] = ()
    scripts: Sequence[str] = ()

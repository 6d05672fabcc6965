"""What every page has: where it lies, what stands in its head, and the banner that says what its numbers are worth."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Preset -> how the banner names it, and what it says.
_BANNERS = {
    "paper": (
        "paper",
        "Sizes and budget as the documents have them, under the rulings that are named with each study.",
    ),
    "mini": ("mini, no reproduction", "Small models on one GPU: not the documents' scale, no reproduction of them."),
    "demo": (
        "demo, no reproduction",
        "Tiny models: the path of each experiment works, and its numbers say nothing about the methods.",
    ),
    "smoke": ("smoke, no reproduction", "A few steps of tiny models for tests: these numbers mean nothing."),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Banner:
    """What nobody may miss: the preset. `short` also stands in each page's title, in captions and on printed sheets."""

    preset: str
    short: str
    words: str

    @classmethod
    def of(cls, preset: str) -> Banner:
        """The banner of a preset."""
        short, words = _BANNERS[preset]
        return cls(preset=preset, short=short, words=words)

    @property
    def loud(self) -> bool:
        """Whether its numbers are no reproduction."""
        return self.preset != "paper"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page: where it lies in the report, its template and what that shows. `nav`: its name in the list of pages, of
    those that are in it; `files`: what it links to, source -> where it lies in the report."""

    path: str
    title: str
    template: str
    content: dict[str, Any]
    nav: str = ""
    files: dict[Path, str] = field(default_factory=dict)

"""Names the paper that a study is of, as pages and tables show it next to the study's name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from plumbline.core.structs import ClosedStruct
from plumbline.specs.field_types import Text

#: What a document is, before its title: a paper needs no word.
KINDS = {"paper": "", "summary": "a summary of ", "post": "the post "}


class Paper(ClosedStruct, frozen=True, kw_only=True):
    """A published document; `summary`: somebody's summary of the paper whose title and link these are.

    `link` is empty if it has none; `short`: the title as tables show it, the title itself where none is given.
    """

    title: Text
    kind: Literal["paper", "summary", "post"]
    short: Text = ""
    authors: Annotated[tuple[Text, ...], Meta(min_length=1)] = ()
    link: Annotated[str, Meta(pattern=r"^https?://\S+\Z", description="is no link; begin it with https://")] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.short:
            msgspec.structs.force_setattr(self, "short", self.title)

    @classmethod
    def of(cls, definition: dict[str, Any]) -> Paper | None:
        """The paper that a study's YAML names; None if it names none."""
        return msgspec.convert(definition["paper"], cls) if "paper" in definition else None

    @property
    def kind_words(self) -> str:
        """What it is, to stand before its title; empty for a paper."""
        return KINDS[self.kind]

    def __str__(self) -> str:
        """One line: what it is, the short title, whose it is."""
        families = [name.rpartition(" ")[2] for name in self.authors]
        authors = " and ".join(families) if len(families) < 3 else f"{families[0]} et al."
        return f'{self.kind_words}"{self.short}"' + (f" ({authors})" if authors else "")


def name_study(study: str, paper: Paper | None) -> str:
    """A study with its paper, as a line above tables and pages."""
    return f"Study `{study}`: {paper}." if paper else f"Study `{study}`."

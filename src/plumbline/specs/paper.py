"""Names the paper that a study is of, as pages and tables show it beside the study's name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: What a document is, before its title: a paper needs no word.
KINDS = {"paper": "", "summary": "a summary of ", "post": "the post "}


@dataclass(frozen=True, kw_only=True, slots=True)
class Paper:
    """A published document. `link` is empty where it has none; `short`: the title as tables show it."""

    title: str
    short: str
    authors: tuple[str, ...]
    link: str
    kind: str

    @classmethod
    def of(cls, definition: dict[str, Any]) -> Paper | None:
        """The paper that a study's YAML names; None where it names none."""
        said = definition.get("paper")
        if said is None:
            return None
        rest = {"short": said.get("short", said["title"]), "link": said.get("link", ""), "kind": said["kind"]}
        return cls(title=said["title"], authors=tuple(said.get("authors", ())), **rest)

    @property
    def kind_words(self) -> str:
        """What it is, to stand before its title; empty for a paper."""
        return KINDS[self.kind]

    def __str__(self) -> str:
        """One line: what it is, the short title, whose it is."""
        families = [name.rpartition(" ")[2] for name in self.authors]
        whose = " and ".join(families) if len(families) < 3 else f"{families[0]} et al."
        return f'{self.kind_words}"{self.short}"' + (f" ({whose})" if whose else "")


def named(study: str, paper: Paper | None) -> str:
    """A study with its paper, as a line above tables and pages."""
    return f"Study `{study}`: {paper}." if paper else f"Study `{study}`."

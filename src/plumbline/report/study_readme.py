"""Reads what a study's README says of its targets and of what was found, for pages that have no better words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from plumbline.specs import study_folders
from plumbline.specs.study_config import Study

#: Headings of a study's README (studies/README.md).
TARGETS, FOUND = "Targets", "What was found here"
#: A row of the table of targets: names in back quotes, and what they show.
_ROW = re.compile(r"^\|\s*(`[^|]+`)\s*\|\s*(.+?)\s*\|$", flags=re.MULTILINE)
#: A file beside the README in brackets, which the report has not.
_BESIDE = re.compile(r"\s*\(\[[^\]]*\]\((?!https?:)[^)]*\)\)")


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyReadme:
    """What a study's README says. `targets`: name -> what it shows; `found`: Markdown; empty where it says nothing."""

    targets: dict[str, str]
    found: str

    def title(self, target: str) -> str:
        """Say what a target shows, or its name as words where the README does not say it."""
        words = self.targets.get(target, target.replace("_", " "))
        return words[:1].upper() + words[1:]


def read(study: Study) -> StudyReadme:
    """Read the README of the folder that a study's tables and figures are from."""
    path = study_folders.folder(study.code, study.root) / study_folders.README
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return StudyReadme(targets=_targets(_section(text, TARGETS)), found=_BESIDE.sub("", _section(text, FOUND)).strip())


def _section(text: str, heading: str) -> str:
    """The text below a heading of the second level, up to the next one."""
    found = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def _targets(section: str) -> dict[str, str]:
    """Each target with its words."""
    found: dict[str, str] = {}
    for names, words in _ROW.findall(section):
        listed = re.findall(r"`([^`]+)`", names)
        found |= dict(zip(listed, parts(words, len(listed)), strict=True))
    return found


def parts(words: str, count: int) -> list[str]:
    """The words of a row of `count` targets, each its own part, or all of them the whole where it has no such parts."""
    signs = ("; ", ", and ", *([", "] if count > 2 else []))  # between two a comma alone may be anything
    return next((split for sign in signs if len(split := words.split(sign)) == count), [words] * count)

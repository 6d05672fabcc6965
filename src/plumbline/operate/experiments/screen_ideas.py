"""Reads `ideas.toml`: the ideas of a screen, each as flags, a patch or a branch, and which are never in one run."""

from __future__ import annotations

import shlex
import tomllib
from itertools import combinations
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.structs import ClosedStruct, Fault, convert
from plumbline.core.toml_keys import check_keys
from plumbline.verdict.decision.experiment import BASELINE

#: The key of pairs that are never in one run.
NEVER_TOGETHER = "never_together"
#: Ideas that a file has at most; pairs of them are looked at.
MOST_IDEAS = 500
_IDEA_NAME = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,39}$",
        description="is no name of an idea: write at most 40 letters, digits and . _ + -, a letter or digit first",
    ),
]


class Idea(ClosedStruct, frozen=True, kw_only=True):
    """What an idea changes: flags of the command, and the code by a patch or a branch.

    Attributes:
        flags: words that the command is given in addition.
        patch: a file that git or diff wrote, from where the ideas' file lies.
        branch: a branch, tag or commit.
    """

    flags: str = ""
    patch: str = ""
    branch: str = ""

    def __post_init__(self) -> None:
        if not (self.flags.strip() or self.patch or self.branch):
            raise Fault("is empty; write flags, a patch or a branch: { flags = '--warmup 200' }")
        if self.patch and self.branch:
            raise Fault("has a patch and a branch; commit the patch to the branch, or make two ideas")
        if "\0" in self.flags + self.patch + self.branch:
            raise Fault("has a null character, which no command can have; take it out")
        try:
            shlex.split(self.flags)
        except ValueError as error:
            raise Fault(f"{self.flags!r} are no words of a shell ({error}); close the quotes", "flags") from None

    @property
    def words(self) -> tuple[str, ...]:
        """The flags as the command is given them."""
        return tuple(shlex.split(self.flags))

    @property
    def text(self) -> str:
        """What it changes, as a page says it."""
        return ", ".join(filter(None, (self.patch or (self.branch and f"branch {self.branch}"), self.flags.strip())))


class IdeasFile(ClosedStruct, frozen=True, kw_only=True):
    """What `ideas.toml` states; pairs of `never_together` are in no run of the design, nor in what is confirmed."""

    ideas: dict[_IDEA_NAME, Idea]
    never_together: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        if not 2 <= len(self.ideas) <= MOST_IDEAS:
            raise Fault(
                f"{len(self.ideas)} of them, and a screen has 2 to {MOST_IDEAS}; for one, plumbline try -m WORDS",
                "ideas",
            )
        if BASELINE in self.ideas:
            raise Fault("is what ideas are compared with; give the idea another name", "ideas", BASELINE)
        for number, group in enumerate(self.never_together):
            if len(set(group)) < 2:
                raise Fault(f"{list(group)} names no two ideas; name two or more", NEVER_TOGETHER, number)
            for name in group:
                if name not in self.ideas:
                    raise Fault(f"there is no idea {name!r}{nearest(name, self.ideas)}", NEVER_TOGETHER, number)

    @property
    def excluded(self) -> list[tuple[str, str]]:
        """The pairs of ideas that somebody says are never in one run, each once."""
        places = {name: place for place, name in enumerate(self.ideas)}
        ordered = (sorted(set(group), key=places.__getitem__) for group in self.never_together)
        return list(dict.fromkeys(pair for group in ordered for pair in combinations(group, 2)))

    @property
    def of_one_flag(self) -> list[tuple[str, str, str]]:
        """The pairs of ideas that give the command the same flag, with the flag: only one of them would count."""
        flags = {name: list_flags(idea.words) for name, idea in self.ideas.items()}
        return [
            (first, second, shared)
            for first, second in combinations(self.ideas, 2)
            if (shared := next((flag for flag in flags[first] if flag in flags[second]), ""))
        ]


def list_flags(words: tuple[str, ...]) -> list[str]:
    """Name what the words of a command set: ``--lr`` of ``--lr 3e-3`` and ``--lr=3e-3``, ``lr`` of ``lr=3e-3``."""
    names = [word.partition("=")[0] for word in words if _is_flag(word) or "=" in word]
    return list(dict.fromkeys(names))


def _is_flag(word: str) -> bool:
    """Whether a word is a flag, and not a number below zero."""
    return word.startswith("-") and word.strip("-")[:1].isalpha()


def load(path: Path) -> IdeasFile:
    """Read a file of ideas.

    Raises:
        PlumblineError: there is none, or something in it cannot be meant; the key, the file and the remedy are named.
    """
    try:
        text = path.read_text(encoding="utf-8")
        check_keys(text)
        content = tomllib.loads(text)
    except OSError as error:
        raise PlumblineError(
            f"{path} cannot be read ({error.strerror}); a file of ideas has [ideas] and a line each: "
            'warmup = { flags = "--warmup 200" }'
        ) from None
    except (ValueError, RecursionError) as error:  # decoding, TOML, and keys that would take hours
        raise PlumblineError(f"{path} is not TOML ({error})") from None
    ideas = content.get("ideas")
    for name, idea in ideas.items() if isinstance(ideas, dict) else ():
        if isinstance(idea, str):
            raise PlumblineError(f"{path}: ideas.{name}: is a text; say what it is: {{ flags = {idea!r} }}")
        if isinstance(idea, dict) and (subkey := next((key for key in idea if isinstance(idea[key], dict)), "")):
            raise PlumblineError(
                f'{path}: ideas.{name}.{subkey}: a dot divides a key; write the name in quotes: "{name}.{subkey}" = ...'
            )
        if isinstance(idea, list):
            raise PlumblineError(
                f"{path}: ideas.{name}: is a list, and no idea; pairs that are never in one run stand above [ideas]: "
                f'{NEVER_TOGETHER} = [["a", "b"]]'
            )
    file: IdeasFile = convert(IdeasFile, content, f"{path}:")
    return file

"""Carries out an input: writes its files into an empty folder, runs its command lines there, and states what they gave.

Command lines run in this process, through the one command `plumbline`, so that an input knows no module of a door.
"""

from __future__ import annotations

import io
import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from plumbline import cli
from plumbline.verdict.comparability import equal_budget
from tests.kept_verdicts.normalise import normalise, normalise_json

#: What a user's machine may have otherwise: a terminal, a language, a time zone, names that git would ask for.
ENVIRONMENT = {"COLUMNS": "80", "LINES": "24", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC", "NO_COLOR": "1"}
UNSET = ("FORCE_COLOR", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID")
#: Keys of `--json` that the object next to the page has not.
OF_THE_COMMAND = ("verdict", "exit_code", "sentence", "page")


@dataclass(frozen=True)
class Edit:
    """What is done to the folder between two command lines, and in which words the expectation has it."""

    title: str
    action: Callable[[Path], object]


@dataclass(frozen=True)
class Show:
    """What no command line makes without training, or not in seconds: `render` gives its text."""

    title: str
    render: Callable[[Path], str]


Step = str | Edit | Show


@dataclass(frozen=True, kw_only=True)
class VerdictInput:
    """An input: its `files` by name, or the function that builds its folder; its steps; and which files are shown.

    Attributes:
        trains: its command lines run trainers, so that seconds and the machine are in what they give.
        stand_ins: what stands in for what would train, by the dotted names of what they replace.
    """

    name: str
    files: Mapping[str, str] = field(default_factory=dict)
    build: Callable[[Path], object] | None = None
    steps: tuple[Step, ...] = ()
    shows: tuple[str, ...] = ()
    trains: bool = False
    stand_ins: Mapping[str, object] = field(default_factory=dict)


def write(name: str, text: str) -> Edit:
    """A file that is written, or written over."""
    return Edit(f"write {name}", lambda folder: _write(folder / name, text))


def replace(name: str, was: str, becomes: str) -> Edit:
    """A file in which some words become others; `name` may be a pattern of one file."""

    def action(folder: Path) -> None:
        (path,) = folder.glob(name)
        text = path.read_text(encoding="utf-8")
        assert was in text, f"{path} has no {was!r}"
        path.write_text(text.replace(was, becomes), encoding="utf-8")

    return Edit(f"in {name}: {was!r} becomes {becomes!r}", action)


def remove(name: str) -> Edit:
    """A file that is removed."""
    return Edit(f"remove {name}", lambda folder: (folder / name).unlink())


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def carry_out(case: VerdictInput) -> str:
    """Carry out an input, and return what it gave, as its expectation has it."""
    # Not pytest's folder: lines that are folded break depending on the path's length.
    with tempfile.TemporaryDirectory(prefix="kept_", dir="/tmp") as temporary, pytest.MonkeyPatch.context() as patch:
        top = Path(temporary).resolve()
        folder = top / "here"
        folder.mkdir()
        for name, value in (ENVIRONMENT | {"XDG_STATE_HOME": str(top / "state"), "HOME": str(top / "home")}).items():
            patch.setenv(name, value)
        for name in UNSET:
            patch.delenv(name, raising=False)
        patch.chdir(folder)
        if case.build is not None:
            case.build(folder)
        for name, text in case.files.items():
            _write(folder / name, text)
        if case.trains:  # how long runs of milliseconds take is the machine's affair
            patch.setattr(equal_budget, "LEAST_RATIO", 20.0)
        for name, stand_in in case.stand_ins.items():  # after what is built once, for all inputs
            patch.setattr(name, stand_in)
        return "\n".join(_parts(case, folder, top)) + "\n"


def _parts(case: VerdictInput, folder: Path, top: Path) -> Iterator[str]:
    printed = ""
    for step in case.steps:
        if isinstance(step, Edit):
            yield f"### {step.title}\n"
            step.action(folder)
            continue
        if isinstance(step, Show):
            yield f"### {step.title}\n{normalise(step.render(folder), top, trains=case.trains)}\n"
            continue
        code, out, error = run(shlex.split(step))
        yield f"### {step}\nexit code {code}"
        if out:
            printed = out if out.startswith("{") else printed
            yield _text("stdout", out, case, top)
        if error:
            yield _text("stderr", error, case, top)
        yield ""
    for pattern in case.shows:
        paths = sorted(folder.glob(pattern))
        assert paths, f"{case.name}: no file {pattern}"
        for path in paths:
            text = path.read_text(encoding="utf-8")
            name = normalise(str(path.relative_to(folder)), top, trains=case.trains)
            if path.suffix == ".json" and _is_printed(text, printed):
                yield f"=== file {name}\nas the object above, without {', '.join(OF_THE_COMMAND)}\n"
            else:
                yield _text(f"file {name}", text, case, top) + "\n"


def run(command: list[str]) -> tuple[int, str, str]:
    """Run a command line; return its exit code and what it wrote to stdout and stderr."""
    assert command[0] == "plumbline", command
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(sys, "argv", command)
        out, error = stack.enter_context(redirect_stdout(io.StringIO())), io.StringIO()
        stack.enter_context(redirect_stderr(error))
        try:
            cli.main()
            code: object = None
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int), code
    return code, out.getvalue(), error.getvalue()


def _text(title: str, text: str, case: VerdictInput, top: Path) -> str:
    if title.endswith(".svg"):
        title, text = f"words of {title}", words_of_picture(text)
    if title.endswith(".html"):
        title, text = f"words of {title}", words_of_page(text)
    clean = normalise_json(text, top, trains=case.trains) or normalise(text, top, trains=case.trains)
    return f"=== {title}\n{clean.rstrip()}"


def _is_printed(text: str, printed: str) -> bool:
    """Whether a file's object is what a command line printed, less what only that states."""
    if not printed:
        return False
    numbers = {key: value for key, value in json.loads(printed).items() if key not in OF_THE_COMMAND}
    return json.dumps(json.loads(text), sort_keys=True) == json.dumps(numbers, sort_keys=True)


def words_of_picture(text: str) -> str:
    """What a picture states: title, description, labels. Where its marks lie is held by tests of the picture."""
    from xml.etree import ElementTree

    pieces = (part.strip() for part in ElementTree.fromstring(text).itertext())
    return "\n".join(part for part in pieces if part and "{" not in part)


def words_of_page(text: str) -> str:
    """What a page of HTML states, a line for each piece of text; its style is held by the page's own tests."""
    from html.parser import HTMLParser

    class Words(HTMLParser):
        lines: list[str] = []
        hidden = False

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.hidden = tag in ("style", "script")

        def handle_endtag(self, tag: str) -> None:
            self.hidden = False

        def handle_data(self, data: str) -> None:
            if not self.hidden and data.strip():
                self.lines.append(" ".join(data.split()))

    reader = Words()
    reader.lines = []
    reader.feed(text)
    return "\n".join(reader.lines)

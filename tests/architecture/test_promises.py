"""What README and docs promise: promises.yaml names the page of each promise and the tests that hold it."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from plumbline.core.errors import PlumblineError
from tests.architecture import promises as command

#: Promises that no test holds, each with a `why`. A promise that gets its test lowers the number; more is a decision.
WITHOUT_A_TEST = 6


@pytest.fixture(scope="module")
def promises() -> list[dict[str, Any]]:
    return command.read()


@cache
def names_in(path: Path) -> set[str]:
    """The tests of a file as pytest names them, by its syntax tree: nothing is imported."""
    if not path.is_file():
        return set()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    inside = [(f"{each.name}::", each.body) for each in body if isinstance(each, ast.ClassDef)]
    functions = [(prefix, each) for prefix, part in [("", body), *inside] for each in part]
    return {f"{prefix}{each.name}" for prefix, each in functions if isinstance(each, ast.FunctionDef)}


def test_every_page_and_every_test_is_there(repository: Path, promises: list[dict[str, Any]]) -> None:
    gone = {each["said_in"] for each in promises if not (repository / each["said_in"]).is_file()}
    for test in (test for each in promises for test in each["held_by"]):
        file, _, name = test.partition("::")
        if not name.rpartition("::")[2].startswith("test_") or name not in names_in(repository / file):
            gone.add(test)
    assert not gone, f"tests/promises.yaml names what is not there: {sorted(gone)}"


def test_a_promise_is_written_once_and_says_what_holds_it(promises: list[dict[str, Any]]) -> None:
    for each in promises:
        assert each.keys() == {"promise", "said_in", "held_by"} | (set() if each["held_by"] else {"why"}), each
    sentences = [(each["said_in"], each["promise"]) for each in promises]
    assert len(set(sentences)) == len(sentences) > 200


def test_no_more_promises_are_without_a_test(promises: list[dict[str, Any]]) -> None:
    assert sum(not each["held_by"] for each in promises) == WITHOUT_A_TEST


def test_a_command_prints_each_promise_with_its_page(
    promises: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["promises"])
    command.main()
    *lines, last = capsys.readouterr().out.splitlines()
    printed, page, promise = [], "", ""
    for line in lines:
        text = line.strip()
        indent = len(line) - len(text)
        page, promise = (text, "") if indent == 0 else (page, text if indent == 2 else promise)
        if indent == 4:
            printed.append((page, promise, text))
    assert sorted(printed) == sorted(
        (each["said_in"], each["promise"], test)
        for each in promises
        for test in each["held_by"] or [f"no test: {each['why']}"]
    )
    assert last == f"{len(promises)} promises, {WITHOUT_A_TEST} of them without a test"


def test_the_command_prints_one_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["promises", "docs/disk.md"])
    command.main()
    assert next(line for line in capsys.readouterr().out.splitlines() if line[0] != " ") == "docs/disk.md"
    monkeypatch.setattr(sys, "argv", ["promises", "docs/disc.md"])
    with pytest.raises(PlumblineError, match=r"'docs/disc\.md'; did you mean 'docs/disk\.md'"):
        command.main()

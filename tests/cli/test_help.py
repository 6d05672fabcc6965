"""The help of a verb is for people: as wide in every terminal, in paragraphs, without what only rules pass."""

from __future__ import annotations

import re
import sys

import pytest

from plumbline.cli import VERBS, main
from plumbline.core import command_line

#: What the workflow's rules pass, and nobody types.
FROM_RULES = frozenset({"--configuration-json", "--expected-runs-digest", "--fingerprint", "--work-shown-as"})


def help_of(*args: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["plumbline", *args, "--help"])
        main()
    assert not ended.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_it_is_as_wide_in_every_terminal(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    args = [verb] if verb else []
    monkeypatch.setenv("COLUMNS", "200")
    wide = help_of(*args, capsys=capsys)
    monkeypatch.setenv("COLUMNS", "60")
    assert wide == help_of(*args, capsys=capsys)
    assert [line for line in wide.splitlines() if len(line) > 80] == []
    assert FROM_RULES.isdisjoint(re.findall(r"--[a-z-]+", wide))


def test_what_only_rules_pass_is_accepted_all_the_same() -> None:
    from plumbline.plan.__main__ import arguments as plan
    from plumbline.results.__main__ import arguments as results

    assert plan().parse_args(["--configuration-json", "{}"]).configuration_json == "{}"
    hidden = sorted(FROM_RULES - {"--configuration-json"})
    args = results().parse_args(["table", "transfer", "table2", "--out", "x.csv", *(f"{name}=abc" for name in hidden)])
    assert [getattr(args, name[2:].replace("-", "_")) for name in hidden] == ["abc"] * len(hidden) != []


def test_paragraphs_are_filled_and_commands_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{'many words ' * 20}\n\n    plumbline verb   --option\n\nThe end."

    def verb() -> None:
        command_line.Parser(text, prog="verb").parse_args(["--help"])

    with pytest.raises(SystemExit):
        command_line.run(verb)
    out = capsys.readouterr().out
    assert "\n\n    plumbline verb   --option\n\nThe end.\n" in out
    assert 70 < max(map(len, out.splitlines())) <= command_line.HELP_WIDTH

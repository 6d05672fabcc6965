"""The shell lines of the rules: whatever a user can write is quoted, and none grows with the number of runs."""

from __future__ import annotations

import re
from pathlib import Path

#: Words of a command line, several or none: spelt by shlex (flags), pinned in the code, or meant as words by a profile.
WORDS = {"params.flags", "params.requirement", "resources.launch", "resources.trainer_flags"}
#: Lists that have as many files as a rule states.
SHORT = {"workflow/rules/copies.smk": {"input"}}


def shell_lines(repository: Path) -> list[tuple[str, str]]:
    """File, and a field of one of its shell lines."""
    fields = []
    for path in (repository / "Snakefile", *sorted((repository / "workflow" / "rules").glob("*.smk"))):
        for block in re.findall(r"^    shell:\n((?:        .*\n)+)", path.read_text(), flags=re.M):
            fields += [(str(path.relative_to(repository)), field) for field in re.findall(r"{([^}]+)}", block)]
    assert len(fields) > 60
    return fields


def test_every_field_of_a_shell_line_is_quoted(repository: Path) -> None:
    assert {field for _, field in shell_lines(repository) if not field.endswith(":q")} == WORDS


def test_no_shell_line_holds_a_list_that_grows(repository: Path) -> None:
    """One word of a command line holds 128 KiB; 1,471 runs of a study, or 2,000 token shards, did not fit."""
    for file, field in shell_lines(repository):
        name = field.removesuffix(":q")
        assert name != "input" or name in SHORT.get(file, ()), f"{file}: {field}"
        assert name != "input.tokens"

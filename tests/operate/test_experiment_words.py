"""The words of `plumbline try`: those of `plumbline verdict` where they mean the same, and others where they do not."""

from __future__ import annotations

import pytest

from plumbline.cli import VERBS, VerbCommand
from plumbline.operate.experiments.__main__ import arguments


def test_a_try_is_told_what_decides_in_the_words_of_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    verdict, own = (VerbCommand(name, VERBS[name]).options() for name in ("verdict", "try"))
    assert {"--paired", "--minimum-gain", "--alpha", "--json"} <= verdict & own
    given = arguments().parse_args(["try", "softpick", "--paired", "--minimum-gain", "0.01", "--worth-sigmas", "3"])
    assert (given.paired, given.minimum_gain, given.worth_sigmas) == (True, 0.01, 3)
    assert "--worth" in verdict
    with pytest.raises(SystemExit) as ended:
        arguments().parse_args(["try", "softpick", "--worth", "0.01"])  # nats there, and would be sigmas here
    assert ended.value.code == 2 and "unrecognized arguments: --worth" in capsys.readouterr().err

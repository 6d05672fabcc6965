"""What `plumbline.toml` and the command line state of a try is its question."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from plumbline.operate.experiments import __main__ as experiment_verbs
from plumbline.operate.experiments.folder_arguments import question_again, question_of
from plumbline.verdict.own_trainer import trainer_file


def test_equal_measures_are_those_of_the_file_or_of_the_line() -> None:
    content: dict[str, object] = {"run": {"command": "python t.py"}, "metric": {"name": "loss"}}
    parts: dict[str, object] = {"decide": {"equal": ["seconds"]}, "guard": {"memory_bytes": "<= 1.05x"}}
    file = trainer_file.parse(content | parts, Path("plumbline.toml"))
    baseline: Any = SimpleNamespace(file=file, first_seed=42)
    arms: list[Any] = [SimpleNamespace(words=name, method=name, flags=()) for name in ("new", "base")]
    for flags, equal in (([], ("seconds",)), (["--equal", "step,tokens"], ("step", "tokens"))):
        options = experiment_verbs.arguments().parse_args(["try", "-m", "x", *flags])
        assert question_of(options, baseline, *arms).equal == equal
        assert question_of(options, baseline, *arms).guards == {"memory_bytes": "<= 1.05x"}
    claim = question_again(baseline, *arms, "x", "loss")
    assert claim.equal == ("seconds",) and claim.guards, "a claim is held to them too"

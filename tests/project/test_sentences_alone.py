"""Of what a user can put right Snakemake shows the sentence, whatever it was at when a function of a rule refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import snakemake.cli  # noqa: F401  (its modules import one another, in this order alone)
import snakemake.exceptions as exceptions

from plumbline.core.errors import PlumblineError
from plumbline.project import snakemake_messages


def refuse(error: Exception) -> str:
    """What is shown of an error in an input function that is raised again while another one is handled, as Snakemake
    does where the file has been looked for before."""
    rule = SimpleNamespace(workflow=SimpleNamespace(linemaps={}), name="pretrain", lineno=4, snakefile="pretrain.smk")
    try:
        try:
            raise error
        except Exception as reason:
            raise exceptions.InputFunctionException(reason, rule=rule, wildcards={"seed": "101"})  # noqa: B904
    except exceptions.InputFunctionException as wrapped:
        kept = wrapped
    try:
        try:
            {}["outcome.json"]
        except KeyError:
            raise kept  # noqa: B904
    except exceptions.InputFunctionException as again:
        return str(exceptions.format_exception_to_string(again, {}))


def test_a_refusal_is_its_sentence_and_a_bug_has_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((exceptions, "format_exception_to_string"), (exceptions.InputFunctionException, "__init__")):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # as it was, after the test
    snakemake_messages.show_sentences_alone()
    assert refuse(PlumblineError("no learning rate yet")) == "error: no learning rate yet"
    bug = refuse(ValueError("a bug"))
    assert "ValueError: a bug" in bug and "seed=101" in bug and "pretrain.smk" in bug

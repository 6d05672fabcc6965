"""What Snakemake is spared is answered as Snakemake answers it."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake.cli  # noqa: F401  (its modules import one another, in this order alone)
import snakemake.common as common
from snakemake.dag import DAG
from snakemake.exceptions import ChildIOException
from snakemake.io import AnnotatedString, _IOFile, ancient, is_flagged

from plumbline.project import snakemake_shortcuts


@pytest.fixture(autouse=True)
def spared() -> None:
    snakemake_shortcuts.spare_repetitions()


@pytest.mark.parametrize(
    ("outputs", "nested"),
    [
        (["a/b", "a/bc", "a/c/d"], False),
        (["a/b", "a/b/c"], True),
        (["a/b/c/d", "a"], True),
        (["a/b", str(Path.cwd() / "a/b/c")], True),
        ([], False),
    ],
)
def test_an_output_in_an_output_is_found(outputs: list[str], nested: bool) -> None:
    assert snakemake_shortcuts.has_nested_outputs(outputs) is nested

    class Job:
        def __init__(self, output: str) -> None:
            self.output, self.rule = [output], SimpleNamespace(name="rule")

        def __lt__(self, other: object) -> bool:
            return False

    dag: Any = SimpleNamespace(jobs=[Job(output) for output in outputs])
    if nested:
        with pytest.raises(ChildIOException):
            DAG.check_directory_outputs(dag)
    else:
        DAG.check_directory_outputs(dag)


def test_parameters_of_a_function_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def choose(wildcards: Any, input: Any, attempt: int) -> int:
        return attempt

    assert list(common.get_input_function_aux_params(choose, {"attempt": 2, "threads": 1})) == ["attempt"]
    monkeypatch.setattr(inspect, "signature", None)
    assert list(common.get_function_params(choose)) == ["wildcards", "input", "attempt"]


def test_a_file_lies_elsewhere_where_its_flag_says_so() -> None:
    for flags in ({}, {"storage_object": object()}, {"storage_object": None}, {"ancient": True}):
        text = AnnotatedString("file")
        text.flags.update(flags)
        assert (
            _IOFile.is_storage.fget(SimpleNamespace(_file=text))
            is is_flagged(text, "storage_object")
            is bool(flags.get("storage_object"))
        )
    assert not _IOFile.is_storage.fget(SimpleNamespace(_file="file"))


def test_a_file_without_flags_is_one_string_until_it_has_one() -> None:
    plain, flagged = _IOFile("{name}.csv", None), _IOFile(ancient("{name}.md"), None)
    table, page = (file.apply_wildcards({"name": "table2"}) for file in (plain, flagged))
    assert (table, type(table.file), dict(table.flags)) == ("table2.csv", str, {})
    assert (page, dict(page.flags)) == ("table2.md", {"ancient": True})
    assert not is_flagged(table, "ancient") and is_flagged(page, "ancient")
    table.flags["ancient"] = True
    assert dict(table.flags) == {"ancient": True} and not is_flagged(plain, "ancient")
    other = _IOFile("other.csv", None)
    other.clone_flags(table)
    table.flags["report"] = "page"
    assert dict(other.flags) == {"ancient": True}

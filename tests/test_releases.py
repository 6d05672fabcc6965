"""What docs/releases.md promises of later versions: names, keys and codes of today are kept here, and may only grow."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

import plumbline
from plumbline import api
from plumbline.bundle import description
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.specs.small_file import SmallFile
from plumbline.specs.study_files import StudyFile
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.own_trainer import trainer_file

#: Of every object of JSON that holds a verdict, and of those that a try or its confirmation gives.
OF_A_VERDICT = {"verdict", "exit_code", "sentence", "page", "terms", "comparability", "ledger", "tries", "notes"}
OF_A_TRY = OF_A_VERDICT | {"runs", "estimate", "p", "seconds", "at"}
NO_VERDICT = ({"error", "exit_code"}, {"verdict", "exit_code", "sentence"})
EXIT_CODES = {
    "keep": 0, "as good": 0, "holds": 0, "discard": 10, "shrinks": 10, "turns": 10, "undecided": 11, "crashed": 12,
    "cannot be judged": 13, "implausible": 14,
}  # fmt: skip
TRAINER_KEYS = {
    "run": {"command", "seed", "share", "output", "timeout", "size", "data", "fewer_steps", "budget"},
    "metric": {"pattern", "json", "name", "file", "direction", "unit", "others", "held_out", "fixed"},
    "decide": {
        "alpha", "minimum_gain", "max_runs", "baseline_runs", "target_gain_sigmas", "session", "planned_tries",
        "paired", "interleave_baseline", "first_seed", "equal",
    },
    "where": {"gpus", "at_once", "profile"},
    "guard": set(),
}  # fmt: skip
STUDY_KEYS = {
    "study", "title", "methods", "paper", "extends", "seeds", "m", "corpus", "suite", "recipe", "scales", "arms",
    "runs", "noise_floor", "measurements", "targets", "interpretations",
}  # fmt: skip
SMALL_KEYS = {"study", "sizes_of", "sizes", "statements", "not_asked", "noise"}
API = {
    "ComparisonTerms", "FinishedRun", "PlumblineError", "RunSpec", "StopRequest", "TrainerSettings", "change_spec",
    "expected_runs", "export_hf", "judge", "judge_all", "load_config", "load_project", "load_runs", "load_study",
    "pretrain", "score_folder",
}  # fmt: skip


def keys(struct: type[Any]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(struct)}


def test_exit_codes_stay(repository: Path) -> None:
    assert {outcome.value: outcome.exit_code for outcome in Outcome}.items() >= EXIT_CODES.items()
    page = (repository / "docs/command.md").read_text(encoding="utf-8")
    section = " ".join(page.partition("\n## Exit codes\n")[2].partition("\n## ")[0].split())
    codes = {int(code): name for code, name in re.findall(r"(\d+) ([a-z ]+)", section)}
    assert {code: name for code, name in codes.items() if code in (0, *range(10, 15))} == {
        code: next(name for name, its in EXIT_CODES.items() if its == code) for code in EXIT_CODES.values()
    }
    assert codes[EXIT_RUN_AGAIN] == "asked to stop"


def test_the_keys_of_a_verdicts_json_stay(repository: Path) -> None:
    """Of what tests/kept_verdicts holds each command to."""
    seen: dict[str, int] = {}
    for file in sorted((repository / "tests/kept_verdicts/expected").glob("*.txt")):
        for step in re.split(r"^(?=### )", file.read_text(encoding="utf-8"), flags=re.MULTILINE):
            command = re.match(r"### plumbline (verdict|try|confirm) .*--json", step)
            start = re.search(r"^\{", step, re.MULTILINE)
            if command is None or start is None:
                continue
            answer, _ = json.JSONDecoder().raw_decode(step, start.start())
            if "page" in answer:
                verb = command[1]
                assert answer.keys() >= (OF_A_VERDICT if verb == "verdict" else OF_A_TRY), (file.name, step[:80])
                seen[verb] = seen.get(verb, 0) + 1
            elif "dry_run" not in answer:
                assert answer.keys() in NO_VERDICT, (file.name, step[:80])
                seen["none"] = seen.get("none", 0) + 1
    assert seen.keys() == {"verdict", "try", "confirm", "none"} and min(seen.values()) >= 1, seen


def test_keys_of_files_that_people_write_stay(repository: Path, tmp_path: Path) -> None:
    parts = {field.encode_name: field.type for field in msgspec.structs.fields(trainer_file.TrainerFile)}
    for part, names in TRAINER_KEYS.items():
        assert part in parts and (not names or keys(parts[part]) >= names), part
    assert keys(StudyFile) >= STUDY_KEYS and keys(SmallFile) >= SMALL_KEYS
    # A file of today goes on to be read: what each part needs at least, and the studies that are kept.
    (tmp_path / "plumbline.toml").write_text('[run]\ncommand = "true"\n[metric]\npattern = "loss (.*)"\n')
    assert trainer_file.load(tmp_path).metric.direction == "lower"
    for file in repository.glob("studies/*/study.yaml"):
        assert yaml.safe_load(file.read_text(encoding="utf-8")).keys() <= STUDY_KEYS, (
            "what studies say is kept here too"
        )


def test_names_of_the_interface_stay() -> None:
    assert set(api.__all__) >= API


def test_versions_are_one_and_formats_have_their_number(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((repository / "CITATION.cff").read_text(encoding="utf-8"))
    assert project["version"] == citation["version"] == plumbline.__version__
    page = (repository / "docs/releases.md").read_text(encoding="utf-8")
    assert f"`format` in `plumbline.json`, {description.FORMAT} today" in page
    assert f"`NUMERICS`, {plumbline.NUMERICS} today" in page


def test_a_kept_folder_of_a_trainer_is_of_an_earlier_form(repository: Path) -> None:
    """Else nothing of before is read: `try_folder_of_before` of tests/kept_verdicts works on it."""
    from plumbline.verdict.decision import bank

    lines = (repository / "tests/kept_verdicts/data/folder/runs.jsonl").read_text(encoding="utf-8").splitlines()
    schemas = {json.loads(line)["schema"] for line in lines}
    assert schemas and max(schemas) <= bank.SCHEMA


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "paper.md", "paper.bib"])
def test_what_a_publisher_needs_lies_where_the_page_says(repository: Path, name: str) -> None:
    assert name in (repository / "docs/releases.md").read_text(encoding="utf-8")
    assert (repository / name).stat().st_size > 500

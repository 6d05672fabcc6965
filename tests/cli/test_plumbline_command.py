"""`plumbline`: every verb answers, states how it was called, and knows its options; lists; overrides of one run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.cli import GROUPS, VERBS, main
from plumbline.cli import ls as listing
from plumbline.core.errors import PlumblineError
from plumbline.specs import study_config
from plumbline.specs.spec_changes import change_spec
from plumbline.specs.yaml_files import studies
from tests import run_in_process


def plumbline(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_in_process.run(main, *args, cwd=cwd)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_help_under_its_own_name(verb: str, repository: Path) -> None:
    process = plumbline(verb, "--help", cwd=repository)
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith(f"usage: plumbline {verb} ") and "`" not in process.stdout


def test_a_list_of_verbs_waits_for_no_torch(repository: Path) -> None:
    code = "import sys, plumbline.cli; print(sorted({'torch', 'pandas', 'snakemake'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=repository, text=True) == "[]\n"


def test_an_error_is_a_sentence_and_a_verb_that_is_not_there_too(repository: Path) -> None:
    process = plumbline("train", "transfer/base/qknrm/s42", "--out", "x", cwd=repository)
    assert process.returncode == 1 and "did you mean 'transfer/base/qknorm/s42'" in process.stderr
    assert "Traceback" not in process.stderr
    process = plumbline("tabel", "--json", cwd=repository)
    assert process.returncode == 2 and "'tabel'; did you mean 'table'?" in process.stderr
    assert "tabel" in json.loads(process.stdout)["error"]


def test_every_verb_is_listed_in_a_line_under_its_question(repository: Path) -> None:
    process = plumbline("--help", cwd=repository)
    readme = (repository / "README.md").read_text(encoding="utf-8")
    for question, verbs in GROUPS.items():
        _, _, below = process.stdout.partition(f"\n{question}\n")
        lines = below.partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in lines] == list(verbs)
        assert question.casefold() in readme.casefold(), "the README's own heading"


def test_a_folder_with_another_finished_run_is_not_trained_into(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "outcome.json").write_text(json.dumps({"run_id": "f" * 16, "outcome": "completed"}))
    changes = ("--set", "train.steps=3", "--set", "optimizer.learning_rate=1e-3")  # a number, as in a study's YAML
    args = ("train", "transfer/base/qknorm/s42", "--preset", "smoke", *changes, "--out", str(tmp_path))
    process = plumbline(*args, cwd=repository)
    assert process.returncode == 1 and f"--out {tmp_path}: holds run {'f' * 16}" in process.stderr


@pytest.mark.parametrize("kind", ["studies", "presets", *listing.OF_A_STUDY])
def test_lists(kind: str) -> None:
    rows = listing.list_rows(kind, None, "smoke")
    assert rows
    assert all(row.keys() == rows[0].keys() and all(isinstance(text, str) for text in row.values()) for row in rows)


def test_lists_are_the_definitions() -> None:
    assert [row["study"] for row in listing.list_rows("studies", None, "demo")] == studies()
    study = study_config.load("transfer", "smoke")
    assert [row["run"] for row in listing.list_rows("runs", "transfer", "smoke")] == list(study.every_run)
    assert len(listing.list_rows("methods", "transfer", "smoke")) == 20
    assert {"softpick.original"} <= {row["variant"] for row in listing.list_rows("variants", "transfer", "smoke")}
    with pytest.raises(PlumblineError, match="study 'transfr'; did you mean 'transfer'"):
        listing.list_rows("methods", "transfr", "smoke")


def test_where_one_study_is_broken_the_others_are_listed(repository: Path, tmp_path: Path) -> None:
    """A key that nothing knows, a name that runs do not find, and no YAML at all."""

    def list_methods(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "plumbline", "ls", "methods", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    for name in ("config", "studies", "workflow", "Snakefile"):
        copy = shutil.copytree if (repository / name).is_dir() else shutil.copy
        copy(repository / name, tmp_path / name)
    file = tmp_path / "studies/quack/study.yaml"
    text = file.read_text(encoding="utf-8")
    for old, new in (("title: ", "titel: "), ("\n  quack:\n", "\n  quak:\n")):
        file.write_text(text.replace(old, new, 1), encoding="utf-8")
        done = list_methods()
        assert done.returncode == 0 and "softpick" in done.stdout and "quack" not in done.stdout, done.stderr
        assert "studies/quack/study.yaml" in done.stderr
    named = list_methods("--study", "quack")
    assert named.returncode == 1 and "studies/quack/study.yaml" in named.stderr
    for study in studies():
        (tmp_path / "studies" / study / "study.yaml").write_text("title: [")
    none = list_methods()
    assert none.returncode == 1 and "'quack'" in none.stderr and "Traceback" not in none.stderr


def test_a_list_as_json(repository: Path) -> None:
    process = plumbline("ls", "targets", "--study", "key_norms", "--json", cwd=repository)
    assert [row["target"] for row in json.loads(process.stdout)] == list(
        study_config.load("key_norms", "demo").definition["targets"]
    )


@pytest.mark.parametrize(
    ("what", "name"), [("studies", "study"), ("runs", "run"), ("methods", "method"), ("variants", "variant")]
)
def test_a_list_fits_the_window_and_cuts_no_name(what: str, name: str) -> None:
    rows = listing.list_rows(what, None, "demo")
    whole, wrapped = listing.write_list(rows, None), listing.write_list(rows, 80)
    assert max(map(len, wrapped.splitlines())) <= 80 < max(map(len, whole.splitlines()))
    assert {row[name] for row in rows} <= set(wrapped.split())
    assert sorted("".join(wrapped.split())) == sorted("".join(whole.split())), "a letter was lost"


def test_in_a_narrow_window_a_paper_stands_below_the_name_of_its_study() -> None:
    lines = listing.write_list(listing.list_rows("studies", None, "demo"), 44).splitlines()
    assert {"transfer", "key_norms"} <= {*lines} and max(map(len, lines)) <= 44


def test_what_is_set_is_checked_as_the_yaml_is() -> None:
    spec = study_config.load("transfer", "smoke").runs["transfer/base/softpick/s42"].spec
    same = change_spec(spec, [])
    assert same == spec and same.run_id == spec.run_id
    shorter = change_spec(spec, ["train.steps=3", "schedule.floor=0.2"])
    assert (shorter.train.steps, shorter.schedule.options["floor"]) == (3, 0.2) and shorter.run_id != spec.run_id
    # Another component takes its own defaults and its own code's class.
    other = change_spec(spec, ["model.mixer.name=softmax_cap"])
    assert other.model.slots["mixer"] == {"name": "softmax_cap", "cap": 50.0}
    assert other.components["model.mixer"] != spec.components["model.mixer"]
    for setting, message in (
        ("train.step=3", r"--set: .*unknown key 'step'; did you mean 'steps'"),
        ("train.steps=many", r"--set: .*steps"),
        ("model.mixer.name=softpik", r"softpik.*did you mean 'softpick'"),
        ("trian.steps=3", r"no part 'trian'; did you mean 'train'"),
        ("train.steps", r"write it as part.key=value"),
        ("init_seed=3", r"no part 'init_seed'"),
    ):
        with pytest.raises(PlumblineError, match=message):
            change_spec(spec, [setting])

"""What a person and a program get from the verbs of a folder: questions, errors, stops, wrong words."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plumbline.operate.experiments import setup_trainer
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.own_trainer.snapshot import Repository
from plumbline.verdict.own_trainer.tree_warnings import list_tree_warnings
from tests import run_in_process
from tests.operate import fake_terminal
from tests.operate.experiments.trainer_folder import Done, banked, change, git, plumbline, write_bank


def test_a_command_from_elsewhere_is_run_when_it_was_agreed_to(template: tuple[Path, Done], tmp_path: Path) -> None:
    folder = shutil.copytree(template[0], tmp_path / "theirs")
    shutil.rmtree(folder / ".plumbline")
    (folder / "plumbline.toml").write_text(f"[run]\ncommand = 'touch {tmp_path}/run'\n[metric]\nname = 'q'\n")
    for args in (("try", "-m", "x"), ("confirm",)):
        process = plumbline(folder, *args)
        assert process.returncode == 1 and "would run 'touch " in process.stderr and "--trust" in process.stderr
    process = run_in_process.run(setup_trainer.main, cwd=folder)
    assert process.returncode == 1 and "--trust" in process.stderr and not (tmp_path / "run").exists()


def test_without_a_home_folder(template: tuple[Path, Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    folder = tmp_path / "copy"
    shutil.copytree(template[0], folder)
    (tmp_path / "file").touch()
    for state, why in (("", "no home folder is known of user"), (str(tmp_path / "file"), "cannot be")):
        monkeypatch.setenv("XDG_STATE_HOME", state)
        monkeypatch.setattr(Path, "home", unknown)
        process = plumbline(folder, "try", "-m", "x", "--dry-run")
        assert process.returncode == 1 and "--trust), since" in process.stderr
        assert why in process.stderr and "export XDG_STATE_HOME=FOLDER" in process.stderr, process.stderr
        process = plumbline(folder, "try", "-m", "x", "--dry-run", "--trust", "--", "--worse", "1")
        assert process.returncode == 0 and "mind: that this command" in process.stderr
        (warning,) = list_tree_warnings(Repository(folder), "HEAD", f"python {folder}/train.py")
        assert warning.startswith("mind: the command")


def test_a_pointer_of_lfs_in_place_of_a_file_is_named(template: tuple[Path, Done], tmp_path: Path) -> None:
    folder = shutil.copytree(template[0], tmp_path / "copy")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
    (folder / ".gitattributes").write_text("*.bin filter=lfs\n")
    for name, content in {"tokens.bin": pointer, "here.bin": "content", "page.md": pointer}.items():
        (folder / name).write_text(content)
    git(folder, "add", "-A")
    (warning,) = list_tree_warnings(Repository(folder), "HEAD", "python train.py")
    assert "tokens.bin" in warning and "git lfs pull" in warning
    assert "here.bin" not in warning and "page.md" not in warning
    (folder / "data/shard.dat").write_text(pointer)  # ignored, of a clone of its own
    (warning,) = list_tree_warnings(Repository(folder), "HEAD", "python train.py", ["data", "nowhere", "here.bin"])
    assert "tokens.bin, data/shard.dat" in warning
    git(folder, "commit", "-qm", "files")
    trainer_file = (folder / "plumbline.toml").read_text()
    (folder / "plumbline.toml").write_text(trainer_file.replace("[run]", '[run]\ndata = ["data"]', 1))
    change(folder)
    (folder / ".plumbline/runs.jsonl").unlink()
    assert "data/shard.dat" in plumbline(folder, "try", "-m", "x", "--trust").stderr


@pytest.mark.parametrize("words", [("-m", "faster\udcff"), ("-m", "faster", "--", "--worse", "\udcff")])
def test_words_that_are_no_text_are_refused_before_a_run(folder: Path, words: tuple[str, ...]) -> None:
    before = banked(folder)
    process = plumbline(folder, "try", "--trust", *words)
    assert process.returncode == 2 and r"\udcff is no UTF-8" in process.stderr, process.stderr
    assert banked(folder) == before and not list((folder / ".plumbline/pages").glob("faster*"))


def test_a_name_that_is_no_text_is_kept_with_escapes(folder: Path) -> None:
    (folder / "weight\udcff\n.py").write_text("x = 1\n")
    change(folder, "GAIN = 0.02")
    process = plumbline(folder, "try", "-m", "x", "--trust")
    assert process.returncode in (0, 10, 11) and "Traceback" not in process.stderr, process.stderr
    (page,) = (folder / ".plumbline/pages").glob("x-*.json")
    assert r"weight\\udcff" in page.read_text()


def test_a_person_is_asked_once_and_shown_all_that_would_run(template: tuple[Path, Done], tmp_path: Path) -> None:
    folder = shutil.copytree(template[0], tmp_path / "theirs")
    text = (folder / "plumbline.toml").read_text()
    hidden = r'command = "touch run; \u001b[2K\rpython train.py {flags}"'
    (folder / "plumbline.toml").write_text(re.sub("command = .*", hidden.replace("\\", r"\\"), text))
    command = [sys.executable, "-m", "plumbline", "try", "-n", "-m", "x", "--", "--worse", "1"]
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    for typed, code in ((b"\n", 1), (b"\x04", 1), (b"y\n", 0)):
        screen, ended = fake_terminal.run(command, folder, environment, typed)
        assert ended == code and r"toml runs: touch run; \x1b[2K python train.py" in " ".join(screen.split()), screen
        assert screen.count("[y/N]") == 1
    assert "[y/N]" not in fake_terminal.run(command, folder, environment)[0]


def test_a_second_try_is_told_who_holds_the_folder(folder: Path) -> None:
    with Folder(folder).hold("plumbline try -m first"):
        done = plumbline(folder, "try", "-m", "second", "--", "--worse", "1")
    assert done.returncode == 1 and f"process {os.getpid()} " in done.stderr
    assert "(plumbline try -m first)" in done.stderr and len(banked(folder)) == 5


def test_a_stop_that_is_asked_for_at_any_instant_ends_with_75(folder: Path) -> None:
    change(folder)
    command = [sys.executable, "-m", "plumbline", "try", "-m", "better"]
    for line in ("runs of baseline are there", "seed 1042", "runs again with fresh seeds"):
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            assert process.stderr is not None
            assert any(line in each.decode() for each in process.stderr)
            process.terminate()
        assert process.returncode == 75, line
    assert plumbline(folder, "try", "-m", "better").returncode == 0


def test_a_try_without_a_method_or_a_trainer_names_both_remedies(tmp_path: Path, folder: Path) -> None:
    process = plumbline(tmp_path, "try")
    assert (
        process.returncode == 2
        and "plumbline try qknorm" in process.stderr
        and "plumbline setup-trainer" in process.stderr
    )
    process = plumbline(tmp_path, "noise")
    assert process.returncode == 1 and "plumbline.toml here or above" in process.stderr
    process = plumbline(tmp_path, "try", "qknorm", "-m", "x")
    assert process.returncode == 2 and "folder with plumbline.toml" in process.stderr
    process = plumbline(folder, "try", "-m", "x", "--quick")
    assert process.returncode == 2 and "--quick is of METHOD|FILE.yaml" in process.stderr
    process = plumbline(folder, "confirm")
    assert process.returncode == 1 and "nothing was kept yet" in process.stderr


def test_a_program_reads_an_error_as_it_reads_a_decision(folder: Path) -> None:
    git(folder, "branch", "no-such")
    process = plumbline(folder, "try", "-m", "x", "--json", "--baseline", "nosuch")
    report = json.loads(process.stdout)
    assert process.returncode == report["exit_code"] == 2 and "did you mean 'no-such'?" in report["error"], process
    session = folder / ".plumbline/session.json"
    for content, at in (
        ("[1]", "object"),
        ('{"first_seed": "a"}', "first_seed"),
        ('{"fresh_runs": []}', "fresh_runs"),
        ("{", ""),
    ):
        session.write_text(content)
        process = plumbline(folder, "try", "-m", "x", "--json", "--", "--worse", "1")
        error = json.loads(process.stdout)["error"]
        assert process.returncode == 1 and str(session) in error and at in error and "delete it" in error, process
    assert "--json" not in plumbline(folder, "try", "-m", "x", "--", "--json").stdout  # the trainer's own flag


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["try", "-m", "x", "--json", "--baseline-runs", "0"], "--baseline-runs: '0'"),
        (["noise", "--json", "--nosuch"], "unrecognized arguments: --nosuch"),
        (["tryy", "--json"], "'tryy'; did you mean 'try'?"),
    ],
)
def test_a_program_reads_a_wrong_word_as_it_reads_a_decision(tmp_path: Path, args: list[str], message: str) -> None:
    command = [sys.executable, "-m", "plumbline", *args]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    report = json.loads(process.stdout)
    assert (
        process.returncode == report["exit_code"] == 2 and message in report["error"] and message in process.stderr
    ), process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)], ids=["stopped", "Ctrl-C"])
def test_a_program_reads_a_stop_as_it_reads_a_decision(folder: Path, number: signal.Signals, code: int) -> None:
    change(folder, "GAIN = 0.0; import time; time.sleep(60)")
    # What a shell starts in its background, these tests too, ignores Ctrl-C.
    listening = ["env", "--default-signal=INT", sys.executable, "-m", "plumbline", "try", "-m", "slow", "--json"]
    with subprocess.Popen(listening, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "5 runs of baseline" not in process.stderr.readline():
            pass
        while not list((folder / ".plumbline/logs").glob("*/seed-1042.log")):
            time.sleep(0.05)
        process.send_signal(number)
        out, errors = process.communicate()
        report = json.loads(out)
    assert process.returncode in (code, -number) and report["exit_code"] == code and "same command" in report["error"]
    assert errors.startswith("stopped; the same command") and errors.count("\n") == 1


def test_a_reader_that_is_gone_ends_a_verb_without_a_word(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "plumbline", "noise"]
    process = subprocess.run(command, cwd=folder, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (process.returncode, process.stderr) == (-signal.SIGPIPE, b"")


def test_the_wheel_alone_runs_a_folders_verbs(folder: Path, repository: Path) -> None:
    for args, code in ((["try", "-m", "worse", "--", "--worse", "1"], 10), (["noise"], 0), (["log"], 0)):
        command = [sys.executable, "-m", "tests.cli.without_pipeline_packages", "plumbline", *args]
        path = {"PYTHONPATH": f"{repository}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | path)
        assert process.returncode == code and process.stdout, process.stderr


def test_a_message_that_steers_a_terminal_is_shown_escaped(folder: Path) -> None:
    args, worse = ("try", "-m", "wider\u202e\x1b[31m"), ("--", "--worse", "1")
    tried = plumbline(folder, *args, "--dry-run", *worse), plumbline(folder, *args, *worse)
    for done in (*tried, plumbline(folder, "log")):
        assert "wider\\u202e\\x1b[31m" in done.stdout and not re.search("[\u202e\x1b]", done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["try", "--lr", "0.1"], "behind --: plumbline try -m WORDS -- --lr 0.1"),
        (
            ["try", "-m", "lr up", "--fast", "--lr", "0.1"],
            "behind --: plumbline try -m 'lr up' -- --fast --lr 0.1",
        ),
        (["try", "lr up", "--", "--lr", "0.1"], "behind -m: plumbline try -m 'lr up' -- --lr 0.1"),
    ],
)
def test_a_guess_is_answered_with_the_command_that_was_meant(folder: Path, args: list[str], message: str) -> None:
    process = plumbline(folder, *args)
    assert process.returncode == 2 and message in process.stderr, process.stderr


def test_a_dry_run_says_how_many_runs_are_made(folder: Path) -> None:
    change(folder)
    bank = folder / ".plumbline/runs.jsonl"
    for entry in (rows := banked(folder)):
        entry["run"]["seconds"] = 100.0
    write_bank(folder, rows)
    text = " ".join(plumbline(folder, "try", "-m", "wider", "--dry-run").stdout.split())
    assert "At most 8 runs" in text and ": 13 min, " in text and " 5 runs" in text
    printed = json.loads(plumbline(folder, "try", "-m", "wider", "--dry-run", "--json").stdout)
    assert (printed["runs_at_most"], printed["seconds_at_most"], printed["candidate"]) == (8, 800.0, "wider")
    assert printed["dry_run"] and " ".join(printed["plan"].split()) == text
    bank.unlink()
    text = " ".join(plumbline(folder, "try", "-m", "wider", "--dry-run").stdout.split())
    assert "At most 13 runs" in text and " min, " not in text

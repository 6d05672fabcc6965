"""`plumbline setup-trainer`, on a trainer of milliseconds: what is found, and what is told where it is not."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import textwrap
from pathlib import Path

import pytest
from msgspec import structs

from plumbline.operate.experiments import setup_guesses, setup_trainer
from plumbline.operate.experiments.__main__ import arguments
from plumbline.verdict.own_trainer.trainer_file import DecidePart, load
from tests import run_in_process
from tests.operate.experiments.trainer_folder import TRAINER, Done, banked, git, plumbline, repository_of


def test_a_first_run_says_the_metric_the_seed(template: tuple[Path, Done]) -> None:
    folder, done = template
    assert done.returncode == 0, done.stderr
    settings = load(folder)
    assert (settings.run.seed, settings.run.share) == ("--seed {seed}", ("data",))
    assert (settings.metric.called, settings.metric.direction) == ("val_loss", "lower")
    assert "metric: val_loss, 2.99" in done.stderr and "'val_loss: 2.99" in done.stderr
    assert "seen: --metric train_loss, 3.5" in done.stderr
    assert [line["run"]["seed"] for line in banked(folder)] == [42, 43, 44, 45, 46]
    assert "sigma 0.0" in done.stdout and "from 5 runs of 1 arm." in done.stdout
    assert git(folder, "status", "--short") == "?? plumbline.toml\n" and not (folder / ".plumbline/.gitignore").exists()
    before = (folder / "plumbline.toml").read_text()
    process = run_in_process.run(setup_trainer.main, "python other.py", cwd=folder)
    assert process.returncode == 1 and "is never written over" in process.stderr
    assert (folder / "plumbline.toml").read_text() == before


FIRST = "print('begin'); print('nothing here'); "
DIVERGES = "print('1 val_loss: 3.0'); print('2 val_loss: nan')"


@pytest.mark.parametrize(
    ("script", "args", "message"),
    [
        (TRAINER, ["pythn train.py"], "no such command: "),
        (TRAINER, ["python train.py", "--metric", "accuracy"], "did not say accuracy (seen: val_loss, train_loss)"),
        (FIRST, ["python train.py"], "METRIC name=value"),
        (
            "import random; print('METRIC q=2.12345')",
            ["python train.py", "--seed", "--seed {seed}"],
            'write seed = "inject"',
        ),
        ("import json; print('loss 1.5')", ["python train.py"], "sets a seed"),
        (DIVERGES, ["python train.py"], "baseline diverged: val_loss is nan"),
        (f"{DIVERGES}; raise SystemExit(1)", ["python train.py", "--metric", "val_loss"], "the baseline diverged: val"),
        (
            "open('a.jsonl', 'w').write('{\"val_loss\": -Infinity, \"loss\": 1.5}')",
            ["python train.py"],
            "name another metric (--metric loss)",
        ),
    ],
    ids=[
        *("no such command", "another metric", "no metric", "a seed that is ignored", "a constant"),
        *("nan", "nan and a crash", "infinite"),
    ],
)
def test_what_cannot_be_set_up_says_what_to_do(tmp_path: Path, script: str, args: list[str], message: str) -> None:
    folder = repository_of(tmp_path / "own", script)
    process = run_in_process.run(setup_trainer.main, *args, cwd=folder)
    assert process.returncode == (13 if "no effect" in process.stderr else 1) and message in process.stderr, (
        process.stderr
    )
    if script is FIRST:
        assert process.stderr.endswith("ends with:\n  begin\n  nothing here\n")
        assert not (folder / "plumbline.toml").exists()


def test_the_last_value_is_told_from_the_best(tmp_path: Path) -> None:
    script = """\
        import json, random
        random.seed(1)
        last = 2 + random.random()
        print(f"step 500 train loss: {last + 1} test loss: {last}")
        print("test loss: 1.5 is the best so far, saving")
        json.dump({"eval": {"nll": last}}, open("out.json", "w"), indent=1)
        """
    folder = repository_of(tmp_path / "own", textwrap.dedent(script))
    process = run_in_process.run(setup_trainer.main, "python train.py", cwd=folder)
    assert process.returncode == 0, process.stderr
    assert "metric: test_loss, 2." in process.stderr and "last in 'step 500 train loss" in process.stderr
    assert "--metric best_test_loss, 1.5" in process.stderr
    assert "random, numpy (seed, default_rng)" in process.stderr
    for args in (["--metric", "best_test_loss"], ["--metric", "out.json:eval.nll", "--direction", "higher"]):
        (folder / "plumbline.toml").unlink()
        process = run_in_process.run(setup_trainer.main, "python train.py", *args, cwd=folder)
        assert f"metric: {args[1].rpartition(':')[2]}, " in process.stderr, process.stderr
        assert process.returncode == (0 if len(args) > 2 else 13)  # the best is a constant here
    assert load(folder).metric.direction == "higher"


@pytest.mark.parametrize("call", ["np.random.seed(42)", "random.seed(7)", "torch.cuda.manual_seed_all(1)"])
def test_a_seed_in_the_code_is_named_as_it_stands_there(tmp_path: Path, call: str) -> None:
    (tmp_path / "train.py").write_text(f"import x\n{call}\n")
    way, why = setup_guesses.seed(tmp_path / "train.py")
    assert way == "inject" and f"({call}), which is shifted without" in why


def test_an_indented_file_of_metrics_is_found_by_itself(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text(json.dumps({"steps": 5, "val_loss": 2.5}, indent=2))
    (guess,) = setup_guesses.metrics(tmp_path / "no.log", tmp_path)
    assert (guess.settings, guess.text) == ({"json": "metrics.json:val_loss"}, "2.5")


@pytest.mark.parametrize(
    ("line", "chosen", "training"),
    [
        ("step 9 train_loss 1.1511 val 1.2877", "val", False),
        ("epoch 3: training 1.2, validation: 1.31; validation 10/100", "validation", False),
        ("train loss 1.5 | test 3/7 | valid 98.1 %", "train_loss", True),
        ("iter 10: loss 2.25, time 31ms", "loss", True),
        ("METRIC loss=2.25", "loss", False),
        ("train_loss: 1.1 score: 3", "score", False),
    ],
)
def test_a_held_out_name_before_a_training_loss(tmp_path: Path, line: str, chosen: str, training: bool) -> None:
    (tmp_path / "run.log").write_text(f"{line}\n")
    guesses = setup_guesses.metrics(tmp_path / "run.log", tmp_path)
    assert guesses[0].name == chosen
    warning = setup_guesses.only_of_training(guesses)
    assert ("another with --metric" in warning) == training
    if "pattern" in guesses[0].settings:
        assert re.search(guesses[0].settings["pattern"], line), guesses[0]


def test_script_that_names_users_tree_is_told_before_first_run(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    script = f"open('{folder}/data/input.txt')\nopen('{folder}/words.txt')\nraise SystemExit(3)\n"
    repository_of(folder, script)
    (folder / "README.md").write_text(f"cd {folder}\n")
    git(folder, "add", "README.md")
    git(folder, "commit", "-qm", "words")
    process = run_in_process.run(setup_trainer.main, "python train.py", cwd=folder)
    before_run = process.stderr.split("the first run, seed 42")[0]
    assert f"mind: train.py names {folder}/words.txt" in before_run, process.stderr
    assert "README" not in before_run
    assert "input.txt" not in before_run  # git ignores it: it is one for all arms
    assert process.returncode == 1 and "\n" not in git(folder, "worktree", "list").strip()


def test_a_folder_that_a_run_writes_into_is_its_own(tmp_path: Path) -> None:
    script = TRAINER.replace('print(f"val_loss: {', 'open("runs/loss.jsonl", "w").write(f"{{\\"val_loss\\": {')
    folder = repository_of(tmp_path / "own", script.replace(':.6f}")', ':.6f}}}")'))
    (folder / ".gitignore").write_text("data/\nruns/\n")
    git(folder, "commit", "-qam", "ignores")
    (folder / "runs").mkdir()
    (folder / "runs/loss.jsonl").write_text("mine")
    process = run_in_process.run(setup_trainer.main, "python train.py", cwd=folder)
    assert process.returncode == 0, process.stderr
    file = load(folder)
    assert (file.run.share, file.run.output) == (("data",), ("runs",))
    assert file.metric.json == "runs/loss.jsonl:val_loss" and (folder / "runs/loss.jsonl").read_text() == "mine"


def test_a_baseline_that_breaks_costs_one_run(tmp_path: Path) -> None:
    folder = repository_of(tmp_path / "own", "import no_such_module\n" + TRAINER)
    path = folder / "plumbline.toml"
    text = "[run]\ncommand = 'python train.py'\nshare = ['data']\n[metric]\npattern = '{}'\n"
    path.write_text(text.format(r"val_loss: (\S+)"))
    process = plumbline(folder, "try", "--trust", "-m", "better", "--json", "--", "--worse", "-1")
    log = Path(json.loads(process.stdout)["log"])
    assert process.returncode == 13 and [line["run"]["seed"] for line in banked(folder)] == [42]
    assert "seed 42: crashed: exit code 1: ModuleNotFoundError" in process.stderr, process.stderr
    assert f"{log} ends with:\n  Traceback" in process.stderr and "commit that" in process.stderr and log.exists()
    (folder / "train.py").write_text(TRAINER)
    process = run_in_process.run(setup_trainer.main, cwd=folder)
    assert process.returncode == 1 and "right in plumbline.toml" in process.stderr
    git(folder, "commit", "-qam", "mended")
    path.write_text(text.format(r"val_los: (\S+)"))
    process = plumbline(folder, "try", "-m", "better", "--", "--worse", "-1")
    assert process.returncode == 13
    path.write_text(text.format(r"val_loss: (\S+)"))
    process = run_in_process.run(setup_trainer.main, cwd=folder)
    assert process.returncode == 0 and "baseline is the commit" in process.stderr, process.stderr
    assert plumbline(folder, "try", "-m", "worse", "--", "--worse", "1").returncode == 10


def test_a_stopped_set_up_goes_on(template: tuple[Path, Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is left by a stop among the runs: with its file and its first run, and not yet trusted."""
    folder = tmp_path / "a{b} 'c'"
    shutil.copytree(template[0], folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    bank = folder / ".plumbline/runs.jsonl"
    bank.write_text("".join(bank.read_text().splitlines(keepends=True)[:3]))
    for args, differs in (
        (["python train.py", "--direction", "higher"], "--direction"),
        (["python train.py", "--metric", "train_loss"], "--metric"),
        (["python train.py --lr 3"], "command"),
    ):
        process = run_in_process.run(setup_trainer.main, *args, cwd=folder)
        assert process.returncode == 1 and f"another {differs}: edit" in process.stderr
    before = (folder / "plumbline.toml").read_text()
    process = run_in_process.run(setup_trainer.main, "python train.py", "--metric", "val_loss", cwd=folder)
    assert process.returncode == 0 and "the first run" not in process.stderr, process.stderr
    assert [line["run"]["seed"] for line in banked(folder)] == [42, 43, 44, 45, 46]
    assert "seed 44" not in process.stderr and "seed 45" in process.stderr
    assert (folder / "plumbline.toml").read_text() == before


def test_a_command_without_quotes_is_shown_with_them(tmp_path: Path) -> None:
    args = ["python", "train.py", "--lr", "0.1", "--seed", "3"]
    process = run_in_process.run(setup_trainer.main, *args, cwd=tmp_path)
    assert process.returncode == 2
    assert 'quote the command: plumbline setup-trainer "python train.py --lr 0.1 --seed 3"' in process.stderr
    process = run_in_process.run(setup_trainer.main, "python train.py", "--nosuch", cwd=tmp_path)
    assert process.returncode == 2 and "unrecognized arguments: --nosuch" in process.stderr


def test_every_key_of_what_decides_is_an_option_of_try(folder: Path) -> None:
    written = (folder / "plumbline.toml").read_text().partition("[decide]\n")[2].splitlines()
    assert len(written) == 5 and all(re.fullmatch(r"(\w+) = \S+ +# .+", line) for line in written), written
    with pytest.raises(SystemExit), contextlib.redirect_stdout(io.StringIO()) as output:
        arguments().parse_args(["try", "--help"])
    for field in structs.fields(DecidePart):
        assert f"--{field.name.replace('_', '-')}" in output.getvalue().split(), field.name

"""What docs/screen.md states: its file of ideas is read, and its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.operate.experiments.trainer_folder import change, git, plumbline, repository_of

#: It takes any flag, and none of the page's ideas does anything.
TRAINER = """\
import random, sys
flags = dict(zip(sys.argv[1::2], sys.argv[2::2]))
ACTIVATION, OPTIMIZER = "gelu", "adam"


OTHER_LINES = "muon is no neighbour of it"
print("val_loss:", 3 + random.Random(int(flags["--seed"])).gauss(0, 0.01))
"""
SETTINGS = """\
[run]
command = "python train.py {flags}"
[metric]
pattern = 'val_loss: (\\S+)'
[decide]
baseline_runs = 2
"""


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs/screen.md").read_text(encoding="utf-8")


def test_every_command_of_the_page_does_what_it_says(page: str, repository: Path, tmp_path: Path) -> None:
    folder = repository_of(tmp_path / "own", TRAINER)
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (folder / "ideas.toml").write_text(text)
    (folder / "ideas").mkdir()
    change(folder, '"relu2"', '"gelu"')
    (folder / "ideas/relu2.patch").write_text(git(folder, "diff"))
    git(folder, "checkout", "-q", "train.py")
    git(folder, "checkout", "-qb", "muon")
    change(folder, "muon is what it is", "muon is no neighbour of it")
    git(folder, "commit", "-qam", "muon")
    git(folder, "checkout", "-q", "-")
    (folder / "plumbline.toml").write_text(SETTINGS)
    commands = re.findall(r"^\$ (.*)$", page, re.MULTILINE)
    screens = [shlex.split(command)[1:] for command in commands if command.startswith("plumbline screen ideas.toml")]
    assert len(screens) == 2
    planned, done = (plumbline(folder, *words, "--trust") for words in screens)
    assert planned.returncode == 0 and "muon and beta2" not in planned.stderr
    assert "never in one run: beta2 with muon" in planned.stderr, planned.stderr
    assert done.returncode in (0, 10) and "4 ideas" in " ".join(done.stdout.split()), done.stderr
    script = shlex.split(commands[-1])[1]
    assert (repository / script).is_file() and (repository / script).with_suffix(".svg").is_file()

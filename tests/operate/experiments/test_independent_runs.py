"""A baseline whose runs are no draws of their own is refused at once, by what its runs and a rerun of one show."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from plumbline.operate.experiments import setup_trainer
from tests import run_in_process
from tests.operate.experiments.trainer_folder import TRAINER, Done, banked, git, plumbline, repository_of

#: Prints one value alone, and forgets its seed; rounding noise makes runs differ (in so many digits that two
#: are never equal by chance).
FORGETS = """\
import argparse, os, random
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.parse_args()
print(f"val_loss: {3 + random.Random(os.urandom(8)).random() * 1e-5:.15f}")
"""


def test_a_seed_is_run_twice_once_a_folder_and_the_noise_says_so(folder: Path, template: tuple[Path, Done]) -> None:
    assert "baseline, seed 42 runs once" in template[1].stderr
    assert "Seed 42" in template[1].stdout
    (rerun,) = json.loads(plumbline(folder, "noise", "--json").stdout)["reruns"]
    assert rerun["seed"] == 42 and rerun["values"][0] == rerun["values"][1]
    process = plumbline(folder, "try", "-m", "worse", "--json", "--", "--worse", "1")
    check = json.loads(process.stdout)["comparability"]["seeds beside a rerun"]
    assert process.returncode == 10 and "runs once more" not in process.stderr
    assert check["answer"] == "holds" and check["text"].startswith("seed 42 of baseline gave")


def test_rounding_that_looks_like_the_spread_of_seeds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = repository_of(tmp_path / "own", FORGETS)
    monkeypatch.setattr("plumbline.verdict.comparability.seed_beside_rerun.LEVEL", 0.0)  # whatever the luck of pairs
    process = run_in_process.run(setup_trainer.main, "python train.py", cwd=folder)
    assert process.returncode == 13 and "run twice, differ" in process.stderr, process.stderr
    refused = plumbline(folder, "try", "-m", "x", "--", "--seed", "1")
    assert refused.returncode == 13 and "nothing was run: seed" in refused.stderr, refused.stderr
    (folder / "train.py").write_text(TRAINER.replace('open("data/input.txt").read()\n', ""))
    git(folder, "commit", "-qam", "takes its seed")
    process = run_in_process.run(setup_trainer.main, cwd=folder)
    assert process.returncode == 0 and "gives the same number" in process.stdout, process.stderr


def test_checkpoint_at_path_of_its_own_is_refused_after_two_runs(tmp_path: Path) -> None:
    """Each run goes on from what the one before it left, so that all of them fall in the order of time."""
    script = """\
        import json, os, random
        random.seed(1)
        path = {path!r}
        loss = json.load(open(path)) if os.path.exists(path) else 5.0
        json.dump(loss * 0.99 + random.gauss(0, 0.001), open(path, "w"))
        print(f"val_loss: {{loss}}")
        """
    path = str(tmp_path / "ckpt.json")
    folder = repository_of(tmp_path / "own", textwrap.dedent(script).format(path=path))
    process = run_in_process.run(setup_trainer.main, "python train.py", cwd=folder)
    assert process.returncode == 13 and f"seed 43 of baseline read {path}" in process.stderr, process.stderr
    assert [row["run"]["seed"] for row in banked(folder)] == [42, 43]


#: Prints one value alone, by its seed, and each run of a seed a part away from the others of it.
NOISY = """\
import argparse, os, random
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
seed = parser.parse_args().seed
path = os.environ["TIMES_RUN"]
again = os.path.exists(f"{path}/{seed}")
open(f"{path}/{seed}", "w").close()
print(f"val_loss: {3 + random.Random(seed).gauss(0, 0.1) + again * 0.02:.6f}")
"""


def test_seeds_run_twice_until_their_effect_is_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMES_RUN", str(tmp_path))
    folder = repository_of(tmp_path / "own", NOISY)
    process = run_in_process.run(setup_trainer.main, "python train.py", cwd=folder)
    assert process.returncode == 0, process.stderr
    assert process.stderr.count("runs once more") == 3 and "43, run twice, differs by 0.02." in process.stdout

"""A folder whose trainer and evaluation are two programs of milliseconds, and what a change may do in it."""

from __future__ import annotations

from pathlib import Path

from plumbline.operate.experiments import setup_trainer
from tests import run_in_process
from tests.operate.experiments.trainer_folder import git, repository_of

TRAIN = """\
import argparse, json, os, random, time
from model import WIDTH, DEPTH
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--lr", type=float, default=0.1)
given = parser.parse_args()
LR = given.lr
SCHEDULE = "constant"
WARMUP = 0
OPTIMIZER = "sgd"
WEIGHT_DECAY = 0.0
DROPOUT = 0.0
DTYPE = "float32"
BATCH = 8
ORDER = "shuffled"
INIT = 0.02
CLIP = 1.0
STEPS = 10
words = open("shards/train.txt").read().split()
rng = random.Random(given.seed)
weight, began = rng.gauss(3, 0.01), time.time()
for step in range(1, STEPS + 1):
    print(f"step {step}: train loss {weight + 1 / step:.4f}")
if os.path.exists("cache.json"):
    weight = json.load(open("cache.json"))
json.dump(1.0, open("cache.json", "w"))
json.dump(weight, open("model.json", "w"))
print(f"trained for {time.time() - began:.3f} s")
"""
MODEL = """\
WIDTH = 64
DEPTH = 2
UNIT = 1.0
"""
EVALUATE = """\
import json
from model import UNIT
losses = [float(word) for word in open("shards/val.txt").read().split()]
print(f"val_loss: {UNIT * json.load(open('model.json')) * sum(losses) / len(losses):.6f}")
"""
FILES = {
    "train.py": TRAIN,
    "model.py": MODEL,
    "evaluate.py": EVALUATE,
    "shards/train.txt": "a b c\n",
    "shards/val.txt": "1.0 0.9 1.1\n",
}


def set_up(folder: Path) -> Path:
    """Make the folder, and set it up as a user would."""
    repository_of(folder, TRAIN)
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "-qm", "all of it")
    process = run_in_process.run(setup_trainer.main, "python train.py {flags} && python evaluate.py", cwd=folder)
    assert process.returncode == 0, process.stderr
    assert 'fixed = ["evaluate.py", "shards/val.txt"]' in (folder / "plumbline.toml").read_text()
    return folder


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Change a file of the working tree."""
    text = (folder / name).read_text()
    assert old in text, (name, old)
    (folder / name).write_text(text.replace(old, new))

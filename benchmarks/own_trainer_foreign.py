"""Three trainers that were written elsewhere, each with four changes, decided by the command line alone.

    for name in nanoGPT makemore minGPT; do git clone https://github.com/karpathy/$name; done
    curl -o nanoGPT/data/shakespeare_char/input.txt \\
        https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt
    (cd nanoGPT && python data/shakespeare_char/prepare.py)
    python benchmarks/own_trainer_foreign.py nanoGPT makemore minGPT  # 20 minutes of one core; own_trainer_foreign.md

`python` has to be one that the trainers run with (torch, numpy; tensorboard for makemore). The clones are not touched:
each is copied below `--work`, where its console, pages and pictures stay.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from machine_description import describe
from tabulate import tabulate

from plumbline.core.files import atomic_write_text


@dataclass(frozen=True)
class TriedChange:
    """What is tried: flags, or texts of a file that are replaced by others wherever they stand."""

    title: str
    file: str = ""
    replaced: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class ForeignTrainer:
    """A trainer, and what is tried of it; what is kept comes last, since it moves the baseline."""

    name: str
    about: str
    command: str
    changes: Sequence[TriedChange]
    metric: str = ""


NANOGPT = ForeignTrainer(
    name="nanoGPT",
    about="karpathy/nanoGPT: text by characters, 2 layers of 64, 300 steps; its seed, fixed in the code, is shifted",
    command="OMP_NUM_THREADS=1 python train.py config/train_shakespeare_char.py --device=cpu --compile=False "
    "--eval_interval=150 --eval_iters=20 --log_interval=50 --block_size=64 --batch_size=12 --n_layer=2 --n_head=2 "
    "--n_embd=64 --dropout=0.0 --max_iters=300 --lr_decay_iters=300 --warmup_iters=20",
    changes=(
        TriedChange("another name for a counter", "train.py", (("local_iter_num", "iterations_of_this_process"),)),
        TriedChange(
            "a division by zero",
            "train.py",
            (("loss = loss / gradient_accumulation_steps", "loss = loss / (gradient_accumulation_steps - 1)"),),
        ),
        TriedChange("another seed", "train.py", (("torch.manual_seed(1337", "torch.manual_seed(4242"),)),
        TriedChange(
            "twice the learning rate",
            "config/train_shakespeare_char.py",
            (("learning_rate = 1e-3", "learning_rate = 2e-3"),),
        ),
    ),
)
MAKEMORE = ForeignTrainer(
    name="makemore",
    about="karpathy/makemore: names, 2 layers of 32, 501 steps",
    command="OMP_NUM_THREADS=1 python makemore.py --num-workers 0 --max-steps 501 --n-layer 2 --n-embd 32 --n-embd2 32",
    changes=(
        TriedChange("another name for a value", "makemore.py", (("best_loss", "lowest_test_loss"),)),
        TriedChange("a learning rate of 1e9", flags=("--learning-rate", "1e9")),
        TriedChange("another seed", "makemore.py", (("default=3407", "default=1234"),)),
        TriedChange("twice the learning rate", flags=("--learning-rate", "0.001")),
    ),
)

MINGPT = ForeignTrainer(
    name="minGPT",
    about="karpathy/minGPT: adding two numbers, 301 steps, by its training loss; its seed is shifted",
    command='PYTHONPATH=".:$PYTHONPATH" OMP_NUM_THREADS=1 python projects/adder/adder.py --trainer.max_iters=301 '
    "--trainer.num_workers=0",
    metric="train_loss",  # what it scores is printed at its first step alone
    changes=(
        TriedChange("another name for a score", "projects/adder/adder.py", (("top_score", "highest_score"),)),
        TriedChange("a learning rate of 1e9", flags=("--trainer.learning_rate=1e9",)),
        TriedChange("another seed", "projects/adder/adder.py", (("seed = 3407", "seed = 1234"),)),
        TriedChange("four times the learning rate", flags=("--trainer.learning_rate=0.002",)),
    ),
)
TRAINERS = {trainer.name: trainer for trainer in (NANOGPT, MAKEMORE, MINGPT)}


@dataclass(frozen=True)
class TrainerClone:
    """A copy of a clone, in which changes are tried by the command line."""

    foreign: ForeignTrainer
    folder: Path
    consoles: Path

    @classmethod
    def of(cls, foreign: ForeignTrainer, clone: Path, work: Path) -> TrainerClone:
        folder, consoles = work / foreign.name, work / f"{foreign.name}-consoles"
        ignored = shutil.ignore_patterns(".plumbline", "out*", "plumbline.toml", "results.tsv")
        shutil.copytree(clone, folder, ignore=ignored)
        consoles.mkdir()
        return cls(foreign, folder, consoles)

    def set_up(self) -> None:
        """Have the project find out how the trainer is run and read, and make the runs of the baseline."""
        metric = ("--metric", self.foreign.metric) if self.foreign.metric else ()
        done = self.plumbline("setup-trainer", self.foreign.command, *metric)
        (self.consoles / "setup-trainer.txt").write_text(f"{done.stderr}{done.stdout}exit code {done.returncode}\n")
        print(done.stderr, done.stdout, flush=True)
        if done.returncode:
            raise SystemExit(f"setup-trainer of {self.foreign.name} ended with {done.returncode}")

    def try_change(self, change: TriedChange) -> list[object]:
        """Try a change, and say in a row what was found."""
        self.git("checkout", "--quiet", "--", ".")
        path = self.folder / change.file
        for before, after in change.replaced:
            text = path.read_text()
            if before not in text:
                raise SystemExit(f"{path} has no {before!r}: this clone is another version than the benchmark knows")
            path.write_text(text.replace(before, after))
        began = time.monotonic()
        flags = ("--", *change.flags) if change.flags else ()
        done = self.plumbline("try", "--trust", "-m", change.title, *flags)
        seconds = time.monotonic() - began
        console = self.consoles / f"{change.title.replace(' ', '_')}.txt"
        console.write_text(f"{done.stderr}{done.stdout}exit code {done.returncode}\n")
        print(console.read_text(), flush=True)
        page = json.loads(self.plumbline("page", "--json").stdout)
        runs = [run["arm"] == "baseline" for run in page["runs"]]
        fixed = page["fixed_runs"] if page["looks"] else ""
        row = [self.foreign.name, change.title, page["verdict"], done.returncode, runs.count(False), fixed]
        return [*row, runs.count(True), f"{seconds:.0f}", page["sentence"]]

    def plumbline(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "plumbline", *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True)

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.folder, check=True)


HEAD = ["trainer", "change", "decided", "exit code", "runs of it", "fixed n", "runs of the baseline", "seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Decides changes of trainers that were written elsewhere")
    names = ", ".join(TRAINERS)
    parser.add_argument("clones", type=Path, nargs="+", help=f"folders of these names: {names}")
    parser.add_argument("--work", type=Path, help="a folder that is not there yet; default: a temporary one")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args()
    if unknown := [str(clone) for clone in arguments.clones if clone.resolve().name not in TRAINERS]:
        parser.error(f"no trainer is known by the name of {', '.join(unknown)}; there are {names}")
    work = arguments.work or Path(tempfile.mkdtemp(prefix="foreign-"))
    rows = []
    for clone in arguments.clones:
        bench = TrainerClone.of(TRAINERS[clone.resolve().name], clone, work)
        bench.set_up()
        rows += [bench.try_change(change) for change in bench.foreign.changes]
    table = tabulate([row[:-1] for row in rows], headers=HEAD, tablefmt="pipe")
    sentences = [f"- {row[0]}, {row[1]}: {row[-1]}" for row in rows]
    chosen = [clone.resolve().name for clone in arguments.clones]
    head = (
        "# Trainers that were written elsewhere\n\n"
        f"{describe()}. `python benchmarks/own_trainer_foreign.py {' '.join(chosen)}`\n\n"
        f"{'; '.join(TRAINERS[name].about for name in chosen)}. They are as they are cloned: `plumbline setup-trainer` "
        "with the command finds the rest and makes five runs of the baseline, which all changes use. Fixed n: runs of "
        "a change that one test of the same power needs."
    )
    atomic_write_text(arguments.out, "\n\n".join([head, table, "\n".join(sentences)]) + "\n")


if __name__ == "__main__":
    main()

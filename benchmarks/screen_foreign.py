"""Fifteen ideas for a trainer that was written elsewhere, in one design, and each by a try of its own.

    git clone https://github.com/karpathy/nanoGPT
    curl -o nanoGPT/data/shakespeare_char/input.txt \\
        https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt
    (cd nanoGPT && python data/shakespeare_char/prepare.py)
    python benchmarks/screen_foreign.py nanoGPT --work work/screen_foreign  # 20 minutes of two cores; screen_foreign.md

`python` has to be one that nanoGPT runs with (torch, numpy). The clone is not touched: it is copied below `--work`,
where its pages stay, and the same command goes on after a stop.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machine_description import describe
from tabulate import tabulate

from plumbline.core.files import atomic_write_text

COMMAND = (
    "OMP_NUM_THREADS=1 python train.py config/train_shakespeare_char.py --device=cpu --compile=False "
    "--eval_interval=100 --eval_iters=20 --log_interval=50 --block_size=64 --batch_size=12 --n_layer=2 --n_head=2 "
    "--n_embd=64 --dropout=0.0 --max_iters=100 --lr_decay_iters=100 --warmup_iters=20"
)
#: Idea -> the flags that it gives.
FLAGS = {
    "lr-2x": "--learning_rate=2e-3",
    "lr-4x": "--learning_rate=4e-3",
    "warmup-5": "--warmup_iters=5",
    "beta2-95": "--beta2=0.95",
    "no-decay": "--weight_decay=0.0",
    "tight-clip": "--grad_clip=0.3",
    "bias": "--bias=True",
    "dropout": "--dropout=0.1",
    "heads-4": "--n_head=4",
    "flat-lr": "--decay_lr=False",
}
#: Idea -> a text of model.py, and what takes its place.
PATCHES = {
    "relu2": ("self.gelu    = nn.GELU()", "self.gelu    = lambda x: nn.functional.relu(x).square()"),
    "silu": ("self.gelu    = nn.GELU()", "self.gelu    = nn.SiLU()"),
    "untied": ("self.transformer.wte.weight = self.lm_head.weight", "pass"),
    "small-init": (
        "torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)\n            if module.bias",
        "torch.nn.init.normal_(module.weight, mean=0.0, std=0.01)\n            if module.bias",
    ),
    "no-positions": ("self.transformer.drop(tok_emb + pos_emb)", "self.transformer.drop(tok_emb)"),
}


@dataclass(frozen=True)
class ScreenedClone:
    """A copy of a clone, whose ideas are screened and tried by the command line."""

    folder: Path

    def set_up(self, clone: Path) -> None:
        """Copy the clone, have the project find out how it is run, and write the ideas."""
        if not self.folder.exists():
            shutil.copytree(clone, self.folder, ignore=shutil.ignore_patterns(".plumbline", "out*", "plumbline.toml"))
        self.call("setup-trainer", COMMAND)
        toml = self.folder / "plumbline.toml"
        if "at_once" not in toml.read_text():
            toml.write_text(f"{toml.read_text().rstrip()}\n[where]\nat_once = 2\n")
        ideas = [f'{name} = {{ flags = "{flags}" }}' for name, flags in FLAGS.items()]
        (self.folder.parent / "ideas").mkdir(exist_ok=True)
        for name in PATCHES:
            self.edit(name)
            patch = subprocess.run(["git", "diff"], cwd=self.folder, check=True, capture_output=True, text=True).stdout
            (self.folder.parent / f"ideas/{name}.patch").write_text(patch)
            self.restore()
            ideas.append(f'{name} = {{ patch = "ideas/{name}.patch" }}')
        (self.folder.parent / "ideas.toml").write_text("\n".join(["[ideas]", *ideas]) + "\n")

    def edit(self, name: str) -> None:
        """Make the change of an idea in the working tree."""
        before, after = PATCHES[name]
        path = self.folder / "model.py"
        text = path.read_text()
        if text.count(before) != 1:
            raise SystemExit(f"{path} has not {before!r} once: this clone is another version than the benchmark knows")
        path.write_text(text.replace(before, after))

    def restore(self) -> None:
        """Take it back."""
        subprocess.run(["git", "checkout", "--quiet", "--", "."], cwd=self.folder, check=True)

    def screen(self, runs: int) -> dict[str, Any]:
        """Screen all ideas, and return the numbers of the page."""
        return self.call("screen", "../ideas.toml", "--runs", str(runs), "--json")

    def try_alone(self, name: str) -> dict[str, Any]:
        """Try an idea against the commit that the screen's baseline is; nothing moves that."""
        flags = ("--", FLAGS[name]) if name in FLAGS else ()
        if name in PATCHES:
            self.edit(name)
        try:
            return self.call("try", "-m", name, "--baseline", "HEAD", "--json", *flags)
        finally:
            self.restore()

    def call(self, verb: str, *arguments: str) -> dict[str, Any]:
        """Call the command, show what it does, and return the object that it prints, if any."""
        trust = ("--trust",) if verb != "setup-trainer" else ()
        command = [sys.executable, "-m", "plumbline", verb, *trust, *arguments]
        done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        if done.returncode not in (0, 10, 11, 12):
            raise SystemExit(f"plumbline {verb} ended with {done.returncode}: {done.stdout}")
        return json.loads(done.stdout) if "--json" in arguments else {}


HEAD = ["idea", "change", "effect in the design", "chosen", "alone, by `try`", "decided", "runs of it"]


def write_page(screened: Mapping[str, Any], tried: Mapping[str, Mapping[str, Any]], out: Path) -> None:
    """Write the effects in the design and what each try says, side by side."""
    rows = []
    for effect in sorted(screened["effects"]["effects"], key=lambda effect: -effect["gain"]):
        name = effect["level"][0]
        row = [name, screened["terms"]["changes"][name], format_gain(effect["gain"], effect["low"], effect["high"])]
        row.append("yes" if effect["chosen"] else "")
        if (alone := tried.get(name)) is not None:
            gain = alone["estimate"]
            own = sum(run["arm"] != "baseline" for run in alone["runs"])
            row += [
                "" if gain is None else format_gain(gain["median"], gain["low"], gain["high"]),
                alone["verdict"],
                own,
            ]
        rows.append(row)
    runs = sum(row[6] for row in rows if len(row) > 6)
    keeps = {name for name, alone in tried.items() if alone["exit_code"] == 0}
    chosen, of_design = {name for name, _ in screened["chosen"]}, screened["terms"]["runs"]
    head = (
        "# Fifteen ideas for nanoGPT, in one design and one by one\n\n"
        f"{describe()}. `python benchmarks/screen_foreign.py nanoGPT --work FOLDER`\n\n"
        "karpathy/nanoGPT as it is cloned: text by characters, 2 layers of 64, 100 steps; its seed, fixed in the code, "
        f"is shifted. {of_design} runs of the design and {len(screened['runs']) - of_design} fresh ones for all ideas, "
        f"and {runs} of {len(tried)} ideas one by one, beside 5 of the baseline. Gains in "
        f"`{screened['terms']['metric']}`, with 90 % intervals; an effect is an average over the other ideas, a try is "
        f"against the baseline alone. Of {len(keeps)} ideas that a try keeps, {len(keeps & chosen)} are chosen."
    )
    table = tabulate(rows, headers=HEAD, tablefmt="pipe", disable_numparse=True)
    values = {run["seed"]: run["value"] for each in tried.values() for run in each["runs"] if run["arm"] == "baseline"}
    spreads = (
        f"Runs of the baseline spread by {statistics.stdev(values.values()):.3f} over their seeds; runs of the design "
        f"spread by {screened['effects']['residual_sigma']:.3f} around the sum of their effects: so far is what ideas "
        "do together from adding up, and so much wider are the intervals of effects than the seeds alone would make "
        "them."
    )
    atomic_write_text(out, f"{head}\n\n{table}\n\n{spreads}\n\n{screened['sentence']}\n")


def format_gain(value: float, low: float | None, high: float) -> str:
    """A gain with its interval, which has no lower end where no look could keep yet."""
    ends = f"below {high:+.3f}" if low is None else f"{low:+.3f} to {high:+.3f}"
    return f"{value:+.3f} ({ends})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path, help="a clone of karpathy/nanoGPT with its data prepared")
    parser.add_argument("--work", type=Path, required=True, help="a folder for the copy and its runs")
    parser.add_argument("--runs", type=int, default=24, help="of the design (default: 24)")
    parser.add_argument("--tried", nargs="+", metavar="IDEA", help="one by one too (default: all)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    copy = ScreenedClone(options.work.absolute() / "nanoGPT")
    copy.folder.parent.mkdir(parents=True, exist_ok=True)
    copy.set_up(options.clone)
    screened = copy.screen(options.runs)
    tried = {name: copy.try_alone(name) for name in options.tried or (*FLAGS, *PATCHES)}
    write_page(screened, tried, options.out)


if __name__ == "__main__":
    main()

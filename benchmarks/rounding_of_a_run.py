"""How far rounding alone moves the final loss of a demo run: which differences of code can be the order of sums.

    python benchmarks/rounding_of_a_run.py               # some ten CPU minutes, writes benchmarks/rounding_of_a_run.md

Each run of the transfer study is trained as it is, and again from initial weights of which each is moved by one unit in
its last place, up or down at random: as little as float32 can tell, and about what another order of sums makes of a
step. Packs are made first where the work folder has none.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from machine_description import command, describe

from plumbline.core.stop_request import StopRequest
from plumbline.model.decoder import Decoder, create
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec, RunSpec
from plumbline.specs.yaml_files import ROOT
from plumbline.train import pretrain as training
from plumbline.train.trainer_settings import TrainerSettings

#: Runs, and the largest change of their loss by one commit from 035bdef to 55d9f7f.
METHODS = {"baseline": 0.0003, "softpick": 0.0096, "hybrid_norm": 0.0105, "ssmax": 0.0790}
#: The commits of that range that moved any of the four losses, and what they do to sums.
CHANGES = {
    "8776fece": "the loss is summed chunk by chunk, query, key and value products are joined",
    "3b2a2953": "products of float32 by another library of the processor",
    "b5b8fec3": "Softpick's weights and their gradient by another formula of the same (Softpick alone moved)",
    "54443553": "half as many chunks of the loss",
}


def move_weights(spec: ModelSpec, init_seed: int, device: str | torch.device, seed: int) -> Decoder:
    """The model as it starts, each weight moved by one unit in its last place (`seed` 0: by nothing)."""
    model = create(spec, init_seed, device)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters() if seed else ():
            up = torch.rand(weight.shape, generator=generator) < 0.5
            weight.copy_(torch.nextafter(weight, torch.where(up, torch.inf, -torch.inf)))
    return model


def loss(spec: RunSpec, packs: Path, build: Callable[..., Decoder]) -> float:
    """The final held-out loss of a run whose model `build` makes of its spec, seed and device."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(training, "create", build):
        settings = TrainerSettings(
            training_pack=packs / "train" / f"{spec.data.pack}.json",
            validation_pack=packs / "validation" / "validation.json",
            state=Path(folder) / "state",
            out=Path(folder) / "out",
            device="cpu",
        )
        assert training.pretrain(spec, settings, StopRequest()) == 0
        return float(json.loads((settings.out / "outcome.json").read_text(encoding="utf-8"))["validation_loss"])


def find_packs(work: Path) -> Path:
    """The folder of the demo's packs, which are made where they are not there."""
    folder = work / "demo" / "corpora" / "climbmix" / "packs" / "context128"
    if not all((folder / path).is_file() for path in ("train/base.json", "validation/validation.json")):
        targets = [str(folder / "train"), str(folder / "validation")]
        arguments = ["--cores", "2", "--config", "preset=demo", f"work={work}", "--quiet", "all"]
        subprocess.run([sys.executable, "-m", "snakemake", *targets, *arguments], check=True, cwd=ROOT)
    return folder


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=8, help="trainings of each run from moved weights (default 8)")
    parser.add_argument("--work", type=Path, default=Path("work"), help="work folder (default work)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    packs, study = find_packs(options.work), study_config.load("transfer", "demo")
    lines = []
    for method, code in METHODS.items():
        spec = study.runs[f"transfer/base/{method}/s42"].spec
        plain, *others = (
            loss(spec, packs, functools.partial(move_weights, seed=seed)) for seed in range(options.runs + 1)
        )
        apart = np.array(others) - plain
        lines.append(
            f"| {method} | {plain:.4f} | {np.std([plain, *others], ddof=1):.4f} | {abs(apart).max():.4f} | {code:.4f} |"
        )
        print(lines[-1], flush=True)
    head = [
        "# How far rounding alone moves the final loss of a demo run",
        "",
        f"{describe()}. `{command()}`: {options.runs} trainings of each run from weights moved by one unit in the last "
        "place each, beside the one that is not moved.",
        "",
        "| run | loss | standard deviation | largest difference | largest change by one commit |",
        "|---|---|---|---|---|",
    ]
    explanation = [
        "",
        "The last column is the largest change of the loss by one commit from 035bdef to 55d9f7f. Four commits of that "
        "range moved any of these losses at all (found by bisection, training these runs at commits on the way):",
        "",
        *(f"- {name}: {text}" for name, text in CHANGES.items()),
        "",
    ]
    options.out.write_text("\n".join([*head, *lines, *explanation]), encoding="utf-8")
    print(options.out)


if __name__ == "__main__":
    main()

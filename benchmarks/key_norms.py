"""key_norms at the largest size that two cores train in 40 minutes: its three arms, their table and figure.

    python benchmarks/key_norms.py                       # a minute of trial steps, then 40 minutes; key_norms.md, .png
    python benchmarks/key_norms.py --time-limit-minutes 15          # the largest size for that long
    python benchmarks/key_norms.py --model-size 2.1M           # this size, however long it takes
    python benchmarks/key_norms.py --estimate-only               # only the minute: what each size would take

Steps (977), sequences a step (4), learning rates and weight decay are the paper's, so that weight decay alone takes
a key norm from 8.0 to 2.5 as there; width, depth, context (256 tokens) and vocabulary (4,096, the demo's corpus) are
smaller. The three arms train side by side, a thread each, so that no core waits for the last of them; what was trained
is kept under benchmarks/runs/key_norms, and the same command goes on from there. A size's time is estimated from the
CPU time of a few steps, which says little about cores that others use as well.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import subprocess
import sys
from pathlib import Path

import torch
from machine_description import describe
from method_step_times import seconds, trainer

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError, nearest
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.runs.expected_runs import list_expected_runs
from plumbline.results.runs.finished_runs import RunFrames, load
from plumbline.results.tables import write_table
from plumbline.specs import corpus, spec_layers, study_config
from plumbline.specs.yaml_files import ROOT
from plumbline.studies.key_norms.figures.fig1 import fig1
from plumbline.studies.key_norms.figures.fig2 import fig2
from plumbline.studies.key_norms.norm_curves import AS_PUBLISHED, SCALE, find_spec
from plumbline.studies.key_norms.tables.table1 import table1

#: By parameters: layers, width, heads, key/value heads. Head width, ratios and all else are the paper's.
SIZES = {
    "1.6M": (6, 128, 2, 1),
    "2.7M": (12, 128, 2, 1),
    "5.4M": (6, 256, 4, 2),
    "6.8M": (8, 256, 4, 2),
    "8.3M": (10, 256, 4, 2),
    "9.7M": (12, 256, 4, 2),
    "12.6M": (16, 256, 4, 2),
}

#: What of the packaged corpus is read: the demo's tokenizer and documents, at this context.
CORPUS, PACKS_OF, CONTEXT, SEQUENCES, STEPS = "smollm_mix", "demo", 256, 4, 977

RUNS = ROOT / "benchmarks" / "runs" / "key_norms"

#: Cores that the arms share, and their share of time that is not spent on steps (validation, probes, checkpoints).
CORES, OVERHEAD = 2, 0.1


def make_study(size: str) -> study_config.Study:
    """The study at one of SIZES, as data: its YAML with another scale under the preset `mini`."""
    layers, width, heads, groups = SIZES[size]
    read = corpus.load(CORPUS, PACKS_OF)
    model = {"layers": layers, "width": width, "heads": heads, "key_value_heads": groups, "head_width": 64}
    model |= {"ffn_width": 4 * width, "vocabulary": read.tokenizer.vocabulary, "context": CONTEXT}
    train = {"steps": STEPS, "batch_tokens": SEQUENCES * CONTEXT, "precision": "float32", "validate_every": 100}
    here = {"label": f"{size}, two cores", "model": model, "train": train | {"validation_sequences": 16}}
    base = study_config.load("key_norms", "mini")
    content = base.definition | {"scales": {SCALE: {"mini": here}}}
    runs = {}
    for method in base.methods:
        spec = spec_layers.make_spec(content, read, "mini", SCALE, method, 42, "benchmarks/key_norms.py")
        runs[spec.key] = study_config.Run(spec=spec, groups=("base",))
    return dataclasses.replace(base, definition=content, runs=runs)


def estimate_minutes(size: str) -> float:
    """Minutes that two cores need for the three arms, from the CPU time of a few steps of one."""
    spec = find_spec(make_study(size), AS_PUBLISHED)
    assert spec is not None
    step = trainer(spec, "cpu")
    seconds(step, "cpu")  # the first step allocates
    step_seconds = statistics.median(seconds(step, "cpu") for _ in range(5))
    return 3 * STEPS * step_seconds * (1 + OVERHEAD) / CORES / 60


def largest(minutes: float) -> str:
    """The largest size whose three arms fit.

    Raises:
        PlumblineError: none does.
    """
    best = None
    for size in SIZES:
        needed = estimate_minutes(size)
        print(f"{size}: {needed:.1f} minutes for {STEPS} steps of three arms on {CORES} cores", flush=True)
        if needed > minutes:
            break
        best = size
    if best is None:
        raise PlumblineError(
            f"--time-limit-minutes {minutes:g}: the smallest of {list(SIZES)} takes longer; give more time"
        )
    return best


def packs() -> dict[str, Path]:
    """Manifests of the training and the validation pack; made by the workflow if they are not there."""
    folder = f"work/{PACKS_OF}/corpora/{CORPUS}/packs/context{CONTEXT}"
    targets = [f"{folder}/train", f"{folder}/validation"]
    command = [sys.executable, "-m", "snakemake", *targets, "--config", f"preset={PACKS_OF}"]
    subprocess.run(command, cwd=ROOT, check=True)
    return {"train": ROOT / targets[0] / "base.json", "validation": ROOT / targets[1] / "validation.json"}


def train(study: study_config.Study, work: Path) -> None:
    """All arms side by side, then what their probes read; what is finished is left alone.

    Raises:
        PlumblineError: a run failed; its log is named.
    """
    read, environment = packs(), os.environ | {"OMP_NUM_THREADS": "1"}
    jobs = []
    for run in study.runs.values():
        out, state, log = work / "runs" / run.key, work / "state" / run.key, work / "logs" / f"{run.spec.method}.log"
        if (out / "outcome.json").exists():
            continue
        log.parent.mkdir(parents=True, exist_ok=True)
        command = ["plumbline.train", "--spec", run.spec.to_json(), "--training-pack", read["train"], "--state", state]
        command += ["--validation-pack", read["validation"], "--out", out, "--device", "cpu"]
        with open(log, "a", encoding="utf-8") as stream:
            arguments = [sys.executable, "-m", *map(str, command)]
            jobs.append((log, subprocess.Popen(arguments, env=environment, stdout=stream, stderr=subprocess.STDOUT)))
    failed = [str(log) for log, job in jobs if job.wait() != 0]
    if failed:
        raise PlumblineError(
            f"a run failed or was stopped: see {', '.join(failed)}; the same command goes on from there"
        )
    for run in study.runs.values():
        probes = work / "probes" / run.key / "probes.parquet"
        command = [
            "plumbline.evaluate.probes",
            "--run",
            work / "runs" / run.key,
            "--validation-pack",
            read["validation"],
        ]
        subprocess.run([sys.executable, "-m", *map(str, command), "--out", str(probes)], env=environment, check=True)


def write(study: study_config.Study, frames: RunFrames, size: str, out: Path) -> None:
    """The table as `out`, and both figures next to it."""
    table = table1(frames, study, PrintedNumbers.of("key_norms"))
    spec = find_spec(study, AS_PUBLISHED)
    assert spec is not None
    wall_seconds = max(frames.manifests[key]["wall_seconds"] for key in frames.runs.index)
    table.warnings = [
        f"{describe()}. {study.scale_label(SCALE)}: {spec.model.layers} layers of width {spec.model.width}, {STEPS} "
        f"steps of {SEQUENCES} sequences of {CONTEXT} tokens, packaged prose; {wall_seconds / 60:.0f} minutes for all "
        f"arms side by side. `python benchmarks/key_norms.py --model-size {size}`",
        "The paper's steps, learning rates and weight decay on a smaller model: its numbers are no reproduction of "
        "the printed.",
    ]
    for name, draw in (("", fig1), ("_entropy", fig2)):
        picture = draw(frames, study, PrintedNumbers.of("key_norms"))
        with figure_style.mpl.rc_context(figure_style.RC):
            picture.figure.savefig(out.with_name(f"{out.stem}{name}.png"), metadata={"Software": None})
    figures = f"![Key norms]({out.stem}.png)\n\n![Attention entropy]({out.stem}_entropy.png)\n"
    out.write_text(f"{write_table.to_markdown(table)}\n{figures}", encoding="utf-8")
    print(out.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--time-limit-minutes", type=float, default=40.0, help="for all three arms (default: %(default)g)"
    )
    parser.add_argument("--model-size", help=f"one of {', '.join(SIZES)} (default: the largest that fits)")
    parser.add_argument("--estimate-only", action="store_true", help="only say what each size would take")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    if options.model_size is not None and options.model_size not in SIZES:
        raise PlumblineError(
            f"--model-size: {options.model_size!r} is none of {list(SIZES)}{nearest(options.model_size, SIZES)}"
        )
    torch.set_num_threads(1)
    size = options.model_size or largest(options.time_limit_minutes)
    print(f"size {size}", flush=True)
    if options.estimate_only:
        return
    study = make_study(size)
    work = RUNS / size
    train(study, work)
    write(study, load(list_expected_runs(None, study, ["base"], work), work, probes=True), size, options.out)


if __name__ == "__main__":
    command_line.run(main)

"""What each precision of training gives, and what it does to results: from its page a preset's precision is chosen.

    python benchmarks/precisions.py                                # both parts; makes demo packs where there are none
    python benchmarks/precisions.py --parts losses                 # 27 demo runs, less those in precisions.json
    python benchmarks/precisions.py --parts speed --modes eager    # without a C++ compiler

*Speed*: steps of the transfer study's baseline in turn, each precision in a process of its own, eager and as the
trainer compiles it (`timed_programs.py`). The ratio is tokens a second over those of float32, eager, in the same round.

*Losses*: final held-out losses of five methods at `demo`, each run trained at each precision, less the float32 run's,
beside the spread of the baseline's seeds. They hang on the machine's sums, and not on its load. Why softpick's moves is
looked for by leaving some kinds of products in bfloat16 and giving the others back to float32, and by a run that is all
in float32, from initial weights that are rounded once.

The page keeps the last section of each machine.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, get_args

import msgspec
import torch
from machine_description import command, describe, processor, write_section
from rounding_of_a_run import find_packs, loss
from timed_programs import SHAPES, TimedProgram, ours, ratios, time_in_turn

from plumbline.core.command_line import positive
from plumbline.core.files import atomic_write_json
from plumbline.model.decoder import Decoder, create
from plumbline.model.float32_widening import widen
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec, Precision

#: The baseline, and methods that change scores, weights, the place of norms, and the FFN.
METHODS = ("baseline", "qknorm", "softpick", "hybrid_norm", "geglu_ffn")
#: Losses of demo runs by their steps, of which this takes the seeds of the baseline.
BUDGET = Path(__file__).with_name("demo_budget.json")
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16_inputs", "bfloat16_products", "bfloat16")
MEASURED = Path(__file__).with_suffix(".json")
HEAD = [
    "# Precisions of training",
    "",
    "By machine: what [each precision](../docs/add-a-method.md) gives in speed, and how much it moves what comes out.",
]


def _is_narrow(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16


def _in_float32(call: Callable[..., Any]) -> Callable[..., Any]:
    def widened(*arguments: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            return call(*(widen(value) if _is_narrow(value) else value for value in arguments))

    return widened


def _narrow_products(kinds: Collection[str], model: Decoder) -> None:
    """Compute all of a model's products but those of these kinds in float32, whatever autocast does."""
    if HEAD_PRODUCT not in kinds:
        model.final_loss = _in_float32(model.final_loss)  # type: ignore[method-assign]
    for block in model.blocks:
        projections, ffn = block.attention.projections, block.ffn
        if QUERIES not in kinds:
            projections.forward = _in_float32(projections.forward)
        if OUTPUT not in kinds:
            projections.merge = _in_float32(projections.merge)
        if FFN not in kinds:
            ffn.forward = _in_float32(ffn.forward)


@torch.no_grad()
def _round_weights(model: Decoder) -> None:
    """Round a model's matrices to bfloat16."""
    for weight in model.parameters():
        if weight.dim() > 1:
            weight.copy_(weight.bfloat16())


QUERIES, OUTPUT, FFN, HEAD_PRODUCT = KINDS = "queries, keys and values", "attention's output", "FFN", "head"
#: Kinds of which softpick's products are in bfloat16, the others being in float32.
NARROWED = (KINDS[1:], (QUERIES, OUTPUT, HEAD_PRODUCT), KINDS[:3], (QUERIES,), (FFN,), (FFN, HEAD_PRODUCT))
#: What is changed of softpick's run -> its precision, and how.
CHANGES: dict[str, tuple[Precision, Callable[[Decoder], None]]] = {
    **{
        f"bfloat16_products of {'; '.join(kinds)}": ("bfloat16_products", functools.partial(_narrow_products, kinds))
        for kinds in NARROWED
    },
    "float32, initial weights rounded to bfloat16": ("float32", _round_weights),
}


class Losses:
    """Final losses of demo runs on this machine, kept in a file as they come."""

    def __init__(self, work: Path) -> None:
        self.every = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
        self.here: dict[str, float] = self.every.setdefault(processor(), {})
        self.runs = study_config.load("transfer", "demo").runs
        self.packs = find_packs(work)

    def loss(self, run: str, precision: Precision, change: str | None = None) -> float:
        """The loss of a run at a precision, with a change of `CHANGES`."""
        key = f"{run}, {change or precision}"
        if key not in self.here:
            spec = self.runs[f"transfer/base/{run}"].spec
            train = msgspec.structs.replace(spec.train, precision=precision)
            spec = msgspec.structs.replace(spec, train=train, probes=())

            def build(model: ModelSpec, init_seed: int, device: torch.device) -> Decoder:
                decoder = create(model, init_seed, device)
                if change is not None:
                    CHANGES[change][1](decoder)
                return decoder

            self.here[key] = round(loss(spec, self.packs, build), 5)
            atomic_write_json(MEASURED, self.every)
            print(key, self.here[key], flush=True)
        return self.here[key]


def loss_lines(work: Path) -> list[str]:
    """The tables of losses."""
    losses = Losses(work)
    steps = losses.runs["transfer/base/baseline/s42"].spec.train.steps
    by_run = json.loads(BUDGET.read_text(encoding="utf-8"))[str(steps)]
    seeds = [values[0] for run, values in by_run.items() if "/baseline/" in run]
    lines = [
        f"{describe()}. `{command()}`. Final held-out losses at `demo`; of the precisions, how far they are from "
        f"float32's. Standard deviation of the baseline over {len(seeds)} seeds: {statistics.stdev(seeds):.4f} "
        "([demo_budget](demo_budget.md)).",
        "",
        "| method | float32 | " + " | ".join(f"`{name}`" for name in PRECISIONS[1:]) + " |",
        "|---|---:" + "|---:" * len(PRECISIONS[1:]) + "|",
    ]
    for method in METHODS:
        plain = losses.loss(f"{method}/s42", "float32")
        moved = [losses.loss(f"{method}/s42", name) - plain for name in PRECISIONS[1:]]
        lines.append(f"| {method} | {plain:.4f} | {' | '.join(f'{value:+.4f}' for value in moved)} |")
    plain = losses.loss("softpick/s42", "float32")
    lines += ["", "| softpick, products in bfloat16 | from float32's loss |", "|---|---:|"]
    for change, (precision, _) in CHANGES.items():
        lines.append(f"| {change} | {losses.loss('softpick/s42', precision, change) - plain:+.4f} |")
    return lines


def speed_lines(options: argparse.Namespace) -> list[str]:
    """The table of speeds."""
    lines = [
        f"{describe()}. `{command()}`. Medians of {options.rounds} rounds, by CPU time; products: the share of a step "
        "that the products of its precision take alone, so of the rate at which the machine computes them.",
        "",
        "| shape | precision | mode | tokens a second | ratio to float32, eager | least | most | products |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for label in options.model_shapes:
        shape, keys = SHAPES[label], [(name, mode) for name in options.precisions for mode in options.modes]
        sides = {f"{name} {mode}": TimedProgram(ours, (shape, mode == "compiled", name)) for name, mode in keys}
        timings = time_in_turn(sides, {key for key in sides if key.endswith(" eager")}, options.rounds)
        for name, mode in keys:
            side, start = sides[f"{name} {mode}"], f"| {label} | `{name}` | {mode}"
            if side.fault:
                lines.append(f"{start} | {side.fault}: not measured | | | | |")
                continue
            steps = timings[f"{name} {mode}"].steps
            tokens = shape["sequences"] * shape["context"] / statistics.median(steps)
            numbers = " | ".join(f"{value:.2f}" for value in ratios(timings["float32 eager"].steps, steps))
            share = ratios(timings[f"{name} eager"].products, steps)[0]
            lines.append(f"{start} | {tokens:,.0f} | {numbers} | {share:.2f} |")
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=("losses", "speed"), default=["losses", "speed"])
    parser.add_argument("--model-shapes", nargs="+", choices=SHAPES, default=["1.2M", "6M"])
    parser.add_argument("--precisions", nargs="+", choices=get_args(Precision), default=list(PRECISIONS))
    parser.add_argument("--modes", nargs="+", choices=("eager", "compiled"), default=["eager", "compiled"])
    parser.add_argument("--rounds", type=positive, default=9)
    parser.add_argument("--work", type=Path, default=Path("work"), help="work folder (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    if "float32" not in options.precisions or "eager" not in options.modes:
        parser.error("--precisions and --modes: float32 and eager are what the others are compared with")
    torch.set_num_threads(1)
    if "losses" in options.parts:
        write_section(options.out, HEAD, f"Losses, {processor()}", loss_lines(options.work))
    if "speed" in options.parts:
        write_section(options.out, HEAD, f"Speed, {processor()}", speed_lines(options))
    print(options.out)


if __name__ == "__main__":
    main()

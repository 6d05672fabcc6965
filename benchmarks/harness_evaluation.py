"""Evaluation through the harness: our model of some weights next to the harness's own `hf` model of the same.

    python benchmarks/harness_evaluation.py --items-folder FOLDER   # FOLDER/<task>.jsonl in the hub's schema

Every model lives in a process of its own, with one thread, and they take the tasks in turn: what else the machine does
slows all alike, and CPU time is taken rather than wall time. It is that of the harness's whole evaluation of a task:
prompts, tokens, model, metrics. New processes take all tasks in one call, as `plumbline score` does. Models and
tokenizer are made on the spot (scores are as bad as chance, and equal to 1e-4 nats, which is checked); an item with an
answer longer than the context, which `hf` refuses, is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from plumbline.core.command_line import positive

TASKS = ("arc_easy", "arc_challenge", "boolq", "hellaswag", "lambada_openai", "openbookqa", "piqa", "winogrande")
SLOTS = {
    "positions": "rotary", "norm": "rms_norm", "projections": "grouped_query", "query_key": "identity", "values":
    "identity", "mixer": "softmax", "output": "identity", "ffn": "swiglu", "placement": "pre_norm", "residual":
    "standard",
}  # fmt: skip
COMMON = {
    "key_value_heads": 2, "heads": 8, "vocabulary": 4096, "norm_eps": 1e-5, "init_std": 0.02,
    "residual_init_scaling": False, "tied_embeddings": True,
} | {slot: {"name": name} for slot, name in SLOTS.items()}  # fmt: skip
#: The transfer study's baseline at `demo`, and a larger one that cuts no item.
SHAPES = {
    "1.2M": COMMON | {"layers": 4, "width": 128, "head_width": 16, "ffn_width": 352, "context": 128},
    "6M": COMMON | {"layers": 7, "width": 256, "head_width": 32, "ffn_width": 704, "context": 512},
}
#: Items of a task.
ITEMS = {"1.2M": 300, "6M": 50}
OURS = "ours"
#: Ours with float32 products made from bfloat16 numbers and summed in float32, by torch's own switch.
NARROW = "bfloat16 products"
#: Where our seconds go: a part of an evaluation, and which of torch's calls are its own.
PRODUCTS = "products of layers and head"
PARTS = {
    PRODUCTS: ("_linear_pointwise", "aten::mm", "aten::addmm", "_Linear"),
    "fused attention": ("scaled_dot_product",),
    "log_softmax and largest logit of what is asked": ("aten::_log_softmax", "aten::amax", "aten::max"),
    "other calls of torch: norms, rotations, gates, sums, copies, masks": ("aten::",),
}
NATS = 1e-4
#: What a new page begins with.
HEAD = (
    "# Evaluation beside the harness's `hf` model",
    "",
    "CPU seconds, one thread each, of a task's first items (fewer where an answer is longer than the context), models "
    f"in turn task by task; scores equal to {NATS:g} nats. A section for each machine.",
)


def work(folder: Path, model: str) -> None:
    """A process of one model: evaluates the tasks that are named on its standard input, those of a line in one call."""
    import torch
    from tokenizers import Tokenizer

    from plumbline.evaluate import harness_tasks
    from plumbline.evaluate.harness_model import CheckpointLM
    from plumbline.model.decoder import create
    from plumbline.specs.spec import ModelSpec
    from plumbline.specs.suites import suite

    torch.set_num_threads(1)
    if model == NARROW:
        torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    if model in (OURS, NARROW):
        spec = ModelSpec.from_dict(json.loads((folder / "spec.json").read_text()))
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        scored: Any = CheckpointLM(create(spec, 1), tokenizer, context=spec.context)
    else:
        from lm_eval.models.huggingface import HFLM

        size = model.removeprefix("hf:")
        batch_size = size if size == "auto" else int(size)
        scored = HFLM(pretrained=str(folder), device="cpu", dtype="float32", batch_size=batch_size)
    answers = sys.stdout
    sys.stdout = sys.stderr
    for tasks in map(str.split, sys.stdin):
        leaves = {}
        for task in tasks:
            leaves |= harness_tasks.leaves(suite("climb12").task(task), folder / f"{task}.jsonl", None)
        start = time.process_time()
        outcome = harness_tasks.run(scored, leaves)
        seconds = time.process_time() - start
        samples = [sample for task in tasks for sample in outcome["samples"][task]]
        values = [value for sample in samples for value, _ in sample["filtered_resps"]]
        print(json.dumps({"seconds": seconds, "values": values}), file=answers, flush=True)


def shares(folder: Path) -> None:
    """A process that says, in JSON, what share of our seconds each of `PARTS` takes, over all tasks."""
    import torch
    from tokenizers import Tokenizer

    from plumbline.evaluate import harness_tasks
    from plumbline.evaluate.harness_model import CheckpointLM
    from plumbline.model.decoder import create
    from plumbline.specs.spec import ModelSpec
    from plumbline.specs.suites import suite

    torch.set_num_threads(1)
    spec = ModelSpec.from_dict(json.loads((folder / "spec.json").read_text()))
    model = CheckpointLM(create(spec, 1), Tokenizer.from_file(str(folder / "tokenizer.json")), context=spec.context)
    task_sets = [harness_tasks.leaves(suite("climb12").task(task), folder / f"{task}.jsonl", None) for task in TASKS]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        start = time.perf_counter()
        for task in task_sets:
            harness_tasks.run(model, task)
        whole = time.perf_counter() - start
    durations = dict.fromkeys(PARTS, 0.0)
    for call in profile.key_averages():
        part = next((part for part, names in PARTS.items() if any(name in call.key for name in names)), None)
        if part is not None:
            durations[part] += call.self_cpu_time_total / 1e6
    durations["Python: the harness's prompts and metrics, tokens, trees, calls"] = whole - sum(durations.values())
    print(json.dumps({part: seconds / whole for part, seconds in durations.items()}))


def prepare(folder: Path, items: Path, sizes: dict[str, Any], limit: int) -> None:
    """A model in Hugging Face form, its spec, and the items."""
    from plumbline.data.tokenizer import train_bpe
    from plumbline.evaluate import harness_tasks
    from plumbline.model.decoder import create
    from plumbline.model.export import hf_export
    from plumbline.specs.spec import ModelSpec
    from plumbline.specs.suites import suite

    texts = [line for task in TASKS for line in (items / f"{task}.jsonl").read_text().splitlines()[:2000]]
    tokenizer = train_bpe((" ".join(strings(json.loads(text))) for text in texts), sizes["vocabulary"])
    folder.mkdir()
    tokenizer.save(str(folder / "words.json"))
    spec = ModelSpec.from_dict(sizes)
    hf_export.export(create(spec, 1), tokenizer_path=folder / "words.json", directory=folder)
    (folder / "spec.json").write_text(json.dumps(sizes))
    for task in TASKS:
        lines = (items / f"{task}.jsonl").read_text().splitlines()[:limit]
        (folder / f"{task}.jsonl").write_text("\n".join(lines))
        (task_object,) = harness_tasks.leaves(suite("climb12").task(task), folder / f"{task}.jsonl", None).values()
        task_object.build_all_requests(limit=None, rank=0, world_size=1)
        long = {
            request.doc_id
            for request in task_object.instances
            if len(tokenizer.encode(request.args[1]).ids) > spec.context
        }
        short = [line for index, line in enumerate(lines) if index not in long]
        (folder / f"{task}.jsonl").write_text("\n".join(short))


def strings(value: Any) -> list[str]:
    """Every text in an item."""
    if isinstance(value, dict):
        value = list(value.values())
    return [text for part in value for text in strings(part)] if isinstance(value, list) else [str(value)]


def measure(folder: Path, sizes: list[str], calls: dict[str, tuple[str, ...]]) -> dict[str, dict[str, float]]:
    """CPU seconds by call, each of some tasks, and model; every model in a new process.

    Raises:
        SystemExit: scores differ.
    """
    command = [sys.executable, __file__, "--work", str(folder), "--model"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    names = [OURS, *(f"hf:{size}" for size in sizes)]
    models = {name: subprocess.Popen([*command, name], env=environment(), text=True, **pipes) for name in names}
    timings: dict[str, dict[str, float]] = {}
    for call, tasks in calls.items():
        answers = {}
        for name, process in models.items():
            process.stdin.write(f"{' '.join(tasks)}\n")
            process.stdin.flush()
            answers[name] = json.loads(process.stdout.readline())
        apart = max(nats_apart(answers[OURS]["values"], answers[name]["values"]) for name in names[1:])
        if not apart <= NATS:
            sys.exit(f"{call}: scores differ by {apart:.2g} nats")
        timings[call] = {name: row["seconds"] for name, row in answers.items()} | {
            "answers": len(answers[OURS]["values"])
        }
        print(call, {name: round(row, 2) for name, row in timings[call].items()}, f"apart {apart:.1e}", flush=True)
    for process in models.values():
        process.stdin.close()
        process.wait()
    return timings


def nats_apart(values: list[float], others: list[float]) -> float:
    """How far scores lie apart, in nats. `hf` adds an answer's tokens in float32, which rounds sums beyond a thousand
    nats to more than 1e-4: beyond 512 a score's difference counts in proportion."""
    return max(abs(value - other) / max(1, abs(value) / 512) for value, other in zip(values, others, strict=True))


def narrow_products(folder: Path) -> str:
    """A sentence: what products of bfloat16 numbers change, over all tasks, each model in a new process."""
    answers = {}
    for name in (OURS, NARROW):
        command = [sys.executable, __file__, "--work", str(folder), "--model", name]
        ran = subprocess.run(
            command,
            env=environment(),
            text=True,
            input=f"{' '.join(TASKS)}\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        answers[name] = json.loads(ran.stdout)
    apart = nats_apart(answers[OURS]["values"], answers[NARROW]["values"])
    times = answers[NARROW]["seconds"] / answers[OURS]["seconds"]
    return (
        f"With products of bfloat16 numbers (torch's own switch) scores are up to {apart:.3f} nats from those of "
        f"float32, and the same evaluation takes {times:.2f} times the seconds."
    )


def measure_shares(folder: Path) -> dict[str, float]:
    """What `shares` says in a process of its own."""
    command = [sys.executable, __file__, "--work", str(folder), "--model", "shares"]
    ran = subprocess.run(command, env=environment(), text=True, stdout=subprocess.PIPE, check=True)
    return json.loads(ran.stdout.splitlines()[-1])


def environment() -> dict[str, str]:
    """One thread each."""
    return os.environ | {"OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1", "TOKENIZERS_PARALLELISM": "false"}


def table(label: str, timings: dict[str, dict[str, float]], together: dict[str, dict[str, float]]) -> list[str]:
    """One run: a line a task, their sum, and what all take `together`."""
    total = {key: sum(row[key] for row in timings.values()) for key in next(iter(timings.values()))}
    rows = timings | {"all, a call each": total} | together
    theirs = [name for name in total if name.startswith("hf:")]
    heads = ["task", "answers", "ours, CPU s", *(f"hf, batch {name[3:]}" for name in theirs), "fastest hf / ours"]
    lines = [f"### {label}", "", f"| {' | '.join(heads)} |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    for task, row in rows.items():
        cells = [f"{row[name]:.2f}" for name in (OURS, *theirs)]
        best = min(row[name] for name in theirs) / row[OURS]
        lines.append(f"| {task} | {row['answers']:.0f} | {' | '.join(cells)} | {best:.2f} |")
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--items-folder", type=Path, metavar="FOLDER", help="real items: <task>.jsonl in the hub's schema"
    )
    parser.add_argument("--items-per-task", type=positive, help=f"items of a task (default: {ITEMS})")
    parser.add_argument("--model-shapes", nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--batch-sizes", nargs="*", default=["8"], help="of `hf`; a number or auto")
    parser.add_argument("--repetitions", type=positive, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        if options.model == "shares":
            shares(options.work)
        else:
            work(options.work, options.model)
        return
    if options.items_folder is None:
        parser.error("--items-folder FOLDER is needed: a folder with <task>.jsonl of " + ", ".join(TASKS))
    if missing := [f"{task}.jsonl" for task in TASKS if not (options.items_folder / f"{task}.jsonl").is_file()]:
        parser.error(f"--items-folder {options.items_folder}: there is no {', '.join(missing)} in it")
    from machine_description import command, describe, processor, write_section

    lines = [f"{describe(with_torch=False)}. `{command()}`", ""]
    with tempfile.TemporaryDirectory() as temporary:
        for shape in options.model_shapes:
            folder = Path(temporary) / shape
            prepare(folder, options.items_folder, SHAPES[shape], options.items_per_task or ITEMS[shape])
            for run in range(1, options.repetitions + 1):
                context = SHAPES[shape]["context"]
                timings = measure(folder, options.batch_sizes, {task: (task,) for task in TASKS})
                together = measure(folder, options.batch_sizes, {"all, in one call": TASKS})
                lines += table(f"{shape} parameters, context {context}, run {run}", timings, together)
            parts = measure_shares(folder)
            lines += [f"### {shape} parameters: where our seconds go, by torch's profiler", "", "| part | share |"]
            lines += ["|---|---:|"]
            lines += [f"| {part} | {share:.0%} |" for part, share in parts.items()] + [""]
            totals = {key: sum(row[key] for row in timings.values()) for key in next(iter(timings.values()))}
            theirs = min(seconds for name, seconds in totals.items() if name.startswith("hf:"))
            most = theirs / totals[OURS] / parts[PRODUCTS]
            lines += [
                f"Were there nothing but the products, `hf` would take {most:.1f} times as long. "
                f"{narrow_products(folder)}",
                "",
            ]
    write_section(options.out, HEAD, processor(), lines[:-1])
    print("\n".join(lines))


if __name__ == "__main__":
    main()

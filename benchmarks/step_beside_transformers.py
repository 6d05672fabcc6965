"""A training step beside that of Transformers' Llama of equal shape, and of nanoGPT's model where its folder is given.

    python benchmarks/step_beside_transformers.py                    # 1.2M and 6M parameters, eager, one thread
    python benchmarks/step_beside_transformers.py --compiled         # torch.compile on both sides
    python benchmarks/step_beside_transformers.py --nanogpt FOLDER   # a checkout of nanoGPT, whose model.py is read

Each side is a process of its own, as its users run it: ours with what the trainer does for the allocator, theirs with
torch's defaults (and once more with our allocator settings, named so). One step of each in turn, on random tokens of
one seed: forward pass with the model's own loss, backward pass, gradient norm clipped at 1, fused AdamW, gradients
dropped. CPU seconds of the step are taken, and the ratio is theirs over ours just before it. Same shape: layers, width,
heads, key/value heads, FFN width, vocabulary with tied embeddings, context, sequences. nanoGPT has no grouped heads, no
gated FFN and no rotary positions, so of equal layers, width, heads, vocabulary and context it has 8 % more parameters,
and positions to learn; it is taken as it is.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import multiprocessing
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine_description import command, describe

from plumbline.core.command_line import positive

#: Label -> shape. The first is the transfer study's at `demo`.
SHAPES: dict[str, dict[str, int]] = {
    "1.2M": {
        "layers": 4, "width": 128, "heads": 8, "groups": 2, "ffn": 352, "vocabulary": 4096, "context": 128,
        "sequences": 18,
    },
    "6M": {
        "layers": 6, "width": 256, "heads": 8, "groups": 2, "ffn": 704, "vocabulary": 8192, "context": 256,
        "sequences": 16,
    },
}  # fmt: skip
OURS = "plumbline"
#: Of ours, and of theirs next to it.
PRECISIONS = {"float32": "float32", "bfloat16_products": "bfloat16"}


def ours(shape: dict[str, int], compiled: bool, precision: str) -> tuple[Any, Callable[[Any], Any], int]:
    """The baseline decoder of the transfer study, its loss of a batch, and its parameters."""
    import torch

    from plumbline.model.decoder import create
    from plumbline.model.numerics import autocast, numerics
    from plumbline.specs import study_config

    numerics(torch.device("cpu"))
    runs = study_config.load("transfer", "demo").runs.values()
    spec = next(run.spec.model for run in runs if (run.spec.scale, run.spec.method) == ("base", "baseline"))
    model = create(resize(spec, shape), 0)
    forward = torch.compile(model, dynamic=False) if compiled else model
    predicted = shape["sequences"] * (shape["context"] - 1)

    def loss(tokens_BT: Any) -> Any:
        with autocast(precision, tokens_BT.device):
            return forward(tokens_BT, loss=True) / predicted

    return model, loss, sum(value.numel() for value in model.parameters())


def resize(spec: Any, shape: dict[str, int]) -> Any:
    """A model spec of this shape."""
    import msgspec

    return msgspec.structs.replace(
        spec,
        layers=shape["layers"], width=shape["width"], heads=shape["heads"], key_value_heads=shape["groups"],
        head_width=shape["width"] // shape["heads"], ffn_width=shape["ffn"], vocabulary=shape["vocabulary"],
        context=shape["context"],
    )  # fmt: skip


def llama(shape: dict[str, int], compiled: bool, precision: str) -> tuple[Any, Callable[[Any], Any], int]:
    """Transformers' Llama with scaled dot-product attention."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=shape["vocabulary"], hidden_size=shape["width"], intermediate_size=shape["ffn"],
        num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"], num_key_value_heads=shape["groups"],
        max_position_embeddings=shape["context"], tie_word_embeddings=True, use_cache=False,
        attn_implementation="sdpa",
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    forward = torch.compile(model, dynamic=False) if compiled else model

    def loss(tokens_BT: Any) -> Any:
        with _their_autocast(precision):
            return forward(input_ids=tokens_BT, labels=tokens_BT).loss

    return model, loss, sum(value.numel() for value in model.parameters())


def nanogpt(
    shape: dict[str, int], compiled: bool, precision: str, folder: str
) -> tuple[Any, Callable[[Any], Any], int]:
    """nanoGPT's GPT, from `model.py` of its folder."""
    import torch

    source = importlib.util.spec_from_file_location("nanogpt_model", Path(folder) / "model.py")
    assert source is not None and source.loader is not None
    module = importlib.util.module_from_spec(source)
    source.loader.exec_module(module)
    config = module.GPTConfig(
        block_size=shape["context"], vocab_size=shape["vocabulary"], n_layer=shape["layers"], n_head=shape["heads"],
        n_embd=shape["width"], dropout=0.0, bias=False,
    )  # fmt: skip
    model = module.GPT(config)
    forward = torch.compile(model, dynamic=False) if compiled else model

    def loss(tokens_BT: Any) -> Any:
        with _their_autocast(precision):
            return forward(tokens_BT[:, :-1].contiguous(), tokens_BT[:, 1:].contiguous())[1]

    return model, loss, sum(value.numel() for value in model.parameters())


def _their_autocast(precision: str) -> contextlib.AbstractContextManager[Any]:
    import torch

    return contextlib.nullcontext() if precision == "float32" else torch.autocast("cpu", dtype=torch.bfloat16)


def work(pipe: Any, build: Callable[..., Any], arguments: tuple[Any, ...], kept_memory: bool) -> None:
    """A side's process: a step whenever it is asked for one, answered by its CPU seconds and its loss."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    if kept_memory:
        from plumbline.model.numerics import numerics

        numerics(torch.device("cpu"))
        torch.set_deterministic_debug_mode("default")
    model, loss_of, parameters = build(*arguments)
    shape = arguments[0]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens_BT = torch.randint(shape["vocabulary"], (shape["sequences"], shape["context"]))
    pipe.send(parameters)
    while pipe.recv():
        began = time.process_time()
        loss = loss_of(tokens_BT)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
        pipe.send((time.process_time() - began, value))


class TimedProgram:
    """One of them, in its process."""

    def __init__(self, build: Callable[..., Any], arguments: tuple[Any, ...], kept_memory: bool = False) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, build, arguments, kept_memory), daemon=True)
        self.process.start()
        self.parameters: int = self.pipe.recv()

    def step(self) -> float:
        """CPU seconds of one step."""
        self.pipe.send(True)
        seconds, self.loss = self.pipe.recv()
        return float(seconds)

    def close(self) -> None:
        """End the process."""
        self.pipe.send(False)
        self.process.join()


def measure(label: str, precision: tuple[str, str], options: argparse.Namespace) -> list[str]:
    """Rows of the table: each other side's step over ours, `precision` being ours and theirs."""
    shape, mode = SHAPES[label], "compiled" if options.compiled else "eager"
    sides = {OURS: TimedProgram(ours, (shape, options.compiled, precision[0]))}
    sides["transformers"] = TimedProgram(llama, (shape, options.compiled, precision[1]))
    sides["transformers, our allocator settings"] = TimedProgram(llama, (shape, options.compiled, precision[1]), True)
    if options.nanogpt:
        sides["nanoGPT"] = TimedProgram(nanogpt, (shape, options.compiled, precision[1], str(options.nanogpt)))
    for _ in range(3):
        for side in sides.values():
            side.step()
    timings: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, side in sides.items():
            timings[name].append(side.step())
    rows = []
    for name, side in sides.items():
        ratios = [theirs / mine for theirs, mine in zip(timings[name], timings[OURS])]
        side.close()
        rows.append(
            f"| {label} | {mode} | {precision[name != OURS]} | {name} | {side.parameters:,} | "
            f"{statistics.median(timings[name]):.3f} | {statistics.median(ratios):.2f} | {min(ratios):.2f} | "
            f"{max(ratios):.2f} |"
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-shapes", nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--precisions", nargs="*", choices=PRECISIONS, default=list(PRECISIONS), help="ours")
    parser.add_argument("--compiled", action="store_true", help="torch.compile (needs a C++ compiler)")
    parser.add_argument("--nanogpt", type=Path, metavar="FOLDER")
    parser.add_argument("--rounds", type=positive, default=15)
    parser.add_argument(
        "--table-repetitions", type=positive, default=2, help="the whole table so many times (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, help="default: beside this script, by eager and compiled")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    name = Path(__file__).stem + ("_compiled" if options.compiled else "")
    out = options.out or Path(__file__).with_name(f"{name}.md")
    lines = [
        f"# A training step beside others of equal shape, {'compiled' if options.compiled else 'eager'}",
        "",
        f"{describe()}. Median of {options.rounds} rounds; CPU seconds of one step on one thread, each side in a "
        "process of its own; the ratio is a side's seconds over ours in the same round (above 1: ours is faster). "
        f"`{command()}`",
        "",
        "| run | shape | mode | precision | side | parameters | seconds | ratio | least | most |",
        "|---:|---|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for run, label in itertools.product(range(1, options.table_repetitions + 1), options.model_shapes):
        for precision in options.precisions:
            rows = [f"| {run} {row}" for row in measure(label, (precision, PRECISIONS[precision]), options)]
            print("\n".join(rows), flush=True)
            lines += rows
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main()

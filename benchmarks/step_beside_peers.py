"""A training step beside those of Transformers' Llama, litgpt, x-transformers and nanoGPT's model, of equal shape.

    python benchmarks/step_beside_peers.py                           # eager; one thread
    python benchmarks/step_beside_peers.py --modes eager compiled    # torch.compile on every side, too
    python benchmarks/step_beside_peers.py --nanogpt FOLDER          # a checkout of nanoGPT, whose model.py is read

Run it by the interpreter of an environment that has the peers (`pip install x-transformers litgpt`, beside Plumbline);
one that is not there, or fails, has a row that says so. Each side is a process of its own, as its users run it: ours
with what the trainer does for the allocator, theirs with torch's defaults (Transformers' once more with our allocator
settings, named so). One step of each in turn (`timed_programs.py` says of what), and the ratio is theirs over ours of
the same mode just before it. Same shape: layers, width, heads, key/value heads, FFN width, vocabulary with tied
embeddings, context, sequences. nanoGPT has no grouped heads, no gated FFN and no rotary positions, so of equal layers,
width, heads, vocabulary and context it has 8 % more parameters, and positions to learn; it is taken as it is. litgpt's
head is tied to its embedding here.

The page keeps the last section of each machine.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.metadata
import importlib.util
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from machine_description import command, describe, processor, write_section
from timed_programs import SHAPES, Built, TimedProgram, ours, ratios, time_in_turn

from plumbline.core.command_line import positive

OURS = "plumbline"
#: Of ours, and of theirs next to it.
PRECISIONS = {"float32": "float32", "bfloat16_products": "bfloat16"}
PACKAGES = ("transformers", "litgpt", "x-transformers")
HEAD = [
    "# A training step beside others of equal shape",
    "",
    "By machine. CPU seconds of one step on one thread, each side in a process of its own; the ratio is a side's "
    "seconds over ours of the same mode in the same round (above 1: ours is faster), its median with least and most. "
    "Products: the share of a step that its own matrix products take alone, so of the rate at which the machine "
    "computes them.",
]
COLUMNS = ("shape", "mode", "precision", "side", "parameters", "seconds", "ratio", "least", "most", "products")


def llama(shape: dict[str, int], compiled: bool, precision: str) -> Built:
    """Transformers' Llama with scaled dot-product attention."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=shape["vocabulary"], hidden_size=shape["width"], intermediate_size=shape["ffn"],
        num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"], num_key_value_heads=shape["groups"],
        max_position_embeddings=shape["context"], tie_word_embeddings=True, use_cache=False,
        attn_implementation="sdpa",
    )  # fmt: skip
    model = LlamaForCausalLM(config)

    def loss(forward: Any, tokens_BT: Any) -> Any:
        return forward(input_ids=tokens_BT, labels=tokens_BT).loss

    return _peer(model, loss, compiled, precision)


def nanogpt(shape: dict[str, int], compiled: bool, precision: str, folder: str) -> Built:
    """nanoGPT's GPT, from `model.py` of its folder."""
    source = importlib.util.spec_from_file_location("nanogpt_model", Path(folder) / "model.py")
    assert source is not None and source.loader is not None
    module = importlib.util.module_from_spec(source)
    source.loader.exec_module(module)
    config = module.GPTConfig(
        block_size=shape["context"], vocab_size=shape["vocabulary"], n_layer=shape["layers"], n_head=shape["heads"],
        n_embd=shape["width"], dropout=0.0, bias=False,
    )  # fmt: skip

    def loss(forward: Any, tokens_BT: Any) -> Any:
        return forward(tokens_BT[:, :-1].contiguous(), tokens_BT[:, 1:].contiguous())[1]

    return _peer(module.GPT(config), loss, compiled, precision)


def litgpt(shape: dict[str, int], compiled: bool, precision: str) -> Built:
    """litgpt's GPT as it is configured for Llama, with the loss of its own pretraining."""
    from litgpt.model import GPT, Config
    from litgpt.utils import chunked_cross_entropy

    config = Config(
        block_size=shape["context"], vocab_size=shape["vocabulary"], padded_vocab_size=shape["vocabulary"],
        n_layer=shape["layers"], n_head=shape["heads"], n_query_groups=shape["groups"], n_embd=shape["width"],
        intermediate_size=shape["ffn"], rotary_percentage=1.0, parallel_residual=False, bias=False,
        norm_class_name="RMSNorm", mlp_class_name="LLaMAMLP",
    )  # fmt: skip
    model = GPT(config)
    model.lm_head.weight = model.transformer.wte.weight

    def loss(forward: Any, tokens_BT: Any) -> Any:
        return chunked_cross_entropy(forward(tokens_BT[:, :-1].contiguous()), tokens_BT[:, 1:].contiguous())

    return _peer(model, loss, compiled, precision)


def x_transformers(shape: dict[str, int], compiled: bool, precision: str) -> Built:
    """x-transformers' decoder with its options for a Llama, and the loss of its autoregressive wrapper."""
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    layers = Decoder(
        dim=shape["width"], depth=shape["layers"], heads=shape["heads"], attn_kv_heads=shape["groups"],
        attn_dim_head=shape["width"] // shape["heads"], attn_flash=True, rotary_pos_emb=True, use_rmsnorm=True,
        ff_glu=True, ff_swish=True, ff_no_bias=True, ff_mult=shape["ffn"] / shape["width"],
    )  # fmt: skip
    wrapper = TransformerWrapper(
        num_tokens=shape["vocabulary"], max_seq_len=shape["context"], attn_layers=layers, tie_embedding=True,
        use_abs_pos_emb=False,
    )  # fmt: skip
    return _peer(AutoregressiveWrapper(wrapper), lambda forward, tokens_BT: forward(tokens_BT), compiled, precision)


def _peer(model: Any, loss_of: Callable[[Any, Any], Any], compiled: bool, precision: str) -> Built:
    """A model of theirs, with torch's autocast of a processor around its loss at `bfloat16`."""
    import torch

    forward = torch.compile(model, dynamic=False) if compiled else model

    def loss(tokens_BT: Any) -> Any:
        narrow = contextlib.nullcontext() if precision == "float32" else torch.autocast("cpu", dtype=torch.bfloat16)
        with narrow:
            return loss_of(forward, tokens_BT)

    return model, loss, sum(value.numel() for value in model.parameters())


def _version(package: str) -> str:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {package}"


def builders(nanogpt_folder: Path | None) -> Mapping[str, Callable[..., Built] | None]:
    """What builds each side, ours first; None of one that has no source."""
    theirs = None if nanogpt_folder is None else functools.partial(nanogpt, folder=str(nanogpt_folder))
    return {
        OURS: ours,
        "transformers": llama,
        "transformers, our allocator settings": llama,
        "litgpt": litgpt,
        "x-transformers": x_transformers,
        "nanoGPT": theirs,
    }


def measure(label: str, precision: str, options: argparse.Namespace) -> list[str]:
    """Rows of the table, `precision` being ours."""
    sides, built = {}, builders(options.nanogpt)
    precisions = {name: precision if name == OURS else PRECISIONS[precision] for name in built}
    for mode in options.modes:
        for name, build in built.items():
            if build is not None:
                arguments = (SHAPES[label], mode == "compiled", precisions[name])
                sides[f"{mode} {name}"] = TimedProgram(build, arguments, "allocator" in name)
    products = {f"{options.modes[0]} {name}" for name in built} if options.modes[0] == "eager" else set()
    timings = time_in_turn(sides, products, options.rounds)
    rows = []
    for mode in options.modes:
        for name in built:
            side, start = sides.get(f"{mode} {name}"), [label, mode, precisions[name], name]
            if side is None or side.fault:
                reason = side.fault if side else "no folder (--nanogpt)"
                rows.append([*start, f"{reason}: not measured", "", "", "", "", ""])
                continue
            steps = timings[f"{mode} {name}"].steps
            alone = timings[f"eager {name}"].products if products and f"eager {name}" in timings else []
            share = f"{ratios(alone, steps)[0]:.2f}" if alone else ""
            numbers = [f"{value:.2f}" for value in ratios(steps, timings[f"{mode} {OURS}"].steps)]
            rows.append([*start, f"{side.parameters:,}", f"{statistics.median(steps):.3f}", *numbers, share])
    return [f"| {' | '.join(row)} |" for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS), help="ours")
    parser.add_argument(
        "--modes", nargs="+", choices=("eager", "compiled"), default=["eager"], help="compiled needs a C++ compiler"
    )
    parser.add_argument("--nanogpt", type=Path, metavar="FOLDER")
    parser.add_argument("--rounds", type=positive, default=15)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    lines = [
        f"{describe()}; {', '.join(map(_version, PACKAGES))}. Medians of {options.rounds} rounds. `{command()}`",
        "",
    ]
    lines += [f"| {' | '.join(COLUMNS)} |", "|---|---|---|---" + "|---:" * 6 + "|"]
    for label in options.model_shapes:
        for precision in options.precisions:
            rows = measure(label, precision, options)
            print("\n".join(rows), flush=True)
            lines += rows
            write_section(options.out, HEAD, processor(), lines)
    print(options.out)


if __name__ == "__main__":
    main()

"""Prints what a finished run writes, to be read by a person: ``plumbline sample RUN``.

Evidence of nothing: a look at whether a model has learned words.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError
from plumbline.project import named_run
from plumbline.specs.yaml_files import PRESETS

if TYPE_CHECKING:
    import torch

    from plumbline.model.decoder import Decoder


def continuation(
    model: Decoder, prompt: list[int], tokens: int, temperature: float, generator: torch.Generator, end: int | None
) -> list[int]:
    """Let a model continue a prompt, one token at a time, through its key-value cache; the ids of the new tokens.

    Args:
        prompt: ids of at least one token.
        tokens: how many new tokens at most.
        temperature: of the softmax that a token is drawn from; 0: the likeliest.
        end: id of a token after which nothing follows; it is left out.
    """
    import torch

    from plumbline.model.cache import DecodingCache

    cache, found = DecodingCache(), list[int]()
    read_BT = torch.tensor([prompt])
    with torch.inference_mode():
        while len(found) < tokens:
            logits_V = model(read_BT, cache=cache)[0, -1]
            if temperature:
                chances_V = (logits_V / temperature).softmax(dim=-1)
                token = int(torch.multinomial(chances_V, 1, generator=generator))
            else:
                token = int(logits_V.argmax())
            if token == end:
                break
            found.append(token)
            read_BT = torch.tensor([[token]])
    return found


def arguments() -> argparse.ArgumentParser:
    """Build the command-line parser of `plumbline sample`."""
    parser = argparse.ArgumentParser(
        prog=command_line.prog("plumbline sample"), description=command_line.described(__doc__)
    )
    parser.add_argument("run", metavar="RUN", help=named_run.HELP)
    parser.add_argument("--preset", choices=PRESETS, help=named_run.PRESET_HELP)
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json of its corpus (default: the workflow's)")
    parser.add_argument("--prompt", default="", help="text to continue (default: the beginning of a document)")
    parser.add_argument("--max-tokens", type=int, default=60, help="most tokens in a sample (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=3, help="default: %(default)s")
    parser.add_argument(
        "--temperature", type=float, default=0.8, help="0: always the most likely token (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    return parser


def main() -> None:
    """Run `plumbline sample`: print the samples that were asked for."""
    given = arguments().parse_args()
    for name, least in (("max_tokens", 1), ("samples", 1), ("temperature", 0)):
        if getattr(given, name) < least:
            raise PlumblineError(f"--{name} must be at least {least}, not {getattr(given, name):g}")
    if given.tokenizer is not None and not given.tokenizer.is_file():
        raise PlumblineError(f"--tokenizer: there is no file {given.tokenizer}")
    found = named_run.find(given.run, given.preset)
    import torch

    from plumbline.evaluate.harness_model import end_of_text
    from plumbline.runtime.finished_run import FinishedRun
    from plumbline.runtime.numerics import require_float32

    run = FinishedRun.read(found.folder)
    if run.outcome != "completed":
        raise PlumblineError(f"{given.run}: {run.outcome}; there is no model to sample from")
    if (file := given.tokenizer or found.tokenizer) is None:
        raise PlumblineError("--tokenizer is missing; give the tokenizer.json of the run's corpus")
    tokenizer = run.read_tokenizer(file)
    end = end_of_text(tokenizer)
    prompt = [end, *tokenizer.encode(given.prompt).ids]
    room = run.spec.model.context - len(prompt)
    if room < 1:
        raise PlumblineError(f"--prompt has {len(prompt)} tokens, the model reads {run.spec.model.context}; give less")
    require_float32(torch.device("cpu"))
    model, generator = run.model().eval(), torch.Generator().manual_seed(given.seed)
    print(f"{run.spec.key} ({run.spec.preset}): samples, not evidence")
    for _ in range(given.samples):
        ids = continuation(model, prompt, min(given.max_tokens, room), given.temperature, generator, end)
        print(f"--\n{given.prompt}{tokenizer.decode(ids)}")


if __name__ == "__main__":
    command_line.run(main)

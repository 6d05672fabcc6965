"""Prints text that a model generates, for a person to read: ``plumbline sample RUN``, or a folder in Hugging Face form.

Samples show whether a model has learned words; they prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError
from plumbline.project import named_run
from plumbline.specs import name_completers
from plumbline.specs.yaml_files import PRESETS

if TYPE_CHECKING:
    import torch

    from plumbline.model.decoder import Decoder


@dataclass(frozen=True, kw_only=True, slots=True)
class Writer:
    """What writes a text.

    Attributes:
        title: what is printed of it.
        reader: makes what reads tokens (1, T), each time those that are new, and gives logits (V) of the next one.
        encode, decode: between a text and its ids.
        begin, end: ids of the tokens that begin and end a text, often the same; no end where none is known.
        context: the most tokens that the model reads.
    """

    title: str
    reader: Callable[[], Callable[[torch.Tensor], torch.Tensor]]
    encode: Callable[[str], list[int]]
    decode: Callable[[list[int]], str]
    begin: int
    end: int | None
    context: int


def make_decoder_reader(model: Decoder) -> Callable[[torch.Tensor], torch.Tensor]:
    """Make what reads tokens through a decoder's key-value cache; see `Writer.reader`."""
    from plumbline.model.cache import DecodingCache

    cache = DecodingCache()
    return lambda read_BT: model(read_BT, cache=cache)[0, -1]


def _make_library_reader(model: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """Make what reads tokens through a Hugging Face model; without a cache it reads all of them again each time."""
    import torch

    tokens_read: list[torch.Tensor] = []
    cache: list[Any] = [None]

    def read(read_BT: torch.Tensor) -> torch.Tensor:
        tokens_read.append(read_BT)
        whole_BT = read_BT if cache[0] is not None else torch.cat(tokens_read, dim=1)
        uses = getattr(model.config, "use_cache", False)
        out = model(input_ids=whole_BT, past_key_values=cache[0], use_cache=uses)
        cache[0] = out.past_key_values if uses else None
        return out.logits[0, -1].float()

    return read


def continue_prompt(
    read_tokens: Callable[[torch.Tensor], torch.Tensor],
    prompt: list[int],
    tokens: int,
    temperature: float,
    generator: torch.Generator,
    end: int | None,
) -> list[int]:
    """Let a model continue a prompt, one token at a time; returns the ids of the new tokens.

    Args:
        read_tokens: reads the tokens (1, T) that are new, and gives logits (V) of the next one.
        prompt: ids of at least one token.
        tokens: how many new tokens at most.
        temperature: of the softmax that a token is drawn from; 0: the likeliest.
        end: id of a token after which nothing follows; it is left out.
    """
    import torch

    ids = list[int]()
    read_BT = torch.tensor([prompt])
    with torch.inference_mode():
        while len(ids) < tokens:
            logits_V = read_tokens(read_BT)
            if temperature:
                chances_V = (logits_V / temperature).softmax(dim=-1)
                token = int(torch.multinomial(chances_V, 1, generator=generator))
            else:
                token = int(logits_V.argmax())
            if token == end:
                break
            ids.append(token)
            read_BT = torch.tensor([[token]])
    return ids


def _run_writer(run: named_run.NamedRun, name: str, tokenizer_file: Path | None) -> Writer:
    from plumbline.evaluate.harness_model import end_of_text
    from plumbline.model.finished_run import FinishedRun

    finished = FinishedRun.read(run.folder)
    if finished.outcome != "completed":
        raise PlumblineError(f"{name}: {finished.outcome}; there is no model to sample from")
    if (file := tokenizer_file or run.tokenizer) is None:
        raise PlumblineError("--tokenizer is missing; give the tokenizer.json of the run's corpus")
    tokenizer = finished.read_tokenizer(file)
    end = end_of_text(tokenizer)
    model = finished.model().eval()
    return Writer(
        title=f"{finished.spec.key} ({finished.spec.preset})",
        reader=lambda: make_decoder_reader(model),
        encode=lambda text: tokenizer.encode(text).ids,
        decode=tokenizer.decode,
        begin=end,
        end=end,
        context=finished.spec.model.context,
    )


def _library_writer(folder: Path, tokenizer_file: Path | None, trust_remote_code: bool) -> Writer:
    from plumbline.evaluate import library_folder
    from plumbline.model import hugging_face_folder

    library_folder.require_fit(folder, tokenizer_file, trust_remote_code)
    tokenizer = library_folder.read_tokenizer(folder, tokenizer_file, trust_remote_code)
    model = hugging_face_folder.read_model(folder, trust_remote_code=trust_remote_code)
    if model.config.is_encoder_decoder:
        raise PlumblineError(f"{folder}: an encoder with a decoder, which continues no text; name a decoder")
    end = tokenizer.eos_token_id
    begin = end if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    if begin is None:
        raise PlumblineError(f"{folder}: its tokenizer has no token that begins or ends a text")
    return Writer(
        title=f"hf:{folder.resolve().name}",
        reader=lambda: _make_library_reader(model),
        encode=lambda text: tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"],
        decode=tokenizer.decode,
        begin=begin,
        end=end,
        context=getattr(model.config, "max_position_embeddings", 1 << 30),
    )


def arguments() -> command_line.Parser:
    """Build the command-line parser of `plumbline sample`."""
    parser = command_line.Parser(__doc__)
    parser.add_argument(
        "run",
        metavar="RUN",
        completer=name_completers.or_files(name_completers.runs),
        help=f"{named_run.HELP}; or a folder in Hugging Face form",
    )
    parser.add_argument("--preset", choices=PRESETS, help=named_run.PRESET_HELP)
    parser.add_argument(
        "--tokenizer",
        type=Path,
        help="tokenizer.json of its corpus (default: the workflow's), or for a Hugging Face folder without one",
    )
    parser.add_argument("--trust-remote-code", action="store_true", help="run the code in the folder")
    parser.add_argument("--prompt", default="", help="text to continue (default: the beginning of a document)")
    parser.add_argument("--max-tokens", type=int, default=60, help="most tokens in a sample (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=3, help="default: %(default)s")
    parser.add_argument(
        "--temperature", type=float, default=0.8, help="0: always the most likely token (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    return parser


def main() -> None:
    """Run `plumbline sample`: print the requested samples."""
    options = arguments().parse_args()
    for name, least in (("max_tokens", 1), ("samples", 1), ("temperature", 0)):
        if getattr(options, name) < least:
            raise PlumblineError(f"--{name} must be at least {least}, not {getattr(options, name):g}")
    if options.tokenizer is not None and not options.tokenizer.is_file():
        raise PlumblineError(f"--tokenizer: there is no file {options.tokenizer}")
    run = named_run.find(options.run, options.preset)
    in_library_form = not (run.folder / "outcome.json").is_file() and (run.folder / "config.json").is_file()
    import torch

    from plumbline.model.numerics import require_float32

    if in_library_form:
        writer = _library_writer(run.folder, options.tokenizer, options.trust_remote_code)
    else:
        writer = _run_writer(run, options.run, options.tokenizer)
    prompt = [writer.begin, *writer.encode(options.prompt)]
    room = writer.context - len(prompt)
    if room < 1:
        raise PlumblineError(f"--prompt has {len(prompt)} tokens, the model reads {writer.context}; give less")
    require_float32(torch.device("cpu"))
    generator = torch.Generator().manual_seed(options.seed)
    print(f"{writer.title}: samples, not evidence")
    for _ in range(options.samples):
        tokens = min(options.max_tokens, room)
        ids = continue_prompt(writer.reader(), prompt, tokens, options.temperature, generator, writer.end)
        print(f"--\n{options.prompt}{writer.decode(ids)}")


if __name__ == "__main__":
    command_line.run(main)

"""Checks which flags fit a folder in Hugging Face form, and reads its tokenizer; the model itself is read by
`plumbline.model.hugging_face_folder`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import parse_json

#: Any of these files next to a model in Hugging Face form is its tokenizer.
_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
)


def require_fit(folder: Path, tokenizer: Path | None, trust_remote_code: bool) -> None:
    """Refuse a tokenizer for a folder that has its own, and code that nobody allowed to run.

    Raises:
        PlumblineError: naming the flag.
    """
    if tokenizer is not None and has_tokenizer(folder):
        raise PlumblineError(
            f"--tokenizer: {folder} is in Hugging Face form, with a tokenizer of its own; leave it out"
        )
    if not trust_remote_code and _brings_code(folder):
        raise PlumblineError(
            f"{folder}: brings code of its own (auto_map in config.json); read its .py files, and give "
            "--trust-remote-code to run them"
        )


def has_tokenizer(folder: Path) -> bool:
    """Whether a folder in Hugging Face form has the files of a tokenizer, in any of their forms."""
    return any((folder / name).is_file() for name in _TOKENIZER_FILES)


def read_tokenizer(folder: Path, tokenizer: Path | None, trust_remote_code: bool) -> Any:
    """The folder's own tokenizer as transformers reads it, or else the tokenizer.json that is given.

    Raises:
        PlumblineError: there is none, or it cannot be read.
    """
    from transformers import AutoTokenizer

    from plumbline.model import hugging_face_folder

    if has_tokenizer(folder):
        with hugging_face_folder.library_errors(folder):
            return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=trust_remote_code)
    if tokenizer is None or not tokenizer.is_file():
        absent = "" if tokenizer is None else f" ({tokenizer} is no file)"
        raise PlumblineError(
            f"{folder}: there is no tokenizer beside the model (tokenizer.json); give --tokenizer, the tokenizer.json "
            f"that it was trained with{absent}"
        )
    return _fast_tokenizer(tokenizer)


def _fast_tokenizer(file: Path) -> Any:
    """A tokenizer.json as transformers reads one, with its end of a text, which the harness begins texts with."""
    from transformers import PreTrainedTokenizerFast

    from plumbline.data import tokenizer as tokenizers
    from plumbline.evaluate.harness_model import end_of_text

    tokenizer = tokenizers.read(file)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=tokenizer.id_to_token(end_of_text(tokenizer)))


def _brings_code(folder: Path) -> bool:
    """Whether a configuration names code that lies beside it."""
    try:
        return "auto_map" in parse_json((folder / "config.json").read_bytes())
    except (OSError, ValueError, TypeError):
        return False  # reading the model reports what is wrong with it

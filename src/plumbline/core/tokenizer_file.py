"""Reads the file of a tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.core.errors import PlumblineError
from plumbline.core.files import naming

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def read(path: Path) -> Tokenizer:
    """Read a tokenizer.json as the library's tokenizer.

    Raises:
        PlumblineError: its bytes are none.
        OSError: its disk fails.
    """
    from tokenizers import Tokenizer

    try:
        with naming(path):
            return Tokenizer.from_file(str(path))
    except OSError:
        raise
    except Exception as error:  # the library raises bare Exception
        raise PlumblineError(f"{path} is not a tokenizer.json ({error}); make it again") from error

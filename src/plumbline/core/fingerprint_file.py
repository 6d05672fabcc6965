"""Writes and reads the fingerprint of a file that the workflow made: in a JSON file itself, or in a small one next to
it.

Snakemake remembers it too, in `.snakemake`, which may be lost or belong to another copy of the folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, parse_json

#: The key; its value is what the rule's parameter of the same name was.
KEY = "fingerprint"


def beside(product: str | Path) -> Path:
    """The path of the small JSON file next to `product` that holds its fingerprint."""
    return Path(product).with_suffix(f".{KEY}.json")


def write(product: str | Path, fingerprint: str, **facts: Any) -> None:
    """Write the fingerprint of `product`, which has been written already, into the small file next to it.

    Args:
        fingerprint: the fingerprint; empty for a file made by hand, of which nothing is known: no fingerprint is then
        left. facts: further entries of the small file.
    """
    if fingerprint:
        atomic_write_json(beside(product), {KEY: fingerprint, **facts})
    else:
        beside(product).unlink(missing_ok=True)


def read(path: str | Path) -> dict[str, Any] | None:
    """The content of a JSON file; None where there is no file, it may not be read, or it holds no mapping.

    Raises:
        PlumblineError: the file system fails, so that nobody knows what is in it.
    """
    try:
        content = parse_json(Path(path).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError, ValueError, RecursionError):
        return None
    except OSError as error:
        raise PlumblineError(
            f"{path} cannot be read ({error.strerror}), so it is unknown whether what it describes is up to date; "
            "nothing was changed. Run the same command again when the file system works"
        ) from error
    return content if isinstance(content, dict) else None

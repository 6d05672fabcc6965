"""What a product says of what it was made with: in a JSON file of its own, or else in a small one beside it.

Snakemake remembers it too, in `.snakemake`, which may be lost or belong to another copy of the folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.core.files import atomic_write_json, parse_json

#: The key; its value is what the rule's parameter of the same name was.
KEY = "made_of"


def beside(product: str | Path) -> Path:
    """The small file beside a product."""
    return Path(product).with_suffix(f".{KEY}.json")


def write(product: str | Path, made_of: str, **facts: Any) -> None:
    """Say beside a product, which is written by now, what it was made with. Made by hand (`made_of` is empty): nothing
    is known of it, and nothing is said."""
    if made_of:
        atomic_write_json(beside(product), {KEY: made_of, **facts})
    else:
        beside(product).unlink(missing_ok=True)


def read(path: str | Path) -> dict[str, Any] | None:
    """The content of a JSON file; None where it is not there, cannot be read, or says nothing."""
    try:
        content = parse_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None

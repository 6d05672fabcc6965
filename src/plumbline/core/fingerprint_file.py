"""Writes and reads the fingerprint of a file that the workflow made: in a JSON file itself, or in a small one next to
it.

Snakemake remembers it too, in `.snakemake`, which may be lost or belong to another copy of the folder. The small file
also has the product's SHA-256: who reads the product compares it, since a time stamp can be kept by whoever replaces
the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, canonical_json, parse_json, sha256_file, sha256_text

#: The key; its value is what the rule's parameter of the same name was.
KEY = "fingerprint"

#: The key of the product's own SHA-256 in the small file next to it.
BYTES = "sha256"

#: The key of the SHA-256 of each file of the product, by its name, in that small file.
FILES = "files"

#: The key of the SHA-256 of all else that a JSON file of facts says.
OF_THE_REST = "sha256_of_the_rest"


def sidecar_path(product: str | Path) -> Path:
    """The path of the small JSON file next to `product` that holds its fingerprint."""
    return Path(product).with_suffix(f".{KEY}.json")


def write(product: str | Path, fingerprint: str, *, companions: Iterable[Path] = (), **facts: Any) -> None:
    """Write the fingerprint of `product`, which has been written already, into the small file next to it, with facts,
    the SHA-256 of the product and that of the small file itself.

    Args:
        fingerprint: the fingerprint; empty for a file made by hand, of whose code and settings nothing is known.
        companions: further files of the product next to it, such as a figure's numbers; their SHA-256 is written too.
        facts: further entries of the small file, such as hashes of what the product was made from. Without a
            fingerprint and facts no small file is left.
    """
    content = ({KEY: fingerprint} if fingerprint else {}) | facts
    if content:
        files = {path.name: sha256_file(path) for path in (Path(product), *companions)}
        write_facts(sidecar_path(product), content | {BYTES: files[Path(product).name], FILES: files})
    else:
        sidecar_path(product).unlink(missing_ok=True)


def read_verified(product: str | Path, *, required: bool = False) -> dict[str, Any]:
    """Read what the small file next to `product` says, once the product is known to be the file that it was written
    for; empty if there is no small file, which may not be if it is `required`.

    Raises:
        PlumblineError: the product has other bytes, or the small file says something else than was written.
    """
    content = read(sidecar_path(product)) or {}
    if required and not content:
        raise PlumblineError(
            f"{sidecar_path(product)} is missing or damaged, so that nothing shows whether {product} is the file that "
            f"was made; restore both, or have it made again (snakemake {product}, with the --config that it was made "
            "with)"
        )
    require_sealed(sidecar_path(product), content, "delete it and the file that it is of, and have that made again")
    expected = content.get(BYTES)
    if expected is not None and (sha256 := sha256_file(product)) != expected:
        raise PlumblineError(
            f"{product} is not the file that was made: its sha256 is {sha256}, and {sidecar_path(product)} says "
            f"{expected}; restore it, or delete both and have it made again (snakemake {product}, with the --config "
            "that it was made with)"
        )
    return content


def write_facts(path: str | Path, facts: dict[str, Any]) -> None:
    """Write a JSON file of facts with the SHA-256 of them all, which `require_as_written` compares."""
    atomic_write_json(path, seal(facts))


def seal(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts with the SHA-256 of them all (a new one, where they had one), as `write_facts` writes them."""
    read_again: dict[str, Any] = parse_json(canonical_json(facts))  # keys that are numbers are strings there
    return read_again | {OF_THE_REST: _digest(read_again)}


def require_as_written(path: str | Path, facts: Mapping[str, Any], remedy: str) -> None:
    """Refuse a JSON file whose `facts` are not those that were written, if it has their SHA-256.

    Raises:
        PlumblineError: one of them is another; `remedy` says what to do.
    """
    if OF_THE_REST in facts and (digest := _digest(facts)) != facts[OF_THE_REST]:
        raise PlumblineError(
            f"{path} is not as it was written: the sha256 of what it says is {digest}, and its {OF_THE_REST} says "
            f"{facts[OF_THE_REST]}: restore it, or {remedy}"
        )


def require_sealed(path: str | Path, facts: Mapping[str, Any], remedy: str) -> None:
    """Refuse facts next to a product or a table as `require_as_written` does, and those that lost their SHA-256: the
    versions that write `files` there write it too.

    Raises:
        PlumblineError: they are not those that were written; `remedy` says what to do.
    """
    if FILES in facts and OF_THE_REST not in facts:
        raise PlumblineError(
            f"{path} was changed: it has {FILES!r}, and lacks {OF_THE_REST!r}: restore it, or {remedy}"
        )
    require_as_written(path, facts, remedy)


def _digest(facts: Mapping[str, Any]) -> str:
    return sha256_text(canonical_json({name: value for name, value in facts.items() if name != OF_THE_REST}))


def is_unchanged(product: str | Path) -> bool:
    """Whether `product` is the file that the small file next to it was written for, or there is no such small file."""
    try:
        read_verified(product)
    except PlumblineError:
        return False
    return True


def read(path: str | Path) -> dict[str, Any] | None:
    """The content of a JSON file; None if there is no file, it may not be read, or it holds no mapping.

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

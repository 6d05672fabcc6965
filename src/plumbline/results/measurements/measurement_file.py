"""Writes and reads a measurement's frame and the JSON file next to it, which records what it was made with."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import parse_json, sha256_file

if TYPE_CHECKING:  # plans read only the JSON file next to a frame
    import pandas as pd

#: Where measurements are, below the folder of the preset, and in keys of tables.
FOLDER = "measured"


def frame_path(work: Path, key: str) -> Path:
    """Return the file of a measurement's frame under `work`; `key` is ``measured/study/name``."""
    return work / f"{key}.parquet"


def is_key(key: str) -> bool:
    """Whether a key that a cell or claim names is a measurement's, not a run's."""
    return key.startswith(f"{FOLDER}/")


def write(frame: pd.DataFrame, path: Path, facts: dict[str, Any]) -> None:
    """Write a measurement's frame, and next to it a JSON file with `facts` on what it was made with.

    Raises:
        PlumblineError: the frame cannot be stored.
    """
    from plumbline.core import frames

    frames.write_measured(frame, path, {"fingerprint": str(facts["fingerprint"])})
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    more = {"rows": len(frame), "finished": finished, "frame_sha256": sha256_file(path)}
    fingerprint_file.write_facts(facts_path(path), facts | more)


def read(path: Path) -> pd.DataFrame | None:
    """Read a measurement's frame; None if nothing was measured.

    Raises:
        PlumblineError: it and the JSON file next to it are not of one measurement.
    """
    if not path.exists():
        return None
    import pandas as pd

    if read_facts(path)["frame_sha256"] != sha256_file(path):
        raise PlumblineError(
            f"{path} is not the frame that {facts_path(path)} describes; delete both and measure again"
        )
    return pd.read_parquet(path)


def read_facts(path: Path) -> dict[str, Any]:
    """Read the facts on what a measurement's frame was made with.

    Raises:
        PlumblineError: the JSON file is missing, damaged, or was edited since it was written.
    """
    try:
        content = parse_json(facts_path(path).read_text(encoding="utf-8"))
        content["frame_sha256"], content["fingerprint"]
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise PlumblineError(
            f"{facts_path(path)} does not say what {path.name} was made with ({error!r}); delete both and measure again"
        ) from error
    fingerprint_file.require_as_written(facts_path(path), content, f"delete it and {path.name} and measure again")
    return content


def require_present(path: Path, fingerprint: str, key: str) -> None:
    """Refuse a measurement's frame that was made with other code or options than the present ones (`fingerprint`).

    Raises:
        PlumblineError: it was. Without a frame nothing is refused.
    """
    if path.exists() and read_facts(path)["fingerprint"] != fingerprint:
        raise PlumblineError(
            f"{path} was measured with other code, options or specs than {key} has now; measure it again (snakemake "
            f"{path}), or restore what it was measured with"
        )


def facts_path(path: Path) -> Path:
    """Return the JSON file that records what a measurement's frame was made with."""
    return path.with_suffix(".json")

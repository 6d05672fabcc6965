"""Changes the spec of a finished run as if its trainer had written it so: run id, outcome and checksum go along."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file, run_files


def change_spec(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Let `change` edit the spec in the manifest of a run's folder."""
    manifest, outcome = (json.loads((folder / f"{name}.json").read_text()) for name in ("manifest", "outcome"))
    change(manifest["spec"])
    run_id = run_files.id_of_spec(manifest["spec"])
    manifest.get("files", {}).pop("outcome.json", None)
    fingerprint_file.write_facts(folder / "manifest.json", manifest | {"run_id": run_id})
    (folder / "outcome.json").write_text(json.dumps(outcome | {"run_id": run_id}))

"""Writes the bill of materials of the locks as CycloneDX: `make sbom`, and each build of a wheel, which carries it.

It names every package that set-up installs, by version. Which files of each are accepted is in the locks, whose SHA-256
it states. The same locks give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import runpy
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.lock", "requirements-cuda.lock")
#: Its place in a wheel's `.dist-info` (PEP 770).
NAME = "sboms/plumbline-lm.cdx.json"


def build_sbom(root: Path = ROOT) -> dict[str, Any]:
    """Build the bill of materials of the locks in a folder."""
    read_pins = runpy.run_path(str(Path(__file__).with_name("write_locks.py")))["read_pins"]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    locks = {name: (root / name).read_bytes() for name in LOCKS}
    pins = sorted({pin for lock in locks.values() for pin in read_pins(lock.decode())})
    components = [_describe_component("library", *pin) for pin in pins]
    own = _describe_component("application", project["name"], project["version"])
    own["licenses"] = [{"license": {"id": project["license"]}}]
    files = [
        {"type": "file", "name": name, "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(lock).hexdigest()}]}
        for name, lock in locks.items()
    ]
    content = {"metadata": {"component": own | {"components": files}}, "components": components}
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return head | content


def _describe_component(kind: str, name: str, version: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{version}"
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}


def write_sbom(out: Path, root: Path = ROOT) -> None:
    """Write the bill of materials of the locks in a folder as a file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(build_sbom(root), indent=1) + "\n")


if __name__ == "__main__":
    write_sbom(Path(sys.argv[1]))

"""Compares the files of a kept bundle with the hashes that its own list has; nothing is written, and nothing is run."""

from __future__ import annotations

import hashlib
import json
import lzma
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.core import run_files
from plumbline.core.errors import PlumblineError
from plumbline.core.files import once, sha256_file

#: The archive's first file, which lists the others; the most bytes of it, and of all files together.
LIST, LIST_BYTES, BYTES = "bundle/ro-crate-metadata.json", 32 << 20, 4 << 30
#: What a run of training leaves in a bundle.
RUN = "manifest.json"


def difference(archive: Path, recorded: Any) -> str:
    """What keeps a bundle from being checked, in words: empty where the archive has the recorded SHA-256, every file in
    it has the size and the SHA-256 that its list has, and there are runs among them.
    """
    if not archive.is_file():
        return "the archive is not there"
    if sha256_file(archive) != recorded:
        return "the archive is another one than the recorded"
    try:
        with tarfile.open(archive, "r|xz") as tar:
            return _unlike(tar)
    except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError, RecursionError, PlumblineError) as error:
        return f"the archive is no bundle ({str(error)[:100]})"


def _unlike(tar: tarfile.TarFile) -> str:
    members = iter(tar)
    first = next(members, None)
    if first is None or first.name != LIST or not first.isreg() or first.size > LIST_BYTES:
        return f"the archive does not begin with {LIST}"
    listed = _listed(json.loads(_content(tar, first), object_pairs_hook=once))
    whole, runs = 0, 0
    for member in members:
        name = member.name.removeprefix("bundle/")
        size, sha256 = listed.pop(name, (-1, ""))
        whole += member.size
        if not member.isreg() or member.size != size or whole > BYTES:
            return f"{name[:200]} is not the file that the bundle's list has"
        content = _content(tar, member)
        if hashlib.sha256(content).hexdigest() != sha256:
            return f"{name[:200]} has another hash than the bundle's list has"
        if name.endswith(f"/{RUN}"):
            manifest = json.loads(content, object_pairs_hook=once)
            if not isinstance(manifest, dict) or not {"run_id", "spec"} <= manifest.keys():
                return f"{name[:200]} is no manifest of a run: it has no run_id and spec"
            run_files.require_manifest(Path(name), manifest)
            runs += 1
    if listed:
        return f"{next(iter(listed))[:200]} is in the bundle's list and not in the archive"
    return "" if runs else "no run is in it"


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    return file.read() if file is not None else b""


def _listed(document: Any) -> dict[str, tuple[int, str]]:
    graph = document.get("@graph") if isinstance(document, Mapping) else None
    if not isinstance(graph, list):
        raise ValueError(f"{LIST} lists no files")
    return {
        str(each["@id"]): (int(each["contentSize"]), each["sha256"])
        for each in graph
        if isinstance(each, Mapping) and "sha256" in each and str(each.get("contentSize", "")).isdecimal()
    }

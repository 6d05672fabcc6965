"""Rolling checkpoints: a directory ``step-0000120`` is written under another name, synced, and then renamed.

| file                    | holds                                                                        |
|-------------------------|------------------------------------------------------------------------------|
| `model.safetensors`     | the weights                                                                  |
| `optimizer.safetensors` | the optimizer's tensors, ``<parameter>.<key>``                               |
| `shards/`               | instead of these two for sharded training: torch.distributed.checkpoint       |
| `metrics.npy`           | the metrics so far                                                           |
| `online.npy`            | what online probes read so far, where a run has any                          |
| `loop.json`             | step (= the data position), random states, interventions, a divergence if any |
| `metadata.json`         | written last: identity, and size and SHA-256 of every file                   |

Learning rates and data order are pure functions of the step, so the step is all there is to save of them. A
directory counts only if its metadata and every file of it are as they were written.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.cli import PlumblineError
from plumbline.files import atomic_write_json, canonical_json, fsync_directory, sha256_file, sha256_text

METADATA = "metadata.json"
_NAME = re.compile(r"step-(\d{7,})(-diverged)?")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """A checkpoint that was found whole."""

    path: Path
    step: int
    metadata: dict[str, Any]


class Checkpoints:
    """The checkpoints of one state directory. Used by rank 0 only."""

    def __init__(self, directory: Path, keep: int | None) -> None:
        """`keep` newest checkpoints stay, and the newest finite one in any case; None keeps all."""
        self.directory, self.keep = directory, keep

    def name(self, step: int, diverged: bool = False) -> Path:
        """Where the checkpoint of a step belongs."""
        return self.directory / f"step-{step:07d}{'-diverged' if diverged else ''}"

    def begin(self, step: int) -> Path:
        """An empty temporary directory for the checkpoint of a step; leftovers of killed trainers go away."""
        for leftover in self.directory.glob(".step-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        temporary = self.directory / f".step-{step:07d}"
        temporary.mkdir(parents=True)
        return temporary

    def finish(self, temporary: Path, step: int, metadata: dict[str, Any], diverged: bool = False) -> Path:
        """Sync the files, write the metadata, rename, sync the directory, and drop what is too old."""
        files = {}
        for path in sorted(entry for entry in temporary.rglob("*") if entry.is_file()):
            _sync(path)
            files[str(path.relative_to(temporary))] = {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
        for folder in [entry for entry in temporary.rglob("*") if entry.is_dir()]:
            fsync_directory(folder)
        content = metadata | {"step": step, "files": files}
        atomic_write_json(temporary / METADATA, content | {"sha256": sha256_text(canonical_json(content))})
        final = self.name(step, diverged)
        os.rename(temporary, final)
        fsync_directory(self.directory)
        if self.keep is not None:
            self._rotate(self.keep)
        return final

    def newest(self) -> Checkpoint | None:
        """The newest whole checkpoint. Damaged ones are renamed ``….damaged`` and named on stderr.

        None where there is none; `found_any` tells whether there ever was one.
        """
        for path in self._all():
            fault = damage(path)
            if fault is None:
                metadata = json.loads((path / METADATA).read_text(encoding="utf-8"))
                return Checkpoint(path=path, step=metadata["step"], metadata=metadata)
            aside = path.with_name(f"{path.name}.damaged")
            shutil.rmtree(aside, ignore_errors=True)
            os.rename(path, aside)
            print(f"checkpoint {path} is damaged ({fault}); set aside as {aside.name}, trying an earlier one",
                  file=sys.stderr)  # fmt: skip
        return None

    def newest_finite(self) -> Checkpoint | None:
        """The newest whole checkpoint whose weights are all finite."""
        for path in self._all():
            if damage(path) is None:
                metadata = json.loads((path / METADATA).read_text(encoding="utf-8"))
                if metadata["finite"]:
                    return Checkpoint(path=path, step=metadata["step"], metadata=metadata)
        return None

    def found_any(self) -> bool:
        """Whether there is, or was, any checkpoint."""
        return any(self.directory.glob("step-*"))

    def _all(self) -> list[Path]:
        """Newest first; a divergence comes after the step it stopped at."""
        matches = [(path, _NAME.fullmatch(path.name)) for path in self.directory.glob("step-*")]
        found = [(int(match[1]), match[2] is not None, path) for path, match in matches if match]
        return [path for _, _, path in sorted(found, reverse=True)]

    def _rotate(self, keep: int) -> None:
        finite_seen = False
        for number, path in enumerate(self._all()):
            try:
                finite = bool(json.loads((path / METADATA).read_text(encoding="utf-8"))["finite"])
            except (OSError, ValueError, KeyError):
                finite = False
            needed = number < keep or (finite and not finite_seen)
            finite_seen |= finite
            if not needed:
                doomed = path.with_name(f".{path.name}")
                shutil.rmtree(doomed, ignore_errors=True)
                os.rename(path, doomed)  # never half a checkpoint under its own name
                shutil.rmtree(doomed, ignore_errors=True)


def damage(path: Path, checksums: bool = True) -> str | None:
    """What is wrong with a checkpoint; None if it is whole. Without `checksums` its files are sized and not read."""
    try:
        content = json.loads((path / METADATA).read_text(encoding="utf-8"))
        checksum = content.pop("sha256")
    except FileNotFoundError:
        return f"{METADATA} is missing"
    except (ValueError, KeyError, OSError, AttributeError) as error:
        return f"{METADATA} cannot be read: {error}"
    if sha256_text(canonical_json(content)) != checksum:
        return f"{METADATA} is not as it was written"
    for name, expected in content["files"].items():
        file = path / name
        if not file.is_file():
            return f"{name} is missing"
        if file.stat().st_size != expected["bytes"]:
            return f"{name} has {file.stat().st_size} bytes, not {expected['bytes']}"
        if checksums and sha256_file(file) != expected["sha256"]:
            return f"{name} does not have its checksum"
    return None


def guarded(directory: Path, write: Callable[[], Any]) -> Any:
    """Run `write`; a full disk becomes a message that names the directory.

    Raises:
        PlumblineError: no space, quota exceeded, or a file-size limit.
    """
    try:
        return write()
    except Exception as error:
        if not _is_full(error):
            raise
        for leftover in directory.glob(".step-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        raise PlumblineError(
            f"no room to save under {directory} ({error}); earlier checkpoints there are intact. Free space and start "
            f"the run again: it resumes from them"
        ) from error


def _is_full(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if any(f"os error {number})" in str(error) for number in _FULL):  # safetensors writes from Rust
            return True
        error = error.__cause__ or error.__context__
    return False


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

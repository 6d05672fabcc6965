"""Keeps a run's checkpoints: a directory ``step-0000120`` is written under another name, synced, and then renamed.

| file                    | holds                                                                        |
|-------------------------|------------------------------------------------------------------------------|
| `model.safetensors`     | the weights                                                                  |
| `optimizer.safetensors` | the optimizer's tensors, ``<parameter>.<key>``                               |
| `shards/`               | instead of these two for sharded training: each rank's rows                  |
| `metrics.npy`           | the metrics so far                                                           |
| `online.npy`            | what online probes read so far, where a run has any                          |
| `loop.json`             | step, random states, interventions, a divergence (`training_state`)          |
| `metadata.json`         | written last: identity, and size and SHA-256 of every file                   |

A directory counts only if its metadata and every file of it are as they were written, and what they hold can be a state
of the run (`training_state.require_fit`). One that is not is renamed ``….damaged``; one that the file system does not
give back (EIO, ESTALE) is left as it is, and an earlier one is taken.

Rolling checkpoints are replaced by newer ones. Probe points, the weights at stated fractions of training, are kept for
good: a point of fraction f is at step round(f x steps), 0 being before the first step. While a run trains, its points
lie in its state directory, written and named like rolling checkpoints; with the outcome they come into ``points/`` of
the outputs, by a hard link where both are on one file system. The state keeps them, so that outputs that were deleted
can be given again. The last step's point is the run's own ``model.safetensors``.

``points/index.json`` names every requested point; of a run that diverged, also those that it never reached.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import (
    atomic_write_json,
    canonical_json,
    free_name,
    fsync_directory,
    fsync_file,
    open_atomically,
    parse_json,
    sha256_file,
    sha256_text,
)
from plumbline.core.permissions import explain_denial
from plumbline.core.run_files import MODEL, POINTS, POINTS_INDEX
from plumbline.specs.spec import RunSpec
from plumbline.train.disk_faults import UnreadableFile

METADATA = "metadata.json"
_NAME = re.compile(r"step-(\d{7,})(-diverged)?")
#: What the file system says where a file is not there, or is something else.
_NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class DamagedCheckpoint(Exception):
    """Raised where a checkpoint is not as it was written; the message says in what."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CompleteCheckpoint:
    """A checkpoint that was found whole: its path, its step and its metadata."""

    path: Path
    step: int
    metadata: dict[str, Any]


class RollingCheckpoints:
    """Writes and finds the checkpoints of one state directory. Used by rank 0 only."""

    def __init__(
        self, directory: Path, keep: int | None, require: Callable[[Path, dict[str, Any]], None] = lambda *_: None
    ) -> None:
        """`keep` newest checkpoints stay, and the newest finite one in any case; None keeps all.

        `require`: raises `DamagedCheckpoint` of a whole checkpoint, with its metadata, that is no state of the run.
        """
        self.directory, self.keep, self.require = directory, keep, require
        self.unreadable: set[Path] = set()

    def name(self, step: int, diverged: bool = False) -> Path:
        """Spell the directory of a step's checkpoint."""
        return self.directory / f"step-{step:07d}{'-diverged' if diverged else ''}"

    def has(self, step: int, diverged: bool = False) -> bool:
        """Whether a step's checkpoint is there, so that it need not be written.

        One that could not be read counts as missing.
        """
        path = self.name(step, diverged)
        return path not in self.unreadable and path.exists()

    def begin(self, step: int) -> Path:
        """Make an empty temporary directory for the checkpoint of a step; leftovers of killed trainers are removed."""
        temporary = self.directory / f".step-{step:07d}"
        for leftover in self.directory.glob(".step-*"):
            shutil.rmtree(leftover, ignore_errors=leftover != temporary)
        temporary.mkdir(parents=True)
        return temporary

    def finish(
        self,
        temporary: Path,
        step: int,
        metadata: dict[str, Any],
        diverged: bool = False,
        check: Callable[[], None] = lambda: None,
    ) -> Path:
        """Complete the checkpoint in a temporary directory: sync its files, write its metadata, rename it, and drop old
        ones.

        `check` is called before the rename: it raises where the directory is not this trainer's any more.
        """
        files = {}
        for path in sorted(entry for entry in temporary.rglob("*") if entry.is_file()):
            fsync_file(path)
            files[str(path.relative_to(temporary))] = {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
        for folder in [entry for entry in temporary.rglob("*") if entry.is_dir()]:
            fsync_directory(folder)
        content = metadata | {"step": step, "files": files}
        atomic_write_json(temporary / METADATA, content | {"sha256": sha256_text(canonical_json(content))})
        final = self.name(step, diverged)
        check()
        try:
            os.rename(temporary, final)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            os.rename(final, free_name(final, "unreadable"))  # it could not be read, and was made again
            os.rename(temporary, final)
        self.unreadable.discard(final)
        fsync_directory(self.directory)
        if self.keep is not None:
            self._rotate(self.keep)
        return final

    def find_newest(self) -> CompleteCheckpoint | None:
        """Find the newest whole checkpoint. Damaged ones are renamed ``….damaged`` and named on stderr.

        None if there is none; `has_any` tells whether there ever was one.

        Raises:
            UnreadableFile: the file system does not give checkpoints back, or denies them to this user, and no earlier
                one is whole.
        """
        denied_error: PermissionError | None = None
        for path in self._newest_first():
            try:
                metadata = read_whole(path)
                self.require(path, metadata)
            except DamagedCheckpoint as damaged:
                aside = free_name(path, "damaged")
                os.rename(path, aside)
                print(f"checkpoint {path} is damaged ({damaged}); set aside as {aside.name}, trying an earlier one",
                      file=sys.stderr)  # fmt: skip
            except OSError as error:
                self.unreadable.add(path)
                if isinstance(error, PermissionError):
                    denied_error = denied_error or error
                print(f"checkpoint {path} cannot be read ({error}); left as it is, trying an earlier one",
                      file=sys.stderr)  # fmt: skip
            else:
                return CompleteCheckpoint(path=path, step=metadata["step"], metadata=metadata)
        if denied_error is not None:
            raise UnreadableFile(explain_denial(denied_error.filename))
        if self.unreadable:
            raise UnreadableFile(
                f"{self.directory}: {len(self.unreadable)} checkpoint(s), the newest {max(self.unreadable).name}, "
                "cannot be read, and no earlier one is intact; this is an access error, not damage, and none of "
                "them was changed. Start the run again when the file system works"
            )
        return None

    def newest_finite(self) -> CompleteCheckpoint | None:
        """Find the newest whole checkpoint whose weights are all finite; None if there is none."""
        for path in self._newest_first():
            try:
                metadata = read_whole(path)
                self.require(path, metadata)
            except (DamagedCheckpoint, OSError):
                continue
            if metadata["finite"]:
                return CompleteCheckpoint(path=path, step=metadata["step"], metadata=metadata)
        return None

    def has_any(self) -> bool:
        """Whether there is, or was, any checkpoint, damaged ones included."""
        return any(self.directory.glob("step-*"))

    def faults(self) -> list[str]:
        """Say of each checkpoint that cannot be resumed from what is wrong with it, set aside or not, newest first."""
        faults = []
        for path in sorted(self.directory.glob("step-*"), reverse=True):
            try:
                self.require(path, read_whole(path))
            except (DamagedCheckpoint, OSError) as error:
                faults.append(f"{path.name}: {error}")
        return faults

    def owner(self, keys: tuple[str, ...]) -> dict[str, Any] | None:
        """Read from the newest checkpoint that has them which run it is of: `keys` of its metadata, whether or not it
        is whole.
        """
        for path in self._newest_first():
            try:
                metadata = _metadata(path)
            except DamagedCheckpoint:
                continue
            if all(key in metadata for key in keys):
                return {key: metadata[key] for key in keys}
        return None

    def _newest_first(self) -> list[Path]:
        """Newest first; a divergence comes after the step it stopped at."""
        matches = [(path, _NAME.fullmatch(path.name)) for path in self.directory.glob("step-*")]
        checkpoints = [(int(match[1]), match[2] is not None, path) for path, match in matches if match]
        return [path for _, _, path in sorted(checkpoints, reverse=True)]

    def _rotate(self, keep: int) -> None:
        finite_seen = False
        for number, path in enumerate(self._newest_first()):
            try:
                finite = bool(_metadata(path)["finite"])
            except (DamagedCheckpoint, KeyError):
                finite = False
            except OSError:  # nobody knows what it is
                continue
            is_needed = number < keep or (finite and not finite_seen)
            finite_seen |= finite
            if not is_needed:
                doomed = path.with_name(f".{path.name}")
                shutil.rmtree(doomed, ignore_errors=True)
                os.rename(path, doomed)  # never half a checkpoint under its own name
                shutil.rmtree(doomed, ignore_errors=True)


def read_whole(path: Path, checksums: bool = True) -> dict[str, Any]:
    """Read the metadata of a checkpoint, and check that all of its files are as they were written.

    Without `checksums` the files' sizes are compared, and they are not read.

    Raises:
        DamagedCheckpoint: something is missing or is not as it was written.
        OSError: something is there and cannot be read.
    """
    metadata = _metadata(path)
    for name, expected in metadata["files"].items():
        try:
            size = os.stat(path / name).st_size
            if size != expected["bytes"]:
                raise DamagedCheckpoint(f"{name} has {size} bytes, not {expected['bytes']}")
            if checksums and sha256_file(path / name) != expected["sha256"]:
                raise DamagedCheckpoint(f"{name} does not have its checksum")
        except _NOT_THERE:
            raise DamagedCheckpoint(f"{name} is missing") from None
    return metadata


def damage(path: Path, checksums: bool = True) -> str | None:
    """Say what is wrong with a checkpoint; None if it is whole. Arguments and OSError as `read_whole`."""
    try:
        read_whole(path, checksums)
    except DamagedCheckpoint as damaged:
        return str(damaged)
    return None


def _metadata(path: Path) -> dict[str, Any]:
    try:
        content = parse_json((path / METADATA).read_bytes())
        checksum = content.pop("sha256")
    except _NOT_THERE:
        raise DamagedCheckpoint(f"{METADATA} is missing") from None
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DamagedCheckpoint(f"{METADATA} cannot be read: {error}") from None
    if sha256_text(canonical_json(content)) != checksum:
        raise DamagedCheckpoint(f"{METADATA} is not as it was written")
    return content


class ProbeCheckpoints:
    """Keeps the probe points of one run. All methods but `due` are for rank 0 only."""

    def __init__(self, state: Path, spec: RunSpec) -> None:
        self.spec = spec
        self.checkpoints = RollingCheckpoints(state / POINTS, keep=None)
        fractions = sorted({fraction for probe in spec.probes for fraction in probe.at})
        #: Fraction -> step.
        self.steps = {fraction: round(fraction * spec.train.steps) for fraction in fractions}

    def due(self, step: int) -> bool:
        """Whether the weights after `step` are a probe point to be kept.

        Those of the last step are not: they are an output of every run.
        """
        return step in self.steps.values() and step < self.spec.train.steps

    def has(self, step: int, made_with: dict[str, str]) -> bool:
        """Whether the point of `step` is there, whole, and made with this code; one that is not is set aside."""
        path = self.checkpoints.name(step)
        if not path.exists():
            return False
        fault = damage(path)
        if fault is None:
            metadata = parse_json((path / METADATA).read_text(encoding="utf-8"))
            other_keys = [key for key, value in made_with.items() if metadata.get(key) != value]
            if not other_keys:
                return True
            fault = f"made with another {', '.join(other_keys)}"
        self._set_aside(path, fault)
        return False

    def keep(
        self, step: int, write: Callable[[Path], None], metadata: dict[str, Any], check: Callable[[], None]
    ) -> None:
        """Let `write` make the file of weights of the probe point of `step`, which is there whole or not at all.

        `check` is called before it gets its name.
        """
        self.checkpoints.directory.mkdir(exist_ok=True)
        fsync_directory(self.checkpoints.directory.parent)
        temporary = self.checkpoints.begin(step)
        write(temporary / MODEL)
        self.checkpoints.finish(temporary, step, metadata, check=check)

    def list_lost(self, step: int, diverged: bool) -> list[int]:
        """List the steps of points that are missing and that a run which continues after `step` cannot make any
        more.

        Sizes are compared here, not checksums: it costs nothing at a start.
        """
        points = {point for point in self.steps.values() if self.due(point) and point < step + diverged}
        return sorted(point for point in points if damage(self.checkpoints.name(point), checksums=False) is not None)

    def leave(self, directory: Path, step: int, completed: bool) -> None:
        """Put all points up to `step`, the last one made, into `directory` of the outputs, and an index of all asked
        for.

        Raises:
            PlumblineError: a point is not as it was written.
        """
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        files_by_step: dict[int, dict[str, Any]] = {}
        for point in sorted({point for point in self.steps.values() if point <= step}):
            if completed and point == self.spec.train.steps:
                weights = directory.parent / MODEL
                note = "the run's final weights, not stored twice"
                files_by_step[point] = {"file": f"../{MODEL}", "sha256": sha256_file(weights), "note": note}
            elif self.due(point):
                files_by_step[point] = self._copy_point(directory, point)
        unreached = {"file": None, "sha256": None}
        entries = [
            {
                "fraction": fraction,
                "step": point,
                "reached": point in files_by_step,
                **files_by_step.get(point, unreached),
            }
            for fraction, point in self.steps.items()
        ]
        index = {"run_id": self.spec.run_id, "steps": self.spec.train.steps, "points": entries}
        atomic_write_json(directory / POINTS_INDEX, index)

    def _copy_point(self, directory: Path, step: int) -> dict[str, Any]:
        """Link or copy one point; returns where it is, and its checksum."""
        checkpoint = self.checkpoints.name(step)
        fault = damage(checkpoint)
        if fault is not None:
            raise PlumblineError(
                f"{checkpoint}: the weights of a probe point are damaged ({fault}), and only training can make them: "
                f"restore a copy, or {how_to_restart(self.checkpoints.directory.parent)}"
            )
        target = directory / f"{checkpoint.name}.safetensors"
        try:
            os.link(checkpoint / MODEL, target)
        except OSError:  # another file system, or one without links
            with open(checkpoint / MODEL, "rb") as original, open_atomically(target) as copy:
                shutil.copyfileobj(original, copy, 1 << 20)
        fsync_directory(directory)
        metadata = parse_json((checkpoint / METADATA).read_text(encoding="utf-8"))
        return {"file": target.name, "sha256": metadata["files"][MODEL]["sha256"]}

    def _set_aside(self, path: Path, why: str) -> None:
        aside = free_name(path, "set-aside")
        os.rename(path, aside)
        print(f"probe point {path}: {why}; set aside as {aside.name}", file=sys.stderr)


def how_to_restart(state: Path) -> str:
    """Spell, for an error message, the command that makes a run begin at step 0."""
    return f"restart the run with `plumbline cleanup --restart {shlex.quote(str(state))}`"

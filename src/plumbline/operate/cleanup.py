"""Lists files of runs that nothing needs any more, or that were set aside; removes them on request.

    plumbline cleanup                                    list all of it
    plumbline cleanup --remove damaged --remove half     remove these kinds
    plumbline cleanup --remove finished work/paper/state/transfer/base
    plumbline cleanup --restart work/paper/state/transfer/base/softpick/s42

kinds:

    `finished`   the state of a run whose outputs are there; without it,
               outputs that are deleted are trained again
    `other-run`  the state of a run that had this place before; it comes back
               when its configuration does
    `set-aside`  state that somebody restarted from step 0
    `damaged`    checkpoints and records that differ from what was written,
               archives that differ from the pinned ones
    `half`       what a trainer or another job was writing when it was
                 killed; the next job in its folder removes it too
    `fetched`    what was read of a hub's data set: a fetch continues from it, or
               from its documents to more of them
    `retrained`  what `plumbline verify --retrain` made of a record's run;
               without it, that trains the run anew

Nothing is removed without a request, nor while its trainer is running. `--restart` sets the state of a run aside, so
that its next start begins at step 0.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from plumbline.core import locks, process_record, temporary_files
from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_json
from plumbline.core.formats import format_bytes
from plumbline.data import copies, read_cache
from plumbline.data.split import SHUFFLES
from plumbline.train.checkpoint import state_records

#: Where the work of each preset is, unless told.
_WORK = Path("work")
#: How folders begin that a job which makes documents removes itself: their shuffles, and hashes of copies.
_SCRATCH = (SHUFFLES, copies.SCRATCH)
#: Folders below a preset's whose leftovers are whole folders of runs.
_WHOLE = ("state", "retrained")
#: After how long nothing is being written to a file of a process of which nothing else is known.
_QUIET_SECONDS = 86400
KINDS = ("finished", "other-run", "set-aside", "damaged", "half", "fetched", "retrained")


@dataclass(frozen=True, kw_only=True, slots=True)
class UnneededFile:
    """A file or folder that nothing needs any more.

    `bytes` is what removing it frees: a file that outputs share is not counted. `state`: the run's state directory,
    whose lock states whether a trainer is running there; empty if there is none. `owner`: which process was writing
    it, where its name tells.
    """

    kind: str
    path: str
    bytes: int
    state: str
    owner: str = ""


def list_leftovers(work: Path) -> list[UnneededFile]:
    """List all leftovers below ``work/<preset>/``, by kind and path."""
    leftovers = [*_list_damaged_packages(work), *_list_fetched(work), *_list_temporary_files(work)]
    leftovers += [_describe_leftover("retrained", place, None) for place in work.glob("*/retrained/*/*")]
    for place in sorted(work.glob("*/state/*/*/*/*")):
        if not place.is_dir():
            continue
        if state_records.is_aside(place.name):
            kind = "set-aside" if ".set-aside-" in place.name else "other-run"
            state = place.with_name(place.name.partition(".")[0])
            leftovers.append(_describe_leftover(kind, place, state))
        elif _is_finished(place, work):
            leftovers.append(_describe_leftover("finished", place, place))
        else:
            leftovers += [_describe_leftover(kind, path, place) for kind, path in state_records.list_leftovers(place)]
    for place in sorted(work.glob("*/runs/*/*/*/*/.leaving-*")):
        preset, _, *run_parts = place.relative_to(work).parts[:-1]
        leftovers.append(_describe_leftover("half", place, work.joinpath(preset, "state", *run_parts)))
    return sorted(leftovers, key=lambda entry: (KINDS.index(entry.kind), entry.path))


def _list_damaged_packages(work: Path) -> Iterator[UnneededFile]:
    for path in work.glob("*/packages/*.rejected*"):
        yield _describe_leftover("damaged", path, None)


def _list_fetched(work: Path) -> Iterator[UnneededFile]:
    for prefix in (read_cache.HUB_PREFIX, read_cache.LOCAL_PREFIX):
        for path in work.glob(f"*/corpora/*/documents/{prefix}*"):
            yield _describe_leftover("fetched", path, None)


def _list_temporary_files(work: Path) -> Iterator[UnneededFile]:
    """What data jobs, evaluation and probes were about to write: by its name, whose; and documents' shuffles and
    hashes, by the lock of their folder. What a trainer leaves in its state goes with that state."""
    for place in sorted(path for path in work.glob("*/*") if path.is_dir() and path.name not in _WHOLE):
        for folder, folders, files in os.walk(place):
            for entry in sorted([*folders, *files]):
                if name := temporary_files.parse(entry):
                    yield replace(_describe_leftover("half", Path(folder, entry), None), owner=_describe_owner(name))
            folders[:] = [entry for entry in folders if temporary_files.parse(entry) is None]
    for prefix in _SCRATCH:
        for path in work.glob(f"*/corpora/*/documents/{prefix}*"):
            yield _describe_leftover("half", path, None)


def _describe_owner(name: temporary_files.TemporaryName) -> str:
    if not name.is_here:
        return f"process {name.pid} of another machine, or before its last start"
    return f"process {name.pid}, {'which has ended' if name.is_abandoned else 'which runs'}"


def _is_finished(state: Path, work: Path) -> bool:
    preset, _, *run_parts = state.relative_to(work).parts
    outputs = work.joinpath(preset, "runs", *run_parts)
    outcome, identity = read_json(outputs / "outcome.json"), state_records.read_identity(state)
    if not (isinstance(outcome, dict) and isinstance(identity, dict) and (outputs / "model.safetensors").exists()):
        return False
    return outcome.get("run_id") == identity.get("run_id") is not None


def _describe_leftover(kind: str, path: Path, state: Path | None) -> UnneededFile:
    return UnneededFile(kind=kind, path=str(path), bytes=_measure_size(path), state="" if state is None else str(state))


def _measure_size(path: Path) -> int:
    """Bytes that removing `path` frees; what is being removed meanwhile counts as nothing."""
    total = 0
    for entry in [path, *path.rglob("*")]:
        try:
            status = entry.lstat()
        except FileNotFoundError:
            continue
        if not entry.is_dir() and status.st_nlink == 1:
            total += status.st_size
    return total


def remove(leftover: UnneededFile) -> str | None:
    """Remove a leftover; returns what prevents that, None if it was removed."""
    path, state = Path(leftover.path), leftover.state
    if (name := temporary_files.parse(path.name)) and not name.is_abandoned:
        quiet = time.time() - path.lstat().st_mtime
        if name.is_here or quiet < _QUIET_SECONDS:
            return f"{leftover.owner}, may be writing it; what has been quiet for a day is removed"
    if path.name.startswith(_SCRATCH) and not locks.is_free(path.parent / locks.OF_FOLDER):
        return f"a job is making the files of {path.parent}"
    if leftover.kind == "retrained" and not locks.is_free(path / locks.OF_FOLDER):
        return "its run is being trained"
    if state:
        holder = state_records.read_holder(Path(state))
        if holder is not None and not process_record.has_ended(holder):
            return f"{state} is held by {state_records.describe_holder(Path(state))}"
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return None


def restart(state: Path) -> Path:
    """Set the state of a run aside, so that its next start begins at step 0; returns where the state is now.

    Raises:
        PlumblineError: there is no such state, or a trainer is running in it.
    """
    if not state_records.is_state(state) or state_records.is_aside(state.name):
        raise PlumblineError(
            f"--restart: {state} is not the state of a run; give work/<preset>/state/<study>/.../s<seed>"
        )
    return state_records.set_aside(state)


def arguments() -> Parser:
    """Build the command-line parser of `plumbline cleanup`."""
    parser = Parser(__doc__)
    parser.add_argument(
        "below", nargs="*", type=Path, metavar="PATH", help="only what is below these folders (default: all)"
    )
    parser.add_argument("--work", type=Path, default=_WORK, help="folder with the work of each preset (default: work)")
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    parser.add_argument(
        "--remove", action="append", choices=KINDS, metavar="KIND", default=[], help="one of the kinds; repeat for more"
    )
    parser.add_argument("--restart", type=Path, metavar="DIR", help="set this run's state aside")
    return parser


def main() -> None:
    """Run `plumbline cleanup`: list what is there, remove the kinds that are named, or set a run's state aside."""
    options = arguments().parse_args()
    if options.restart is not None:
        print(f"{options.restart}: set aside as {restart(options.restart)}; the run's next start begins at step 0")
        return
    folders = [("", path) for path in options.below] + ([("--work: ", options.work)] if options.work != _WORK else [])
    for option, path in folders:
        if not path.exists():
            raise PlumblineError(
                f"{option}there is no {path}; name a folder in which runs left something, such as work"
            )
    paths = [path.resolve() for path in options.below]
    leftovers = [
        entry
        for entry in list_leftovers(options.work)
        if not paths or any(Path(entry.path).resolve().is_relative_to(path) for path in paths)
    ]
    if options.json:
        print(json.dumps([asdict(entry) for entry in leftovers], indent=2))
    else:
        for entry in leftovers:
            owner = f"  ({entry.owner})" if entry.owner else ""
            print(f"{entry.kind:<10}{format_bytes(entry.bytes):>10}  {entry.path}{owner}")
        print(f"{len(leftovers)} leftovers, {format_bytes(sum(entry.bytes for entry in leftovers))}")
    for entry in leftovers:
        if entry.kind in options.remove:
            why = remove(entry)
            print(f"left {entry.path}: {why}" if why else f"removed {entry.path}", file=sys.stderr)


if __name__ == "__main__":
    run(main)

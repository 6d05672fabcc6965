"""Says what a run is asked to be, and how it ended: the two files by which a try and its runs know each other."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_json
from plumbline.verdict.own_trainer.trainer_file import MetricPart

#: The form of requests and results; a reader refuses a later one.
SCHEMA = 1
#: How a shell ends where there is no such command, or where it may not be executed.
NO_COMMAND = {126: "its command cannot be executed", 127: "there is no such command"}


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run is asked to be; all paths are absolute.

    Attributes:
        command: with its seed and flags.
        folder: where it is run: the trainer's folder in the arm's copy.
        top: of the user's own tree, and `copy` of the arm's: modules of the first are looked for in the second.
        result, log, progress: files that are written.
        environment: variables beside those that are there.
        devices: CUDA_VISIBLE_DEVICES of the run; left alone if empty.
        timeout: seconds; None without one.
        fingerprint: parts that are known beforehand (the hash of the data).
        watch: note which files of the trainer's folder are opened.
        shared: what is linked into the copy, which all runs can write to.
    """

    run_id: str
    seed: int
    words: str
    command: str
    folder: str
    top: str
    copy: str
    result: str
    log: str
    progress: str
    metric: MetricPart
    environment: dict[str, str] = {}
    devices: str = ""
    timeout: float | None = None
    fingerprint: dict[str, str] = {}
    watch: bool = False
    shared: list[str] = []
    schema: int = SCHEMA


class Result(Struct, frozen=True, kw_only=True):
    """How a run ended.

    Attributes:
        text: the metric as the trainer wrote it.
        shifted: how many calls that set seeds were shifted, by function.
        memory_gb: the largest memory of a GPU, as torch counts it.
        borrowed: modules that came from the user's tree and not from the arm's copy.
        seeded: modules that were given a first seed; left_alone: modules whose own seeds cannot be shifted.
        opened: files of the trainer's folder that were opened, where that was asked for; written: those for writing.
        touched: files of what is shared that were written, made or removed while the run ran.
        looked_at: how many files of what is shared were looked at for that; `unseen`: there are others.
        tail: the last lines of the log.
        failed: its processes that failed and had written to its output, or may have, each in words; None where that
            is not known, as of what an older Plumbline made. `failed_beside`: those that count for nothing.
        signs: of an end before its time, each as it was printed, by its kind.
        place, interval: how far it came (`log_end.LogEnd`).
        remarks: what else is to be told of its end.
    """

    run_id: str
    seed: int
    outcome: str
    value: float | None = None
    text: str = ""
    others: dict[str, float] = {}
    seconds: float = 0.0
    why: str = ""
    fingerprint: dict[str, str] = {}
    host: str = ""
    at: str = ""
    shifted: dict[str, int] = {}
    memory_gb: float | None = None
    borrowed: list[str] = []
    seeded: list[str] = []
    left_alone: list[str] = []
    opened: list[str] = []
    written: list[str] = []
    touched: list[str] = []
    looked_at: int = 0
    unseen: bool = False
    tail: list[str] = []
    log: str = ""
    exit_code: int | None = None
    failed: list[str] | None = None
    failed_beside: list[str] = []
    signs: dict[str, str] = {}
    place: dict[str, float] = {}
    interval: dict[str, float] = {}
    remarks: list[str] = []
    schema: int = SCHEMA


def read_result(path: Path) -> Result | None:
    """Read a result; None where there is none.

    Raises:
        PlumblineError: it is none, or of a later Plumbline.
    """
    said = read_json(path)
    if said is None:
        return None
    if isinstance(said, dict) and said.get("schema", SCHEMA) != SCHEMA:
        raise PlumblineError(f"{path} is of a later Plumbline; update this one")
    try:
        return msgspec.convert(said, Result)
    except msgspec.ValidationError as error:
        raise PlumblineError(f"{path} is no result of a run ({error}); delete it, and the run is made again") from None


def interrupted_file(result: Path) -> Path:
    """The file beside a result that says why a run was not made, where that is no fault of its arm."""
    return result.with_suffix(".again.json")


def read_request(path: Path) -> Request:
    """Read a request.

    Raises:
        PlumblineError: it is none.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Request)
    except (OSError, msgspec.DecodeError) as error:
        raise PlumblineError(f"{path} is no request of a run ({error}); repeat plumbline try") from None

"""States what a run has to be, and how it ended: the two files by which a try and its runs know each other.

A run is given its seed as words of the command, by the environment, or by shifting the seeds that the code sets. What
a plumbline.toml says of seeds and flags is quoted: the shell runs what `command` says and nothing else. `inject` is for
a trainer that fixes its seed in the code: a `sitecustomize` (`child/sitecustomize.py`) in front of the child's
PYTHONPATH wraps the functions that set seeds when torch, numpy and random are imported, and shifts what they are given
by a function of the run's seed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from plumbline.core.errors import PlumblineError
from plumbline.core.files import read_json
from plumbline.verdict.own_trainer.run_budget import ENVIRONMENT
from plumbline.verdict.own_trainer.trainer_file import FLAGS, INJECT, SEED, MetricPart

#: The form of requests and results; a reader refuses a later one.
SCHEMA = 1
#: How a shell ends where there is no such command, or where it may not be executed.
NO_COMMAND = {126: "its command cannot be executed", 127: "there is no such command"}
#: The variable that gives the child's `sitecustomize` the seed to shift by.
SHIFT = "PLUMBLINE_SHIFT_SEEDS"
#: Calls with a number whose seed is shifted, whatever they are called from; a generator's own `manual_seed` is none.
_CALL = re.compile(
    r"((?<![\w.])(?:(?:(?:np|numpy)\.)?random\.seed|(?:np|numpy)\.random\.default_rng|"
    r"torch\.(?:cuda\.)?manual_seed(?:_all)?)\(\s*)\d+(?=\s*\))"
)
#: What ends a command of the shell, so that words after it would belong to another one.
_ENDS = frozenset({"|", "||", "&", "&&", ";", "|&"})


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run has to be; all paths are absolute.

    Attributes:
        command: with its seed and flags.
        folder: where it is run: the trainer's folder in the arm's copy.
        top: of the user's own tree, and `copy` of the arm's: modules of the first are looked for in the second.
        result, log, progress: files that are written.
        environment: variables in addition to those that are there.
        devices: CUDA_VISIBLE_DEVICES of the run; left alone if empty.
        timeout: seconds; None without one.
        fingerprint: parts that are known beforehand (the hash of the data).
        watch: note which files of the trainer's folder are opened.
        shared: what is linked into the copy, which all runs can write to.
        since: when the folder was set up (seconds since the epoch): files that are older are no run's doing.
        fixed: the files that measure, as the copy has them.
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
    since: float = 0.0
    fixed: list[str] = []
    schema: int = SCHEMA


class LastValue(Struct, frozen=True):
    """Where the last value of the metric stands among what a run printed or wrote.

    Attributes:
        place: its `epoch` and `step`, or else how many `values` there are, as far as is known.
        span: by how much each of them may be too large, as the value's own line does not name it.
        is_late: whether it stands behind lines of later steps, as that of a checkpoint does.
        is_followed: whether steps that no line of a value names begin again behind it.
        row: the texts and flags of its row of JSON, by key, or by "" the words before it in a line; `other_rows`: what
            other rows of the same step, which have a value too, have there.
    """

    place: dict[str, float] = {}
    span: dict[str, float] = {}
    is_late: bool = False
    is_followed: bool = False
    row: dict[str, str] = {}
    other_rows: dict[str, list[str]] = {}


class Result(Struct, frozen=True, kw_only=True):
    """How a run ended.

    Attributes:
        text: the metric as the trainer wrote it.
        shifted: how many calls that set seeds were shifted, by function.
        memory_gb: the largest memory of a GPU, as torch counts it.
        borrowed: modules that came from the user's tree and not from the arm's copy.
        seeded: modules that were given a first seed; left_alone: modules whose own seeds cannot be shifted.
        opened: files of the trainer's folder that were opened, where that was requested; written: those for writing.
        touched: files of what is shared that were written, made or removed while the run ran.
        looked_at: how many files of what is shared were checked for that; `unseen`: there are others.
        tail: the last lines of the log.
        failed: its processes that failed and had written to its output, or may have, each as text; None if that
            is not known, as of what an older Plumbline made. `failed_beside`: those that count for nothing;
            `ended_at_once`: programs of it that seem to have ended well, by `os._exit(0)`.
        signs: of an end before its time, each as it was printed, by its kind.
        place, interval, last: how far it came (`run_end.LogEnd`); last_held_out: the same of the held-out metric.
        remarks: what else is to be reported of its end.
        printed_first: the first values that it printed (`first_values`); None of what an older Plumbline made, and of
            a run that is not finished.
        began: when its command was begun (seconds since the epoch); 0 of what an older Plumbline made.
        read_outside: file outside of its copy that it read -> when that was last written before; `written_outside`:
            those that it wrote; None where no Python of it reported them.
        readers: program -> the files of the copy that it read: those that measure, and so many others.
        changed_fixed: files that measure which changed while it ran; changed_records: records of Plumbline's own.
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
    ended_at_once: list[str] = []
    signs: dict[str, str] = {}
    place: dict[str, float] = {}
    interval: dict[str, float] = {}
    last: LastValue = LastValue()
    last_held_out: LastValue = LastValue()
    remarks: list[str] = []
    printed_first: list[str] | None = None
    began: float = 0.0
    read_outside: dict[str, float] | None = None
    written_outside: list[str] | None = None
    readers: dict[str, list[str]] = {}
    changed_fixed: list[str] = []
    changed_records: list[str] = []
    schema: int = SCHEMA


def read_result(path: Path) -> Result | None:
    """Read a result; None if there is none.

    Raises:
        PlumblineError: it is none, or of a later Plumbline.
    """
    content = read_json(path)
    if content is None:
        return None
    if isinstance(content, dict) and content.get("schema", SCHEMA) != SCHEMA:
        raise PlumblineError(f"{path} is of a later Plumbline; update this one")
    try:
        return msgspec.convert(content, Result)
    except msgspec.ValidationError as error:
        raise PlumblineError(f"{path} is no result of a run ({error}); delete it, and the run is made again") from None


def interruption_file(result: Path) -> Path:
    """The file next to a result that states why a run was not made, where that is no fault of its arm."""
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


def fill_command(command: str, way: str, seed: int, flags: Sequence[str]) -> str:
    """Fill in a command's flags and seed: where they are named, or else at its end.

    Raises:
        PlumblineError: it is not clear which of several commands they belong to.
    """
    arguments = [] if way == INJECT or way.startswith(ENVIRONMENT) else shlex.split(way.replace(SEED, str(seed)))
    if SEED in command:
        command, arguments = command.replace(SEED, str(seed)), []
    quoted = shlex.join([*arguments, *flags])
    if FLAGS in command:
        return command.replace(FLAGS, quoted)
    if quoted and _is_several(command):
        raise PlumblineError(
            f"run.command: {command!r} is more than one command; write {{flags}} where the flags and the seed go"
        )
    return f"{command} {quoted}".strip()


def seed_variables(way: str, seed: int) -> dict[str, str]:
    """The variables of the environment by which a run is given its seed."""
    if way == INJECT:
        return {SHIFT: str(seed)}
    return {way.removeprefix(ENVIRONMENT): str(seed)} if way.startswith(ENVIRONMENT) else {}


def only_a_seed(removed_lines: Sequence[str], added_lines: Sequence[str]) -> bool:
    """Whether changed lines (`-...`, `+...`) differ in nothing but the number in a call that `inject` shifts anyway."""
    texts = [[_CALL.sub(r"\1", line[1:]) for line in lines] for lines in (removed_lines, added_lines)]
    are_calls = all(
        line.startswith(sign) and _CALL.search(line)
        for sign, lines in (("-", removed_lines), ("+", added_lines))
        for line in lines
    )
    return bool(removed_lines) and are_calls and texts[0] == texts[1]


def _is_several(command: str) -> bool:
    """Whether a line of the shell holds more than one command."""
    if "\n" in command.strip():
        return True
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return any(word in _ENDS for word in lexer)
    except ValueError:
        return True

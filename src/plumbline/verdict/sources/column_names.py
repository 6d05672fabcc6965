"""Holds the words that columns' names are made of, by what such a column holds, and splits names into words.

A name alone decides little, since settings and metrics have many of these words too: readers examine the cells as well.
Names of several words have `_` between them here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from plumbline.verdict.evidence import CRASH, FINISHED, RUNNING
from plumbline.verdict.formatting import join_with_and, quote


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# How a run ended. A flag is a column of yes and no: end of its name -> what yes and no say of a run, "" for nothing.
LOSSES = _words("aborted crashed diverged errored failed interrupted killed oom preempted")
FLAGS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys((*LOSSES, "timed_out", "out_of_memory"), (CRASH, "")),
    **dict.fromkeys(("completed", "done", "finished"), (FINISHED, RUNNING)),
    **dict.fromkeys(("succeeded", "success", "successful", "ok"), (FINISHED, CRASH)),
}
#: Flags whose yes is a lost run, of names that settings and metrics have too.
UNSURE_FLAGS = _words("crash error failure nan timeout")
#: Exit codes and signals, and names of them that settings and measures have too.
EXIT_CODES = _words(
    "exit_code exitcode return_code returncode retcode rc exit_status exitstatus exit_value exitvalue exit_val exitval "
    "exit_signal exitsignal exit_sig term_signal termsignal termsig kill_signal killed_by_signal killed_by"
)
UNSURE_EXIT_CODES = _words("exit signal signum signo")
#: What a run failed with.
ERRORS = _words("error err exception traceback error_message error_msg errormessage error_type failure_reason failure")
#: The last word of a column of statuses, some other ending in `status`; and words before it that speak of a run.
STATUSES = _words("state jobstate runstate trialstate")
OF_A_RUN = _words("exit job process return run sys task trial")

#: What is a number of every run that went well.
LOSS_METRICS = _words("loss losses nll ppl perplexity bpb bpc norm")

# Steps, of which a name has one word; times; and what may stand with both: no `warmup_steps`, no `best_epoch`.
STEPS = _words(
    "step steps timestep timesteps epoch epochs ep iter iters iteration iterations it itr update updates round rounds "
    "checkpoint checkpoints ckpt snapshot token tokens sample samples example examples batches episode episodes "
    "generation generations frame frames"
)
TIMES = _words("time runtime walltime wallclock clock elapsed duration seconds secs sec minutes mins hours hrs")
_BESIDE_STEPS = _words(
    "global train trainer training optimizer opt eval val validation test current cur total seen processed consumed "
    "count number num nr idx index n m k b env environment wall run relative process s min h hr d ms"
)
#: What numbers runs, and not the steps of one.
RUN_NUMBERS = _words(
    "id ids run seed state rep repeat repetition replica replicate trial try attempt fold split index idx row rank "
    "number num nr no job task pid port host node gpu"
)

# What is evaluated on, and in what unit; how it was trained, or how often and in what portions evaluated, although
# words of the former are there; and cells that name a split under any name (`set`).
EVALUATED = _words(
    "split splits subset dataset datasets data corpus domain task tasks benchmark unit eval evals evaluation "
    "evaluated val valid validation test heldout valset testset evalset"
)
SETTINGS = _words("aug augment augmentation augmentations steps every interval freq frequency batch weight weights")
SPLITS = _words("train training val valid validation dev devel test testing heldout held_out")

#: What a run took: field of `plumbline.verdict.evidence.RunEvidence` -> names of it, each with the unit that it counts
#: in; the first that is there counts.
MEASURE_COLUMNS: Mapping[str, Mapping[str, float]] = {
    "seconds": {
        **dict.fromkeys(("training_seconds", "train_runtime", "wall_seconds", "total_seconds", "_runtime"), 1),
        **dict.fromkeys(("seconds", "elapsed_seconds", "duration_seconds", "elapsedraw"), 1),
    },
    "step": {"num_steps": 1, "steps": 1, "global_step": 1, "train_steps": 1, "_step": 1},
    "tokens": {"tokens": 1, "total_tokens": 1, "total_tokens_m": 1e6, "tokens_seen": 1, "train_tokens": 1},
    "parameters": {"num_params": 1, "num_params_m": 1e6, "num_parameters": 1, "n_params": 1, "parameters": 1},
    "memory_bytes": {
        **dict.fromkeys(("peak_vram_mb", "peak_memory_mb"), 2**20),
        **dict.fromkeys(("peak_vram_gb", "peak_memory_gb", "memory_gb"), 2**30),
        "peak_memory_bytes": 1,
    },
}
#: All of these names.
MEASURE_NAMES = frozenset(name for units in MEASURE_COLUMNS.values() for name in units)
#: How long a run took, where a unit stands behind the name (`runtime_min`), or in every cell (`61.5 s`).
DURATIONS = _words(
    "time runtime run_time elapsed elapsed_time duration walltime wall_time wallclock wall_clock wall_clock_time "
    "train_time training_time total_time"
)
#: Unit -> its seconds.
UNITS: Mapping[str, float] = {
    **dict.fromkeys(("ms", "msec", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
}
#: When a run began, or was written down; the first that is there counts.
MOMENTS = (
    *("started", "started_at", "start_time", "starttime", "datetime_start", "start"),
    *("created", "created_at", "createdat", "timestamp", "datetime", "date"),
)


def split_name(column: str) -> list[str]:
    """The words of a column's name, in lower case; a number at its end is of a column that was there twice."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", column)
    parts = [part.lower() for part in re.split(r"[^A-Za-z0-9]+", spaced) if part]
    while len(parts) > 1 and parts[-1].isdigit():
        parts.pop()
    return parts


def has_word(column: str, words: Collection[str]) -> bool:
    """Whether one of the words is in a column's name."""
    return any(part in words for part in split_name(column))


def find_ending(column: str, names: Iterable[str]) -> str:
    """Find the one of some names with which a column's ends; "" if there is none."""
    name = f"_{'_'.join(split_name(column))}"
    return next((each for each in names if name.endswith(f"_{each}")), "")


def names_steps(column: str, *, or_time: bool = False) -> bool:
    """Whether a name is that of steps, epochs, or what was read so far, in any case; `or_time`: or that of a time."""
    words = STEPS | TIMES if or_time else STEPS
    return has_word(column, words) and words | _BESIDE_STEPS >= {*split_name(column)}


def names_an_end(column: str) -> bool:
    """Whether a name speaks of how a run ended, whatever its cells are: also `diverged_at`, `n_failed_steps`."""
    return has_word(column, LOSSES) or bool(find_ending(column, (*FLAGS, "converged", *EXIT_CODES)))


def quote_columns(columns: Iterable[str]) -> str:
    """Name columns in a sentence."""
    return join_with_and([*map(quote, columns)])

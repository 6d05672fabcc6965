"""Compares the settings that runs print: over the runs of a record, and with those of the record before.

A setting that differs between runs is one whose name has a word of hyper-parameters. What else differs is named, and
no fault: what varies by itself between seeds has too many names to be known. What is expected to vary (the seed, times,
places, the machine) is counted, and values that look measured are named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from plumbline.core.files import format_path
from plumbline.core.formats import format_count
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.formatting import join_with_and, quote
from plumbline.verdict.sources.printed_settings import VALUES, find_size_unit, parse_amount, split_name

#: Differences that are shown with their values; names of those that are only counted.
SHOWN, NAMED = 2, 3
#: Words of names that vary between runs of one configuration, whatever the rules say: which run it is, when, where.
EXPECTED = frozenset(
    (
        *("seed", "seeds", "trial", "run", "runs", "attempt", "job", "id", "uuid", "guid", "pid", "ppid"),
        *("time", "times", "timestamp", "date", "datetime", "elapsed", "eta", "warning", "error"),
        *("host", "hostname", "node", "nodename", "nodelist", "ip", "addr", "address", "port", "url", "user", "wandb"),
        *("cwd", "path", "dir", "directory", "folder", "log", "logs", "logfile", "commit", "sha"),
        *("version", "driver", "cuda", "gpu", "gpus", "device"),
    )
)
#: Words of names that say how much is trained or evaluated, also beside `time` and `run`.
AMOUNTS = frozenset(("limit", "max", "budget", "epoch", "epochs", "steps", "iters", "iterations"))
_CHOSEN = """
    lr lrs learning wd decay beta betas eps epsilon momentum nesterov scale std coef coeff coefficient warmdown cooldown
    clip clipping softcap dropout qk
"""
#: Words of names of what is chosen, however many digits it has.
CHOSEN = frozenset(_CHOSEN.split())
#: Words of names of what a run begins from, and of what it is evaluated on: a place, too, is chosen there.
BEGUN_FROM, EVALUATED_ON = frozenset(("resume", "init", "pretrained")), frozenset(("val", "eval", "validation", "test"))
_MODEL_AND_TRAINING = """
    batch bsz warmup schedule scheduler optimizer optim adam adamw muon drop layer layers depth width dim dims hidden
    embd embed head heads kv ffn mlp mult expert experts topk act activation bias tie tied rope theta cap loop loops
    model params parameters context ctx seq seqlen sequence length block stride window sliding overlap lora alpha
    precision dtype bf16 fp16 fp8 amp quant quantization bits ema swa ttt tokens files shard shards dataset pattern
    vocab vocabulary tokenizer tokeniser bpe spm smoothing gain frac fraction ratio cutoff threshold code
"""
#: Words of names of hyper-parameters, of a model, its training, its data and its evaluation.
HYPERPARAMETERS = AMOUNTS | CHOSEN | BEGUN_FROM | frozenset(_MODEL_AND_TRAINING.split())
_MEASURED_OR_WRITTEN = """
    per sec second seconds ms avg mean loss bpb bpc ppl perplexity accuracy norm memory mem mfu throughput usage power
    cpu ram disk hash rng seed log logs logging save checkpoint ckpt output took elapsed eta done seen compression
    estimated expected measured actual serialized compressed dead clipped entropy sparsity
"""
#: Words that make a name none of hyper-parameters: what is measured of a run, or how it is written down.
NO_HYPERPARAMETER = frozenset(_MEASURED_OR_WRITTEN.split())
#: Names of how the work is divided over a machine.
DIVIDED = ("world_size", "grad_accum", "gradient_accumulation", "accumulation_steps", "nproc")
#: Words of names that are measured in training, where the number has three digits or more.
MEASURED = frozenset(
    (
        *("loss", "bpb", "bpc", "ppl", "perplexity", "accuracy", "norm"),
        *("memory", "mem", "mib", "gib", "mfu", "throughput", "usage"),
    )
)
#: Words of names of what makes tokens of a text; the share by which a number of them may differ for its rounding.
TOKENIZER, ROUNDED = frozenset(("vocab", "vocabulary", "tokenizer", "tokeniser", "bpe", "spm")), 0.01
_OWN = re.compile(r"seed[-_=]?\d{1,12}|\b\d{4}-\d\d-\d\d[T ]?[\d:.Z+-]{0,24}|\b[0-9a-f]{8}-[0-9a-f-]{20,40}\b")
_PATH = re.compile(r"(?:[.~]{0,2}/|[A-Za-z]:\\)\S*")
_WITH_UNIT = re.compile(
    r"-?\d{1,15}(?:\.\d{1,15})? ?(?:%|ns|us|ms|s|min|h|[KMGT]i?B|B|tok/s|it/s|/s|C|W|MHz|secs?|seconds|minutes)"
)
#: What a differing size is called.
MORE, FEWER = "more", "fewer"


@dataclass(kw_only=True)
class SettingsComparison:
    """What a comparison shows.

    Attributes:
        same: how many settings all print alike.
        sizes: differing sizes of an evaluation, as text; settings: differing settings, as text.
        aside: names that differ and are passed over, because they look measured or only some print them.
        others: names that differ, and are none of hyper-parameters; expected: how many that vary by themselves differ.
        other_size: the first of `sizes` with which two records cannot be compared; empty if there is none.
    """

    same: int = 0
    sizes: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    expected: int = 0
    other_size: str = ""


def may_differ(key: str, allowed_words: Sequence[str]) -> bool:
    """Whether a name has one of these words as words of its own: ``log`` in ``log-dir`` or ``logfile``, and not in
    ``logit_softcap``.
    """
    parts = split_name(key)
    return any(_has_words(parts, split_name(word)) for word in allowed_words)


def _has_words(parts: Sequence[str], name: Sequence[str]) -> bool:
    if any(list(parts[place : place + len(name)]) == list(name) for place in range(len(parts))):
        return True
    if len(name) != 1:
        return "".join(name) in parts
    ends = ("file", "files", "path", "dir", "name", "id", "stamp", "time", "wall", "date")
    return any(part in (f"{name[0]}{end}", f"{end}{name[0]}") for part in parts for end in ends)


def compare_runs(
    runs: Sequence[RunEvidence], allowed_words: Sequence[str], root: Path, without: Collection[str] = ()
) -> SettingsComparison:
    """Compare the runs of a record.

    Args:
        allowed_words: a setting with one of them in its name may differ.
        root: the folder below which files are named.
        without: settings that are compared elsewhere; they count among those that are the same.
    """
    comparison = SettingsComparison()
    if len(runs) < 2:
        comparison.same = len(runs[0].settings or {}) if runs else 0
        return comparison
    for key in _list_names(runs, lambda run: run.evaluation or {}):
        values = [(run.evaluation or {}).get(key, []) for run in runs]
        if not may_differ(key, allowed_words) and _do_differ([each for each in values if each]):
            comparison.sizes.append(_describe_other_size(key, runs, values, root))
    for key in _list_names(runs, lambda run: run.settings or {}):
        values = [(run.settings or {}).get(key, []) for run in runs]
        if not _do_differ(values):
            comparison.same += 1
            if EVALUATED_ON & {*split_name(key)} and len({_last_folders(each) for each in values}) > 1:
                comparison.others.append(key)
        elif key not in without:
            if is_expected(key, values, allowed_words):
                comparison.expected += 1
            elif _is_no_setting(key, values):
                comparison.aside.append(key)
            elif not is_hyperparameter(key) or _is_commit_or_host(key, values):
                comparison.others.append(key)
            else:
                shares = Counter(", ".join(each) for each in values)
                comparison.settings.append(
                    f"{quote(key)} is {join_with_and([quote(value[:30]) for value in list(shares)[:3]])}"
                )
    return comparison


def compare_with_earlier(
    runs: Sequence[RunEvidence], earlier_runs: Sequence[RunEvidence], allowed_words: Sequence[str]
) -> SettingsComparison:
    """Compare the first run of a record with the first of the record before: each stands for its record.

    Another tokenizer makes another number of tokens of the same text, and the length of a sequence rounds it: neither
    keeps two records from being compared.
    """
    comparison = SettingsComparison()
    if not runs or not earlier_runs:
        return comparison
    ours, theirs = (side[0].settings or {} for side in (runs, earlier_runs))
    sizes, their_sizes = (side[0].evaluation or {} for side in (runs, earlier_runs))
    shared_keys = [key for key in ours if key in theirs]
    retokenized = any(TOKENIZER & {*split_name(key)} and _do_differ([ours[key], theirs[key]]) for key in shared_keys)
    for key in sizes.keys() & their_sizes.keys():
        values = sizes[key], their_sizes[key]
        if not _do_differ(values):
            continue
        comparison.sizes.append(f"{_more_or_fewer(*values)} {_name_unit(key)}: {quote(key)} is {_quote_both(*values)}")
        amounts = [parse_amount(each[-1]) or 0.0 for each in values]
        if not retokenized and max(amounts) - min(amounts) > ROUNDED * max(amounts):
            comparison.other_size = comparison.other_size or comparison.sizes[-1]
    for key in shared_keys:
        values = ours[key], theirs[key]
        if not _do_differ(values):
            comparison.same += 1
        elif not is_expected(key, values, allowed_words) and not _is_no_setting(key, values):
            comparison.settings.append(f"{quote(key)} is {_quote_both(*values)}")
    return comparison


def _list_names(
    runs: Sequence[RunEvidence], settings_of: Callable[[RunEvidence], Mapping[str, Sequence[str]]]
) -> list[str]:
    """The names that any run prints; one with many values is the course of a run, and none of them."""
    many = {key for run in runs for key, values in settings_of(run).items() if len(values) > VALUES}
    return [key for key in dict.fromkeys(key for run in runs for key in settings_of(run)) if key not in many]


def _do_differ(values: Sequence[Sequence[str]]) -> bool:
    return len({tuple(map(normalize_value, each)) for each in values}) > 1


def normalize_value(value: str) -> float | str:
    """A value as it is compared: without its run's seed, date, unique name or folder, and a number as what it is."""
    value = _OWN.sub("", value)
    if _PATH.fullmatch(value):
        value = PurePosixPath(value.replace("\\", "/")).name
    number = parse_amount(value)
    return value if number is None else number


def is_expected(key: str, values: Sequence[Sequence[str]], allowed_words: Sequence[str]) -> bool:
    """Whether a setting may differ, by its name; ``drop_path=0.1`` is not a place."""
    parts = {*split_name(key)}
    if "path" in parts and all(parse_amount(value) is not None for each in values for value in each):
        return False
    if is_hyperparameter(key) and not AMOUNTS.isdisjoint(parts):
        # By what the rules state of times and runs, as times are measured and runs are named; these are chosen.
        return may_differ(key, [word for word in allowed_words if word not in ("time", "run")])
    if not (TOKENIZER | BEGUN_FROM).isdisjoint(parts) and "path" in parts:
        return False
    return may_differ(key, allowed_words) or not EXPECTED.isdisjoint(parts)


def is_measured_or_name(key: str) -> bool:
    """Whether a name, even in a list of hyper-parameters, is of what is measured, or tells a run from others."""
    return not is_hyperparameter(key) and not (NO_HYPERPARAMETER | {"name", "tag"}).isdisjoint(split_name(key))


def is_hyperparameter(key: str) -> bool:
    """Whether a name has a word of hyper-parameters, and none of what is measured: ``init-scale``, not ``init-loss``;
    what is chosen of a measured one is (``z_loss_coef``).
    """
    parts = {*split_name(key), *re.findall(r"[a-z]+\d+", key.lower())}
    if parts & {"rng", "seed", "hash", "per", "sec", "ms"}:
        return False
    if "rank" in parts and parts & {"local", "global", "node", "world"}:
        return False
    if {"loss", "scale"} <= parts:  # of mixed precision, which moves by itself
        return False
    is_named = not HYPERPARAMETERS.isdisjoint(parts) and NO_HYPERPARAMETER.isdisjoint(parts)
    return is_named or bool(parts & CHOSEN) or {"z", "loss"} <= parts


def _is_no_setting(key: str, values: Sequence[Sequence[str]]) -> bool:
    """Whether differing values are no setting: what only some print, what looks measured or is how a machine is used.

    Measured are numbers with a unit, or with more digits than are chosen for such a name, and words that change within
    a run.
    """
    if not all(values) or may_differ(key, DIVIDED):
        return True
    chosen_digits = 2 if (MEASURED | {"epochs", "ratio"}) & {*split_name(key)} else 4
    all_values = [value for each in values for value in each]
    parts = {*split_name(key)}
    if is_hyperparameter(key) and parts & (CHOSEN | {"limit", "max", "budget", "tokens"}):
        return False
    if all(_WITH_UNIT.fullmatch(value) or _count_digits(value) > chosen_digits for value in all_values):
        return True
    return any(len(each) > 1 for each in values) and all(parse_amount(value) is None for value in all_values)


def _is_commit_or_host(key: str, values: Sequence[Sequence[str]]) -> bool:
    """Whether ``HEAD: 3f2a91c`` or ``head: node17`` is printed, and no number of heads."""
    return split_name(key) == ["head"] and all(parse_amount(value) is None for each in values for value in each)


def _last_folders(values: Sequence[str]) -> tuple[str, ...]:
    """The last folder of each path among the values."""
    return tuple(PurePosixPath(value.replace("\\", "/")).parent.name for value in values if _PATH.fullmatch(value))


def _count_digits(value: str) -> int:
    """The significant digits of a number; 0 of a whole one below 1,000, and of other words."""
    number = parse_amount(value)
    if number is None or (number == round(number, 0) and abs(number) < 1000):
        return 0
    # Whole numbers are chosen, however long: steps, tokens.
    digits = re.sub(r"[eE].*|\D", "", value).strip("0")
    return min(len(digits), 4) if "." not in value else len(digits)


def _describe_other_size(key: str, runs: Sequence[RunEvidence], values: Sequence[Sequence[str]], root: Path) -> str:
    """Which run was evaluated on another number of something than most, and on how many."""
    shares = Counter(tuple(map(normalize_value, each)) for each in values if each)
    # The size of most runs; of several, the larger.
    usual = max(shares, key=lambda each: (shares[each], [number for number in each if isinstance(number, float)]))
    usual_values = next(each for each in values if tuple(map(normalize_value, each)) == usual)
    place = next(place for place, each in enumerate(values) if each and tuple(map(normalize_value, each)) != usual)
    other_count = sum(bool(each) and tuple(map(normalize_value, each)) != usual for each in values) - 1
    run = runs[place]
    who = (
        f"seed {run.seed}"
        if run.seed
        else f"{quote(format_path(run.file or '', root))}{f', run {run.place + 1},' if run.place else ''}"
    )
    tail = f" (and {format_count(other_count, 'further run')} on another number than most)" if other_count else ""
    return (
        f"{who} was evaluated on {_more_or_fewer(values[place], usual_values)} {_name_unit(key)}: {quote(key)} is "
        f"{quote(', '.join(values[place]))} there and {quote(', '.join(usual_values))} in {shares[usual]} of "
        f"{len(runs)} runs{tail}"
    )


def _more_or_fewer(ours_printed: Sequence[str], theirs_printed: Sequence[str]) -> str:
    ours, theirs = parse_amount(ours_printed[-1]), parse_amount(theirs_printed[-1])
    if len(ours_printed) != len(theirs_printed) or ours is None or theirs is None or ours == theirs:
        return "another number of"
    return FEWER if ours < theirs else MORE


def _name_unit(key: str) -> str:
    unit = find_size_unit(key, "evaluation")
    return {"iters": "iterations", "docs": "documents", "seqs": "sequences", "token": "tokens"}.get(unit, unit)


def _quote_both(ours: Sequence[str], theirs: Sequence[str]) -> str:
    return f"{quote(', '.join(ours)[:40])}, there {quote(', '.join(theirs)[:40])}"

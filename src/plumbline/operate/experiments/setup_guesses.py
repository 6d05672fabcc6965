"""Guesses how a trainer is to be run: where a first run prints its metric, how it takes its seed, what it missed.

What is guessed is written into `plumbline.toml` and printed; nothing is guessed again afterwards.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.verdict.own_trainer.metric import METRIC_LINE, backwards, read_row, read_whole_file
from plumbline.verdict.own_trainer.requests import LastValue
from plumbline.verdict.own_trainer.run_budget import ENVIRONMENT
from plumbline.verdict.own_trainer.trainer_file import INJECT, MetricPart

#: Names of metrics, the likeliest to decide first; a blank stands for a blank or an underline.
KNOWN = (
    *("val bpb", "validation bpb", "val loss", "validation loss", "valid loss", "eval loss", "test loss", "val ppl"),
    "val perplexity",
    *("val accuracy", "val acc", "validation accuracy", "eval accuracy", "test accuracy", "test acc"),
    *("val", "valid", "validation", "test", "accuracy"),
    *("bpb", "perplexity", "ppl", "score", "reward", "loss", "train loss"),
)
#: Those that a fraction alone follows where a metric is meant: "test 3 of 7" and "validation 10/100" are none.
BARE = ("val", "valid", "validation", "test")
#: Those that may be of the training data itself.
OF_TRAINING = ("loss", "train loss")
#: Words of names of which more is better.
HIGHER = (
    *("acc", "accuracy", "f1", "auc", "bleu", "rouge", "rougel", "score", "reward", "return", "mfu", "iou", "miou"),
    *("r2", "psnr", "ssim", "map", "precision", "recall", "match", "em", "top1", "top5", "pass", "spearman", "tokens"),
)
#: What `inject` does with a seed that the code fixes.
SHIFTED = "which is shifted without an edit, so that no run repeats the number you know"
#: Before a metric's name: its value is the best so far, and not the last; not so where a number of its own follows.
BEST = re.compile(r"\b(?:best|lowest|highest)\b(?!\W*\d)", re.IGNORECASE)
#: Words that say so right before a name, or one word before it; elsewhere they mean minutes, memory, a limit.
QUALIFIER = re.compile(
    r"(?<![\w.])(?:best|lowest|highest|smallest|largest|(?<!\d )min|minim(?:um|al)|max(?:im(?:um|al))?|peak|record)"
    r"\b[\s:!)\]_-]+(?:[A-Za-z]+[\s_/-]+)?$",
    re.IGNORECASE,
)
# Behind a number, where no number follows that it could be about.
_MARK = re.compile(r"\b(?:best|lowest|highest)\b(?![^|,;()]*\d)", re.IGNORECASE)
# What tells a name from the same one of another metric: its qualifier, or else the word before it.
_BESIDE = re.compile(rf"{QUALIFIER.pattern}|[A-Za-z]+[\s_/:-]+$", re.IGNORECASE)
#: Lines from a log's end in which a metric is looked for, and bytes of a script that are read.
LINES, MOST = 2000, 2**20
#: Lines by which another metric was printed later than one that is of an earlier step.
EARLY = 10
_NUMBER = r"[-+]?(?:\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?(?:,\d[\d.,]*)?|\.\d+|nan|inf(?:inity)?)"
_FRACTION = r"[-+]?(?:\d*\.\d+(?:[eE][-+]?\d+)?(?!\s?%)|nan|inf(?:inity)?)"


@dataclass(frozen=True, kw_only=True)
class SeenMetric:
    """A metric that a first run printed or wrote.

    Attributes:
        settings: the lines of [metric] that read it.
        text: its last value; `line` the last line that has it, `row` the number of that line; None: it is in a file.
    """

    name: str
    settings: dict[str, str]
    text: str
    line: str = ""
    row: int | None = None

    @property
    def is_marked_metric(self) -> bool:
        """Whether the trainer marked it as a metric: in a line `METRIC name=value`, which needs only the name."""
        return self.settings.keys() == {"name"}

    @property
    def direction(self) -> str:
        """Whether lower or higher is better, by the parts of its name."""
        parts = re.split(r"[^a-z0-9]+", self.name.lower())
        return "higher" if any(word in HIGHER for word in parts) else "lower"


def metrics(log: Path, folder: Path) -> list[SeenMetric]:
    """List a run's metrics, the likeliest first: `METRIC` lines, known names in its log, rows of JSON."""
    lines = list(islice(backwards(log), LINES))[::-1]
    by_name = {metric.name: metric for metric in (*_in_rows(folder), *_in_lines(lines), *_find_announced(lines))}
    return sorted(
        by_name.values(),
        key=lambda metric: (not metric.is_marked_metric, _rank(metric.name), metric.name.startswith("best_")),
    )


def only_of_training(candidates: list[SeenMetric]) -> str:
    """State that nothing but a training loss was seen, where that is so."""
    if not candidates or any(
        metric.is_marked_metric or _simplify_name(metric.name) not in OF_TRAINING for metric in candidates
    ):
        return ""
    kind = (
        "a training loss"
        if any(_simplify_name(metric.name) == "train loss" for metric in candidates)
        else "what may be a training loss"
    )
    return f"only {kind} was seen: a change that overfits would be kept; name another with --metric"


def describe_early(metric: SeenMetric, candidates: list[SeenMetric]) -> str:
    """State that a metric was last printed long before another one, where that is so: it may be of no trained model."""
    last = max((each for each in candidates if each.row is not None), key=lambda each: each.row or 0, default=None)
    if metric.row is None or last is None or last.row is None or last.row - metric.row < EARLY:
        return ""
    return (
        f"{last.name} was printed up to {last.row - metric.row} lines later: this is the value of an earlier step, or "
        f"of the untrained model; have the trainer print it at the end, or take --metric {last.name}"
    )


def list_kinds_of_rows(part: MetricPart, last: LastValue) -> list[str]:
    """State that a metric stands in rows of several kinds, of which the last counts, and what reads one kind alone."""
    file, _, key = part.json.rpartition(":")
    key = key.rpartition(".")[2] or part.called
    where, instead = (f'file = "{file}" and ', " in place of json") if file else ("", "")
    remarks = []
    for name, texts in last.other_rows.items():
        kind, kinds = last.row[name], ", ".join(map(repr, texts))
        if not name:
            remarks.append(
                f"{key} stands in lines {kind!r} and {kinds}: the last of all counts; to read one kind alone, write a "
                "pattern under [metric] that begins with its words"
            )
            continue
        key_form, kind_form = (rf'"{re.escape(each)}"\s*:\s*' for each in (key, name.rpartition(".")[2]))
        quoted = rf"{kind}\b" if kind in ("true", "false") or kind.isdigit() else f'"{re.escape(kind)}"'
        remarks.append(
            f"{key} stands in rows of {name} {kind!r} and of {kinds}: the last of all counts; to read {kind!r} alone, "
            f"""write {where}pattern = '^(?=.*{kind_form}{quoted}).*{key_form}([^,}}]+)' under [metric]{instead}"""
        )
    return remarks


def _rank(name: str) -> int:
    plain = _simplify_name(name)
    return KNOWN.index(plain) if plain in KNOWN else len(KNOWN)


def _simplify_name(name: str) -> str:
    return re.sub(r"[_/.-]+", " ", name.lower()).removeprefix("best ")


def _find_announced(lines: list[str]) -> list[SeenMetric]:
    matches = {match[1]: (row, match) for row, line in enumerate(lines) if (match := METRIC_LINE.match(line))}
    return [
        SeenMetric(name=name, settings={"name": name}, text=match[2], line=match.string, row=row)
        for name, (row, match) in matches.items()
    ]


def _in_lines(lines: list[str]) -> list[SeenMetric]:
    """Known names with a number after them: at the begin of a line, or within one; the last value, and the best one
    where something next to the name marks it. A number belongs to the first of the known names that it follows.
    """
    candidates: list[SeenMetric] = []
    spans: set[tuple[int, int]] = set()
    for form in KNOWN:
        first, *rest = form.split()
        spelled = re.escape(first) + "".join(f"[ _/]{re.escape(word)}" for word in rest)
        separator = r"([\"']?\s*[:=]?\s*[\"']?)"
        number = _FRACTION if form in BARE else _NUMBER
        regex = re.compile(rf"(?<![\w/])(?<!train )({spelled}){separator}({number})(?![\w.])", re.IGNORECASE)
        places = [place for row, line in enumerate(lines) for place in _find_places(regex, row, line)]
        places = [each for each in places if each.at not in spans]
        spans |= {each.at for each in places}
        ordinary = {each.shape for each in places if not each.is_best}
        best = [each for each in places if each.is_best and not (each.is_marked and each.shape in ordinary)]
        last = [each for each in places if each not in best]
        for prefix, chosen in (("", last), ("best_", best)):
            if pattern := _make_pattern(chosen, lines, best=bool(prefix)) if chosen else "":
                match = chosen[-1].match
                plain = prefix + re.sub(r"[ /]", "_", match[1])
                setting = {"pattern": pattern} | ({"name": plain} if plain != match[1] else {})
                line, row = match.string.strip(), chosen[-1].row
                candidates.append(SeenMetric(name=plain, settings=setting, text=match[3], line=line, row=row))
    return candidates


@dataclass(frozen=True)
class _Place:
    """Where a line contains a metric, by a match of its name, what is between, and its number.

    Attributes:
        qualifier: the words before the name that make it a best value ("Minimum validation "); mostly empty.
        is_marked: text behind the number marks it as the best.
    """

    row: int
    match: re.Match[str]
    qualifier: str
    is_best: bool
    is_marked: bool

    @property
    def at(self) -> tuple[int, int]:
        """The line and where its number begins."""
        return self.row, self.match.start(3)

    @property
    def shape(self) -> str:
        """The line up to the name, whatever its numbers are: one form of line has the last value and marks some."""
        return re.sub(r"[\d.]+", "0", self.match.string[: self.match.start()])


def _find_places(regex: re.Pattern[str], row: int, line: str) -> list[_Place]:
    matches = list(regex.finditer(line))
    places = []
    for previous_match, match in zip([None, *matches], matches):
        text = line[previous_match.end() if previous_match else 0 : match.start()]
        qualifier = QUALIFIER.search(text)
        is_marked = bool(_MARK.search(line[match.end() :]))
        is_best = bool(qualifier or BEST.search(text) or is_marked)
        places.append(_Place(row, match, qualifier[0] if qualifier else "", is_best, is_best and is_marked))
    return places


def _make_pattern(chosen: list[_Place], lines: list[str], *, best: bool) -> str:
    """A pattern that reads these places of the lines, and no others that look like them; empty if none does."""
    match = chosen[-1].match
    name, separator, _ = match.groups()
    number = r"(\S+)" if match.string[match.end() :][:1] in ("", " ", ",") else r"([-+.\w]+)"
    spaces = r"\s*" if separator.strip() else r"\s+"
    pattern = name + spaces.join(re.split(r"\s+", separator)) + number
    plain = ("^" if not match.start() else r"\b") + pattern
    own_places = {each.at for each in chosen}
    prefixes = [
        hit[0]
        for row, line in enumerate(lines)
        for each in re.finditer(plain, line)
        if (row, each.start(1)) not in own_places and (hit := _BESIDE.search(line[: each.start()]))
    ]
    lookbehinds = "".join(f"(?<!{_escape(text)})" for text in dict.fromkeys(prefixes))
    linewise = rf"^(?{'=' if best else '!'}.*\b(?i:best|lowest|highest)\b).*\b{pattern}"
    if best:
        forms = [plain, *([rf"\b{_escape(chosen[-1].qualifier)}{pattern}"] if chosen[-1].qualifier else []), linewise]
    else:
        forms = [plain, rf"(?<![\w/]){lookbehinds}{pattern}", linewise]
    return next((form for form in forms if _reads_only(form, own_places, lines)), "")


def _reads_only(pattern: str, own_places: set[tuple[int, int]], lines: list[str]) -> bool:
    """Whether a pattern, which counts by its last match, reads the last of these places, and nowhere another number."""
    hits = [(row, each[-1]) for row, line in enumerate(lines) if (each := [*re.finditer(pattern, line)])]
    places = [(row, each.start(1)) for row, each in hits]
    texts = [each[1] for (_, each), place in zip(hits, places) if place not in own_places]
    return places[-1:] == [max(own_places)] and not any(re.fullmatch(_NUMBER, text, re.IGNORECASE) for text in texts)


def _escape(text: str) -> str:
    return re.escape(text).replace(r"\ ", " ")


def _in_rows(folder: Path) -> list[SeenMetric]:
    """Known names in files of JSON that the run wrote: in rows, or one object."""
    candidates = []
    files = [path for pattern in ("*.jsonl", "*.json", "*/*.jsonl") for path in folder.glob(pattern)]
    for path in sorted(path for path in files if path.is_file() and not path.is_symlink()):
        for row in read_whole_file(path) or map(read_row, backwards(path, MOST)):
            if isinstance(row, dict):
                file = path.relative_to(folder).as_posix()
                for key, value in row.items():
                    if _rank(key) < len(KNOWN) and (text := _format_number(value, bare=key.lower() in BARE)):
                        setting = {"json": f"{file}:{key}"}
                        candidates.append(
                            SeenMetric(name=key, settings=setting, text=text, line=f"{file}: {json.dumps(row)}")
                        )
                break
    return candidates


def _format_number(value: object, *, bare: bool) -> str:
    """A number of JSON, in quotes or not, as text; empty if it is none, or none that a `BARE` name can mean."""
    if isinstance(value, str):
        return value if re.fullmatch(_FRACTION if bare else _NUMBER, value, re.IGNORECASE) else ""
    kind = float if bare else int | float
    return f"{value:g}" if isinstance(value, kind) and not isinstance(value, bool) else ""


def script(command: str, folder: Path) -> Path | None:
    """The script that a command runs; None if it names none that is in the folder."""
    try:
        parts = shlex.split(command)
    except ValueError:
        return None
    for previous_word, word in zip(["", *parts], parts):
        path = folder / (f"{word.replace('.', '/')}.py" if previous_word == "-m" else word)
        if path.suffix in (".py", ".sh") and path.is_file():
            return path
    return None


def seed(path: Path | None) -> tuple[str, str]:
    """How a script takes its seed (`run.seed`), and by what that was seen."""
    if path is None:
        return INJECT, "the command names no script that could be read"
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read(MOST)
    if option := re.search(r"""["'](--(?:random[-_]|rng[-_])?seed)["']""", text):
        return f"{option[1]} {{seed}}", f"{path.name} has the option {option[1]}"
    if re.search(r"""DEFINE_integer\(\s*["']seed["']""", text):
        return "--seed {seed}", f"{path.name} defines the flag seed"
    if variable := re.search(r"""(?:environ(?:\.get\(|\[)|getenv\()\s*["'](\w*SEED\w*)["']""", text):
        return f"{ENVIRONMENT}{variable[1]}", f"{path.name} reads {variable[1]} from the environment"
    if fixed := re.search(
        # A generator of the script's own (rng.manual_seed) is left alone.
        r"(?<![\w.])(?:(?:torch\.(?:\w+\.)*)?manual_seed(?:_all)?"
        r"|(?:\w+\.)*(?:(?<=random\.)seed|default_rng|set_seed|seed_everything))\([^)\n]*\)",
        text,
    ):
        return INJECT, f"{path.name} fixes its seed ({fixed[0]}), {SHIFTED}"
    return INJECT, f"{path.name} sets no seed that was seen"


def require_python_path(command: str) -> None:
    """Refuse a command that sets PYTHONPATH to what does not go on with $PYTHONPATH.

    No Python process of a run would load what shifts its seed and reports how it ends.

    Raises:
        PlumblineError: with the command's part, and how it is written.
    """
    for part, value in re.findall(r"""(?<![\w$])(PYTHONPATH=("[^"]*"|'[^']*'|[^\s;&|]*))""", command):
        if "PYTHONPATH" not in value or value.startswith("'"):
            bare = value.strip("\"'")
            raise PlumblineError(
                f"the command sets {part}, which hides how its processes end and what they are seeded with; write "
                f'PYTHONPATH="{f"{bare}:" if bare else ""}$PYTHONPATH"'
            )


def find_missed(log_lines: list[str], folder: Path, ignored: list[str]) -> list[str]:
    """What git ignores and a failed run missed, by the paths that its log names: with what lies next to it."""
    parts = [word for line in log_lines for word in re.split(r"""[\s"'(),;:=\[\]]+""", line) if word]
    names = {name for name in ignored if any(_has_parts(Path(word).parts, Path(name).parts) for word in parts)}
    parents = {Path(name).parent for name in names if not (folder / name).is_dir()}
    names |= {name for name in ignored if Path(name).parent in parents and not (folder / name).is_dir()}
    return sorted(name.rstrip("/") for name in names)


def _has_parts(path: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    return any(path[at : at + len(parts)] == parts for at in range(len(path)))

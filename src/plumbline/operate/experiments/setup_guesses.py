"""Guesses how a trainer is to be run: where a first run says its metric, how it takes its seed, what it missed.

What is guessed is written into `plumbline.toml` and said; nothing is guessed again afterwards.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from plumbline.own_trainer.metric import METRIC_LINE, backwards, whole
from plumbline.own_trainer.trainer_file import ENVIRONMENT, INJECT

#: Names of metrics, the likeliest to decide first; a blank stands for a blank or an underline.
KNOWN = (
    *("val bpb", "val loss", "validation loss", "valid loss", "eval loss", "test loss", "val ppl", "val perplexity"),
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
#: A line that says the best value so far, and not the last.
BEST = re.compile(r"\b(?:best|lowest|highest)\b", re.IGNORECASE)
#: Lines from a log's end in which a metric is looked for, and bytes of a script that are read.
LINES, MOST = 2000, 2**20
_NUMBER = r"[-+]?(?:\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf)"
_FRACTION = r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?(?!\s?%)"


@dataclass(frozen=True, kw_only=True)
class SeenMetric:
    """A metric that a first run said.

    Attributes:
        said: the lines of [metric] that read it.
        text: its last value; `line` the last line that has it.
    """

    name: str
    said: dict[str, str]
    text: str
    line: str = ""

    @property
    def announced(self) -> bool:
        """Whether the trainer said it as a metric: in a line `METRIC name=value`, which needs no more than the name."""
        return self.said.keys() == {"name"}

    @property
    def direction(self) -> str:
        """Whether lower or higher is better, by the words of the name."""
        words = re.split(r"[^a-z0-9]+", self.name.lower())
        return "higher" if any(word in HIGHER for word in words) else "lower"


def metrics(log: Path, folder: Path) -> list[SeenMetric]:
    """List the metrics that a run said, the likeliest first: `METRIC` lines, known names in its log, rows of JSON."""
    lines = []
    for line in backwards(log):
        lines.append(line)
        if len(lines) == LINES:
            break
    lines.reverse()
    found = {one.name: one for one in (*_rows(folder), *_in_lines(lines), *_announced(lines))}
    return sorted(found.values(), key=lambda one: (not one.announced, _rank(one.name), one.name.startswith("best_")))


def only_of_training(seen: list[SeenMetric]) -> str:
    """Say that nothing but a training loss was seen, where that is so."""
    if not seen or any(one.announced or _plain(one.name) not in OF_TRAINING for one in seen):
        return ""
    what = "a training loss" if any(_plain(one.name) == "train loss" for one in seen) else "what may be a training loss"
    return f"only {what} was seen: a change that overfits would be kept; name another with --metric"


def _rank(name: str) -> int:
    plain = _plain(name)
    return KNOWN.index(plain) if plain in KNOWN else len(KNOWN)


def _plain(name: str) -> str:
    return re.sub(r"[_/.-]+", " ", name.lower()).removeprefix("best ")


def _announced(lines: list[str]) -> list[SeenMetric]:
    found = {}
    for line in lines:
        if match := METRIC_LINE.match(line):
            found[match[1]] = SeenMetric(name=match[1], said={"name": match[1]}, text=match[2], line=line)
    return list(found.values())


def _in_lines(lines: list[str]) -> list[SeenMetric]:
    """Known names with a number after them: at the begin of a line, or within one; the last value, and the best one
    where lines of their own say it.
    """
    found = []
    for known in KNOWN:
        first, *rest = known.split()
        spelled = re.escape(first) + "".join(f"[ _/]{re.escape(word)}" for word in rest)
        after = r"([\"']?\s*[:=]?\s*)"
        number = _FRACTION if known in BARE else _NUMBER
        within = re.compile(rf"(?<![\w/])(?<!train )({spelled}){after}({number})(?![\w.])", re.IGNORECASE)
        at = [match for line in lines if (match := within.search(line))]
        best = [match for match in at if BEST.search(match.string)]
        last = [match for match in at if match not in best]
        for prefix, chosen, other in (("", last, best), ("best_", best, last)):
            if not chosen:
                continue
            name, between, text = chosen[-1].groups()
            start = "^" if not chosen[-1].start() else r"\b"
            number = r"(\S+)" if chosen[-1].string[chosen[-1].end() :][:1] in ("", " ", ",") else r"([-+.\w]+)"
            spaces = r"\s*" if between.strip() else r"\s+"
            pattern = start + name + spaces.join(re.split(r"\s+", between)) + number
            if any(re.search(pattern, match.string) for match in other):  # lines of both kinds are told apart
                only = "=" if prefix else "!"
                pattern = rf"^(?{only}.*\b(?i:best|lowest|highest)\b).*" + pattern.replace("^", r"\b", 1)
            plain = prefix + re.sub(r"[ /]", "_", name)
            said = {"pattern": pattern} | ({"name": plain} if plain != name else {})
            found.append(SeenMetric(name=plain, said=said, text=text, line=chosen[-1].string.strip()))
    return found


def _rows(folder: Path) -> list[SeenMetric]:
    """Known names in files of JSON that the run wrote: in rows, or one object."""
    found = []
    files = [path for pattern in ("*.jsonl", "*.json", "*/*.jsonl") for path in folder.glob(pattern)]
    for path in sorted(path for path in files if path.is_file() and not path.is_symlink()):
        for row in whole(path) or map(_row, backwards(path, MOST)):
            if isinstance(row, dict):
                file = path.relative_to(folder).as_posix()
                for key, value in row.items():
                    kind = float if key.lower() in BARE else int | float
                    number = isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
                    if number and _rank(key) < len(KNOWN):
                        said = {"json": f"{file}:{key}"}
                        found.append(
                            SeenMetric(name=key, said=said, text=f"{value:g}", line=f"{file}: {json.dumps(row)}")
                        )
                break
    return found


def _row(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def script(command: str, folder: Path) -> Path | None:
    """The script that a command runs; None where it names none that is in the folder."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    for before, word in zip(["", *words], words):
        named = folder / (f"{word.replace('.', '/')}.py" if before == "-m" else word)
        if named.suffix in (".py", ".sh") and named.is_file():
            return named
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
        r"(?:\w+\.)*(?:manual_seed(?:_all)?|(?<=random\.)seed|default_rng|set_seed|seed_everything)\([^)\n]*\)", text
    ):
        return INJECT, f"{path.name} fixes its seed ({fixed[0]}), {SHIFTED}"
    return INJECT, f"{path.name} sets no seed that was seen"


def missed(log_lines: list[str], folder: Path, ignored: list[str]) -> list[str]:
    """What git ignores and a failed run missed, by the paths that its log names: with what lies beside it."""
    words = [word for line in log_lines for word in re.split(r"""[\s"'(),;:=\[\]]+""", line) if word]
    found = set()
    for word in words:
        parts = Path(word).parts
        for one in ignored:
            own = Path(one).parts
            if any(parts[at : at + len(own)] == own for at in range(len(parts))):
                found.add(one)
    beside = {Path(one).parent for one in found if not (folder / one).is_dir()}
    found |= {one for one in ignored if Path(one).parent in beside and not (folder / one).is_dir()}
    return sorted(one.rstrip("/") for one in found)

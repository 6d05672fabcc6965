"""Tokenising and packing next to the bare `tokenizers` library's encode_batch of the same text; documents by several
processes; a tokenizer's training next to other libraries'.

    python benchmarks/tokenize_pack.py                   # of made-up words; writes benchmarks/tokenize_pack.md
    python benchmarks/tokenize_pack.py --documents work/demo/corpora/climbmix/documents/train.jsonl  # the demo's too
    python benchmarks/tokenize_pack.py --peers PYTHON    # with rustbpe, bpeasy and sentencepiece; trains beside them

Made-up words in the frequencies of English prose (Zipf's law, with an exponent of 1) with punctuation, `--text-
megabytes` of them, and a byte-level BPE of 4,096 entries trained on their beginning; `--documents FILE.jsonl` measures
other texts as well, all of them and their first two thirds. The library encodes all texts in one call on all cores.
Ours is what the workflow does: a process for each shard, as many as there are cores, then one that packs. All start
anew each time, and take turns. CPU seconds, which what else the machine does changes little, are of all processes and
threads; ours hold the interpreters' starts, reading, writing and checksums.

Documents are those of a folder of one's own: the made-up ones, several times with other ids. A tokenizer is trained on
`--documents`, or on the made-up words; all libraries are given GPT-2's pre-tokenisation, but for sentencepiece, which
has its own."""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine_description import command, describe

from plumbline.core.command_line import positive

LIBRARY = """
import json, sys, tokenizers
words = tokenizers.Tokenizer.from_file(sys.argv[1])
texts = [json.loads(line)["text"] for line in open(sys.argv[2], encoding="utf-8")]
import resource, time
before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
found = words.encode_batch(texts, add_special_tokens=False)
wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)
"""


def prose(megabytes: float, seed: int = 0) -> list[str]:
    """Documents of some 4 KB."""
    rng = random.Random(seed)
    syllables = [first + vowel + last for first in "bcdfglmnprst" for vowel in "aeiou" for last in ("", "n", "r", "s")]
    vocabulary = ["".join(rng.choices(syllables, k=1 + min(3, rank.bit_length() // 5))) for rank in range(60_000)]
    weights = [1 / (rank + 1) for rank in range(len(vocabulary))]
    texts: list[str] = []
    size = 0
    while size < megabytes * 1e6:
        sample = rng.choices(vocabulary, weights, k=600)
        stops = [rng.choices(("", ",", ".\n", "."), (88, 6, 1, 5))[0] for _ in sample]
        texts.append(" ".join(word + stop for word, stop in zip(sample, stops)))
        size += len(texts[-1])
    return texts


#: Of each library its module, and code that trains `size` entries on `texts`.
TRAINERS = {
    "ours": ("from plumbline.data import tokenizer", "tokenizer.train_bpe(texts, size)"),
    "rustbpe": ("import rustbpe", "rustbpe.Tokenizer().train_from_iterator(iter(texts), size - 1, pattern=GPT2)"),
    "bpeasy": ("import bpeasy", "bpeasy.train_bpe(iter(texts), GPT2, 64, size - 1)"),
    "sentencepiece": (
        "import io, sentencepiece",
        "lines = (line for text in texts for line in text.splitlines())\n"
        "sentencepiece.SentencePieceTrainer.train(sentence_iterator=lines, model_writer=io.BytesIO(), vocab_size=size, "
        "model_type='bpe', byte_fallback=True, minloglevel=2)",
    ),
}
TRAIN = """
import json, resource, sys
{module}
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\\p{{L}}+| ?\\p{{N}}+| ?[^\\s\\p{{L}}\\p{{N}}]+|\\s+(?!\\S)|\\s+"
texts, size = [json.loads(line)["text"] for line in open(sys.argv[1], encoding="utf-8")], int(sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF)
{code}
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
"""

#: What the page has from here on stays when it is written anew.
BEFORE = "## Measured before\n"

GATHER = """
import resource, sys
from plumbline.data import documents
documents.main(sys.argv[1:])
for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
    usage = resource.getrusage(whose)
    print(usage.ru_utime + usage.ru_stime)
"""


def prepare(folder: Path, documents: Path | None, megabytes: float, share: float = 1) -> Path:
    """train.jsonl, of the first `share` of the documents, and its tokenizer."""
    from plumbline.core.files import sha256_file
    from plumbline.data.tokenizer import train

    path = folder / "train.jsonl"
    if documents is None:
        lines = (
            json.dumps({"id": str(number), "source": "made up", "text": text})
            for number, text in enumerate(prose(megabytes))
        )
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        lines = documents.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: round(share * len(lines))]))
    (folder / "tokenizer.json").write_text(train(path, 4096, 3))
    facts = {"corpus": "prose", "source": "made up", "collections": [], "split_rule": "", "piece_bytes": 0}
    (folder / "documents.json").write_text(
        json.dumps(facts | {"splits": {"train": {"file": path.name, "sha256": sha256_file(path), "documents": 1}}})
    )
    return path


def library(folder: Path) -> tuple[float, float]:
    """(CPU seconds, wall seconds) of encode_batch alone."""
    command = [sys.executable, "-c", LIBRARY, str(folder / "tokenizer.json"), str(folder / "train.jsonl")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    cpu, wall = done.stdout.split()
    return float(cpu), float(wall)


def ours(folder: Path, cores: int) -> tuple[float, float]:
    """(CPU seconds, wall seconds) of the stages, from a file of documents to packs on disk."""
    python = [sys.executable, "-m"]
    common = ["--tokenizer", str(folder / "tokenizer.json")]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    shards = [
        subprocess.Popen(
            [*python, "plumbline.data.tokenize", "--documents", str(folder / "train.jsonl"), *common, "--shard-number",
             str(shard), "--shard-count", str(cores), "--out", str(folder / f"tokens/train-{shard:04d}.npy")],
            stdout=subprocess.DEVNULL,
        )
        for shard in range(cores)
    ]  # fmt: skip
    if any(process.wait() for process in shards):
        sys.exit("tokenizing failed")
    subprocess.run(
        [*python, "plumbline.data.pack", "--token-shards", str(folder / "tokens"), "--shard-count", str(cores), *common,
         "--documents", str(folder / "documents.json"), "--split", "train", "--context", "128",
         "--pack-size", "base=all", "--out", str(folder / "packs")],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def beside_library(folder: Path, of: str, repetitions: int) -> list[str]:
    """Lines of the page: encode_batch and ours, in turn."""
    cores, rows = len(os.sched_getaffinity(0)), []
    for run in range(1, repetitions + 1):
        (theirs, their_wall), (cpu, wall) = library(folder), ours(folder, cores)
        rows.append(
            f"| {run} | {theirs:.2f} | {cpu:.2f} | {theirs / cpu:.2f} | {their_wall:.2f} | {wall:.2f} "
            f"| {their_wall / wall:.2f} |"
        )
        print(rows[-1], flush=True)
    size = (folder / "train.jsonl").stat().st_size / 1e6
    return [
        f"{size:.1f} MB of {of}, {cores} shards. {describe(with_torch=False)}.",
        "",
        "| run | encode_batch, CPU s | ours, CPU s | ratio | encode_batch, wall s | ours, wall s | ratio |",
        "|---:|---:|---:|---:|---:|---:|---:|",
        *rows,
        "",
    ]


def by_processes(folder: Path, repetitions: int) -> list[str]:
    """Lines of the page: `documents` with one process, and with two beside it."""
    texts, rows = folder / "texts", []
    texts.mkdir()
    lines = [json.loads(line)["text"] for line in (folder / "train.jsonl").read_bytes().splitlines()]
    for part in range(5):
        content = (json.dumps({"id": f"{part}-{number}", "text": text}) for number, text in enumerate(lines))
        (texts / f"{part}.jsonl").write_text("\n".join(content) + "\n", encoding="utf-8")
    for run in range(1, repetitions + 1):
        seconds: list[float] = []
        for workers in (1, 2):
            command = [sys.executable, "-c", GATHER, "--corpus", "c", "--documents-source", "local"]
            command += ["--local-texts-folder", str(texts), "--out", str(folder / f"out{workers}")]
            start = time.perf_counter()
            done = subprocess.run([*command, "--workers", str(workers)], check=True, capture_output=True, text=True)
            seconds += [*map(float, done.stdout.splitlines()[-2:]), time.perf_counter() - start]
        one, _, wall, main, beside, wall_of_three = seconds
        rows.append(
            f"| {run} | {one:.2f} | {main:.2f} | {beside:.2f} | {one / max(main, beside / 2):.2f} | {wall:.1f} "
            f"| {wall_of_three:.1f} |"
        )
        print(rows[-1], flush=True)
    size = sum(path.stat().st_size for path in texts.iterdir()) / 1e6
    return [
        "## Documents by several processes",
        "",
        f"{size:.0f} MB of the made-up words in lines, read, shuffled and written. {describe(with_torch=False)}. With "
        "two workers there are three processes; the ratio is of one's CPU seconds to those of the busiest of three, "
        "which is how much sooner it ends where each has a core.",
        "",
        "| run | alone, CPU s | reads and writes, CPU s | two that cut and sort, CPU s | ratio | alone, wall s "
        "| two workers, wall s |",
        "|---:|---:|---:|---:|---:|---:|---:|",
        *rows,
        "",
    ]


def training(folder: Path, peers: Path, repetitions: int) -> list[str]:
    """Lines of the page: CPU seconds of training by each library, in turn."""
    rows = []
    for size in (4096, 32_768):
        for run in range(1, repetitions + 1):
            cpu = {}
            for name, (module, code) in TRAINERS.items():
                program = TRAIN.format(module=module, code=code)
                python = sys.executable if name == "ours" else str(peers)
                command = [python, "-c", program, str(folder / "train.jsonl"), str(size)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                cpu[name] = float(done.stdout.splitlines()[-1])
            ratio = cpu["ours"] / min(cpu.values())
            rows.append(f"| {size:,} | {run} | {' | '.join(f'{cpu[name]:.2f}' for name in TRAINERS)} | {ratio:.1f} |")
            print(rows[-1], flush=True)
    return [
        "## Training a tokenizer",
        "",
        f"{(folder / 'train.jsonl').stat().st_size / 1e6:.1f} MB in JSON lines, the same as last above. CPU seconds, "
        f"with the texts in memory. {describe(with_torch=False)}.",
        "",
        f"| entries | run | {' | '.join(TRAINERS)} | ours to the fastest |",
        f"|---:|---:|{'---:|' * len(TRAINERS)}---:|",
        *rows,
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text-megabytes", type=float, default=24)
    parser.add_argument("--documents", type=Path, metavar="FILE.jsonl", help="other texts besides")
    parser.add_argument("--peers", type=Path, metavar="PYTHON", help="an interpreter that has the other trainers")
    parser.add_argument("--repetitions", type=positive, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    if options.documents is not None and not options.documents.is_file():
        parser.error(f"--documents {options.documents}: there is no such file; make table2 leaves one in work/demo")
    lines = [
        "# Tokenising and packing beside `encode_batch`",
        "",
        "Byte-level BPE of 4,096 entries, texts in JSON lines. The library's seconds are of encode_batch alone, ours "
        "of everything from the file of documents to packs on disk, three interpreters' starts among it. Rows are "
        f"rounds in turn. `{command()}`",
        "",
    ]
    with tempfile.TemporaryDirectory() as temporary:
        made_up, folder = Path(temporary) / "made_up", Path(temporary) / "made_up"
        made_up.mkdir()
        prepare(made_up, None, options.text_megabytes)
        lines += beside_library(made_up, "made-up words", options.repetitions)
        for share, of in ((2 / 3, "the first two thirds of the next"), (1, f"`{options.documents.name}`")):
            if options.documents is not None:
                folder = Path(temporary) / f"{share:.2f}"
                folder.mkdir()
                prepare(folder, options.documents, 0, share)
                lines += beside_library(folder, of, options.repetitions)
        lines += by_processes(made_up, options.repetitions)
        if options.peers is not None:
            lines += training(folder, options.peers, options.repetitions)
    _, _, before = options.out.read_text(encoding="utf-8").partition(BEFORE) if options.out.exists() else ("", "", "")
    lines += [BEFORE + before] if before else []
    options.out.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()

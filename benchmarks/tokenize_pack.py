"""Tokenising and packing next to the bare `tokenizers` library's encode_batch of the same text.

    python benchmarks/tokenize_pack.py                   # of made-up words; writes benchmarks/tokenize_pack.md
    python benchmarks/tokenize_pack.py --documents work/demo/corpora/climbmix/documents/train.jsonl    # of the demo's

Made-up words in the frequencies of English prose (Zipf's law, with an exponent of 1) with punctuation, `--text-
megabytes` of them, and a byte-level BPE of 4,096 entries trained on their beginning; `--documents FILE.jsonl` measures
other texts instead: the committed figures are of the demo's. The library encodes all texts in one call on all cores.
Ours is what the workflow does: a process for each shard, as many as there are cores, then one that packs. All start
anew each time, and take turns. CPU seconds, which what else the machine does changes little, are of all processes and
threads; ours hold the interpreters' starts, reading, writing and checksums."""

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


def prepare(folder: Path, documents: Path | None, megabytes: float) -> Path:
    """documents/train.jsonl and its tokenizer."""
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
        path.write_bytes(documents.read_bytes())
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text-megabytes", type=float, default=24)
    parser.add_argument("--documents", type=Path, metavar="FILE.jsonl", help="texts of one's own")
    parser.add_argument("--repetitions", type=positive, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    if options.documents is not None and not options.documents.is_file():
        parser.error(f"--documents {options.documents}: there is no such file; make table2 leaves one in work/demo")
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        size = prepare(folder, options.documents, options.text_megabytes).stat().st_size / 1e6
        rows = []
        for run in range(1, options.repetitions + 1):
            (theirs, their_wall), (cpu, wall) = library(folder), ours(folder, cores)
            rows.append(
                f"| {run} | {theirs:.2f} | {cpu:.2f} | {theirs / cpu:.2f} | {their_wall:.2f} | {wall:.2f} "
                f"| {their_wall / wall:.2f} |"
            )
            print(rows[-1], flush=True)
    of = "made-up prose" if options.documents is None else f"`{options.documents.name}`"
    lines = [
        "# Tokenising and packing beside `encode_batch`",
        "",
        f"{describe(with_torch=False)}. {size:.1f} MB of {of} in JSON lines, byte-level BPE of 4,096 entries; {cores} "
        "shards. The library's seconds are of encode_batch alone, ours of everything from the file of documents to "
        "packs on disk, three interpreters' starts among it. "
        f"`{command()}`",
        "",
        "| run | encode_batch, CPU s | ours, CPU s | ratio | encode_batch, wall s | ours, wall s | ratio |",
        "|---:|---:|---:|---:|---:|---:|---:|",
        *rows,
    ]
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

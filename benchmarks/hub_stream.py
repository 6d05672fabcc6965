"""The paper data path on made-up text: a hub data set in a local folder, a budget, a kill, a resumed fetch, packs.

python benchmarks/hub_stream.py                        # 300 MB of text; writes benchmarks/hub_stream.md

Made-up words of a Zipf-like frequency go to eight files in hub layout, once as parquet and once as JSONL. Of each a
pack is wanted that takes about half of it. Three fetches through the hub's own loader, each a process: one that is
left alone, one that is killed (SIGKILL) two thirds into its budget, and one that goes on from there. The sizes that
bound memory and loss are scaled as the corpus is (300 MB are to them what 280 GB are to the real ones), so that files
of the shuffle are split again; a fortieth of the text is measured. What came of the resumed fetch goes through a
tokenizer and tokens to a pack. Memory is the kernel's VmHWM; that of a process that only imports the loader is in the
head.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from machine_description import describe

from plumbline.core.files import sha256_file

FILES, CONTEXT, VOCABULARY, PERCENT = 8, 1024, 8192, 3
VERB = """
import atexit, os, re, signal, sys
from plumbline.data import documents, hub_read_budget, read_cache, hub_reading, split
split.SORT_BYTES, read_cache.SAVE_BYTES, hub_read_budget.SAMPLE_BYTES = map(int, sys.argv.pop(1).split(","))
after, read = int(sys.argv.pop(1)), hub_reading.hub.documents
def counted(**given):
    size = 0
    for document in read(**given):
        yield document
        size += len(document.text)
        if given.get("at") is not None and after and size > after:
            os.kill(os.getpid(), signal.SIGKILL)
hub_reading.hub.documents = counted
def peak():
    print("PEAK", re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
atexit.register(peak)
"""
COMPARED = ("train.jsonl", "validation.jsonl", "documents.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text-megabytes", type=float, default=300, help="of made-up text, for each kind of file")
    parser.add_argument(
        "--work-folder", type=Path, help="where to work; needs four times that (default: a temporary one)"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    head = describe(with_torch=False)
    with tempfile.TemporaryDirectory(dir=options.work_folder) as folder:
        sizes = ",".join(str(int(options.text_megabytes * 1e6 * share)) for share in (1 / 1100, 1 / 300, 1 / 40))
        base = process(f"{VERB}import datasets", sizes, "0")
        rows = [
            row for kind in ("parquet", "jsonl") for row in measure(Path(folder), kind, options.text_megabytes, sizes)
        ]
    text = "\n".join(
        [
            "# A hub's data set, read up to a budget, killed and gone on with",
            "",
            f"{head}. `python benchmarks/hub_stream.py --text-megabytes {options.text_megabytes:g}`. "
            f"Made-up text, {FILES} files. "
            f"Bytes sorted in memory, between saves, measured: {sizes}. The loader alone takes "
            f"{base['megabytes']:.0f} MB.",
            "",
            "| files | step | wall s | CPU s | peak MB | read MB | rows from | what came out |",
            "|---|---|---:|---:|---:|---:|---:|---|",
            *rows,
        ]
    )
    options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


def measure(folder: Path, kind: str, megabytes: float, sizes: str) -> list[str]:
    """The rows of one kind of file; `sizes`: what is sorted in memory, what lies between saves, the sample."""
    size = write(folder / kind, kind, megabytes * 1e6)
    # A token of made-up words is some four bytes: with the margin about two thirds of the text.
    sequences = int(size / 2 / 4.5 / CONTEXT)
    tokens = int((sequences + 1) * CONTEXT / (1 - PERCENT / 100)) + 1
    arguments = [
        "--corpus",
        "made_up",
        "--documents-source",
        "hub",
        "--hub-dataset",
        f"{folder}/{kind}",
        "--token-budget",
        str(tokens),
    ]
    arguments += ["--tokenizer-kind", "byte_level_bpe", "--vocabulary-size", str(VOCABULARY), "--out"]
    verb = f"{VERB}documents.main()"
    rows = []

    def said(step: str, took: dict[str, Any], read: float, start: int, result: str) -> None:
        peak = f"{took['megabytes']:.0f}" if took["megabytes"] else "-"
        cells = [kind, step, f"{took['wall']:.0f}", f"{took['cpu']:.0f}", peak, f"{read / 1e6:.1f}", f"{start:,}"]
        rows.append(f"| {' | '.join([*cells, result])} |")

    alone, resumed = folder / f"{kind}-alone", folder / f"{kind}-resumed"
    took = process(verb, sizes, "0", *arguments, str(alone))
    spent = json.loads((alone / "documents.json").read_text())["budget"]
    result = (
        f"budget {spent['bytes'] / 1e6:.1f} MB of {size / 1e6:.1f}, at {spent['bytes_per_token']:.3f} bytes a token"
    )
    said("left alone", took, spent["read_bytes"], 0, result)
    took = process(verb, sizes, str(spent["bytes"] * 2 // 3), *arguments, str(resumed), killed=True)
    cursor = json.loads(next(resumed.glob(".hub-*/cursor.json")).read_text())
    kept_bytes, start = cursor["tally"]["bytes"], cursor["position"]["number"]
    said("killed", took, spent["bytes"] * 2 // 3, 0, f"{kept_bytes / 1e6:.1f} MB kept")
    took = process(verb, sizes, "0", *arguments, str(resumed))
    same = all(sha256_file(alone / name) == sha256_file(resumed / name) for name in COMPARED)
    said("gone on", took, spent["read_bytes"] - kept_bytes, start, "the same bytes" if same else "OTHER BYTES")
    packs = pack(resumed, sequences)
    available = packs["available"]["tokens"]
    took = {"wall": packs["seconds"], "cpu": packs["cpu"], "megabytes": None}
    result = (
        f"{packs['sequences']:,} of {sequences:,} sequences; {available:,} training tokens there, for {tokens:,} in all"
    )
    said("packed", took, 0, 0, result)
    shutil.rmtree(folder / kind)
    return rows


def write(folder: Path, kind: str, size: float) -> int:
    """Made-up text in `FILES` files; returns its bytes."""
    draw = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfw"))
    vocabulary = np.array(["".join(draw.choice(letters, size=draw.integers(2, 10))) for _ in range(30_000)])
    frequency = 1 / np.arange(3, len(vocabulary) + 3)
    (folder / "data").mkdir(parents=True)
    total = 0
    for part in range(FILES):
        texts: list[str] = []
        written = 0
        while written < size / FILES:
            sample = draw.choice(vocabulary, size=20_000, p=frequency / frequency.sum())
            cuts = np.sort(draw.integers(1, len(sample), size=25))
            more = [" ".join(piece) for piece in np.split(sample, cuts) if len(piece)]
            written += sum(map(len, more))
            texts += more
        total += sum(map(len, texts))
        frame, name = pd.DataFrame({"text": texts}), f"train-{part:05d}-of-{FILES:05d}.{kind}"
        if kind == "parquet":
            frame.to_parquet(folder / "data" / name, row_group_size=1000)
        else:
            frame.to_json(folder / "data" / name, orient="records", lines=True)
    return total


def process(code: str, *arguments: str, killed: bool = False) -> dict[str, Any]:
    """Run a verb; seconds, and megabytes at its peak (of a killed one not known)."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    after = os.times()
    if (done.returncode != 0) != killed:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-4000:])
    peaks = [int(kilobytes) / 1024 for kilobytes in re.findall(r"PEAK (\d+)", done.stdout)]
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall": time.perf_counter() - start, "cpu": cpu, "megabytes": max(peaks, default=None)}


def pack(folder: Path, sequences: int) -> dict[str, Any]:
    """The training pack of fetched documents, by the verbs that the rules call."""
    tokenizer, shards = folder / "tokenizer.json", 4
    train = ["--documents", f"{folder}/train.jsonl"]
    common = [*train, "--tokenizer", str(tokenizer), "--shard-count", str(shards)]
    commands = [
        [
            "tokenizer",
            "train",
            *train,
            "--vocabulary-size",
            str(VOCABULARY),
            "--training-megabytes",
            "20",
            "--out",
            str(tokenizer),
        ],
        *(
            ["tokenize", *common, "--shard-number", str(shard), "--out", f"{folder}/tokens/train-{shard:04d}.npy"]
            for shard in range(shards)
        ),
    ]
    arguments = [
        "--token-shards",
        f"{folder}/tokens",
        "--shard-count",
        str(shards),
        "--tokenizer",
        str(tokenizer),
        "--split",
        "train",
    ]
    arguments += [
        "--documents",
        f"{folder}/documents.json",
        "--context",
        str(CONTEXT),
        "--pack-size",
        f"base={sequences}",
    ]
    commands.append(["pack", *arguments, "--out", f"{folder}/packs"])
    (folder / "tokens").mkdir()
    before, start = os.times(), time.perf_counter()
    for verb, *flags in commands:
        subprocess.run([sys.executable, "-m", f"plumbline.data.{verb}", *flags], check=True, capture_output=True)
    after = os.times()
    manifest: dict[str, Any] = json.loads((folder / "packs/base.json").read_text())
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return manifest | {"seconds": time.perf_counter() - start, "cpu": cpu}


if __name__ == "__main__":
    main()

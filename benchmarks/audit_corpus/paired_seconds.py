"""Times `plumbline audit --from` of several versions on the same papers, in turn, in CPU seconds without the start.

`python -m benchmarks.audit_corpus.paired_seconds SOURCES SRC [SRC ...]`, a `src` folder of each version (of a commit:
`git archive COMMIT src | tar -x -C FOLDER`). Each version has one process; of each paper the best of the rounds counts.
"""

from __future__ import annotations

import argparse
import io
import os
import runpy
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: The argument of a process that times what it is told.
ANSWER = "--answer"


def main() -> None:
    """Time every paper with every version, and print the sums."""
    from benchmarks.audit_corpus.corpus_files import SPLITS, read_papers  # which a process of an old version lacks

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path)
    parser.add_argument("versions", nargs="+", type=Path)
    parser.add_argument("--split", choices=SPLITS, default="work")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    papers = [paper.main(options.sources.resolve()) for paper in read_papers(options.split)]
    workers = [_start(version.resolve()) for version in options.versions]
    for worker in workers:
        _ask(worker, papers[0])  # imports what it needs
    best = [dict.fromkeys(papers, float("inf")) for _ in workers]
    for number in range(options.rounds):
        for paper in papers:
            for place in range(len(workers))[:: -1 if number % 2 else 1]:
                best[place][paper] = min(best[place][paper], _ask(workers[place], paper))
    for version, seconds in zip(options.versions, best, strict=True):
        print(f"{sum(seconds.values()):.1f} CPU s of {len(papers)} papers: {version}")


def _start(version: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.audit_corpus.paired_seconds", ANSWER],
        env={**os.environ, "PYTHONPATH": f"{version}{os.pathsep}{ROOT}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _ask(worker: subprocess.Popen[str], paper: Path) -> float:
    assert worker.stdin is not None and worker.stdout is not None
    print(paper, file=worker.stdin, flush=True)
    return float(worker.stdout.readline())


def _answer() -> None:
    """Audit each paper whose path is read, and print its seconds."""
    out = sys.stdout
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            sys.argv = ["plumbline audit", "--from", line.rstrip("\n"), f"{folder}/paper", "--json"]
            begin = time.process_time()
            with suppress(SystemExit):
                runpy.run_module("plumbline.audit", run_name="__main__")
            seconds = time.process_time() - begin
        print(seconds, file=out, flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == [ANSWER]:
        _answer()
    else:
        main()

"""Brings the LaTeX of the corpus into a folder, by git: of each paper its own folder of the repository, at its commit.

`python -m benchmarks.audit_corpus.fetch_sources FOLDER`. What it brings is others' work: nothing of it is committed.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path, PurePosixPath

from benchmarks.audit_corpus.corpus_files import SPLITS, Paper, read_papers

#: Endings of the files that are brought, and the largest one.
ENDINGS, LARGEST = (".tex", ".sty", ".cls", ".ltx"), 3_000_000


def main() -> int:
    """Fetch every paper that is not there, and return how many could not be had."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", choices=SPLITS, default="work")
    parser.add_argument(
        "--base", default="https://github.com", help="where the repositories are (default: %(default)s)"
    )
    options = parser.parse_args()
    missing = 0
    for paper in read_papers(options.split):
        if paper.main(options.folder).is_file():
            continue
        with tempfile.TemporaryDirectory() as clone:
            try:
                files = _fetch(paper, options.base, Path(clone), options.folder / paper.name)
                there = paper.main(options.folder).is_file()
                missing += not there
                print(f"{paper.name}: {f'{files} files' if there else f'could not be had: no {paper.file} there'}")
            except subprocess.CalledProcessError as error:
                missing += 1
                print(f"{paper.name}: could not be had: {error.stderr.decode(errors='replace').strip()[-200:]}")
    return missing


def _fetch(paper: Paper, base: str, clone: Path, folder: Path) -> int:
    """Fetch the commit of a paper and write its files; returns how many."""
    _git(clone, "init", "--quiet", "--bare")
    _git(
        clone,
        "fetch",
        "--quiet",
        "--depth",
        "1",
        f"--filter=blob:limit={LARGEST}",
        f"{base}/{paper.repository}",
        paper.commit,
    )
    root = str(PurePosixPath(paper.file).parent)
    count = 0
    for entry in _git(clone, "ls-tree", "-r", "-l", "-z", paper.commit).split(b"\0")[:-1]:
        facts, _, name = entry.partition(b"\t")
        path = PurePosixPath(name.decode("utf-8", "surrogateescape"))
        size = facts.split()[3]
        if path.suffix.lower() not in ENDINGS or not size.isdigit() or int(size) > LARGEST:
            continue
        if root != "." and not path.is_relative_to(root):
            continue
        target = folder / (path if root == "." else path.relative_to(root))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_git(clone, "cat-file", "blob", facts.split()[2].decode()))
        count += 1
    return count


def _git(folder: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True).stdout


if __name__ == "__main__":
    raise SystemExit(main())

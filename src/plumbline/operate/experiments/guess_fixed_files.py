"""Guesses which files measure: what the program reads and does not write that prints a first run's metric.

Where one program trains and measures, that is known of no file but by its name: a module or data file that is called
validation, evaluation or test. The program itself is never among them, as most changes are made there.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from plumbline.verdict.own_trainer.fixed_files import select

#: Parts of a name of what measures.
_MEASURES = re.compile(
    r"(?<![a-z])(?:val|valid|validation|eval|evals|evaluate|evaluation|test|heldout|held_out|holdout)(?![a-z])",
    re.IGNORECASE,
)
#: Files of one folder that are named one by one.
_NAMED = 8


def guess(readers: Mapping[str, Collection[str]], written: Collection[str], prefix: str) -> tuple[list[str], str]:
    """Guess the patterns of the files that measure, and by what; none where nothing tells them.

    Args:
        readers: program -> the files of its copy that it read.
        written: files that the run wrote.
        prefix: where the trainer's folder lies below the top.
    """
    by_program = {
        program: {name for name in files if _is_input(name) and name not in written}
        for program, files in readers.items()
    }
    scripts = [program for program in by_program if program.endswith(".py")]
    measuring = [program for program in scripts if _is_of_measure(program)]
    other_files = {name for program, files in by_program.items() if program not in measuring for name in files}
    all_files = other_files.union(*by_program.values())
    if len(measuring) == 1 and len(scripts) > 1:
        chosen = {measuring[0]} | {
            name for name in by_program[measuring[0]] if name not in other_files or _is_of_measure(name)
        }
        reason = f"{measuring[0]} measures, and reads what the programs that train do not, or what is named so"
    else:
        chosen = {name for name in all_files if _is_of_measure(name)} - set(scripts)
        reason = "read, not written, and named as what measures is"
    folder_prefix = f"{prefix}/" if prefix else ""
    chosen, all_files = (
        {name.removeprefix(folder_prefix) for name in each if name.startswith(folder_prefix)}
        for each in (chosen, all_files)
    )
    return _join(chosen, all_files), reason


def _is_input(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return not any(part == "__pycache__" or part.startswith(".") for part in parts)


def _is_of_measure(name: str) -> bool:
    return bool(_MEASURES.search(name))


def _join(chosen: Collection[str], all_files: Collection[str]) -> list[str]:
    """The patterns of files: many of one folder as one, where no other file that was read matches it."""
    patterns: list[str] = []
    for folder in sorted({os.path.dirname(name) for name in chosen}):
        names = sorted(name for name in chosen if os.path.dirname(name) == folder)
        prefix_length = next((at for at, (a, b) in enumerate(zip(names[0], names[-1])) if a != b), len(names[0]))
        pattern = f"{glob.escape(names[0][:prefix_length])}*"
        joined = len(names) > _NAMED and set(select(all_files, [pattern])) <= set(chosen)
        patterns += [pattern] if joined else map(glob.escape, names)
    return patterns

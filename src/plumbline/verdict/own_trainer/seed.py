"""Gives a run its seed: as words of the command, by the environment, or by shifting the seeds that the code sets.

What a plumbline.toml says of seeds and flags is quoted: the shell runs what `command` says and nothing else.

`inject` is for a trainer that fixes its seed in the code: a `sitecustomize` (`child/sitecustomize.py`) in front of the
child's PYTHONPATH wraps the functions that set seeds when torch, numpy and random are imported, and shifts what they
are given by a function of the run's seed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from plumbline.core.errors import PlumblineError
from plumbline.verdict.own_trainer.trainer_file import ENVIRONMENT, FLAGS, INJECT, SEED

#: The variable that tells the child's `sitecustomize` the seed to shift by.
SHIFT = "PLUMBLINE_SHIFT_SEEDS"
#: Calls with a number whose seed is shifted, whatever they are called from; a generator's own `manual_seed` is none.
_CALL = re.compile(
    r"((?<![\w.])(?:(?:(?:np|numpy)\.)?random\.seed|(?:np|numpy)\.random\.default_rng|"
    r"torch\.(?:cuda\.)?manual_seed(?:_all)?)\(\s*)\d+(?=\s*\))"
)
#: What ends a command of the shell, so that words after it would belong to another one.
_ENDS = frozenset({"|", "||", "&", "&&", ";", "|&"})


def command_line(command: str, way: str, seed: int, flags: Sequence[str]) -> str:
    """Fill in a command's flags and seed: where they are named, or else at its end.

    Raises:
        PlumblineError: there is no telling which of several commands they belong to.
    """
    words = [] if way == INJECT or way.startswith(ENVIRONMENT) else shlex.split(way.replace(SEED, str(seed)))
    if SEED in command:
        command, words = command.replace(SEED, str(seed)), []
    quoted = shlex.join([*words, *flags])
    if FLAGS in command:
        return command.replace(FLAGS, quoted)
    if quoted and _several(command):
        raise PlumblineError(
            f"run.command: {command!r} is more than one command; write {{flags}} where the flags and the seed go"
        )
    return f"{command} {quoted}".strip()


def variables(way: str, seed: int) -> dict[str, str]:
    """The variables of the environment by which a run is given its seed."""
    if way == INJECT:
        return {SHIFT: str(seed)}
    return {way.removeprefix(ENVIRONMENT): str(seed)} if way.startswith(ENVIRONMENT) else {}


def only_a_seed(gone: Sequence[str], come: Sequence[str]) -> bool:
    """Whether changed lines (`-...`, `+...`) differ in nothing but the number in a call that `inject` shifts anyway."""
    plain = [[_CALL.sub(r"\1", line[1:]) for line in lines] for lines in (gone, come)]
    whole = all(
        line.startswith(sign) and _CALL.search(line) for sign, lines in (("-", gone), ("+", come)) for line in lines
    )
    return bool(gone) and whole and plain[0] == plain[1]


def _several(command: str) -> bool:
    """Whether a line of the shell holds more than one command."""
    if "\n" in command.strip():
        return True
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return any(word in _ENDS for word in lexer)
    except ValueError:
        return True

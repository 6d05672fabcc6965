"""Measures a rule of somebody else's: how often it keeps a change that does nothing, and finds gains of 1 and 2 sigma.

A rule is a command that is given made-up runs as JSON on its standard input, or a Python function, which is called in
this process. It answers keep or discard; whatever else it does is an error, and is never counted.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.core.errors import PlumblineError, visible
from plumbline.stats.distributions import bound_share

#: True gains of the made-up changes, in sigma.
GAINS = (0.0, 1.0, 2.0)
#: Changes of each gain at most: of a function, of a command, which takes its time to start, and of one by lines.
MOST_OF_FUNCTION, MOST_OF_COMMAND, MOST_OF_LINES = 5000, 400, 2000
#: Seconds after which no more are begun, and in which a command has to answer.
SECONDS, ANSWER_SECONDS = 50.0, 20.0
#: A session: changes, how many of them gain 2 sigma, and how many sessions are simulated for a function at most.
SESSION, REAL, SESSIONS = 60, 6, 200
#: Exit codes of a command that prints neither word -> whether it keeps (discard, and undecided, do not).
_ANSWERS = {0: True, 10: False, 11: False}

#: Runs of the baseline, runs of the candidate -> whether the candidate is kept.
Rule = Callable[[Sequence[float], Sequence[float]], bool]


@dataclass(frozen=True, slots=True)
class Share:
    """How many of some made-up changes were kept, with the 95 % interval of the true share (Clopper and Pearson)."""

    kept: int
    tried: int

    @property
    def value(self) -> float:
        """The share that was seen."""
        return self.kept / self.tried

    @property
    def interval(self) -> tuple[float, float]:
        """The interval's ends."""
        return bound_share(self.kept, self.tried, 0.025)


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionRates:
    """What a rule keeps in sessions in which what is kept is compared with next, by the runs that it was kept for.

    Attributes:
        real, nothing: changes kept in a session on average, of those with a gain and of those that do nothing.
        real_error, nothing_error: standard errors of the two.
        sessions: how many were simulated.
    """

    real: float
    nothing: float
    real_error: float
    nothing_error: float
    sessions: int


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeUpRuns:
    """How made-up runs are drawn: as normal runs of a folder's own level and noise.

    Attributes:
        mean, sigma: of the baseline's runs.
        higher: whether higher is better.
        baseline_runs, candidate_runs: of each made-up change.
    """

    mean: float
    sigma: float
    higher: bool
    baseline_runs: int
    candidate_runs: int

    def draw(self, rng: np.random.Generator, runs: int, gain: float = 0.0) -> list[float]:
        """Draw the runs of an arm with a gain, in sigma, over the baseline."""
        signed_gain = gain if self.higher else -gain
        return [float(value) for value in self.mean + self.sigma * (signed_gain + rng.standard_normal(runs))]


def load_rule(text: str, *, metric: str, higher: bool) -> tuple[Rule, bool]:
    """Make a rule from a function (`package.module:function`, or a file's: `PATH:function`) or a command.

    Returns:
        The rule, and whether it is a function.

    Raises:
        PlumblineError: there is no such module or function.
    """
    if match := re.fullmatch(r"([\w./-]+?):([A-Za-z_]\w*)", text.strip()):
        return partial(_call_function, _load_function(*match.groups()), text), True
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise PlumblineError(f"--rule {text!r}: has {str(error).lower()}") from None
    if not command:
        raise PlumblineError("--rule: names no command; write --rule 'python rule.py' or --rule module:function")
    return partial(_run_command, text, metric, higher), False


def measure_single(
    rule: Rule, runs: MadeUpRuns, *, most: int, seconds: float = SECONDS, at_once: int = 1
) -> dict[float, Share]:
    """Measure how often a rule keeps a single change of each gain, as many as fit into the time.

    Raises:
        PlumblineError: the rule failed, or answered neither keep nor discard.
    """
    rng, until = np.random.default_rng(48), time.monotonic() + seconds
    keeps, tried = dict.fromkeys(GAINS, 0), 0
    with ThreadPoolExecutor(at_once) as pool:
        while tried < most and (not tried or time.monotonic() < until):
            rounds = min(at_once, most - tried)
            arms = [
                (gain, runs.draw(rng, runs.baseline_runs), runs.draw(rng, runs.candidate_runs, gain))
                for _ in range(rounds)
                for gain in GAINS
            ]
            answers = (
                pool.map(lambda arm: rule(arm[1], arm[2]), arms) if at_once > 1 else (rule(*arm[1:]) for arm in arms)
            )
            for (gain, _, _), is_kept in zip(arms, answers):
                keeps[gain] += is_kept
            tried += rounds
    return {gain: Share(keeps[gain], tried) for gain in GAINS}


def measure_lines(command: str, runs: MadeUpRuns, *, metric: str, most: int = MOST_OF_LINES) -> dict[float, Share]:
    """Measure a command that is given all made-up changes at once, an object a line, and prints a word for each.

    Raises:
        PlumblineError: it failed, or its lines are not as many, or not all keep, discard or undecided.
    """
    rng, gains = np.random.default_rng(48), list(GAINS) * most
    lines = [
        _write_arms(metric, runs.higher, runs.draw(rng, runs.baseline_runs), runs.draw(rng, runs.candidate_runs, gain))
        for gain in gains
    ]
    out, err, code = _answer(command, "\n".join(lines) + "\n", SECONDS)
    lines_out = [line for line in out.splitlines() if line.strip()]
    answers = [_read_word(word) for word in lines_out]
    if code or len(lines_out) != len(lines) or None in answers:
        wrong = next((visible(word[:80]) for word, answer in zip(lines_out, answers) if answer is None), "")
        why = next((visible(line.strip()) for line in reversed(err.splitlines()) if line.strip()), "")
        raise PlumblineError(
            f"--rule {command!r} was given {len(lines):,} changes, an object a line, and ended with exit code {code} "
            f"after {len(lines_out):,} answers{f', of which {wrong!r} is neither keep nor discard' if wrong else ''}"
            f"{f': {why}' if why else ''}. Nothing is counted"
        )
    keeps = {gain: sum(bool(answer) for each, answer in zip(gains, answers) if each == gain) for gain in GAINS}
    return {gain: Share(keeps[gain], most) for gain in GAINS}


def measure_sessions(rule: Rule, runs: MadeUpRuns, *, most: int = SESSIONS, seconds: float = SECONDS) -> SessionRates:
    """Measure what a rule keeps in sessions of `SESSION` changes, of which `REAL` gain 2 sigma each."""
    rng, until, counts = np.random.default_rng(49), time.monotonic() + seconds, list[tuple[int, int]]()
    while len(counts) < most and (len(counts) < 2 or time.monotonic() < until):
        gains = rng.permutation([2.0] * REAL + [0.0] * (SESSION - REAL))
        level, real, nothing = 0.0, 0, 0
        baseline = runs.draw(rng, runs.baseline_runs)
        for gain in gains:
            candidate = runs.draw(rng, max(runs.candidate_runs, runs.baseline_runs), level + gain)
            if rule(baseline, candidate[: runs.candidate_runs]):
                level, baseline = level + gain, candidate[: runs.baseline_runs]
                real, nothing = real + (gain > 0), nothing + (gain == 0)
        counts.append((real, nothing))
    each = np.array(counts, dtype=float)
    (mean_real, mean_nothing), error = each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(len(each))
    return SessionRates(
        real=float(mean_real),
        nothing=float(mean_nothing),
        real_error=float(error[0]),
        nothing_error=float(error[1]),
        sessions=len(each),
    )


def _load_function(module: str, name: str) -> Callable[..., Any]:
    try:
        if module.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(module).stem, module)
            assert spec is not None and spec.loader is not None  # by its ending
            code = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(code)
        else:
            sys.path.insert(0, os.getcwd())
            try:
                code = importlib.import_module(module)
            finally:
                sys.path.remove(os.getcwd())
    except Exception as error:  # the module is the user's, and may fail in any way
        raise PlumblineError(f"--rule {module}:{name}: {module} cannot be loaded ({error!r})") from None
    function = getattr(code, name, None)
    if not callable(function):
        raise PlumblineError(f"--rule {module}:{name}: {module} has no function {name}")
    return function  # type: ignore[no-any-return]


def _call_function(
    function: Callable[..., Any], text: str, baseline: Sequence[float], candidate: Sequence[float]
) -> bool:
    try:
        answer = function(list(baseline), list(candidate))
    except Exception as error:  # as above
        raise PlumblineError(f"--rule {text}: it failed with {error!r}; nothing is counted") from None
    if isinstance(answer, (bool, np.bool_)):
        return bool(answer)
    if (is_kept := _read_word(str(answer))) is None or not isinstance(answer, str):
        raise PlumblineError(
            f"--rule {text}: it returned {answer!r}, which is neither True, False, 'keep' nor 'discard'"
        )
    return is_kept


def _run_command(
    command: str, metric: str, higher: bool, baseline: Sequence[float], candidate: Sequence[float]
) -> bool:
    text = _write_arms(metric, higher, baseline, candidate)
    out, err, code = _answer(command, text, ANSWER_SECONDS)
    last = next((line.strip() for line in reversed(out.splitlines()) if line.strip()), "")
    by_code, by_word = _ANSWERS.get(code), _read_word(last)
    if by_code is None:
        why = next((line for line in reversed(err.splitlines()) if line.strip()), "") or last
        raise PlumblineError(
            f"--rule {command!r} ended with exit code {code}{': ' if why else ''}{visible(why.strip())}; "
            "it has to answer with 0 (keep), 10 (discard) or 11 (undecided), or with the word keep or discard as the "
            "last line that it prints. Nothing is counted"
        )
    if by_word is None and last:
        raise PlumblineError(
            f"--rule {command!r} printed {visible(last[:80])!r} last, which is neither keep nor discard; print "
            "one of them, or nothing and end with 0 (keep) or 10 (discard)"
        )
    if by_word is True and not by_code:
        raise PlumblineError(f"--rule {command!r} printed keep and ended with {code}, which is no keep")
    return by_code if by_word is None else by_word


def _write_arms(metric: str, higher: bool, baseline: Sequence[float], candidate: Sequence[float]) -> str:
    arms = {"metric": metric, "higher_is_better": higher, "baseline": list(baseline), "candidate": list(candidate)}
    return json.dumps(arms)


def _answer(command: str, text: str, seconds: float) -> tuple[str, str, int]:
    """What a command prints for a text, on both streams, and its exit code."""
    try:
        process = subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise PlumblineError(f"--rule {command!r} cannot be run: {error.strerror}") from None
    try:
        out, err = process.communicate(text.encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise PlumblineError(f"--rule {command!r}: no answer in {seconds:g} s; nothing is counted") from None
    return out.decode(errors="replace"), err.decode(errors="replace"), process.returncode


def _read_word(text: str) -> bool | None:
    return {"keep": True, "discard": False, "undecided": False}.get(text.strip().lower())

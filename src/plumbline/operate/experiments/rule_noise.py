"""Prints how often a rule of somebody else's keeps nothing and finds gains, at the noise of a folder's own runs."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from typing import Any

from plumbline.core.errors import PlumblineError, UsageError, visible
from plumbline.core.terminal_lines import fold_lines
from plumbline.stats.pooling import pool_spreads
from plumbline.verdict import rule_rates
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.formatting import format_value
from plumbline.verdict.ledger import BUDGETS
from plumbline.verdict.rule_rates import GAINS, MadeUpRuns, Share


def print_rule(options: argparse.Namespace, bank: Bank, *, metric: str, higher: bool) -> int:
    """Measure a rule on made-up runs of the newest trainer in a bank, and print its rates.

    Raises:
        PlumblineError: the bank has no noise to draw from, or the rule answers neither keep nor discard.
    """
    rule, runs = options.rule, _describe_runs(bank, _parse_sizes(options.rule_runs or "5,5"), higher=higher)
    decide, is_function = rule_rates.load_rule(rule, metric=metric, higher=higher)
    seconds = rule_rates.SECONDS / (1 + is_function)
    if options.rule_lines:
        if is_function:
            raise UsageError("--rule-lines is of a command; a function is called for each change")
        shares = rule_rates.measure_lines(rule, runs, metric=metric)
    elif is_function:
        shares = rule_rates.measure_single(decide, runs, most=rule_rates.MOST_OF_FUNCTION, seconds=seconds)
    else:
        at_once = os.cpu_count() or 1
        shares = rule_rates.measure_single(decide, runs, most=rule_rates.MOST_OF_COMMAND, at_once=at_once)
    sessions = rule_rates.measure_sessions(decide, runs, seconds=seconds) if is_function else None
    if options.json:
        print(json.dumps(_to_json(rule, runs, shares, sessions)))
        return 0
    sigma = format_value(runs.sigma, runs.sigma)
    lines = [
        f"{visible(rule)}, given {runs.baseline_runs} runs of the baseline and {runs.candidate_runs} of the candidate, "
        f"normal around {format_value(runs.mean, runs.sigma)} with the sigma of the runs here, {sigma}:"
    ]
    for gain in GAINS:
        (low, high), share = shares[gain].interval, shares[gain]
        change = f"a gain of {gain:g} sigma" if gain else "a change that does nothing"
        lines.append(
            f"{change} is kept in {100 * share.value:.1f} % ({share.kept:,} of {share.tried:,}; 95 % interval "
            f"{100 * low:.1f} to {100 * high:.1f} %)"
        )
    if sessions is not None:
        lines.append(
            f"of {rule_rates.SESSION} changes, {rule_rates.REAL} of which gain 2 sigma, where the runs that won are "
            f"the next one's baseline, {sessions.real:.2f} ± {sessions.real_error:.2f} real ones are kept and "
            f"{sessions.nothing:.2f} ± {sessions.nothing_error:.2f} that do nothing ({sessions.sessions} sessions)"
        )
    print("\n".join(fold_lines(line, sys.stdout) for line in lines))
    return 0


def _parse_sizes(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() and 1 <= int(part) <= 1000 for part in parts):
        raise UsageError(f"--rule-runs {text!r}: write runs of the baseline and of the candidate, such as 5,5")
    return int(parts[0]), int(parts[1])


def _describe_runs(bank: Bank, sizes: tuple[int, int], *, higher: bool) -> MadeUpRuns:
    """The level and the noise of the newest run's trainer and machine, at the budget that tries have."""
    runs = [banked for banked in bank.runs if banked.run.has_value and not banked.role.startswith(f"{BUDGETS}:")]
    newest = runs[-1] if runs else None
    values = {} if newest is None else bank.group_values(newest.group)
    arms = values.get(newest.run.fingerprint, []) if newest is not None else []
    spread = pool_spreads(arms) if arms else None
    if spread is None or not spread.sigma > 0:
        raise PlumblineError(
            f"{bank.path}: no two runs of one method are there yet, whose noise made-up runs could have; plumbline "
            "setup-trainer, or plumbline try, makes some"
        )
    baseline, candidate = sizes
    return MadeUpRuns(
        mean=statistics.fmean(arms[0]),
        sigma=spread.sigma,
        higher=higher,
        baseline_runs=baseline,
        candidate_runs=candidate,
    )


def _to_json(
    rule: str, runs: MadeUpRuns, shares: dict[float, Share], sessions: rule_rates.SessionRates | None
) -> dict[str, Any]:
    changes = [
        {
            "gain_sigmas": gain,
            "kept": each.kept,
            "tried": each.tried,
            "share": each.value,
            "interval": list(each.interval),
        }
        for gain, each in shares.items()
    ]
    facts: dict[str, Any] = {"rule": rule, "baseline_runs": runs.baseline_runs, "candidate_runs": runs.candidate_runs}
    facts |= {"mean": runs.mean, "sigma": runs.sigma, "changes": changes}
    if sessions is None:
        return facts | {"sessions": None}
    of_session: dict[str, Any] = {"changes": rule_rates.SESSION, "real": rule_rates.REAL, "sessions": sessions.sessions}
    of_session |= {"kept_real": sessions.real, "kept_nothing": sessions.nothing}
    return facts | {"sessions": of_session | {"errors": [sessions.real_error, sessions.nothing_error]}}

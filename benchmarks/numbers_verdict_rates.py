"""Verdicts on numbers whose truth is known: how often nothing is crowned, and how often a real gain is found.

    python benchmarks/numbers_verdict_rates.py                  # 4 min of one core; numbers_verdict_rates.md
    python benchmarks/numbers_verdict_rates.py --repetitions 100 --out /tmp/quick.md

Files are written, read and judged by what `plumbline verdict` calls; users' tries go through ledgers on
the disk. Runs are drawn from a normal law unless another is named. Shares come with their binomial standard error.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from machine_description import describe

from plumbline.core.command_line import run
from plumbline.core.files import atomic_write_text
from plumbline.stats.protocol_error import standard_error
from plumbline.verdict.comparison_terms import ALPHA, LOOP, ComparisonTerms
from plumbline.verdict.evidence import Evidence, RunEvidence
from plumbline.verdict.formatting import write_grid
from plumbline.verdict.judge import BaselineComparison, judge, judge_all
from plumbline.verdict.ledger import append
from plumbline.verdict.numbers.search import SearchJudgement, judge_search
from plumbline.verdict.numbers.table_verdict import ComparedPair, make_entries
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.sources.row_files import ColumnNames, read_rows
from plumbline.verdict.sources.run_rows import read_search, read_table

TERMS = ComparisonTerms(higher=False)
SIGMA = 0.003
#: Methods, seeds of each, seeds of the baseline.
DESIGNS = [(5, 3, 5), (5, 1, 5), (5, 2, 2), (1, 3, 3), (1, 1, 10), (5, 5, 5)]


def table_of(rng: np.random.Generator, folder: Path, design: tuple[int, int, int], gain: float) -> Evidence:
    """A file with a baseline and methods of which the first has the gain (in sigma), written and read."""
    methods, seeds, of_baseline = design
    lines = [("base", seed, 0.0) for seed in range(of_baseline)]
    lines += [(f"m{method}", seed, gain * (method == 0)) for method in range(methods) for seed in range(seeds)]
    rows = [f"{name},{seed},{3.28 + SIGMA * (rng.normal() - true):.12f}" for name, seed, true in lines]
    path = folder / "results.csv"
    path.write_text("\n".join(["method,seed,metric", *rows]) + "\n", encoding="utf-8")
    return read_table(read_rows(path), ColumnNames())


def share(values: Iterable[bool]) -> str:
    """A share with its standard error."""
    hits = np.fromiter(values, dtype=bool)
    return f"{hits.mean():.3f} ± {standard_error(max(hits.mean(), 1 / len(hits)), len(hits)):.3f}"


def improves(judgement: BaselineComparison | SearchJudgement) -> bool:
    return judgement.outcome is Outcome.KEEP


def files(repetitions: int, folder: Path) -> str:
    rows = []
    for number, design in enumerate(DESIGNS):
        rng = np.random.default_rng([1, number])
        null = [judge_all(table_of(rng, folder, design, 0.0).values, "base", TERMS) for _ in range(repetitions)]
        real = [judge_all(table_of(rng, folder, design, 3.0).values, "base", TERMS)["m0"] for _ in range(repetitions)]
        stated, met = real[0].design.power(3.0), np.mean([improves(each) for each in real])
        off = (met - stated) / standard_error(stated, repetitions)
        methods, seeds, of_baseline = design
        rows.append(
            (
                f"{methods} x {seeds} against {of_baseline}",
                share(any(map(improves, each.values())) for each in null),
                share(any(comparison.p_face * methods <= ALPHA for comparison in each.values()) for each in null),
                share(map(improves, real)),
                f"{stated:.3f}",
                f"{off:+.1f}",
            )
        )
    columns = ["methods x seeds", "null files: one crowned", "the same, taking sigma as known"]
    columns += ["3 sigma: found", "the page's chance", "apart, standard errors"]
    return write_grid(columns, rows)


def gains(repetitions: int) -> str:
    """What is said of a method by its true gain, and how often a gain that it has is ruled out."""
    rows = []
    for n, m in ((3, 3), (3, 5), (5, 5)):
        for gain in (0.0, 1.0, 2.0, 3.0):
            rng = np.random.default_rng([6, n, m, int(gain)])
            comparisons = [pair_of(rng.normal(size=n) - gain, rng.normal(size=m)) for _ in range(repetitions)]
            outcomes = Counter(each.outcome for each in comparisons)
            three = (Outcome.KEEP, Outcome.DISCARD, Outcome.UNDECIDED)
            shares = [f"{outcomes[outcome] / repetitions:.3f}" for outcome in three]
            rows.append((f"{n} against {m}, {gain:g} sigma", *shares, share(each.high < gain for each in comparisons)))
    columns = ["seeds and true gain", "improves", "ruled out above X, X below 2 sigma", "not decided"]
    return write_grid([*columns, "the true gain is above X"], rows)


def drop_lost_runs(repetitions: int) -> str:
    """A method that does nothing but diverges in its worst runs, 3 seeds against 5: by the rule, and without them."""
    rows = []
    for from_ in (0.0, 0.5, 1.0):
        rng = np.random.default_rng([7, int(10 * from_)])
        crowned, without = [], []
        for _ in range(repetitions):
            ours, theirs = rng.normal(size=3), rng.normal(size=5)
            completed = ours[ours < from_]
            whole = len(completed) == len(ours)
            crowned.append(whole and improves(pair_of(ours, theirs)))
            without.append(bool(len(completed)) and improves(pair_of(completed, theirs)))
        rows.append((f"runs worse than {from_:+g} sigma diverge", share(crowned), share(without)))
    return write_grid(["a method that does nothing", "by the rule: crowned", "its lost runs left out: crowned"], rows)


#: Noise of a run in units of its scale.
Noise = Callable[[np.random.Generator], float]
NOISES: dict[str, Noise] = {
    "": lambda rng: rng.normal(),
    "t with 3 degrees of freedom": lambda rng: rng.standard_t(3),
    "one in 20 is 5 sigma off": lambda rng: rng.normal() * (5 if rng.random() < 0.05 else 1),
}


def log_text(rng: np.random.Generator, steps: int, repeats: int, gain: float, noise: Noise = NOISES[""]) -> str:
    """A greedy search, whose changes all have the gain (in sigma): the first made it, the others do nothing."""
    start = [3.28 + SIGMA * noise(rng) for _ in range(repeats)]
    rows = [f"start\t{value:.12f}\t{'discard' if row else 'keep'}\tstart" for row, value in enumerate(start)]
    best = start[0]
    for number in range(steps):
        value = 3.28 + SIGMA * (noise(rng) - gain)
        rows.append(f"c{number}\t{value:.12f}\t{'keep' if value < best else 'discard'}\tchange {number}")
        best = min(best, value)
    return "\n".join(["commit\tmetric\tstatus\tdescription", *rows]) + "\n"


def searches(repetitions: int, folder: Path) -> str:
    rows, path = [], folder / "log.tsv"
    normal = [(3, None, (0.0, 3.0, 10.0, 20.0)), (10, None, (0.0, 3.0)), (3, SIGMA, (0.0, 2.0))]
    cases = [("", *case) for case in normal]
    for noise, spread in zip(list(NOISES)[1:], (math.sqrt(3), math.sqrt(0.95 + 0.05 * 25)), strict=True):
        cases += [(noise, repeats, None, (0.0,)) for repeats in (3, 10, 30)]
        cases.append((noise, 3, spread * SIGMA, (0.0,)))
    for noise, repeats, sigma, true_gains in cases:
        for gain in true_gains:
            rng = np.random.default_rng([2, repeats, int(gain)])
            judgements = []
            terms = ComparisonTerms(higher=False, sigma=sigma)
            for _ in range(repetitions if gain == 0 else repetitions // 4):
                path.write_text(log_text(rng, 100, repeats, gain, NOISES[noise]), encoding="utf-8")
                judgements.append(judge_search(path, read_search(read_rows(path), ColumnNames()).log, terms))
            outcomes = Counter(each.outcome for each in judgements)
            naive = [_naive(each) for each in judgements]
            rows.append(
                (
                    f"{gain:g} sigma, start x {repeats}" + (", --sigma" if sigma else "") + (noise and f", {noise}"),
                    f"{np.mean([each.total for each in judgements]) / SIGMA:.2f}",
                    f"{np.median([each.selection for each in judgements]) / SIGMA:.2f}",
                    f"{outcomes[Outcome.UNDECIDED] / len(judgements):.3f}",
                    share(map(improves, judgements)),
                    share(each.p_corrected <= LOOP for each in judgements),
                    share(any(step.p_jump <= ALPHA for step in each.kept) for each in judgements),
                    share(naive),
                )
            )
    columns = ["real gain of all changes", "total gain seen, sigma", "page: by selection alone, sigma (median)"]
    columns += ["not decided", f"improves at {ALPHA:g}", f"at {LOOP:g}", "a jump is marked"]
    return write_grid([*columns, "read as one run against the start"], rows)


def _naive(judgement: SearchJudgement) -> bool:
    """Whether the last kept run is a gain, read as though it had not been selected."""
    if not judgement.kept:
        return False
    start = {str(number): value for number, value in enumerate(judgement.start_runs)}
    last = judgement.kept[-1].step.value
    assert last is not None
    alone = judge("last", {"run": last}, start, judgement.terms)
    return alone.t > 0 and alone.p <= ALPHA


def users(repetitions: int, folder: Path) -> str:
    """Users of one ledger each, who try 20 things that do nothing, one after the other, against the same baseline."""
    rows, tries, number = [], 20, max(20, repetitions // 20 * 20)
    rng = np.random.default_rng(3)
    for planned in (0, tries):
        at_once, at_the_end = [], []
        for user in range(number if not planned else number // 4):
            path = folder / f"ledger.{planned}.{user}.jsonl"
            values = {"base": {str(seed): float(value) for seed, value in enumerate(rng.normal(size=5))}}
            crowned = []
            for attempt in range(tries):
                values[f"try {attempt}"] = {str(seed): float(value) for seed, value in enumerate(rng.normal(size=3))}
                runs = {
                    key: {seed: RunEvidence(value=value) for seed, value in values[key].items()}
                    for key in ("base", f"try {attempt}")
                }
                table = Evidence(metric="loss", runs=runs)
                ledger = append(
                    path, make_entries(table, [ComparedPair(f"try {attempt}", "base")], TERMS, planned_tries=planned)
                )
                page = judge_all(table.values, "base", TERMS, tries=ledger.count_tries("base", "loss"))
                crowned.append(any(map(improves, page.values())))
            at_once.append(any(crowned))
            at_the_end.append(any(map(improves, judge_all(values, "base", TERMS, tries=len(ledger)).values())))
        rows.append(
            (
                f"{len(at_once):,} users, {tries} tries each" + (f", --planned-tries {tries}" if planned else ""),
                share(at_the_end),
                share(at_once),
            )
        )
    return write_grid(
        ["users", "one of their pages crowns, made again at the end", "one ever did, as it was made"], rows
    )


#: How a law other than the assumed one is drawn: (rng, seeds of the method, seeds of the baseline) -> both.
Law = Callable[[np.random.Generator, int, int], tuple[np.ndarray, np.ndarray]]
LAWS: dict[str, Law] = {
    "normal": lambda rng, n, m: (rng.normal(size=n), rng.normal(size=m)),
    "method spreads twice as wide": lambda rng, n, m: (2 * rng.normal(size=n), rng.normal(size=m)),
    "method spreads half as wide": lambda rng, n, m: (rng.normal(size=n) / 2, rng.normal(size=m)),
    "t with 3 degrees of freedom": lambda rng, n, m: (rng.standard_t(3, size=n), rng.standard_t(3, size=m)),
    "a tail on the worse side (exponential)": lambda rng, n, m: (rng.exponential(size=n), rng.exponential(size=m)),
    "a tail on the better side": lambda rng, n, m: (-rng.exponential(size=n), -rng.exponential(size=m)),
}


def pair_of(ours: np.ndarray, theirs: np.ndarray, terms: ComparisonTerms = TERMS) -> BaselineComparison:
    both = [{str(seed): float(value) for seed, value in enumerate(side)} for side in (ours, theirs)]
    return judge("m", both[0], both[1], terms)


def laws(repetitions: int) -> str:
    rows = []
    for law, draw in LAWS.items():
        for n, m in ((1, 5), (3, 3), (3, 5), (3, 10)):
            rng = np.random.default_rng([4, n, m])
            comparisons = [pair_of(*draw(rng, n, m)) for _ in range(repetitions)]
            rows.append(
                (
                    f"{law}, {n} against {m}",
                    share(each.p <= ALPHA for each in comparisons),
                    "none" if n == 1 else share(each.welch.p_greater <= ALPHA for each in comparisons),
                    share(each.p_face <= ALPHA for each in comparisons),
                )
            )
    return write_grid(["a method that does nothing", "pooled t (decides)", "Welch's", "sigma as known"], rows)


def pairing(repetitions: int) -> str:
    rows = []
    for n in (3, 5, 10):
        for alike in (0.0, 0.5, 0.9):
            rng = np.random.default_rng([5, n, int(10 * alike)])
            wide, none, pooled, paired = 0.0, [], [], []
            for _ in range(repetitions):
                seed, ours, theirs = rng.normal(size=(3, n))
                ours, theirs = (math.sqrt(alike) * seed + math.sqrt(1 - alike) * own for own in (ours, theirs))
                none.append(pair_of(ours, theirs).p <= ALPHA)
                wide = 1.5
                pooled.append(improves(pair_of(ours - wide, theirs)))
                paired.append(improves(pair_of(ours - wide, theirs, ComparisonTerms(higher=False, paired=True))))
            rows.append((f"{n} seeds, correlation {alike:g}", share(none), share(pooled), share(paired)))
    columns = ["the same seeds with both", f"nothing: pooled t at most {ALPHA:g}", "1.5 sigma: pooled t finds it"]
    return write_grid([*columns, "paired t finds it"], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    begin, memory = time.process_time(), Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        folder = Path(name)
        parts = [
            ("Files of methods and seeds", FILES, files(options.repetitions, folder)),
            ("What is said of a gain", GAINS, gains(options.repetitions)),
            ("Runs that are lost", LOST, drop_lost_runs(options.repetitions)),
            ("Searches of 100 changes", SEARCHES, searches(options.repetitions, folder)),
            ("Twenty tries a user", USERS, users(options.repetitions, folder)),
            ("Where the assumption does not hold", LAWS_SAID, laws(options.repetitions)),
            ("Pairs", PAIRS, pairing(options.repetitions)),
        ]
    spent = time.process_time() - begin
    head = (
        f"# Verdicts on numbers whose truth is known\n\n{describe(with_torch=False)}. {options.repetitions:,} "
        f"repetitions, {spent:.0f} s of CPU time. `python benchmarks/numbers_verdict_rates.py`\n\nPromised is "
        f"{ALPHA:g}, one-sided: that a method which does nothing is crowned (said to improve).\n"
    )
    atomic_write_text(
        options.out, head + "".join(f"\n## {title}\n\n{text}\n\n{table}\n" for title, text, table in parts)
    )
    print(options.out.read_text(encoding="utf-8"))
    return 0


FILES = (
    "Crowned is a method that is said to improve. The chance is what the page prints for 3 sigma; sigma is estimated "
    "in each file. The third column is the papers' z, corrected as here."
)
GAINS = (
    "One method, no correction. X is the upper bound of the gain that each sentence has; a method is discarded where X "
    "is below 2 sigma (as estimated). That the true gain is above X is promised at most as often as alpha."
)
LOST = (
    "3 seeds against 5, no correction. By the rule a method of which a run diverged has that as its outcome; left out "
    "is what one is tempted to do."
)
SEARCHES = (
    "Each keeps what beats the best so far. The page takes sigma from the start's runs, or from --sigma. Real gains "
    "are judged in a quarter as many logs."
)
USERS = (
    "A page is corrected for the tries up to then, and has to be made again after more: who crowns on the first page "
    "and never looks back has more errors than promised, unless the tries were announced."
)
LAWS_SAID = (
    "One method, no correction: how often the one-sided p is at most 0.025. The promise is for the first four rows."
)
PAIRS = "One method, no correction. Correlation is that of two runs with the same seed."


if __name__ == "__main__":
    run(main)

"""Every number of the paper on noise floors: the kept table's, the printed tables', or derived again by scipy alone."""

from __future__ import annotations

import csv
import io
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

from plumbline.bundle import archive

PAGE = "docs/papers/noise-floors.md"
RECORD = "records/evening-38f80c4/bundle.tar.xz"
#: Methods and level of the protocol.
M, ALPHA = 19, 0.05


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / PAGE).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text(page: str) -> str:
    return " ".join(page.split())


@pytest.fixture(scope="module")
def shares(repository: Path) -> dict[str, dict[str, str]]:
    """The rows of the table `protocol_error` in the record, by statistic, correction and seeds."""
    table = archive.read_file(repository / RECORD, "results/evening/transfer/protocol_error.csv").decode()
    return {row["protocol"]: row for row in csv.DictReader(io.StringIO(table))}


def read_rows(page: str, header: str) -> dict[tuple[str, int], list[str]]:
    """A table of the page by rule and seeds."""
    body = page.partition(f"\n| rule | seeds of the baseline | {header} |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()[1:]]
    return {(rule, int(seeds)): cells for rule, seeds, *cells in rows}


def read_printed(repository: Path, table: str) -> dict[str, dict[str, str]]:
    with open(repository / f"studies/transfer/published/{table}.csv", encoding="utf-8") as file:
        return {row["method_id"]: row for row in csv.DictReader(file)}


def read_seeds(repository: Path, method: str) -> list[float]:
    with open(repository / "studies/transfer/published/seed_values.csv", encoding="utf-8") as file:
        return [float(row["climb_avg"]) for row in csv.DictReader(file) if row["method_id"] == method]


def threshold(rule: str, n: int) -> float:
    """The |z| from which a method is called, under Bonferroni."""
    if rule == "z":
        return float(stats.norm.isf(ALPHA / M / 2))
    return float(stats.t.isf(ALPHA / M / 2, n - 1) * np.sqrt(1 + 1 / n))


def find_false_calls(least: float, n: int) -> tuple[float, float]:
    """Any method called different, and better, where none does anything: given the baseline's mean and spread the
    methods are independent. The mean by Gauss and Hermite, the spread by quantiles of its law."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    means, weights = nodes[:, None] / np.sqrt(n), weights / weights.sum()
    spreads = np.sqrt(stats.chi2.ppf((np.arange(4000) + 0.5) / 4000, n - 1) / (n - 1))
    not_better = stats.norm.cdf(means + least * spreads)
    not_called = not_better - stats.norm.cdf(means - least * spreads)
    return tuple(1 - float(weights @ (part**M).mean(axis=1)) for part in (not_called, not_better))  # type: ignore[return-value]


def find_power(gain: float, rule: str, n: int) -> float:
    """One run with a true gain against n seeds: its distance over its own error follows the noncentral t."""
    error = np.sqrt(1 + 1 / n)
    return float(stats.nct.sf(threshold(rule, n) / error, n - 1, gain / error))


CASES = [(rule, n) for rule in ("z", "t") for n in (3, 6, 10)]


def test_the_tables_are_kept_ones_and_derived_a_second_time(page: str, shares: dict[str, dict[str, str]]) -> None:
    calls = read_rows(page, "one called different | one called better")
    powers = read_rows(page, "1 spread | 3 spreads | 5 spreads | 80 % from")
    assert list(calls) == list(powers) == CASES
    for rule, n in CASES:
        row = shares[f"{'normal' if rule == 'z' else 'prediction'}_bonferroni_{n}"]
        kept = [float(row[f"prob_false_{name}"]) for name in ("difference", "improvement")]
        kept += [float(row[f"power_at_{gain}_sigma"]) for gain in (1, 3, 5)]
        *shown, least = calls[rule, n] + powers[rule, n]
        assert shown == [f"{share:.1%}" for share in kept]
        exact = [*find_false_calls(threshold(rule, n), n), *(find_power(gain, rule, n) for gain in (1, 3, 5))]
        for share, derived in zip(kept, exact, strict=True):
            assert abs(share - derived) < 4 * np.sqrt(derived * (1 - derived) / 20_000)
        found = optimize.brentq(lambda gain: find_power(gain, rule, n) - 0.8, 1, 60)  # noqa: B023
        assert least == f"{found:.1f}"


def test_its_sentences_on_errors(text: str, shares: dict[str, dict[str, str]]) -> None:
    different, better = find_false_calls(threshold("z", 3), 3)
    assert f"has {different:.1%} and {better:.1%} for the first row" in text
    assert f"different in {100 * different:.0f} % of worlds in which none does anything" in text
    assert f"calls better, in {100 * better:.0f} %; 5 % is what it promises" in text
    for correction, sentence in (("holm", "gives the same {}"), ("bh", "Hochberg {}")):
        assert sentence.format(f"{float(shares[f'normal_{correction}_3']['prob_false_difference']):.1%}") in text
    flagged, promised = find_false_calls(2.0, 3)[0], 1 - 0.95**M
    assert f"calls something in {100 * flagged:.0f} % of worlds, not in {100 * promised:.0f} %" in text
    assert (
        f"(of 19 independent tests it would be {100 * (1 - (1 - 2 * stats.norm.sf(2)) ** M):.0f} % at |z| > 2)" in text
    )
    assert f"(of {100 * better:.2f}%, {100 * better:.0f} %)" in text
    assert f"flagged falsely in {100 * promised:.0f} % of cases" in text
    assert f"is at most {100 * np.sqrt(0.25 / 20_000):.2f} %" in text and "20,000 worlds" in text
    small = 100 * find_power(1, "z", 3)
    assert f"is called better in {small:.0f} % of worlds, and where none gains anything some method is in " in text
    assert f"some method is in {100 * better:.0f} %." in text
    assert f"something in {100 * find_false_calls(threshold('z', 6), 6)[0]:.0f} % of empty worlds" in text


def test_what_either_estimate_costs(text: str) -> None:
    """One of mean and spread estimated from three seeds, the other one known."""
    least = threshold("z", 3)
    spreads = np.sqrt(stats.chi2.ppf((np.arange(4000) + 0.5) / 4000, 2) / 2)
    by_spread = 1 - ((1 - 2 * stats.norm.sf(least * spreads)) ** M).mean()
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    means, weights = nodes / np.sqrt(3), weights / weights.sum()
    by_mean = 1 - float(weights @ ((stats.norm.cdf(means + least) - stats.norm.cdf(means - least)) ** M))
    assert f"called different in {100 * by_spread:.0f} % of worlds" in text
    assert f"with three seeds' mean and the true spread in {100 * by_mean:.0f} %" in text


def test_what_heavier_tails_do(text: str) -> None:
    draws = np.random.default_rng(1)

    def call(rule: str, n: int) -> float:
        baseline, methods = draws.standard_t(3, (60_000, n)), draws.standard_t(3, (60_000, M))
        distances = abs(methods - baseline.mean(axis=1, keepdims=True)) / baseline.std(axis=1, ddof=1, keepdims=True)
        return 100 * float((distances > threshold(rule, n)).any(axis=1).mean())

    sentence = (
        r"the z of three seeds calls something in (\d+) % .*? the t of three in (\d+) %, and the t of six in (\d+) %"
    )
    stated = [int(share) for share in re.findall(sentence, text)[0]]
    assert stated == pytest.approx([call("z", 3), call("t", 3), call("t", 6)], abs=1)


def test_its_printed_numbers(repository: Path, text: str) -> None:
    z = {name: float(row["z"]) for name, row in read_printed(repository, "table2").items() if name != "baseline"}
    floor = read_printed(repository, "noise_floor")
    seeds = read_seeds(repository, "baseline")
    assert f"these three rounded numbers have {np.std(seeds, ddof=1):.5f}" in text
    assert len(z) == M and "{:.4f}, {:.4f} and {:.4f}".format(*seeds) in text
    assert f"mean {np.mean(seeds):.4f}, standard deviation {floor['baseline']['climb_avg_std']} " in text
    assert f"Softpick with z = {z['softpick']} and HybridNorm with z = {z['hybrid_norm']}" in text
    survivors = {name for name in z if abs(z[name]) >= threshold("z", 3)}
    assert len(survivors) == 7 and "Seven survive. Two are gains" in text and "Five of the seven" in text
    assert {name for name in survivors if z[name] > 0} == {"softpick", "hybrid_norm"}
    assert f"|z| from {threshold('z', 3):.2f} on" in text


def test_what_six_seeds_would_have_changed(repository: Path, text: str) -> None:
    z = {name: float(row["z"]) for name, row in read_printed(repository, "table2").items() if name != "baseline"}
    assert "has 26 runs at 1.2B; three more seeds of the baseline make 29" in text and M + 3 + 2 + 2 == 26
    three, six, ten = (threshold("t", n) for n in (3, 6, 10))
    assert f"must lie {three:.1f} estimated spreads from the mean of three seeds, {six:.1f} from that of" in text
    assert f"six, {ten:.1f} from that of ten" in text and f"from {three:.1f} spreads to {six:.1f}, for three" in text
    (low3, high3), (low6, high6) = (np.sqrt((n - 1) / stats.chi2.ppf([0.975, 0.025], n - 1)) for n in (3, 6))
    assert f"from {low3:.2f} to {high3:.1f} times the estimate, from six seeds" in text
    assert f"from six seeds from {low6:.2f} to {high6:.1f} times" in text
    called = {n: {name for name in z if abs(z[name]) >= threshold("t", n)} for n in (3, 6, 10)}
    assert called[3] == {"attnres", "ssmax", "sigmoid_attn"} and called[6] == called[3] | {"hyper"}
    assert called[10] == called[6] | {"softpick", "layerscale"}
    enough = next(n for n in itertools.count(3) if threshold("t", n) <= z["hybrid_norm"])
    assert f"HybridNorm would need {enough}." in text


def test_what_the_nine_seeds_say(repository: Path, text: str) -> None:
    floor = read_printed(repository, "noise_floor")
    spreads = np.array([float(floor[name]["climb_avg_std"]) for name in ("baseline", "qknorm", "softpick")])
    pooled = np.sqrt((spreads**2).mean())
    assert f"one spread, {pooled:.5f} with six degrees of freedom" in text
    assert f"deviations of {floor['qknorm']['climb_avg_std']} and {floor['softpick']['climb_avg_std']}" in text
    gain = np.mean(read_seeds(repository, "softpick")) - np.mean(read_seeds(repository, "baseline"))
    t = gain / (pooled * np.sqrt(2 / 3))
    assert f"t = {t:.2f} from the baseline's, which after Bonferroni is p = {M * 2 * stats.t.sf(t, 6):.3f}" in text
    # QK-Norm's mean is not printed: its Welch t is, which is its gain over the two spreads.
    of_qknorm = float(floor["qknorm"]["welch_t"]) * np.sqrt((spreads[0] ** 2 + spreads[1] ** 2) / 3)
    p = M * 2 * stats.t.sf(of_qknorm / (pooled * np.sqrt(2 / 3)), 6)
    z = float(read_printed(repository, "table2")["hybrid_norm"]["z"])
    of_one_run = M * 2 * stats.t.sf(z * spreads[0] / (pooled * np.sqrt(1 + 1 / 3)), 6)
    assert f"QK-Norm's p is {p:.2f}, and that of HybridNorm's one run {of_one_run:.2f}." in text and p > ALPHA
    printed = float(floor["softpick"]["welch_p"])
    assert f"(p = {printed} for Softpick; times 19 that is {M * printed:.2f})" in text
    freedom = 3 * M + 6 - (M + 1)
    least = stats.t.isf(ALPHA / M / 2, freedom) * np.sqrt(1 / 3 + 1 / 6)
    assert f"(63 runs), one spread is pooled over all of them: {freedom} degrees of freedom" in text
    assert f"called from {least:.1f} spreads on, not from {threshold('t', 6):.1f}" in text


def test_its_pictures_are_there(repository: Path, page: str) -> None:
    names = re.findall(r'(?:srcset|src)="\.\./_assets/(\S+?)"', page)
    assert sorted(names) == sorted(
        f"{name}{dark}.svg" for name in ("protocol_power", "protocol_thresholds") for dark in ("", "_dark")
    )
    assert all((repository / "docs/_assets" / name).is_file() for name in names)

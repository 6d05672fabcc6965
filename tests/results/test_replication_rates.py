"""How often claims would be reproduced: read, summed and shown; and the kept rates are what their checks give today."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from benchmarks.claim_rates.__main__ import STUDIES, UNDRAWN, import_study, list_undrawn_claims, write_rates
from benchmarks.claim_rates.drawn_worlds import WORLDS, count_verdicts
from plumbline.core.errors import PlumblineError
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.claims.claim_registry import ClaimChecks
from plumbline.results.claims.claim_verdicts import judge_claims, to_markdown
from plumbline.results.claims.replication_rates import COLUMNS, NONE, ClaimRates, StudyRates, read
from plumbline.specs.study_config import load
from plumbline.specs.study_folders import RATES
from plumbline.specs.yaml_files import ROOT

#: How often a study's claims are drawn again here: enough for a rate near 0 or 1 to fail, and for most.
FEW, MANY = dict.fromkeys(STUDIES, 2), dict.fromkeys(STUDIES, 25)


def some(**claims: tuple[float, float, float]) -> StudyRates:
    rates = {
        name: ClaimRates(perfect_reproduced=right, perfect_partly=partly, null_reproduced=null, null_partly=0.125)
        for name, (right, partly, null) in claims.items()
    }
    noise, late = ["loss: 0.002 nats"], {"late": "not printed"}
    return StudyRates(draws=400, seed=1, noise=noise, claims=rates, not_drawn=late, null_agrees={"two": "a level"})


def test_rates_are_read_as_they_were_written(tmp_path: Path) -> None:
    rates = some(one=(0.5, 0.25, 0.0), two=(1.0, 0.0, 1.0))
    path = write_rates(rates, tmp_path, "python -m this")
    assert read(tmp_path) == rates and "# Made by `python -m this`." in path.read_text(encoding="utf-8")
    assert read(tmp_path / "none") is NONE


def test_a_rate_that_is_no_share_is_refused(tmp_path: Path) -> None:
    path = write_rates(some(one=(0.5, 0.25, 0.0)), tmp_path, "")
    path.write_text(path.read_text(encoding="utf-8").replace("0.5000", "1.5"), encoding="utf-8")
    with pytest.raises(PlumblineError, match=rf"{RATES}: claims\.one\.perfect_reproduced: 1\.5"):
        read(tmp_path)


def test_rate_of_claim_that_paper_does_not_make_is_refused() -> None:
    claims = [SimpleNamespace(id="one")]
    evidence = SimpleNamespace(published=SimpleNamespace(directory=Path("published")), study=SimpleNamespace(code="x"))
    with pytest.raises(PlumblineError, match=r"claim.*'late'"):
        judge_claims(claims, ClaimChecks(), evidence, some(one=(1.0, 0.0, 0.0)))


def test_the_sum_says_what_a_perfect_replication_gets() -> None:
    line, noise = some(one=(0.5, 0.25, 0.0), two=(0.9, 0.15, 0.2)).summary({"one": "reproduced", "two": "partly"})
    assert "Of 2 claims" in line and "reproduces 1.4 on average and 0.4" in line
    assert "reference reproduces 0.2 and 0.2 partly" in line
    assert "here: 1 reproduced, 1 partly" in line and "400 draws" in line
    assert noise == "Drawn: loss: 0.002 nats."
    assert NONE.summary({"one": "reproduced"}) == []


def test_a_claim_without_a_rate_has_empty_cells() -> None:
    assert NONE.columns("one") == dict.fromkeys(COLUMNS, "")
    row = dict.fromkeys(("id", "text", "published", "reproduced", "verdict", "why", "nearness"), "x")
    study = SimpleNamespace(name="s", paper="", preset="paper", other_texts="")
    plain, rated = (
        to_markdown([row | rates.columns("one")], "T", study) for rates in (NONE, some(one=(0.5, 0.25, 0.0)))
    )
    assert "if the paper is right" not in plain and "paper is right" in rated and "0.500" in rated
    assert "partly if nothing differs" in rated and "0.125" in rated


@pytest.mark.parametrize("draws", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize("name", STUDIES)
def test_the_kept_rates_are_those_of_the_checks_as_they_are(name: str, draws: dict[str, int]) -> None:
    """A few fresh draws: none is so far from its kept rate as chance makes it once in a million."""
    module, stored = import_study(name), read(ROOT / "studies" / name)
    assert stored.draws >= 500 and stored.noise == module.noise and stored.not_drawn == dict(module.not_drawn)
    again = count_verdicts(module, draws[name], seed=stored.seed + 1)
    assert set(again.claims) == set(stored.claims)
    for claim, rates in again.claims.items():
        for world in WORLDS:
            for verdict in ("reproduced", "partly"):
                was = getattr(stored.claims[claim], f"{world}_{verdict}")
                count = round(getattr(rates, f"{world}_{verdict}") * again.draws)
                # Nothing that was seen in none of the draws is impossible: half a draw is added to either side.
                share = (was * stored.draws + 0.5) / (stored.draws + 1)
                assert stats.binomtest(count, again.draws, share).pvalue > 1e-6, (claim, world, verdict, was, count)


@pytest.mark.parametrize("name", STUDIES)
def test_where_nothing_differs_a_claim_comes_out_by_chance_alone(name: str) -> None:
    """In one world of twenty, and three standard errors of the draws; but for those that such a world agrees with."""
    stored = read(ROOT / "studies" / name)
    level = 0.05 + 3 * (0.05 * 0.95 / stored.draws) ** 0.5
    above = {claim for claim, rates in stored.claims.items() if rates.null_reproduced + rates.null_partly > level}
    assert above == set(stored.null_agrees) - set(stored.not_drawn)
    assert stored.null_agrees == dict(import_study(name).null_agrees)


def test_what_is_said_to_be_printed_inside_the_noise_is() -> None:
    values = {claim.id: claim.values for claim in PrintedNumbers.of("premature").claims()}
    named = [claim for claim, why in read(ROOT / "studies" / "premature").null_agrees.items() if "inside" in why]
    tasks = [claim for claim in named if claim.startswith("t2_")]
    assert set(named) - set(tasks) == {"downstream_wins", "geglu_at_least"}
    for claim in tasks:
        assert abs(values[claim]["delta_pp_mean"]) <= 2 * values[claim]["delta_pp_std"] / 3**0.5
    assert values["geglu_at_least"]["swiglu"] - values["geglu_at_least"]["geglu"] <= 2 * 0.0789
    assert stats.binom.sf(values["downstream_wins"]["wins"] - 1, values["downstream_wins"]["out_of"], 0.5) > 0.05
    sigmas = next(claim.values for claim in PrintedNumbers.of("transfer").claims() if claim.id == "sigma_three_refs")
    ratio = (sigmas["baseline"] / min(sigmas.values())) ** 2
    assert stats.f.sf(ratio, 2, 2) > 0.05


@pytest.mark.parametrize("name", list(UNDRAWN))
def test_a_study_of_which_nothing_can_be_drawn_says_so(name: str) -> None:
    stored = read(ROOT / "studies" / name)
    assert stored == list_undrawn_claims(name) and not stored.claims and len(stored.not_drawn) > 5
    assert stored.summary({}) == [f"What a perfect replication would get is not drawn: {UNDRAWN[name]}."]


def test_rows_of_table_2_are_missed_as_often_as_theory_says() -> None:
    """Derived apart from draws and checks: a new value, three new baselines, and what a row states by their mean and
    deviation. A method that is printed inside two sigmas is said not to be separated, on whichever side. Where neither
    of the two numbers agrees nothing is reproduced."""
    stored, rng, sigma, base = read(ROOT / "studies" / "transfer"), np.random.default_rng(7), 0.00208, 0.4829
    seeds = base + sigma * rng.normal(size=(200_000, 3))
    luck, mean, spread = sigma * rng.normal(size=200_000), seeds.mean(axis=1), seeds.std(axis=1, ddof=1)
    claims = {claim.id: claim.values for claim in PrintedNumbers.of("transfer").claims()}
    single = [name for name in stored.claims if name.startswith("t2_") and "z" in claims[name]]
    single = [name for name in single if name not in ("t2_qknorm", "t2_softpick")]
    assert len(single) == 17 and sum(abs(claims[name]["z"]) <= 2 for name in single) == 7
    for name in single:
        row, tolerance = claims[name], 5 * 0.5 / stored.draws**0.5
        for world, true in (("perfect", row["z"]), ("null", 0.0)):
            value = base + true * sigma + luck
            z = (value - mean) / spread
            if abs(row["z"]) <= 2:
                least = whole = abs(z) <= 2
            else:
                least = (np.sign(z) == np.sign(row["z"])) & (abs(z) > 2) & (abs(value - mean) > 0.0042)
                p = row.get("p_bonf", row.get("p_bonf_upper_bound"))
                whole = least & ((19 * 2 * stats.norm.sf(abs(z)) <= 0.05) == (p <= 0.05))
            average, delta = abs(value - row["climb_avg"]) <= 0.0042, abs(value - mean - row["delta"]) <= 0.0042
            least, whole = least & (average | delta), whole & average & delta
            reproduced, partly = (getattr(stored.claims[name], f"{world}_{word}") for word in ("reproduced", "partly"))
            assert reproduced + partly == pytest.approx(least.mean(), abs=tolerance), (name, world)
            assert reproduced == pytest.approx(whole.mean(), abs=tolerance), (name, world)


def test_sign_of_small_difference_is_missed_as_often() -> None:
    """A normal value against the mean of three: GeGLU (z +0.20) lies below them in 43 % by chance alone."""
    (signs,) = (
        one for one in load("transfer", "paper").definition["interpretations"] if one["id"] == "signs_inside_the_noise"
    )
    assert f"{100 * stats.norm.cdf(-0.20 / np.sqrt(4 / 3)):.0f} %" in signs["alternatives"][0]

"""What fits a time: the words to paste give the plan that was said, on the speed and the noise that were found."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.plan import __main__ as command
from plumbline.plan import fit, fit_page, seed_noise
from plumbline.plan.estimate import estimator
from plumbline.plan.fit_page import flow
from plumbline.plan.page import WIDTH
from plumbline.plan.targets import trial_row
from plumbline.project import Project, load
from plumbline.project.invocation import changed
from plumbline.specs.config import load_config
from tests.plan.finished import finish


def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], work: Path, *words: str) -> str:
    """What the command prints."""
    monkeypatch.setattr(sys, "argv", ["plan", *words, "--config", f"work={work}"])
    command.main()
    return capsys.readouterr().out


def pasted(page: str) -> Project:
    """The plan of the words that a page says to paste."""
    (line,) = (line for line in page.splitlines() if "snakemake" in line)
    return load(changed(load_config(), shlex.split(line.partition("--config ")[2])))


def hours(whole: Project) -> float:
    """What a plan says that its trial takes."""
    assert whole.trial is not None
    found = trial_row(estimator(whole), whole.trial)["wall_hours"]
    assert isinstance(found, float)
    return found


@pytest.mark.parametrize(
    ("time", "more", "seeds"), [("2h", (), 6), ("20min", ("--seeds", "3", "--scale", "large"), 3), ("8h", (), 6)]
)
def test_the_words_to_paste_give_the_plan_that_was_said(
    time: str, more: tuple[str, ...], seeds: int, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    page = asked(monkeypatch, capsys, tmp_path, "--fit", time, "--method", "qknorm", *more)
    whole, limit = pasted(page), fit.seconds_of(time)
    assert whole.config["work"] == str(tmp_path) and list(whole.studies) == ["transfer"]
    trial, said = whole.trial, " ".join(page.split())
    assert trial is not None and len(trial.seeds) == seeds and (trial.method, trial.against) == ("qknorm", "baseline")
    assert 0.85 * limit < 3600 * hours(whole) <= 0.9 * limit + 1
    assert f"{fit.roughly(3600 * hours(whole))} in all" in said
    train = trial.any_run.spec.train
    assert f"{seeds} seeds of each, {train.steps * train.batch_tokens / 1e6:.2f} M tokens a run" in said
    assert re.search(rf"^{trial.of} +{seeds} +{train.steps:,} ", page, flags=re.M)
    assert "Speed stated" in said and "run make quick once" in said
    assert max(len(line) for line in page.splitlines() if "snakemake" not in line) <= WIDTH


@pytest.mark.parametrize("seeds", [2, 6, 12, 40])
def test_with_more_devices_than_runs_the_proposal_still_fits(
    seeds: int, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    """One run is not spread over the devices that the others leave idle; 80 runs on 64 at once take two rounds."""
    words = ("--fit", "20h", "--method", "qknorm", "--preset", "mini", "--machine", "h100", "--seeds", str(seeds))
    whole = pasted(asked(monkeypatch, capsys, tmp_path, *words))
    found = estimator(whole)
    assert whole.trial is not None and 2 * seeds == len(whole.trial.runs)
    longest = max(found.pretrain_seconds(run) for run in whole.trial.runs.values())
    rounds = math.ceil(2 * seeds / found.machine.devices_at_once)
    assert rounds == (2 if seeds == 40 else 1)
    assert 0.85 * 20 < rounds * longest / 3600 <= 0.9 * 20 and hours(whole) <= 0.9 * 20 + 0.01


def test_the_data_work_of_the_pack_that_is_chosen_is_in_the_time(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """The pack of a short trial is there, that of the one that is proposed is not."""
    before = load(load_config() | {"studies": ["transfer"], "work": str(tmp_path)})
    there = Path(before.paths.pack_manifest(before.runs["transfer/base/baseline/s42"]))
    assert there.name == "base.json"
    there.parent.mkdir(parents=True)
    there.touch()
    whole = pasted(asked(monkeypatch, capsys, tmp_path, "--fit", "2h", "--method", "qknorm", "--scale", "base"))
    assert whole.trial is not None and whole.trial.any_run.spec.data.pack == "large"
    assert 0.8 * 7200 < 3600 * hours(whole) <= 0.9 * 7200 + 1


def test_a_gain_that_is_stated_beforehand_decides_the_seeds(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """By the pilot's 0.0338 nats: 4 seeds find 0.080 with 80 % chance, 5 find 0.068."""
    page = asked(monkeypatch, capsys, tmp_path, "--fit", "2h", "--method", "qknorm", "--gain", "0.07")
    assert "5 seeds of each" in " ".join(page.split()) and len(pasted(page).trial.seeds) == 5
    assert "ASSUMED: no two seeds of the baseline are finished here" in " ".join(page.split())
    with pytest.raises(PlumblineError, match=r"too short to resolve a gain of 0.0001 with the known"):
        asked(monkeypatch, capsys, tmp_path, "--fit", "4min", "--method", "qknorm", "--gain", "0.0001")


def test_a_method_that_is_trained_otherwise_is_named(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """One that is made to diverge would take the time and give no loss; the baseline's recipe is not worth a word."""
    words = ("--fit", "2h", "--method")
    page = " ".join(asked(monkeypatch, capsys, tmp_path, *words, "provoked_divergence").split())
    assert "is not trained by the recipe of what it is compared with: `optimizer.learning_rate` is 100.0 (base" in page
    assert "not trained by" not in asked(monkeypatch, capsys, tmp_path, *words, "qknorm")


def test_noise_and_speed_are_those_of_finished_runs(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """Of a trial that the configuration no longer names, too."""
    given = {"study": "transfer", "scale": "base", "method": "ssmax", "against": "baseline", "pack": "base"}
    given |= {"steps": 500, "warmup_steps": 9, "validation_sequences": 64, "seeds": [42, 43, 44]}
    before = load(load_config() | {"studies": ["transfer"], "work": str(tmp_path), "trial": given})
    price = estimator(before)
    for run, loss in zip(before.trial.of_method("baseline"), (4.00, 4.01, 4.02), strict=True):
        finish(before, run, seconds=2 * (price.pretrain_seconds(run) - 4), spec=run.spec.to_dict())
        (Path(before.paths.run(run, "outcome.json"))).write_text(json.dumps({"validation_loss": loss}))
    page = asked(monkeypatch, capsys, tmp_path, "--fit", "2h", "--method", "qknorm", "--scale", "base")
    said = " ".join(page.split())
    assert "Speed measured on 3 runs" in said
    assert "0.01 nats, measured here on 3 seeds of the baseline at scale base after 1.15 M tokens" in said
    assert "It resolves a gain of 0.018 nats" in said  # 1.80 sigma
    stated = asked(monkeypatch, capsys, tmp_path / "none", "--fit", "2h", "--method", "qknorm", "--scale", "base")
    slow, fast = (pasted(one).trial.any_run.spec.train.steps for one in (page, stated))
    assert slow / fast == pytest.approx(0.5, abs=0.02), "half the speed, and as much started"


def test_noise_that_is_known_at_another_scale_is_named_and_what_is_assumed_is_marked(demo: Project) -> None:
    known = seed_noise.SeedNoise(scale="base", tokens=1e6, sigma=0.01, runs=3)
    ask = fit.FitQuestion(seconds=7200, study="transfer", method="qknorm", against="baseline", gain=0.05, seeds=3)
    fitted = fit.BudgetFit(estimator=estimator(demo), asked=ask, sigmas=(known, *seed_noise.assumed(demo.root)))
    page = fit_page.terminal(dataclasses.replace(fitted, asked=dataclasses.replace(ask, scale="large")))
    assert "no two seeds of the baseline are finished here at scale large" in " ".join(page.split())
    assert "(what was measured, 0.01 nats at scale base after 1.00 M tokens, is of another" in " ".join(page.split())
    assert "so that the 0.05 that is asked for is NOT resolved" in " ".join(page.split())
    grid = fit_page.terminal(fitted).splitlines()
    assert re.search(r"\d\*$", next(line for line in grid if line.startswith("large ")))
    assert re.search(r"\d$", next(line for line in grid if line.startswith("base ")))
    none = dataclasses.replace(fitted, sigmas=())
    assert "the 0.05 that is asked for" in " ".join(fit_page.terminal(none).split())


def test_the_paste_repeats_profiles_and_what_they_and_a_file_say(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.v9+.yaml").write_text("config: [preset=mini, machine=h100]\njobs: 2\n")
    given = load_config()
    given["evaluation"] |= {"missing": "proxy", "folder": "1e5"}
    words = ("--profile", str(tmp_path / "mine"), "--configuration", json.dumps(given))
    page = asked(monkeypatch, capsys, tmp_path / "work", "--fit", "2h", "--method", "qknorm", *words)
    whole = pasted(page)
    assert f"snakemake results/trial.md --profile {tmp_path / 'mine'} --config preset=mini" in page
    assert whole.config["evaluation"] == given["evaluation"]
    assert (whole.name, whole.config["machine"], whole.config["work"]) == ("mini", "h100", str(tmp_path / "work"))
    assert "is not known" in " ".join(page.split()) and "nan " not in page, "a pack that is all of a corpus"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--fit", "1000h", "--gain", "0.001"), "no more than 64 seeds are tried, and they resolve 0.0[0-9]+ nats"),
        (("--fit", "9" * 400 + "h"), "more than ten years"),
        (("--fit", "2h", "--gain", "nan"), "--gain nan: a gain is a number"),
        (("--fit", "2h", "--gain", "inf"), "--gain inf: a gain is a number"),
        (("--fit", "2h", "--seeds", "1"), "--seeds 1: noise needs at least 2"),
        (("--fit", "2h", "--method", "qk_norm"), "^--method: .* no method 'qk_norm'; did you mean 'qknorm'"),
        (("--fit", "2h", "--baseline", "baselin"), "^--baseline: .* no method 'baselin'; did you mean 'baseline'"),
        (("--fit", "2h", "--method", "baseline"), "^--method: 'baseline' is compared with itself"),
        (("--fit", "2h", "--study", "transfr"), "^--study: there is no study 'transfr'; did you mean 'transfer'"),
        (("--fit", "2h", "--profile", "profiles/gpus"), "^cannot ask nvidia-smi .* leave out --profile profiles/gpus$"),
    ],
)
def test_what_cannot_be_fitted_is_said(
    words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.delenv("PLUMBLINE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))  # no nvidia-smi
    with pytest.raises(PlumblineError, match=says):
        asked(monkeypatch, capsys, tmp_path, "--method", "qknorm", *words)


def test_times_in_words() -> None:
    assert [fit.roughly(hours * 3600) for hours in (0.5, 2, 999.2, 1000)] == [
        "30 minutes", "2 hours", "999 hours", "1,000 hours"
    ]  # fmt: skip


def test_the_pilots_words_are_its_own(repository: Path) -> None:
    (pilot,) = seed_noise.assumed(repository)
    page = (repository / "benchmarks" / "pilot.md").read_text()
    assert "1,582,720 parameters" in page and "1.58 M parameters" in seed_noise.PILOT_WORDS
    assert "0.32 M in all" in page and pilot.tokens == 0.32e6
    assert pilot.sigma == pytest.approx(0.0338, abs=5e-5) and pilot.runs == 6


def test_the_option_that_is_compared_is_resolved_by_its_own_noise(demo: Project) -> None:
    sigmas = tuple(
        seed_noise.SeedNoise(scale="base", tokens=tokens, sigma=tokens * 1e-9, runs=3) for tokens in (1e5, 1e7)
    )
    sigmas += seed_noise.assumed(demo.root)
    ask = fit.FitQuestion(seconds=7200, study="transfer", method="qknorm", against="baseline")
    fitted = fit.BudgetFit(estimator=estimator(demo), asked=ask, sigmas=sigmas)
    found = {(one.scale, one.seeds): one for one in fitted.options()}
    assert found["base", 3].noise.tokens == 1e7, "the nearest number of tokens"
    assert found["large", 3].noise.scale == "", "of another scale nothing is known"
    assert found["base", 3].steps > found["base", 12].steps > 10
    assert found["base", 12].given["pack"] == "large" and found["base", 12].passes > 1


@pytest.mark.parametrize(("text", "seconds"), [("2h", 7200), ("1h30m", 5400), ("90 min", 5400), ("45s", 45)])
def test_times(text: str, seconds: float) -> None:
    assert fit.seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["2", "two hours", "2h of it", "0h", "1.2.3h", "-2h", ""])
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(PlumblineError, match="--fit"):
        fit.seconds_of(text)


def test_make_quick_is_a_trial_of_less_than_three_minutes(repository: Path, tmp_path: Path) -> None:
    """By the stated speed of a core, from nothing: the data stage, two at a time, and the page."""
    done = subprocess.run(["make", "-n", "quick"], cwd=repository, capture_output=True, text=True, check=True)
    (line,) = (line for line in done.stdout.splitlines() if "results/trial.md --config" in line)
    words = shlex.split(line.partition("--config ")[2])
    whole = load(changed(load_config(), [*words, f"work={tmp_path}"]))
    assert whole.trial is not None and whole.name == "demo"
    assert 50 < 3600 * hours(whole) < 120, "what is left is for Snakemake and the page"
    assert flow(whole.config["trial"]) == words[-1].partition("=")[2] and not math.isnan(hours(whole))

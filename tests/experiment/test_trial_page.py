"""The page of a trial: its size, each run's loss, the difference, what the seeds can find; and a csv for a verdict."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from plumbline import project
from plumbline.experiment import trial_page
from plumbline.experiment.__main__ import main as verdict
from plumbline.results.runs.expected_runs import ExpectedRun
from plumbline.results.runs.finished_runs import RunFrames, load
from plumbline.specs.config import load_config

GIVEN = {"study": "transfer", "scale": "base", "method": "qknorm", "against": "baseline", "pack": "base", "steps": 60}
GIVEN |= {"warmup_steps": 3, "validation_sequences": 64, "seeds": [42, 43, 44]}
NULL = {"baseline": [6.10, 6.14, 6.12], "qknorm": [6.11, 6.13, 6.09]}
GAIN = {"baseline": [6.10, 6.14, 6.12], "qknorm": [5.90, 5.94, 5.92]}


@pytest.fixture
def whole(tmp_path: Path) -> project.Project:
    return project.load(load_config() | {"studies": ["transfer"], "work": str(tmp_path / "work"), "trial": GIVEN})


def frames(whole: project.Project, losses: dict[str, list[float]]) -> RunFrames:
    """What the runs leave; infinite: the run diverged."""
    for key, run in whole.trial.runs.items():
        loss = losses[run.spec.method][run.spec.init_seed - 42]
        folder = Path(whole.paths.work) / "runs" / key
        folder.mkdir(parents=True)
        known = {"outcome": "completed", "validation_loss": loss}
        known = known if math.isfinite(loss) else {"outcome": "diverged", "validation_loss": None}
        (folder / "outcome.json").write_text(json.dumps(known | {"run_id": run.spec.run_id}))
        manifest = {"run_id": run.spec.run_id, "parameters": 1_200_000, "spec": run.spec.to_dict()}
        (folder / "manifest.json").write_text(json.dumps(manifest))
    expected = [ExpectedRun(key=key, run_id=run.spec.run_id) for key, run in whole.trial.runs.items()]
    return load(expected, whole.paths.work, scores=False)


def test_a_page_names_its_size_the_losses_and_what_they_can_find(whole: project.Project) -> None:
    text = trial_page.markdown(whole.trial, frames(whole, NULL), Path("results/demo/trial/x.csv"))
    said = " ".join(text.split())
    assert text.startswith("# A first look, not a verdict: QK-Norm against Baseline\n")
    assert "Preset demo, study transfer, scale base (1.2M parameters): 60 steps of 2,304 tokens, 138,240 tokens" in said
    for loss in (*NULL["baseline"], *NULL["qknorm"]):
        assert f"{loss:.4f}" in text
    # 6.11 - 6.12, sigma 0.02 in both: t = -0.61 with 4 degrees of freedom; 3.07 sigma are found with 80 % chance.
    assert "QK-Norm minus Baseline: -0.010 nats, 95 % interval -0.055 to +0.035" in said
    assert "p = 0.57" in said and "With these seeds the two are not distinguishable." in said
    assert "3 seeds of each find a gain of 0.061 with 80 % chance" in said
    assert max(len(line) for line in text.splitlines() if line[:1] not in ("|", " ")) <= trial_page.WIDTH


def test_what_seeds_tell_apart_is_said_with_its_direction(whole: project.Project) -> None:
    text = " ".join(trial_page.markdown(whole.trial, frames(whole, GAIN), Path("x.csv")).split())
    assert (
        "QK-Norm minus Baseline: -0.200 nats" in text and "With these seeds the two differ: QK-Norm is better." in text
    )


def test_another_recipe_than_the_baselines_is_named(tmp_path: Path) -> None:
    given = GIVEN | {"method": "provoked_divergence"}
    other = project.load(load_config() | {"studies": ["transfer"], "work": str(tmp_path / "work"), "trial": given})
    text = trial_page.markdown(
        other.trial, frames(other, NULL | {"provoked_divergence": [math.inf] * 3}), Path("x.csv")
    )
    assert "is not trained by that recipe: `optimizer.learning_rate` is 100.0 (baseline: 0" in " ".join(text.split())


def test_a_run_that_diverged_is_no_loss_and_no_difference(whole: project.Project) -> None:
    read = frames(whole, NULL | {"qknorm": [6.11, math.inf, 6.09]})
    text = " ".join(trial_page.markdown(whole.trial, read, Path("x.csv")).split())
    assert "Without a loss (diverged): 1 of QK-Norm." in text and "no loss" in text
    assert "minus Baseline" not in text
    assert list(trial_page.rows(whole.trial, read)["outcome"]) == ["completed"] * 4 + ["diverged", "completed"]


def test_the_csv_is_what_a_verdict_reads(whole: project.Project, tmp_path: Path) -> None:
    """The command that the page names, on the file beside it."""
    csv, read = tmp_path / "x.csv", frames(whole, GAIN)
    trial_page.rows(whole.trial, read).to_csv(csv, index=False)
    (command,) = (
        line for line in trial_page.markdown(whole.trial, read, csv).splitlines() if "plumbline.experiment" in line
    )
    assert verdict(command.split()[3:]) == 0
    assert "`qknorm` survives" in csv.with_suffix(".verdict.md").read_text()

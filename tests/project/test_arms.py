"""Arms that are runs of the DAG: what Snakemake is called for, and what is read of a run that was not made."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from plumbline import project
from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.project import arms as arms_
from plumbline.project.arms import StudyArms
from plumbline.project.config_arguments import change_config
from plumbline.specs.yaml_files import load_config
from plumbline.verdict.decision.experiment import BASELINE, CRASHED, DIVERGED, FINISHED
from plumbline.verdict.evidence import CRASH

ASKED = {"study": "transfer", "scale": "base", "method": "softpick", "against": "baseline"}


@pytest.fixture
def arms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyArms:
    config = load_config() | {"preset": "smoke", "studies": ["transfer"], "work": str(tmp_path / "work")}
    loaded = project.load(config)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(arms_, "call", lambda command: 1)
    return StudyArms(project=loaded, settings=ASKED, candidate="softpick")


def finish(arms: StudyArms, arm: str, seed: int, **outcome: object) -> None:
    folder = arms.folder(arm, seed)
    folder.mkdir(parents=True)
    facts = {"run_id": arms.run_id(arm, seed), "outcome": "completed", "validation_loss": 3.5} | outcome
    (folder / "outcome.json").write_text(json.dumps(facts))
    (folder / "manifest.json").write_text(json.dumps({"wall_seconds": 2.0, "packages": {"torch": "2"}}))


def write_log(arms: StudyArms, seed: int, text: str) -> None:
    log = Path("logs/smoke/pretrain") / f"transfer.base.softpick.s{seed}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text)


def test_what_snakemake_is_asked_for_puts_these_runs_into_dag(arms: StudyArms) -> None:
    settings = arms.configuration([(BASELINE, 42), ("softpick", 1042)])
    again = project.load(change_config(load_config(), shlex.split(shlex.join(settings))))
    assert again.experiment is not None and again.name == "smoke"
    ids = [run.spec.run_id for run in again.experiment.runs.values()]
    assert ids == [arms.run_id(BASELINE, 42), arms.run_id("softpick", 1042)]


def test_the_size_that_a_sentence_says_is_that_of_the_runs(arms: StudyArms) -> None:
    train = arms.spec_of("softpick", 1).train
    budget = f"{train.steps} steps of {train.batch_tokens:,} tokens"
    assert arms.size == f"80k parameters and {budget} (preset smoke)"


def test_a_finished_run_is_read_and_one_of_another_spec_is_not(arms: StudyArms) -> None:
    finish(arms, BASELINE, 42)
    finish(arms, BASELINE, 43, outcome="diverged", validation_loss=None, reason="loss is NaN")
    finish(arms, BASELINE, 44, run_id="of another recipe")
    whole, diverged = arms.read(BASELINE, 42), arms.read(BASELINE, 43)
    assert whole is not None and (whole.value, whole.outcome, whole.seconds) == (3.5, FINISHED, 2.0)
    assert diverged is not None and (diverged.outcome, diverged.why) == (DIVERGED, "loss is NaN")
    manifest = {"wall_seconds": 2.0, "tokens": 4608, "parameters": 80_000, "started": "2026-01-01T00:00:00Z"}
    (arms.folder(BASELINE, 42) / "manifest.json").write_text(json.dumps(manifest))
    evidence = arms.evidence(whole)
    assert {key: getattr(evidence, key) for key in ("value", "seconds", "tokens", "parameters", "memory_bytes")} == {
        "value": 3.5, "seconds": 2.0, "tokens": 4608, "parameters": 80_000, "memory_bytes": None,
    }  # fmt: skip
    lost = arms.evidence(diverged)
    assert (lost.value, lost.status, lost.word, lost.seed) == (None, CRASH, "diverged", "43")
    assert arms.read(BASELINE, 44) is None and arms.read(BASELINE, 45) is None


def test_an_outcome_that_was_edited_is_refused(arms: StudyArms) -> None:
    finish(arms, BASELINE, 42)
    folder = arms.folder(BASELINE, 42)
    files = {"outcome.json": {"sha256": sha256_file(folder / "outcome.json")}}
    spec = arms.spec_of(BASELINE, 42).to_dict()
    fingerprint_file.write_facts(
        folder / "manifest.json", {"run_id": arms.run_id(BASELINE, 42), "spec": spec, "files": files}
    )
    whole = arms.read(BASELINE, 42)
    assert whole is not None and whole.value == 3.5
    (folder / "outcome.json").write_text((folder / "outcome.json").read_text().replace("3.5", "1.0"))
    with pytest.raises(PlumblineError, match=r"outcome\.json.*trainer"):
        arms.read(BASELINE, 42)


def test_a_run_that_ends_in_a_traceback_is_its_arms_own_crash(arms: StudyArms) -> None:
    finish(arms, BASELINE, 42)
    write_log(arms, 1042, "step 3\nTraceback (most recent call last):\nValueError: 7 heads\n")
    theirs, ours = arms.run([(BASELINE, 42), ("softpick", 1042)])
    assert theirs.value == 3.5 and ours.outcome == CRASHED and "ValueError: 7 heads" in ours.why


@pytest.mark.parametrize(
    "text",
    [
        "",
        "error: work/x: no disk space to write it (No space left on device); free some\n",
        "OSError: [Errno 28] No space left on device: 'x'\n",
    ],
    ids=["no log", "a full disk, said", "a full disk, not caught"],
)
def test_what_is_not_the_candidates_fault_is_an_error(arms: StudyArms, text: str) -> None:
    if text:
        write_log(arms, 1042, text)
    with pytest.raises(PlumblineError, match=r"transfer/base/softpick/s1042 was not made"):
        list(arms.run([("softpick", 1042)]))

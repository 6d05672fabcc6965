"""What a dry run says by itself, what Snakemake said, and what SLURM is asked."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.operate.check import beforehand, cluster
from plumbline.operate.check.planned import Job, Planned, _sentence
from tests.operate.check.made import ITEMS, LOCAL, TEXTS, TRAIN, evaluation, fetch, planned, program, said


def snakemakes(*jobs: Job, account: str = "") -> list[Any]:
    resources = {"slurm_account": account} if account else {}
    return [
        SimpleNamespace(rule=SimpleNamespace(name=job.rule), wildcards=job.wildcards, resources=resources)
        for job in jobs
    ]


def test_a_dry_run_refuses_all_missing_folders_where_they_are_needed(root: Path) -> None:
    from snakemake.exceptions import ApiError

    of = planned(root, **LOCAL, **evaluation(source="local")).plan
    with pytest.raises(ApiError, match=r"(?s)climbmix.yaml: local.folder: missing; .*\n.*evaluation.folder: empty"):
        beforehand.look(of, snakemakes(TEXTS, ITEMS))
    beforehand.look(of, snakemakes(Job(rule="audit"), TRAIN))


def test_a_dry_run_warns_of_what_another_machine_may_have(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of = planned(root, data={"source": "packaged_large"}).plan
    beforehand.look(of, snakemakes(Job(rule="audit"), account="physics"))
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("PATH", str(root))
    beforehand.look(of, snakemakes(TEXTS, fetch("anarchism"), account="plumbline"))
    words = capsys.readouterr().err
    assert "there is no apt-get here" in words and "install the package dpkg" in words
    assert "slurm_account: 'plumbline' is a placeholder; put your account" in words
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    beforehand.look(planned(root, data={"source": "hub"}).plan, snakemakes(TEXTS))
    assert "climbmix.yaml: hub.path: read from the hub, and HF_HUB_OFFLINE=1 forbids that" in capsys.readouterr().err


def test_snakemakes_sentence_is_found_among_its_words() -> None:
    refusal = (
        'Building DAG\nWorkflowError in file "common.smk", line 17:\nconfig.yaml: work: is no path\n  of any kind\n'
    )
    assert _sentence(refusal) == "config.yaml: work: is no path of any kind"
    of_a_job = "InputException in rule a, line 2:\nError:\n  PlumblineError: nothing makes x\nWildcards:\n a=b\n"
    assert _sentence(of_a_job) == "nothing makes x"
    assert _sentence("usage: snakemake\n\nsnakemake: error: unknown option\n") == "snakemake: error: unknown option"


@pytest.fixture
def site(repository: Path, root: Path, programs: Path) -> Path:
    """The profile of the repository and one's own; `bin` is all of PATH."""
    (root / "profiles").symlink_to(repository / "profiles")
    (root / "my-site").mkdir()
    return programs


def on_slurm(root: Path, account: str) -> Planned:
    mine = f"default-resources:\n  slurm_account: {account}\n  slurm_partition: all\n  mem_mb: 8000\n"
    (root / "my-site/config.v9+.yaml").write_text(mine)
    of = planned(root, TRAIN, executor="slurm", account=account, preset="paper", machine="h100")
    files = tuple(root / name / "config.v9+.yaml" for name in ("profiles/slurm", "my-site"))
    return dataclasses.replace(of, profiles=files)


def test_without_sbatch_the_account_alone_is_judged(root: Path, site: Path) -> None:
    words = said(cluster.look(on_slurm(root, "plumbline")), "would stop")
    assert "there is no sbatch here" in words and "'plumbline' is a placeholder" in words
    assert len(cluster.look(on_slurm(root, "physics"))) == 1
    assert cluster.look(on_slurm(root, ""))[1].state == "note"
    assert cluster.look(planned(root, TRAIN)) == [], "no cluster, no question"


def test_slurm_is_asked_about_every_kind_of_job(root: Path, site: Path) -> None:
    program(site, "scontrol", "echo 'MinJobAge = 300 sec'; echo 'AccountingStoreFlags = job_comment'")
    program(site, "sbatch", "echo 'sbatch: Job 7 to start at noon' >&2")
    found = cluster.look(on_slurm(root, "physics"))
    assert "SLURM: pretrain two_nodes: Job 7 to start at noon" in said(found, "ok") and len(found) >= 7
    program(site, "sbatch", "echo 'sbatch: error: Invalid account' >&2; exit 1")
    words = said(cluster.look(on_slurm(root, "plumbline")), "would stop")
    assert "refuses slurm_account plumbline, slurm_partition all, runtime 1440" in words
    assert words.count("is a placeholder") == 1
    program(site, "scontrol", "echo 'MinJobAge = 60 sec'; echo 'AccountingStoreFlags = job_comment'")
    assert "MinJobAge is 60 s" in cluster.look(on_slurm(root, "physics"))[-1].words

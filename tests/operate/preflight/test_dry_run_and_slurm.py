"""What a dry run states by itself, what Snakemake printed, and what SLURM is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.operate.preflight import before_first_job, cluster
from plumbline.operate.preflight.dry_run import DryRun, JobToRun, _extract_refusal
from tests.operate.preflight.made_up_plans import ITEMS, LOCAL, TEXTS, TRAIN, dry_run, evaluation, fetch, join, program


def snakemakes(*jobs: JobToRun, account: str = "") -> list[Any]:
    resources = {"slurm_account": account} if account else {}
    return [
        SimpleNamespace(
            rule=SimpleNamespace(name=job.rule),
            wildcards=job.wildcards,
            resources=resources,
            input=[],
            output=[],
            log=[],
        )
        for job in jobs
    ]


def test_dry_run_refuses_all_missing_folders(root: Path) -> None:
    from snakemake.exceptions import ApiError

    of = dry_run(root, **LOCAL, **evaluation(source="local")).project
    with pytest.raises(ApiError, match=r"(?s)climbmix.yaml: local.folder: missing; .*\n.*evaluation.folder: empty"):
        before_first_job.check(of, snakemakes(TEXTS, ITEMS))
    before_first_job.check(of, snakemakes(JobToRun(rule="audit"), TRAIN))


def test_a_dry_run_warns_of_what_another_machine_may_have(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of = dry_run(root, data={"source": "packaged_large"}).project
    before_first_job.check(of, snakemakes(JobToRun(rule="audit"), account="physics"))
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("PATH", str(root))
    before_first_job.check(of, snakemakes(TEXTS, fetch("anarchism"), account="plumbline"))
    message = capsys.readouterr().err
    assert "apt-get is not installed" in message and "install the package dpkg" in message
    assert "slurm_account: 'plumbline'" in message
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    before_first_job.check(dry_run(root, data={"source": "hub"}).project, snakemakes(TEXTS))
    assert "climbmix.yaml: hub.path: read" in capsys.readouterr().err


def test_snakemakes_sentence_is_found_among_its_words() -> None:
    refusal = (
        'Building DAG\nWorkflowError in file "common.smk", line 17:\nconfig.yaml: work: is no path\n  of any kind\n'
    )
    assert _extract_refusal("Building DAG\nerror: nothing makes x;\n  make y\n") == "nothing makes x; make y"
    assert _extract_refusal(refusal) == "config.yaml: work: is no path of any kind"
    of_a_job = "InputException in rule a, line 2:\nError:\n  PlumblineError: nothing makes x\nWildcards:\n a=b\n"
    assert _extract_refusal(of_a_job) == "nothing makes x"
    assert (
        _extract_refusal("usage: snakemake\n\nsnakemake: error: unknown option\n") == "snakemake: error: unknown option"
    )
    of_a_profile = "snakemake: error: Couldn't parse config file: PlumblineError: nvidia-smi names no GPU; name them\n"
    assert _extract_refusal(of_a_profile) == "nvidia-smi names no GPU; name them"


def on_slurm(root: Path, account: str) -> DryRun:
    """Two trainings and an audit that are requested of SLURM, and a copy that is made where Snakemake is."""
    of_all = {"slurm_account": account, "slurm_partition": "all", "mem_mb": 8000, "threads": 1}
    train = of_all | {"nodes": 2, "gres": "gpu:8", "threads": 64, "launch": "srun"}
    jobs = [
        JobToRun(
            rule="pretrain", wildcards=TRAIN.wildcards | {"method": method}, resources=train | {"runtime": minutes}
        )
        for method, minutes in (("baseline", 95), ("softpick", 130))
    ]
    jobs += [JobToRun(rule="audit", resources=of_all | {"runtime": 120, "gres": ""}), JobToRun(rule="copy_page")]
    return dry_run(root, *jobs, executor="slurm", account=account)


def test_without_sbatch_the_account_alone_is_judged(root: Path, programs: Path) -> None:
    message = join(cluster.check(on_slurm(root, "plumbline")), "would stop")
    assert "no sbatch here" in message and "'plumbline' is a placeholder" in message
    assert len(cluster.check(on_slurm(root, "physics"))) == 1
    assert cluster.check(on_slurm(root, ""))[1].state == "note"
    assert cluster.check(dry_run(root, TRAIN)) == [], "no cluster, no question"


def test_slurm_is_asked_about_the_longest_job_of_each_kind(root: Path, programs: Path) -> None:
    """It was asked about all that a profile has, each for a whole slice, though the plan had less of both."""
    program(programs, "scontrol", "echo 'MinJobAge = 300 sec'; echo 'AccountingStoreFlags = job_comment'")
    program(programs, "sbatch", f'echo "$*" >> {root}/asked; echo "sbatch: Job 7 to start at noon" >&2')
    text = join(cluster.check(on_slurm(root, "physics")), "ok")
    assert "2 x gpu:8: 2 to do, 130" in text
    assert sorted((root / "asked").read_text().splitlines()) == [
        "--test-only --account=physics --partition=all --time=120 --mem=8000 --cpus-per-task=1 --wrap=true",
        "--test-only --account=physics --partition=all --time=130 --mem=8000 --nodes=2 --gres=gpu:8 "
        "--cpus-per-task=64 --ntasks=2 --wrap=true",
    ]
    program(programs, "sbatch", "echo 'sbatch: error: Invalid account' >&2; exit 1")
    text = join(cluster.check(on_slurm(root, "plumbline")), "would stop")
    assert "audit: refuses slurm_account plumbline, slurm_partition all, mem_mb 8000" in text
    assert text.count("Invalid account") == 1 and text.count("is a placeholder") == 1
    program(programs, "scontrol", "echo 'MinJobAge = 60 sec'; echo 'AccountingStoreFlags = job_comment'")
    assert "MinJobAge is 60 s" in cluster.check(on_slurm(root, "physics"))[-1].message


def test_a_partition_that_is_not_there_is_not_the_accounts_fault(root: Path, programs: Path) -> None:
    """As SLURM answers where accounts are bound to partitions."""
    program(programs, "sbatch", f'echo "$*" >> {root}/asked; echo "sbatch: error: Invalid account" >&2; exit 1')
    program(programs, "scontrol", "echo 'MinJobAge = 300 sec'; echo 'AccountingStoreFlags = job_comment'")
    program(programs, "sinfo", "printf 'alls\\ncpus\\n'")
    plan = on_slurm(root, "physics")
    text = join(cluster.check(plan), "would stop")
    assert text.count("no partition 'all'") == 1 and "alls cpus" in text and "account" not in text
    assert "pretrain 2 x gpu:8, audit" in text and not (root / "asked").exists()
    program(programs, "sinfo", "printf 'all\\ncpus\\n'")
    assert "Invalid account" in join(cluster.check(plan), "would stop")
    program(programs, "sinfo", "echo nothing; exit 1")
    assert "Invalid account" in join(cluster.check(plan), "would stop")
    program(programs, "sinfo", "printf 'cpus\\n'")
    program(programs, "sbatch", "echo 'sbatch: Job 7 to start at noon' >&2")
    jobs = [replace(job, resources=job.resources | {"slurm_partition": "cpus"}) for job in plan.jobs if job.resources]
    assert "2 to do" in join(cluster.check(replace(plan, jobs=jobs)), "ok"), "each partition for itself"


def test_paths_that_slurm_does_not_carry(root: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Snakemake writes them there as they are: each job ended with a syntax error of the shell, and was tried again."""
    program(programs, "sbatch", "echo 'sbatch: Job 7 to start at noon' >&2")
    program(programs, "scontrol", "true")
    plan = on_slurm(root, "physics")
    odd = root / "a b'c\"d"
    odd.mkdir()
    plan = replace(plan, project=replace(plan.project, root=odd))
    monkeypatch.setattr("sys.executable", "/home/ann/my project/.venv/bin/python")
    messages = {result.subject: result.message for result in cluster.check(plan) if result.state == "would stop"}
    assert "a b'c\"d: SLURM's jobs" in messages["SLURM: folder"]
    assert "project/.venv/bin/python: SLURM's jobs are started" in messages["SLURM: interpreter"]
    from snakemake.exceptions import ApiError

    with pytest.raises(ApiError, match=r"no folder.*quotation"):
        before_first_job.check(plan.project, snakemakes(JobToRun(rule="audit"), account="physics"))
    before_first_job.check(plan.project, snakemakes(JobToRun(rule="audit")))
    assert all(cluster.check_paths(Path(name)) for name in ("/a\tb", "/a\nb", "/50%users"))

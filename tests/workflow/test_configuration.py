"""What a user may write into a configuration: it is kept, quoted, or reported in a sentence before anything runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.project_copy import STUDY, Project, jobs_by_rule

pytestmark = pytest.mark.workflow

#: A folder that a shell would take apart: spaces, brackets, an end of command, a job in the background; and an umlaut.
ODD = "Läufe (2); x & y#z"

#: How rules launch their jobs where the machine is this one.
WARM = " -m plumbline.operate.prefork.client"


@pytest.fixture(scope="module")
def project(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project.copy(repository, tmp_path_factory.mktemp("configuration") / "project")
    project.local_corpus()
    return project


@pytest.mark.parametrize(
    ("args", "folder"), [(("work=elsewhere",), "elsewhere/paper"), (("preset=mini", "-C", "work=w"), "w/mini")]
)
def test_a_cluster_profile_keeps_what_is_not_named(project: Project, args: tuple[str, ...], folder: str) -> None:
    """`work=...` alone had planned 66 jobs of the preset demo for the cluster, `preset=mini` for another machine; a
    `--set-resources` of one rule had trained without a GPU."""
    targets = (f"{folder}/runs/transfer/base/softpick/s42/outcome.json", "plan")
    more = ("--set-resources", "tokenizer:mem_mb=20000", "-p")
    process = project.snakemake("-n", *targets, "--profile", "slurm", *more, "--config", *args)
    assert process.returncode == 0, process.stdout[-3000:]
    assert jobs_by_rule(process.stdout)["pretrain"] == 1
    assert "mem_mb=20000" in process.stdout and re.search(
        r"^Shell command: exec srun .*--gres=gpu:\d", process.stdout, re.M
    )
    assert '"machine": "h100"' in process.stdout.replace("\\", "")


def test_a_job_of_a_cluster_is_given_all_of_it(project: Project, tmp_path: Path) -> None:
    """SLURM's commands are stand-ins; `sbatch` notes its arguments, and takes nothing."""
    answers = {"sacctmgr": "echo plumbline", "sinfo": "echo 'cpu*'", "squeue": "true", "sacct": "true"}
    answers |= {"sshare": "echo plumbline", "scontrol": "true", "scancel": "true"}
    answers["sbatch"] = f"printf '%s\\n' \"$@\" > {shlex.quote(str(tmp_path / 'asked'))}; exit 1"
    for name, answer in answers.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / name).chmod(0o755)
    # The executor's first look at its jobs comes after forty seconds, and it ends no sooner.
    impatient = ("--retries", "0", "--slurm-init-seconds-before-status-checks", "1")
    arguments = ("results/paper/audit.csv", "--profile", "slurm", *impatient, "--config", f"work={ODD}")
    process = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments],
        cwd=project.root,
        env=project.environment | {"PATH": f"{tmp_path}{os.pathsep}{project.environment['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert (tmp_path / "asked").exists(), process.stdout + process.stderr
    command = shlex.split((tmp_path / "asked").read_text().partition("--wrap=")[2])
    passed_options = command[command.index("--config") + 1 :][:3]
    assert passed_options == ["preset=paper", "machine=h100", f"work={ODD}"]


def test_what_a_shell_would_carry_out_is_refused(project: Project) -> None:
    process = project.snakemake("-n", "results/audit.csv", "--config", "work=w$(touch X)")
    assert process.returncode == 1 and "Traceback" not in process.stdout
    assert "work: 'w$(touch X)'" in process.stdout
    assert not (project.root / "X").exists()


def test_an_odd_folder_from_texts_to_packs(project: Project) -> None:
    """Every rule of the chain reads and writes files there, benchmarks included."""
    packs = f"{ODD}/smoke/corpora/climbmix/packs/context64/validation"
    process = project.snakemake(packs, "--config", "preset=smoke", "data={source: local}", f"work={ODD}")
    assert process.returncode == 0, process.stdout[-4000:]
    assert (project.root / packs / "validation.json").exists()
    assert len(list((project.root / ODD / "smoke/benchmarks").rglob("*.jsonl"))) == 5
    assert f"--out '{packs}'" in process.stdout


def test_the_rest_of_the_rules_quote_it_too(project: Project) -> None:
    targets = ("results/table2.csv", f"{ODD}/smoke/probes/transfer/base/baseline/s42/probes.parquet")
    process = project.snakemake("-n", *targets, "--config", "preset=smoke", "data={source: local}", f"work={ODD}")
    assert process.returncode == 0, process.stdout[-3000:]
    lines = re.findall(r"^Shell command: (exec .*)$", process.stdout, flags=re.M)
    assert len({line.replace(WARM, "").split(" -m ")[1].split()[0] for line in lines}) >= 8
    for line in lines:
        assert not re.search(r"[;#&()]", " ".join(shlex.split(line.replace(ODD, "odd"))).replace("2>&1", "")), line
        subprocess.run(["bash", "-n", "-c", line], check=True)
        assert line.count(ODD) == sum(word.count(ODD) for word in shlex.split(line, comments=True)), line


def test_a_table_of_many_runs_in_a_deep_folder_has_a_command(project: Project) -> None:
    """`E2BIG` before: the shell line of a rule is one word of a command line, of 128 KiB at most."""
    target, work = "results/smoke/transfer/table2.csv", "/".join(["w" * 200] * 5)

    def change(content: dict) -> None:
        content["runs"]["base"] = [{"scale": "base", "methods": "all", "seeds": list(range(42, 50))}]

    with project.changed(change, STUDY):
        process = project.snakemake("-n", target, "--config", "preset=smoke", "studies=[transfer]", f"work={work}")
        assert process.returncode == 0, process.stdout[-3000:]
        assert jobs_by_rule(process.stdout)["pretrain"] * len(work) > 128 * 1024
        table = rf"^Shell command: (exec python{WARM} -m plumbline.results table .*)$"
        line = re.search(table, process.stdout, flags=re.M)[1]
        (project.root / "logs/smoke/table").mkdir(parents=True, exist_ok=True)
        result = subprocess.run(["bash", "-c", line], cwd=project.root, env=project.environment)
    log = (project.root / "logs/smoke/table/transfer.table2.log").read_text()
    assert result.returncode == 0 and target in log, log


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ("results/table22.csv",),
            "nothing makes results/table22.csv at preset demo; did you mean 'results/table2.csv'",
        ),
        (
            ("-n", "work/demo/runs/transfer/base/baselin/s42/outcome.json"),
            "transfer/base/baselin/s42; did you mean 'transfer/base/baseline/s42'",
        ),
        (("smoke",), "the target `smoke`"),
    ],
    ids=["target", "run", "rule"],
)
def test_of_a_mistake_the_sentence_alone_is_said(project: Project, args: tuple[str, ...], message: str) -> None:
    """`snakemake.exceptions.InputFunctionException`, a traceback and lines of Plumbline's own files stood around it."""
    process = project.python("-m", "snakemake", *args)
    [sentence] = re.findall(r"^error: .*", process.stdout, re.M)
    assert process.returncode == 1 and message in sentence and process.stdout.endswith(f"{sentence}\n")
    assert not re.search(r"Exception|WorkflowError|Traceback|File ", process.stdout), process.stdout


def test_config_yaml_is_read_with_the_same_care(project: Project) -> None:
    path = project.root / "config/config.yaml"
    before = path.read_text()
    path.write_text(f"{before}work: elsewhere\n")
    process = project.snakemake("-n", "results/audit.csv")
    path.write_text(before)
    assert process.returncode == 1 and "Traceback" not in process.stdout, process.stdout[-1500:]
    assert re.search(r"config/config.yaml:\d+: the key 'work' is there twice", process.stdout), process.stdout[-1500:]

"""What would stop a run, by real Snakemakes: the verb, the dry run, and the commands that docs name for a cluster."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.operate.preflight.made_up_plans import program
from tests.workflow.project_copy import Project, jobs_by_rule

pytestmark = pytest.mark.workflow

RUN = "work/smoke/runs/transfer/base/baseline/s42/outcome.json"
HERE = ("--config", "preset=smoke", "data={source: local}")


@pytest.fixture(scope="module")
def project(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.copy(repository, tmp_path_factory.mktemp("before") / "project")


def test_a_folder_that_is_not_there_stops_what_needs_it_alone(project: Project) -> None:
    """A job failed before, after whatever came first; without a folder, an unrelated target was refused too."""
    unnamed = project.snakemake("-n", RUN, *HERE)
    assert unnamed.returncode == 1 and "climbmix.yaml: local.folder: missing; data.source" in unnamed.stdout
    assert jobs_by_rule(project.snakemake("-n", "results/audit.csv", *HERE).stdout) == {"audit": 1, "copy_page": 1}
    project.edit("config/corpora/climbmix.yaml", 'local: {folder: ""}', "local: {folder: texts}")
    message = "config/corpora/climbmix.yaml: local.folder: texts is not there"
    process = project.snakemake(RUN, *HERE)
    assert process.returncode == 1 and message in process.stdout, process.stdout[-2000:]
    assert "Traceback" not in process.stdout and "File " not in process.stdout.partition(message)[2]
    assert not (project.root / "work").exists()
    checked = project.python("-m", "plumbline.operate.preflight", RUN, *HERE)
    assert checked.returncode == 1
    assert re.search(rf"^would stop +texts of climbmix +{message}", checked.stdout, re.M), checked.stdout
    assert checked.stdout.endswith("1 of 7 would stop the run\n")
    project.edit("config/corpora/climbmix.yaml", "local: {folder: texts}", 'local: {folder: ""}')
    refused = project.python("-m", "plumbline.operate.preflight", "results/tabel2.csv")
    assert refused.returncode == 1
    assert re.search(r"^would stop +plan +nothing makes .*did you mean 'results/table2.csv'\?", refused.stdout, re.M)


def test_nothing_in_the_way(project: Project) -> None:
    project.local_corpus()
    process = project.python("-m", "plumbline.operate.preflight", RUN, *HERE)
    assert process.returncode == 0, process.stdout
    lines = process.stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["ok"] * 7 and "1 of pretrain" in lines[0]
    assert lines[-1] == "nothing that can be checked from here would stop it"
    assert not (project.root / "work").exists(), "looking makes nothing"


def test_what_docs_say_to_do_before_a_run_on_a_cluster(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps 3 to 5 of docs/on-your-cluster.md with its own overlay: of the preset and the machine of the profile."""
    page = (project.root / "docs/on-your-cluster.md").read_text()
    steps = re.split(r"^\*\*(\d)\. ", page, flags=re.M)
    of = dict(zip(steps[1::2], steps[2::2]))
    (project.root / "my-site").mkdir()
    (project.root / "my-site/config.v9+.yaml").write_text(re.search(r"```yaml\n(.*?)```", of["2"], re.S)[1])
    lines = {step: re.search(r"^\$ (.*)$", of[step], re.M)[1] for step in "3456"}
    assert "--profile slurm --profile my-site" in lines["6"] and lines["5"].startswith(lines["6"])
    assert lines["3"].removeprefix("plumbline check ") == lines["6"].removeprefix("snakemake ")

    def carry_out(step: str) -> str:
        program, *arguments = shlex.split(lines[step])
        return project.python(*(arguments if program == "python" else ("-m", program, *arguments))).stdout

    (project.root / "bin").mkdir()
    program(project.root / "bin", "sbatch", f'echo "$*" >> {project.root}/asked')
    program(project.root / "bin", "sinfo", "exit 1")  # which asks no cluster of this machine
    program(project.root / "bin", "apt-get", "exit 1")  # what is fetched is no concern of these steps
    monkeypatch.setenv("PIP_INDEX_URL", "file:///nowhere")
    monkeypatch.setenv("PATH", f"{project.root}/bin", prepend=os.pathsep)
    checked = carry_out("3")
    assert re.search(r"^ok +plan +preset paper, machine h100, executor slurm: .*26 of pretrain", checked, re.M), checked
    asked_text = (project.root / "asked").read_text()
    assert " --nodes=1 --gres=gpu:8 --cpus-per-task=64 " in asked_text and "--nodes=2" not in asked_text, (
        "what table 2 has"
    )
    evaluations = [int(minutes) for minutes in re.findall(r"--time=(\d+) .*--gres=gpu:1 ", asked_text)]
    assert evaluations and max(evaluations) < 1440, "a slice of the machine is what trainings get"
    assert re.search(r"^not known +device", checked, re.M) and "placeholder" not in checked
    assert re.search(r"^would stop +texts of climbmix .*HF_HUB_OFFLINE=1 forbids", checked, re.M)
    planned = carry_out("4")
    assert planned.startswith("Preset `paper` on NVIDIA H100 SXM, 64 at once. ") and "RUNS, by size class" in planned
    assert jobs_by_rule(carry_out("5"))["pretrain"] == 26

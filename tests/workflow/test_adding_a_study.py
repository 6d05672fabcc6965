"""A study is one folder: a sixth is added by files alone, and two read corpora of their own side by side."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from plumbline.bundle import archive, description
from tests.workflow.conftest import SMOKE
from tests.workflow.project_copy import Project, jobs_by_rule, write_corpus

SIXTH = Path(__file__).with_name("sixth_study")
FOLDER = "studies/widths"
pytestmark = pytest.mark.workflow


def git(project: Project, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
    return subprocess.run(command, cwd=project.root, check=True, capture_output=True, text=True).stdout


def rows(path: Path) -> list[dict[str, str]]:
    with open(path) as lines:
        return list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def sixth(finished_copy: Project) -> Project:
    """The project with a sixth study, and what `snakemake` made of it."""
    git(finished_copy, "init", "-q")
    git(finished_copy, "add", "-A")
    git(finished_copy, "commit", "-qm", "before")
    shutil.copytree(SIXTH, finished_copy.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    product_files = [
        f"results/smoke/widths/{name}" for name in ("losses.csv", "curves.png", "claims.csv", "interpretations.md")
    ]
    process = finished_copy.snakemake(*product_files, "results/audit.csv", *SMOKE)
    assert process.returncode == 0, process.stdout[-6000:]
    jobs = jobs_by_rule(process.stdout)
    assert (jobs["pretrain"], jobs["measure"]) == (4, 1), "a swept method is a run for each point"
    return finished_copy


def test_nothing_else_is_touched(sixth: Project) -> None:
    changed = git(sixth, "status", "--porcelain", "--untracked-files=all").splitlines()
    assert changed and all(line.startswith("?? ") for line in changed), "no file of the project was changed"
    assert all(line.removeprefix("?? ").startswith(FOLDER) for line in changed)


def test_its_table_figure_claims_and_audit_rows(sixth: Project) -> None:
    folder = sixth.root / "results/smoke/widths"
    table = {row["method"]: row for row in rows(folder / "losses.csv")}
    assert table.keys() == {"narrow", "wide", "hasty.eta_3e-05", "hasty.eta_0.04"} and float(table["wide"]["loss"]) > 0
    assert float(table["wide"]["loss_published"]) == 6.85 and float(table["narrow"]["key_norm"]) > 1
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    verdicts = {row["id"]: row["verdict"] for row in rows(folder / "claims.csv")}
    assert verdicts == {"wide_is_lower": "not judged (smoke size)", "four_times": "reproduced"}
    audited = {row["id"]: row for row in rows(sixth.root / "results/audit.csv") if row["study"] == "widths"}
    assert {name: row["verdict"] for name, row in audited.items()} == {"times": "match", "difference": "mismatch"}
    assert audited["difference"]["explanation"] == "6.90 and 6.85 differ by 0.05"


def test_a_cell_leads_to_a_measurement(sixth: Project) -> None:
    table = "results/smoke/widths/losses.csv"
    by_method = {row["method"]: float(row["stretch"]) for row in rows(sixth.root / table)}
    assert by_method["wide"] > by_method["narrow"] == by_method["hasty.eta_0.04"] > 5
    process = sixth.python("-m", "plumbline.results.tables.trace_cell", table, "wide", "stretch")
    measurement = sixth.read("work/smoke/measured/widths/stretch.json")
    assert f"measured/widths/stretch  made of {measurement['fingerprint']}" in process.stdout, process.stdout
    assert "options          draws 2, seed 1" in process.stdout and measurement["options"] == {"seed": 1, "draws": 2}


def test_a_measurement_is_remade_when_it_changes(sixth: Project) -> None:
    arguments, study = ("results/smoke/widths/losses.csv", *SMOKE), f"{FOLDER}/study.yaml"
    code = f"{FOLDER}/measurements/stretch.py"
    for file, before, after, planned in (
        (study, "duration: 1 min", "duration: 2 min", {}),
        (code, "np.mean(values)", "max(values)", {"measure": 1, "table": 1}),
    ):
        sixth.edit(file, before, after)
        assert sixth.planned(*arguments) == planned, after
        sixth.edit(file, after, before)


def test_its_probes_were_read_while_it_trained_and_afterwards(sixth: Project) -> None:
    frame = pq.read_table(sixth.root / "work/smoke/probes/widths/tiny/wide/s1/probes.parquet").to_pandas()
    steps = {source: sorted(set(part["step"])) for source, part in frame.groupby("source")}
    assert steps == {"offline": [0, 3, 6], "online": [0, 2, 4, 6]}
    norms = frame[frame["probe"] == "key_norm"]
    both = norms[norms["step"].isin([0, 6])].pivot_table(
        index=["step", "layer", "head"], columns="source", values="value"
    )
    assert (both["offline"] == both["online"]).all(), "the same function reads the same model"


def test_its_bundle_has_everything_of_it_and_of_no_other_study(sixth: Project) -> None:
    git(sixth, "add", "-A")
    git(sixth, "commit", "-qm", "the sixth")
    process = sixth.snakemake("bundle", *SMOKE, "studies=[widths]")
    assert process.returncode == 0 and jobs_by_rule(process.stdout) == {"bundle": 1}, process.stdout[-4000:]
    bundle = sixth.root / "results/smoke/bundle.tar.xz"
    bundle_description = description.parse_description(archive.read_file(bundle, description.NAME), "here")
    assert [str(product) for product in bundle_description.products] == [
        *("table widths losses", "figure widths curves", "claims widths", "interpretations widths", "audit")
    ]
    assert bundle_description.commit == git(sixth, "rev-parse", "HEAD").strip() and not bundle_description.edited
    with tarfile.open(bundle) as tar:
        runs = {name.split("/")[4] for name in tar.getnames() if name.startswith("bundle/work/smoke/runs/")}
        assert runs == {"widths"} and "bundle/work/smoke/measured/widths/stretch.parquet" in tar.getnames()


def test_a_record_of_its_bundle_is_made_again_at_its_commit(sixth: Project) -> None:
    """The commands of records/README.md, where the code has gone on since."""
    for record in (sixth.root / "records").glob("*/"):
        shutil.rmtree(record)  # its commit is in another history
    keep = ("-m", "plumbline.bundle.records", "first", "results/smoke/bundle.tar.xz", "--why-kept", "A first one.")
    rebuild = ("-m", "plumbline", "rebuild", "records/first/bundle.tar.xz", "--into", "rebuilt", "--at-commit")
    check = ("-m", "plumbline", "verify", "--rebuild")
    equal = " 0 different, 0 missing"
    table = sixth.root / FOLDER / "tables/losses.py"
    before = table.read_bytes()
    table.write_bytes(before + b"\nEDITED = 1\n")
    for arguments, message in ((keep, "records/first/record.json"), (check, equal), (rebuild, equal)):
        process = sixth.python(*arguments)
        assert process.returncode == 0 and message in process.stdout, process.stdout[-4000:]
    table.write_bytes(before)


def test_a_second_run_finds_nothing_to_do(sixth: Project) -> None:
    product_files = [
        f"results/smoke/widths/{name}" for name in ("losses.csv", "curves.png", "claims.csv", "interpretations.md")
    ]
    assert sixth.planned(*product_files, "results/audit.csv", *SMOKE) == {}


def test_its_report_shows_it_and_is_then_up_to_date(sixth: Project) -> None:
    arguments = ("results/report/index.html", "--config", "preset=smoke", "studies=[widths]")
    process = sixth.snakemake(*arguments)
    assert process.returncode == 0, process.stdout[-4000:]
    assert jobs_by_rule(process.stdout) == {"report": 1, "copy_report": 1}
    page = (sixth.root / "results/report/studies/widths/tables.html").read_text()
    assert "smoke, no reproduction" in page and 'href="../../runs/measured.widths.stretch.html"' in page
    assert "within noise of" not in page, "nothing of this size is judged"
    assert sixth.planned(*arguments) == {}


def test_two_studies_have_two_corpora_and_tokenizers(repository: Path, tmp_path: Path) -> None:
    """One DAG; each run is given the packs of its own corpus, context and tokenizer."""
    project = Project.copy(repository, tmp_path / "project")
    settings = {"early": (300, 32), "late": (600, 64)}
    for seed, (name, (vocabulary, context)) in enumerate(settings.items()):
        write_corpus(project.root / f"texts_{name}", 120, seed)
        write(project.root / f"config/corpora/{name}.yaml", corpus(name, vocabulary))
        study = yaml.safe_load((SIXTH / "studies/widths/study.yaml").read_text())
        study |= {"study": name, "corpus": name, "targets": {}}
        study["scales"]["tiny"]["smoke"]["model"] |= {"vocabulary": vocabulary, "context": context}
        write(project.root / f"studies/{name}/study.yaml", study)
    runs = {name: f"work/smoke/runs/{name}/tiny/narrow/s1" for name in settings}
    process = project.snakemake("-n", *(f"{run}/outcome.json" for run in runs.values()), *SMOKE)
    assert process.returncode == 0, process.stdout[-4000:]
    assert jobs_by_rule(process.stdout) == {"documents": 2, "tokenizer": 2, "tokenize": 8, "pack": 4, "pretrain": 2}
    lines = re.findall(r"^Shell command: (.*)$", process.stdout, re.M)
    for name, (vocabulary, context) in settings.items():
        folder = f"work/smoke/corpora/{name}"
        (training,) = [line for line in lines if f"--out {runs[name]}" in line]
        assert re.findall(r"--\w+-pack (\S+)/\w+\.json", training) == [
            f"{folder}/packs/context{context}/{split}" for split in ("train", "validation")
        ]
        (tokenizer,) = [line for line in lines if f"--out {folder}/tokenizer/tokenizer.json" in line]
        assert f"--vocabulary-size {vocabulary} " in tokenizer


def corpus(name: str, vocabulary: int) -> dict[str, Any]:
    """A corpus that reads a folder of texts."""
    tokenizer = {"kind": "byte_level_bpe", "vocabulary": vocabulary, "training_megabytes": 1}
    smoke = {
        "source": "local",
        "tokenizer": tokenizer,
        "packs": {"base": 64},
        "validation": 8,
        "sequences_per_shard": 32,
    }
    hub = {"path": "", "configuration": "", "text_column": "text", "revision": ""}
    return {
        "corpus": name,
        "title": "Made up",
        "held_out": {"percent": 10.0},
        "local": {"folder": f"texts_{name}"},
        "hub": hub,
        "presets": {"smoke": smoke},
    }


def write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))

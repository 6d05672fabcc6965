"""The smoke preset for real, and what a second run does after which change. One project, taken through its life."""

from __future__ import annotations

import csv
import os
import re
import shlex
from pathlib import Path

import pytest

from tests.workflow.conftest import PRODUCTS, SMOKE, products
from tests.workflow.project_copy import STUDY, Project, jobs_by_log, jobs_by_rule

TARGET = "results/table2.csv"
pytestmark = pytest.mark.workflow


def rows(project: Project) -> dict[str, dict[str, str]]:
    """The table, by method."""
    with open(project.root / TARGET) as lines:
        return {row["method"]: row for row in csv.DictReader(lines)}


def remade(project: Project) -> set[str]:
    """What would be made anew: tables and figures by name, other jobs with their rule."""
    process = project.snakemake("--dry-run", *products(), *SMOKE)
    assert process.returncode == 0, process.stdout[-4000:]
    return {name.rpartition(".")[2] if "/" in name else name for name in jobs_by_log(process.stdout)}


def test_the_table_has_every_method_and_says_its_preset(finished: Project) -> None:
    table = rows(finished)
    assert len(table) == 20
    assert {row["preset"] for row in table.values()} == {"smoke"}
    assert {row["outcome"] for row in table.values()} == {"completed"}
    assert {name for name, row in table.items() if row["n_seeds"] == "3"} == {"baseline", "qknorm", "softpick"}
    for ending in (".csv", ".md", ".tex", ".all.tex", ".notes.tex", ".provenance.json"):
        name = f"table2{ending}"
        main, own = finished.root / "results" / name, finished.root / "results/smoke/transfer" / name
        assert main.read_bytes() == own.read_bytes() != b""


@pytest.mark.slow
def test_its_bundle_is_made_again_elsewhere_byte_for_byte(finished: Project, tmp_path: Path) -> None:
    """From the archive alone: without the runs' folder, weights, corpus and items."""
    bundle, folder = str(tmp_path / "bundle.tar.xz"), tmp_path / "elsewhere"
    packing = ("--preset", "smoke", "--study", "transfer", "--allow-missing", "--out", bundle)
    for arguments in (("plumbline.bundle", *packing), ("plumbline", "rebuild", bundle, "--into", str(folder))):
        process = finished.python("-m", *arguments)
        assert process.returncode == 0, process.stdout[-4000:]
    with open(folder / "rebuilt.csv") as lines:
        verdicts = {row["file"]: row["verdict"] for row in csv.DictReader(lines)}
    assert set(verdicts.values()) == {"equal"}
    assert verdicts.keys() >= {name for name in products() if name.startswith("results/smoke/")}
    for name in verdicts:
        assert (folder / name).read_bytes() == (finished.root / name).read_bytes() != b"", name
    suffixes = {path.suffix for path in (folder / "work").rglob("*") if path.is_file()}
    assert suffixes == {".json", ".jsonl", ".parquet"} and not list(folder.rglob("piqa.jsonl"))


def test_nothing_to_do_afterwards_nor_after_an_edited_comment(finished: Project) -> None:
    assert "Nothing to be done" in finished.snakemake(*products(), *SMOKE).stdout
    for file in ("src/plumbline/train/loop.py", "workflow/rules/pretrain.smk", "src/plumbline/results/tables/table.py"):
        finished.edit(file, '"""', '"""Edited. ')
        with open(finished.root / file, "a") as source:
            source.write("\n# A comment.\n")
    finished.edit(STUDY, "study:", "# A comment.\nstudy:")
    assert finished.planned(*products(), *SMOKE) == {}


#: What remakes nothing in common is edited at once.
EDITS = {
    "printed numbers, a table, a figure, a page": [
        ("studies/transfer/published/table7.csv", "baseline,", "baseline ,", {"table2", "table7", "audit"}),
        ("studies/transfer/tables/table1.py", "Does not depend", "It does not depend", {"table1"}),
        ("studies/transfer/figures/fig2.py", "import annotations", "import annotations\nX = 1", {"fig2"}),
        ("src/plumbline/results/interpretations.py", "## Interp", "## I", {"interpretations/transfer"}),
    ],
    "statistics, an interpretation": [
        (
            "src/plumbline/stats/noise_floor.py",
            "sigma=s",
            "sigma=+s",
            {"table2", "table7", "noise_floor", "fig3", "audit"},
        ),
        (
            STUDY,
            "      subtracted from scores, in both",
            "      taken from scores, in both",
            {"interpretations/transfer"},
        ),
    ],
    "a measure of the study, findings": [
        (STUDY, "others: [qknorm, softpick]", "others: [softpick, qknorm]", {*PRODUCTS, "interpretations/transfer"}),
        ("studies/transfer/findings.yaml", "The printed z", "That printed z", {"audit"}),
    ],
}


@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
def test_an_edit_remakes_what_it_feeds(finished: Project, edits: list[tuple[str, str, str, set[str]]]) -> None:
    """Nothing is trained, nothing made goes stale unseen. A printed number is edited in place, its file's name kept.

    What an edit left to be remade once it is undone would be among what the next one remakes.
    """
    paths = [finished.root / file for file, *_ in edits]
    originals = [(path, path.read_bytes(), path.stat()) for path in paths]
    for file, before, after, _ in edits:
        finished.edit(file, before, after)
    try:
        assert {name.removeprefix("audit/") for name in remade(finished)} == set().union(*(edit[-1] for edit in edits))
    finally:
        for path, original, times in originals:
            path.write_bytes(original)
            # Snakemake compares times first; what was undone is as it was.
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_nothing_is_left_to_be_remade_of_what_was_undone(finished: Project) -> None:
    assert remade(finished) == set()


def test_an_edited_component_and_a_seed_train_a_run_each(finished: Project) -> None:
    """A component's code is part of the identity of the runs that chose it, and of no other run."""
    path = finished.root / "src/plumbline/model/output/head_gate.py"
    original = path.read_text()
    path.write_text(original + "\nEDITED = 1\n")
    seed = {"scale": "base", "methods": ["baseline"], "seeds": [45]}
    with finished.changed(lambda study: study["runs"]["noise_floor"].append(seed)):
        process = finished.snakemake("--dry-run", TARGET, *SMOKE)
    path.write_text(original)
    assert jobs_by_rule(process.stdout) == {"pretrain": 2, "evaluate": 2, "table": 1, "copy_table": 1}
    for run in ("gated_attn_qknorm.s42", "baseline.s45"):
        assert f"logs/smoke/pretrain/transfer.base.{run}.log" in process.stdout


def test_by_hand_a_run_is_the_workflows_bit_for_bit(finished: Project) -> None:
    key, corpus = "transfer/base/qknorm/s42", "work/smoke/corpora/climbmix"
    items = (
        "--tokenizer",
        f"{corpus}/tokenizer/tokenizer.json",
        "--items-folder",
        f"{corpus}/items/climb12",
        "--limit",
        "2",
    )
    for arguments in (
        ("train", key, "--preset", "smoke", "--out", "mine/run"),
        ("score", "mine/run", *items, "--out", "mine/scores.csv"),
    ):
        process = finished.python("-m", "plumbline", *arguments)
        assert process.returncode == 0, process.stdout[-4000:]
    theirs = f"work/smoke/runs/{key}"
    mine, workflows = (finished.root / folder / "model.safetensors" for folder in ("mine/run", theirs))
    assert mine.read_bytes() == workflows.read_bytes()
    ids = {finished.read(f"{folder}/outcome.json")["run_id"] for folder in ("mine/run", theirs)}
    assert len(ids) == 1
    with open(finished.root / "mine/scores.csv") as lines:
        value = {row["task"]: row["value"] for row in csv.DictReader(lines)}["climb_avg"]
    assert float(value) == pytest.approx(float(rows(finished)["qknorm"]["climb_avg"]), abs=1e-9)


def test_the_commands_of_the_page_on_the_command(finished: Project) -> None:
    blocks = re.findall(r"```console\n(.*?)```", (finished.root / "docs/command.md").read_text(), re.S)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    commands = [shlex.split(line.removeprefix("$ ")) for line in lines]
    verbs = ("train", "sample", "score", "export")
    assert [command[:2] for command in commands][2:] == [["plumbline", verb] for verb in verbs]
    for command in commands:
        little = ("--limit", "1") if command[:2] == ["plumbline", "score"] else ()  # the last one counts
        process = finished.python("-m", *command, *little)
        assert process.returncode == 0, process.stdout[-4000:]
    assert finished.read("mine/softpick/outcome.json")["step"] == 20
    assert "Nothing to be done" in finished.snakemake(TARGET, *SMOKE).stdout


def test_the_page_on_python(finished: Project) -> None:
    block = (finished.root / "docs/python.md").read_text().split("```python\n")[1].split("```")[0]
    process = finished.python("-c", block)
    assert process.returncode == 0, process.stdout[-4000:]
    assert "completed" in process.stdout and "climb_avg" in process.stdout
    assert finished.read("mine/nine/outcome.json")["step"] == 9


def test_a_changed_overlay_reruns_its_method(finished: Project) -> None:
    """A learning rate beyond reason: only that method's chain runs, to the end, and the table shows its outcome."""
    absurd = {"learning_rate": 1e6, "gradient_clip": 1e9}
    with finished.changed(lambda study: study["methods"]["softmax_cap"].update(optimizer=absurd)):
        process = finished.snakemake(TARGET, *SMOKE)
    assert process.returncode == 0, process.stdout[-4000:]
    outcome = finished.read("work/smoke/runs/transfer/base/softmax_cap/s42/outcome.json")
    assert outcome["outcome"] == "diverged" and outcome["validation_loss"] is None
    assert outcome["last_finite_step"] < outcome["steps"]
    table = rows(finished)
    assert table["softmax_cap"]["outcome"] == "diverged"
    assert {row["outcome"] for name, row in table.items() if name != "softmax_cap"} == {"completed"}
    started = [
        path.name for path in (finished.root / "logs/smoke/pretrain").glob("transfer.*.log") if path.stat().st_size
    ]
    assert len(started) == 26, "no other run was started"

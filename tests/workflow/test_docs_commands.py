"""Every command of the documentation is carried out: here, at smoke or as a dry run, or by the test that is named."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from plumbline.model.export import hf_export
from plumbline.model.finished_run import FinishedRun
from tests.operate.preflight import made_up_plans
from tests.workflow.project_copy import Project

pytestmark = pytest.mark.workflow

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/**/*.md",
    "studies/*/small_models.md",
    "examples/**/README.md",
    "records/*.md",
    "*/README.md",
    "config/tasks/README.md",
)

BARE = "../gpu_check/test_bare_machine.py::test_a_rehearsal_from_the_bundle_survives_three_kills"
BEFORE = "test_preflight.py::test_what_docs_say_to_do_before_a_run_on_a_cluster"
CLUSTER = "../cluster/test_cluster.py::test_smoke_preset_through_the_cluster"
END_TO_END = "test_end_to_end.py::test_{}"
PAPER = "test_dry_run.py::test_a_dry_run_of_hundreds_of_jobs_is_a_page"
PRINTED = "../docs/test_verdict_pages.py::test_numbers_have_the_verdict_of_the_page"
RECORD = "test_adding_a_study.py::test_a_record_of_its_bundle_is_made_again_at_its_commit"
SCIQ = "../evaluate/test_new_task.py::test_one_file_adds_a_task_that_scores_as_lm_eval_scores_it"
CLAIM = "../verdict/decision/test_loop.py::test_a_claim_takes_seeds_that_nothing_else_had_and_one_test"
TOKENS = "test_token_files.py::test_the_packs_hold_the_files_ids"
TRAINING = "test_own_method.py::test_what_trains_a_model_goes_from_file_to_verdict"
TRY = "test_new_files.py::test_a_new_built_in_method_is_tried_decided"
VERDICT = "test_own_verdict.py::test_the_example_gets_its_page_and_a_later_try_makes_it_anew"
WHEEL = "test_wheel.py::test_a_wheel_writes_a_project_and_plans_it"
AUDIT = "../audit/paper/test_tutorial.py::test_the_tutorial_is_what_happens"
GATE = "../verdict/gate/test_gate_docs.py::test_every_command_of_the_page_does_what_it_says"
IN_A_FOLDER = "../operate/experiments"
SCREEN = "test_screen.py::test_methods_of_a_study_are_screened_by_its_own_runs"
IDEAS = f"{IN_A_FOLDER}/test_screen_docs.py::test_every_command_of_the_page_does_what_it_says"
THREE_RULES = f"{IN_A_FOLDER}/test_loop_examples.py::test_sixty_ideas_are_drawn_by_three_rules"
SIGNED = "../bundle/test_signatures.py::test_what_a_signer_signed_is_as_written"
SET_UP = f"{IN_A_FOLDER}/test_setup_trainer_verb.py::test_a_first_run_says_the_metric_the_seed"
TRIED = f"{IN_A_FOLDER}/test_try_in_a_folder.py::test_what_is_kept_becomes_the_baseline_by_fresh_runs_alone"
NIGHT = f"{IN_A_FOLDER}/test_night_docs.py::test_a_night_goes_as_the_page_says"
NEW = "../cli/test_new.py::test_{}"
WHEEL_WRITES = "test_wheel.py::test_a_wheel_writes_into_its_project"
PAGE_ON_THE_COMMAND = END_TO_END.format("the_commands_of_the_page_on_the_command")
#: What another test carries out, by how the command begins: the same words at smoke, with the names of its own world.
ELSEWHERE = {
    "make test": ".ci/run",
    "PYTHONPATH=src:work/gpu-check/packages:$PYTHONPATH python3 -m benchmarks.gpu_check --out": BARE,
    "python -m benchmarks.gpu_check.table_lines":
        "../gpu_check/test_table_lines.py::test_the_plan_goes_by_lines_of_what_was_measured_and_says_so",
    "timeout 540 python3 -m plumbline.train --spec": "../train/test_train_command.py::test_a_signal_during_the_imports",
    "snakemake results/table2.csv --profile slurm -n": PAPER,
    "plumbline check results/table2.csv --profile slurm": BEFORE,
    "plumbline plan --profile slurm": BEFORE,
    "plumbline plan results/table2.csv --profile":
        "../plan/test_plan_page.py::test_targets_are_priced_alone_in_the_order_asked_for",
    "snakemake results/table2.csv --profile slurm --profile my-site --dry-run": BEFORE,
    # On the lab cluster; its overlay stands in for my-site, and a table of ten runs for that of 26.
    "snakemake results/table2.csv --profile slurm --profile my-site": CLUSTER,
    "snakemake results/verdict/cosine.md": VERDICT,
    "plumbline try my/training.yaml": TRAINING,
    "snakemake results/mine/table2.csv":
        "test_own_method.py::test_it_is_trained_beside_the_reference_runs_that_are_there",
    "snakemake results/table2.csv --config 'data={source: local, folder: /data/my-texts}' 'studies=[transfer]'":
        "../operate/preflight/test_data_sources.py::test_a_presets_texts_are_not_replaced_without_a_word",
    "python examples/make_tokens.py": TOKENS,
    "snakemake work/smoke/corpora/climbmix/packs": TOKENS,
    "snakemake -n results/table2.csv --config preset=smoke 'data={source: local}'": TOKENS,
    "snakemake bundle": "test_adding_a_study.py::test_its_bundle_has_everything_of_it_and_of_no_other_study",
    "python -m plumbline.evaluate.items --items-source local --suite sciq": SCIQ,
    "plumbline score MODEL --suite sciq": SCIQ,
    "plumbline rebuild re": RECORD,
    "plumbline verify --rebuild": RECORD,
    "plumbline verify records/mine --signers": SIGNED,
    "ssh-keygen -Y sign": SIGNED,
    "plumbline verify --retrain": "test_retrained_record.py::test_every_run_at_smoke_comes_out_bit_for_bit",
    "plumbline try value_residual": TRY,
    "plumbline screen --study": SCREEN,
    "plumbline screen ideas.toml": IDEAS,
    "python examples/loop/side_by_side.py": THREE_RULES,
    "plumbline verdict table3.csv": PRINTED,
    "plumbline setup-trainer": SET_UP,
    "plumbline audit --from": AUDIT,
    "plumbline audit review": AUDIT,
    "plumbline try -m": TRIED,
    "plumbline confirm": CLAIM,
    "pip install .": WHEEL,
    "pip install '.[pipeline]'": WHEEL,
    "pip install --no-deps --no-build-isolation --editable examples/": VERDICT,
    "pip install --no-deps --no-build-isolation --editable my/": WHEEL_WRITES,
    "python -m pytest my/": NEW.format("a_method_of_every_slot_passes_its_own_tests"),
    "plumbline try cooler": WHEEL_WRITES,
    "plumbline init my-project": WHEEL,
    "python examples/run_notebook.py": "../docs/test_notebook.py::test_its_cells_print_what_it_holds",
    "plumbline new method": WHEEL_WRITES,
    "plumbline new study": WHEEL_WRITES,
    "plumbline gate records/track_3_optimization": GATE,
    "plumbline board records": GATE,
    "cd my-project && snakemake -n": WHEEL,
}  # fmt: skip
#: Pages from which another test takes the commands that it carries out.
WHOLE_PAGES = {
    "docs/command.md": PAGE_ON_THE_COMMAND,
    "docs/night.md": NIGHT,
}
#: What is said more where a command is tried, so that little is planned, read and shown.
LITTLE = {
    "snakemake results/table2.csv": ("--config", "preset=smoke"),
    "plumbline probe": ("--sequences", "1"),
    "plumbline report": ("--preset", "smoke"),
}
#: Not this project's, or the set-up that `.ci/run` itself begins with.
NOT_OURS = (
    "git clone",
    "make setup",
    "source .venv",
    "sacct ",
    "chgrp",
    "find ",
    "umask",
    "scp ",
    "cp ",
    "tar ",
    "export ",
)


def commands(repository: Path) -> list[tuple[str, str]]:
    """Page and command, continuation lines joined and remarks left out, each once."""
    command_lines = []
    for page in sorted({page for pattern in PAGES for page in repository.glob(pattern)}):
        for block in re.findall(r"^ *```\w*\n(.*?)^ *```", page.read_text(), flags=re.M | re.S):
            for line in re.sub(r" *\\\n *", " ", block).splitlines():
                if line.strip().startswith("$ "):
                    command = re.sub(r"\s+# .*", "", line.strip()[2:])
                    command_lines.append((str(page.relative_to(repository)), command))
    return list(dict.fromkeys(command_lines))


REPOSITORY = Path(__file__).resolve().parents[2]
#: The commands that are tried here, each once, and the last page that it stands on.
HERE = {
    command: page
    for page, command in commands(REPOSITORY)
    if page not in WHOLE_PAGES and not command.startswith((*ELSEWHERE, *NOT_OURS))
}


@pytest.fixture(scope="module")
def read(finished_copy: Project) -> Project:
    """The finished project, with a file of numbers, and a model in Hugging Face form."""
    root = finished_copy.root
    rows = [
        f"{method},{seed},{loss}" for method in ("adamw", "cosine") for seed, loss in ((1, 3.2), (2, 3.3), (3, 3.1))
    ]
    (root / "results.csv").write_text("\n".join(["method,seed,val_loss", *rows]) + "\n")
    tokenizer = root / "work/smoke/corpora/climbmix/tokenizer/tokenizer.json"
    hf_export.export(
        FinishedRun.read(root / "work/smoke/runs/transfer/base/baseline/s42").model(), tokenizer, root / "FOLDER"
    )
    return finished_copy


def as_a_trial(command: str) -> list[str]:
    """The words of a command as it is tried: what a workflow would do is planned alone, a demo's files are smoke's, and
    little is read and shown."""
    arguments = shlex.split(command.replace("work/demo", "work/smoke").replace(" METHOD ", " softpick "))
    if arguments[0] in ("snakemake", "make") and "--report" not in arguments:
        return [arguments[0], "--dry-run", *arguments[1:]]
    return [*arguments, *LITTLE.get(" ".join(arguments[:2]), ())]


@pytest.mark.parametrize("command", HERE, ids=[f"{page}: {command}" for command, page in HERE.items()])
def test_a_command_does_what_it_says(
    read: Project, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUMBLINE_DEVICES", "0")  # as `profiles/gpus` asks nvidia-smi
    # What would be fetched is no concern of a page's, and each asking takes seconds.
    made_up_plans.program(tmp_path, "apt-get", "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PIP_INDEX_URL", "file:///nowhere")
    program, *arguments = as_a_trial(command)
    if program == "make":
        process = subprocess.run([program, *arguments], cwd=read.root, capture_output=True, text=True)
        assert process.returncode == 0 and process.stdout, process.stderr
        return
    process = read.python(*(arguments if program == "python" else ("-m", program, *arguments)))
    # A check exits with 1 if something would stop the run, here that there is no device.
    assert process.returncode in ((0, 1) if "check" in arguments[:1] else (0,)), process.stdout[-3000:]
    assert "Traceback" not in process.stdout


@pytest.mark.parametrize("test", sorted({*ELSEWHERE.values(), *WHOLE_PAGES.values()} - {".ci/run"}))
def test_the_test_that_is_named_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    assert re.search(rf"^ *def {name}\(", (Path(__file__).parent / file).read_text(), re.M)


def test_what_is_carried_out_elsewhere_is_still_on_a_page(repository: Path) -> None:
    every = commands(repository)
    assert all(any(command.startswith(begin) for _, command in every) for begin in ELSEWHERE)
    assert {page for page, _ in every} >= set(WHOLE_PAGES)

"""Fixtures that tests share."""

import gc
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from plumbline.specs.study_parts import FINDER

REPOSITORY = Path(__file__).resolve().parent.parent

# Tests run side by side on few cores: one thread each is faster, and the same everywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")


# No deadline: the machine that runs the tests may be busy. The same examples each time: a failure is a change's doing;
# `pytest --hypothesis-profile=many` draws more of them.
settings.register_profile("few", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("many", deadline=None, derandomize=True, max_examples=200)
settings.load_profile("few")
# And draw the same whatever else is imported: for constants to try, Hypothesis would parse every module of ours.
providers._get_local_constants = lambda: providers._local_constants  # type: ignore[attr-defined]  # noqa: SLF001

#: Where the tests of a kind lie: the Makefile runs them from this folder, so that no others are imported for them.
FOLDERS = {"cluster": ("tests/cluster/",)}

#: Files that take longest, longest first: a worker takes file after file, and one of these at the end would leave the
#: other worker idle. The first one makes the finished project that others share; until it is there, the other worker
#: has files that need none.
LONGEST = (
    "workflow/test_docs_commands.py", "workflow/test_wheel.py", "workflow/test_dry_run.py",
    "workflow/test_adding_a_study.py", "workflow/test_end_to_end.py", "fake_device/test_fake_steps.py",
    "workflow/test_own_verdict.py", "workflow/test_new_files.py", "workflow/test_faults.py",
    "workflow/test_fault_matrix.py",
    "workflow/test_configuration.py", "workflow/test_preflight.py", "workflow/test_staleness.py",
    "plan/test_plan_rule.py", "workflow/test_token_files.py", "workflow/test_two_snakemakes.py",
    "workflow/test_own_method.py", "plan/test_job_resources.py", "golden/test_golden_losses.py",
    "operate/experiments/test_try_in_a_folder.py", "gpu_check/test_bare_machine.py", "cli/test_new.py",
    "studies/test_every_target.py", "operate/experiments/test_own_verdict.py",
    "studies/transfer/test_transfer_tables.py", "studies/quack/test_quack_claims.py",
    "operate/preflight/method_checks/test_leaks.py", "studies/quack/test_quack_figures.py",
    "operate/experiments/test_loop_examples.py", "verdict/own_trainer/test_runs.py", "workflow/test_environments.py",
    "studies/key_norms/test_key_norms_claims.py", "evaluate/test_prefix_trees.py", "verdict/own_trainer/test_ends.py",
    "verdict/own_trainer/test_killed.py", "verdict/own_trainer/test_ranks.py",
    "studies/query_free/test_query_free_claims.py", "model/test_every_method.py", "data/test_local_resume.py",
    "bundle/test_records.py", "studies/premature/test_premature_claims.py", "studies/transfer/test_transfer_figures.py",
    "studies/premature/test_premature_figures.py", "results/test_replication_rates.py",
    "operate/experiments/test_log_and_confirm_in_a_folder.py", "train/test_interventions_resume.py",
    "train/test_deferred_metrics.py", "operate/experiments/test_setup_trainer_verb.py",
    "operate/preflight/method_checks/test_model_checks.py", "train/test_pretrain.py",
    "operate/experiments/test_folder_verbs_told.py", "export/test_every_method.py", "results/test_terminal_table.py",
    "evaluate/test_new_task.py", "model/kernels/test_kernels.py", "studies/transfer/test_transfer_claims.py",
    "studies/key_norms/test_key_norms_figures.py", "operate/test_console.py",
    "operate/preflight/method_checks/test_held_out_reads.py", "data/test_hub_stream.py", "gpu_check/test_sections.py",
    "gpu_check/test_calls.py", "golden/test_code_classes.py", "kept_verdicts/test_kept_verdicts.py",
    "train/test_killed_ranks.py", "train/test_train_command.py", "train/test_compiling.py",
    "data/test_memory_limits.py",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import the kernels before anything else where their tests are collected: whether Triton interprets is decided for
    good when it is imported, and torch's counter of operations imports it. And look for no garbage meanwhile: Python
    would, every 700 objects, among millions that stay."""
    gc.disable()
    kernels = REPOSITORY / "tests" / "model" / "kernels"
    paths = (Path(argument.partition("::")[0]).resolve() for argument in session.config.args)
    if any(kernels.is_relative_to(path) for path in paths):
        import_module("tests.model.kernels.conftest")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, and refuse a test that the Makefile would not find."""
    for item in items:
        for kind, folders in FOLDERS.items():
            if item.get_closest_marker(kind) and not item.nodeid.startswith(folders):
                raise pytest.UsageError(f"{item.nodeid} is marked {kind!r} and lies in none of {folders}")
    place = {f"tests/{file}": number for number, file in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(place)))


def pytest_collection_finish() -> None:
    """Look for garbage again, less often, and never among what was there before the first test."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_sessionfinish() -> None:
    """Look for none among all that the tests have left: pytest and Python would on the way out, seconds each time."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _nobody_waits_for_the_disk() -> Iterator[None]:
    """No test cuts the power: that a file is synced before it is renamed is seen by who asks for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


#: Listed once: thousands of tests put them back.
STUDIES = [path.parent for path in sorted((REPOSITORY / "studies").glob("*/study.yaml"))]


@pytest.fixture(autouse=True)
def _studies_of_the_repository() -> Iterator[None]:
    """A test may load another project's studies; ours come back, since test modules hold their classes."""
    yield
    for folder in STUDIES:
        FINDER.choose(folder.name, folder)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """Reference material that may lie next to the repository; a test that wants it is skipped without it."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no reference material beside the repository")
    return folder

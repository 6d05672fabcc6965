"""Collects what is known of two commits of a folder beside their runs, and refuses those that no runs could compare."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from plumbline.core.errors import visible
from plumbline.operate.experiments import measuring_terms, setup_guesses
from plumbline.operate.experiments.folder_baseline import FolderBaseline
from plumbline.verdict.comparability import fixed_files
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.experiment import BASELINE
from plumbline.verdict.evidence import Evidence
from plumbline.verdict.formatting import name_some
from plumbline.verdict.own_trainer import written_files
from plumbline.verdict.own_trainer.fixed_files import list_fixed, select
from plumbline.verdict.own_trainer.snapshot import NOT_OF_AN_ARM, Arm

#: Modules that measure or are imported by what does; a file of their name next to a script is imported in their place.
_INSTALLED = frozenset(
    {"sitecustomize", "usercustomize", "numpy", "torch", "jax", "flax", "tensorflow", "keras", "transformers", "pandas"}
    | {"datasets", "tiktoken", "tokenizers", "sentencepiece", "einops", "triton", "sklearn", "scipy", "lm_eval"}
    | sys.stdlib_module_names
)


def gather(baseline: FolderBaseline, candidate: Arm, other: Arm, metric: str, verb: str) -> Evidence:
    """Collect which files of a candidate differ from those of the `other` arm, and which of them measure; of a try,
    whose candidate is the working tree, also which files of that were left out.
    """
    changed = baseline.repository.list_changed_files(other.commit, candidate.commit)
    fixed = list_fixed(baseline.file, baseline.repository, other, changed)
    left_out = baseline.repository.list_of_runs() if verb == "try" else ()
    return Evidence(  # a name that is no UTF-8 is written with escapes: no JSON file can hold it
        metric=metric,
        changed_files={visible(name): lines for name, lines in changed.items()},
        fixed_files=None if fixed is None else tuple(map(visible, fixed)),
        left_out_files=tuple(map(visible, left_out)),
        replaced_modules=tuple(map(visible, _list_replaced(changed, baseline))),
    )


def list_refusals(evidence: Evidence, candidate: Arm, baseline: FolderBaseline) -> list[str]:
    """List why arms cannot be compared, whatever their runs would give; empty if they can."""
    answer = fixed_files.check(ComparedArms(evidence=evidence, baseline=BASELINE, candidate=candidate.words))
    refusals = [answer.text] if answer.answer == Answer.REFUSES else []
    refusals += measuring_terms.list_lost(baseline)
    own_names = [name for each in evidence.changed_files or () if (name := _name_in_folder(each, baseline))]
    if other_data := select(own_names, baseline.file.run.data):
        refusals.append(
            f"it changes {name_some(other_data)} (run.data of plumbline.toml), and means do not cross that; where "
            "other data is the change, take that out of run.data. Else commit it alone, rm .plumbline/baseline.json, "
            "and plumbline setup-trainer: what is committed is the baseline then"
        )
    return [f"{candidate.words}: {refusal}" for refusal in refusals]


def know_written_files(baseline: FolderBaseline, bank: Bank) -> None:
    """Have the baseline's first run made where no run was, so that what runs write is known before an arm is made of a
    tree with untracked files.
    """
    own_folder, repository = baseline.folder.own, baseline.repository
    untracked = [name for name in repository.list_untracked() if not _is_own(_name_in_folder(name, baseline) or name)]
    if untracked and not written_files.is_known(own_folder):
        baseline.take_bank(baseline.trainer(), bank, 1)


def _name_in_folder(name: str, baseline: FolderBaseline) -> str:
    """A name of the top's as the trainer's folder has it; empty if it does not lie there."""
    prefix = f"{baseline.repository.prefix}/".lstrip("/")
    return name.removeprefix(prefix) if name.startswith(prefix) else ""


def _is_own(name: str) -> bool:
    return PurePosixPath(name).parts[0] in NOT_OF_AN_ARM


def _list_replaced(changed: Mapping[str, str], baseline: FolderBaseline) -> Iterator[str]:
    """The new files that are imported in place of a module that is installed: next to the script, or in the folder."""
    script = setup_guesses.script(baseline.file.run.command, baseline.file.folder)
    places = {PurePosixPath(baseline.repository.prefix)}
    if script is not None and script.is_relative_to(baseline.repository.top):
        places.add(PurePosixPath(script.parent.relative_to(baseline.repository.top)))
    for name, lines in changed.items():
        path = PurePosixPath(name)
        module = path.parent if path.name == "__init__.py" else path.with_suffix("")
        if lines.endswith("(new)") and path.suffix == ".py" and module.parent in places and module.name in _INSTALLED:
            yield name

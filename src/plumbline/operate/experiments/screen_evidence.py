"""Examines what a screen stands on: the checks of a comparison, of the runs of a design and of the fresh runs after it.

The runs of a design have many arms, a run each: checks of how runs ended, of what they read and of what measures look
at all of them together, next to the baseline's. Whether values follow the order of the runs is asked of what the
effects leave over, and budgets are compared with and without each level that was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from plumbline.operate.experiments.screen_source import ScreenSource, Settings
from plumbline.verdict.comparability import equal_budget, every_check, independence
from plumbline.verdict.comparability.check_answer import Answer, CheckAnswer, holds, refuse, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.decision.experiment import BASELINE, ArmRun
from plumbline.verdict.decision.loop import Trainer
from plumbline.verdict.evidence import Evidence, RunEvidence
from plumbline.verdict.screen.screen_design import Level
from plumbline.verdict.screen.screen_terms import ScreenTerms

#: The name that all runs of a design have as an arm.
DESIGN = "the runs of the design"
#: The checks that look at all runs of a design together.
_OF_ALL = (
    "processes",
    "finished",
    "seed has an effect",
    "seeds beside a rerun",
    "fixed files",
    "arm files",
    "nothing is carried",
)
#: The names of the two that are asked otherwise.
_INDEPENDENT, _BUDGET = "runs are independent", "equal budget"


def examine_design(
    source: ScreenSource,
    trainer: Trainer,
    terms: ScreenTerms,
    past: Sequence[ArmRun],
    runs: Sequence[tuple[Settings, ArmRun]],
    residuals: Sequence[float | None],
    chosen: Sequence[Level],
) -> dict[str, CheckAnswer]:
    """Ask the checks about the runs of a design.

    Args:
        source: of the screen.
        trainer: of its arms.
        terms: of the screen.
        past: the runs of the baseline that were there before it.
        runs: the settings of each run of the design, and the run.
        residuals: of each of these runs, what its effects leave over.
        chosen: the levels that were chosen.
    """
    places = {(banked.run.run_id, banked.run.seed): place for place, banked in enumerate(source.bank.runs)}
    design_runs = [replace(trainer.evidence(run), order=places.get((run.run_id, run.seed))) for _, run in runs]
    baseline_runs = [replace(trainer.evidence(run), order=places.get((run.run_id, run.seed))) for run in past]
    tries = source.place.read_ledger().count_tries_made(source.baseline_name, terms.metric)
    levels = {(name, level) for settings, _ in runs for name, level in settings.items()}
    arms = ComparedArms(
        evidence=replace(
            _gather_changes(source, terms, sorted(levels)),
            runs=_by_seed({BASELINE: baseline_runs, DESIGN: design_runs}),
        ),
        baseline=BASELINE,
        candidate=DESIGN,
        labels={BASELINE: terms.baseline},
        higher=terms.higher,
        tries=max(1, tries - len(levels)),  # the design is one try of a trend, whatever the number of its levels
    )
    answers = {name: every_check.CHECKS[name](arms) for name in _OF_ALL}
    sign = 1 if terms.higher else -1  # residuals count upwards, whichever way the metric does
    residual_runs = [
        replace(each, value=None if residual is None else sign * residual)
        for each, residual in zip(design_runs, residuals)
    ]
    of_residuals = replace(arms.evidence, runs=_by_seed({BASELINE: baseline_runs, DESIGN: residual_runs}))
    answers[_INDEPENDENT] = independence.check(replace(arms, evidence=of_residuals))
    pairs = [(settings, evidence) for (settings, _), evidence in zip(runs, design_runs)]
    answers[_BUDGET] = _compare_budgets(source, terms, pairs, chosen)
    return answers


def examine_fresh_runs(
    source: ScreenSource, trainer: Trainer, terms: ScreenTerms, settings: Settings, runs: Sequence[ArmRun]
) -> dict[str, CheckAnswer]:
    """Ask every check about the fresh runs of what was chosen and of the baseline."""
    places = {(banked.run.run_id, banked.run.seed): place for place, banked in enumerate(source.bank.runs)}
    by_arm = dict[str, list[RunEvidence]]()
    for run in runs:
        evidence = replace(trainer.evidence(run), order=places.get((run.run_id, run.seed)), fresh=True)
        by_arm.setdefault(run.arm, []).append(evidence)
    candidate = next(arm for arm in by_arm if arm != BASELINE)
    return every_check.examine(
        ComparedArms(
            evidence=replace(source.arm_evidence(settings), runs=_by_seed(by_arm)),
            baseline=BASELINE,
            candidate=candidate,
            labels={BASELINE: terms.baseline},
            higher=terms.higher,
            equal=terms.equal,
        )
    )


def _by_seed(runs: Mapping[str, Sequence[RunEvidence]]) -> dict[str, dict[str, RunEvidence]]:
    return {arm: {str(run.seed): run for run in each} for arm, each in runs.items()}


def _gather_changes(source: ScreenSource, terms: ScreenTerms, levels: Sequence[Level]) -> Evidence:
    """What is known of every level beside its runs, as if one arm had all of them."""
    first = {factor.name: factor.levels[0] for factor in source.factors}
    each = [source.arm_evidence(first | dict([level])) for level in levels if first[level[0]] != level[1]]
    changed = {name: lines for evidence in each for name, lines in (evidence.changed_files or {}).items()}
    fixed = {name: None for evidence in each for name in evidence.fixed_files or ()}
    return Evidence(
        metric=terms.metric,
        changed_files=None if any(evidence.changed_files is None for evidence in each) else changed,
        fixed_files=None if all(evidence.fixed_files is None for evidence in each) else tuple(fixed),
        left_out_files=() if any(evidence.left_out_files is not None for evidence in each) else None,
        replaced_modules=tuple(dict.fromkeys(name for evidence in each for name in evidence.replaced_modules)),
    )


def _compare_budgets(
    source: ScreenSource,
    terms: ScreenTerms,
    runs: Sequence[tuple[Settings, RunEvidence]],
    chosen: Sequence[Level],
) -> CheckAnswer:
    """Compare what runs took with each chosen level, and at the baseline's level of its factor."""
    texts, numbers, refused = list[str](), dict[str, float | str | None](), False
    first = {factor.name: factor.levels[0] for factor in source.factors}
    for factor, level in chosen:
        name = source.name_level((factor, level))
        sides = {
            side: [evidence for settings, evidence in runs if settings[factor] == side_level]
            for side, side_level in ((BASELINE, first[factor]), (name, level))
        }
        answer = equal_budget.check(
            ComparedArms(
                evidence=Evidence(metric=terms.metric, runs=_by_seed(sides)),
                baseline=BASELINE,
                candidate=name,
                labels={BASELINE: f"runs without {name}"},
                higher=terms.higher,
                equal=terms.equal,
            )
        )
        numbers |= {f"{name} {key}": number for key, number in answer.numbers.items()}
        refused |= answer.answer == Answer.REFUSES
        texts += [answer.text] if answer.answer in (Answer.REFUSES, Answer.TOLD) else []
    if refused:
        return refuse("; ".join(texts), **numbers)
    return tell("; ".join(texts), **numbers) if texts else holds("no chosen one has another budget", **numbers)

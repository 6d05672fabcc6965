"""Makes the verdict on two models by item: the ledger entry, the page and the numbers of two lm-eval folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_count, format_percent
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparability import every_check
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.comparability.every_check import Answers
from plumbline.verdict.comparison_terms import CLAIM, LOOP, POWER
from plumbline.verdict.evidence import Evidence
from plumbline.verdict.formatting import format_p, format_value, quote, write_grid
from plumbline.verdict.ledger import Ledger, LedgerEntry
from plumbline.verdict.numbers.item_comparison import ItemComparison, judge_items
from plumbline.verdict.numbers.numbers_request import NumbersRequest
from plumbline.verdict.numbers.sentences import describe_direction, write_p
from plumbline.verdict.numbers.verdict_texts import Draft, VerdictTexts, to_json_value, write_texts
from plumbline.verdict.outcome import CannotBeJudgedError, Outcome
from plumbline.verdict.sources.lm_eval_items import read_model


def draft(request: NumbersRequest) -> tuple[Sequence[LedgerEntry], Draft]:
    """Make the ledger entry of two folders of samples, and the function that then writes their verdict.

    Raises:
        CannotBeJudgedError: the models never differ, or were not asked the same.
        PlumblineError: no second folder is named, or they are not of the same tasks and items.
    """
    if request.baseline is None or request.goal is not None or request.chain or request.at_step:
        raise PlumblineError(
            f"{request.path} has samples of lm-eval; name the other model's folder with --baseline FOLDER, and leave "
            "out --goal, --compare-with-previous and --at-step"
        )
    metric, folders = request.columns.metric, (request.path, Path(request.baseline))
    models = [read_model(folder, metric) for folder in folders]
    ours, theirs = (model.items for model in models)
    names = [folder.resolve().name for folder in folders]
    if names[0] == names[1]:
        names = [folder.as_posix() for folder in folders]
    arms = ComparedArms(
        evidence=Evidence(metric=metric),
        baseline=names[1],
        candidate=names[0],
        models=dict(zip(names, models, strict=True)),
        higher=request.terms.higher,
        equal=request.equal,
    )
    answers = every_check.examine(arms)
    if refusal := every_check.describe_refusal(answers):
        raise CannotBeJudgedError(refusal)
    judge_items(names[0], ours, names[1], theirs, request.terms)  # what cannot be judged is no try
    values = [
        {task: {key: item.value for key, item in items.items()} for task, items in side.items()}
        for side in (ours, theirs)
    ]
    entry = LedgerEntry(
        kind="items",
        name=names[0],
        fingerprint=ledgers.fingerprint(values),
        baseline=names[1],
        metric=metric,
        test="paired by item",
        planned_tries=request.planned_tries,
    )
    return [entry], lambda ledger: _write(request, names, models, answers, ledger)


def _write(
    request: NumbersRequest, names: Sequence[str], models: Sequence[Evidence], answers: Answers, ledger: Ledger
) -> VerdictTexts:
    metric = request.columns.metric
    families = [(names[1], metric)]
    tries, (ours, theirs) = ledger.count_tries(*families[0]), (model.items for model in models)
    comparison = judge_items(names[0], ours, names[1], theirs, request.terms, tries=tries)
    tries_text = ledgers.describe_tries(ledger, *families[0])
    sections = [
        "# Verdict by item",
        write_sentence(comparison, metric, tries_text),
        "## Evidence",
        _describe_test(comparison, request, metric),
        _write_tasks(comparison),
    ]
    values = {key: value for key, value in to_json_value(comparison).items() if key != "terms"}
    numbers = {"shape": "items", "metric": metric, "baseline": names[1], "items": values}
    notes = [note for model in models for note in model.notes]
    return write_texts(
        request,
        ledger,
        families,
        sections,
        answers={names[0]: answers},
        notes=notes,
        limits=LIMITS,
        numbers=numbers | {"notes": notes},
        outcomes={names[0]: comparison.outcome},
    )


LIMITS = (
    "The verdict is about these two trained models on other items of these tasks. Whether training again with another "
    "seed would give the same is another question: judge a table of seeds for that.",
    "Every task weighs the same, whatever its number of items. A task was not chosen for its result, or choosing it "
    "was a try that the ledger has to know of.",
    "Items are taken as independent: several questions on one text are fewer than they seem.",
)


def write_sentence(comparison: ItemComparison, metric: str, tried: str | None = None) -> str:
    """Write the verdict in a sentence, to be quoted as it is; `tried`: the tries, and where they stand."""
    items = sum(each.items for each in comparison.tasks)
    tasks = (
        f" of {len(comparison.tasks)} tasks" if len(comparison.tasks) > 1 else f" of {quote(comparison.tasks[0].task)}"
    )
    gain, high = format_value(comparison.gain, comparison.error), format_value(comparison.high, comparison.error)
    p_text = write_p(comparison.p, comparison.p_corrected, comparison.tries, tried)
    level = f"{format_count(items, 'item')}{tasks}, paired; one-sided {p_text}"
    subject, against = quote(comparison.name), quote(comparison.baseline)
    if comparison.outcome is Outcome.KEEP:
        low = format_value(comparison.low, comparison.error)
        return f"{subject} improves {quote(metric)} over {against} by {gain}, between {low} and {high} ({level})."
    gain_seen = f"the gain seen is {gain} ({level})"
    if comparison.outcome is Outcome.DISCARD:
        return f"{subject}: a gain in {quote(metric)} over {against} is ruled out above {high}: {gain_seen}."
    hint = ""
    if comparison.items_more is not None and comparison.items_more > 1:
        added = f"{(comparison.items_more - 1) * items:,} more items"
        hint = f": {added} would find a gain of that size with {format_percent(POWER)} chance"
    ruled_out = f"in {quote(metric)} only gains above {high} are ruled out"
    return f"{subject} is not decided against {against}{hint}: {gain_seen}; {ruled_out}."


def _describe_test(comparison: ItemComparison, request: NumbersRequest, metric: str) -> str:
    test = "McNemar's exact test of the items on which the models differ"
    if not comparison.exact:
        test = "the mean over tasks of the paired differences over its standard error"
    required = (
        f" The required gain is more than {comparison.terms.minimum_gain:g}." if comparison.terms.minimum_gain else ""
    )
    levels = ", ".join(
        f"{'yes' if comparison.p_corrected <= level else 'no'} at {level:g} ({use})"
        for level, use in ((LOOP, "for a loop"), (CLAIM, "for a claim"))
    )
    return (
        f"Samples of lm-eval were read from {quote(request.path.name)} and {quote(comparison.baseline)}, metric "
        f"{quote(metric)}, the newest file of each task. {describe_direction(comparison.terms)}; gains count upwards. "
        f"What decides: {test}, one-sided; p times the ledger's {format_count(comparison.tries, 'try', 'tries')} must "
        f"be at most {comparison.terms.alpha:g}.{required} p = {format_p(comparison.p)}, corrected "
        f"{format_p(comparison.p_corrected)}; better: {levels}."
    )


def _write_tasks(comparison: ItemComparison) -> str:
    rows = [
        (
            quote(each.task),
            f"{each.items:,}",
            f"{each.mean:.4f}",
            f"{each.mean_baseline:.4f}",
            f"{each.gain:+.4f}",
            f"{each.error:.4f}",
            f"{each.better:,} / {each.worse:,}",
        )
        for each in comparison.tasks
    ]
    rows.append(("all, each task the same", "", "", "", f"{comparison.gain:+.4f}", f"{comparison.error:.4f}", ""))
    columns = ("task", "items", quote(comparison.name), quote(comparison.baseline), "gain", "standard error, paired")
    return write_grid((*columns, "items better / worse"), rows)

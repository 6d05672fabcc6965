"""Makes the verdict on two models by item: the ledger entry, the page and the numbers of two lm-eval folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_count
from plumbline.verdict import formatting
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparison_terms import CLAIM, LOOP, POWER
from plumbline.verdict.formatting import format_percent, format_value, quote_name, write_grid
from plumbline.verdict.ledger import Ledger, LedgerEntry
from plumbline.verdict.numbers.item_comparison import (
    ItemComparison,
    Items,
    SameQuestions,
    compare_questions,
    judge_items,
)
from plumbline.verdict.numbers.numbers_request import Draft, NumbersRequest, VerdictTexts, plain, write_texts
from plumbline.verdict.numbers.sentences import direction, p_of
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.sources.lm_eval_items import read_model


def draft(request: NumbersRequest) -> tuple[Sequence[LedgerEntry], Draft]:
    """Say what two folders of samples enter in the ledger, and how their verdict is made then.

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
    questions = compare_questions(names, *models)
    judge_items(names[0], ours, names[1], theirs, request.terms)  # what cannot be judged is no try
    values = [
        {task: {key: item.value for key, item in of.items()} for task, of in side.items()} for side in (ours, theirs)
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
    return [entry], lambda ledger: _written(request, names, ours, theirs, questions, ledger)


def _written(
    request: NumbersRequest,
    names: Sequence[str],
    ours: Items,
    theirs: Items,
    questions: SameQuestions,
    ledger: Ledger,
) -> VerdictTexts:
    metric = request.columns.metric
    families = [(names[1], metric)]
    judged = judge_items(names[0], ours, names[1], theirs, request.terms, tries=ledger.count_tries(*families[0]))
    said = (
        f"{items_sentence(judged, metric, ledgers.describe_tries(ledger, *families[0]))} {questions.sentence}".strip()
    )
    sections = ["# Verdict by item", said, "## Evidence", _read(judged, request, metric), _tasks(judged)]
    found = {key: value for key, value in plain(judged).items() if key != "terms"}
    numbers = {"shape": "items", "metric": metric, "baseline": names[1], "items": found}
    numbers |= {"notes": list(questions.notes), "not_known": list(questions.not_known)}
    outcomes = {names[0]: judged.outcome}
    return write_texts(request, ledger, families, sections, limits=LIMITS, numbers=numbers, outcomes=outcomes)


LIMITS = (
    "The verdict is about these two trained models on other items of these tasks. Whether training again with another "
    "seed would give the same is another question: judge a table of seeds for that.",
    "Every task weighs the same, whatever its number of items. A task was not chosen for its result, or choosing it "
    "was a try that the ledger has to know of.",
    "Items are taken as independent: several questions on one text are fewer than they seem.",
)


def items_sentence(judged: ItemComparison, metric: str, tried: str | None = None) -> str:
    """Write the verdict in a sentence, to be quoted as it is; `tried`: the tries, and where they stand."""
    items = sum(each.items for each in judged.tasks)
    tasks = f" of {len(judged.tasks)} tasks" if len(judged.tasks) > 1 else f" of {quote_name(judged.tasks[0].task)}"
    gain, above = format_value(judged.gain, judged.error), format_value(judged.high, judged.error)
    p_said = p_of(judged.p, judged.p_corrected, judged.tries, tried)
    level = f"{format_count(items, 'item')}{tasks}, paired; one-sided {p_said}"
    subject, against = quote_name(judged.name), quote_name(judged.baseline)
    if judged.outcome is Outcome.KEEP:
        low = format_value(judged.low, judged.error)
        return f"{subject} improves {quote_name(metric)} over {against} by {gain}, between {low} and {above} ({level})."
    seen = f"the gain seen is {gain} ({level})"
    if judged.outcome is Outcome.DISCARD:
        return f"{subject}: a gain in {quote_name(metric)} over {against} is ruled out above {above}: {seen}."
    more = ""
    if judged.items_more is not None and judged.items_more > 1:
        added = f"{(judged.items_more - 1) * items:,} more items"
        more = f": {added} would find a gain of that size with {format_percent(POWER)} chance"
    ruled_out = f"in {quote_name(metric)} only gains above {above} are ruled out"
    return f"{subject} is not decided against {against}{more}: {seen}; {ruled_out}."


def _read(judged: ItemComparison, request: NumbersRequest, metric: str) -> str:
    test = "McNemar's exact test of the items on which the models differ"
    if not judged.exact:
        test = "the mean over tasks of the paired differences over its standard error"
    asked = f" The required gain is more than {judged.terms.minimum_gain:g}." if judged.terms.minimum_gain else ""
    levels = ", ".join(
        f"{'yes' if judged.p_corrected <= level else 'no'} at {level:g} ({what})"
        for level, what in ((LOOP, "for a loop"), (CLAIM, "for a claim"))
    )
    return (
        f"Samples of lm-eval were read from {quote_name(request.path.name)} and {quote_name(judged.baseline)}, metric "
        f"{quote_name(metric)}, the newest file of each task. {direction(judged.terms)}; gains count upwards. What "
        f"decides: {test}, one-sided; p times the ledger's {format_count(judged.tries, 'try', 'tries')} must be at "
        f"most {judged.terms.alpha:g}.{asked} p = {formatting.format_p(judged.p)}, corrected "
        f"{formatting.format_p(judged.p_corrected)}; better: {levels}."
    )


def _tasks(judged: ItemComparison) -> str:
    rows = [
        (
            quote_name(each.task),
            f"{each.items:,}",
            f"{each.mean:.4f}",
            f"{each.mean_baseline:.4f}",
            f"{each.gain:+.4f}",
            f"{each.error:.4f}",
            f"{each.better:,} / {each.worse:,}",
        )
        for each in judged.tasks
    ]
    rows.append(("all, each task the same", "", "", "", f"{judged.gain:+.4f}", f"{judged.error:.4f}", ""))
    columns = ("task", "items", quote_name(judged.name), quote_name(judged.baseline), "gain", "standard error, paired")
    return write_grid((*columns, "items better / worse"), rows)

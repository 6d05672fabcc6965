"""Fills in the page of a verdict on a user's own modification, with what the study's targets show of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core.files import format_path
from plumbline.core.formats import format_count
from plumbline.specs.own_methods_file import OwnMethodsFile
from plumbline.specs.spec_words import describe_size, list_differences
from plumbline.verdict import formatting
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparability import every_check
from plumbline.verdict.formatting import join_with_and, quote, write_grid
from plumbline.verdict.judge import BaselineComparison
from plumbline.verdict.ledger import Ledger
from plumbline.verdict.numbers import score_table_page as pages
from plumbline.verdict.numbers.sentences import write_headline, write_sentence
from plumbline.verdict.own_method import ledger_costs
from plumbline.verdict.own_method import own_tables as tables
from plumbline.verdict.own_method.decision_accuracy import DecisionAccuracy
from plumbline.verdict.own_method.finished_run_reader import FinishedRunReader
from plumbline.verdict.page import VerdictPage, write_list, write_repeat
from plumbline.verdict.picture import DecisionPicture
from plumbline.verdict.runs_picture import ALT, describe_order, picture_runs

AGAIN = "Finished runs are used as they are; the same file again is not a new try, one more seed is."


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictContents:
    """Everything that the page shows.

    Attributes:
        comparisons: method -> judgement by the metric that decides; without those that diverged runs leave unjudged.
        report: the report of the checks before the runs.
        tries: baseline, as the ledger has it -> what every p is multiplied by.
    """

    reader: FinishedRunReader
    comparisons: dict[str, BaselineComparison]
    report: dict[str, Any]
    tries: dict[str, int]
    ledger: Ledger
    orders: Sequence[DecisionAccuracy]
    page: Path

    def groups(self) -> dict[str, dict[str, BaselineComparison]]:
        """Group the judgements by the baseline that the methods were compared with."""
        against = self.reader.mine.against
        return {
            baseline: {method: each for method, each in self.comparisons.items() if against[method] == baseline}
            for baseline in self.reader.mine.references
            if any(against[method] == baseline for method in self.comparisons)
        }


def write_first_sentence(result: VerdictContents) -> str:
    """Write the page's first sentence: the verdict on each method, and the size at which it was reached."""
    mine, metric = result.reader.mine, result.reader.deciding.name
    specs = [run.spec for method in (*mine.references, *mine.against) for run in mine.runs(mine.scale, method)]
    size = describe_size(mine.study.scale_label(mine.scale), mine.study.preset, specs)
    sentences = [
        write_headline(comparisons, baseline, metric, tries_text=_describe_tries(result))
        for baseline, comparisons in result.groups().items()
    ]
    sentences += [why for method in mine.against if (why := result.reader.explain_unjudged(method))]
    return f"At {size}: {' '.join([*sentences, *_list_diverged_larger(result.reader)])}"


def _list_diverged_larger(reader: FinishedRunReader) -> list[str]:
    """Who diverged at the larger scale: a sentence each, for a verdict at the smaller one is not to hide it."""
    mine = reader.mine
    if mine.larger is None:
        return []
    return [
        f"At {mine.study.scale_label(mine.larger)} (scale {mine.larger}) {len(runs)} of "
        f"{format_count(len(mine.runs(mine.larger, method)), 'seed')} of {quote(method)} diverged."
        for method in mine.compared
        if (runs := reader.list_diverged_larger(method))
    ]


def make_page(result: VerdictContents) -> VerdictPage:
    """Fill in the page."""
    reader, mine, picture = result.reader, result.reader.mine, make_picture(result)
    tests = [
        part
        for baseline, comparisons in result.groups().items()
        for part in pages.write_tests(list(comparisons.values()), baseline, "paired: true")
    ]
    sections = {
        "What decides": [_describe_test(result), *tests],
        "Runs": [tables.write_runs(reader)],
        "Before the runs": [_write_parity(result)],
        "By study targets": _write_study_targets(result),
        "What it stands on": [
            every_check.write_answers_of_methods(reader.comparability),
            describe_order(picture, len(mine.compared)),
        ],
        "What it cost": [tables.write_cost(reader)],
        "Ledger": [_write_ledger(result)],
        "Limits": [_write_limits(result)],
        "How to repeat": [write_repeat(AGAIN, _write_command(mine), result.page)],
    }
    candidates, baselines = (join_with_and(list(map(quote, names))) for names in (mine.against, mine.references))
    return VerdictPage(
        title=f"{candidates} against {baselines}",
        sentence=write_first_sentence(result),
        told=every_check.list_told_of_methods(reader.comparability),
        picture=picture,
        alt=ALT,
        details=_write_methods(result),
        sections={heading: "\n\n".join(filter(None, parts)) for heading, parts in sections.items()},
        checks=result.report,
    )


def _write_study_targets(result: VerdictContents) -> list[str]:
    """What the study measures beyond what decides: other metrics, tasks, the larger scale, power, printed numbers."""
    reader = result.reader
    sections = ["### By other metrics, not deciding", tables.write_measures(reader), *tables.write_tasks(reader)]
    sections += ["### The larger scale", tables.write_larger(reader)]
    for group in result.groups().values():
        sections += ["### Power", pages.write_power(list(group.values())), tables.write_needed_hours(reader, group)]
    sections += ["### What such a verdict is worth at another scale", tables.write_orders(result.orders)]
    return [*sections, *tables.write_published(reader)]


def make_picture(result: VerdictContents) -> DecisionPicture:
    """State what is drawn: the values of every method and baseline at the scale that decides, and each gain."""
    reader, mine = result.reader, result.reader.mine
    return picture_runs(
        reader.evidence(reader.deciding, mine.scale),
        mine.references,
        list(mine.against),
        result.comparisons,
        title=f"{', '.join(mine.against)} against {', '.join(mine.references)}",
        higher=reader.deciding.higher,
        listed_by="seeds",
        minimum_gain=mine.asked["minimum_gain"],
    )


def _describe_tries(result: VerdictContents) -> dict[str, str]:
    """The tries against each baseline, as it is shown, and where they stand."""
    mine, metric = result.reader.mine, result.reader.deciding.name
    return {
        baseline: ledgers.describe_tries(result.ledger, ledger_costs.name_baseline(mine, method), metric)
        for method, baseline in mine.against.items()
    }


def _write_methods(result: VerdictContents) -> str:
    """A sentence for each method where the first names several, and what the larger scale adds."""
    reader, against, metric = result.reader, result.reader.mine.against, result.reader.deciding.name
    sentences = []
    if len(result.comparisons) > 1:
        tried = _describe_tries(result)
        sentences += [
            write_sentence(each, against[method], metric, tries_text=tried)
            for method, each in result.comparisons.items()
        ]
    for method, each in result.comparisons.items():
        if (larger := reader.compare_larger_scale(method)) is not None:
            assert reader.mine.larger is not None
            sign_text = "the same sign" if larger.gain * each.gain > 0 else "not the same sign"
            moved = formatting.describe_effect(larger.gain, metric, each.sigma, higher=reader.deciding.higher)
            sentences.append(
                f"At {reader.mine.study.scale_label(reader.mine.larger)} {quote(method)} {moved} "
                f"({format_count(larger.seeds, 'seed')} against {larger.seeds_baseline}): {sign_text}."
            )
    return write_list(sentences)


def _write_parity(result: VerdictContents) -> str:
    rows, sentences = [], []
    for method, entry in result.report["methods"].items():
        for scale, parity in entry["parity"].items():
            mine, theirs = parity["method"], parity["baseline"]
            percentages = [100 * (mine[key] - theirs[key]) / theirs[key] for key in ("parameters", "operations")]
            flag = "flagged" if f"parity at {scale}" in entry["flagged"] else "within"
            rows.append(
                (quote(method), scale, f"{mine['parameters']:,}", *(f"{each:+.3f} %" for each in percentages), flag)
            )
        sentences += [f"{quote(method)}: {text}." for text in entry["flagged"].values()]
    tolerance = f"tolerance of {result.reader.mine.asked['parity']:g} %"
    columns = ("method", "scale", "parameters", "more than its baseline", "operations more", tolerance)
    return "\n\n".join(part for part in (write_grid(columns, rows) if rows else "", write_list(sentences)) if part)


def _describe_test(result: VerdictContents) -> str:
    mine, settings = result.reader.mine, result.reader.mine.asked
    loss = ""
    if result.reader.deciding.name == "validation_loss":
        loss = f" A run's loss is the mean of its evaluations in the last {100 * settings['last']:g} % of its steps."
    return (
        f"{quote(format_path(mine.path))} extends `{mine.study.code}`; what decides is named in it: "
        f"{result.reader.deciding.label}, at scale `{mine.scale}`; whether that was before the runs cannot be checked "
        "here."
        f"{loss} With any numbers of seeds the deciding test "
        "errs as often as it promises if runs are normal and spread alike; more of them find smaller gains."
    )


def _write_ledger(result: VerdictContents) -> str:
    mine, metric = result.reader.mine, result.reader.deciding.name
    sentences = []
    for baseline, count in result.tries.items():
        tries_made, plan = (
            ask(baseline, metric) for ask in (result.ledger.count_tries_made, result.ledger.count_planned_tries)
        )
        hint = f"; {plan} were announced (`planned_tries:`) and are corrected for from the first on" if plan else ""
        if tries_made > plan > 0:
            hint = f"; {plan} were announced (`planned_tries:`), fewer than were made"
        sentences.append(
            f"{format_count(tries_made, 'try', 'tries')} against {quote(baseline)} in {quote(metric)}, this "
            f"page's among them{hint}: every p is multiplied by {count}."
        )
    ours = sum(result.ledger.count_tries_made(baseline, metric) for baseline in result.tries)
    if number := len({entry.identity for entry in result.ledger.entries if entry.is_try}) - ours:
        sentences.append(f"{number} more, against other baselines or in other metrics, are not counted here.")
    advice = f"Asked for again (`{_write_command(mine)}`), the page is rebuilt when there are new tries."
    return "\n\n".join([" ".join([*sentences, advice]), ledgers.write_statement(result.ledger, result.page.parent)])


def _write_limits(result: VerdictContents) -> str:
    reader, mine = result.reader, result.reader.mine
    every = list(result.comparisons.values())
    sentences = [
        f"A verdict is of its size: {mine.study.scale_label(mine.scale)} at preset {mine.study.preset}. It neither "
        "supports nor refutes a claim about a larger model.",
        *_describe_recipes(mine),
        "A seed varies the initialisation; the order of the data is one for all, so that its noise is not in sigma.",
    ]
    if every:
        sentences += pages.list_limits(every)
    proxies = sorted(task for task, source in reader.frames.task_sources.items() if "proxy" in source)
    if proxies:
        sentences.append(f"Stand-ins made from held-out documents, not benchmarks: {', '.join(proxies)}.")
    if mine.larger is not None and len(mine.asked["larger_seeds"]) == 1:
        sentences.append("The larger scale has one seed of each: its sign is a single draw.")
    sentences += [
        f"{quote(method)} lost {', '.join(runs)} at the larger scale: no gain is given there, since using the "
        "other seeds would select among its runs."
        for method in mine.compared
        if (runs := reader.list_diverged_larger(method))
    ]
    sentences += [
        f"{format_count(len(runs), 'run')} of {quote(method)} diverged and {'is' if len(runs) == 1 else 'are'} "
        f"not used: {', '.join(runs)}."
        for method in mine.compared
        if (runs := reader.list_diverged(mine.scale, method))
    ]
    sentences += reader.frames.notes
    return write_list(sentences)


def _describe_recipes(mine: OwnMethodsFile) -> list[str]:
    """Describe how, apart from the model, a method's training differs from its baseline's: it may cause a gain."""
    sentences = []
    for method, baseline in mine.against.items():
        if differs := list_differences(*(mine.runs(mine.scale, each)[0].spec for each in (method, baseline))):
            sentences.append(f"{quote(method)} is not trained by its baseline's recipe: {', '.join(differs)}.")
    return sentences or [
        "The recipe is that of the study: no learning rate was tuned, neither for a method nor for the baseline."
    ]


def _write_command(mine: Any) -> str:
    options = f"--config preset={mine.study.preset} mine={shlex.quote(format_path(mine.path))}"
    return f"snakemake results/verdict/{mine.name}.md {options}"

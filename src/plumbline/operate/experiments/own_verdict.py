"""Writes the verdict on a user's own modification from its finished runs.

    python -m plumbline.operate.experiments.own_verdict my/cosine.yaml

``snakemake results/verdict/cosine.md --config mine=my/cosine.yaml`` makes the runs that are missing, and calls this.
What decides is the same test as of any numbers (`plumbline.verdict.judge`); each method is entered in the ledger.
"""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core import files, fingerprint_file
from plumbline.core.command_line import HIDDEN, Parser, run
from plumbline.core.errors import PlumblineError
from plumbline.operate.preflight.method_checks import checks_report, finished_run_checks
from plumbline.results.runs.expected_runs import list_expected_runs, require_expected
from plumbline.results.runs.finished_runs import load as load_runs
from plumbline.specs import corpus
from plumbline.specs import own_methods_file as own
from plumbline.specs.checked_models import fingerprint_checks
from plumbline.specs.yaml_files import PRESETS
from plumbline.verdict import implausible_gain
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparability import every_check
from plumbline.verdict.judge import BaselineComparison
from plumbline.verdict.ledger import Ledger
from plumbline.verdict.numbers.verdict_texts import comparison_to_json, to_json_value
from plumbline.verdict.own_method import decision_accuracy, ledger_costs, own_page
from plumbline.verdict.own_method.finished_run_reader import FinishedRunReader


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictInputs:
    """Everything that the page of a verdict is made from.

    Attributes:
        work: the preset's folder of runs and scores.
        checks: the report of the checks before the runs; made again where it is of another state of the code.
        expected_runs: digest of the runs that the job was planned with; "" to use those of the file as it is now.
        fingerprint: the page's fingerprint, to be recorded.
    """

    mine: own.OwnMethodsFile
    work: Path
    checks: Path
    ledger: Path
    page: Path
    expected_runs: str = ""
    fingerprint: str = ""


def write(request: VerdictInputs) -> str:
    """Judge every method, enter it in the ledger, and write the page, its picture and its numbers.

    Returns the page's first sentence. Nothing is entered where a check fails, a run is missing, or there is no noise to
    judge by.

    Raises:
        PlumblineError: one of these; or the page to be replaced was made with a ledger that this one does not continue.
    """
    mine = request.mine
    groups = mine.study.usual_groups
    if request.expected_runs:
        require_expected(request.expected_runs, mine.study, groups)
    report = checks_report.read_report(request.checks, fingerprint_checks(mine))
    if report is None:
        report = checks_report.make_report(mine)
        if checks_report.can_be_kept(report):
            files.atomic_write_json(request.checks, report)
    checks_report.require_no_failure(report, mine.path)
    suite = mine.study.suite
    frames = load_runs(
        list_expected_runs(None, mine.study, groups, request.work),
        request.work,
        average=suite.average if suite else "",
        scores=suite is not None,
    )
    reader = FinishedRunReader(mine, frames)
    reader.require_there()
    unpaid = compare_methods(reader, {})  # no noise to judge by is no try
    reader.require_gains_at_the_end(unpaid)
    report = report | {
        "trained_weights": finished_run_checks.check_finished_runs(mine, request.work, reader.list_completed)
    }
    loss, preset = reader.deciding.name == "validation_loss", mine.study.preset
    report["implausible"] = {
        method: reason
        for method, comparison in unpaid.items()
        if (
            reason := implausible_gain.describe_implausible_gain(
                comparison.gain, comparison.sigma, comparison.freedom, comparison.mean_baseline, preset, loss=loss
            )
        )
    }
    with _append_tries(request) as ledger:
        corrected = ledger_costs.count_tries(ledger, ledger_costs.make_entries(mine))
        result = own_page.VerdictContents(
            reader=reader,
            comparisons=compare_methods(reader, corrected),
            report=report,
            tries=corrected,
            ledger=ledger,
            orders=[*decision_accuracy.read_printed(mine.study.code), *_list_own_orders(reader, request.page)],
            page=request.page,
        )
        page = own_page.make_page(result)
        page.write(request.page, _list_numbers(result, page.sentence))
    numbers = {decision_accuracy.NUMBERS: files.sha256_file(request.page.with_suffix(".json"))}
    companions = [request.page.with_suffix(ending) for ending in (".json", ".svg")]
    fingerprint_file.write(request.page, request.fingerprint, companions=companions, **numbers)
    return page.sentence


def compare_methods(reader: FinishedRunReader, corrected: dict[str, int]) -> dict[str, BaselineComparison]:
    """Judge every method that can be by the deciding metric.

    `corrected`: baseline -> what p is multiplied by.
    """
    return {
        method: reader.compare(
            method, reader.deciding, tries=corrected.get(ledger_costs.name_baseline(reader.mine, method), 1)
        )
        for method in reader.mine.against
        if not reader.explain_unjudged(method)
    }


def _append_tries(request: VerdictInputs) -> AbstractContextManager[Ledger]:
    ledgers.require_continued(request.ledger, request.page)
    return ledgers.append_provisionally(request.ledger, ledger_costs.make_entries(request.mine))


def _list_own_orders(reader: FinishedRunReader, page: Path) -> list[decision_accuracy.DecisionAccuracy]:
    """The pairs that these runs themselves order at both scales; and with them those of earlier pages."""
    mine, label, orders = reader.mine, reader.deciding.label, []
    averages = _average_at_both_scales(reader)
    if averages is not None:
        base, larger = ({method: each[place] for method, each in averages["means"].items()} for place in (0, 1))
        own_order = decision_accuracy.compare(base, larger, source="the runs of this page", metric=label)
        orders += [own_order] if own_order.pairs > 1 else []  # 0 or 100 % of one pair says nothing
    pages = [
        entry
        for entry in decision_accuracy.read_pages(page.parent, without=mine.name)
        if (entry["study"], entry["metric"], entry["scales"][0]) == (mine.study.code, reader.deciding.name, mine.scale)
    ]
    pool = decision_accuracy.pool_pages([*pages, *([averages] if averages else [])], label) if pages else None
    return [*orders, *([pool] if pool else [])]


def _average_at_both_scales(reader: FinishedRunReader) -> dict[str, Any] | None:
    """Means by method at both scales, of methods of which no run diverged; None if no larger scale was requested."""
    mine = reader.mine
    if mine.larger is None:
        return None
    scales, means = [mine.scale, mine.larger], {}
    for method in mine.compared:
        values = [reader.values(reader.deciding, scale, method) for scale in scales]
        if all(values) and not any(reader.list_diverged(scale, method) for scale in scales):
            study = mine.runs(mine.scale, method)[0].spec.study
            means[f"{study}/{method}"] = [sum(each.values()) / len(each) for each in values]
    return {"study": mine.study.code, "metric": reader.deciding.name, "scales": scales, "means": means}


def _list_numbers(result: own_page.VerdictContents, sentence: str) -> dict[str, Any]:
    """Every number of the page, and the runs that it is from."""
    reader, mine = result.reader, result.reader.mine
    runs = {
        key: {"run_id": row["run_id"], "outcome": row["outcome"]}
        | {
            metric.name: reader.values(metric, row["scale"], row["method"]).get(str(row["seed"]))
            for metric in reader.metrics
        }
        for key, row in reader.frames.runs.iterrows()
    }
    return to_json_value(
        {
            "sentence": sentence,
            "preset": mine.study.preset,
            "scale": mine.scale,
            "decides": reader.deciding.name,
            "against": mine.against,
            "asked": mine.asked
            | {"published": files.format_path(mine.asked["published"]) if mine.asked["published"] else ""},
            "methods": {method: comparison_to_json(each) for method, each in result.comparisons.items()},
            "not judged": {method: why for method in mine.against if (why := reader.explain_unjudged(method))},
            "diverged": {name: lost for name in mine.compared if (lost := reader.list_diverged(mine.scale, name))},
            "comparability": {
                method: every_check.answers_to_json(each) for method, each in reader.comparability.items()
            },
            "tries": result.tries,
            "ledger": {"length": len(result.ledger), "head": result.ledger.head},
            "checks": result.report,
            "orders": [dataclasses.asdict(order) for order in result.orders],
            decision_accuracy.KEY: _average_at_both_scales(reader),
            "runs": runs,
            "evidence": reader.evidence(reader.deciding, mine.scale).medians,
        }
    )


def arguments() -> Parser:
    """Build the command-line parser of `python -m plumbline.operate.experiments.own_verdict`."""
    parser = Parser(__doc__)
    add = parser.add_argument
    add("mine", metavar="FILE.yaml", help="your file that says `extends:`")
    add("--preset", choices=PRESETS, default="demo")
    add("--work", type=Path, help="where the runs are (default work/PRESET)")
    add("--documents-source", default=corpus.AS_THE_CORPUS_SAYS, help="where documents come from")
    add("--checks", type=Path, help="results of the checks before the runs (default: below --work)")
    add("--ledger", type=Path, help="default: ledger.jsonl next to the page")
    add("--expected-runs-digest", default="", metavar="DIGEST", help=HIDDEN)
    add("--fingerprint", default="", help=HIDDEN)
    add("--out", type=Path, required=True, metavar="PAGE.md", help="the page, with PAGE.svg and PAGE.json next to it")
    return parser


def main() -> None:
    """Write the page of a user's own file, and print its first sentence."""
    options = arguments().parse_args()
    if options.out.suffix != ".md":
        raise PlumblineError(
            f"--out {options.out} must end in .md; the numbers go next to it, in a file ending in .json"
        )
    mine = own.load(options.mine, options.preset, source=options.documents_source)
    work = options.work or Path("work") / options.preset
    request = VerdictInputs(
        mine=mine,
        work=work,
        checks=options.checks or work / "verdict" / mine.name / "checks.json",
        ledger=options.ledger or options.out.with_name("ledger.jsonl"),
        page=options.out,
        expected_runs=options.expected_runs_digest,
        fingerprint=options.fingerprint,
    )
    print(f"{write(request)}\n\n{options.out}")


if __name__ == "__main__":
    run(main)

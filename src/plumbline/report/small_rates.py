"""Chooses the learning rate of each tuned arm of a study's small.yaml by its tuning runs, and writes small_rates.yaml.

Without an option the rates are printed. The file is part of the study, as the statements are: what is chosen stands in
it before the runs at these rates are made, and is not written anew by this.
"""

from __future__ import annotations

from pathlib import Path

from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text
from plumbline.results.runs.expected_runs import list_expected_runs
from plumbline.results.runs.finished_runs import load
from plumbline.results.runs.stated_values import RunValues, choose_rate
from plumbline.specs import corpus, name_completers, small_file, small_runs, study_config
from plumbline.specs.small_file import SMALL_PRESET
from plumbline.specs.yaml_files import ROOT

_HEAD = (
    "# The rates of lowest mean validation loss over the tuning seeds, as multiples of the arm's own learning rate,\n"
    "# written before any run at them by the seeds that judge: python -m plumbline.report.small_rates {study} --write\n"
)


def arguments() -> Parser:
    """Build the command-line parser of `python -m plumbline.report.small_rates`."""
    parser = Parser(__doc__)
    parser.add_argument("study", completer=name_completers.studies)
    parser.add_argument("--work", type=Path, default=Path("work") / SMALL_PRESET, help="where the runs are")
    source = "source of the documents, if not the corpus's own; it is part of the identity of runs"
    parser.add_argument("--documents-source", default=corpus.AS_THE_CORPUS_SAYS, help=source)
    parser.add_argument("--write", action="store_true", help="write the study's small_rates.yaml, where there is none")
    return parser


def main() -> None:
    """Print or write the rates.

    Raises:
        PlumblineError: a tuning run is missing, or the file is there with other rates.
    """
    options = arguments().parse_args()
    text = describe_rates(options.study, options.work, ROOT, options.documents_source)
    path = small_file.rates_path_of(options.study, ROOT)
    if not options.write:
        print(text, end="")
    elif not path.exists():
        atomic_write_text(path, text)
        print(path)
    elif path.read_text(encoding="utf-8") != text:
        raise PlumblineError(f"{path}: has other rates than these runs choose; remove it to choose anew:\n{text}")


def describe_rates(study: str, work: Path, root: Path = ROOT, source: str = corpus.AS_THE_CORPUS_SAYS) -> str:
    """Choose the rates, and write them as the content of small_rates.yaml.

    Raises:
        PlumblineError: nothing is tuned, or a tuning run is missing.
    """
    small = small_file.load_small(study, root)
    if not small.tuned_arms:
        raise PlumblineError(f"{small_file.path_of(study, root)}: no statement has `tuning`, so no rate is chosen")
    config = study_config.load(study, SMALL_PRESET, root, source)
    runs = [each for each in small_runs.list_stated_runs(config.definition, small, root, source) if each.tuning]
    unique_runs = {(each.size, each.arm, each.spec.key): each for each in runs}
    expected_runs = list_expected_runs(None, config, [small_runs.PILOT], work)
    values = RunValues(load(expected_runs, work, scores=False))
    missing_runs = [key for _, _, key in unique_runs if values.is_missing(key)]
    if missing_runs:
        raise PlumblineError(
            f"{len(missing_runs)} tuning runs are missing below {work}, such as {missing_runs[0]}; make "
            f"results/{SMALL_PRESET}/{study}/{small_runs.PILOT}.csv of all sizes first"
        )
    lines = [_HEAD.format(study=study) + f"study: {study}", "rates:"]
    for size, arms in small.tuned_arms.items():
        lines.append(f"  {size}:")
        for arm in arms:
            rate = choose_rate([each for key, each in unique_runs.items() if key[:2] == (size, arm)], values)
            tried_rates = sorted(
                {each.rate for key, each in unique_runs.items() if key[:2] == (size, arm) and each.rate}
            )
            if rate is None:  # its runs at any rate leave the statement not decided; other arms and sizes have theirs
                lines.append(
                    f"    {arm}: {1.0 if 1.0 in tried_rates else tried_rates[0]:g}  # none: no rate has "
                    "a loss in every run"
                )
            else:
                end = {tried_rates[0]: "  # the lowest tried", tried_rates[-1]: "  # the highest tried"}.get(rate, "")
                lines.append(f"    {arm}: {rate:g}{end}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    run(main)

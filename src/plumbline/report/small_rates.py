"""Chooses the learning rate of each tuned arm of a study's small.yaml by its tuning runs, and writes small_rates.yaml.

Without an option the content is printed. The file is part of the study, as the statements are: what is chosen stands in
it before the runs at these rates are made, and is not written anew by this. A size is added when all its tuning runs
are there.
"""

from __future__ import annotations

from pathlib import Path

from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError, warn_once
from plumbline.core.files import atomic_write_text
from plumbline.results.runs.expected_runs import list_expected_runs
from plumbline.results.runs.finished_runs import load
from plumbline.results.runs.stated_values import RunValues, choose_rate
from plumbline.specs import corpus, name_completers, small_file, small_runs, study_config
from plumbline.specs.small_file import SMALL_PRESET
from plumbline.specs.yaml_files import ROOT, parse_yaml

_HEAD = (
    "# The rates of lowest mean validation loss over the tuning seeds, as multiples of the arm's own learning rate,\n"
    "# written before any run at them by the seeds that judge: python -m plumbline.report.small_rates {study} --write\n"
    "study: {study}\n"
    "rates:\n"
)


def arguments() -> Parser:
    """Build the command-line parser of `python -m plumbline.report.small_rates`."""
    parser = Parser(__doc__)
    parser.add_argument("study", completer=name_completers.studies)
    parser.add_argument("--work", type=Path, default=Path("work") / SMALL_PRESET, help="where the runs are")
    source = "source of the documents, if not the corpus's own; it is part of the identity of runs"
    parser.add_argument("--documents-source", default=corpus.AS_THE_CORPUS_SAYS, help=source)
    parser.add_argument("--write", action="store_true", help="write the study's small_rates.yaml, or add sizes to it")
    return parser


def main() -> None:
    """Print or write the rates.

    Raises:
        PlumblineError: no size has all its tuning runs, or the file has other rates.
    """
    options = arguments().parse_args()
    text = describe_rates(options.study, options.work, ROOT, options.documents_source)
    if options.write:
        path = small_file.rates_path_of(options.study, ROOT)
        atomic_write_text(path, text)
        print(path)
    else:
        print(text, end="")


def describe_rates(study: str, work: Path, root: Path = ROOT, source: str = corpus.AS_THE_CORPUS_SAYS) -> str:
    """Choose the rates of each size whose tuning runs are all there, and add them to the content of small_rates.yaml.

    Raises:
        PlumblineError: nothing is tuned, no size has all its tuning runs, or the file has other rates of one that has,
            or is laid out so that none can be added.
    """
    small = small_file.load_small(study, root)
    if not small.tuned_arms:
        raise PlumblineError(f"{small_file.path_of(study, root)}: no statement has `tuning`, so no rate is chosen")
    path, written_sizes = small_file.rates_path_of(study, root), small_file.load_rates(small, root)
    text = path.read_text(encoding="utf-8") if path.exists() else _HEAD.format(study=study)
    text, added_text = text.rstrip("\n") + "\n", ""
    config = study_config.load(study, SMALL_PRESET, root, source)
    runs = [each for each in small_runs.list_stated_runs(config.definition, small, root, source) if each.tuning]
    unique_runs = {(each.size, each.arm, each.spec.key): each for each in runs}
    values = RunValues(load(list_expected_runs(None, config, [small_runs.PILOT], work), work, scores=False))
    warnings, chosen_sizes = [], dict(written_sizes)
    for size, arms in small.tuned_arms.items():
        runs_by_arm = {arm: [each for key, each in unique_runs.items() if key[:2] == (size, arm)] for arm in arms}
        keys = dict.fromkeys(each.spec.key for runs_of_arm in runs_by_arm.values() for each in runs_of_arm)
        if missing_keys := [key for key in keys if values.is_missing(key)]:
            warnings.append(
                f"{size}: {len(missing_keys)} of {len(keys)} tuning runs are missing below {work}, such as "
                f"{missing_keys[0]}, so no rate is chosen; make results/{SMALL_PRESET}/{study}/{small_runs.PILOT}.csv "
                f"with 'sizes=[{size}]'"
            )
            continue
        choices = {arm: _choose_rate(each, values) for arm, each in runs_by_arm.items()}
        chosen_sizes[size] = {arm: rate for arm, (rate, _) in choices.items()}
        size_text = f"  {size}:\n" + "".join(f"    {arm}: {rate:g}{note}\n" for arm, (rate, note) in choices.items())
        if size not in written_sizes:
            added_text += size_text
        elif written_sizes[size] != chosen_sizes[size]:
            raise PlumblineError(
                f"{path}: rates.{size}: these runs choose other rates; remove its lines to choose anew:\n{size_text}"
            )
    if len(warnings) == len(small.tuned_arms):
        raise PlumblineError("\n".join(warnings))
    for warning in warnings:
        warn_once(warning)
    text += added_text
    try:
        content = parse_yaml(text, str(path))
    except PlumblineError:
        content = None
    if content != {"study": study, "rates": chosen_sizes}:
        raise PlumblineError(
            f"{path}: is laid out in another way, so that nothing was written; add by hand:\n{added_text}"
        )
    return text


def _choose_rate(runs: list[small_runs.StatedRun], values: RunValues) -> tuple[float, str]:
    """The rate of an arm by its tuning runs at a size, and a comment on one that may not be the best."""
    rate = choose_rate(runs, values)
    tried_rates = sorted({each.rate for each in runs if each.rate})
    if rate is None:  # its runs at any rate leave the statement not decided; other arms and sizes have theirs
        rate = 1.0 if 1.0 in tried_rates else tried_rates[0]
        return rate, "  # none: no rate has a loss in every run"
    return rate, {tried_rates[0]: "  # the lowest tried", tried_rates[-1]: "  # the highest tried"}.get(rate, "")


if __name__ == "__main__":
    run(main)

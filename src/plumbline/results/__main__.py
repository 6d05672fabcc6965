"""Makes a table, a figure or the verdicts on claims from finished runs: ``python -m plumbline.results
{table,figure,claims} STUDY``; prints a finished table in a terminal: ``python -m plumbline.results show TABLE.csv``.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core import fingerprint_file
from plumbline.core.command_line import HIDDEN, Parser, run
from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import atomic_write_text
from plumbline.results.runs.expected_runs import FOUND, list_expected_runs, require_expected
from plumbline.specs import corpus, name_completers, study_config, study_folders, study_parts
from plumbline.specs.yaml_files import PRESETS, ROOT

# What only one verb needs is loaded by that verb: a table waits for no drawing library.
if TYPE_CHECKING:
    from plumbline.results.runs.finished_runs import RunFrames

#: How the file ends that stands for a product, and the others beside it.
ENDINGS = {
    "table": (".csv", ".md, .tex and .provenance.json"),
    "figure": (".png", ".svg and .csv"),
    "claims": (".csv", ".md"),
}
#: Runs of other specs that a table's warning names; the others stand in its provenance.
FEW = 3


def arguments() -> Parser:
    """Build the command-line parser of `python -m plumbline.results`."""
    parser = Parser(__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, summary in (("table", "make one table"), ("figure", "draw one figure"), ("claims", "judge every claim")):
        verb_parser = verbs.add_parser(verb, help=summary)
        verb_parser.set_defaults(expected_runs=None)
        verb_parser.add_argument("study", completer=name_completers.studies)
        if verb != "claims":
            verb_parser.add_argument(
                "target", completer=name_completers.targets(verb), help=f"a {verb} of studies/STUDY/study.yaml"
            )
            sizes = "of small models, the sizes whose runs are read, with commas between (default all)"
            verb_parser.add_argument("--sizes", default="", metavar="SIZES", help=sizes)
        verb_parser.add_argument("--preset", choices=PRESETS, default="demo")
        verb_parser.add_argument("--work", type=Path, help="where the runs are (default work/PRESET)")
        if verb == "table":
            verb_parser.add_argument(
                "--expected-runs", choices=[FOUND], help="use the runs that exist, whatever their spec, and state that"
            )
        verb_parser.add_argument("--expected-runs-digest", metavar="DIGEST", help=HIDDEN)
        source = "source of the documents, if not the corpus's own; it is part of the identity of runs"
        verb_parser.add_argument("--documents-source", default=corpus.AS_THE_CORPUS_SAYS, help=source)
        verb_parser.add_argument("--out", type=Path, required=True)
        verb_parser.add_argument("--work-shown-as", default="", help=HIDDEN)
        verb_parser.add_argument("--fingerprint", default="", help=HIDDEN)
    show_parser = verbs.add_parser(
        "show",
        help="print a finished table in a terminal",
        description="Prints a finished table, as wide as the terminal.",
    )
    show_parser.add_argument("table", type=Path, help="a table's csv, such as results/table2.csv")
    return parser


def main() -> None:
    """Run `python -m plumbline.results`: read the runs, make the requested product, and write its files.

    Raises:
        PlumblineError: ``--out`` has another ending than the product, or ``--work`` is no folder of runs.
    """
    options = arguments().parse_args()
    if options.verb != "show":
        _require_paths(options)
    if options.verb == "show":
        from plumbline.results.tables import terminal_table

        print(
            terminal_table.format_for_terminal(options.table, shutil.get_terminal_size((terminal_table.WIDTH, 24))[0])
        )
    elif options.verb == "claims":
        _judge_study_claims(options)
    else:
        _make_target(options)


def _require_paths(options: argparse.Namespace) -> None:
    """Refuse a mistyped path, which would give a product of nothing, or one file in the place of another."""
    ending, other_endings = ENDINGS[options.verb]
    if options.out.suffix != ending:
        raise PlumblineError(f"--out {options.out} must end in {ending}; {other_endings} are written next to it")
    if options.work is None or options.expected_runs_digest:  # the default is made by the first run; jobs know theirs
        return
    if not options.work.is_dir():
        raise PlumblineError(
            f"--work: there is no folder {options.work}; name the one of the preset, such as work/demo"
        )
    below = options.work / options.preset
    if (below / "runs").is_dir() and not (options.work / "runs").is_dir():
        raise PlumblineError(f"--work: {options.work} holds the work of several presets; name {below}")


def find_target(study: study_config.Study, target: str, kind: str) -> dict[str, Any]:
    """Find the entry of a target of this kind in the study's YAML.

    Raises:
        PlumblineError: there is no such target.
    """
    targets = {name: entry for name, entry in study.definition["targets"].items() if entry["kind"] == kind}
    if target not in targets:
        raise PlumblineError(
            f"{study.file}: targets: no {kind} {target!r}{nearest(target, targets)} (there are {list(targets)})"
        )
    return targets[target]


def _make_target(options: argparse.Namespace) -> None:
    from plumbline.published.printed_numbers import PrintedNumbers

    study = study_config.load(
        options.study,
        options.preset,
        source=options.documents_source,
        sizes=options.sizes.split(",") if options.sizes else [],
    )
    entry = find_target(study, options.target, options.verb)
    make = study_parts.function(study.code, f"{options.verb}s", options.target)
    measurements = entry.get("measurements", ())
    probed = entry.get("read_of", {}).get("probes")
    frames = _load_frames(
        options, study, entry["runs"], reads=entry["reads"], measurements=measurements, probed_groups=probed
    )
    published = PrintedNumbers.of(study.code, reads=entry["published"])
    product = make(frames, study, published)
    if options.verb == "figure":
        from plumbline.results.figures import figure_style

        _require_type(product, figure_style.FigureWithData, study, options)
        paths = figure_style.save(product, options.out)
        for note in frames.notes:  # a picture has no place for them; its log has
            print(f"note: {note}")
        fingerprint_file.write(options.out, options.fingerprint, companions=paths[1:])
    else:
        from plumbline.results.tables import table, write_table
        from plumbline.results.tables.paper_columns import add_paper_columns

        _require_type(product, table.Table, study, options)
        add_paper_columns(product, entry.get("printed"), published)
        mixed = list(frames.mixed)
        if frames.others:
            product.others = list(frames.others)
            mixed = [_write_warning(product.name, frames.others), *mixed]
        product.warnings[:0] = mixed  # before what was found, which rests on these runs
        product.notes += frames.notes
        product.paper = study.paper
        paths = write_table.write(product, frames, options.out, options.fingerprint)
    for path in paths:
        print(path)


def _write_warning(table: str, runs: Sequence[str]) -> str:
    """Write the warning that runs are of other specs or versions; the table's provenance lists all."""
    sentence = f"Made from runs of other specs or versions: {'; '.join(runs[:FEW])}"
    more = len(runs) - FEW
    return (
        f"{sentence}; {more} more are in {table}.provenance.json (runs_of_other_specs)." if more > 0 else f"{sentence}."
    )


def _require_type(product: object, expected_type: type, study: study_config.Study, options: argparse.Namespace) -> None:
    if not isinstance(product, expected_type):
        file = study_parts.file(study.code, f"{options.verb}s", options.target)
        type_name = f"{expected_type.__module__}.{expected_type.__name__}"
        raise PlumblineError(
            f"{file}: {options.target} returned {type(product).__name__}, and a {options.verb} is a "
            f"{type_name}; let the function end with `return` and one of these"
        )


def _judge_study_claims(options: argparse.Namespace) -> None:
    from plumbline.published.printed_numbers import PrintedNumbers
    from plumbline.results.claims import claim_verdicts, replication_rates

    study = study_config.load(options.study, options.preset, source=options.documents_source)
    if reason := study.reason_without_claims:
        raise PlumblineError(reason)
    published = PrintedNumbers.of(study.code)
    claims = study_parts.part(study.code, "claims")
    for name, remedy in (("CHECKS", "CHECKS = ClaimChecks()"), ("Evidence", "Evidence = ClaimEvidence")):
        if not hasattr(claims, name):
            raise PlumblineError(
                f"{claims.__file__}: there is no {name}, which judges the study's claims; write `{remedy}`, or "
                "import it there (plumbline.results.claims.claim_registry)"
            )
    entries = study.targets_with_claims.values()
    reads = {name for entry in entries for name in entry["reads"]}
    measurements = {name for entry in entries for name in entry.get("measurements", ())}
    probed = {group for entry in entries if "probes" in entry["reads"] for group in entry["runs"]}
    frames = _load_frames(
        options, study, study.claimed_groups, reads=reads, measurements=measurements, probed_groups=probed
    )
    evidence = claims.Evidence(frames, study, published)
    rates = replication_rates.read(study_folders.folder(study.code, ROOT))
    rows = claim_verdicts.judge_claims(published.claims(), claims.CHECKS, evidence, rates)
    notes = [*rates.summary({row["id"]: row["verdict"] for row in rows}), *frames.notes]
    page = claim_verdicts.to_markdown(rows, study.definition["title"], study, notes)
    atomic_write_text(options.out.with_suffix(".md"), page)
    atomic_write_text(options.out, claim_verdicts.to_csv(rows))
    fingerprint_file.write(options.out, options.fingerprint, companions=[options.out.with_suffix(".md")])
    print(options.out)


def _load_frames(
    options: argparse.Namespace,
    study: study_config.Study,
    groups: list[str],
    *,
    reads: Iterable[str],
    measurements: Iterable[str],
    probed_groups: Collection[str] | None = None,
) -> RunFrames:
    from plumbline.results.runs.finished_runs import load

    work = options.work or Path("work") / options.preset
    if options.expected_runs_digest:
        require_expected(options.expected_runs_digest, study, groups)
    average = study.suite.average if study.suite else ""
    keys = _find_measurement_keys(options, study, measurements, work)
    expected = list_expected_runs(options.expected_runs, study, groups, work)
    return load(
        expected,
        work,
        average=average,
        scores="scores" in reads,
        examples="examples" in reads,
        probes="probes" in reads,
        packs="packs" in reads,
        probed_groups=probed_groups,
        measurements=keys,
        mixed=options.expected_runs == FOUND,
        called=options.work_shown_as,
    )


def _find_measurement_keys(
    options: argparse.Namespace, study: study_config.Study, names: Iterable[str], work: Path
) -> dict[str, str]:
    """Map each measurement that a target reads to its key; its file must be of its present code and options."""
    from plumbline.results.measurements import measurement_file
    from plumbline.specs.measurement_code import hash_measurement

    names, keys = sorted(names), {}
    owner = study if study.code == study.name or not names else study_config.load(study.code, options.preset)
    for name in names:
        keys[name] = f"{measurement_file.FOLDER}/{owner.name}/{name}"
        if name in owner.measurements and options.expected_runs != FOUND:
            path = measurement_file.frame_path(work, keys[name])
            measurement_file.require_present(path, hash_measurement(owner, name), keys[name])
    return keys


if __name__ == "__main__":
    run(main)

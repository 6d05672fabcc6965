"""Makes a table, a figure or the verdicts on claims from finished runs: ``python -m plumbline.results
{table,figure,claims} STUDY``; prints a finished table in a terminal: ``python -m plumbline.results show TABLE.csv``.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core import fingerprint_file
from plumbline.core.command_line import HIDDEN, Parser, run
from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import atomic_write_text
from plumbline.results.runs.expected_runs import FOUND, expected_runs, require_expected
from plumbline.specs import corpus, name_completers, study_config, study_folders, study_parts
from plumbline.specs.yaml_files import PRESETS, ROOT

# What only one verb needs is loaded by that verb: a table waits for no drawing library.
if TYPE_CHECKING:
    from plumbline.results.runs.finished_runs import RunFrames

#: Runs of other specs that a table's warning names; the others stand in its provenance.
FEW = 3


def arguments() -> Parser:
    """Build the command-line parser of `python -m plumbline.results`."""
    parser = Parser(__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, words in (("table", "make one table"), ("figure", "draw one figure"), ("claims", "judge every claim")):
        one = verbs.add_parser(verb, help=words)
        one.set_defaults(expected_runs=None)
        one.add_argument("study", completer=name_completers.studies)
        if verb != "claims":
            one.add_argument(
                "target", completer=name_completers.targets(verb), help=f"a {verb} of studies/STUDY/study.yaml"
            )
        one.add_argument("--preset", choices=PRESETS, default="demo")
        one.add_argument("--work", type=Path, help="where the runs are (default work/PRESET)")
        if verb == "table":
            one.add_argument(
                "--expected-runs", choices=[FOUND], help="use the runs that exist, whatever their spec, and state that"
            )
        one.add_argument("--expected-runs-digest", metavar="DIGEST", help=HIDDEN)
        source = "source of the documents, if not the corpus's own; it is part of the identity of runs"
        one.add_argument("--documents-source", default=corpus.AS_THE_CORPUS_SAYS, help=source)
        one.add_argument("--out", type=Path, required=True)
        one.add_argument("--work-shown-as", default="", help=HIDDEN)
        one.add_argument("--fingerprint", default="", help=HIDDEN)
    shown = verbs.add_parser(
        "show", help="print a finished table, 80 columns wide", description="Prints a finished table, 80 columns wide."
    )
    shown.add_argument("table", type=Path, help="a table's csv, such as results/table2.csv")
    return parser


def main() -> None:
    """Run `python -m plumbline.results`: read the runs, make what is asked for, and write its files."""
    given = arguments().parse_args()
    if given.verb == "show":
        from plumbline.results.tables import terminal_table

        print(terminal_table.show(given.table))
    elif given.verb == "claims":
        _claims(given)
    else:
        _target(given)


def target_of(study: study_config.Study, target: str, kind: str) -> dict[str, Any]:
    """Look up what the study's YAML says of a target of this kind.

    Raises:
        PlumblineError: there is no such target.
    """
    known = {name: entry for name, entry in study.definition["targets"].items() if entry["kind"] == kind}
    if target not in known:
        raise PlumblineError(
            f"{study.file}: targets: no {kind} {target!r}{nearest(target, known)} (there are {list(known)})"
        )
    return known[target]


def _target(given: argparse.Namespace) -> None:
    from plumbline.published.printed_numbers import PrintedNumbers

    study = study_config.load(given.study, given.preset, source=given.documents_source)
    entry = target_of(study, given.target, given.verb)
    make = study_parts.function(study.code, f"{given.verb}s", given.target)
    measurements = entry.get("measurements", ())
    frames = _frames(given, study, entry["runs"], reads=entry["reads"], measurements=measurements)
    product = make(frames, study, PrintedNumbers.of(study.code, reads=entry["published"]))
    if given.verb == "figure":
        from plumbline.results.figures import figure_style

        _require_made(product, figure_style.FigureWithData, study, given)
        paths = figure_style.save(product, given.out)
        for note in frames.notes:  # a picture has no place for them; its log has
            print(f"note: {note}")
        fingerprint_file.write(given.out, given.fingerprint, companions=paths[1:])
    else:
        from plumbline.results.tables import table, write_table

        _require_made(product, table.Table, study, given)
        if frames.others:
            product.others = list(frames.others)
            product.warnings.append(_of_others(product.name, frames.others))
        product.warnings += frames.mixed
        product.notes += frames.notes
        product.paper = study.paper
        paths = write_table.write(product, frames, given.out, given.fingerprint)
    for path in paths:
        print(path)


def _of_others(table: str, others: Sequence[str]) -> str:
    """Say that runs are of other specs or versions; the table's provenance names them where they are many."""
    said = f"Made from runs of other specs or versions: {'; '.join(others[:FEW])}"
    more = len(others) - FEW
    return f"{said}; {more} more are in {table}.provenance.json (runs_of_other_specs)." if more > 0 else f"{said}."


def _require_made(product: object, wanted: type, study: study_config.Study, given: argparse.Namespace) -> None:
    if not isinstance(product, wanted):
        file = study_parts.file(study.code, f"{given.verb}s", given.target)
        what = f"{wanted.__module__}.{wanted.__name__}"
        raise PlumblineError(
            f"{file}: {given.target} returned {type(product).__name__}, and a {given.verb} is a {what}; let the "
            "function end with `return` and one of these"
        )


def _claims(given: argparse.Namespace) -> None:
    from plumbline.published.printed_numbers import PrintedNumbers
    from plumbline.results.claims import claim_verdicts, replication_rates

    study = study_config.load(given.study, given.preset, source=given.documents_source)
    if study.code != study.name:
        raise PlumblineError(
            f"{study.name} makes no claims: it extends {study.code}, whose paper does; ask for those of {study.code}"
        )
    published = PrintedNumbers.of(study.code)
    own = study_parts.part(study.code, "claims")
    for name, remedy in (("CHECKS", "CHECKS = ClaimChecks()"), ("Evidence", "Evidence = ClaimEvidence")):
        if not hasattr(own, name):
            raise PlumblineError(
                f"{own.__file__}: there is no {name}, which judges the study's claims; write `{remedy}`, or import it "
                "there (plumbline.results.claims.claim_registry)"
            )
    entries = study.claimed.values()
    reads = {name for entry in entries for name in entry["reads"]}
    named = {name for entry in entries for name in entry.get("measurements", ())}
    probed = {group for entry in entries if "probes" in entry["reads"] for group in entry["runs"]}
    frames = _frames(given, study, study.claimed_groups, reads=reads, measurements=named, probed_groups=probed)
    evidence = own.Evidence(frames, study, published)
    rates = replication_rates.read(study_folders.folder(study.code, ROOT))
    rows = claim_verdicts.judge_claims(published.claims(), own.CHECKS, evidence, rates)
    notes = [*rates.summary({row["id"]: row["verdict"] for row in rows}), *frames.notes]
    page = claim_verdicts.to_markdown(rows, study.definition["title"], study, notes)
    atomic_write_text(given.out.with_suffix(".md"), page)
    atomic_write_text(given.out, claim_verdicts.to_csv(rows))
    fingerprint_file.write(given.out, given.fingerprint, companions=[given.out.with_suffix(".md")])
    print(given.out)


def _frames(
    given: argparse.Namespace,
    study: study_config.Study,
    groups: list[str],
    *,
    reads: Iterable[str],
    measurements: Iterable[str],
    probed_groups: Collection[str] | None = None,
) -> RunFrames:
    from plumbline.results.runs.finished_runs import load

    work = given.work or Path("work") / given.preset
    if given.expected_runs_digest:
        require_expected(given.expected_runs_digest, study, groups)
    average = study.suite.average if study.suite else ""
    keys = _measurements(given, study, measurements, work)
    expected = expected_runs(given.expected_runs, study, groups, work)
    return load(
        expected,
        work,
        average=average,
        scores="scores" in reads,
        examples="examples" in reads,
        probes="probes" in reads,
        probed_groups=probed_groups,
        measurements=keys,
        mixed=given.expected_runs == FOUND,
        called=given.work_shown_as,
    )


def _measurements(
    given: argparse.Namespace, study: study_config.Study, names: Iterable[str], work: Path
) -> dict[str, str]:
    """Name -> key of the measurements that a target reads; what is there must be of their present code and options."""
    from plumbline.results.measurements import measurement_file
    from plumbline.specs.measurement_code import of_measurement

    names, keys = sorted(names), {}
    owner = study if study.code == study.name or not names else study_config.load(study.code, given.preset)
    for name in names:
        keys[name] = f"{measurement_file.FOLDER}/{owner.name}/{name}"
        if name in owner.measurements and given.expected_runs != FOUND:
            path = measurement_file.place(work, keys[name])
            measurement_file.require_present(path, of_measurement(owner, name), keys[name])
    return keys


if __name__ == "__main__":
    run(main)

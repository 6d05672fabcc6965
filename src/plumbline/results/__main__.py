"""``python -m plumbline.results {table,figure,claims} STUDY``: from finished runs to numbers, pictures, verdicts."""

from __future__ import annotations

import argparse
from pathlib import Path

from plumbline.cli import PlumblineError, run
from plumbline.files import atomic_write_text
from plumbline.results import render, style
from plumbline.results.find import part
from plumbline.results.judge import judge, to_csv, to_markdown
from plumbline.results.published import Published
from plumbline.results.runs import expected_runs, load
from plumbline.specs import sheet
from plumbline.specs.config import PRESETS, ROOT, read_yaml


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.results", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, words in (("table", "one table"), ("figure", "one figure"), ("claims", "a verdict on every claim")):
        one = verbs.add_parser(verb, help=words)
        one.add_argument("study")
        if verb != "claims":
            one.add_argument("target", help=f"a {verb} of config/studies/STUDY/study.yaml")
        one.add_argument("--preset", choices=PRESETS, default="demo")
        one.add_argument("--work", type=Path, help="where the runs are (default work/PRESET)")
        one.add_argument("--expected", help="JSON list of runs, or its file (default: the target's groups)")
        one.add_argument("--published", type=Path, help="printed numbers (default config/studies/STUDY/published)")
        one.add_argument("--out", type=Path, required=True)
    return parser


def target_groups(study: sheet.Study, target: str, kind: str) -> list[str]:
    """The run groups that the study's YAML gives a target of this kind."""
    entry = study.sheet["targets"].get(target)
    if entry is None or entry["kind"] != kind:
        known = [name for name, entry in study.sheet["targets"].items() if entry["kind"] == kind]
        raise PlumblineError(
            f"config/studies/{study.name}/study.yaml: targets: no {kind} {target!r} (there are {known})"
        )
    return entry["runs"]


def main() -> None:
    """Read the runs, make what is asked for, write its files."""
    given = arguments().parse_args()
    study = sheet.load(given.study, given.preset)
    published = Published(given.published or ROOT / "config" / "studies" / given.study / "published")
    work = given.work or Path("work") / given.preset
    if given.verb == "claims":
        _claims(given, study, published, work)
        return
    groups = target_groups(study, given.target, given.verb)
    made = {"table": ("tables", "TABLES"), "figure": ("figures", "FIGURES")}[given.verb]
    known = getattr(part(given.study, made[0]), made[1])
    if given.target not in known:
        raise PlumblineError(
            f"plumbline.studies.{given.study}.{made[0]} has no {given.target!r} (there are {sorted(known)})"
        )
    frames = load(expected_runs(given.expected, study, groups), work)
    product = known[given.target](frames, study, published)
    for path in render.write(product, frames, given.out) if given.verb == "table" else style.save(product, given.out):
        print(path)


def _claims(given: argparse.Namespace, study: sheet.Study, published: Published, work: Path) -> None:
    own = part(given.study, "claims")
    claims = read_yaml(published.directory / "claims.yaml")
    unknown = sorted(set(own.MEASURES) - {claim["id"] for claim in claims})
    if unknown:
        raise PlumblineError(f"{published.directory / 'claims.yaml'}: there is no claim {unknown[0]!r}")
    frames = load(expected_runs(given.expected, study, study.sheet["runs"]), work)
    rows = judge(claims, own.MEASURES, own.Evidence(frames, study, published))
    atomic_write_text(given.out.with_suffix(".md"), to_markdown(rows, study.sheet["title"], study.preset))
    atomic_write_text(given.out, to_csv(rows))
    print(given.out)


if __name__ == "__main__":
    run(main)

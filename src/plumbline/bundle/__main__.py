"""Packs what a configuration gave into a release bundle, for a rebuild elsewhere: ``python -m plumbline.bundle``.

`snakemake bundle` makes the products first, and calls it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from plumbline.bundle import archive, description, ro_crate
from plumbline.core import fingerprint_file, process_record, run_files
from plumbline.core.command_line import HIDDEN, Parser, run
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import pretty_json, sha256_file
from plumbline.project import Project, load
from plumbline.project.bundle_products import CONFIGURATION, BundleProduct, is_read
from plumbline.specs.yaml_files import PRESET_NOTES, PRESETS, load_config

#: What an item is called in a frame of examples: its place and a hash. A text has other characters, and is longer.
ITEM = re.compile(r"[\w./:+-]{1,120}")

#: Where frames are within an archive whose own folder lay outside of the project.
WORK = "work"

#: The environment, next to what was requested.
LOCKS = ("requirements.lock", "requirements-cuda.lock")


def arguments() -> Parser:
    """Build the command-line parser of `python -m plumbline.bundle`."""
    parser = Parser(__doc__)
    parser.add_argument("--preset", choices=PRESETS, help="default: config/config.yaml's")
    parser.add_argument("--study", action="append", metavar="STUDY", help="only this one; may be repeated")
    parser.add_argument("--configuration-json", metavar="JSON", help=HIDDEN)
    text = "pack the targets that exist, and name the missing ones (otherwise all must exist)"
    parser.add_argument("--allow-missing", action="store_true", help=text)
    parser.add_argument("--fingerprint", default="", help=HIDDEN)
    parser.add_argument("--out", type=Path, required=True, metavar="BUNDLE.tar.xz")
    return parser


def main() -> None:
    """Run `python -m plumbline.bundle`: write the archive, and name the products that it lacks."""
    options = arguments().parse_args()
    config: dict[str, Any] = json.loads(options.configuration_json) if options.configuration_json else load_config()
    config |= {"preset": options.preset} if options.preset else {}
    config |= {"studies": options.study} if options.study else {}
    project = load(config | {"mine": "", "experiment": {}})
    if options.out.exists() and not options.out.is_file():
        raise PlumblineError(f"--out {options.out} is no plain file; name one, such as mine.tar.xz")
    summary, notes = pack(project, options.out, allow_missing=options.allow_missing)
    fingerprint_file.write(options.out, options.fingerprint)
    for note in notes:
        print(visible(note))
    size = options.out.stat().st_size / 1e6
    print(f"{len(summary.products)} targets; {size:.2f} MB; sha256 {sha256_file(options.out)}")
    print(options.out)


def pack(
    project: Project, out: Path, *, allow_missing: bool = False
) -> tuple[description.BundleDescription, list[str]]:
    """Write the release bundle of a configuration.

    Args:
        allow_missing: pack the products that are there, even if some are not.

    Returns:
        The bundle's description, and notes: what is not in it, and what is although no git says that it may.

    Raises:
        PlumblineError: a product is not there (and `allow_missing` does not allow that, or none is), does not show what
            it was made of, or what is to be packed holds texts, is not as it was written, or is not in git.
    """
    folder = project.root / project.paths.results
    products = project.bundles.products
    missing_products = [entry for entry in products if not all((folder / name).is_file() for name in entry.files)]
    products = [entry for entry in products if entry not in missing_products]
    if missing_products and not (allow_missing and products):
        remedy = ", or pack what is there with --allow-missing" if products else "; none is there to be packed"
        raise PlumblineError(
            f"{project.paths.results}: {len(missing_products)} targets are missing, such as {missing_products[0]}; "
            f"make them (snakemake bundle does){remedy}"
        )
    work = _work_in_archive(project)
    archive_names = {
        path: f"{work}/{project.name}/{path.removeprefix(f'{project.paths.work}/')}"
        for path in project.bundles.work_files()
    }
    for path in archive_names:
        if path.endswith("/examples.parquet"):
            require_no_texts(project.root / path)
    summary = _describe_contents(project, products, work, [path for path in archive_names if path.endswith(".json")])
    files: dict[str, bytes | Path] = {name: _prepare_file(project.root / path) for path, name in archive_names.items()}
    configuration, notes = choose_configuration(project)
    configuration += [lock for lock in LOCKS if (project.root / lock).is_file()]
    files |= {path: project.root / path for path in configuration}
    results = (f"{project.paths.results}/{name}" for product in products for name in product.files)
    files |= {name: project.root / name for name in results}
    files[description.NAME] = msgspec.json.format(msgspec.json.encode(summary, order="sorted"), indent=1) + b"\n"
    files["README.md"] = _write_readme(summary).encode()
    archive.write(out, files, _crate_metadata(summary))
    return summary, [f"missing, so not packed: {product}" for product in missing_products] + notes


def choose_configuration(project: Project) -> tuple[list[str], list[str]]:
    """Choose the files that state what was requested: those that git tracks, and where there is no git, or a study has
    its own, those that are read by their names.

    Returns:
        These files, and notes on those that are left out, and on those that no git was asked about.

    Raises:
        PlumblineError: git does not track a file that would be read, so that it may be private, or cannot say.
    """
    names = project.bundles.configuration_files()
    listing = description.run_git(project.root, "ls-files", "-z", "--", *CONFIGURATION)
    if listing is None and (project.root / ".git").exists():
        raise PlumblineError(
            f"git cannot list the files of {project.root}, so that nothing says which are private: install git, or see "
            f"what `git -C {project.root} status` says (of a folder of another user: git config --global --add "
            "safe.directory FOLDER)"
        )
    tracked_names = set((listing or "").split("\0"))
    chosen_names = [name for name in names if name in tracked_names or is_read(name)]
    untracked_names = [name for name in chosen_names if name not in tracked_names]
    private_names = [name for name in untracked_names if not _has_own_git(project.root, name)]
    if listing is not None and private_names:
        raise PlumblineError(
            f"{len(private_names)} files that would be packed are not in git, such as {private_names[0]}, and may be "
            f"private: git add what belongs into the bundle, and move the rest out of {', '.join(CONFIGURATION[:-1])}"
        )
    notes = [
        f"not packed, since it is not in git, or nothing reads a file of its name: {name}"
        for name in sorted(set(names) - set(chosen_names))
    ]
    return chosen_names, notes + [
        f"packed without asking git whether they are private: {', '.join(untracked_names)}"
    ] * bool(untracked_names)


def _has_own_git(root: Path, name: str) -> bool:
    return any((root / folder / ".git").exists() for folder in PurePosixPath(name).parents[:-1])


def require_no_texts(path: Path) -> None:
    """Refuse a frame of evaluation examples whose items are called by more than ids: texts of benchmarks are not
    packed.

    Raises:
        PlumblineError: there is such an item.
    """
    from plumbline.core import frames

    frame = frames.read(path, "examples")
    for name in ("task", "item", "metric", "run_id"):
        for value in frame[name].unique():
            if not ITEM.fullmatch(str(value)):
                raise PlumblineError(f"{path}: {name} {str(value)[:40]!r} is a text, not an id; it is not packed")


def _prepare_file(path: Path) -> bytes | Path:
    """Prepare a file to be packed. What cannot be read is packed as it is; what needs it reports that."""
    if path.name != "manifest.json" or (manifest := fingerprint_file.read(path)) is None:
        return path
    run_files.require_manifest(path, manifest)
    return pretty_json(process_record.strip_local_facts(manifest)).encode()


def _make_entry(project: Project, product: BundleProduct) -> description.BundleEntry:
    folder = project.root / project.paths.results
    facts_file = next(name for name in product.files if name.endswith(".json"))
    fingerprint = (fingerprint_file.read(folder / facts_file) or {}).get(fingerprint_file.KEY)
    if not fingerprint:
        raise PlumblineError(
            f"{project.paths.results}/{facts_file} has no fingerprint of {product} (made by hand?); let Snakemake make "
            "it"
        )
    if fingerprint != project.fingerprints.product(product.study, product.kind, product.target or None):
        raise PlumblineError(
            f"{project.paths.results}/{facts_file}: {product} was made of something else than it would be made of here "
            "(other code "
            "or configuration); have it made again by Snakemake (snakemake bundle does that)"
        )
    return description.BundleEntry(
        study=product.study,
        kind=product.kind,
        target=product.target,
        path=product.path,
        fingerprint=str(fingerprint),
    )


def _work_in_archive(project: Project) -> str:
    """Where heavy files lie in the archive: as in the project, or, where they lie outside of it, below `WORK`."""
    path = PurePosixPath(project.config["work"])
    return WORK if path.is_absolute() or ".." in path.parts else str(path)


def _describe_contents(
    project: Project, products: Iterable[BundleProduct], work: str, facts: Iterable[str]
) -> description.BundleDescription:
    commit, committed, edited = description.read_checkout(project.root)
    ends = [(fingerprint_file.read(project.root / path) or {}).get("finished") for path in facts]
    overrides = {"studies": list(project.studies), "work": work, "mine": "", "experiment": {}}
    return description.BundleDescription(
        format=description.FORMAT,
        configuration=project.config | overrides,
        called=project.paths.work,
        results=project.paths.results,
        commit=commit,
        committed=committed,
        edited=edited,
        finished=max((end for end in ends if isinstance(end, str)), default=None),
        openblas=description.find_openblas_kernels(),
        versions=description.read_versions(("plumbline-lm", "snakemake", *description.PACKAGES)),
        products=[_make_entry(project, product) for product in products],
    )


def _crate_metadata(summary: description.BundleDescription) -> ro_crate.CrateMetadata:
    studies = ", ".join(summary.asked.studies)
    return ro_crate.CrateMetadata(
        name=f"Plumbline: {studies} at preset {summary.asked.preset}"[:250],
        description=(
            f"Tables, figures, claims, interpretations and the audit of the studies {studies} at preset "
            f"{summary.asked.preset}, and what they are made of: specs, manifests, metrics, probes, scores, "
            f"measurements, timings, configuration and printed numbers. {PRESET_NOTES[summary.asked.preset]} No "
            f"weights, no corpus, no items. Bundle format {summary.format}. README.md says how to rebuild all targets "
            "from it."
        ),
        date=summary.finished or summary.committed or "1970-01-01",
    )


def _write_readme(summary: description.BundleDescription) -> str:
    origin = f"commit {summary.commit}" if summary.commit else "no repository"
    origin += " with edits that are in no commit" if summary.edited else ""
    return (
        f"# A bundle of Plumbline, preset {summary.asked.preset}\n\n{PRESET_NOTES[summary.asked.preset]}\n\n"
        f"Studies: {', '.join(summary.asked.studies)}. Made at {origin}.\n\n"
        "Every table, figure, page of claims or interpretations, and the audit, rebuilt and compared byte by byte:\n\n"
        "    plumbline rebuild bundle.tar.xz --into rebuilt\n\n"
        f"Bundle format {summary.format}; a Plumbline that reads another one says how the code of this bundle's commit "
        "rebuilds it.\n\n"
        f"`{description.NAME}` says what was asked for and with which packages, `{ro_crate.NAME}` what every file is.\n"
    )


if __name__ == "__main__":
    run(main)

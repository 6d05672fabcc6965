"""Keeps bundles, each in a folder of records/ that names its commit: ``python -m
plumbline.bundle.records``.

``keep NAME BUNDLE.tar.xz --why-kept "..."`` puts one there; ``check [NAME ...]`` makes all its products again with
the code of its commit, from this repository's history, and compares them byte by byte."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from plumbline.bundle import archive, description, rebuild
from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import atomic_write_bytes, sha256_file
from plumbline.project.paths import BUNDLE

#: The folder of records, and the file of each that describes it.
FOLDER, SAYS = Path("records"), "record.json"


class KeptBundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The description of a kept bundle: why it is kept, and the archive and its commit.

    `format`: that of the archive (`plumbline.bundle.description.FORMAT`).
    """

    words: str
    format: int
    commit: str
    preset: str
    studies: list[str]
    products: int
    bytes: int
    sha256: str


def arguments() -> Parser:
    """Build the command-line parser of `python -m plumbline.bundle.records`."""
    parser = Parser(__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    keep_parser = verbs.add_parser("keep", help="a bundle of a commit, as a record")
    keep_parser.add_argument("name")
    keep_parser.add_argument("bundle", type=Path, metavar="BUNDLE.tar.xz")
    keep_parser.add_argument("--why-kept", required=True, help="why it is kept")
    check_parser = verbs.add_parser("check", help="rebuild all targets of records, and compare")
    check_parser.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    check_parser.add_argument("--jobs", type=int, default=1, metavar="N", help="targets at a time (default: 1)")
    for verb in (keep_parser, check_parser):
        verb.add_argument("--records", type=Path, default=FOLDER, help="the folder of records")
    return parser


def main() -> int:
    """Run ``keep`` or ``check``, and return the exit code: 0 if every file of every record is equal, else 1."""
    options = arguments().parse_args()
    if options.verb == "keep":
        print(keep_bundle(options.records / options.name, options.bundle, options.why_kept))
        return 0
    record_names = list_records(options.records)
    if not record_names:
        raise PlumblineError(f"{options.records} has no record; name another folder (--records), or keep one there")
    for name in options.names:
        if name not in record_names:
            raise PlumblineError(
                f"{options.records} has no record {name!r}{nearest(name, record_names)} (there are {record_names})"
            )
    return max([_try_to_check(options.records / name, options.jobs) for name in options.names or record_names])


def list_records(records: Path = FOLDER) -> list[str]:
    """List the names of the records in a folder."""
    return sorted(path.parent.name for path in records.glob(f"*/{SAYS}"))


def keep_bundle(folder: Path, bundle: Path, reason: str) -> Path:
    """Keep a bundle as a new record: copy it into `folder`, and write its description; returns that file's path.

    Raises:
        PlumblineError: there is such a record, or the bundle names no commit that has all of its sources.
    """
    if folder.exists():
        raise PlumblineError(f"{folder} exists; a record is not overwritten, choose another name")
    summary = description.parse_description(archive.read_file(bundle, description.NAME), str(bundle))
    if summary.commit is None or summary.edited:
        raise PlumblineError(f"{bundle} was made from uncommitted sources; commit them, and make it again")
    folder.mkdir(parents=True)
    shutil.copyfile(bundle, folder / BUNDLE)
    record = KeptBundle(
        words=reason,
        format=summary.format,
        commit=summary.commit,
        preset=summary.asked.preset,
        studies=summary.asked.studies,
        products=len(summary.products),
        bytes=bundle.stat().st_size,
        sha256=sha256_file(bundle),
    )
    atomic_write_bytes(folder / SAYS, msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
    return folder / SAYS


def read_record(folder: Path) -> KeptBundle:
    """Read a record's description, which must be of the archive next to it.

    Raises:
        PlumblineError: there is no description, or the archive is another one.
    """
    try:
        record = msgspec.json.decode((folder / SAYS).read_bytes(), type=KeptBundle)
    except (OSError, msgspec.DecodeError) as error:
        raise PlumblineError(f"{folder / SAYS} does not say what the record is about ({error})") from error
    bundle = folder / BUNDLE
    if not bundle.is_file() or sha256_file(bundle) != record.sha256:
        raise PlumblineError(f"{bundle} is not the archive that {SAYS} names; restore it from the repository")
    summary = description.parse_description(archive.read_file(bundle, description.NAME), str(bundle))
    if (summary.format, summary.commit, len(summary.products)) != (
        record.format,
        record.commit,
        record.products,
    ) or summary.edited:
        raise PlumblineError(f"{folder / SAYS} gives another format, commit or number of targets than its archive")
    return record


def check_record(folder: Path, jobs: int = 1) -> int:
    """Make a record's products again with its commit's code, and print the outcome.

    Returns:
        The exit code: 0 if all files are equal, else 1.
    """
    record = read_record(folder)
    print(f"{folder.name}: {record.words}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        result = rebuild.rebuild_bundle(folder / BUNDLE, Path(scratch) / "rebuilt", jobs=jobs, at_commit=True)
        print(rebuild.format_result(result))
    return 0 if result.whole else 1


def _try_to_check(folder: Path, jobs: int) -> int:
    """Check a record; print an error that makes that impossible, so that the next record is checked."""
    try:
        return check_record(folder, jobs)
    except PlumblineError as error:
        print(f"error: {folder.name}: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    run(main)

"""Keeps bundles that are worth it, each in a folder of records/ that names its commit: ``python -m
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

#: The folder of records, and the file of each that says what it is.
FOLDER, SAYS = Path("records"), "record.json"


class KeptBundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The description of a kept bundle: what it shows, in a person's words, and which archive of which commit it is.

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
    kept = verbs.add_parser("keep", help="a bundle of a commit, as a record")
    kept.add_argument("name")
    kept.add_argument("bundle", type=Path, metavar="BUNDLE.tar.xz")
    kept.add_argument("--why-kept", required=True, help="why it is kept")
    checked = verbs.add_parser("check", help="rebuild all targets of records, and compare")
    checked.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    checked.add_argument("--jobs", type=int, default=1, metavar="N", help="targets at a time (default: 1)")
    for verb in (kept, checked):
        verb.add_argument("--records", type=Path, default=FOLDER, help="the folder of records")
    return parser


def main() -> int:
    """Run ``keep`` or ``check``, and return the exit code: 0 where every record came out equal, else 1."""
    given = arguments().parse_args()
    if given.verb == "keep":
        print(keep(given.records / given.name, given.bundle, given.why_kept))
        return 0
    known = names(given.records)
    if not known:
        raise PlumblineError(f"{given.records} has no record; name another folder (--records), or keep one there")
    for name in given.names:
        if name not in known:
            raise PlumblineError(f"{given.records} has no record {name!r}{nearest(name, known)} (there are {known})")
    return max([_checked(given.records / name, given.jobs) for name in given.names or known])


def names(records: Path = FOLDER) -> list[str]:
    """List the names of the records in a folder."""
    return sorted(path.parent.name for path in records.glob(f"*/{SAYS}"))


def keep(folder: Path, bundle: Path, words: str) -> Path:
    """Keep a bundle as a new record: copy it into `folder`, and write its description; returns that file's path.

    Raises:
        PlumblineError: there is such a record, or the bundle names no commit that has all of its sources.
    """
    if folder.exists():
        raise PlumblineError(f"{folder} exists; a record is not overwritten, choose another name")
    said = description.parse(archive.read_one(bundle, description.NAME), str(bundle))
    if said.commit is None or said.edited:
        raise PlumblineError(f"{bundle} was made from uncommitted sources; commit them, and make it again")
    folder.mkdir(parents=True)
    shutil.copyfile(bundle, folder / BUNDLE)
    kept = KeptBundle(
        words=words,
        format=said.format,
        commit=said.commit,
        preset=said.asked.preset,
        studies=said.asked.studies,
        products=len(said.products),
        bytes=bundle.stat().st_size,
        sha256=sha256_file(bundle),
    )
    atomic_write_bytes(folder / SAYS, msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n")
    return folder / SAYS


def read(folder: Path) -> KeptBundle:
    """Read a record's description, once it is known to be of the archive beside it.

    Raises:
        PlumblineError: there is no description, or the archive is another one.
    """
    try:
        kept = msgspec.json.decode((folder / SAYS).read_bytes(), type=KeptBundle)
    except (OSError, msgspec.DecodeError) as error:
        raise PlumblineError(f"{folder / SAYS} does not say what the record is about ({error})") from error
    bundle = folder / BUNDLE
    if not bundle.is_file() or sha256_file(bundle) != kept.sha256:
        raise PlumblineError(f"{bundle} is not the archive that {SAYS} names; restore it from the repository")
    said = description.parse(archive.read_one(bundle, description.NAME), str(bundle))
    if (said.format, said.commit, len(said.products)) != (kept.format, kept.commit, kept.products) or said.edited:
        raise PlumblineError(f"{folder / SAYS} gives another format, commit or number of targets than its archive")
    return kept


def check(folder: Path, jobs: int = 1) -> int:
    """Make a record's products again with its commit's code, and print the outcome.

    Returns:
        The exit code: 0 where all came out equal, else 1.
    """
    kept = read(folder)
    print(f"{folder.name}: {kept.words}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        found = rebuild.rebuild(folder / BUNDLE, Path(scratch) / "rebuilt", jobs=jobs, at_commit=True)
        print(rebuild.told(found))
    return 0 if found.whole else 1


def _checked(folder: Path, jobs: int) -> int:
    """Check a record; what makes that impossible is said, and the next one's turn comes."""
    try:
        return check(folder, jobs)
    except PlumblineError as error:
        print(f"error: {folder.name}: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    run(main)

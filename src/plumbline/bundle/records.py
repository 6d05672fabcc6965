"""Keeps a bundle in a folder of records/ that names its commit: ``python -m plumbline.bundle.records NAME
BUNDLE.tar.xz --why-kept "..."``. `plumbline verify` checks records.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import msgspec

from plumbline.bundle import archive, description, rebuild
from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import make_folder, name_in_errors, sha256_file
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
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("bundle", type=Path, metavar="BUNDLE.tar.xz")
    parser.add_argument("--why-kept", required=True, help="why it is kept")
    parser.add_argument("--records", type=Path, default=FOLDER, help="the folder of records")
    return parser


def main() -> None:
    """Keep a bundle, and print the file of its description."""
    options = arguments().parse_args()
    print(keep_bundle(options.records / options.name, options.bundle, options.why_kept))


def list_records(records: Path = FOLDER) -> list[str]:
    """List the names of the records in a folder."""
    return sorted(path.parent.name for path in records.glob(f"*/{SAYS}"))


def keep_bundle(folder: Path, bundle: Path, reason: str) -> Path:
    """Keep a bundle as a new record: copy it into `folder`, and write its description; returns that file's path.

    The folder is there once both are: what failed can be repeated.

    Raises:
        PlumblineError: there is such a record, or the bundle names no commit that has all of its sources.
    """
    if folder.exists():
        raise PlumblineError(f"{folder} exists; a record is not overwritten, choose another name")
    record = _describe_bundle(bundle, reason)
    make_folder(folder.parent)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        new_folder = Path(scratch) / folder.name
        new_folder.mkdir()
        with name_in_errors(folder, others=True):  # shutil.copyfile would blame the bundle for a full disk of records
            with open(bundle, "rb") as source, open(new_folder / BUNDLE, "wb") as copy:
                shutil.copyfileobj(source, copy)
            (new_folder / SAYS).write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
        new_folder.rename(folder)
    return folder / SAYS


def _describe_bundle(bundle: Path, reason: str) -> KeptBundle:
    """Describe a bundle as its record does.

    Raises:
        PlumblineError: the bundle names no commit that has all of its sources.
    """
    summary = description.parse_description(archive.read_file(bundle, description.NAME), str(bundle))
    if summary.commit is None or summary.edited:
        raise PlumblineError(f"{bundle} was made from uncommitted sources; commit them, and make it again")
    return KeptBundle(
        words=reason,
        format=summary.format,
        commit=summary.commit,
        preset=summary.asked.preset,
        studies=summary.asked.studies,
        products=len(summary.products),
        bytes=bundle.stat().st_size,
        sha256=sha256_file(bundle),
    )


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
    actual_values = msgspec.structs.asdict(_describe_bundle(bundle, record.words))
    if other_keys := [name for name, value in msgspec.structs.asdict(record).items() if actual_values[name] != value]:
        raise archive.ChangedArchive(
            f"{folder / SAYS} gives another {', '.join(other_keys)} than its archive has "
            f"({actual_values[other_keys[0]]}); restore it from the repository"
        )
    return record


def unpack_runs(path: Path, folder: Path) -> tuple[str, Path]:
    """Unpack a record, or a bundle by its file, into a folder: its preset, and the folder of its runs there.

    Raises:
        PlumblineError: it is no record or bundle, is damaged, or has no run.
    """
    if path.is_dir():
        read_record(path)
    bundle = path / BUNDLE if path.is_dir() else path
    summary = description.parse_description(archive.read_file(bundle, description.NAME), str(bundle))
    archive.unpack(bundle, folder, {})
    runs = folder / summary.work / "runs"
    if not runs.is_dir():
        raise PlumblineError(f"{bundle} has no run below {summary.work}/runs; name a record of a study that has some")
    return summary.asked.preset, runs


def rebuild_record(folder: Path, jobs: int = 1) -> rebuild.RebuildResult:
    """Make a record's products again with its commit's code, and print and return the outcome.

    Raises:
        PlumblineError: the record is damaged, or its commit's code cannot be called.
    """
    record = read_record(folder)
    print(f"{folder.name}: {record.words}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        result = rebuild.rebuild_bundle(folder / BUNDLE, Path(scratch) / "rebuilt", jobs=jobs, at_commit=True)
        print(rebuild.format_result(result))
    return result


if __name__ == "__main__":
    run(main)

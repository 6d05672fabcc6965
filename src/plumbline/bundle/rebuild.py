"""Makes every table, figure and page of a bundle again: ``plumbline rebuild BUNDLE.tar.xz --into FOLDER``.

They are made from the bundle's frames, without a GPU, a corpus or training, and compared byte by byte with the files in
the bundle.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from plumbline.bundle import archive, commit_code, description, remake
from plumbline.core import processor
from plumbline.core.command_line import EXIT_NOTHING_COMPARED, Parser, positive, run
from plumbline.core.csv_text import write_rows
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import atomic_write_text, sha256_file
from plumbline.project.bundle_products import FILES
from plumbline.specs import code_hash, study_folders

EQUAL, DIFFERENT, MISSING, NOT_BUNDLED = "equal", "different", "missing", "not in the bundle"

#: Where the folder has the products that the bundle brought; its own are where a project has them.
BROUGHT = "bundled"

#: What was compared, file by file.
LIST = "rebuilt.csv"

#: OpenBLAS's kernels by what they need, in lower case.
_AVX512_KERNELS, _AVX2_KERNELS = ("skylakex", "cooperlake", "sapphirerapids"), ("haswell", "zen", "excavator")
#: Threads of each library: what Snakemake gives a job of one thread.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

#: Code of an earlier commit may make a package warn of what this version's does not ask it: its results are compared.
WITHOUT_OLD_WARNINGS = {"PYTHONWARNINGS": "ignore:Precision loss occurred:RuntimeWarning"}


@dataclass(frozen=True, kw_only=True, slots=True)
class RebuildResult:
    """The outcome of a rebuild: the bundle's description (`summary`), and for each file whether it is equal, different,
    missing or not in the bundle (`verdicts`).

    `failed`: product -> why it could not be made. `otherwise`: in what this machine differs from the one that made the
    bundle.
    """

    summary: description.BundleDescription
    verdicts: dict[str, str]
    failed: dict[str, str]
    otherwise: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether there are files, and every one is equal."""
        return set(self.verdicts.values()) == {EQUAL} and not self.failed


def arguments() -> Parser:
    """Build the command-line parser of `plumbline rebuild`."""
    parser = Parser(__doc__)
    parser.add_argument("bundle", type=Path, metavar="BUNDLE.tar.xz")
    parser.add_argument("--into", type=Path, required=True, metavar="FOLDER", help="a new folder, or an empty one")
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help="targets at a time (default: 1)")
    commit = parser.add_mutually_exclusive_group()
    help_text = "with the code of the bundle's commit, from the history of this clone, whatever is checked out"
    commit.add_argument("--at-commit", action="store_true", help=help_text)
    commit.add_argument("--any-commit", action="store_true", help="even if this code makes some targets differently")
    parser.add_argument("--any-versions", action="store_true", help="even with other versions of packages")
    return parser


def main() -> int:
    """Run `plumbline rebuild`, and return the exit code: 0 if all files are equal, 16 if there are none, else 1."""
    options = arguments().parse_args()
    result = rebuild_bundle(
        options.bundle,
        options.into,
        jobs=options.jobs,
        at_commit=options.at_commit,
        any_commit=options.any_commit,
        any_versions=options.any_versions,
    )
    print(format_result(result, options.into))
    return 0 if result.whole else 1 if result.verdicts else EXIT_NOTHING_COMPARED


def rebuild_bundle(
    bundle: Path,
    folder: Path,
    *,
    jobs: int = 1,
    at_commit: bool = False,
    any_commit: bool = False,
    any_versions: bool = False,
) -> RebuildResult:
    """Unpack a bundle, make its products again, and compare.

    Args:
        folder: new or empty; afterwards a project's config/, studies/, work/ and results/, and `bundled/` next to them.
        jobs: products that are made at a time.
        at_commit: make them with the code of the bundle's commit, from a clone's history (`commit_code`).
        any_commit: make them even where this code would make some of them otherwise.
        any_versions: make them even where packages that decide bytes are of other versions.

    Raises:
        PlumblineError: the archive is damaged or not a bundle; packages or code are others than those it was made with.
    """
    summary = description.parse_description(archive.read_file(bundle, description.NAME), str(bundle))
    differences = _compare_versions(summary, bundle, allowed=any_versions)
    kernels = summary.openblas
    if kernels and (missing_instructions := find_missing_instructions(kernels)):
        differences.append(
            f"this processor has no {missing_instructions}, which linear algebra for {kernels} needs: other last digits"
        )
        kernels = None
    with commit_code.open_code(summary, bundle, at_commit) as (package, studies):
        entries = archive.unpack(bundle, folder, {"results": BROUGHT})
        try:
            _lay_code(entries, studies, folder, bundle)
            remedy = description.describe_remedy(summary.commit, summary.edited, str(bundle)) if at_commit else ""
            answers = _make_products(summary, folder, package, jobs, any_commit, remedy, kernels)
            other_products = [name for answer in answers for name in answer.other]
            if other_products and not any_commit:
                raise PlumblineError(_describe_other_commit(summary, bundle, other_products))
        except BaseException:
            archive.empty_folder(folder)
            raise
    if other_products:
        differences.append(
            f"code or configuration of {_format_some(other_products)} differs from what the bundle was made with"
        )
    bundled_hashes = {name: entry.sha256 for name, entry in entries.items() if name.startswith("results/")}
    names = sorted(bundled_hashes.keys() | _list_product_files(summary, folder))
    verdicts = _compare_files(folder, names, bundled_hashes)
    failures = {name: why for answer in answers for name, why in answer.failed.items()}
    return RebuildResult(summary=summary, verdicts=verdicts, failed=failures, otherwise=tuple(differences))


def find_missing_instructions(kernels: str, cpuinfo: Path = processor.CPUINFO) -> str:
    """Name the instructions that OpenBLAS's `kernels` need and this processor lacks; empty if none, or not known.

    A process that asks for them all the same is ended by the first instruction that is not there.
    """
    flag = "avx512f" if kernels.lower() in _AVX512_KERNELS else "avx2" if kernels.lower() in _AVX2_KERNELS else ""
    flags = processor.read_facts(cpuinfo).get("flags", "").split()
    return flag if flags and flag not in flags else ""


def format_result(result: RebuildResult, folder: Path | None = None) -> str:
    """Report the outcome of a rebuild as text for a terminal.

    `folder`, where it is kept, is named as the place to look.
    """
    summary, counts = result.summary, Counter(result.verdicts.values())
    studies, commit = ", ".join(summary.asked.studies), summary.commit or "unknown"
    lines = [f"{summary.asked.preset}: {studies}; bundle format {summary.format}, made at commit {commit}"]
    lines += [f"different here: {difference}" for difference in result.otherwise]
    lines += [f"{verdict}: {name}" for name, verdict in result.verdicts.items() if verdict != EQUAL]
    lines += [f"could not be made: {name}: {why}" for name, why in result.failed.items()]
    kinds = (EQUAL, DIFFERENT, MISSING, *[NOT_BUNDLED] * (NOT_BUNDLED in counts))
    shares = ", ".join(f"{counts[verdict]} {verdict}" for verdict in kinds)
    lines.append(
        f"{len(summary.products)} targets, {len(result.verdicts)} files: {shares}"
        + (f"; {folder / LIST} has each" if folder else "")
    )
    if not result.verdicts:
        lines.append("nothing was compared")
    elif folder and not result.whole:
        lines.append(f"compare with: diff -r {folder / BROUGHT} {folder / 'results'}")
    return visible("\n".join(lines))


def _make_products(
    summary: description.BundleDescription,
    folder: Path,
    package: Path,
    jobs: int,
    any_commit: bool,
    remedy: str,
    kernels: str | None,
) -> list[remake.RebuildProcessReply]:
    """Have the products made, every `jobs`-th by one process. `remedy`: what to do where the package of a bundle's
    commit does not answer as this version asks. `kernels`: of OpenBLAS; None for those that it chooses here."""
    environment = (
        os.environ
        | ONE_THREAD
        | WITHOUT_OLD_WARNINGS
        | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    )
    environment |= {"OPENBLAS_CORETYPE": kernels} if kernels else {}
    with tempfile.TemporaryDirectory() as scratch:
        processes = []
        for number in range(min(jobs, len(summary.products))):
            answer = Path(scratch) / f"{number}.json"
            request = remake.RebuildProcessRequest(
                configuration=summary.configuration,
                work=summary.work,
                called=summary.called,
                results=summary.results,
                products=summary.products[number::jobs],
                any_commit=any_commit,
                answer=str(answer),
            )
            request_file = Path(scratch) / f"{number}.asked.json"
            request_file.write_bytes(msgspec.json.encode(request))
            command = [sys.executable, "-P", "-m", description.REMAKE, str(request_file)]
            # The first versions read the request from standard input: they are not to wait for a terminal.
            with open(Path(scratch) / f"{number}.errors", "wb") as errors:
                process = subprocess.Popen(
                    command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stderr=errors
                )
            processes.append((process, answer))
        outcomes = [(process.wait(), answer) for process, answer in processes]
        hint = f"; the code of its commit may not match this version's request; {remedy}" if remedy else ""
        refusal = _print_errors_once(sorted(Path(scratch).glob("*.errors")))
        if failures := [status for status, _ in outcomes if status]:
            why = refusal or f"ended with {failures[0]}; its output is above"
            raise PlumblineError(f"rebuilding the targets: {why}{hint}")
        try:
            replies = [msgspec.json.decode(path.read_bytes(), type=remake.RebuildProcessReply) for _, path in outcomes]
        except (OSError, msgspec.DecodeError) as error:
            raise PlumblineError(
                f"rebuilding the targets wrote no answer that this version reads ({error}){hint}"
            ) from error
    for reply in replies:
        if Path(reply.package).resolve() != package.resolve():
            raise PlumblineError(f"made by the package in {reply.package}, not by that in {package}; unset PYTHONPATH")
    return replies


def _print_errors_once(files: list[Path]) -> str:
    """Print what several processes wrote to standard error, each text once, and return the first refusal in it, which
    is left out: all of them read the same configuration."""
    texts = dict.fromkeys(file.read_text(encoding="utf-8", errors="replace") for file in files)
    refusals = list[str]()
    for text in texts:
        output, _, refusal = text.partition("error: ") if text.startswith("error: ") else text.partition("\nerror: ")
        refusals += [refusal.strip()] * bool(refusal)
        if output.strip():
            print(output.rstrip(), file=sys.stderr)
    return next(iter(refusals), "")


def _lay_code(names: Iterable[str], studies: Path, folder: Path, bundle: Path) -> None:
    """Put the code of studies next to the files that a bundle brings of them. The bundle's is never run.

    Raises:
        PlumblineError: there is some in the bundle.
    """
    if scripts := [name for name in names if study_folders.is_code(name)]:
        raise PlumblineError(f"{bundle}: {scripts[0]} is code, which no bundle of Plumbline brings; it is not rebuilt")
    for path in sorted(studies.glob("*/**/*.py")):
        place = folder / study_folders.STUDIES / path.relative_to(studies)
        if (folder / study_folders.STUDIES / path.relative_to(studies).parts[0]).is_dir():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def _compare_versions(summary: description.BundleDescription, bundle: Path, *, allowed: bool) -> list[str]:
    """List the packages that have other versions here, each with both versions.

    Raises:
        PlumblineError: there are such, and it is not `allowed`.
    """
    installed_versions = description.read_versions()
    other_packages = [
        name
        for name, version in summary.versions.items()
        if name in description.PACKAGES and installed_versions.get(name) != version
    ]
    if other_packages and not allowed:
        requirements = " ".join(f"{name}=={summary.versions[name]}" for name in other_packages)
        installed_text = ", ".join(f"{name} {installed_versions.get(name, 'is not there')}" for name in other_packages)
        raise PlumblineError(
            f"{bundle} was made with other packages, which may give other bytes: here {installed_text}; pip install "
            f"{requirements} (all of them are in its requirements.lock), or --any-versions"
        )
    return [
        f"{name} {installed_versions.get(name, 'is not there')}, not {summary.versions[name]}"
        for name in other_packages
    ]


def _describe_other_commit(summary: description.BundleDescription, bundle: Path, other_products: list[str]) -> str:
    commit, _, edited = description.read_checkout(code_hash.PACKAGE.parents[1])
    own_code = f"commit {commit}{', edited' if edited else ''}" if commit else "an installed package"
    if summary.commit is None or summary.edited:
        origin = "from uncommitted sources" if summary.commit is None else f"from an edited {summary.commit}"
        remedy = "find those sources"
    else:
        origin = f"at commit {summary.commit}"
        remedy = f"--at-commit (or git checkout {summary.commit}) makes them with that code"
    return (
        f"{bundle} was made {origin}; here ({own_code}) code, components or configuration of "
        f"{_format_some(other_products)} differ, and so do the targets; {remedy}, --any-commit makes them anyway"
    )


def _format_some(names: list[str]) -> str:
    return f"{len(names)} targets ({', '.join(sorted(names)[:3])}{', ...' if len(names) > 3 else ''})"


def _list_product_files(summary: description.BundleDescription, folder: Path) -> set[str]:
    """List the files that the bundle's targets have here, and of each target the first one, even if it was not made:
    a bundle may lack what it says it has. Code of another commit may make fewer files of a target."""
    names = set[str]()
    for product in summary.products:
        first, *other_names = (f"{summary.results}/{product.path}{ending}" for ending in FILES[product.kind])
        names |= {first, *(name for name in other_names if (folder / name).is_file())}
    return names


def _compare_files(folder: Path, names: list[str], hashes: Mapping[str, str]) -> dict[str, str]:
    """Compare each file with the SHA-256 that the bundle has of it, and write that list."""
    verdicts, rows = {}, [["file", "verdict", "sha256_bundled", "sha256_rebuilt"]]
    for name in names:
        old_hash, new_hash = hashes.get(name, ""), sha256_file(folder / name) if (folder / name).is_file() else ""
        comparison = EQUAL if new_hash == old_hash else DIFFERENT
        verdicts[name] = MISSING if not new_hash else NOT_BUNDLED if not old_hash else comparison
        rows.append([name, verdicts[name], old_hash, new_hash])
    atomic_write_text(folder / LIST, write_rows(rows))
    return verdicts


if __name__ == "__main__":
    run(main)

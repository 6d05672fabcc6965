"""Makes every table, figure and page of a bundle again: ``plumbline rebuild BUNDLE.tar.xz --into FOLDER``.

They are made from the bundle's frames, without a GPU, a corpus or training, and compared byte by byte with the files in
the bundle.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from plumbline.bundle import archive, commit_code, description, remake
from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import atomic_write_text, sha256_file
from plumbline.specs import code_hash, study_folders

EQUAL, DIFFERENT, MISSING = "equal", "different", "missing"

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
    """The outcome of a rebuild: what the bundle says of itself (`said`), and for each file whether it came out equal,
    different or missing (`verdicts`).

    `failed`: product -> why it could not be made. `otherwise`: what is different here from where the bundle was made,
    in words.
    """

    said: description.BundleDescription
    verdicts: dict[str, str]
    failed: dict[str, str]
    otherwise: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether every file of the bundle came out equal."""
        return set(self.verdicts.values()) <= {EQUAL}


def arguments() -> Parser:
    """Build the command-line parser of `plumbline rebuild`."""
    parser = Parser(__doc__)
    parser.add_argument("bundle", type=Path, metavar="BUNDLE.tar.xz")
    parser.add_argument("--into", type=Path, required=True, metavar="FOLDER", help="a new folder, or an empty one")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="targets at a time (default: 1)")
    commit = parser.add_mutually_exclusive_group()
    taken = "with the code of the bundle's commit, from the history of this clone, whatever is checked out"
    commit.add_argument("--at-commit", action="store_true", help=taken)
    commit.add_argument("--any-commit", action="store_true", help="even if this code makes some targets differently")
    parser.add_argument("--any-versions", action="store_true", help="even with other versions of packages")
    return parser


def main() -> int:
    """Run `plumbline rebuild`, and return the exit code: 0 where all files came out equal, else 1."""
    given = arguments().parse_args()
    found = rebuild(
        given.bundle,
        given.into,
        jobs=given.jobs,
        at_commit=given.at_commit,
        any_commit=given.any_commit,
        any_versions=given.any_versions,
    )
    print(told(found, given.into))
    return 0 if found.whole else 1


def rebuild(
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
        folder: new or empty; afterwards a project's config/, studies/, work/ and results/, and `bundled/` beside them.
        jobs: products that are made at a time.
        at_commit: make them with the code of the bundle's commit, from a clone's history (`commit_code`).
        any_commit: make them even where this code would make some of them otherwise.
        any_versions: make them even where packages that decide bytes are of other versions.

    Raises:
        PlumblineError: the archive is damaged or none of ours; packages or code are others than those it was made with.
    """
    said = description.parse(archive.read_one(bundle, description.NAME), str(bundle))
    otherwise = _versions(said, bundle, allowed=any_versions)
    kernels = said.openblas
    if kernels and (lacking := kernels_lacking_here(kernels)):
        otherwise.append(
            f"this processor has no {lacking}, which linear algebra for {kernels} needs: other last digits"
        )
        kernels = None
    with commit_code.code(said, bundle, at_commit) as (package, studies):
        listed = archive.unpack(bundle, folder, {"results": BROUGHT})
        try:
            _lay_code(listed, studies, folder, bundle)
            remedy = description.what_rebuilds(said.commit, said.edited, str(bundle)) if at_commit else ""
            answers = _made(said, folder, package, max(1, jobs), any_commit, remedy, kernels)
            other = [name for answer in answers for name in answer.other]
            if other and not any_commit:
                raise PlumblineError(_of_another_commit(said, bundle, other))
        except BaseException:
            archive.empty(folder)
            raise
    if other:
        otherwise.append(f"code or configuration of {_some(other)} differs from what the bundle was made with")
    brought = [name for name in sorted(listed) if name.startswith("results/")]
    verdicts = {name: _compared(folder, name, listed[name].sha256) for name in brought}
    failed = {name: why for answer in answers for name, why in answer.failed.items()}
    _list(folder, verdicts)
    return RebuildResult(said=said, verdicts=verdicts, failed=failed, otherwise=tuple(otherwise))


def kernels_lacking_here(kernels: str, cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Name what OpenBLAS's `kernels` need and this processor has not; empty where it has all, or does not say.

    A process that asks for them all the same is ended by the first instruction that is not there.
    """
    needed = "avx512f" if kernels.lower() in _AVX512_KERNELS else "avx2" if kernels.lower() in _AVX2_KERNELS else ""
    try:
        flags = re.search(r"^flags\s*:(.*)$", cpuinfo.read_text(), re.MULTILINE)
    except OSError:
        return ""
    return needed if needed and flags and needed not in flags[1].split() else ""


def told(found: RebuildResult, folder: Path | None = None) -> str:
    """Report the outcome of a rebuild as text for a terminal.

    `folder`, where it is kept, is named as the place to look.
    """
    said, counts = found.said, Counter(found.verdicts.values())
    studies, commit = ", ".join(said.asked.studies), said.commit or "unknown"
    lines = [f"{said.asked.preset}: {studies}; bundle format {said.format}, made at commit {commit}"]
    lines += [f"different here: {words}" for words in found.otherwise]
    lines += [f"{verdict}: {name}" for name, verdict in found.verdicts.items() if verdict != EQUAL]
    lines += [f"could not be made: {name}: {why}" for name, why in found.failed.items()]
    shares = ", ".join(f"{counts[verdict]} {verdict}" for verdict in (EQUAL, DIFFERENT, MISSING))
    lines.append(
        f"{len(said.products)} targets, {len(found.verdicts)} files: {shares}"
        + (f"; {folder / LIST} has each" if folder else "")
    )
    if folder and not found.whole:
        lines.append(f"compare with: diff -r {folder / BROUGHT} {folder / 'results'}")
    return visible("\n".join(lines))


def _made(
    said: description.BundleDescription,
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
        started = []
        for number in range(min(jobs, len(said.products))):
            answer = Path(scratch) / f"{number}.json"
            request = remake.RebuildProcessRequest(
                configuration=said.configuration,
                work=said.work,
                called=said.called,
                results=said.results,
                products=said.products[number::jobs],
                any_commit=any_commit,
                answer=str(answer),
            )
            asked = Path(scratch) / f"{number}.asked.json"
            asked.write_bytes(msgspec.json.encode(request))
            command = [sys.executable, "-P", "-m", description.REMAKE, str(asked)]
            # The first versions read the request from standard input: they are not to wait for a terminal.
            with open(Path(scratch) / f"{number}.errors", "wb") as errors:
                process = subprocess.Popen(
                    command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stderr=errors
                )
            started.append((process, answer))
        ended = [(process.wait(), answer) for process, answer in started]
        otherwise = f"; the code of its commit may not match this version's request; {remedy}" if remedy else ""
        refusal = _errors_once(sorted(Path(scratch).glob("*.errors")))
        if wrong := [status for status, _ in ended if status]:
            why = refusal or f"ended with {wrong[0]}; its output is above"
            raise PlumblineError(f"rebuilding the targets: {why}{otherwise}")
        try:
            found = [msgspec.json.decode(path.read_bytes(), type=remake.RebuildProcessReply) for _, path in ended]
        except (OSError, msgspec.DecodeError) as error:
            raise PlumblineError(
                f"rebuilding the targets wrote no answer that this version reads ({error}){otherwise}"
            ) from error
    for one in found:
        if Path(one.package).resolve() != package.resolve():
            raise PlumblineError(f"made by the package in {one.package}, not by that in {package}; unset PYTHONPATH")
    return found


def _errors_once(files: list[Path]) -> str:
    """Print what several processes said on standard error, each text once, and return the first refusal in it, which
    is left out: all of them read the same configuration."""
    said = dict.fromkeys(file.read_text(encoding="utf-8", errors="replace") for file in files)
    refusals = list[str]()
    for text in said:
        before, _, refusal = text.partition("error: ") if text.startswith("error: ") else text.partition("\nerror: ")
        refusals += [refusal.strip()] * bool(refusal)
        if before.strip():
            print(before.rstrip(), file=sys.stderr)
    return next(iter(refusals), "")


def _lay_code(listed: Iterable[str], studies: Path, folder: Path, bundle: Path) -> None:
    """Put the code of studies beside what a bundle brings of them. None is taken from the bundle: it would be run.

    Raises:
        PlumblineError: there is some in the bundle.
    """
    if brought := [name for name in listed if study_folders.is_code(name)]:
        raise PlumblineError(f"{bundle}: {brought[0]} is code, which no bundle of Plumbline brings; it is not rebuilt")
    for path in sorted(studies.glob("*/**/*.py")):
        place = folder / study_folders.STUDIES / path.relative_to(studies)
        if (folder / study_folders.STUDIES / path.relative_to(studies).parts[0]).is_dir():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def _versions(said: description.BundleDescription, bundle: Path, *, allowed: bool) -> list[str]:
    """What packages are of other versions here, in words.

    Raises:
        PlumblineError: there are such, and it is not `allowed`.
    """
    here = description.versions()
    other = [
        name for name, version in said.versions.items() if name in description.PACKAGES and here.get(name) != version
    ]
    if other and not allowed:
        wanted = " ".join(f"{name}=={said.versions[name]}" for name in other)
        found = ", ".join(f"{name} {here.get(name, 'is not there')}" for name in other)
        raise PlumblineError(
            f"{bundle} was made with other packages, which may give other bytes: here {found}; pip install {wanted} "
            "(all of them are in its requirements.lock), or --any-versions"
        )
    return [f"{name} {here.get(name, 'is not there')}, not {said.versions[name]}" for name in other]


def _of_another_commit(said: description.BundleDescription, bundle: Path, other: list[str]) -> str:
    commit, _, edited = description.checkout(code_hash.PACKAGE.parents[1])
    here = f"commit {commit}{', edited' if edited else ''}" if commit else "an installed package"
    if said.commit is None or said.edited:
        whose = "from uncommitted sources" if said.commit is None else f"from an edited {said.commit}"
        remedy = "find those sources"
    else:
        whose = f"at commit {said.commit}"
        remedy = f"--at-commit (or git checkout {said.commit}) makes them with that code"
    return (
        f"{bundle} was made {whose}; here ({here}) code, components or configuration of {_some(other)} differ, and "
        f"so do the targets; {remedy}, --any-commit makes them anyway"
    )


def _some(names: list[str]) -> str:
    return f"{len(names)} targets ({', '.join(sorted(names)[:3])}{', ...' if len(names) > 3 else ''})"


def _compared(folder: Path, name: str, sha256: str) -> str:
    path = folder / name
    if not path.is_file():
        return MISSING
    return EQUAL if sha256_file(path) == sha256 else DIFFERENT


def _list(folder: Path, verdicts: dict[str, str]) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["file", "verdict", "sha256_bundled", "sha256_rebuilt"])
    for name, verdict in verdicts.items():
        rebuilt = "" if verdict == MISSING else sha256_file(folder / name)
        writer.writerow([name, verdict, sha256_file(folder / BROUGHT / name.partition("/")[2]), rebuilt])
    atomic_write_text(folder / LIST, stream.getvalue())


if __name__ == "__main__":
    run(main)

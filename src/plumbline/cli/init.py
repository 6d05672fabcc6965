"""Writes a project (``plumbline init FOLDER``): Snakefile, workflow, configuration, profiles, examples,
documentation.

The files travel with the package, so that a wheel needs no copy of the repository. Nothing is ever overwritten: a
folder that holds anything except .git and .venv is refused. After a newer package is installed, ``--upgrade`` replaces
the files of a project that you did not change, adds new ones, and names those that you changed.
"""

from __future__ import annotations

import json
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plumbline import __version__
from plumbline.core import command_line, package_data
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import atomic_write_bytes, atomic_write_json, make_folder, sha256_file, sha256_text
from plumbline.core.pipeline_packages import INSTALL
from plumbline.specs.yaml_files import PROJECT

#: What may lie in the folder of a new project.
HARMLESS = {".git", ".venv"}
#: Entries in the way that are named; of more the number is printed.
NAMED = 5
README = Path(__file__).with_name("new_project.md")
IGNORED = [
    "/.venv/",
    "/work/",
    "/results/*",
    "!/results/README.md",
    "/.snakemake/",
    "/logs/",
    "/exports/",
    "__pycache__/",
]


def list_files() -> dict[str, Path | str]:
    """List every file of a new project: its path in the project -> the file that it is copied from, or its text."""
    root = package_data.folder()
    files: dict[str, Path | str] = {path.as_posix(): root / path for path in package_data.list_files(root)}
    if "Snakefile" not in files:
        raise PlumblineError(f"{root} has no Snakefile: this package is incomplete; install it again (pip install)")
    return files | {"README.md": README, ".gitignore": "".join(f"{line}\n" for line in IGNORED)}


def write(folder: Path) -> int:
    """Write a project into a folder that is empty or not there yet; returns how many files it has.

    Raises:
        PlumblineError: something is in the way, which is named.
    """
    if folder.exists() and not folder.is_dir():
        raise PlumblineError(f"{folder} is a file; name a folder that is empty or new")
    entries = sorted({path.name for path in folder.iterdir()} - HARMLESS) if folder.is_dir() else []
    if entries:
        names = ", ".join(entries[:NAMED]) + (f" and {len(entries) - NAMED} more" if len(entries) > NAMED else "")
        upgrade = "; to update a project use --upgrade" if PROJECT in entries else ""
        raise PlumblineError(
            f"{folder} is not empty ({names}), and nothing is ever overwritten; name another folder{upgrade}"
        )
    folder_existed, files = folder.is_dir(), list_files()
    make_folder(folder)
    try:
        for name, content in files.items():
            _put(folder / name, content)
        # `--profile slurm` is looked for in the working directory.
        (folder / "slurm").symlink_to("profiles/slurm")
        _record(folder, {name: _hash(content) for name, content in files.items()})
    except BaseException:  # it was empty: nothing of anybody's is in it
        for path in folder.iterdir() if folder_existed else [folder]:
            if path.name not in HARMLESS:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        raise
    return len(files)


def upgrade(folder: Path) -> list[str]:
    """Update a project to the installed package; returns lines about what was done and what is left to do.

    Raises:
        PlumblineError: the folder is not a project that `init` wrote.
    """
    record, files, lines = _read_record(folder), list_files(), list[str]()
    written: dict[str, str] = record["files"]
    for name, content in files.items():
        new_hash, path = _hash(content), folder / name
        old_hash = written.get(name)
        if new_hash == old_hash:
            continue
        if old_hash is None and not path.exists():
            try:
                _put(path, content)
            except (FileExistsError, NotADirectoryError) as error:
                lines.append(f"left out {name}: {error.filename} is a file of yours; rename it, and upgrade again")
                continue
            lines.append(f"added {name}")
        elif path.is_file() and not path.is_symlink() and sha256_file(path) in (old_hash, new_hash):
            atomic_write_bytes(path, _bytes(content))
            lines.append(f"replaced {name}")
        elif path.exists():
            newest = content if isinstance(content, Path) else "the package's"
            lines.append(f"left {name}, which both you and the package changed: compare it with {newest}")
            continue  # listed at every upgrade until both are equal
        else:
            lines.append(f"left out {name}, which you removed")
        written[name] = new_hash
    lines += [f"left {name}, which the package no longer has" for name in sorted(set(written) - set(files))]
    _record(folder, {name: digest for name, digest in written.items() if name in files})
    return lines


def _put(path: Path, content: Path | str) -> None:
    """Write a file that is not there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "xb") as file:
        file.write(_bytes(content))


def _bytes(content: Path | str) -> bytes:
    return content.encode() if isinstance(content, str) else content.read_bytes()


def _hash(content: Path | str) -> str:
    return sha256_text(content) if isinstance(content, str) else sha256_file(content)


def _record(folder: Path, files: dict[str, str]) -> None:
    """What was written, so that an upgrade knows what is still as it was."""
    atomic_write_json(folder / PROJECT, {"version": __version__, "files": files})


def _read_record(folder: Path) -> dict[str, Any]:
    path = folder / PROJECT
    if not path.is_file():
        raise PlumblineError(
            f"--upgrade: {folder} is not a project that `plumbline init` wrote (it has no {PROJECT}); name a project's "
            "folder, or leave out --upgrade to write a new one"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content["files"], dict):
            return dict(content)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise PlumblineError(
        f"--upgrade: {path} does not list what was written there; write a new one elsewhere (`plumbline init FOLDER`), "
        "and bring your changes over"
    )


def arguments() -> command_line.Parser:
    """Build the command-line parser of `plumbline init`."""
    parser = command_line.Parser(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder that is empty or new")
    parser.add_argument("--upgrade", action="store_true", help="update a project to the installed package")
    return parser


def main() -> None:
    """Run `plumbline init`: write a new project, or update one with ``--upgrade``."""
    options = arguments().parse_args()
    if options.upgrade:
        for line in upgrade(options.folder) or ["nothing to do"]:
            print(visible(line))
        return
    number = write(options.folder)
    more = "" if find_spec("snakemake") else f"  {INSTALL}    which brings snakemake and torch\n"
    message = (
        f"{options.folder}: a project of {number} files. Then:\n"
        f"{more}  cd {shlex.quote(str(options.folder))}\n"
        "  snakemake -n results/table2.csv    what would be done\n"
        "  snakemake results/table2.csv       do it, at demo size; README.md says more"
    )
    print(visible(message))


if __name__ == "__main__":
    command_line.run(main)

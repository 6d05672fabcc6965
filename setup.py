"""Takes along in a wheel what travels (plumbline/core/package_data.py) and the bill of materials of the locks: what
pyproject.toml cannot say of a build.
"""

import json
import runpy
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info

ROOT = Path(__file__).resolve().parent
SHIPPED = runpy.run_path(str(ROOT / "src" / "plumbline" / "core" / "package_data.py"))


def git(*arguments: str) -> str | None:
    """What git says of this tree; None where it is no repository, or there is no git."""
    if not (ROOT / ".git").exists():
        return None
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


class BuildWithProject(build_py):
    """build_py, and a copy of what travels. An editable install has the repository itself and needs none."""

    def run(self) -> None:
        """Build the package, and copy what travels into it."""
        shutil.rmtree(Path(self.build_lib) / "plumbline", ignore_errors=True)  # of an earlier build in the same folder
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "plumbline" / SHIPPED["COPY"]
        listing = git("ls-files", "-z")
        tracked = None if listing is None else set(listing.split("\0"))  # no notes or keys that lie beside
        for path in SHIPPED["list_files"](ROOT):
            if tracked is not None and str(path) not in tracked:
                continue
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, target / path)
        commit, changed = git("rev-parse", "HEAD"), git("status", "--porcelain", "--", "src", *SHIPPED["TRAVELS"])
        facts = {"git_commit": commit, "git_dirty": None if changed is None else bool(changed)}
        (target / SHIPPED["BUILT"]).write_text(json.dumps(facts) + "\n")


class EggInfoWithSbom(egg_info):
    """egg_info, and the bill of materials, which setuptools copies into `.dist-info` with all else that lies there."""

    def run(self) -> None:
        """Write the metadata, and the bill of materials next to it."""
        super().run()
        sbom = runpy.run_path(str(ROOT / "envs" / "write_sbom.py"))
        sbom["write_sbom"](Path(self.egg_info) / sbom["NAME"])


setup(cmdclass={"build_py": BuildWithProject, "egg_info": EggInfoWithSbom})

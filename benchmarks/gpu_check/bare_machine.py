"""The check on a machine with a GPU, a torch of its own, and no package index.

    python3 -m benchmarks.gpu_check.bare_machine --out FOLDER --continue-from FOLDER   # and any option of the check

From the root of an unpacked bundle (`benchmarks.gpu_check.bundle`). What the machine's Python lacks is installed from
the wheels that travel with it into a folder of its own, without asking anybody; then the check runs in that Python. The
standard library is enough for this file.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.gpu_check.section_call import INSTALLED, WHEELS

#: What the check imports and such a machine may lack, as modules.
NEEDED = ("msgspec",)


def install() -> None:
    """Put the wheels into a folder, whole or not at all.

    Raises:
        SystemExit: there are none, or no pip, or pip refuses them.
    """
    if INSTALLED.is_dir():
        return
    wheels = sorted(map(str, WHEELS.glob("*.whl")))
    if not wheels:
        raise SystemExit(f"error: {WHEELS} has no wheels: unpack the bundle here (make gpu-check-bundle makes it)")
    if importlib.util.find_spec("pip") is None:
        raise SystemExit(
            f"error: {sys.executable} has no pip: `python3 -m ensurepip --user` brings one without a network"
        )
    unfinished = INSTALLED.with_name(f"{INSTALLED.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)  # of a call that was killed
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    if subprocess.run([*command, "--no-deps", "--target", str(unfinished), *wheels]).returncode:
        version = ".".join(map(str, sys.version_info[:2]))
        raise SystemExit(
            f"error: pip takes none of {WHEELS} here, which are for x86_64, and this is {platform.machine()}, Python "
            f"{version}: make gpu-check-bundle FOR={version}; for another processor, install {' '.join(NEEDED)} here"
        )
    unfinished.rename(INSTALLED)


def main() -> None:
    """Install what is missing, and become the check."""
    lacking = any(importlib.util.find_spec(name) is None for name in NEEDED)
    if lacking:
        install()
    paths = [Path("src"), *([INSTALLED] if lacking else [])]
    search_paths = [str(path.resolve()) for path in paths] + [os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, search_paths))
    os.execv(sys.executable, [sys.executable, "-m", "benchmarks.gpu_check", *sys.argv[1:]])


if __name__ == "__main__":
    main()

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

from benchmarks.gpu_check.output_folders import INSTALLED, WHEELS

#: What the check imports and such a machine may lack, as modules.
NEEDED = ("msgspec",)


def install() -> None:
    """Put the wheels into a folder, whole or not at all.

    Raises:
        SystemExit: there are none, or no pip, or pip refuses them.
    """
    for folder in INSTALLED.parent.glob(f"{INSTALLED.name}.*"):
        if not Path("/proc", folder.name.rpartition(".")[2]).exists():  # of a call that was killed
            shutil.rmtree(folder, ignore_errors=True)
    if INSTALLED.is_dir():
        return
    wheels = sorted(map(str, WHEELS.glob("*.whl")))
    if not wheels:
        raise SystemExit(f"error: {WHEELS} has no wheels: unpack the bundle here (make gpu-check-bundle makes it)")
    if importlib.util.find_spec("pip") is None:
        raise SystemExit(
            f"error: {sys.executable} has no pip: `python3 -m ensurepip --user` brings one without a network, or unzip "
            f"the wheels of {WHEELS} into a folder and name it in PYTHONPATH"
        )
    beside = INSTALLED.with_name(f"{INSTALLED.name}.{os.getpid()}")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    done = subprocess.run([*command, "--no-deps", "--target", str(beside), *wheels])
    if done.returncode:
        shutil.rmtree(beside, ignore_errors=True)
        if platform.machine() != "x86_64":
            raise SystemExit(
                f"error: the wheels of {WHEELS} are for x86_64, and this machine is {platform.machine()}: install "
                f"{' and '.join(NEEDED)} here, and call this again"
            )
        version = ".".join(map(str, sys.version_info[:2]))
        raise SystemExit(
            f"error: pip takes none of {WHEELS} here; for this Python: make gpu-check-bundle FOR={version}"
        )
    try:
        beside.rename(INSTALLED)
    except OSError:
        if not INSTALLED.is_dir():
            raise
        shutil.rmtree(beside)  # another call was first


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

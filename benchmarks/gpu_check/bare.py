"""The check on a machine with a GPU, a torch of its own, and no package index.

    python3 -m benchmarks.gpu_check.bare --out FOLDER --from FOLDER     # and any other option of the check

From the root of an unpacked bundle (`benchmarks.gpu_check.bundle`). What the machine's Python lacks is installed from
the wheels that travel with it into a folder of its own, without asking anybody; then the check runs in that Python. The
standard library is enough for this file.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.gpu_check.places import INSTALLED, WHEELS

#: What the check imports and such a machine may lack, as modules; jsonschema's own needs come with it.
NEEDED = ("msgspec", "jsonschema")


def install() -> None:
    """Put the wheels into a folder, whole or not at all.

    Raises:
        SystemExit: there are none, or pip refuses them.
    """
    if INSTALLED.is_dir():
        return
    wheels = sorted(map(str, WHEELS.glob("*.whl")))
    if not wheels:
        raise SystemExit(f"error: {WHEELS} has no wheels: unpack the bundle here (make gpu-check-bundle makes it)")
    beside = INSTALLED.with_name(f"{INSTALLED.name}.{os.getpid()}")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    done = subprocess.run([*command, "--no-deps", "--target", str(beside), *wheels])
    if done.returncode:
        shutil.rmtree(beside, ignore_errors=True)
        version = ".".join(map(str, sys.version_info[:2]))
        raise SystemExit(
            f"error: pip takes none of {WHEELS} here; for this Python: make gpu-check-bundle FOR={version}"
        )
    beside.rename(INSTALLED)


def main() -> None:
    """Install what is missing, and become the check."""
    lacking = any(importlib.util.find_spec(name) is None for name in NEEDED)
    if lacking:
        install()
    paths = [Path("src"), *([INSTALLED] if lacking else [])]
    found = [str(path.resolve()) for path in paths] + [os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, found))
    os.execv(sys.executable, [sys.executable, "-m", "benchmarks.gpu_check", *sys.argv[1:]])


if __name__ == "__main__":
    main()

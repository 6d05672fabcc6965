"""Writes the two locks: every pin with the SHA-256 of each of its files (`make lock` runs this).

`requirements.lock` has what is installed in the environment that runs this, less what is named in `NOT_LOCKED`;
`requirements-cuda.lock` has what torch needs besides where the index gives its CUDA build. Hashes are the index's. A
file that is on no index, such as a CPU wheel of torch, is accepted by its hash as well: those of this machine are given
as arguments, those that the lock has already stay as long as their pin does.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

LOCK, CUDA_LOCK = Path("requirements.lock"), Path("requirements-cuda.lock")
#: The project itself, what installs, and what is used by this file alone.
NOT_LOCKED = ("plumbline-lm", "pip", "uv")
#: The kinds of machine whose CUDA builds are locked, as uv names them.
CUDA_MACHINES = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")
#: A pin and its hashes, as pip reads them.
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s+\\]+)(?:\+\S+)?((?: *\\\n *--hash=sha256:[0-9a-f]{64})*)$", re.MULTILINE)

Pins = dict[tuple[str, str], set[str]]


def read_pins(text: str) -> Pins:
    """Read the hashes of each (normalised name, public version) of a lock, or of a list without hashes."""
    return {
        (re.sub(r"[-_.]+", "-", name).lower(), version): set(re.findall(r"sha256:([0-9a-f]{64})", rest))
        for name, version, rest in PIN.findall(text)
    }


def write_pins(path: Path, heading: str, pins: Pins) -> None:
    """Write a lock, in order of names."""
    entries = []
    for (name, version), hashes in sorted(pins.items()):
        entries.append(" \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{each}" for each in sorted(hashes))]))
    path.write_text(f"# {heading}\n" + "\n".join(entries) + "\n")


def ask_index(requirements: str, *options: str) -> Pins:
    """Ask the index for the hashes of all files of these requirements."""
    python = tomllib.loads(Path("pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--generate-hashes", "--no-annotate"]
    command += ["--python-version", python, *options, "-"]
    return read_pins(subprocess.run(command, input=requirements, text=True, stdout=subprocess.PIPE, check=True).stdout)


def main() -> None:
    """Write both locks from the packages of this environment."""
    # not `pip freeze`, which tells of a wheel where it lay, and not its version
    listed = [sys.executable, "-m", "pip", "list", "--format=freeze", "--exclude-editable"]
    lines = subprocess.run(listed, text=True, stdout=subprocess.PIPE, check=True).stdout
    if no_pins := [line for line in lines.splitlines() if not PIN.fullmatch(line)]:
        sys.exit(f"error: pip lists {no_pins[0]!r}, which is no pin; install that package from the index")
    installed = [pin for pin in read_pins(lines) if pin[0] not in NOT_LOCKED]
    listing = "\n".join(f"{name}=={version}" for name, version in installed)
    pins = ask_index(listing, "--no-deps")
    if missing := [name for name, version in installed if not pins.get((name, version))]:
        sys.exit(f"error: the index has no hashes of {', '.join(missing)}")
    former = read_pins(LOCK.read_text()) if LOCK.exists() else {}
    for pin in pins:
        pins[pin] |= former.get(pin, set())
    for wheel in map(Path, sys.argv[1:]):
        name, version = wheel.name.split("-")[:2]
        if (hashes := pins.get((name, version.partition("+")[0]))) is None:
            sys.exit(f"error: {wheel} is of {name} {version}, which is not installed: no pin takes its hash")
        hashes.add(hashlib.sha256(wheel.read_bytes()).hexdigest())
    write_pins(LOCK, "Written by `make lock`: every package, with the hashes of its files.", pins)
    torch = "".join(f"{name}=={version}\n" for name, version in pins if name == "torch")
    cuda: Pins = {}
    for machine in CUDA_MACHINES:
        for pin, hashes in ask_index(f"{listing}\n{torch}", "--python-platform", machine).items():
            if pin not in pins:
                cuda.setdefault(pin, set()).update(hashes)
    write_pins(CUDA_LOCK, "Written by `make lock`: what torch needs besides, where it is a CUDA build.", cuda)


if __name__ == "__main__":
    main()

"""What Linux says of this machine's processor."""

import contextlib
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def read_facts(cpuinfo: Path = CPUINFO) -> dict[str, str]:
    """The facts of the first processor by their names (`model name`, `flags`, ...); none where nothing tells them."""
    facts: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    return facts

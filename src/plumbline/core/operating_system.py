"""Names the systems that Plumbline runs on, so that any other is refused at the start, without a traceback."""

from __future__ import annotations

import platform
import sys

#: As a user knows them.
NAMES = {"darwin": "macOS", "win32": "Windows"}


def explain_unsupported_system() -> str | None:
    """What to use instead, where Plumbline cannot run on this system; None if it can."""
    if sys.platform == "linux":
        return None
    name = NAMES.get(sys.platform, platform.system() or sys.platform)
    remedy = "WSL2 (wsl --install)" if sys.platform == "win32" else "a Linux virtual machine"
    return (
        f"this is {name}, and Plumbline runs only on Linux: it needs Linux's locks and process tables. Use "
        f"{remedy}, or a Linux container (envs/Dockerfile)"
    )

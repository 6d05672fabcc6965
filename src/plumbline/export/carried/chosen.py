"""The components that a model chooses, by slot and name. An export writes another file in place of this one."""

from __future__ import annotations

from typing import Any

COMPONENTS: dict[tuple[str, str], Any] = {}

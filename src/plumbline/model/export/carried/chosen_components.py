"""Maps the slots of a model to the components that it chooses. An export writes another file in place of this one."""

from __future__ import annotations

from typing import Any

COMPONENTS: dict[tuple[str, str], Any] = {}

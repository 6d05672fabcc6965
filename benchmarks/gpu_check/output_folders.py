"""Folders of the check, from the repository's root; git ignores all of them."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

#: What travels to a machine without an index in addition to the repository's files (`bundle`, `bare`).
CARRIED = Path("work/gpu-check")
WHEELS, TOLD = CARRIED / "wheels", CARRIED / "bundle.json"
#: The key_norms study's sequences of its paper size, of the corpus that mini reads.
PACKS = Path("work/mini/corpora/smollm_mix/packs/context2048")
#: Where there is to lie what an earlier call brought back.
BEFORE = CARRIED / "before"
#: What is made there and stays there; packages by the Python and the processor that they are for.
INSTALLED = Path(f"work/gpu-check-packages/{sys.implementation.cache_tag}-{platform.machine()}")
RUNS = Path("work/gpu-check-runs")

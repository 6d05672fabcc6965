"""All inputs by their names."""

from __future__ import annotations

from tests.kept_verdicts import numbers_inputs, record_inputs
from tests.kept_verdicts.carry_out import KeptInput

INPUTS: dict[str, KeptInput] = {kept.name: kept for kept in (*numbers_inputs.INPUTS, *record_inputs.INPUTS)}

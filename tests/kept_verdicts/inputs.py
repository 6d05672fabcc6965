"""All inputs by their names."""

from __future__ import annotations

from tests.kept_verdicts import numbers_inputs, own_method_inputs, record_inputs, study_inputs, trainer_inputs
from tests.kept_verdicts.carry_out import KeptInput

MODULES = (numbers_inputs, record_inputs, trainer_inputs, study_inputs, own_method_inputs)
INPUTS: dict[str, KeptInput] = {kept.name: kept for module in MODULES for kept in module.INPUTS}

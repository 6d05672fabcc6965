"""All inputs by their names."""

from __future__ import annotations

from tests.kept_verdicts import numbers_inputs, own_method_inputs, record_inputs, study_inputs, trainer_inputs
from tests.kept_verdicts.carry_out import VerdictInput

MODULES = (numbers_inputs, record_inputs, trainer_inputs, study_inputs, own_method_inputs)
INPUTS: dict[str, VerdictInput] = {case.name: case for module in MODULES for case in module.INPUTS}

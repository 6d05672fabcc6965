"""Reads probes: numbers per layer and head that a model gives on some sequences, one component file per family.

`_base` has the interface. A probe reads a run at its probe points: offline from checkpoints (``python -m
plumbline.evaluate.probes``), or online from inside training; both go through `read_all`.
"""

from __future__ import annotations

from plumbline.evaluate.probes._base import Probe, ProbedModel, ProbeValue
from plumbline.evaluate.probes._decoder import ProbedDecoder
from plumbline.evaluate.probes._forward_pass import build, observe, read, read_all
from plumbline.evaluate.probes._frame import make_rows, write_frame

__all__ = [
    "Probe",
    "ProbeValue",
    "ProbedDecoder",
    "ProbedModel",
    "build",
    "make_rows",
    "observe",
    "read",
    "read_all",
    "write_frame",
]

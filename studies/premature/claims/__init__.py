"""The premature study's claims: which id is measured how."""

from plumbline.results.claims.measures import Measures

from . import (
    architectures,
    controls,
    downstream,
    losses,
    mechanism,
    release,
    theorems,
)
from .evidence import Evidence

PARTS = (losses, downstream, mechanism, architectures, controls, release, theorems)
MEASURES = Measures().merged(part.MEASURES for part in PARTS)

__all__ = ["MEASURES", "Evidence"]

"""The query_free study's claims: which id is measured how."""

from plumbline.results.claims.measures import Measures

from . import losses, rates, sizes, theorems, transfer
from .evidence import Evidence

PARTS = (losses, rates, sizes, theorems, transfer)
MEASURES = Measures().merged(part.MEASURES for part in PARTS)

__all__ = ["MEASURES", "Evidence"]

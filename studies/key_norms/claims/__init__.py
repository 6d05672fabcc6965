"""The key_norms study's claims: which id is measured how."""

from plumbline.results.claims.measures import Measures

from . import definitions, trained
from .evidence import Evidence

MEASURES = Measures().merged(part.MEASURES for part in (definitions, trained))

__all__ = ["MEASURES", "Evidence"]

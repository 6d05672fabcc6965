"""The quack study's claims: which id is measured how."""

from plumbline.results.claims.measures import Measures

from . import design, theorem, timed, trained
from .evidence import Evidence

MEASURES = Measures().merged(part.MEASURES for part in (design, theorem, timed, trained))

__all__ = ["MEASURES", "Evidence"]

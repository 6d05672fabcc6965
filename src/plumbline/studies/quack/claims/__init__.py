"""The quack study's claims: which id is measured how."""

from plumbline.results.claims.measures import Measures
from plumbline.studies.quack.claims import design, theorem, timed, trained
from plumbline.studies.quack.claims.evidence import Evidence

MEASURES = Measures().merged(part.MEASURES for part in (design, theorem, timed, trained))

__all__ = ["MEASURES", "Evidence"]

"""The key_norms study's claims: which id is measured how."""

from plumbline.results.claims.measures import Measures
from plumbline.studies.key_norms.claims import definitions, trained
from plumbline.studies.key_norms.claims.evidence import Evidence

MEASURES = Measures().merged(part.MEASURES for part in (definitions, trained))

__all__ = ["MEASURES", "Evidence"]

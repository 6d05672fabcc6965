"""The transfer study's claims: which id is measured how."""

from plumbline.claims.measures import Measures
from plumbline.claims.transfer import base_scale, large_scale, losses_and_tasks, structure
from plumbline.claims.transfer.evidence import Evidence

MEASURES = Measures().merged(part.MEASURES for part in (base_scale, large_scale, losses_and_tasks, structure))

__all__ = ["MEASURES", "Evidence"]

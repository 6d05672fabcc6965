"""Takes from the bank what past runs of one trainer and budget say of sigma, for a comparison that is about to begin.

Means never cross a fingerprint. Sigma may, where a one-sided F test does not see that runs spread wider here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from plumbline.experiment.decision.bank import Bank
from plumbline.experiment.formatting import counted, listed, percent
from plumbline.stats.pooling import CROSSING_LEVEL, SigmaEstimate, crossing_error, may_cross, pooled, together
from plumbline.stats.sequential import SequentialDesign

#: So much wider runs may spread here than where sigma came from, for which it is said what that lets through.
WIDER = 1.5


@dataclass(frozen=True, kw_only=True, slots=True)
class PastNoise:
    """What past runs say of sigma.

    Attributes:
        here: of the baseline's runs of the comparison itself, which are in no other.
        same: of other runs of their fingerprint.
        crossed, refused: of each other fingerprint, by whether the F test let it cross.
    """

    here: SigmaEstimate
    same: SigmaEstimate
    crossed: tuple[SigmaEstimate, ...] = ()
    refused: tuple[SigmaEstimate, ...] = ()

    @property
    def pooled(self) -> SigmaEstimate:
        """All that is taken along."""
        return together(self.same, *self.crossed)

    def words(self, design: SequentialDesign) -> str:
        """Say in a sentence or three what was pooled and what was not; empty where there is nothing past."""
        said = []
        if self.pooled.df:
            parts = [f"{self.same.df:g} of the same machine, torch and data"] if self.same.df else []
            parts += [f"{sum(one.df for one in self.crossed):g} of others"] if self.crossed else []
            said.append(f"Sigma is pooled with that of past runs: degrees of freedom {listed(parts)}.")
        if self.crossed:
            df = sum(one.df for one in self.crossed)
            wider = crossing_error(replace(design, history_df=df), WIDER)
            said.append(
                f"The F test that let it cross (one-sided at {CROSSING_LEVEL:g}) does not see every difference: where "
                f"runs spread {WIDER:g} times wider here, {percent(wider)} of changes that do nothing would be kept, "
                f"discards not heeded, where {percent(design.alpha)} are promised."
            )
        if self.refused:
            df = sum(one.df for one in self.refused)
            said.append(
                f"That of {counted(len(self.refused), 'other machine')} ({df:g} degrees of freedom) is left out: runs "
                "spread wider here, by the same test."
            )
        return " ".join(said)


def past_noise(
    bank: Bank, group: str, here: Sequence[float], fingerprint: str, *, ours: Collection[str], theirs: Collection[str]
) -> PastNoise:
    """Read what the bank says of sigma as it was before the candidate's first run, so that a resumed one has the same.

    Args:
        here: values of the baseline's runs before the first look.
        fingerprint: of those runs.
        ours, theirs: ids of the candidate's runs and of the baseline's in this comparison, which are not past ones.
    """
    begun = next((at for at, one in enumerate(bank.runs) if one.run.run_id in ours), len(bank.runs))
    groups = bank.spreads(group, before=begun, but=theirs)
    found = pooled([here])
    same = pooled(groups.pop(fingerprint, []))
    others = [spread for values in groups.values() if (spread := pooled(values)).sigma > 0]
    may = [may_cross(together(found, same), one) for one in others]
    return PastNoise(
        here=found,
        same=same if same.sigma > 0 else SigmaEstimate(0.0, 0.0),
        crossed=tuple(one for one, yes in zip(others, may) if yes),
        refused=tuple(one for one, yes in zip(others, may) if not yes),
    )

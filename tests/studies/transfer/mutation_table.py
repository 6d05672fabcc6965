"""Claims x verdicts: what each claim's checker states where the paper is right, and where exactly that claim is false.

``python -m tests.studies.transfer.mutation_table`` prints it as Markdown; test_transfer_claims.py asserts the same.
"""

from __future__ import annotations

import pandas as pd
import pytest

from plumbline.studies.transfer.claims import CHECKS
from tests.studies.transfer.false_definitions import FALSE, PRINTED_FALSE, PRINTED_SO, SO, change_printed
from tests.studies.transfer.runs_with_false_claims import MUTANTS, UPHELD
from tests.studies.transfer.synthetic_results import hold_frames, right
from tests.studies.transfer.test_transfer_claims import CLAIMS, judge_frames, where


def _false(name: str, as_printed: str) -> tuple[str, str]:
    """What is false in the world of this claim's mutant, and the verdict there."""
    if name in MUTANTS:
        return "runs in which it is false", where(MUTANTS[name], name).loc[name, "verdict"]
    if name in FALSE:
        with pytest.MonkeyPatch.context() as patch:
            FALSE[name](patch)
            return "code in which it is false", judge_frames(hold_frames({}), [name]).loc[name, "verdict"]
    if name in PRINTED_FALSE:
        other = judge_frames(hold_frames({}), [name], published=PRINTED_FALSE[name])
        return "printed numbers in which it is false", other.loc[name, "verdict"]
    return "the printed numbers themselves", as_printed


def _so(name: str, as_printed: str) -> str:
    """The verdict where the claim is so: the paper's world, or one of its own where the paper contradicts it."""
    if name in UPHELD:
        return str(where(UPHELD[name], name).loc[name, "verdict"])
    if name in SO:
        with pytest.MonkeyPatch.context() as patch:
            SO[name](patch)
            return str(judge_frames(hold_frames({}), [name]).loc[name, "verdict"])
    if name in PRINTED_SO:
        claims = [change_printed(claim, PRINTED_SO[name]) for claim in CLAIMS if claim.id == name]
        return str(judge_frames(hold_frames({}), [name], claims).loc[name, "verdict"])
    return as_printed


def table() -> pd.DataFrame:
    """One row a claim: id, verdict in the paper's own world, where it is so, where it is false, and how that is."""
    document = judge_frames(hold_frames(right()), list(CHECKS))
    rows = []
    for name, measure in CHECKS.items():
        document_verdict = str(document.loc[name, "verdict"])
        if measure.function is None:
            rows.append((name, document_verdict, "", "", measure.untested))
            continue
        how, verdict = _false(name, document_verdict)
        rows.append((name, document_verdict, _so(name, document_verdict), verdict, how))
    return pd.DataFrame(rows, columns=["claim", "the paper's world", "where it is so", "where it is false", "how"])


if __name__ == "__main__":
    found = table()
    print(found.to_markdown(index=False))
    print(f"\n{len(found)} claims.")
    for column in found.columns[1:4]:
        print(f"{column}: {found[column].value_counts().to_dict()}")

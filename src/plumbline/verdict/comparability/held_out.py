"""Checks that what a model is evaluated on was held out of its training: texts byte for byte, items by 13 words."""

from __future__ import annotations

from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import SharedTexts


def check(arms: ComparedArms) -> CheckAnswer:
    """Tell how many held-out texts and items are in the training texts as well; both arms read the same ones."""
    runs = [run for arm in (arms.baseline, arms.candidate) for run in arms.runs_of(arm)]
    counts = list(dict.fromkeys(run.shared_texts for run in runs if run.shared_texts is not None))
    if not counts:
        return not_known("whether held-out texts are in the training texts as well")
    sentences = [sentence for count in counts for sentence in _describe(count)]
    if sentences:
        first = counts[0]
        return tell("; ".join(sentences), held_out=first.held_out, shared=first.shared, items_shared=first.items_shared)
    item_count = sum(count.items or 0 for count in counts)
    items = f", and none of {item_count:,} items has 13 words in a row with one" if item_count else ""
    texts = " and ".join(f"{count.held_out:,} held-out {count.unit}" for count in counts)
    return holds(f"none of {texts} is in the training texts as well, byte for byte{items}")


def _describe(count: SharedTexts) -> list[str]:
    sentences = []
    if count.shared:
        sentences.append(
            f"{count.shared:,} of {count.held_out:,} held-out {count.unit} are in the training texts as well, byte for "
            f"byte ({count.option}: once_in_train or once_in_validation leaves them out)"
        )
    if count.items_shared:
        sentences.append(f"{count.items_shared:,} of {count.items:,} items have 13 words in a row with a training text")
    return sentences

"""Translates the words by which loops and trackers say how a run ended."""

from __future__ import annotations

from plumbline.core.errors import nearest

KEEP, DISCARD, CRASH, OTHER = "keep", "discard", "crash", ""

#: Meaning -> words of loops and trackers, in lower case. A line without a run of its own means nothing.
WORDS = {
    KEEP: ("keep", "kept", "accept", "accepted", "baseline", "best", "improved", "provisional", "tentative"),
    DISCARD: ("discard", "discarded", "neutral", "reject", "rejected", "revert", "reverted", "worse"),
    CRASH: ("crash", "crashed", "diverged", "error", "fail", "failed", "killed", "nan", "oom", "timeout"),
    OTHER: ("complete", "completed", "done", "finished", "ok", "success"),
}
MEANING = {word: meaning for meaning, words in WORDS.items() for word in words}


def meaning(status: str) -> str | None:
    """Return what a status says: `KEEP`, `DISCARD`, `CRASH` or `OTHER` (it finished); None of an unknown one."""
    return MEANING.get(status.strip().lower())


def unknown(status: str, *meanings: str) -> str:
    """Say which words are known of these meanings."""
    known = [word for meaning in meanings for word in WORDS[meaning]]
    return f"{status!r} is none of {', '.join(known)}{nearest(status.lower(), known)}"

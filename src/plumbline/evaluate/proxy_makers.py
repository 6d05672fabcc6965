"""Asks a question of a spot in a document: the makers of proxy items that a task's file chooses from by name.

A maker gives what an item's fields are made of, or None where the spot does not serve. False answers are real text of
nearly the true answer's length, so length gives nothing away.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

from plumbline.evaluate import field_mapping
from plumbline.evaluate.proxy_material import SENTENCE, ProxyMaterial, SentenceInContext

Given = dict[str, Any]

_COMMON_WORDS = """
about above after again against along also although always among another because been before being
below between both cannot could does during each either else even ever every from further have
having here himself into itself just less many might more most much must myself never nothing only
other others ought over same shall should some such than that their them themselves then there these
they this those though through thus under until upon very were what when where whether which while
whom whose will with within without would your
"""
_COMMON = frozenset(_COMMON_WORDS.split())


def next_sentence(
    spot: SentenceInContext, documents: ProxyMaterial, rng: random.Random, *, answers: int, near: bool = False,
    skip: int = 0, without: str = "",
) -> Given | None:  # fmt: skip
    """Which of `answers` sentences follows the context.

    Args:
        near: false answers are of the same document.
        skip: words of each answer that are left out; `beginning` has the true one's.
        without: a text that the context must not hold.
    """
    chosen = _choose(spot, documents, rng, answers, near=near, skip=skip)
    if chosen is None or (without and without in spot.context):
        return None
    return {"context": spot.context, "beginning": _head(spot.text, skip), **field_mapping.choice(*chosen)}


def said_in_passage(spot: SentenceInContext, documents: ProxyMaterial, rng: random.Random) -> Given | None:
    """Whether a passage says a sentence; `right` is 1 for yes."""
    chosen = _choose(spot, documents, rng, 2)
    if chosen is None:
        return None
    right = rng.randrange(2)
    asked = spot.text if right else next(text for text in chosen[0] if text != spot.text)
    return {"passage": f"{spot.context} {spot.text}", "question": f'does the passage say "{asked}"', "right": right}


def reading_problem(spot: SentenceInContext, documents: ProxyMaterial, rng: random.Random) -> Given | None:
    """Which of four sentences follows the context, as RACE writes its problems."""
    chosen = _choose(spot, documents, rng, 4)
    if chosen is None:
        return None
    problem = {"question": "The next sentence is", "answer": field_mapping.LETTERS[chosen[1]], "options": chosen[0]}
    return {"context": spot.context, "problems": repr([problem])}


def two_true_answers(spot: SentenceInContext, documents: ProxyMaterial, rng: random.Random) -> Given | None:
    """Five sentences, of which the next one and the one after it are true; `truths` has a 1 for each true one."""
    following = documents.sentences[spot.document][spot.sentence + 1 : spot.sentence + 2]
    false = documents.others(spot, 3, rng, near=False)
    if false is None or not following or following[0] in false or len(following[0]) > SENTENCE[1]:
        return None
    return {"context": spot.context, "answers": [spot.text, following[0], *false], "truths": [1, 1, 0, 0, 0]}


def blank(spot: SentenceInContext, documents: ProxyMaterial, rng: random.Random) -> Given | None:
    """Which of two words stands in the blank of a sentence."""
    words = spot.text.split(" ")
    places = [place for place in range(2, len(words) - 3) if _content(words[place])]
    false = documents.others(spot, 1, rng, near=False)
    if not places or false is None or "_" in spot.text:
        return None
    place = rng.choice(places)
    wrong = [word for word in false[0].split(" ")[1:-1] if _content(word) and word != words[place]]
    if not wrong:
        return None
    options = [words[place], rng.choice(wrong)]
    right = rng.randrange(2)
    blanked = " ".join([*words[:place], "_", *words[place + 1 :]])
    return {"sentence": blanked, **field_mapping.choice(options if right == 0 else options[::-1], right)}


def last_word(spot: SentenceInContext, documents: ProxyMaterial, rng: random.Random) -> Given | None:
    """A passage cut after a word that is no function word and was said in an earlier sentence, not in this one."""
    words = spot.text.rstrip(".!?\"'”").split(" ")
    said = set(re.findall(r"[A-Za-z]+", spot.context))
    for place in range(len(words) - 1, 4, -1):
        if _content(words[place]) and words[place] in said and words[place] not in words[:place]:
            return {"text": " ".join([spot.context, *words[: place + 1]])}
    return None


#: Makers by the name that a task's file chooses one by.
MAKERS: dict[str, Callable[..., Given | None]] = {
    make.__name__: make
    for make in (next_sentence, said_in_passage, reading_problem, two_true_answers, blank, last_word)
}


def _choose(
    spot: SentenceInContext,
    documents: ProxyMaterial,
    rng: random.Random,
    count: int,
    *,
    near: bool = False,
    skip: int = 0,
) -> tuple[list[str], int] | None:
    """`count` shuffled answers and the index of the true one, each without its first `skip` words."""
    false = documents.others(spot, count - 1, rng, near=near)
    if false is None:
        return None
    answers = [_tail(text, skip) for text in (spot.text, *false)]
    if len(set(answers)) < count or not all(answers):
        return None
    order = rng.sample(range(count), count)
    return [answers[index] for index in order], order.index(0)


def _head(text: str, words: int) -> str:
    return " ".join(text.split(" ")[:words])


def _tail(text: str, words: int) -> str:
    return " ".join(text.split(" ")[words:])


def _content(word: str) -> bool:
    return re.fullmatch(r"[A-Za-z]{4,}", word) is not None and word.lower() not in _COMMON

"""Proxy items: questions in a task's schema made from held-out documents, for tasks whose items are not at hand.

A proxy asks what a language model can be asked of any prose: which sentence comes next, how a sentence ends, which
word is missing. It is *not* the benchmark whose schema it borrows, and is called `proxy` wherever its score is shown.
False answers are real text of nearly the true answer's length, so length gives nothing away. Everything is drawn from
a generator seeded by the task's name: the same documents give the same items.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.files import parse_json
from plumbline.evaluate.schema import Item

# Characters: short enough for a demo model's context of 128 tokens to hold an item.
_SENTENCE = (40, 160)
_CONTEXT = 240
_CANDIDATES = 60
_COMMON_WORDS = """
about above after again against along also although always among another because been before being
below between both cannot could does during each either else even ever every from further have
having here himself into itself just less many might more most much must myself never nothing only
other others ought over same shall should some such than that their them themselves then there these
they this those though through thus under until upon very were what when where whether which while
whom whose will with within without would your
"""
_COMMON = frozenset(_COMMON_WORDS.split())


@dataclass(frozen=True, slots=True)
class Spot:
    """A sentence of a document and the sentences before it that make its context."""

    document: int
    sentence: int
    context: str
    text: str


class Documents:
    """Held-out documents cut into sentences, and the spots at which a question can be asked."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.sentences = [_sentences(text) for text in texts]
        self.spots = [spot for index in range(len(texts)) for spot in self._spots(index)]

    @classmethod
    def read(cls, path: Path) -> Documents:
        """From a JSONL file of documents {"id", "source", "text"}.

        Raises:
            PlumblineError: the file is absent, or a line of it is not a document.
        """
        if not path.is_file():
            raise PlumblineError(f"--documents: there is no file {path}; proxy items are made from it")
        texts = []
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if not line.strip():
                continue
            try:
                texts.append(parse_json(line)["text"])
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                raise PlumblineError(f"{path} line {number}: not a document with a 'text' ({error!r})") from error
        return cls(texts)

    def _spots(self, document: int) -> list[Spot]:
        found = []
        sentences = self.sentences[document]
        for index in range(1, len(sentences)):
            if not _SENTENCE[0] <= len(sentences[index]) <= _SENTENCE[1]:
                continue
            start, length = index, 0
            while start > 0 and length + len(sentences[start - 1]) <= _CONTEXT:
                start -= 1
                length += len(sentences[start]) + 1
            if start < index:
                found.append(Spot(document, index, " ".join(sentences[start:index]), sentences[index]))
        return found

    def others(self, spot: Spot, count: int, rng: random.Random, *, near: bool) -> list[str] | None:
        """`count` sentences that do not follow `spot`, of nearly its length: of the same document if `near`, else of
        other documents. None where there are too few."""
        pool = [
            other.text
            for other in rng.sample(self.spots, min(len(self.spots), 20 * _CANDIDATES if near else _CANDIDATES))
            if (other.document == spot.document) is near and abs(other.sentence - spot.sentence) > 1
        ]
        pool = sorted({text for text in pool if text != spot.text and text not in spot.context})
        pool.sort(key=lambda text: abs(len(text) - len(spot.text)))
        return pool[:count] if len(pool) >= count else None


def items(task: str, documents: Documents, count: int) -> list[Item]:
    """`count` proxy items in the schema of `task`.

    Raises:
        PlumblineError: the documents do not give as many.
    """
    rng = random.Random(f"plumbline proxy {task}")
    spots = rng.sample(documents.spots, len(documents.spots))
    found: list[Item] = []
    for spot in spots:
        if len(found) == count:
            break
        item = _MAKERS[task](spot, documents, rng)
        if item is not None:
            found.append(item)
    if len(found) < count:
        raise PlumblineError(
            f"the held-out documents give {len(found)} proxy items for {task}, {count} are asked for; "
            "lower --proxy-items (evaluation.proxy_items of the preset's file) or hold out more documents "
            "(held_out.percent of the corpus's file)"
        )
    return found


def _choose(
    spot: Spot, documents: Documents, rng: random.Random, count: int, *, near: bool = False, skip: int = 0
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


def _lettered(answers: list[str], right: int) -> Item:
    letters = list("ABCD")
    return {"choices": {"text": answers, "label": letters}, "answerKey": letters[right]}


def _arc(near: bool) -> Callable[[Spot, Documents, random.Random], Item | None]:
    def make(spot: Spot, documents: Documents, rng: random.Random) -> Item | None:
        chosen = _choose(spot, documents, rng, 4, near=near)
        return chosen and {"question": spot.context, **_lettered(*chosen)}

    return make


def _openbookqa(spot: Spot, documents: Documents, rng: random.Random) -> Item | None:
    chosen = _choose(spot, documents, rng, 4, skip=4)
    return chosen and {"question_stem": _head(spot.text, 4), **_lettered(*chosen)}


def _hellaswag(spot: Spot, documents: Documents, rng: random.Random) -> Item | None:
    chosen = _choose(spot, documents, rng, 4, skip=4)
    if chosen is None or "[" in spot.context:
        return None
    return {
        "activity_label": "Text",
        "ctx_a": spot.context,
        "ctx_b": _head(spot.text, 4),
        "endings": chosen[0],
        "label": str(chosen[1]),
    }


def _piqa(spot: Spot, documents: Documents, rng: random.Random) -> Item | None:
    chosen = _choose(spot, documents, rng, 2)
    return chosen and {"goal": spot.context, "sol1": chosen[0][0], "sol2": chosen[0][1], "label": chosen[1]}


def _social_iqa(spot: Spot, documents: Documents, rng: random.Random) -> Item | None:
    chosen = _choose(spot, documents, rng, 3)
    if chosen is None:
        return None
    answers = dict(zip(("answerA", "answerB", "answerC"), chosen[0]))
    return {"context": spot.context, "question": "What comes next?", **answers, "label": str(chosen[1] + 1)}


def _mmlu(spot: Spot, documents: Documents, rng: random.Random) -> Item | None:
    chosen = _choose(spot, documents, rng, 4)
    return chosen and {"question": spot.context, "subject": "", "choices": chosen[0], "answer": chosen[1]}


def _boolq(spot: Spot, documents: Documents, rng: random.Random) -> Item | None:
    chosen = _choose(spot, documents, rng, 2)
    if chosen is None:
        return None
    label = rng.randrange(2)
    asked = spot.text if label else next(text for text in chosen[0] if text != spot.text)
    return {"passage": f"{spot.context} {spot.text}", "question": f'does the passage say "{asked}"', "label": label}


def _race(spot: Spot, documents: Documents, rng: random.Random) -> Item | None:
    chosen = _choose(spot, documents, rng, 4)
    if chosen is None:
        return None
    problem = {"question": "The next sentence is", "answer": "ABCD"[chosen[1]], "options": chosen[0]}
    return {"article": spot.context, "problems": repr([problem])}


def _truthfulqa(spot: Spot, documents: Documents, rng: random.Random) -> Item | None:
    following = documents.sentences[spot.document][spot.sentence + 1 : spot.sentence + 2]
    false = documents.others(spot, 3, rng, near=False)
    if false is None or not following or following[0] in false or len(following[0]) > _SENTENCE[1]:
        return None
    # Two true answers: the next sentence and the one after it.
    targets = {"choices": [spot.text, following[0], *false], "labels": [1, 1, 0, 0, 0]}
    return {"question": spot.context, "mc2_targets": targets}


def _winogrande(spot: Spot, documents: Documents, rng: random.Random) -> Item | None:
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
    first, second = options if right == 0 else options[::-1]
    return {"sentence": blanked, "option1": first, "option2": second, "answer": str(right + 1)}


def _lambada(spot: Spot, documents: Documents, rng: random.Random) -> Item | None:
    """A passage cut after a word that is no function word and was said in an earlier sentence, not in this one."""
    words = spot.text.rstrip(".!?\"'”").split(" ")
    said = set(re.findall(r"[A-Za-z]+", spot.context))
    for place in range(len(words) - 1, 4, -1):
        if _content(words[place]) and words[place] in said and words[place] not in words[:place]:
            return {"text": " ".join([spot.context, *words[: place + 1]])}
    return None


_MAKERS: dict[str, Callable[[Spot, Documents, random.Random], Item | None]] = {
    "arc_easy": _arc(near=False),
    "arc_challenge": _arc(near=True),
    "openbookqa": _openbookqa,
    "hellaswag": _hellaswag,
    "piqa": _piqa,
    "social_iqa": _social_iqa,
    "mmlu": _mmlu,
    "boolq": _boolq,
    "race": _race,
    "truthfulqa_mc2": _truthfulqa,
    "winogrande": _winogrande,
    "lambada_openai": _lambada,
}


def _sentences(text: str) -> list[str]:
    flat = re.sub(r"\s+", " ", text).strip()
    return [piece for piece in re.split(r"(?<=[.!?])[\"”']? (?=[A-Z\"“])", flat) if piece]


def _head(text: str, words: int) -> str:
    return " ".join(text.split(" ")[:words])


def _tail(text: str, words: int) -> str:
    return " ".join(text.split(" ")[words:])


def _content(word: str) -> bool:
    return re.fullmatch(r"[A-Za-z]{4,}", word) is not None and word.lower() not in _COMMON

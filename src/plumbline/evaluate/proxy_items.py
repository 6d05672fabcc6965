"""Makes proxy items: questions in a task's form from held-out documents, for tasks whose items are not at hand.

A proxy asks what a language model can be asked of any prose: which sentence comes next, how a sentence ends, which
word is missing. It is *not* the benchmark whose form it borrows, and is called `proxy` wherever its score is shown.
A task's file names the maker (`MAKERS`), and how an item is made of what that gives: what its fields are made of, or
None if the spot in a document does not serve. False answers are real text of nearly the true answer's length, so
length gives nothing away. Everything is drawn from a generator seeded by the task's name: the same documents give the
same items.
"""

from __future__ import annotations

import functools
import inspect
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import parse_json
from plumbline.data.verify_files import verify_documents
from plumbline.evaluate import field_mapping
from plumbline.evaluate.item_fields import Item
from plumbline.specs.tasks import ProxyItems, Task

#: Characters: short enough for a demo model's context of 128 tokens to hold an item.
SENTENCE = (40, 160)
_CONTEXT = 240
_CANDIDATES = 60

ItemParts = dict[str, Any]

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
class SentenceInContext:
    """A sentence of a document and the sentences before it that make its context."""

    document: int
    sentence: int
    context: str
    text: str


class ProxyMaterial:
    """Held-out documents cut into sentences, and the spots at which a question can be asked."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.sentences = [_split_sentences(text) for text in texts]
        self.spots = [spot for index in range(len(texts)) for spot in self._spots(index)]

    @classmethod
    def read(cls, path: Path) -> ProxyMaterial:
        """From a JSONL file of documents {"id", "source", "text"}.

        Raises:
            PlumblineError: the file is absent, or a line of it is not a document.
        """
        if not path.is_file():
            raise PlumblineError(f"--documents: there is no file {path}; proxy items are made from it")
        verify_documents(path)
        texts = []
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if not line.strip():
                continue
            try:
                texts.append(parse_json(line)["text"])
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                raise PlumblineError(f"{path} line {number}: not a document with a 'text' ({error!r})") from error
        return cls(texts)

    def _spots(self, document: int) -> list[SentenceInContext]:
        spots = []
        sentences = self.sentences[document]
        for index in range(1, len(sentences)):
            if not SENTENCE[0] <= len(sentences[index]) <= SENTENCE[1]:
                continue
            start, length = index, 0
            while start > 0 and length + len(sentences[start - 1]) <= _CONTEXT:
                start -= 1
                length += len(sentences[start]) + 1
            if start < index:
                spots.append(SentenceInContext(document, index, " ".join(sentences[start:index]), sentences[index]))
        return spots

    def draw_others(self, spot: SentenceInContext, count: int, rng: random.Random, *, near: bool) -> list[str] | None:
        """`count` sentences that do not follow `spot`, of nearly its length: of the same document if `near`, else of
        other documents. None if there are too few."""
        pool = [
            candidate.text
            for candidate in rng.sample(self.spots, min(len(self.spots), 20 * _CANDIDATES if near else _CANDIDATES))
            if (candidate.document == spot.document) is near and abs(candidate.sentence - spot.sentence) > 1
        ]
        pool = sorted({text for text in pool if text != spot.text and text not in spot.context})
        pool.sort(key=lambda text: abs(len(text) - len(spot.text)))
        return pool[:count] if len(pool) >= count else None


def _split_sentences(text: str) -> list[str]:
    flat = re.sub(r"\s+", " ", text).strip()
    return [piece for piece in re.split(r"(?<=[.!?])[\"”']? (?=[A-Z\"“])", flat) if piece]


def next_sentence(
    spot: SentenceInContext, documents: ProxyMaterial, rng: random.Random, *, answers: int, near: bool = False,
    skip: int = 0, without: str = "",
) -> ItemParts | None:  # fmt: skip
    """Which of `answers` sentences follows the context.

    Args:
        near: false answers are of the same document.
        skip: words of each answer that are left out; `beginning` has the true one's.
        without: a text that the context must not hold.
    """
    chosen = _choose_answers(spot, documents, rng, answers, near=near, skip=skip)
    if chosen is None or (without and without in spot.context):
        return None
    return {"context": spot.context, "beginning": _first_words(spot.text, skip), **field_mapping.choice(*chosen)}


def said_in_passage(spot: SentenceInContext, documents: ProxyMaterial, rng: random.Random) -> ItemParts | None:
    """Whether a passage says a sentence; `right` is 1 for yes."""
    chosen = _choose_answers(spot, documents, rng, 2)
    if chosen is None:
        return None
    right = rng.randrange(2)
    sentence = spot.text if right else next(text for text in chosen[0] if text != spot.text)
    return {"passage": f"{spot.context} {spot.text}", "question": f'does the passage say "{sentence}"', "right": right}


def reading_problem(spot: SentenceInContext, documents: ProxyMaterial, rng: random.Random) -> ItemParts | None:
    """Which of four sentences follows the context, as RACE writes its problems."""
    chosen = _choose_answers(spot, documents, rng, 4)
    if chosen is None:
        return None
    problem = {"question": "The next sentence is", "answer": field_mapping.LETTERS[chosen[1]], "options": chosen[0]}
    return {"context": spot.context, "problems": repr([problem])}


def two_true_answers(spot: SentenceInContext, documents: ProxyMaterial, rng: random.Random) -> ItemParts | None:
    """Five sentences, of which the next one and the one after it are true; `truths` has a 1 for each true one."""
    following = documents.sentences[spot.document][spot.sentence + 1 : spot.sentence + 2]
    false = documents.draw_others(spot, 3, rng, near=False)
    if false is None or not following or following[0] in false or len(following[0]) > SENTENCE[1]:
        return None
    return {"context": spot.context, "answers": [spot.text, following[0], *false], "truths": [1, 1, 0, 0, 0]}


def blank(spot: SentenceInContext, documents: ProxyMaterial, rng: random.Random) -> ItemParts | None:
    """Which of two words stands in the blank of a sentence."""
    sentence_words = spot.text.split(" ")
    places = [place for place in range(2, len(sentence_words) - 3) if _is_content_word(sentence_words[place])]
    false = documents.draw_others(spot, 1, rng, near=False)
    if not places or false is None or "_" in spot.text:
        return None
    place = rng.choice(places)
    wrong = [word for word in false[0].split(" ")[1:-1] if _is_content_word(word) and word != sentence_words[place]]
    if not wrong:
        return None
    options = [sentence_words[place], rng.choice(wrong)]
    right = rng.randrange(2)
    blanked = " ".join([*sentence_words[:place], "_", *sentence_words[place + 1 :]])
    return {"sentence": blanked, **field_mapping.choice(options if right == 0 else options[::-1], right)}


def last_word(spot: SentenceInContext, documents: ProxyMaterial, rng: random.Random) -> ItemParts | None:
    """A passage cut after a word that is no function word and was said in an earlier sentence, not in this one."""
    sentence_words = spot.text.rstrip(".!?\"'”").split(" ")
    context_words = set(re.findall(r"[A-Za-z]+", spot.context))
    for place in range(len(sentence_words) - 1, 4, -1):
        if (
            _is_content_word(sentence_words[place])
            and sentence_words[place] in context_words
            and sentence_words[place] not in sentence_words[:place]
        ):
            return {"text": " ".join([spot.context, *sentence_words[: place + 1]])}
    return None


#: Makers by the name that a task's file chooses one by.
MAKERS: dict[str, Callable[..., ItemParts | None]] = {
    make.__name__: make
    for make in (next_sentence, said_in_passage, reading_problem, two_true_answers, blank, last_word)
}


def _choose_answers(
    spot: SentenceInContext,
    documents: ProxyMaterial,
    rng: random.Random,
    count: int,
    *,
    near: bool = False,
    skip: int = 0,
) -> tuple[list[str], int] | None:
    """`count` shuffled answers and the index of the true one, each without its first `skip` words."""
    false = documents.draw_others(spot, count - 1, rng, near=near)
    if false is None:
        return None
    answers = [_skip_words(text, skip) for text in (spot.text, *false)]
    if len(set(answers)) < count or not all(answers):
        return None
    order = rng.sample(range(count), count)
    return [answers[index] for index in order], order.index(0)


def _first_words(text: str, count: int) -> str:
    return " ".join(text.split(" ")[:count])


def _skip_words(text: str, count: int) -> str:
    return " ".join(text.split(" ")[count:])


def _is_content_word(word: str) -> bool:
    return re.fullmatch(r"[A-Za-z]{4,}", word) is not None and word.lower() not in _COMMON


def items(task: Task, documents: ProxyMaterial, count: int) -> list[Item]:
    """`count` proxy items of `task`.

    Raises:
        PlumblineError: the task's file names no maker or gives it other options than it takes, or the documents do not
            give as many.
    """
    if task.proxy is None:
        raise PlumblineError(
            f"{task.file}: proxy: the file names no maker, and items are to be made; add `proxy`, or give the items "
            f"(--items-source local with {task.name}.jsonl, --items-source hub)"
        )
    make = _bind_maker(task, task.proxy)
    rng = random.Random(f"plumbline proxy {task.name}")
    spots = rng.sample(documents.spots, len(documents.spots))
    made_items: list[Item] = []
    for spot in spots:
        if len(made_items) == count:
            break
        parts = make(spot, documents, rng)
        if parts is not None:
            made_items.append(_make_item(task, task.proxy, parts))
    if len(made_items) < count:
        raise PlumblineError(
            f"the held-out documents give {len(made_items)} proxy items for {task.name}, {count} are asked for; "
            "lower --proxy-items (evaluation.proxy_items of the preset's file) or hold out more documents "
            "(held_out.percent of the corpus's file)"
        )
    return made_items


def _bind_maker(
    task: Task, proxy: ProxyItems
) -> Callable[[SentenceInContext, ProxyMaterial, random.Random], dict[str, Any] | None]:
    make = MAKERS[proxy.maker]
    parameters = list(inspect.signature(make).parameters.values())
    takes = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    needs = [
        parameter.name
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
    ]
    if set(proxy.options) - set(takes) or set(needs) - set(proxy.options):
        raise PlumblineError(
            f"{task.file}: proxy: maker {proxy.maker!r} takes {takes or 'no options'}"
            f"{f' and needs {needs}' if needs else ''}, not {sorted(proxy.options)}"
        )
    return functools.partial(make, **proxy.options)


def _make_item(task: Task, proxy: ProxyItems, parts: dict[str, Any]) -> Item:
    try:
        return field_mapping.fields(proxy.fields, parts, f"what the maker {proxy.maker!r} gives")
    except PlumblineError as problem:
        raise PlumblineError(f"{task.file}: proxy.fields.{problem}") from problem

"""Reads what the words around a change between two numbers say: which way it goes, and of what else it may be.

"From 12 to 24 layers, 1.8x slower" states a setting and what came of it: the two numbers do not give the third.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile

#: Most words after a change that are read for what it is of.
WORDS = 10

_DOWN = "reductions?|decreases?|drops?|declines?|savings?|fewer|less|smaller|lower|cheaper|shorter"
_UP = "increases?|more|larger|higher|bigger|longer"
_SPEED = "speed-?ups?|slow-?downs?|faster|slower"
_KIND = re.compile(rf"(?P<down>{_DOWN})|(?P<up>{_UP})|{_SPEED}|improvements?|gains?|changes?|boosts?")
_COMPARATIVE = re.compile(r"more|less|fewer|\w+er")
#: Words that say nothing of what a change is of, and those behind which something else begins.
_FILLER = re.compile(r"an?|the|its|our|their|this|of|in|number|amount|total|overall|average|mean|relative|absolute")
_STOP = re.compile(
    r"at|on|for|from|to|and|or|but|with|without|while|when|which|that|than|over|against|compared|versus|vs|after|before|"
    r"is|are|was|were|by|as|due|across"
)
_AGAINST = re.compile(r"\b(?:over|against|compared|than|versus|vs|relative to)\b")

_SECONDS = {
    **{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1, "sec": 1, "second": 1},
    **{"min": 60, "minute": 60, "h": 3_600, "hr": 3_600, "hour": 3_600, "day": 86_400, "week": 604_800},
}
_BYTES = ("kb", "mb", "gb", "tb")
_TIME = r"(?i:\b(?:time|latency|latencies|throughput|speed|runtime|duration|fps|qps|seconds|minutes|hours|days)\b)"

#: What is set and not measured, where it is the unit of two numbers or stands before them.
_SETTING = (
    r"(?:gpu|tpu|device|node|worker|core|thread|chip|machine|replica|stage|layer|block|head|expert|channel|filter|neuron|"
    r"dimension|dim|rank|adapter|pixel|px|frame|patch|patche|view|crop|epoch|step|iteration|update|round|token|sample|"
    r"example|image|document|passage|shot|demonstration|prompt|candidate|beam|parameter|param|batch|batche|bit|seed|"
    r"classe|label|language|task|domain|agent|turn|hop|fold|annotator)s?|class|query|queries|hidden|width|depth|"
    r"resolution|context|window|length|(?:batch|beam|patch|step|hidden|kernel|vocabulary|image|input) size|"
    r"learning rate|temperature|dropout|budget|threshold|precision"
)
_SETTING_UNIT = re.compile(_SETTING, re.IGNORECASE)
#: A setting, or a letter for one, with verbs alone before the numbers; or what the authors do before them. No unit is
#: one ("latency per query"), nor is a number that the sentence is about ("the number of parameters").
_SETTING_BEFORE = re.compile(
    rf"(?<!per[ -])(?<!number of )\b(?:{_SETTING}|(?-i:[b-zB-HJ-Z]))"
    r"(?: (?:is|are|was|were|be|been|has|\w+ed|increases|decreases|changes|grows|"
    r"grew|goes|went|rises|rose|falls|fell|drops|shrinks|shrank))* (?:from )?\W*$|"
    r"(?:^|[.;:] |\b(?:when|by|while|after|if) )(?:(?:incr|decr)eas|reduc|rais|lower|shrink|scal|grow|chang|switch|"
    r"doubl|halv|expand|extend|vary|deepen|widen|cutt|lengthen|shorten)ing (?:[\w-]+ ){0,5}from \W*$|"
    r"\b(?:(?:go|mov|scal|switch|chang|train|extend)ing|we (?:go|went|moved?|scaled?|switch|switched)) from \W*$",
    re.IGNORECASE,
)

#: Names of numbers that are per cents by nature, benchmarks among them ("GSM8K"), and of those that are none.
_SHARE = (
    r"(?i:\b(?:acc|accurac\w+|f1|exact match|precision|recall|bleu|rouge|auc|auroc|m?ap|m?iou|wer|cer|dice|ndcg|mrr|"
    r"errors?|rates?|scores?|success|wins?|solved|performance|percentage|share|proportion|fraction|coverage)\b)|"
    r"\b[A-Z][A-Za-z]*[A-Z0-9][\w-]*"
)
_NO_SHARE = (
    r"(?i:\b(?:perplexit\w+|ppl|loss\w*|nll|time|latenc\w+|runtime|throughput|speed|memory|costs?|prices?|energy|power|"
    r"flops|macs|parameters|params|size|bytes|rmse|mse|mae|fid|learning rate|qps|fps)\b)"
)
_NAMES = re.compile(rf"(?P<other>{_NO_SHARE})|(?P<share>{_SHARE})")


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeWords:
    """What the words around a change say of it.

    Attributes:
        direction: 1 up, -1 down, 0 not said.
        relative: it is said to be a relative one.
        absolute: it is said to be a difference.
        shares: whether the two numbers are per cents, so that their difference is one too.
        inverse: whether it may be that of a rate where the two are times, or of another quantity.
        factors: what brings the second number to the first one's unit; none where nothing does.
        doubt: why it may be no change between the two.
    """

    direction: int
    relative: bool
    absolute: bool
    shares: bool
    inverse: bool
    factors: tuple[float, ...]
    doubt: str


def read_words(match: re.Match[str], text: str) -> ChangeWords:
    """Read the words of a sentence around a change that a pattern with two numbers and the change matches."""
    text_after = text[match.end("unit") :]
    words_after = re.split(r"[,;:()]|\.(?!\d)| from\b", text_after, maxsplit=1)[0].split()[:WORDS]
    words_between = text[match.end("second") : match.start("change")].split()
    units = [match.groupdict().get(name) or "" for name in ("first_word", "second_word")]
    factors = _find_factors(*map(_drop_plural, units))
    text_before = text[: match.start("first")]
    quantity = " ".join((text_before, *units, _name_kind(units, match.group())))
    kind = next((kind for word in (*words_between, *words_after[:4]) if (kind := _KIND.fullmatch(word))), None)
    is_speed = kind is not None and re.fullmatch(_SPEED, kind.group()) is not None
    # A noun between change and numbers is theirs: "a 6.8% reduction in word error from 26.6 to 24.8".
    is_other = match.start("first") < match.start("change") and (
        (is_speed and not re.search(_TIME, quantity)) or _names_other(words_after, quantity)
    )
    if not factors:
        doubt = "the two numbers have different units"
    elif is_other:
        doubt = "the change may be of something else than the two numbers"
    elif any(map(_SETTING_UNIT.fullmatch, units)) or _SETTING_BEFORE.search(text_before):
        doubt = "the two numbers may be a setting, and the change what came of it"
    elif _AGAINST.search(" ".join(words_after)):
        doubt = "it may be a change from another number"
    else:
        doubt = ""
    words = [word.lower() for word in (*words_between, *words_after[:3])]
    ways = kind.groupdict() if kind and not is_other else {}
    return ChangeWords(
        direction=1 if ways.get("up") else -1 if ways.get("down") else 0,
        relative=not {"relative", "rel", "relatively"}.isdisjoint(words),
        absolute=not {"absolute", "abs", "absolutely"}.isdisjoint(words),
        shares=_are_shares(match, units, quantity, text),
        inverse=is_speed or is_other,
        factors=factors,
        doubt=doubt,
    )


def _drop_plural(word: str) -> str:
    return word.lower().removesuffix("s") if len(word) > 2 else word.lower()


def _find_factors(first: str, second: str) -> tuple[float, ...]:
    """What brings a number of the second unit to the first: two for bytes, by 1,000 and by 1,024."""
    if not first or not second or first == second:
        return (1.0,)
    if first in _SECONDS and second in _SECONDS:
        return (_SECONDS[second] / _SECONDS[first],)
    if first in _BYTES and second in _BYTES:
        steps = _BYTES.index(second) - _BYTES.index(first)
        return 1_000.0**steps, 1_024.0**steps
    return ()


def _name_kind(units: list[str], quote: str) -> str:
    """Words for the quantity that units or a currency are of."""
    plain = set(map(_drop_plural, units))
    if not plain.isdisjoint(_SECONDS):
        return "time latency runtime speed duration"
    if not plain.isdisjoint(_BYTES):
        return "memory storage size footprint"
    return "cost price expense" if re.search("[$€£]", quote) else ""


def _names_other(words_after: list[str], quantity: str) -> bool:
    """Whether the words after a change name what it is of, and none of them stands before it."""
    place = next((place for place, word in enumerate(words_after[:4]) if _KIND.fullmatch(word)), None)
    if place is None:
        return False
    tail = words_after[place + 1 :]
    least = 1 if tail[:1] in (["in"], ["of"]) else 0
    most = 6 if least else 2 if _COMPARATIVE.fullmatch(words_after[place]) else 0
    name_words = [*words_after[:place], *takewhile(lambda word: not _STOP.fullmatch(word), tail[least:most])]
    stems = [re.escape(word[:5]) for word in name_words if not _FILLER.fullmatch(word)]
    return bool(stems) and not re.search(rf"\b(?:{'|'.join(stems)})", quantity, re.IGNORECASE)


def _are_shares(match: re.Match[str], units: list[str], quantity: str, text: str) -> bool:
    """Whether two numbers are per cents: by their signs, or by the name that stands next before them, or else after."""
    signs = {match["first_unit"], match["second_unit"]} - {None, ""}
    if signs == {"%"} or "percent" in units:
        return True
    small = max(float(match[name].replace(",", "")) for name in ("first", "second")) <= 100
    if signs or not small or _name_kind(units, match.group()):
        return False
    name = next(iter([*_NAMES.finditer(quantity)][::-1]), None) or _NAMES.search(text, match.end())
    return name is not None and name["share"] is not None

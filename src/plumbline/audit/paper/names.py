"""Finds from the name of a row or column what its numbers are: a spread, a difference, a percentage, a count, a date.

A word counts as a whole and with what stands next to it: "SE" is a standard error, "SE-ResNet" a model.
"""

from __future__ import annotations

import re
from functools import lru_cache

#: Words of a name that is a spread.
_SPREAD = "std|sd|stdev|stddev|se|stderr|sem|variance|var|ci|range|iqr|deviation|±"
#: Words that may stand next to one: of statistics, and what is measured.
_BESIDE = (
    "standard|dev|error|err|sample|mean|avg|average|of|the|over|across|in|for|runs|run|seeds|seed|trials|folds|n|test|"
    "val|valid|validation|train|eval|acc|accuracy|loss|ppl|perplexity|f1|em|score|scores|bleu|rouge|auc|auroc|map|mse|"
    "mae|rmse|nll|reward|return|time|ms|s|pp|points|low|high|lower|upper|width|half|interval|confidence|min|max|metric|"
    "%|68|90|95|99"
)
#: Words of a name whose mean over rows is not that of its parts; "#" alone is a rank, "# answers" a count.
NONLINEAR = "ratio|speedup|rank|p|z|t|x|×|factor|rel|relative|#(?! [a-z])|n|ppl|perplexity|improvement|reduction"
#: Words of a name that is a change, a difference or a saving.
CHANGE = (
    "δ|delta|deltas|diff|difference|differences|gain|gains|improv|improvement|improvements|change|changes|gap|drop|"
    "increase|decrease|degradation|saved|saving|savings|reduction|reductions|lift|margin|advantage|vs|versus"
)
#: Words that may stand next to one: of a change, and of what it is a change from.
_BESIDE_CHANGE = (
    f"{_BESIDE}|rel|relative|abs|absolute|from|to|on|against|by|with|base|baseline|control|reference|best|previous|"
    "prior|sota|ours|our|vanilla|speed|cost|size|rate|per"
)

_KINDS = {
    "date": "year|years|date|month|released|published",
    "%": "%|percent|pct|pp",
    "count": "#|count|counts|number|params|parameters|tokens|steps|samples|examples|items|images|documents|docs|papers",
}
#: Words of a mean.
MEAN = "avg|ave|average|averages|mean|means|overall|macro"
#: Words of a quantity whose total is not the sum of its parts.
_NOT_ADDED = (
    "rate|share|ratio|avg|average|mean|median|per|accuracy|acc|f1|score|year|max|min|length|peak|maximum|minimum|largest|"
    "smallest|speedup|speed|throughput|bandwidth|utilization|utilisation|density|efficiency|qps|fps|mfu|"
    "geo|geomean|unique|distinct|vocab|vocabulary|types|languages|speakers|users|authors|annotators|domains"
)
#: "Tokens/doc", "tok/s": one quantity over another; "w/o" is a word.
_OVER = re.compile(r"\b(?!w/)[a-z][a-z0-9]*\)?/\(?[a-z0-9]", re.IGNORECASE)
#: Words of a mean that is not the arithmetic one; those whose weights, or parts, are not known from the numbers.
WEIGHTED_MEAN = "weighted|micro|trimmed|iqm|interquartile"
OTHER_MEAN = f"geo|geom|geometric|geomean|gmean|harmonic|hmean|median|{WEIGHTED_MEAN}"
#: Marks of a footnote, in a name.
_FOOTNOTE = re.compile(r"[*†‡§¶⋆★♣♠♦♥]|\^\{?[a-z*](?:,[a-z*])*\}?$")


@lru_cache(10_000)
def words_of(name: str) -> str:
    """A name in small letters, a blank around each word; of signs δ (and its like), %, ×, # and ± are left."""
    # The number that distinguishes equal names is not part of the name.
    text = re.sub(r"([a-z])([A-Z])", r"\1 \2", re.sub(r"#\d+$", "", name)).lower()
    text = re.sub("[∆△]", "δ", text).replace("+/-", "±")
    return f" {' '.join(re.findall(r'[a-z0-9]+|[δ%×#±]', text))} "


@lru_cache(50_000)
def says(name: str, pattern: str) -> bool:
    """Whether a name has a word that the pattern is."""
    return re.search(rf" (?:{pattern}) ", words_of(name)) is not None


def is_spread(name: str) -> bool | None:
    """Whether a name is that of a spread: a word for one, alone or next to words of statistics.

    None if the size of the numbers must decide: "Ours SE" can be a spread of "Ours", or a model.
    """
    *above, last_part = name.split(" / ")
    if any(is_spread(part) for part in above):
        return None  # a head over several columns, or a model with two rows
    words = words_of(last_part).split()
    places = [n for n, word in enumerate(words) if re.fullmatch(_SPREAD, word)]
    if not places:
        return " standard error " in words_of(last_part) or " confidence interval " in words_of(last_part)
    other_words = [
        word
        for n, word in enumerate(words)
        if not re.fullmatch(f"{_SPREAD}|{_BESIDE}", word) and not (len(word) == 1 and word.isdigit() and n < places[0])
    ]
    words_before = words_of(re.split(r"[(±]|\+/-", last_part)[0]).split()
    if not other_words and (not words_before or any(re.fullmatch(_SPREAD, word) for word in words_before)):
        return True
    # What a bracket or a ± adds to a value's name may be printed in the same cell: "Acc ± std" over 50.1 ± 0.3.
    return None if not other_words or places[-1] == len(words) - 1 else False


def is_change(name: str) -> bool | None:
    """Whether a name is that of a change of others; None if the size of the numbers must decide: "Drop Path"."""
    words = words_of(name).split()
    if not says(name, f"{CHANGE}|rel|relative"):
        return False
    other_words = [word for word in words if not re.fullmatch(f"{CHANGE}|{_BESIDE_CHANGE}", word)]
    return None if other_words else True


def is_named_only(name: str, pattern: str) -> bool:
    """Whether the last part of a name is one of these words, alone or next to words of statistics."""
    last_words = words_of(name.split(" / ")[-1]).split()
    other_words = [
        word for word in last_words if not re.fullmatch(f"{pattern}|{_BESIDE}|score|scores|all|tasks|[0-9]+", word)
    ]
    return not other_words and any(re.fullmatch(pattern, word) for word in last_words)


def kind_of(name: str) -> str:
    """What a name states its numbers to be: "date", "%", "count", or nothing."""
    return next((kind for kind, pattern in _KINDS.items() if says(name, pattern)), "")


def is_added(name: str) -> bool:
    """Whether numbers of this name add up to a total: counts and sizes do, shares, means and dates do not."""
    return kind_of(name) not in ("date", "%") and not says(name, _NOT_ADDED) and _OVER.search(name) is None


def has_footnote(name: str) -> bool:
    """Whether a name carries a footnote's mark."""
    return _FOOTNOTE.search(name.strip()) is not None

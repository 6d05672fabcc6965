"""Checks statistics that a table's names state: perplexity against loss, p against z or t, F1 against precision and
recall, shares of a total, means of n whole numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from plumbline.audit.math_functions import exp, total
from plumbline.audit.paper.audit_file import TablePart
from plumbline.audit.paper.evaluate import load_function
from plumbline.audit.paper.evidence import SAID, SHARE, meets, rate_agreement, tail
from plumbline.audit.paper.inside_cells import ends_of_formula
from plumbline.audit.paper.ledger import Ledger, RelationRow
from plumbline.audit.paper.line_types import SUM
from plumbline.audit.paper.lines import Ends, Line, Lines
from plumbline.audit.paper.names import CHANGE, is_spread, says, words_of
from plumbline.published.expression import Given
from plumbline.published.printed_number import derive_exact, exact

_LOSS = "loss|nll|cross entropy|ce"
_PERPLEXITY = "ppl|perplexity"
_COUNT = "n|items|examples|samples|questions|support|count|size|instances|problems|trials"
_SHARE = "acc|accuracy|%|rate|em|pass|win|solved|success|correct|score"

#: A name that says nothing but a share of a total; names of F1 and of what it is the harmonic mean of.
_SHARE_OF_TOTAL = r" (?:(?:%|percent|pct|percentage|share|proportion|of|the|total|all) )+"
_HARMONIC = {"f1": "f1", "f": "f1", "p": "p", "prec": "p", "precision": "p", "r": "r", "rec": "r", "recall": "r"}

#: Share of an F1 within which it may be a mean of several, which is not the harmonic mean of the others' means.
NEAR = 0.02

#: Fewest shares in brackets beside numbers that are checked.
FEWEST = 3

#: Most numbers of a table, times its columns of shares, that are compared with shares of a total.
SHARES = 50_000

#: Most whole numbers that a mean can be of here.
ITEMS = 10**9


def check_statistics(lines: Lines, part: TablePart, ledger: Ledger) -> None:
    """Check the columns of a table whose names state a statistic."""
    _check_perplexity(lines, ledger)
    _check_p_values(lines, ledger)
    _check_f1(lines, ledger)
    _check_shares(lines, ledger)
    _check_whole_numbers(lines, part, ledger)


def _get_lines(lines: Lines, *names: str) -> list[Line]:
    """Lines whose name is one of these words and nothing more but "value" or the like."""
    matches = []
    for line in lines.lines:
        name = line.words.strip()
        for end in (" value", " values", " score", " scores", " stat", " statistic"):
            name = name.removesuffix(end)
        if name in names:
            matches.append(line)
    return matches


def _choose_formula(
    target: Line, lines: Lines, tried: Sequence[tuple[str, dict[str, Ends], Callable[[str], Given]]]
) -> tuple[str, Callable[[str], Given], list[str]] | None:
    """The formula that most rows agree with, if it holds: its sentence, the formula, the rows."""
    scores: list[tuple[float, int]] = []
    for place, (_, computed, _) in enumerate(tried):
        keys = [key for key in lines.level_keys if key in computed and key in target.ends]
        fit = rate_agreement([target.ends[key] for key in keys], [computed[key] for key in keys]) if keys else None
        if fit is not None and fit.holds(len(tried), stated=True):
            scores.append((fit.agree / fit.rows, place))
    if not scores:
        return None
    sentence, computed, formula = tried[max(scores, key=lambda score: (score[0], -score[1]))[1]]
    return sentence, formula, [key for key in lines.level_keys if key in computed and key in target.ends]


def _check(
    target: Line,
    sentence: str,
    formula: Callable[[str], Given],
    keys: Sequence[str],
    lines: Lines,
    ledger: Ledger,
    doubts: Mapping[str, str] = MappingProxyType({}),
) -> None:
    table = lines.table.name
    rows = [
        RelationRow(
            key,
            f"{table}, {key}, {target.name}",
            target.numbers[key],
            formula(key),
            doubt="a footnote mark stands there" if target.has_footnote(key) else doubts.get(key, ""),
        )
        for key in keys
    ]
    ledger.hold(table, target.name, sentence, rows)


def _check_perplexity(lines: Lines, ledger: Ledger) -> None:
    losses = [line for line in lines.lines if line.says(_LOSS) and _is_level(line)]
    for target in [line for line in lines.lines if line.says(_PERPLEXITY) and not line.says(_LOSS) and _is_level(line)]:
        tried, namesakes = [], []
        for loss in losses:
            ends = {key: tuple(map(_cap_exp, interval)) for key, interval in loss.ends.items() if abs(interval[1]) < 50}
            tried.append(
                (f"{target.name} is e to the {loss.name}", ends, lambda key, loss=loss: exp(loss.numbers[key]))
            )
            if _strip_statistic(loss) == _strip_statistic(target) or len(losses) == 1:
                namesakes.append(tried[-1])
        if not tried:
            continue
        best = _choose_formula(target, lines, tried)  # type: ignore[arg-type]
        if best is None and len(namesakes) == 1:
            # Two names alone state this one, without the vote of most rows; but a perplexity of words, or in bits, is
            # e to the loss in none.
            sentence, computed, formula = namesakes[0]
            keys = [key for key in lines.level_keys if key in computed and key in target.ends]
            agree = sum(meets(target.ends[key], computed[key]) for key in keys)  # type: ignore[arg-type]
            if 2 * agree >= len(keys) > 0:
                best = sentence, formula, keys
            else:
                ledger.drop(lines.table.name, sentence, target, {key: computed[key] for key in keys})  # type: ignore[misc]
        if best:
            _check(target, *best, lines, ledger)


def _is_level(line: Line) -> bool:
    """Whether a name is neither that of a change nor that of a spread."""
    return not line.says(CHANGE) and is_spread(line.name) is False


def _strip_statistic(line: Line) -> str:
    """A name without the words for loss or perplexity: "val" of "Val loss"."""
    return " ".join(re.sub(rf" (?:{_LOSS}|{_PERPLEXITY})(?= )", " ", line.words).split())


def _cap_exp(value: float) -> float:
    return math.exp(min(value, 100.0))


def _check_p_values(lines: Lines, ledger: Ledger) -> None:
    counts = [(line, 0) for line in _get_lines(lines, "df", "dof")] + [(line, 1) for line in _get_lines(lines, "n")]
    by_z, by_t = _get_lines(lines, "z"), [(t, n, less) for t in _get_lines(lines, "t") for n, less in counts]
    for target in _get_lines(lines, "p", "p bonf", "p bonferroni", "p adj", "p adjusted", "p two sided", "p one sided"):
        tried = list(_relate_z(target, by_z)) + list(_relate_t(target, by_t))
        if tried and (best := _choose_formula(target, lines, tried)):
            _check(target, *best, lines, ledger)


def _relate_z(target: Line, by_z: Sequence[Line]) -> Iterator[tuple[str, dict[str, Ends], Callable[[str], Given]]]:
    if not by_z:
        return
    from plumbline.stats.distributions import normal_sf

    two_p, one_p = load_function("two_sided_p"), load_function("one_sided_p")
    smallest = load_function("smallest")
    for z in by_z:

        def p_value(value: float, times: float) -> float:
            return min(1.0, times * float(normal_sf(value)))

        for times in dict.fromkeys((1, len(z.ends), max(1, len(z.ends) - 1))):
            bounds = {}
            for key, (low, middle, high) in z.ends.items():
                ends = sorted(p_value(abs(value), 2 * times) for value in (low, high))
                top = min(1.0, 2.0 * times) if low <= 0 <= high else ends[1]
                bounds[key] = (ends[0], p_value(abs(middle), 2 * times), top)
            if times == 1:
                yield f"{target.name} is the two-sided p of {z.name}", bounds, lambda key, z=z: two_p(z.numbers[key])  # type: ignore[misc]
            else:
                yield (
                    f"{target.name} is the two-sided p of {z.name} times {times} tests",
                    bounds,
                    lambda key, z=z, times=times: smallest([times * two_p(z.numbers[key]), 1]),  # type: ignore[misc]
                )
        upper = {key: (p_value(ends[2], 1), p_value(ends[1], 1), p_value(ends[0], 1)) for key, ends in z.ends.items()}
        yield f"{target.name} is the one-sided p of {z.name}", upper, lambda key, z=z: one_p(z.numbers[key])  # type: ignore[misc]


def _relate_t(
    target: Line, by_t: Sequence[tuple[Line, Line, int]]
) -> Iterator[tuple[str, dict[str, Ends], Callable[[str], Given]]]:
    if not by_t:
        return
    from plumbline.stats.distributions import t_sf

    for name, sides in (("t_two_sided_p", 2), ("t_one_sided_p", 1)):
        function = load_function(name)
        for t, n, given_less in by_t:
            for less in dict.fromkeys((given_less, 2 * given_less)):
                keys = [key for key in t.ends if key in n.ends and n.ends[key][1] - less >= 1]
                bounds = {}
                for key in keys:
                    df = n.ends[key][1] - less
                    ends = [sides * float(t_sf(abs(v) if sides == 2 else v, df)) for v in t.ends[key]]
                    if sides == 2 and t.ends[key][0] <= 0 <= t.ends[key][2]:
                        ends.append(1.0)
                    bounds[key] = (min(ends), ends[1], max(ends))
                how = f"{n.name} - {less}" if less else n.name
                sided = "two-sided" if sides == 2 else "one-sided"
                sentence = f"{target.name} is the {sided} p of {t.name} with {how} degrees of freedom"

                def formula(
                    key: str, t: Line = t, n: Line = n, less: int = less, call: Callable[..., Given] = function
                ) -> Given:
                    return call(t.numbers[key], n.numbers[key].exactly() - less)

                yield sentence, bounds, formula


def _check_f1(lines: Lines, ledger: Ledger) -> None:
    """Check F1 against the precision and recall that stand below the same head."""
    heads: dict[str, dict[str, Line]] = {}
    for line in lines.lines:
        head, _, name = line.name.rpartition(" / ")
        kind = _HARMONIC.get(words_of(name).strip().removesuffix(" score"))
        if kind:
            heads.setdefault(head, {}).setdefault(kind, line)
    for of in heads.values():
        if len(of) < 3 or says(lines.table.title, "macro"):
            continue
        target, p, r = of["f1"], of["p"], of["r"]
        keys = [key for key in target.ends if all(key in line.ends and line.ends[key][0] > 0 for line in (p, r))]
        computed: dict[str, Ends] = {}
        for key in keys:
            low, middle, high = (2 / (1 / a + 1 / b) for a, b in zip(p.ends[key], r.ends[key], strict=True))
            computed[key] = low, middle, high
        sentence = f"{target.name} is the harmonic mean of {p.name} and {r.name}"

        def formula(key: str, p: Line = p, r: Line = r) -> Given:
            return 2 / (1 / p.numbers[key] + 1 / r.numbers[key])

        if best := _choose_formula(target, lines, [(sentence, computed, formula)]):
            off = [key for key in best[2] if not meets(target.ends[key], computed[key])]
            near = any(abs(target.ends[key][1] / computed[key][1] - 1) < NEAR for key in off)
            doubt = "one that is off by little may be a macro mean, as may then the others"
            _check(target, *best, lines, ledger, dict.fromkeys(off if near else (), doubt))
        else:
            ledger.drop(lines.table.name, sentence, target, computed)


def _check_shares(lines: Lines, ledger: Ledger) -> None:
    """Check a column of shares against a column of whole numbers and their total: the printed one, or their sum."""
    targets = [line for line in lines.lines if re.fullmatch(_SHARE_OF_TOTAL, line.words)]
    if len(targets) * len(lines.lines) * len(lines.keys) > SHARES:
        ledger.dropped.append(f"{lines.table.name}: too large to look for what {len(targets)} columns are a share of")
        targets = []
    for target in targets:
        _check_share(target, [line for line in lines.lines if line is not target], lines, ledger)
    for size in lines.lines:
        numbers = {
            key: lines.table.number(key, size.name, "brackets").as_rounded()
            for key in size.numbers
            if size.cells[key].bracket_unit == "%" and not size.cells[key].bracket_signed
        }
        if len(numbers) >= max(FEWEST, len(size.numbers) - 1):
            shares = Line(name=f"% of {size.name}", place=size.place, numbers=numbers, cells=size.cells)
            _check_share(shares, [size], lines, ledger)


def _check_share(target: Line, sizes: Sequence[Line], lines: Lines, ledger: Ledger) -> None:
    """Check shares against the one of several columns of whole numbers that most of them agree with."""
    totals = [key for key in lines.keys if lines.types[key].type == SUM]
    keys = [key for key in lines.level_keys if key in target.ends]
    tried = []
    for size in sizes if keys else ():
        numbers = [size.numbers[key] for key in keys if key in size.numbers]
        if len(numbers) < len(keys) or not all(number.text.isdigit() for number in numbers):
            continue
        denominator = size.numbers[totals[0]] if len(totals) == 1 and totals[0] in size.numbers else total(numbers)
        scale = 100 if "%" in target.units or max(target.ends[key][1] for key in keys) > 1 else 1

        def formula(key: str, size: Line = size, denominator: Given = denominator, scale: int = scale) -> Given:
            return scale * size.numbers[key] / denominator

        computed = {key: ends_of_formula(formula(key)) for key in keys}
        tried.append((f"{target.name} is the share of {size.name} in its total", computed, formula))
    if tried and (best := _choose_formula(target, lines, tried)):
        _, share, rows = best
        off = {key: abs(ends_of_formula(share(key))[1] - target.ends[key][1]) for key in rows}
        near = [key for key in rows if off[key] <= 1.01 * (target.ends[key][2] - target.ends[key][0])]
        doubts = dict.fromkeys(near, "it may be rounded so that all are a hundred together")
        _check(target, *best, lines, ledger, doubts)


def _check_whole_numbers(lines: Lines, part: TablePart, ledger: Ledger) -> None:
    """Check that a mean of n whole numbers is one that n can give: where n is stated, or a column holds it."""
    by_name = {line.name: line for line in lines.lines}
    for column, count in part.items.items():
        if column in by_name:
            counts = by_name[count].numbers if isinstance(count, str) and count in by_name else {}
            keys = [key for key in by_name[column].numbers if key in counts or not isinstance(count, str)]
            n = {key: count if isinstance(count, int) else int(counts[key].value) for key in keys}
            _check_means(by_name[column], n, lines, ledger, stated=True)
    for size in [line for line in lines.lines if line.says(_COUNT)]:
        n = {key: int(number.value) for key, number in size.numbers.items() if number.text.isdigit()}
        if len(n) < len(size.numbers):
            continue
        for target in lines.lines:
            share = re.fullmatch(_SHARE_OF_TOTAL, target.words)  # of all there are, and no mean of so many
            if target is not size and target.name not in part.items and target.says(_SHARE) and not share:
                _check_means(target, n, lines, ledger, stated=False)


def _check_means(target: Line, counts: dict[str, int], lines: Lines, ledger: Ledger, *, stated: bool) -> None:
    keys = [key for key in lines.level_keys if key in target.numbers and 1 <= counts.get(key, 0) < ITEMS]
    hundred = "%" in target.units or target.says("%|percent|pct")
    shares = target.says(_SHARE) and any(abs(target.ends[key][1]) > 1 for key in keys)
    scale = 100 if hundred or shares else 1
    # A mean is informative where its digits are finer than the steps that n allows.
    keys = [key for key in keys if (target.ends[key][2] - target.ends[key][0]) * counts[key] / scale < 0.9]
    if not keys:
        return
    agree = sum(_is_possible(target.ends[key], counts[key], scale) for key in keys)
    chance = max((target.ends[key][2] - target.ends[key][0]) * counts[key] / scale for key in keys)
    if not stated and not (agree >= 4 and agree >= SHARE * len(keys) and tail(agree, len(keys), chance) < SAID / 10):
        return

    def formula(key: str) -> Given:
        n = counts[key]
        nearest = round(target.ends[key][1] * n / scale)
        return scale * derive_exact(nearest, target.numbers[key], name=f"{nearest} of") / exact(n, f"{n} items")

    sentence = f"{target.name} is a mean that so many whole numbers can have"
    _check(target, sentence, formula, keys, lines, ledger)


def _is_possible(ends: Ends, n: int, scale: int) -> bool:
    low, high = ends[0] * n / scale, ends[2] * n / scale
    return math.floor(high + 1e-9) >= math.ceil(low - 1e-9)

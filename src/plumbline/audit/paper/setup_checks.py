"""Checks the sums of a paper's own setup where a table names their parts: tokens, device hours, costs.

Tokens are steps times batch (times context); device hours are devices times hours; a cost is device hours times the
price that a sentence of the paper states.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from plumbline.audit.paper.evidence import meets, rate_agreement
from plumbline.audit.paper.inside_cells import ends_of_formula
from plumbline.audit.paper.ledger import Ledger, RelationRow
from plumbline.audit.paper.line_types import find_unit
from plumbline.audit.paper.lines import Line, Lines, ends_of
from plumbline.audit.paper.printed_cell import apply_unit
from plumbline.audit.paper.sentence_checks import Sentence
from plumbline.published.expression import Given
from plumbline.published.printed_number import THOUSANDS, PrintedNumber

_DEVICE = r"(?:gpu|tpu|device|chip|accelerator|h100|h200|h800|a100|v100|mi250|mi300)s?"
#: What a row or column has to be called to be a part of a sum.
ROLES = {
    "steps": r"(?:training |train |total |max |optimi[sz]er )?(?:steps|iterations|updates)",
    "batch": r"(?:global |total |effective )?batch(?: size)?(?: sequences| tokens| in tokens)?",
    "context": r"(?:context|sequence|seq)(?: len| length)?|(?:max )?(?:sequence|context) length|context size",
    "tokens": r"(?:training |train |total )?tokens(?: trained| seen)?|total training tokens",
    "devices": rf"(?:# ?|number of |num )?{_DEVICE}",
    "hours": r"(?:wall clock |training |wall )?(?:time )?hours?|(?:wall clock|training) time h",
    "device hours": rf"(?:in |total )?(?:h100 |h200 |h800 |a100 |v100 |tpu )?{_DEVICE} (?:hours?|hrs?|h)",
    "cost": r"(?:in |total |training )?(?:cost|price|usd|dollars)(?: in)?(?: usd| dollars)?",
}
_PRICE = re.compile(
    r"\$\s?(\d+(?:\.\d+)?)\s?(?:per|/|an|a)\s?(?:\w+ )?(?:" + _DEVICE[:-2] + r"\w*)?[\s-]?hour", re.IGNORECASE
)

#: Share by which a single product may differ to be a slip; further off, the parts may be of different runs.
NEAR = 0.2


def check_setups(lines: Lines, sentences: Sequence[Sentence], ledger: Ledger) -> None:
    """Check products of a table's setup along its columns or rows."""
    by_role: dict[str, Line] = {}
    several: set[str] = set()
    for line in lines.lines:
        for role, pattern in ROLES.items():
            if re.fullmatch(rf" (?:{pattern}) ", _strip_unit(line)):
                several |= {role} & set(by_role)
                by_role[role] = line
    lines_by_role = {role: line for role, line in by_role.items() if role not in several}
    for target, parts in (
        ("tokens", ("steps", "batch", "context")),
        ("tokens", ("steps", "batch")),
        ("device hours", ("devices", "hours")),
    ):
        if all(role in lines_by_role for role in (target, *parts)):
            _hold(target, parts, lines_by_role, lines, ledger)
            break
    if "cost" in lines_by_role and "device hours" in lines_by_role:
        prices = {match[1] for sentence in sentences for match in _PRICE.finditer(sentence.text)}
        if len(prices) == 1:
            price = PrintedNumber(text=prices.pop(), exact=True, name="price")
            _hold("cost", ("device hours",), lines_by_role, lines, ledger, price)


def _strip_unit(line: Line) -> str:
    unit = find_unit(line.name)
    return f" {line.words.strip().removesuffix(unit.lower()).strip()} " if unit else line.words


def _read(line: Line, key: str) -> PrintedNumber:
    """A number of the setup, multiplied out; a bare whole one is a setting, not rounded."""
    cell, unit = line.cells[key], find_unit(line.name)
    letter = cell.unit if cell.unit in THOUSANDS else unit if unit in THOUSANDS else ""
    number = replace(line.numbers[key], text=apply_unit(cell.number or "0", letter), shown=cell.text)
    return number.exactly() if not letter and number.text.isdigit() else number


def _has_usual_unit(line: Line, key: str) -> bool:
    """Whether a number has no unit but letters that multiply, or hours."""
    return line.cells[key].unit in THOUSANDS or line.cells[key].unit[:1] in ("", "h")


def _hold(
    target: str, parts: Sequence[str], lines_by_role: dict[str, Line], lines: Lines, ledger: Ledger, price: Given = 1
) -> None:
    """Check a product in each place where all of its parts stand."""
    line = lines_by_role[target]
    lines_of_it = [lines_by_role[role] for role in (target, *parts)]
    keys = [key for key in lines.keys if all(key in line.numbers for line in lines_of_it)]
    other_keys = [key for key in keys if not all(_has_usual_unit(line, key) for line in lines_of_it)]
    ledger.dropped += [
        f"{lines.table.name}: {line.name}: not {key}: a unit in its parts is another" for key in other_keys
    ]
    keys = [key for key in keys if key not in other_keys]
    products: dict[str, Given] = {}
    for key in keys:
        product: Given = price
        for role in parts:
            product = _read(lines_by_role[role], key) * product
        products[key] = product
    printed = {key: replace(_read(line, key), exact=False) for key in keys}
    computed = {key: ends_of_formula(product) for key, product in products.items()}
    if not keys:
        return
    agreement = rate_agreement([ends_of(printed[key]) for key in keys], [computed[key] for key in keys])
    if len(keys) > 1 and 3 * agreement.agree < 2 * agreement.rows:
        return
    rows = []
    for key in keys:
        is_off = not meets(ends_of(printed[key]), computed[key])
        if is_off and len(keys) == 1 and abs(computed[key][1] / printed[key].value - 1) > NEAR:
            return  # another run's, or another count of them
        label = ", ".join((lines.table.name, *lines.name_place(line.name, key)))
        doubt = "a single number, whose parts may be rounded" if is_off and agreement.agree < 2 else ""
        rows.append(RelationRow(key, label, printed[key], products[key], doubt=doubt))
    sentence = f"{line.name} is {' times '.join(lines_by_role[role].name for role in parts)}"
    if not isinstance(price, int):
        sentence += f" times the price of {price} that the text states"
    ledger.searches += 1
    ledger.hold(lines.table.name, line.name, sentence, rows)

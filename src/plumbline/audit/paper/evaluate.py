"""Evaluates the parsed expressions of an audit file with the audit's own intervals, row by row.

A check whose sides name several rows is made once for each row that prints all of its numbers. What a function takes as
a list, such as `mean(table[:].accuracy)`, is whole in each of them. Sizes of numbers and lists are bounded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module

from mpmath import iv
from mpmath.libmp import ComplexResult

from plumbline.audit.paper.grammar import CallNode, ChoiceNode, Node, NumberNode, ReferenceNode, SignNode
from plumbline.audit.paper.paper_table import PaperTable, join_names
from plumbline.core.errors import PlumblineError, UsageError, nearest
from plumbline.published.expression import FUNCTIONS, Expression, ExpressionOperand, lift
from plumbline.published.printed_number import PrintedColumn, PrintedNumber

#: Name of a function -> what it takes: "1" a number, "n" a list; a last "*": any number of numbers.
TAKES = {
    "abs": "1",
    "exact": "1",
    **dict.fromkeys(("sqrt", "exp", "log", "log10", "arccos", "cos", "two_sided_p", "one_sided_p"), "1"),
    **dict.fromkeys(("total", "mean", "largest", "smallest", "count", "rising", "falling", "sample_sd"), "n"),
    "between": "*",
    "softmax": "n1",
    "rank": "1n",
    "in_same_order": "nn",
    "spearman_rho": "nn",
    "p_of_rho": "11",
    "t_two_sided_p": "11",
    "t_one_sided_p": "11",
    "bonferroni_survivors": "n11",
    "holm_survivors": "n11",
    "bh_survivors": "n11",
    "bh_from_bonferroni": "n1",
    "welch_p": "1111",
    "welch_t_of_seeds": "nn",
    "welch_p_of_seeds": "nn",
}

#: Functions that try all corners of a box, or all pairs: longest list together.
SHORT = {"sample_sd": 12, "welch_t_of_seeds": 12, "welch_p_of_seeds": 12, "in_same_order": 200, "spearman_rho": 2000}

#: Modules whose functions are registered when they are requested: they import scipy.
_BY_MODULE = ("counting", "math_functions", "statistic_functions")


def format_call(name: str) -> str:
    """Write how a function is called: its name and its parameters in order; lists as `x[:]`."""
    if name in ("exact", "abs"):
        return f"{name}(x)"
    load_function(name)
    if TAKES[name] == "*":
        return f"{name}(x, y, ...)"
    parameters = zip(FUNCTIONS[name].parameters, TAKES[name], strict=True)
    return f"{name}({', '.join(parameter + '[:]' * (kind == 'n') for parameter, kind in parameters)})"


def load_function(name: str) -> Callable[..., Expression]:
    """Find a function of the audit by name; the module that defines it is imported when it is first needed."""
    for module in _BY_MODULE:
        if name in FUNCTIONS:
            break
        import_module(f"plumbline.audit.{module}")
    return FUNCTIONS[name].call


#: Largest number, and largest exponent and argument of `exp`.
LARGEST, EXPONENT, EXP = iv.mpf("1e250"), 400, 500


_OPERATIONS: dict[str, Callable[[ExpressionOperand, ExpressionOperand], Expression]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
    "<": operator.lt, ">": operator.gt,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Names:
    """What expressions may name: tables, and single numbers with or without a part before them ("model.layers")."""

    tables: Mapping[str, PaperTable]
    numbers: Mapping[str, PrintedNumber]


@dataclass(frozen=True, slots=True)
class _Row:
    """The row (or column) for which a check is made: its name in each choice; `listing`: inside a list."""

    names: tuple[str, ...]
    listing: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedRow:
    """A check of one row: its name (empty: the check has no rows), and both sides."""

    name: str
    left: ExpressionOperand
    right: Expression


@dataclass(slots=True)
class Work:
    """How many numbers all checks of a file may still compute, or list as their inputs."""

    left: int = 30_000


class Evaluation:
    """Evaluates one check.

    Raises:
        UsageError: (from each method) a name is not there, or the check cannot be computed; the position is named.
    """

    def __init__(self, names: Names, where: str, work: Work) -> None:
        self.names, self.where, self.work = names, where, work
        self.left_out = 0
        #: What does not depend on the row, and the choices of each node, by the node's identity.
        self._constant: dict[int, ExpressionOperand] = {}
        self._choices_of: dict[int, list[ReferenceNode]] = {}

    def rows(self, left: Node, right: Node) -> Iterator[CheckedRow]:
        """Both sides of the check, for each row that it is about."""
        choices = [*self._choices(left), *self._choices(right)]
        if not choices:
            yield CheckedRow(name="", left=self._value(left, None), right=lift(self._value(right, None)))
            return
        name_lists = [self._choose_names(choice) for choice in choices]
        if any(isinstance(by, ChoiceNode) and by.kind == "these" for choice in choices for by in _list_choices(choice)):
            if len({len(each) for each in name_lists}) > 1:
                lengths = " and ".join(str(len(each)) for each in name_lists)
                self.fail(choices[0], f"the sides name {lengths} rows, which do not pair up")
            picked = [(names[0], tuple(names)) for names in zip(*name_lists, strict=True)]
        else:
            common = [name for name in name_lists[0] if all(name in each for each in name_lists[1:])]
            # Where the left side prints nothing, as a baseline's own difference, there is nothing to check.
            printed = name_lists[: len(self._choices(left))] or name_lists
            self.left_out = len({name for each in printed for name in each} - set(common))
            picked = [(name, (name,) * len(name_lists)) for name in common]
        if not picked:
            self.fail(choices[0], "no row prints a number in each column that the check names")
        for name, of_choice in picked:
            row = _Row(of_choice)
            yield CheckedRow(
                name=name, left=self._value(left, row), right=lift(self._value(right, row, len(self._choices(left))))
            )

    def fail(self, node: Node, message: str) -> None:
        """Refuse the check for what stands at a node."""
        raise UsageError(f"{self.where}, character {node.position}: {message}")

    def _choices(self, node: Node | None) -> list[ReferenceNode]:
        """References to several rows, outside what functions take as a list, in the order of the text."""
        if id(node) not in self._choices_of:
            self._choices_of[id(node)] = self._find_choices(node)
        return self._choices_of[id(node)]

    def _find_choices(self, node: Node | None) -> list[ReferenceNode]:
        if isinstance(node, SignNode):
            return [*self._choices(node.left), *self._choices(node.right)]
        if isinstance(node, CallNode):
            pairs = zip(node.arguments, self._takes(node), strict=True)
            return [choice for argument, kind in pairs if kind == "1" for choice in self._choices(argument)]
        return [node] if isinstance(node, ReferenceNode) and _list_choices(node) else []

    def _has_others(self, node: Node | None) -> bool:
        """Whether a part of it depends on the row of the check by the word `others`."""
        if isinstance(node, SignNode):
            return self._has_others(node.left) or self._has_others(node.right)
        if isinstance(node, CallNode):
            return any(map(self._has_others, node.arguments))
        return isinstance(node, ReferenceNode) and any(by.kind == "others" for by in _list_choices(node))

    def _takes(self, node: CallNode) -> str:
        signature = TAKES.get(node.name)
        if signature is None:
            self.fail(
                node, f"there is no function {node.name!r}{nearest(node.name, TAKES)} (there are {', '.join(TAKES)})"
            )
        # What takes a list takes several numbers too: mean(a, b).
        several = signature == "*" or (signature == "n" and len(node.arguments) > 1)
        takes = "1" * len(node.arguments) if several else str(signature)
        if len(takes) != len(node.arguments) or not node.arguments:
            self.fail(node, f"write {format_call(node.name)}; it is given {len(node.arguments)}")
        return takes

    def _value(self, node: Node | None, row: _Row | None, offset: int = 0) -> ExpressionOperand:
        """The value of a node; `offset`: choices of the check that stand before it."""
        if id(node) in self._constant:
            return self._constant[id(node)]
        try:
            value = self._compute(node, row, offset)
            if not isinstance(value, PrintedNumber | PrintedColumn):
                value = self._require_bounded(node, lift(value))
        except UsageError:
            raise
        except (ArithmeticError, ComplexResult, ValueError, TypeError, OverflowError) as error:
            message = str(error) if isinstance(error, PlumblineError) else "this has no finite value"
            raise UsageError(f"{self.where}, character {node.position if node else 1}: {message}") from error
        if row is None or not (self._choices(node) or self._has_others(node)):
            self._constant[id(node)] = value
        return value

    def _compute(self, node: Node | None, row: _Row | None, offset: int) -> ExpressionOperand:
        if isinstance(node, NumberNode):
            return PrintedNumber(text=node.text, exact=True)
        if isinstance(node, ReferenceNode):
            return self._resolve_reference(node, row, offset)
        if isinstance(node, CallNode):
            return self._call(node, row, offset)
        assert isinstance(node, SignNode)
        left = self._value(node.left, row, offset)
        if node.sign == "neg":
            return -left
        right = self._value(node.right, row, offset + len(self._choices(node.left)))
        if node.sign == "/" and any(value.a <= 0 <= value.b for value in lift(right).ranges):
            self.fail(node, "the divisor can be zero within its rounding")
        if node.sign == "**" and any(abs(value).b > EXPONENT for value in lift(right).ranges):
            self.fail(node, f"an exponent may be at most {EXPONENT}")
        return _OPERATIONS[node.sign](left, right)

    def _call(self, node: CallNode, row: _Row | None, offset: int) -> ExpressionOperand:
        arguments: list[ExpressionOperand] = []
        for argument, kind in zip(node.arguments, self._takes(node), strict=True):
            inside = replace(row, listing=True) if row is not None and self._has_others(argument) else None
            arguments.append(self._value(argument, row if kind == "1" else inside, offset))
            offset += len(self._choices(argument)) if kind == "1" else 0
            several = lift(arguments[-1]).several
            if several != (kind == "n"):
                expected = "a list (table[:].column)" if kind == "n" else "one number"
                self.fail(argument, f"{node.name} takes {expected} here: {format_call(node.name)}")
        if sum(len(lift(operand).printed) for operand in arguments) > SHORT.get(node.name, 10**9):
            self.fail(node, f"{node.name} takes lists of at most {SHORT[node.name]} numbers together")
        longest = max(len(lift(operand).printed) for operand in arguments)
        self.work.left -= longest**2 if node.name in ("in_same_order", "rank") else longest
        if node.name == "exact":
            number = arguments[0]
            if not isinstance(number, PrintedNumber):
                self.fail(node, "exact takes a printed number")
            assert isinstance(number, PrintedNumber)
            return number.exactly()
        if node.name == "abs":
            return abs(arguments[0])
        if node.name == "exp" and any(abs(value).b > EXP for value in lift(arguments[0]).ranges):
            self.fail(node, f"exp takes numbers up to {EXP}")
        if TAKES[node.name] == "n" and len(arguments) > 1:
            return load_function(node.name)(arguments)
        return load_function(node.name)(*arguments)

    def _resolve_reference(self, node: ReferenceNode, row: _Row | None, offset: int) -> ExpressionOperand:
        if node.column is None:
            name = node.table if node.row is None else f"{node.table}.{node.row}"
            if name not in self.names.numbers:
                names = [*self.names.numbers, *self.names.tables]
                self.fail(node, f"there is no number {name!r}{nearest(name, names)}; a cell is TABLE.ROW.COLUMN")
            return self.names.numbers[name]
        table = self._find_table(node)
        try:
            if isinstance(node.row, ChoiceNode):
                assert isinstance(node.column, str)
                if row is not None and not row.listing:
                    return table.number(row.names[offset], node.column, node.part)
                return table.column(node.column, self._choose_names(node, row), node.part, node.row.text)
            assert isinstance(node.row, str)
            if isinstance(node.column, ChoiceNode):
                if row is not None and not row.listing:
                    return table.number(node.row, row.names[offset], node.part)
                return table.line(node.row, self._choose_names(node, row), node.part, node.column.text)
            return table.number(node.row, node.column, node.part)
        except UsageError as error:
            raise UsageError(f"{self.where}, character {node.position}: {error}") from None

    def _find_table(self, node: ReferenceNode) -> PaperTable:
        if node.table not in self.names.tables:
            names = list(self.names.tables)
            self.fail(
                node, f"there is no table {node.table!r}{nearest(node.table, names)} (known: {join_names(names)})"
            )
        return self.names.tables[node.table]

    def _choose_names(self, node: ReferenceNode, row: _Row | None = None) -> list[str]:
        """The rows (or columns) that a reference names: of all, or all but some, those that print a number."""
        table = self._find_table(node)
        (by,) = _list_choices(node)
        along = table.rows if by is node.row else table.columns
        for name in by.names:
            if name not in along:
                kind = "row" if by is node.row else "column"
                self.fail(
                    by,
                    f"{table.name}.csv: there is no {kind} {name!r}{nearest(name, along)} (known: {join_names(along)})",
                )
        if by.kind == "these":
            return list(by.names)
        if by.kind == "others" and row is None:
            self.fail(by, "others stands inside a function's list, in a check of several rows")
        left_out = row.names[:1] if by.kind == "others" and row is not None else by.names

        def prints(name: str) -> bool:
            where = (name, node.column) if by is node.row else (node.row, name)
            return table.prints(str(where[0]), str(where[1]), node.part)

        try:
            return [name for name in along if name not in left_out and prints(name)]
        except UsageError as error:
            raise UsageError(f"{self.where}, character {node.position}: {error}") from None

    def _require_bounded(self, node: Node | None, value: Expression) -> Expression:
        self.work.left -= len(value.printed) + sum(len(source.cells) for source in value.inputs) // 16
        if self.work.left < 0:
            raise UsageError(f"{self.where}: the checks of the file compute too many numbers; make it several files")
        for each in (*value.printed, *value.ranges):
            if not (each.a >= -LARGEST.b and each.b <= LARGEST.b):
                assert node is not None
                self.fail(node, "this is no finite number below 1e250")
        return value


def _list_choices(node: ReferenceNode) -> Sequence[ChoiceNode]:
    return [part for part in (node.row, node.column) if isinstance(part, ChoiceNode)]

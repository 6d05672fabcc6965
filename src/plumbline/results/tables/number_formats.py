"""Formats numbers for tables by a name or a format of Python's, both plain text, so that a file can carry them."""

from __future__ import annotations

#: A p-value; a printed number, whose text is kept. Any other format is one of Python's, such as ``+.4f``.
PROBABILITY, AS_PRINTED = "probability", "as printed"

#: Below this a number with an exponent is written out.
WHOLE = 1e6

#: Below this a double cannot tell a p from zero, and no p is zero.
UNDERFLOW = "<1e-300"


def format_number(value: float | int | str, number_format: str) -> str:
    """Write a value as people read it; a count never has decimals, and a text stays as it is."""
    if isinstance(value, str) or number_format in ("", AS_PRINTED):
        return str(value)
    if number_format == PROBABILITY:
        return format_probability(value)
    if isinstance(value, int) and number_format[-1] in "fg":
        return str(value)
    text = format(value, number_format)
    # Of a thousand and more a few digits are read more easily with the zeros behind them.
    sign = "+" if number_format.startswith("+") else ""
    return f"{float(text):{sign}.0f}" if "e+" in text and abs(value) < WHOLE else text


def format_probability(value: float) -> str:
    """Write a p-value: 1.00, 0.23, 0.027, 1.5e-04; one that underflows is a bound."""
    if value == 0:
        return UNDERFLOW
    return f"{value:.2f}" if value >= 0.0995 else f"{value:#.2g}" if value >= 0.00095 else f"{value:.1e}"


def format_bound(value: float | int | str, number_format: str) -> str:
    """Write the bound that a number stands for: a p of 0 is an underflow. Empty for any other number."""
    return UNDERFLOW if number_format == PROBABILITY and value == 0 else ""

"""Lists the functions that checks may call: what each takes, and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from plumbline.published.expression import FUNCTIONS, Expression

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
_BY_MODULE = ("counting", "math_functions", "statistic_functions", "paper.paper_statistics")


def format_call(name: str) -> str:
    """Write how a function is called: its name and its parameters in order; lists as `x[:]`."""
    if name in ("exact", "abs"):
        return f"{name}(x)"
    load_function(name)
    if TAKES[name] == "*":
        return f"{name}(x, y, ...)"
    parameters = zip(FUNCTIONS[name].given, TAKES[name], strict=True)
    return f"{name}({', '.join(parameter + '[:]' * (kind == 'n') for parameter, kind in parameters)})"


def load_function(name: str) -> Callable[..., Expression]:
    """Find a function of the audit by name; the module that defines it is imported when it is first needed."""
    for module in _BY_MODULE:
        if name in FUNCTIONS:
            break
        import_module(f"plumbline.audit.{module}")
    return FUNCTIONS[name].call

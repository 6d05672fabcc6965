"""How a run is given its budget: numbers in braces of words or of a variable, and lists of multiples."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError, UsageError
from plumbline.verdict.own_trainer import trainer_file
from plumbline.verdict.own_trainer.run_budget import fill_budget, parse_multiples, require_budget


def test_every_number_in_braces_is_multiplied_and_nothing_else() -> None:
    declared = "--max_iters={2000} --decay-iters {1800} --eval 100"
    budget = fill_budget(declared, Fraction(3, 2), "run.budget")
    assert budget.flags == ("--max_iters=3000", "--decay-iters", "2700", "--eval", "100") and not budget.variables
    assert (budget.label, budget.times) == ("1.5x", 1.5)
    by_variable = fill_budget("env:STEPS={20}", Fraction(2), "run.budget")
    assert by_variable.variables == {"STEPS": "40"} and by_variable.flags == ()


def test_multiples_rise_and_may_be_fractions() -> None:
    assert parse_multiples("4x, 1x,0.5x,1/3x") == (Fraction(1, 3), Fraction(1, 2), 1, 4)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1x", "one budget"),
        ("1,2", "'1' is not"),
        ("1x,,2x", "'' is not"),
        ("1x,0x", "'0x' is not"),
        ("1x,-2x", "'-2x' is not"),
        ("1x,1/0x", "divided by 0"),
        ("2x,4/2x", "twice"),
        ("1x,2x,3x,4x,5x,6x,7x,8x,9x", "more than 8"),
    ],
)
def test_a_list_that_is_none_is_refused_with_an_example(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=r"such as 1x,2x,4x") as error:
        parse_multiples(text)
    assert reason in str(error.value)


def test_a_partial_product_or_undeclared_budget_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--at 0\.5x.*has 25.*is 12\.5"):
        fill_budget("--steps {25}", Fraction(1, 2), "run.budget")
    with pytest.raises(PlumblineError, match=r"\[run\] of plumbline\.toml .*budget = \"--max-steps \{2000\}\""):
        require_budget("", "[run] of plumbline.toml")


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ("--steps 2000", "number in braces"),
        ("--steps {}", "number in braces"),
        ("--steps {1e3}", "number in braces"),
        ("--steps {20", "number in braces"),
        ("--steps {20} 'open", "no closing quotation"),
        ("env:STEPS", "number in braces"),
        ("env:A B={20}", "a variable with one"),
        ("env:LD_PRELOAD={20}", "says what is run"),
    ],
)
def test_a_declaration_that_cannot_be_meant_names_key_and_file(budget: str, reason: str) -> None:
    content = {"run": {"command": "python train.py", "budget": budget}, "metric": {"name": "loss"}}
    with pytest.raises(PlumblineError, match=r"/plumbline\.toml: run\.budget") as error:
        trainer_file.parse(content, Path("/plumbline.toml"))  # type: ignore[arg-type]
    assert reason in str(error.value)

"""Every limit that claims are judged by is an interpretation with alternatives, or the paper's own, or no limit."""

from __future__ import annotations

import ast
import math
import re
from importlib import import_module
from pathlib import Path

import pytest

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.claims.claim_tolerances import Near
from plumbline.specs.study_config import load

ROOT = Path(__file__).resolve().parents[2]
STUDIES = ("transfer", "premature", "query_free", "quack", "key_norms")
#: Modules of a study, besides its claims, in which limits of claims stand.
BESIDE = {"query_free": ("run_values",), "quack": ("run_grid",)}
#: Modules of the engine's rules, which hold for every study.
ENGINE = ("claim_checkers", "claim_tolerances")

#: Numbers in capitals that are not our limits, and why.
NO_LIMIT = {
    "the paper's own": {
        "transfer": {"claim_evidence.SIGNIFICANT_Z", "claim_evidence.LEVEL"},
    },
    "what is tried: sizes, seeds, factors, vectors": {
        "transfer": {"large_scale.HYBRID_SEEDS"},
        "query_free": {"theorems.WIDTHS", "decoder_sizes.CHINCHILLA"},
        "quack": {"sizes_and_algorithm.GROWN", "trained_models.GRADIENT_SIZES", "lemma1.SQUARE"},
        "key_norms": {
            *(f"sizes_and_definitions.{name}" for name in ("DOTS", "VECTOR", "SCALES", "WIDTHS", "ROOT")),
        },
    },
    "rounding of numbers": {
        "premature": {"theorems.ROUNDING", "theorems.EQUAL"},
        "quack": {"sizes_and_algorithm.NEAR"},
        "key_norms": {"sizes_and_definitions.ROUNDING"},
        "transfer": {"losses_and_tasks.DIGIT", "losses_and_tasks.BOUND", "sizes_and_definitions.ROUNDING"},
    },
    "derived from another limit": {
        "transfer": {"losses_and_tasks.LOSS"},
    },
}  # fmt: skip

#: What a limit may be: a number, a test of nearness, the two ends of a range.
NUMBER = (int, float, Near, tuple, dict)

#: Numbers that may stand in a comparison or a test of nearness: none is a limit by its size.
BOUNDS = {0, 1, 2, 3}


def _modules(study: str) -> list[Path]:
    return sorted((ROOT / "studies" / study / "claims").glob("*.py"))


def _numbers(node: ast.AST) -> list[float]:
    numbers = [constant.value for constant in ast.walk(node) if isinstance(constant, ast.Constant)]
    return [constant for constant in numbers if isinstance(constant, (int, float)) and not isinstance(constant, bool)]


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _constants(path: Path, tree: ast.Module) -> dict[str, ast.AST]:
    """Names in capitals that hold a number, or several names that share one line."""
    constants = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if isinstance(target, ast.Tuple) else [node.value]
            for name, value in zip(names, values, strict=True):
                is_limit = isinstance(_value(path.parent.parent.name, f"{path.stem}.{name.id}"), NUMBER)
                if name.id.isupper() and _numbers(value) and is_limit:
                    constants[f"{path.stem}.{name.id}"] = value
    return constants


def _value(study: str, name: str) -> object:
    """What a constant of a study's claims, or of the rules, holds."""
    module, _, constant = name.partition(".")
    if module in ENGINE:
        return getattr(import_module(f"plumbline.results.claims.{module}"), constant)
    where = "" if module in BESIDE.get(study, ()) else "claims."
    return getattr(import_module(f"plumbline.studies.{study}.{where}{module}"), constant)


def limits(study: str) -> dict[str, dict]:
    """The limits of a study's interpretations."""
    limit_by_name = {}
    for interpretation in load(study, "paper").definition["interpretations"]:
        assert not set(limit_by_name) & set(interpretation.get("limits", {}))
        limit_by_name |= interpretation.get("limits", {})
    return limit_by_name


def _no_limit(study: str) -> set[str]:
    return set().union(*(names.get(study, set()) for names in NO_LIMIT.values()))


@pytest.mark.parametrize("study", STUDIES)
def test_every_limit_of_claims_is_an_interpretation(study: str) -> None:
    constant_names = {name for path in _modules(study) for name in _constants(path, _tree(path))}
    constant_names = {
        name for name in constant_names if not name.endswith((".CLOSE", ".TABLE_3"))
    }  # put together from the others
    limit_names = {name for name in limits(study) if name.partition(".")[0] not in (*BESIDE.get(study, ()), *ENGINE)}
    assert constant_names - _no_limit(study) == limit_names
    assert _no_limit(study) <= constant_names


@pytest.mark.parametrize("study", STUDIES)
def test_limits_of_rules_stand_with_each_study_that_they_judge(study: str) -> None:
    claims = PrintedNumbers.of(study).claims()
    code = "".join(path.read_text(encoding="utf-8") for path in _modules(study))
    used = {"claim_tolerances.ABOUT"} if any("approx" in claim.tolerance for claim in claims) else set()
    used |= {"claim_tolerances.ROUGHLY"} if any("roughly" in claim.tolerance for claim in claims) else set()
    used |= {"claim_checkers.RATIO"} if any(claim.kind == "ratio" for claim in claims) else set()
    used |= {"claim_checkers.PARTLY_AN_ORDER", "claim_checkers.BY_CHANCE"} if re.search(r"\border\(", code) else set()
    lists = [claim for claim in claims if claim.kind == "qualitative" and any(map(_is_list, claim.values.values()))]
    used |= {"claim_checkers.COMMON_NAMES"} if lists else set()
    used |= {"claim_checkers.STATISTIC", "claim_checkers.STATISTIC_APART"} if "statistic(" in code else set()
    assert {name for name in limits(study) if name.partition(".")[0] in ENGINE} == used


def _is_list(value: object) -> bool:
    return isinstance(value, list)


@pytest.mark.parametrize("study", STUDIES)
def test_interpretations_have_values_that_checks_have(study: str) -> None:
    for name, limit in limits(study).items():
        value = _value(study, name)
        value = value.limit if isinstance(value, Near) else value
        mine, theirs = (
            list(number) if isinstance(number, (list, tuple)) else [number] for number in (value, limit["value"])
        )
        assert len(mine) == len(theirs), name
        assert all(math.isclose(number, other, rel_tol=1e-3) for number, other in zip(mine, theirs, strict=True)), name
        assert limit["value"] not in limit["instead"], f"{name}: an alternative is the value itself"


@pytest.mark.parametrize("study", STUDIES)
def test_no_limit_stands_without_a_name(study: str) -> None:
    """Neither in a comparison nor in a test of nearness."""
    for path in _modules(study):
        tree = _tree(path)
        named_nodes = {id(constant) for value in _constants(path, tree).values() for constant in ast.walk(value)}
        for node in ast.walk(tree):
            is_near = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("near", "factor", "up_to")
            if id(node) in named_nodes or not (isinstance(node, ast.Compare) or is_near):
                continue
            loose = [constant for constant in _numbers(node) if constant not in ({0} if is_near else BOUNDS)]
            assert not loose, f"{path}: line {node.lineno}: {loose} has no name"


def test_interpretation_page_shows_limits(tmp_path: Path) -> None:
    from plumbline.results.interpretations import _list_interpretation

    limit = {"value": 5, "what": "percent above the baseline", "instead": [3, 13]}
    ends = {"value": [1.5, 3.5], "what": "a factor of 2", "instead": [[1.6, 2.5]]}
    entry = {
        "id": "x",
        "source": "s",
        "text": "t",
        "choice": "c",
        "alternatives": [],
        "limits": {"a.A": limit, "a.B": ends},
    }
    page = "\n".join(_list_interpretation(entry))
    assert "above the baseline: 5 (instead: 3, 13)" in page
    assert "2: 1.5 to 3.5 (instead: 1.6 to 2.5)" in page

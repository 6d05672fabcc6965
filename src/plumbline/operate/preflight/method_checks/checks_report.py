"""Reports the checks of the methods of a user's own file before any is trained, and refuses what does not hold.

Small models on the CPU, a few seconds. What does not hold is named with the smallest input that shows it. Parity is
only flagged. A component that replaces code which is not its own (the loss, the evaluation, the checks, torch's
functions) is noticed by what names stood for before components are imported, and stand for after they ran.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.fingerprint_file import read
from plumbline.specs.checked_models import fingerprint_checks, list_checked_models, list_trained_sizes
from plumbline.specs.own_methods_file import OwnMethodsFile
from plumbline.specs.spec import RunSpec

#: The name of the check.
REPLACED_CODE = "replaced code"
#: Modules of torch whose functions are compared in addition to all of Plumbline's.
TORCH = ("torch", "torch.nn.functional", "torch.autograd", "torch.special")
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, staticmethod, classmethod, property)

Names = dict[str, Any]


def list_functions() -> Names:
    """Note what every function and method stands for, by its whole name."""
    # It replaces functions of torch when it is first imported, as by a component that mentions `torch.compiler`.
    importlib.import_module("torch._dynamo")
    return dict(_list_functions())


def describe_replaced(functions: Names) -> str | None:
    """Name the first function that another one stands for since; None if all are as they were."""
    for name, value in _list_functions():
        if functions.get(name, value) is not value:
            return f"{name} is replaced by other code while the component is loaded or called: leave it as it is"
    return None


def _list_functions() -> Iterator[tuple[str, Any]]:
    for name, module in list(sys.modules.items()):
        if module is None or not (name in TORCH or name.startswith("plumbline.")):
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, _FUNCTIONS):
                yield f"{name}.{key}", value
            elif isinstance(value, type) and value.__module__ == name and name.startswith("plumbline."):
                for attribute, method in list(vars(value).items()):
                    if isinstance(method, _FUNCTIONS):
                        yield f"{name}.{key}.{attribute}", method


#: A trial of what trains a method: of the file, the method, its small run and its baseline's; it adds to an entry.
Train = Callable[[OwnMethodsFile, str, RunSpec, RunSpec, dict[str, Any]], None]


def make_report(mine: OwnMethodsFile, train: Train | None = None) -> dict[str, Any]:
    """Make all checks of a user's own file, and return what was found by method.

    `train` tries what trains a method (`training_checks`), before any run of it; where its runs are finished, that is
    left out.

    Of each method: `failed` and `flagged` (name of a check -> words), the checks that could not be made because
    something was `raised`, `parity` by scale, and whether it starts with its baseline's logits (`starts_as`; None if
    it cannot be built). `trained`: the contexts of the runs, at which models were examined, and words for the page.
    """
    # torch, which who only reads a report goes without
    import torch

    from plumbline.operate.preflight.method_checks import cost_parity, model_checks, trained_size_checks

    torch.set_num_threads(1)  # small models: more threads wait for each other
    methods: dict[str, Any] = {}
    specs, names = list_checked_models(mine), list_functions()
    for method, against in mine.against.items():
        (small, models), (small_baseline, baseline_models) = specs[method], specs[against]
        sizes = list_trained_sizes(mine, method)
        failed, raised = model_checks.run_checks(small.model, small_baseline.model, sizes, models.values())
        entry: dict[str, Any] = {"against": against, "failed": failed, "raised": raised, "flagged": {}, "parity": {}}
        entry["starts_as"] = None
        if train is not None and "build" not in raised:
            train(mine, method, small, small_baseline, entry)
        if (message := describe_replaced(names)) is not None:
            failed[REPLACED_CODE], names = message, list_functions()
        if not failed:
            entry["starts_as"] = model_checks.starts_as_baseline(small.model, small_baseline.model)
            for scale, model in models.items():
                parity = cost_parity.compare(scale, model, baseline_models[scale], mine.asked["parity"])
                entry["parity"][scale] = dataclasses.asdict(parity)
                if parity.text:
                    entry["flagged"][f"parity at {scale}"] = parity.text
        methods[method] = entry
    small, models = specs[mine.compared[0]]
    size = small.model
    trained = list_trained_sizes(mine, *mine.against)
    return {
        "fingerprint": fingerprint_checks(mine),
        "checks": [*model_checks.CHECKS, *trained_size_checks.CHECKS, REPLACED_CODE],
        "size": {"layers": size.layers, "width": size.width, "vocabulary": size.vocabulary},
        "trained": {
            "contexts": sorted({each.context for each in trained}),
            "words": [trained_size_checks.describe_checks(each, size, [*models.values()]) for each in trained],
        },
        "methods": methods,
    }


def read_report(path: Path, fingerprint: str) -> dict[str, Any] | None:
    """Read the report of a file, if it is of this code and these models, and every check could be made; else None."""
    content = read(path)
    return (
        content if content is not None and content.get("fingerprint") == fingerprint and can_be_kept(content) else None
    )


def can_be_kept(report: dict[str, Any]) -> bool:
    """Whether every check could be made, so that the report may be kept.

    What was raised may come from the environment (a package that is not there, no memory), which no hash of the code
    tells apart from a later one where all is well.
    """
    return not any(entry.get("raised") for entry in report["methods"].values())


def list_sentences(report: dict[str, Any], path: str, kind: str) -> list[str]:
    """Write a sentence for each check of a report that failed (`kind` ``failed``) or was only flagged (``flagged``)."""
    return [
        f"{path}: {method}: {name}: {message}"
        for method, entry in report["methods"].items()
        for name, message in entry[kind].items()
    ]


def list_refusals(report: dict[str, Any], path: str) -> list[str]:
    """Write a sentence for each check of a report that failed, and the remedy; none if all hold."""
    failing = list_sentences(report, path, "failed")
    return [*failing, "nothing was trained; fix the component and run the command again"] if failing else []


def require_no_failure(report: dict[str, Any], path: str) -> None:
    """Refuse a report in which a check failed.

    Raises:
        PlumblineError: naming every check that failed.
    """
    if failing := list_refusals(report, path):
        raise PlumblineError("\n".join(failing))

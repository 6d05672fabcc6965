"""Offers the few names of Plumbline that stay, for use from Python.

Whatever else a module has may move without notice.

    from plumbline import api

A name is imported when it is requested, so that a plan or a verdict waits for no torch. docs/python.md shows each.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plumbline.core.pipeline_packages import explain_missing_package

if TYPE_CHECKING:
    from plumbline.core.errors import PlumblineError as PlumblineError
    from plumbline.core.stop_request import StopRequest as StopRequest
    from plumbline.evaluate.score_models import score_folder as score_folder
    from plumbline.model.export.write_export import export_hf as export_hf
    from plumbline.model.finished_run import FinishedRun as FinishedRun
    from plumbline.project import load as load_project  # noqa: F401
    from plumbline.results.runs.expected_runs import list_expected_runs as expected_runs  # noqa: F401
    from plumbline.results.runs.finished_runs import load as load_runs  # noqa: F401
    from plumbline.specs.spec import RunSpec as RunSpec
    from plumbline.specs.spec_changes import change_spec as change_spec
    from plumbline.specs.study_config import load as load_study  # noqa: F401
    from plumbline.specs.yaml_files import load_config as load_config
    from plumbline.train.pretrain import pretrain as pretrain
    from plumbline.train.trainer_settings import TrainerSettings as TrainerSettings
    from plumbline.verdict.comparison_terms import ComparisonTerms as ComparisonTerms
    from plumbline.verdict.judge import judge as judge
    from plumbline.verdict.judge import judge_all as judge_all

#: Name -> where it is.
_PLACES = {
    "FinishedRun": "plumbline.model.finished_run:FinishedRun",
    "PlumblineError": "plumbline.core.errors:PlumblineError",
    "RunSpec": "plumbline.specs.spec:RunSpec",
    "TrainerSettings": "plumbline.train.trainer_settings:TrainerSettings",
    "StopRequest": "plumbline.core.stop_request:StopRequest",
    "ComparisonTerms": "plumbline.verdict.comparison_terms:ComparisonTerms",
    "change_spec": "plumbline.specs.spec_changes:change_spec",
    "expected_runs": "plumbline.results.runs.expected_runs:list_expected_runs",
    "export_hf": "plumbline.model.export.write_export:export_hf",
    "judge": "plumbline.verdict.judge:judge",
    "judge_all": "plumbline.verdict.judge:judge_all",
    "load_config": "plumbline.specs.yaml_files:load_config",
    "load_runs": "plumbline.results.runs.finished_runs:load",
    "load_study": "plumbline.specs.study_config:load",
    "load_project": "plumbline.project:load",
    "pretrain": "plumbline.train.pretrain:pretrain",
    "score_folder": "plumbline.evaluate.score_models:score_folder",
}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"plumbline.api has no {name!r} (it has {', '.join(__all__)})")
    module, _, attribute = _PLACES[name].partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise explain_missing_package(error, f"plumbline.api.{name}") or error from None


def __dir__() -> list[str]:
    return __all__

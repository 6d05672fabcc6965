"""Plumbline from Python: the few names that stay. What else a module has may move without notice.

    from plumbline import api

A name is imported when it is asked for, so that a plan or a verdict waits for no torch. docs/python.md shows each.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plumbline.cli import PlumblineError as PlumblineError
    from plumbline.command.train import changed as changed
    from plumbline.evaluate.checkpoint import FinishedRun as FinishedRun
    from plumbline.evaluate.score import scored as scored
    from plumbline.export.write import export_hf as export_hf
    from plumbline.project import plan as plan
    from plumbline.results.expected import expected_runs as expected_runs
    from plumbline.results.runs import load as load_runs  # noqa: F401
    from plumbline.specs.config import load_config as load_config
    from plumbline.specs.sheet import load as load_study  # noqa: F401
    from plumbline.specs.spec import RunSpec as RunSpec
    from plumbline.train.pretrain import pretrain as pretrain
    from plumbline.train.settings import Settings as Settings
    from plumbline.train.stop import StopRequest as StopRequest
    from plumbline.verdict.judge import judge as judge
    from plumbline.verdict.judge import judge_all as judge_all
    from plumbline.verdict.terms import Terms as Terms

#: Name -> where it is.
_PLACES = {
    "FinishedRun": "plumbline.evaluate.checkpoint:FinishedRun",
    "PlumblineError": "plumbline.cli:PlumblineError",
    "RunSpec": "plumbline.specs.spec:RunSpec",
    "Settings": "plumbline.train.settings:Settings",
    "StopRequest": "plumbline.train.stop:StopRequest",
    "Terms": "plumbline.verdict.terms:Terms",
    "changed": "plumbline.command.train:changed",
    "expected_runs": "plumbline.results.expected:expected_runs",
    "export_hf": "plumbline.export.write:export_hf",
    "judge": "plumbline.verdict.judge:judge",
    "judge_all": "plumbline.verdict.judge:judge_all",
    "load_config": "plumbline.specs.config:load_config",
    "load_runs": "plumbline.results.runs:load",
    "load_study": "plumbline.specs.sheet:load",
    "plan": "plumbline.project:plan",
    "pretrain": "plumbline.train.pretrain:pretrain",
    "scored": "plumbline.evaluate.score:scored",
}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"plumbline.api has no {name!r} (it has {', '.join(__all__)})")
    module, _, attribute = _PLACES[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__

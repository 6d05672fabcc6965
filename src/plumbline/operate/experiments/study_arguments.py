"""Reads from a command line what is asked of a candidate: its arms, its budget, and what decides."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.project import Project, load
from plumbline.project.arms import METRIC, UNIT, StudyArms
from plumbline.specs import experiment_runs
from plumbline.specs.study_config import Study
from plumbline.specs.yaml_files import load_config, load_study, read_yaml, studies
from plumbline.verdict.decision.outcome import BANK, BASELINE, MOST, ExperimentQuestion


def arms_asked(given: argparse.Namespace, config: dict[str, Any]) -> tuple[Project, dict[str, Any]]:
    """The project, and `config.experiment` without its seeds."""
    own = given.what.endswith((".yaml", ".yml"))
    name = _extended(given.what) if own else given.study or config["main_study"]
    if name not in (there := studies()):
        raise PlumblineError(f"--study: there is no study {name!r}{nearest(name, there)} (there are {there})")
    mine = given.what if own else ""
    project = load(config | {"studies": [name], "main_study": name, "mine": mine, "experiment": {}})
    if project.mine is not None:
        method, against, study = _of_file(given, project), given.baseline, project.mine.study
        against = against or project.mine.against[method]
        scale = given.scale or project.mine.scale
    else:
        study = project.study(name)
        method, against = given.what, given.baseline or study.reference
        if given.study is None:
            _require_of_study(method, study, there)
        if against is None:
            raise PlumblineError(f"the study {name!r} has no reference; name the baseline with --baseline")
        here = [one for one, presets in study.definition["scales"].items() if study.preset in presets]
        scale = given.scale or here[0]
    asked: dict[str, Any] = {"study": study.name, "scale": scale, "method": method, "against": against}
    if given.vary_by_seed not in (None, experiment_runs.INITIALISATION):
        asked["vary"] = given.vary_by_seed
    if given.time_budget:
        asked |= _fitted(given, project, study, method, against)
    elif given.steps:
        read = project.corpora[study.corpus]
        asked |= experiment_runs.budget(study, scale, given.steps, read, project.runs.values())
    return project, asked


def _require_of_study(method: str, study: Study, there: list[str]) -> None:
    """Name the study that has a method which the main one has not."""
    base = method.partition(".")[0]
    if base in study.definition["methods"]:
        return
    for other in there:
        if other != study.name and base in load_study(other).get("methods", {}):
            raise PlumblineError(f"{method!r} is a method of the study {other}; add --study {other}")


def _extended(path: str) -> str:
    said = read_yaml(Path(path))
    if not isinstance(said, dict) or not isinstance(said.get("extends"), str):
        raise PlumblineError(f"{path}: says no `extends:`; name the study whose method or baseline it changes")
    return str(said["extends"])


def _of_file(given: argparse.Namespace, project: Project) -> str:
    """The method of a user's own file that is meant."""
    mine = project.mine
    assert mine is not None
    if mine.asked["decides"] != METRIC:
        raise PlumblineError(
            f"{mine.path}: decides: {mine.asked['decides']} needs evaluations, which the page of "
            f"`snakemake results/verdict/{mine.name}.md --config mine={mine.path}` reads; try reads {METRIC}"
        )
    there = list(mine.against)
    if given.method is None and len(there) == 1:
        return there[0]
    if given.method not in there:
        raise PlumblineError(f"{mine.path} has the methods {there}; name one with --method")
    return str(given.method)


def _fitted(given: argparse.Namespace, project: Project, study: Study, method: str, against: str) -> dict[str, Any]:
    """The scale and the budget that fit a time."""
    from plumbline.plan import fit_to_time

    bank, most = _sizes(given)
    found = fit_to_time.fit_budget(
        project, study, method, against, given.time_budget, runs=bank + most, scale=given.scale
    )
    print(found.words, file=sys.stderr)
    return found.given


def _sizes(given: argparse.Namespace) -> tuple[int, int]:
    bank, most = (3, 3) if given.quick else (BANK, MOST)
    return given.baseline_runs or bank, given.max_runs or most


def arms_of(project: Project, asked: dict[str, Any], words: list[str]) -> StudyArms:
    """Make the two arms, and look up how many of their runs the machine has devices for at once."""
    from plumbline.plan import machines

    arms = StudyArms(project=project, given=asked, candidate=asked["method"], words=words)
    runs = [arms.run_of(arm) for arm in (BASELINE, arms.candidate)]  # refuses what cannot be meant
    return replace(arms, at_once=machines.load(project.config["machine"]).runs_at_once(runs))


def question_of(given: argparse.Namespace, project: Project, arms: StudyArms) -> ExperimentQuestion:
    """Say what is asked of a candidate: what decides, and how many runs there are."""
    mine, asked = project.mine, arms.given
    bank, most = _sizes(given)
    minimum = mine.asked["minimum_gain"] if mine and given.minimum_gain is None else given.minimum_gain or 0.0
    paired = given.paired or bool(mine and mine.asked["paired"] and not given.interleave_baseline)
    order = "paired" if paired else "interleaved" if given.interleave_baseline else "bank"
    name = f"{asked['study']}-{arms.spec.scale}-{asked['method']}-against-{asked['against']}"
    name += "" if order == "bank" else f"-{order}"
    rule = {
        "alpha": given.alpha,
        "worth": given.useful_gain_sigmas,
        "session": given.session,
        "planned": given.planned_candidates,
        "first_seed": given.first_seed,
    }
    return ExperimentQuestion(
        name=name,
        baseline=asked["against"],
        candidate=asked["method"],
        metric=METRIC,
        higher=False,
        bank=bank,
        most=most,
        min_gain=minimum,
        plan=order,  # type: ignore[arg-type]
        **{key: value for key, value in rule.items() if value is not None},
        **describe_arms(arms),
    )


def describe_arms(arms: StudyArms) -> dict[str, Any]:
    """The words of a question that its arms say."""
    both = arms.given.get("vary") == experiment_runs.BOTH
    return {
        "unit": UNIT,
        "trainer": arms.trainer,
        "budget": arms.budget,
        "size": arms.size,
        "varies": "initialisation and data order" if both else "initialisation",
        "scope": "Results at one size and budget say nothing about others.",
        "differs": arms.differs,
    }


def configuration_of(given: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """The configuration, and the user's own words for Snakemake's --config. A dry run, and a budget that is to fit a
    time, are estimated for the machine that `plumbline plan` takes."""
    from plumbline.plan import machines
    from plumbline.project import config_arguments

    profiles = [config_arguments.profile_file(one) for one in getattr(given, "profile", [])]
    of_profiles = [word for one in profiles for word in config_arguments.profile_words(one)]
    config = load_config()
    if of_profiles or given.config:
        config = config_arguments.change_config(config, [*of_profiles, *given.config])
    if given.preset:
        config["preset"] = given.preset
    if getattr(given, "dry_run", False) or getattr(given, "time_budget", None):
        named = any(word.startswith("machine=") for word in [*of_profiles, *given.config])
        config = machines.for_preset(config, machine_is_named=named)
    return config, ["--config", *given.config] if given.config else []


def profile_words(given: argparse.Namespace) -> list[str]:
    """Spell the Snakemake profiles as words of its command line."""
    return [word for one in given.profile for word in ("--profile", one)]

"""Reads from a command line the question to a candidate: its arms, its budget, and what decides."""

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
from plumbline.verdict.decision.experiment import BANK, BASELINE, MOST, ExperimentQuestion
from plumbline.verdict.evidence import parse_measures


def arms_asked(options: argparse.Namespace, config: dict[str, Any]) -> tuple[Project, dict[str, Any]]:
    """The project, and `config.experiment` without its seeds."""
    is_own_file = options.what.endswith((".yaml", ".yml"))
    name = _read_extends(options.what) if is_own_file else options.study or config["main_study"]
    project = load_project(name, config, options.what if is_own_file else "")
    if project.mine is not None:
        method, against, study = _choose_method(options, project), options.baseline, project.mine.study
        against = against or project.mine.against[method]
        scale = options.scale or project.mine.scale
    else:
        study = project.study(name)
        method = options.what
        if options.study is None:
            _require_of_study(method, study)
        against = choose_baseline(options, study)
        scale = choose_scale(options, study)
    experiment: dict[str, Any] = {"study": study.name, "scale": scale, "method": method, "against": against}
    experiment |= choose_budget(options, project, study, scale)
    if options.time_budget:
        experiment |= _fit_time(options, project, study, method, against)
    return project, experiment


def load_project(study: str, config: dict[str, Any], mine: str = "") -> Project:
    """Load a configuration for one study, or a user's own file that extends it.

    Raises:
        PlumblineError: there is no such study.
    """
    if study not in (names := studies()):
        raise PlumblineError(f"--study: there is no study {study!r}{nearest(study, names)} (there are {names})")
    return load(config | {"studies": [study], "main_study": study, "mine": mine, "experiment": {}})


def choose_baseline(options: argparse.Namespace, study: Study) -> str:
    """Choose the method of a study that others are compared with.

    Raises:
        PlumblineError: none is named, and the study has no reference.
    """
    if not (baseline := options.baseline or study.reference):
        raise PlumblineError(f"the study {study.name!r} has no reference; name the baseline with --baseline")
    return str(baseline)


def choose_scale(options: argparse.Namespace, study: Study) -> str:
    """Choose the scale of a study: the first that it has at its preset, unless one is named."""
    names = [name for name, presets in study.definition["scales"].items() if study.preset in presets]
    return str(options.scale or names[0])


def choose_budget(options: argparse.Namespace, project: Project, study: Study, scale: str) -> dict[str, Any]:
    """Choose what a seed varies, and how many steps a run has: the keys of `config.experiment` that differ from the
    scale's own.
    """
    varies_data = options.vary_by_seed not in (None, experiment_runs.INITIALISATION)
    experiment = {"vary": options.vary_by_seed} if varies_data else {}
    if options.steps:
        corpus = project.corpora[study.corpus]
        experiment |= experiment_runs.budget(study, scale, options.steps, corpus, project.runs.values())
    return experiment


def _require_of_study(method: str, study: Study) -> None:
    """Name the study that has a method which the main one has not."""
    base = method.partition(".")[0]
    if base in study.definition["methods"]:
        return
    for name in studies():
        if name != study.name and base in load_study(name).get("methods", {}):
            raise PlumblineError(f"{method!r} is a method of the study {name}; add --study {name}")


def _read_extends(path: str) -> str:
    content = read_yaml(Path(path))
    if not isinstance(content, dict) or not isinstance(content.get("extends"), str):
        raise PlumblineError(f"{path}: says no `extends:`; name the study whose method or baseline it changes")
    return str(content["extends"])


def _choose_method(options: argparse.Namespace, project: Project) -> str:
    """The method of a user's own file that is meant."""
    mine = project.mine
    assert mine is not None
    if mine.asked["decides"] != METRIC:
        raise PlumblineError(
            f"{mine.path}: decides: {mine.asked['decides']} needs evaluations, which the page of "
            f"`snakemake results/verdict/{mine.name}.md --config mine={mine.path}` reads; try reads {METRIC}"
        )
    methods = list(mine.against)
    if options.method is None and len(methods) == 1:
        return methods[0]
    if options.method not in methods:
        raise PlumblineError(f"{mine.path} has the methods {methods}; name one with --method")
    return str(options.method)


def _fit_time(options: argparse.Namespace, project: Project, study: Study, method: str, against: str) -> dict[str, Any]:
    """The scale and the budget that fit a time."""
    from plumbline.plan import fit_to_time

    bank, most = _choose_sizes(options)
    fit = fit_to_time.fit_budget(
        project, study, method, against, options.time_budget, runs=bank + most, scale=options.scale
    )
    print(fit.message, file=sys.stderr)
    return fit.options


def _choose_sizes(options: argparse.Namespace) -> tuple[int, int]:
    bank, most = (3, 3) if options.quick else (BANK, MOST)
    return options.baseline_runs or bank, options.max_runs or most


def arms_of(project: Project, experiment: dict[str, Any], snakemake_words: list[str]) -> StudyArms:
    """Make the two arms, and look up how many of their runs the machine has devices for at once."""
    from plumbline.plan import machines

    arms = StudyArms(
        project=project, settings=experiment, candidate=experiment["method"], snakemake_options=snakemake_words
    )
    runs = [arms.run_of(arm) for arm in (BASELINE, arms.candidate)]  # refuses what cannot be meant
    return replace(arms, at_once=machines.load(project.config["machine"]).runs_at_once(runs))


def question_of(options: argparse.Namespace, project: Project, arms: StudyArms) -> ExperimentQuestion:
    """State the question to a candidate: what decides, and how many runs there are."""
    mine, experiment = project.mine, arms.settings
    bank, most = _choose_sizes(options)
    minimum = mine.asked["minimum_gain"] if mine and options.minimum_gain is None else options.minimum_gain or 0.0
    paired = options.paired or bool(mine and mine.asked["paired"] and not options.interleave_baseline)
    order = "paired" if paired else "interleaved" if options.interleave_baseline else "bank"
    name = f"{experiment['study']}-{arms.spec.scale}-{experiment['method']}-against-{experiment['against']}"
    name += "" if order == "bank" else f"-{order}"
    rule = {
        "alpha": options.alpha,
        "target_gain_sigmas": options.target_gain_sigmas,
        "session": options.session,
        "planned_tries": options.planned_tries,
        "first_seed": options.first_seed,
    }
    question = ExperimentQuestion(
        name=name,
        baseline=experiment["against"],
        candidate=experiment["method"],
        metric=METRIC,
        higher=False,
        bank=bank,
        most=most,
        minimum_gain=minimum,
        plan=order,  # type: ignore[arg-type]
        equal=parse_measures(options.equal, "--equal"),
        **{key: value for key, value in rule.items() if value is not None},
        **describe_arms(arms),
    )
    if options.as_good_as is None:
        return question
    from plumbline.operate.experiments.margin_arguments import add_margin  # numpy, which others need not

    return replace(add_margin(question, options, order), minimum_gain=0.0)


def describe_arms(arms: StudyArms) -> dict[str, Any]:
    """The fields of a question that its arms give."""
    return {
        "unit": UNIT,
        "trainer": arms.trainer,
        "budget": arms.budget,
        "size": arms.size,
        "varies": arms.varies,
        "scope": "Results at one size and budget say nothing about others.",
        "differs": arms.differs,
    }


def configuration_of(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """The configuration, and the user's own words for Snakemake's --config. A dry run, and a budget that is to fit a
    time, are estimated for the machine that `plumbline plan` takes."""
    from plumbline.plan import machines
    from plumbline.project import config_arguments

    profiles = [config_arguments.profile_file(profile) for profile in getattr(options, "profile", [])]
    of_profiles = [word for profile in profiles for word in config_arguments.profile_words(profile)]
    config = load_config()
    if of_profiles or options.config:
        config = config_arguments.change_config(config, [*of_profiles, *options.config])
    if options.preset:
        config["preset"] = options.preset
    if getattr(options, "dry_run", False) or getattr(options, "time_budget", None):
        is_named = any(word.startswith("machine=") for word in [*of_profiles, *options.config])
        config = machines.for_preset(config, machine_is_named=is_named)
    return config, ["--config", *options.config] if options.config else []


def profile_words(options: argparse.Namespace) -> list[str]:
    """Spell the Snakemake profiles as arguments of its command line."""
    return [word for profile in options.profile for word in ("--profile", profile)]

"""Joins what the verbs of an experiment need: arms in the DAG, a method's checks, the loop, the ledger, the page."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plumbline.cli import experiment_views
from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import canonical_json, sha256_text
from plumbline.experiment import bank as banks
from plumbline.experiment import decision_page, records
from plumbline.experiment import ledger as ledgers
from plumbline.experiment.bank import Bank
from plumbline.experiment.decision_console import print_decision
from plumbline.experiment.formatting import counted
from plumbline.experiment.ledger import LedgerEntry
from plumbline.experiment.loop import Experiment, Schedule
from plumbline.experiment.outcome import BASELINE, EXIT_CODES, Decision, ExperimentTerms
from plumbline.experiment.settle import BANK, MOST, QUICK_BANK, QUICK_MOST, Question, claim, settle
from plumbline.project import Project, load
from plumbline.project.arms import METRIC, UNIT, StudyArms
from plumbline.specs import experiment_runs
from plumbline.specs.config import load_config, read_yaml, studies
from plumbline.specs.study_config import Study

#: Steps of a run of a quick look.
QUICK_STEPS = 60
#: The folder of decisions below a preset's folder of results, and of the bank below its folder of work.
FOLDER = "experiment"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a preset's experiments lie: pages, ledger and bank."""

    project: Project

    @property
    def pages(self) -> Path:
        """The folder of pages."""
        return Path(self.project.paths.results) / FOLDER

    @property
    def work(self) -> Path:
        """The folder of the bank, which one process at a time holds."""
        return Path(self.project.paths.work) / FOLDER

    @property
    def ledger(self) -> Path:
        """The ledger, one for everything that is compared at this preset."""
        return Path(self.project.paths.verdict_ledger)

    def bank(self) -> Bank:
        """Read the bank."""
        return Bank(self.work / "runs.jsonl")

    def decisions(self) -> list[Path]:
        """List the decisions, the newest last."""
        return sorted(self.pages.glob("*.json"), key=lambda path: path.stat().st_mtime)

    def named(self, name: str | None, *, kept: bool = False) -> Decision:
        """Read a decision by its name, or the newest one.

        Raises:
            PlumblineError: there is none.
        """
        known = self.decisions()
        if name is not None:
            there = [path.stem for path in known]
            if name not in there:
                raise PlumblineError(
                    f"there is no experiment {name!r} at preset {self.project.name}{nearest(name, there)}"
                )
            return records.read(self.pages / f"{name}.json")
        for path in reversed(known):
            decision = records.read(path)
            if not kept or (decision.verdict == "keep" and not decision.terms.claim):
                return decision
        what = "that was kept" if kept else "yet"
        raise PlumblineError(f"there is no experiment {what} at preset {self.project.name}: plumbline try METHOD")


def try_(given: argparse.Namespace) -> int:
    """Run a change against its baseline until it is decided."""
    config, words = _configuration(given)
    project, asked = _arms_asked(given, config)
    arms = _arms(project, asked, [*words, *_profiles(given)])
    question = _question(given, project, arms)
    place = Place(project=project)
    record = _record(project, asked, question, arms)
    page = place.pages / f"{question.name}.md"
    if given.dry_run:
        print(_plan(question, arms))
        return 0
    if page.with_suffix(".json").exists():
        known = records.read(page.with_suffix(".json"))
        if known.asked == record and page.exists():
            print(f"decided already, {known.at}; for other seeds: --first-seed", file=sys.stderr)
            return _told(known, page, as_json=given.json)
    failing, checks = _checks(project, arms)
    if failing:
        print("\n".join(failing), file=sys.stderr)
        return EXIT_CODES["cannot be judged"]
    with banks.hold(place.work, shlex.join(["plumbline", "try", given.what])):
        bank = place.bank()
        return _decide(place, arms, *settle(question, arms, bank), bank, record, page, checks, as_json=given.json)


def confirm(given: argparse.Namespace) -> int:
    """Run what was kept again with fresh seeds."""
    place = Place(project=load(_configuration(given)[0]))
    kept = place.named(given.name, kept=True)
    asked = kept.asked
    config = load_config() | {"preset": asked["preset"], "mine": asked["mine"], "experiment": {}}
    config |= {"studies": [asked["study"]], "main_study": asked["study"], "work": place.project.config["work"]}
    project = load(config)
    arms = _arms(project, asked["experiment"], _profiles(given))
    name = f"{kept.terms.name.removesuffix('.confirmed')}.confirmed"
    question = replace(_of_terms(kept.terms, arms), name=name)
    page = place.pages / f"{name}.md"
    with banks.hold(place.work, f"plumbline confirm {kept.terms.name}"):
        bank = place.bank()
        return _decide(place, arms, *claim(question, arms, bank), bank, dict(asked), page, {}, as_json=given.json)


def _decide(
    place: Place,
    arms: StudyArms,
    terms: ExperimentTerms,
    plan: Schedule,
    bank: Bank,
    record: dict[str, Any],
    page: Path,
    checks: Mapping[str, Any],
    *,
    as_json: bool,
) -> int:
    """Enter the try, run it, and write what was decided with its page."""
    design = terms.design
    test = "t of a claim" if terms.claim else f"group-sequential t, {design.plan}, {design.bank} and {design.most} runs"
    entry = LedgerEntry(
        kind="try",
        name=f"{terms.name}",
        fingerprint=sha256_text(canonical_json([arms.method(BASELINE), arms.method(terms.candidate)])),
        baseline=arms.run_of(BASELINE).key.rpartition("/")[0],
        metric=terms.metric,
        test=f"{test} at {terms.alpha:g}",
    )
    ledgers.append(place.ledger, [entry])
    _tell(f"{terms.candidate} against {terms.baseline}: {terms.trainer}, {terms.budget}. {_rule(terms)}")
    decision = Experiment(terms=terms, plan=plan, trainer=arms, bank=bank, tell=_tell).conduct()
    decided = replace(entry, verdict=decision.verdict, sentence=decision.sentence, at=decision.at)
    with ledgers.entered(place.ledger, [decided]) as ledger:
        decision = replace(
            decision,
            asked=record,
            checks=checks,
            ledger=ledgers.statement(ledger, page.parent),
            tries=ledger.tries(entry.baseline, entry.metric),
        )
        decision_page.write(decision, page)
    return _told(decision, page, as_json=as_json)


def _told(decision: Decision, page: Path, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(decision_page.numbers(decision) | {"page": str(page)}))
        return decision.exit_code
    print_decision(decision)
    own = counted(sum(run.arm != BASELINE for run in decision.runs), "run")
    fixed = f"; a fixed number with the same power: {decision.fixed_runs}" if decision.fixed_runs else ""
    print(f"{own} of it, {decision.seconds:.0f} s of training{fixed}. {_rule(decision.terms)}\n{page}")
    return decision.exit_code


def _rule(terms: ExperimentTerms) -> str:
    design = terms.design
    if terms.claim:
        return f"Fresh seeds: {design.bank} of each, one t test at {design.alpha:g}, one-sided."
    order = {"bank": f"{design.bank} runs of the baseline, then", "paired": "pairs of runs:"}.get(
        design.plan, "in turn:"
    )
    return (
        f"Rule: {order} at most {design.most} of the candidate, a look after each, one-sided error {design.alpha:g} in "
        "all."
    )


def _arms_asked(given: argparse.Namespace, config: dict[str, Any]) -> tuple[Project, dict[str, Any]]:
    """The project, and `config.experiment` without its seeds."""
    own = given.what.endswith((".yaml", ".yml"))
    name = _extended(given.what) if own else given.study or config["main_study"]
    if name not in (there := studies()):
        raise PlumblineError(f"--study: there is no study {name!r}{nearest(name, there)} (there are {there})")
    mine = given.what if own else ""
    project = load(config | {"studies": [name], "main_study": name, "mine": mine, "experiment": {}})
    if project.mine is not None:
        method, against, study = _of_file(given, project), given.against, project.mine.study
        against = against or project.mine.against[method]
        scale = given.scale or project.mine.scale
    else:
        study = project.study(name)
        method, against = given.what, given.against or study.reference
        if against is None:
            raise PlumblineError(f"the study {name!r} has no reference; name the baseline with --against")
        here = [one for one, presets in study.definition["scales"].items() if study.preset in presets]
        scale = given.scale or here[0]
    asked: dict[str, Any] = {"study": study.name, "scale": scale, "method": method, "against": against}
    if given.vary != experiment_runs.INITIALISATION:
        asked["vary"] = given.vary
    if given.fit:
        asked |= _fitted(given, project, study, method, against)
    elif given.steps or given.quick:
        steps = given.steps or QUICK_STEPS
        asked |= experiment_runs.budget(study, scale, steps, project.corpora[study.corpus])
    return project, asked


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
    from plumbline.plan import fit

    bank, most = _sizes(given)
    found = fit.fitted(project, study, method, against, given.fit, runs=bank + most, scale=given.scale)
    _tell(found.words)
    return found.given


def _sizes(given: argparse.Namespace) -> tuple[int, int]:
    bank, most = (QUICK_BANK, QUICK_MOST) if given.quick else (BANK, MOST)
    return given.bank or bank, given.most or most


def _arms(project: Project, asked: dict[str, Any], words: list[str]) -> StudyArms:
    from plumbline.plan import machines

    at_once = machines.load(project.config["machine"]).devices_at_once
    arms = StudyArms(project=project, given=asked, candidate=asked["method"], words=words, at_once=at_once)
    arms.run_of(BASELINE)  # refuses what cannot be meant
    return arms


def _question(given: argparse.Namespace, project: Project, arms: StudyArms) -> Question:
    mine, asked = project.mine, arms.given
    bank, most = _sizes(given)
    minimum = mine.asked["minimum_gain"] if mine and given.min_gain is None else given.min_gain or 0.0
    paired = given.pair or bool(mine and mine.asked["paired"] and not given.interleave)
    order = "paired" if paired else "interleaved" if given.interleave else "bank"
    name = f"{asked['study']}-{arms.spec.scale}-{asked['method']}-against-{asked['against']}"
    question = Question(
        name=name,
        baseline=asked["against"],
        candidate=asked["method"],
        metric=METRIC,
        higher=False,
        bank=bank,
        most=most,
        alpha=given.alpha / (given.planned or 1),
        min_gain=minimum,
        worth=given.worth,
        plan=order,  # type: ignore[arg-type]
        session="fwer" if given.planned else "each",
        first_seed=given.first_seed,
    )
    return _with_words(question, arms)


def _of_terms(terms: ExperimentTerms, arms: StudyArms) -> Question:
    """The question of a decision's terms, to be asked again of fresh seeds."""
    question = Question(
        name=terms.name,
        baseline=terms.baseline,
        candidate=terms.candidate,
        metric=terms.metric,
        higher=terms.higher,
        min_gain=terms.min_gain,
    )
    return _with_words(question, arms)


def _with_words(question: Question, arms: StudyArms) -> Question:
    varies = "initialisation and data order" if arms.given.get("vary") == experiment_runs.BOTH else "initialisation"
    scope = "Results at one size and budget say nothing about others."
    return replace(
        question,
        unit=UNIT,
        trainer=arms.trainer,
        budget=arms.budget,
        varies=varies,
        scope=scope,
        differs=arms.differs,
    )


def _record(project: Project, asked: dict[str, Any], question: Question, arms: StudyArms) -> dict[str, Any]:
    """What was asked for, to be asked again."""
    design = [question.bank, question.most, question.alpha, question.min_gain, question.worth, question.plan]
    return {
        "preset": project.name,
        "study": arms.study.code,
        "mine": project.mine.path if project.mine else "",
        "experiment": asked,
        "design": [*design, question.first_seed],
        "methods": [arms.method(BASELINE), arms.method(question.candidate)],
    }


def _checks(project: Project, arms: StudyArms) -> tuple[list[str], dict[str, Any]]:
    """What the checks of a user's own file refuse before anything is trained, and their report."""
    if project.mine is None:
        return [], {}
    from plumbline.experiment import checks
    from plumbline.operate.preflight import dry_run, own_method

    run = arms.run_of(arms.candidate).spec
    wildcards = {"study": run.study, "scale": run.scale, "method": run.method, "seed": "0"}
    job = dry_run.JobToRun(rule="pretrain", wildcards=wildcards)
    failing = own_method.refused(dry_run.DryRun(project=project, jobs=(job,)))
    return failing, checks.kept(Path(project.paths.verdict_checks), project.fingerprints.checks()) or {}


def _plan(question: Question, arms: StudyArms) -> str:
    return (
        f"{question.candidate} against {question.baseline}: {arms.trainer}, {arms.budget}; {question.bank} runs of the "
        f"baseline, at most {question.most} of the candidate"
    )


def _configuration(given: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """The configuration, and the user's own words for Snakemake's --config."""
    from plumbline.project import invocation

    profiles = [invocation.profile_file(one) for one in getattr(given, "profile", [])]
    of_profiles = [word for one in profiles for word in invocation.profile_words(one)]
    config = load_config()
    if of_profiles or given.config:
        config = invocation.changed(config, [*of_profiles, *given.config])
    if given.preset:
        config["preset"] = given.preset
    return config, ["--config", *given.config] if given.config else []


def _profiles(given: argparse.Namespace) -> list[str]:
    return [word for one in given.profile for word in ("--profile", one)]


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _place(given: argparse.Namespace) -> Place:
    config = _configuration(given)[0]
    return Place(project=load(config | {"studies": [config["main_study"]], "mine": "", "experiment": {}}))


def noise(given: argparse.Namespace) -> int:
    """Print what is known of the noise of a run."""
    return experiment_views.print_noise(given, _place(given).bank())


def log(given: argparse.Namespace) -> int:
    """Print every decision."""
    return experiment_views.print_log(given, ledgers.read(_place(given).ledger))


def page(given: argparse.Namespace) -> int:
    """Make a page again."""
    place = _place(given)
    decision = place.named(given.name)
    return experiment_views.print_page(given, decision, place.pages / f"{decision.terms.name}.md")


VERBS: dict[str, Callable[[argparse.Namespace], int]] = {
    "try": try_,
    "confirm": confirm,
    "noise": noise,
    "log": log,
    "page": page,
}

"""A screen of a study's methods: what its factors are, what is never in one run, and what Snakemake is asked for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from plumbline import project
from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import on_meta
from plumbline.operate.experiments import __main__ as experiment_verbs
from plumbline.operate.experiments import study_screen
from plumbline.operate.experiments.study_screen import StudyScreen
from plumbline.project.arms import ScreenArms
from plumbline.project.config_arguments import change_config
from plumbline.specs.yaml_files import load_config
from plumbline.verdict import ledger
from plumbline.verdict.decision.experiment import BASELINE, DIVERGED, FINISHED, ArmRun
from plumbline.verdict.ledger import IN_SCREEN
from plumbline.verdict.screen import screen_page

REPOSITORY = Path(__file__).resolve().parents[3]


def source_of(study: str, *words: str, work: Path = Path("work")) -> StudyScreen:
    line = ["screen", "--study", study, "--preset", "smoke", *words, "--config", f"work={work}"]
    return study_screen.open_source(experiment_verbs.parse_line(line))


def test_each_pair_of_levels_is_a_model_or_is_forbidden() -> None:
    source = source_of("transfer")
    for first, second in combinations(source.levels, 2):
        if first[0] == second[0]:
            continue
        arms = source.trainer({"pair": dict((first, second))})
        if (first, second) in source.forbidden:
            with pytest.raises(PlumblineError, match=r"model\."):
                on_meta(arms.run_of("pair").spec.model)
        else:
            on_meta(arms.run_of("pair").spec.model)
    assert source.forbidden == ((("placement", "hybrid_norm"), ("residual", "attnres")),)
    assert "model.placement 'hybrid_norm'" in source.refused_pairs[source.forbidden[0]]


def test_factors_are_named_by_slots_and_levels_by_methods() -> None:
    source = source_of("transfer")
    methods = source.study.methods
    assert {factor.levels[0] for factor in source.factors} == {"baseline"}
    assert {level for factor in source.factors for level in factor.levels} <= methods.keys()
    assert [len(factor.levels) for factor in source.factors] == [2, 2, 7, 2, 3, 3, 5]
    assert source.name_level(("output", "gated_attn_qknorm")) == "gated_attn_qknorm.output"
    assert source.name_level(("mixer", "softpick")) == "softpick"
    assert source.terms.changes["ffn"] == "swiglu, geglu, relu_squared"


def test_a_combination_that_is_a_method_has_its_runs(tmp_path: Path) -> None:
    source = source_of("transfer", work=tmp_path)
    arms = {
        "a": {"query_key": "qknorm", "ffn": "geglu_ffn", "mixer": "baseline"},
        "b": {"query_key": "qknorm", "output": "gated_attn_qknorm"},
        "c": {"mixer": "softpick", "values": "value_residual"},
        "d": {"mixer": "baseline"},
    }
    trainer = source.trainer(arms)
    names = [trainer.run_of(arm).spec.method for arm in (BASELINE, *arms)]
    assert names == ["baseline", "qknorm_geglu", "gated_attn_qknorm", "value_residual+softpick", "baseline"]
    own = source.project.study("transfer").runs["transfer/base/qknorm_geglu/s42"].spec
    assert trainer.run_id("a", 42) == own.run_id
    settings = trainer.configuration([("c", 7), ("a", 42), ("c", 3)])
    again = project.load(change_config(load_config(), shlex.split(shlex.join(settings))))
    assert again.experiment is not None
    ids = [run.spec.run_id for run in again.experiment.runs.values()]
    assert ids == [trainer.run_id("a", 42), trainer.run_id("c", 3), trainer.run_id("c", 7)]


def test_a_screen_shares_its_group_with_the_tries_of_its_budget() -> None:
    """So that runs which are there are used, and sigma of all is known."""
    from plumbline.operate.experiments import study_arguments

    options = experiment_verbs.parse_line(["try", "qknorm", "--preset", "smoke", "--steps", "9"])
    config, words = study_arguments.configuration_of(options)
    tried = study_arguments.arms_of(*study_arguments.arms_asked(options, config), words)
    trainer = source_of("transfer", "--steps", "9").trainer({"x": {"query_key": "qknorm"}})
    assert (trainer.group, trainer.method("x"), trainer.run_id("x", 5)) == (
        tried.group, tried.method("qknorm"), tried.run_id("qknorm", 5)
    )  # fmt: skip
    assert trainer.group != source_of("transfer").trainer({}).group


@pytest.mark.parametrize(
    ("study", "words", "sizes"),
    [
        ("premature", ("--baseline", "gpt"), [2, 2, 2]),
        ("key_norms", ("--baseline", "as_published"), [2, 2]),
        ("quack", ("--baseline", "default.eta_0.003"), [2, 3, 11]),
        ("query_free", ("--methods", "wq_identity,residual_query_gelu", "--baseline", "baseline"), [3, 2, 2, 2]),
        ("transfer", ("--methods", "softpick,ssmax.original,relu_squared"), [3, 2]),
    ],
)
def test_every_study_has_factors(study: str, words: tuple[str, ...], sizes: list[int]) -> None:
    source = source_of(study, *words)
    assert [len(factor.levels) for factor in source.factors] == sizes
    assert source.terms.first_seed == 47 and source.terms.runs > sum(sizes) - len(sizes) + 1
    assert len(source.record["levels"]) == sum(sizes) - len(sizes)


@pytest.mark.parametrize(
    ("study", "words", "message"),
    [
        ("query_free", ("--baseline", "baseline"), "query_free.*--methods"),
        ("premature", (), "premature.*--baseline"),
        ("transfr", (), "'transfr'; did you mean 'transfer'"),
        ("transfer", ("--methods", "softpik"), "study.yaml: --methods: .*'softpik'; did you mean 'softpick'"),
        ("transfer", ("--methods", "qknorm,half_the_heads"), "'half_the_heads' changes model.*transfer/study.yaml"),
        ("transfer", ("--scale", "bse"), "'bse'"),
    ],
)
def test_what_cannot_be_screened_is_named(study: str, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        assert source_of(study, *words).factors


def test_a_method_beyond_slots_is_left_out_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    source = source_of("quack", "--baseline", "default.eta_0.003")
    source.left_out["two"] = ["train.steps"]
    source.remark()
    assert "two" in (notes := capsys.readouterr().err) and "train.steps" in notes


#: What levels gain beyond noise, and what two of them lose together.
GAINS = {"softpick": 0.25, "relu_squared": 0.15, "qknorm": -0.1}


def made_up_runs(trainer: ScreenArms, pairs: Sequence[tuple[str, int]]) -> Iterator[ArmRun]:
    """Runs of about 5 nats, less what their levels gain; nothing is trained."""
    for arm, seed in pairs:
        entry = trainer.arms[arm]
        methods = entry["levels"].values() if "levels" in entry else [entry["method"]]
        gain = sum(GAINS.get(method, 0.0) for method in methods)
        noise = (seed * 41 % 101 - 50) / 2000
        run_id = trainer.run_id(arm, seed)
        yield ArmRun(arm=arm, seed=seed, value=5 - gain + noise, outcome=FINISHED, seconds=2.0, run_id=run_id)


@pytest.fixture
def own_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("studies", "config", "workflow", "profiles", "Snakefile"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ScreenArms, "run", made_up_runs)
    monkeypatch.setattr(StudyScreen, "look_again", lambda self, arms, runs: None)
    return tmp_path


def screen(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    line = ["screen", "--study", "transfer", "--preset", "smoke", "--json", *words]
    code = study_screen.run(experiment_verbs.parse_line(line))
    printed = capsys.readouterr()
    return code, json.loads(printed.out), printed.err


def test_what_gains_is_chosen_and_confirmed(own_project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--methods", "softpick,ssmax,relu_squared,qknorm,qknorm_geglu", "--runs", "24", "--leave-one-out")
    code, decision, _ = screen(capsys, *words)
    assert (code, decision["exit_code"]) == (0, 0)
    assert sorted(map(tuple, decision["chosen"])) == [("ffn", "relu_squared"), ("mixer", "softpick")]
    effects = {each["level"][1]: each for each in decision["effects"]["effects"]}
    assert effects.keys() == {"softpick", "ssmax", "relu_squared", "qknorm", "qknorm_geglu"}
    for method, effect in effects.items():
        assert abs(effect["gain"] - GAINS.get(method, 0.0)) < 4 * effect["error"] < 0.1
    assert abs(decision["confirmation"]["gain"] - 0.4) < 0.05
    assert decision["effects"]["past_sigma"] > 0, "seeds alone are known, by five runs of the baseline"
    assert {each["level"][1] for each in decision["left_out"]} == {"softpick", "relu_squared"}
    page = (own_project / decision["page"]).read_text()
    assert "`relu_squared`" in page and "squared" in decision["to_keep"] and "quick.md" in decision["to_keep"]
    entries = ledger.read(own_project / "results/smoke/verdict/ledger.jsonl").entries
    assert len(entries) == 2 * len(effects) and all(entry.verdict for entry in entries[len(effects) :])
    tried = [entry.name.partition(IN_SCREEN)[0] for entry in entries[: len(effects)]]
    read = screen_page.read((own_project / decision["page"]).with_suffix(".json"))
    assert all(screen_page.describe_try(read, name)["gain"] for name in tried), tried


def test_the_same_command_goes_on_then_repeats_its_decision(
    own_project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--methods", "softpick,relu_squared", "--runs", "12")
    asked: list[tuple[str, int]] = []

    def run_a_part(trainer: ScreenArms, pairs: Sequence[tuple[str, int]]) -> Iterator[ArmRun]:
        for number, run in enumerate(made_up_runs(trainer, pairs)):
            if not asked and number == 5:
                raise KeyboardInterrupt
            yield run

    monkeypatch.setattr(ScreenArms, "run", run_a_part)
    with pytest.raises(KeyboardInterrupt):
        screen(capsys, *words)

    def run_the_rest(trainer: ScreenArms, pairs: Sequence[tuple[str, int]]) -> Iterator[ArmRun]:
        asked.extend(pairs)
        return made_up_runs(trainer, pairs)

    monkeypatch.setattr(ScreenArms, "run", run_the_rest)
    code, decision, _ = screen(capsys, *words)
    of_design = [each for each in decision["runs"] if each["request"]["part"] == "design"]
    assert code == 0 and len(of_design) == 12
    assert len(asked) == len(decision["runs"]) - 5, "what was made is used"
    asked.clear()
    again, same, notes = screen(capsys, *words)
    assert (again, same, asked) == (0, decision, []) and "decided already" in notes


def test_a_level_that_diverges_leaves_the_design(
    own_project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(trainer: ScreenArms, pairs: Sequence[tuple[str, int]]) -> Iterator[ArmRun]:
        for made in made_up_runs(trainer, pairs):
            if "ssmax" in trainer.run_of(made.arm).spec.method:
                made = replace(made, value=None, outcome=DIVERGED, why="loss is NaN")
            yield made

    monkeypatch.setattr(ScreenArms, "run", run)
    code, decision, _ = screen(capsys, "--methods", "softpick,ssmax,relu_squared,qknorm", "--runs", "24")
    assert code == 0 and decision["dropped"] == [["mixer", "ssmax"]]
    assert ["mixer", "softpick"] in decision["chosen"]


def test_a_dry_run_prints_design_and_hours_and_makes_nothing(
    own_project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScreenArms, "run", lambda *_: pytest.fail("a run was made"))
    code, plan, _ = screen(capsys, "--runs", "40", "-n")
    assert code == 0 and plan["dry_run"] and len(plan["design"]["rows"]) == 40
    assert "at most 40 runs" in plan["plan"]
    assert plan["seconds_at_most"] > 0
    assert not (own_project / "results").exists()

"""What is stated of small models names what the studies have, and a file that cannot be meant is refused."""

from __future__ import annotations

import io
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
import yaml

from plumbline.bundle import archive
from plumbline.core.errors import PlumblineError
from plumbline.results.runs.finished_runs import RUN_COLUMNS
from plumbline.specs import small_file, small_measures, small_runs, study_config
from plumbline.specs.compared_metrics import METRICS
from plumbline.specs.small_file import CAPPED_LOSS, NUMBERS, Measure, SmallFile
from plumbline.specs.small_runs import UNCHOSEN
from plumbline.specs.spec import ProbeSpec, RunSpec
from plumbline.specs.yaml_files import studies

STUDIES = ("key_norms", "premature", "quack", "query_free", "transfer")
#: Of each study, a finished run with all that its probes write.
PROBED = {"premature": "base/gpt/s42", "quack": "mha/default.eta_0.003/s42", "key_norms": "base/as_published/s42"}
#: The seeds of the runs that are kept: what they gained is known.
KNOWN_SEEDS = set(range(42, 48))

Specs = dict[str, dict[str, list[RunSpec]]]


@pytest.fixture(scope="module")
def files() -> dict[str, SmallFile]:
    return {name: small_file.load_small(name) for name in STUDIES}


@pytest.fixture(scope="module")
def stated(files: dict[str, SmallFile]) -> Specs:
    """Study -> statement -> the specs of its runs."""
    by_study = {}
    for study, small in files.items():
        runs = small_runs.list_stated_runs(small_runs.load_definition(small), small)
        by_study[study] = {each.id: [run.spec for run in runs if run.statement == each.id] for each in small.statements}
    return by_study


def test_every_study_of_a_paper_has_statements() -> None:
    assert [name for name in studies() if small_file.path_of(name).exists()] == list(STUDIES)


@pytest.mark.parametrize("study", STUDIES)
def test_every_run_of_a_statement_is_a_spec(study: str, files: dict[str, SmallFile], stated: Specs) -> None:
    for statement in files[study].statements:
        specs = stated[study][statement.id]
        tuning, rates = statement.tuning.seeds if statement.tuning else [], len(statement.rates or [1])
        own_seeds = (statement.tuning.own_seeds if statement.tuning else None) or []
        seeds = len(statement.seeds) * (1 if tuning else rates) + rates * len(tuning) + len(own_seeds)
        assert len(specs) == len({spec.run_id for spec in specs}), statement.id
        assert len(specs) == len(statement.sizes) * len(statement.arms) * seeds, statement.id
        assert {spec.preset for spec in specs} == {"evening"} and {spec.study for spec in specs} == {study}
        assert {spec.scale for spec in specs} == set(statement.sizes)
        assert not KNOWN_SEEDS & {spec.init_seed for spec in specs}, f"{statement.id}: a seed whose run is known"
        test_seeds = {spec.init_seed for spec in specs if spec.method.endswith(UNCHOSEN)}
        assert test_seeds == (set(statement.seeds) if tuning else set())


@pytest.mark.parametrize("study", STUDIES)
def test_every_measure_is_one_that_a_run_writes(study: str, files: dict[str, SmallFile], repository: Path) -> None:
    measures = [statement.measure for statement in files[study].statements]
    written = {"runs": {*NUMBERS["runs"], CAPPED_LOSS}, "scores": {*NUMBERS["scores"]}}
    assert {*NUMBERS["runs"]} <= {*RUN_COLUMNS}
    assert {metric.scored_as for metric in METRICS.values()} - {""} < {*NUMBERS["scores"]}
    if any(measure.frame == "probes" for measure in measures):
        path = f"work/demo/probes/{study}/{PROBED[study]}/probes.parquet"
        content = archive.read_file(repository / "records/demo-9466a36/bundle.tar.xz", path)
        written["probes"] = set(pd.read_parquet(io.BytesIO(content))["probe"])
    if any(measure.frame == "interventions" for measure in measures):
        path = f"work/demo/runs/{study}/base/gpt_slow/s42/outcome.json"
        content = archive.read_file(repository / "records/demo-9466a36/bundle.tar.xz", path)
        written["interventions"] = set(yaml.safe_load(content)["interventions"][0])
    for measure in measures:
        assert {measure.column, measure.less or measure.column} <= written[measure.frame], measure


@pytest.mark.parametrize("study", PROBED)
def test_what_a_run_wrote_may_be_measured_where_it_was_read(study: str, repository: Path) -> None:
    """Of every probe and intervention of a kept run, whatever its numbers' names are made of."""
    path = f"work/demo/probes/{study}/{PROBED[study]}/probes.parquet"
    content = archive.read_file(repository / "records/demo-9466a36/bundle.tar.xz", path)
    written = pd.read_parquet(io.BytesIO(content))[["probe", "fraction"]].drop_duplicates()
    spec = study_config.load(study, "demo").runs[f"{study}/{PROBED[study]}"].spec
    for probe, fraction in written.itertuples(index=False):
        small_measures.require_written(measure_probe(probe, fraction), spec, "measure")
        for other, at in ((f"x{probe}", fraction), (probe, fraction + 0.0017)):
            with pytest.raises(PlumblineError, match=r"measure.(column|at): "):
                small_measures.require_written(measure_probe(other, at), spec, "measure")


def test_an_installed_probe_names_its_numbers_anywhere_in_its_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wide_names.py").write_text('NAMES = ("wide_one",)\n')
    code = "from wide_names import NAMES\n\n\ndef read(head: int) -> str:\n    return f'wide_of_{head}'\n"
    (tmp_path / "wide.py").write_text(code)
    (run, *_) = study_config.load("transfer", "demo").runs.values()
    spec = msgspec.structs.replace(run.spec, probes=(ProbeSpec(name="wide", at=(0.5,)),), interventions=())
    monkeypatch.setattr(small_measures.components, "available", lambda kind: {"wide": str(tmp_path / "wide.py")})
    for name in ("wide_one", "wide_of_3"):
        small_measures.require_written(measure_probe(name, 0.5), spec, "measure")
    with pytest.raises(PlumblineError, match=r"'wide_two' .*did you mean 'wide_one'"):
        small_measures.require_written(measure_probe("wide_two", 0.5), spec, "measure")


def measure_probe(column: str, at: float) -> Measure:
    return Measure(frame="probes", column=column, at=at, layers="all")


@pytest.mark.parametrize("study", STUDIES)
def test_every_change_of_a_size_is_in_its_runs(study: str, stated: Specs, repository: Path) -> None:
    """Whatever depth it stands at: an arm may have a width of its own, none has a schedule or training of its own."""
    sizes = yaml.safe_load((repository / f"studies/{study}/small.yaml").read_text(encoding="utf-8"))["sizes"]
    specs = [spec for of_statement in stated[study].values() for spec in of_statement]
    for size, changes in sizes.items():
        runs = [spec.to_dict() for spec in specs if spec.scale == size]
        for part in changes.keys() - {"scale", "label"}:
            for place, value in list_leaves(changes[part]):
                there = [reduce(lambda entry, key: entry[key], place, run[part]) for run in runs]
                assert (value in there) if part == "model" else set(there) == {value}, (size, part, place)


def list_leaves(entry: Any, place: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Each value below an entry, with the keys that lead to it."""
    if not isinstance(entry, dict):
        return [(place, entry)]
    return [leaf for key, value in entry.items() for leaf in list_leaves(value, (*place, key))]


def test_a_size_is_its_scale_with_the_changes_alone(stated: Specs) -> None:
    by_key = {spec.key: spec for specs in stated["premature"].values() for spec in specs}
    shallow, deep = (by_key[f"premature/{size}/gpt_swiglu/s101"] for size in ("shallow", "deep"))
    assert (shallow.model.layers, deep.model.layers) == (4, 8)
    assert shallow.model.ffn_width == deep.model.ffn_width == 256  # the demo's, of a gated network
    assert shallow.train.steps == 1000 and shallow.train.precision == "float32"


def test_a_rate_is_a_multiple_of_the_arms_own(files: dict[str, SmallFile], stated: Specs) -> None:
    specs = stated["quack"][files["quack"].statements[0].id]
    rates = {spec.method: spec.optimizer.learning_rate for spec in specs if spec.scale == "mha_small"}
    assert rates["default.eta_0.003"] == 0.003 and rates["default.eta_0.003-rate_3.16"] == pytest.approx(0.00948)
    assert rates["default.eta_0.03"] == 0.03 and "default.eta_0.003-rate_10" not in rates, "one training, one run"
    assert max(rates.values()) / min(rates.values()) == pytest.approx(100)


def replace_pilot(content: Any, noise: str) -> None:
    """Let the first statement name a noise at one of its two sizes."""
    content["noise"] = {"loss": {"sigma": 0.01, "df": 4, "runs": "made up"}}
    content["statements"][0].pop("pilot")
    content["statements"][0]["noise"] = {"deep": noise}


def name_size_again(content: Any) -> None:
    """Let the first statement be of a third size, which is the second under another name and label."""
    content["sizes"]["third"] = content["sizes"]["deep"] | {"label": "x"}
    content["statements"][0]["sizes"].append("third")


def tune(content: Any, rates: list[float], **measure: str) -> None:
    """Let the rates of the first statement be tuned."""
    content["statements"][0].update(rates=rates, tuning={"seeds": [999]})
    content["statements"][0]["measure"].update(measure)


@pytest.fixture
def change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path) -> Any:
    """A function that loads the premature study's file with a change, and makes all its specs."""
    text = (repository / "studies/premature/small.yaml").read_text(encoding="utf-8")
    path = tmp_path / "small.yaml"
    monkeypatch.setattr(small_file, "path_of", lambda study, root=None: path)

    def load_changed(edit: Any) -> None:
        content = yaml.safe_load(text)
        edit(content)
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        small = small_file.load_small("premature")
        small_runs.list_stated_runs(small_runs.load_definition(small), small)

    return load_changed


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda c: c.update(study="quack"), r"small.yaml: study: 'quack' .*'premature'"),
        (lambda c: c.update(statement=[]), r"small.yaml: top level: unknown key 'statement'.*'statements'"),
        (lambda c: c["statements"][0].pop("counts_against"), r"small.yaml: statements.0: 'counts_against' is missing"),
        (lambda c: c.update(statements=c["statements"][:2]), r"small.yaml: statements: .*3"),
        (lambda c: c.update(not_asked=[]), r"small.yaml: not_asked: .*1"),
        (lambda c: c["statements"][0].update(sizes=["shallow"]), r"small.yaml: statements.0.sizes: .*2"),
        (lambda c: c["statements"][0].update(sizes=["shallow", "deeep"]), r"statements.0.sizes: .*'deeep'.*'deep'"),
        (lambda c: replace_pilot(c, "slow"), r"statements.0.noise: .*noise 'slow'"),
        (lambda c: c["statements"][0].update(noise={"deep": "loss"}), r"statements.0.noise: .*`pilot`"),
        (lambda c: replace_pilot(c, "loss"), r"statements.0.noise: .*'shallow'"),
        (lambda c: c["statements"][2]["measure"].update(column="capped_loss"), r"measure.column: .*`runs`"),
        (lambda c: c["statements"][0]["measure"].update(column="validation_los"), r"0.measure.column: .*'validation_l"),
        (lambda c: c["statements"][0]["measure"].update(column="outcome"), r"statements.0.measure.column: 'outcome'"),
        (lambda c: c["statements"][0]["measure"].update(less="capped_loss"), r"statements.0.measure.less: 'capped_lo"),
        (lambda c: c["statements"][0]["measure"].update(frame="scores"), r"measure.column: .*'logprob_gold'"),
        (
            lambda c: c["statements"][2]["measure"].update(column="entropie"),
            r"measure.column: .*did you mean 'entropy'",
        ),
        (lambda c: c["statements"][2]["measure"].update(less="loss_nether"), r"measure.less: .*'loss_neither'"),
        (lambda c: c["statements"][2]["measure"].update(at=0.97), r"measure.at: .*0.97 .*attention_statistics at 0, "),
        (lambda c: c["statements"][4]["measure"].update(column="fractions"), r"rule.measure.column: .*'fraction'"),
        (lambda c: c["statements"][4]["contrasts"].update(all={"gpt": 1}), r"measure.column: .*shallow/gpt "),
        (
            lambda c: c["statements"][0]["measure"].update(over_rates="sensitivity"),
            r"measure.column: .*capped_loss",
        ),
        (lambda c: c["statements"][0].update(target_gain=-1), r"statements.0.target_gain: .*`minimum_gain`"),
        (lambda c: c["statements"][0].update(rates=[1, 2]), r"statements.0.rates: .*`tuning`"),
        (lambda c: c["statements"][0].update(spread=0.1), r"statements.0.spread: .*`order`"),
        (lambda c: c["statements"][0]["measure"].update(at=0.5), r"statements.0.measure.at: .*`layers`"),
        (lambda c: c["statements"][1].update(id="slowing_lowers_the_loss"), r"statements: .*slowing_lowers_the_loss"),
        (lambda c: c["sizes"]["deep"].update(label="0.8M"), r"small.yaml: sizes: the label '0.8M'"),
        (lambda c: c["statements"][0].update(contrasts={"a": {"gpt": 0}}), r"statements.0.contrasts: 'a'"),
        (lambda c: c["statements"][0].update(contrasts={"a": {"gtp": 1}}), r"slowing_lowers_the_loss.contrasts.*'gtp'"),
        (lambda c: c["sizes"]["deep"].update(scale="bse"), r"sizes.deep: .*no scale 'bse'.*'base'"),
        (lambda c: c["sizes"]["deep"]["model"].update(layer=3), r"sizes.deep.model: unknown key 'layer'.*'layers'"),
        (lambda c: c["sizes"]["deep"]["train"].update(batch_tokens=100), r"train.batch_tokens \(100\)"),
        (lambda c: c["sizes"]["deep"].update(label="1.3M\n"), r"sizes.deep.label: '1.3M\\n' is no label"),
        (lambda c: c["sizes"].update(third=c["sizes"]["deep"] | {"label": "x"}), r"sizes.third: no statement names it"),
        (lambda c: c.update(noise={"x": {"sigma": 1, "df": 3, "runs": "r"}}), r"noise.x: no statement names it"),
        (lambda c: name_size_again(c), r"sizes.third: is 'deep' under another name"),
        (lambda c: (c["statements"][0].pop("pilot"), c["statements"][0].update(noise={})), r"0.noise: .*'deep'"),
        (lambda c: c["statements"][0]["measure"].update(less="validation_loss"), r"measure.less: .*`column`"),
        (
            lambda c: c["statements"][2]["measure"].update(layers="early", less_layers="early"),
            r"less_layers: .*`layers`",
        ),
        (lambda c: c["statements"][0].update(contrasts={"a": {"gpt": 1, "gpt_slow": 0}}), r"contrasts: 'a' .*by 0"),
        (lambda c: c["statements"][0].update(contrasts={"a": {"gpt.": 1}}), r"methods.gpt.variants: no variant ''"),
        (lambda c: c["statements"][4].update(seeds=[1, 2]), r"statements.4.seeds: .*0.25"),
        (lambda c: tune(c, rates=[1, 2], over_rates="lowest"), r"statements.0.rates: go with one of"),
        (lambda c: tune(c, rates=[2, 2.0000001]), r"gpt at rate 2.0000001 .*premature/shallow/gpt-rate_2/s0"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_key(change: Any, edit: Any, message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        change(edit)


def test_rates_are_never_chosen_by_the_seeds_that_judge_them(change: Any) -> None:
    def share_a_seed(content: dict[str, Any]) -> None:
        content["statements"][0].update(rates=[1, 2], tuning={"seeds": [101, 999]})

    with pytest.raises(PlumblineError, match=r"statements.0.tuning.seeds: seed 101 .*`seeds`"):
        change(share_a_seed)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda order: order["tuning"].pop("own_seeds"), r"statements.0.tuning.own_seeds: .*`order`"),
        (lambda order: order["tuning"].update(own_seeds=[201, 301]), r"tuning.own_seeds: seed 201 "),
        (lambda order: order["tuning"].update(own_seeds=[101, 301]), r"tuning.own_seeds: seed 101 "),
        (lambda order: order.update(minimum_gain=0.1), r"statements.0.minimum_gain: .*chance"),
        (lambda order: order.update(target_gain=1.5), r"statements.0.target_gain: .*correlation"),
        (lambda order: order.update(noise=None, pilot="p") or order.pop("noise"), r"statements.0.noise: .*`order`"),
        (lambda order: order.update(contrasts={"a": {"baseline": 1}}), r"statements.0.contrasts: .* name more"),
    ],
)
def test_no_run_that_chooses_a_rate_is_in_an_order(
    edit: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "small.yaml"
    content = yaml.safe_load(small_file.path_of("transfer").read_text(encoding="utf-8"))
    edit(content["statements"][0])
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    monkeypatch.setattr(small_file, "path_of", lambda study, root=None: path)
    with pytest.raises(PlumblineError, match=message):
        small_file.load_small("transfer")


@pytest.mark.parametrize("part", ["targets", "runs"])
def test_what_small_models_are_called_is_taken(part: str, files: dict[str, SmallFile], repository: Path) -> None:
    definition = yaml.safe_load((repository / "studies/key_norms/study.yaml").read_text(encoding="utf-8"))
    definition[part]["small_pilot"] = next(iter(definition[part].values()))
    with pytest.raises(PlumblineError, match=r"studies/key_norms/study.yaml: 'small_pilot' is .*; rename"):
        small_runs.add_targets(definition, files["key_norms"])

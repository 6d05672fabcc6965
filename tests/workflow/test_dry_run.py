"""Every study plans at every preset, in seconds, and without importing torch."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from plumbline.specs import small_file, small_runs, study_config
from plumbline.specs.yaml_files import PRESETS, studies
from tests.workflow.project_copy import STUDY, Project, jobs_by_rule, jobs_of_studies

STUDIES = studies()
HEAVY = {"torch", "transformers", "datasets", "lm_eval"}
pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def project(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.copy(repository, tmp_path_factory.mktemp("dry") / "project")


@pytest.mark.parametrize("preset", PRESETS)
def test_every_study_plans_at_every_preset(project: Project, preset: str) -> None:
    """The texts of the paper in two parts, whose hundreds are planned below."""
    with project.changed(lambda content: content.update(tokenize_shards=2), f"config/presets/{preset}.yaml"):
        process = project.snakemake("-n", "all", "--config", f"preset={preset}")
    assert process.returncode == 0, process.stdout[-4000:]
    tables = figures = 0
    with_it = [name for name in STUDIES if study_config.has_preset(name, preset, project.root)]
    assert with_it == STUDIES or (preset == "evening" and "transfer" in with_it)
    for name in with_it:
        study = study_config.load(name, preset, project.root)
        targets = study.usual_targets.values()
        needed_runs = {run.key for target in targets for run in study.group(*target["runs"])}
        scored = {run.key for target in targets if "scores" in target["reads"] for run in study.group(*target["runs"])}
        assert jobs_of_studies(process.stdout, "pretrain")[name] == len(needed_runs)
        assert jobs_of_studies(process.stdout, "evaluate")[name] == len(scored)
        tables += sum(target["kind"] == "table" for target in targets)
        figures += sum(target["kind"] == "figure" for target in targets)
    planned = jobs_by_rule(process.stdout)
    assert planned["table"] == tables
    assert planned.get("figure", 0) == figures


@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_made_on_request_plans_at_every_preset(project: Project, preset: str) -> None:
    """Its runs have methods that no usual run has, and rules have to know these too."""
    runs, tables = set(), []
    for name in STUDIES:
        if study_config.has_preset(name, preset, project.root):
            study = study_config.load(name, preset, project.root)
            small = {small_runs.SMALL, small_runs.PILOT, small_runs.GAINS} if study.small_runs else set()
            for target in study.definition["targets"].keys() - study.usual_targets.keys() - small:
                tables.append(f"results/{preset}/{name}/{target}.csv")
                runs |= {run.key for run in study.group(*study.definition["targets"][target]["runs"])}
    with project.changed(lambda content: content.update(tokenize_shards=2), f"config/presets/{preset}.yaml"):
        process = project.snakemake("-n", *tables, "--config", f"preset={preset}")
    assert process.returncode == 0, process.stdout[-4000:]
    planned = jobs_by_rule(process.stdout)
    assert (planned["table"], planned["pretrain"]) == (len(tables), len(runs)) and len(tables) > 3


@pytest.mark.parametrize("name", [name for name in STUDIES if small_file.path_of(name).exists()])
def test_the_runs_of_small_models_plan(project: Project, name: str) -> None:
    """Each once, with what is measured of it; where rates are chosen, not before they are."""
    config = ("--config", "preset=evening", f"studies=[{name}]")
    small = small_file.load_small(name, project.root)
    study = study_config.load(name, "evening", project.root)
    rates = small_file.rates_path_of(name, project.root)
    chosen_rates = small_file.load_rates(small, project.root)
    if small.tuned_arms.keys() - chosen_rates.keys():
        process = project.snakemake("-n", f"results/evening/{name}/small.csv", *config)
        assert process.returncode == 1 and f"studies/{name}/small_rates.yaml" in process.stdout
        assert f"small_rates {name} --write" in process.stdout
        all_rates = {size: dict.fromkeys(arms, 1) for size, arms in small.tuned_arms.items()} | chosen_rates
        text = "".join(f"  {size}: {rates_of_size}\n" for size, rates_of_size in all_rates.items())
        rates.write_text(f"study: {name}\nrates:\n{text}")
        chosen = study_config.load(name, "evening", project.root)
        pilots = [{run.spec.run_id for run in each.group("small_pilot")} for each in (study, chosen)]
        assert pilots[0] == pilots[1], "the choice moves no run that chooses"
        study = chosen
    for target in ("small_pilot", "small"):
        planned = project.planned(f"results/evening/{name}/{target}.csv", *config)
        assert planned["table"] == 1 and planned["pretrain"] == len(study.group(target))
        for rule, kind in (("probe", "probes"), ("evaluate", "scores")):
            assert planned.get(rule, 0) == len(study.list_read_runs(target, kind))
    stated = small_runs.list_stated_runs(small_runs.load_definition(small, project.root), small, project.root)
    assert {run.spec.run_id for run in study.group("small")} == {run.spec.run_id for run in stated}


def test_one_size_of_small_models_plans(project: Project) -> None:
    """And what is made knows which."""
    config = ("--config", "preset=evening", "studies=[quack]", "sizes=[mla_small]")
    process = project.snakemake("-n", "-p", "results/evening/quack/small.csv", *config)
    study = study_config.load("quack", "evening", project.root, sizes=["mla_small"])
    wanted = study.group("small")
    assert {run.spec.scale for run in wanted} == {"mla_small"} and "--sizes=mla_small --" in process.stdout
    assert (
        jobs_by_rule(process.stdout)["pretrain"] == len(wanted) < len(study_config.load("quack", "evening").small_runs)
    )
    for preset, asked, sizes, word in (
        ("evening", "[quack]", "[mla_smal]", "small.yaml"),
        ("demo", "[quack]", "[mla_small]", "preset=evening"),
        ("evening", "all", "[mla_small]", "studies=[STUDY]"),
    ):
        refused = project.snakemake("-n", "all", "--config", f"preset={preset}", f"studies={asked}", f"sizes={sizes}")
        assert refused.returncode == 1 and "sizes: " in refused.stdout and word in refused.stdout


def test_table2_at_demo_is_twenty_methods_and_nine_more_seeds(project: Project) -> None:
    """So few jobs that each is shown."""
    process = project.python("-m", "snakemake", "results/table2.csv", "-n")
    assert "rule pretrain:" in process.stdout and "Reasons:" in process.stdout
    planned = jobs_by_rule(process.stdout)
    corpora_and_items = planned.pop("fetch")
    assert corpora_and_items == 3
    assert planned == {
        "documents": 1, "tokenizer": 1, "tokenize": 4, "pack": 2, "items": 1,
        "pretrain": 29, "evaluate": 29, "table": 1, "copy_table": 1,
    }  # fmt: skip


def test_make_quick_is_a_try_that_trains_two_methods(project: Project) -> None:
    process = subprocess.run(["make", "-n", "quick"], cwd=project.root, capture_output=True, text=True, check=True)
    (line,) = (line for line in process.stdout.splitlines() if "plumbline try" in line)
    assert "plumbline try 'qknorm' --study transfer --quick ||" in line
    experiment = {"study": "transfer", "scale": "base", "method": "qknorm", "against": "baseline"}
    experiment |= {"baseline_seeds": [42, 43, 44], "seeds": [1042]}
    arguments = ("--config", "studies=[transfer]", f"experiment={json.dumps(experiment)}")
    folder = "work/demo/runs/transfer/base"
    seeds = (f"{folder}/baseline/s{seed}/outcome.json" for seed in (42, 43, 44))
    planned = project.planned(*seeds, f"{folder}/qknorm/s1042/outcome.json", *arguments)
    assert planned.pop("fetch") == 2, "texts, and no evaluation items"
    assert planned == {"documents": 1, "tokenizer": 1, "tokenize": 4, "pack": 2, "pretrain": 4}


def test_the_gpu_checks_sequences_are_as_long_as_the_papers(project: Project) -> None:
    """On a smaller preset's corpus, whose own runs read shorter ones."""
    process = subprocess.run(["make", "-n", "gpu-check-packs"], cwd=project.root, capture_output=True, text=True)
    (line,) = (line for line in process.stdout.splitlines() if "bin/snakemake" in line)
    planned = project.planned(*line.split()[1:])
    assert planned["pack"] == 2, process.stderr


def test_a_dry_run_of_hundreds_of_jobs_is_a_page(project: Project) -> None:
    """As README has it; each job by itself is requested with -p."""
    process = project.python("-X", "importtime", "-m", "snakemake", "results/table2.csv", "--profile", "slurm", "-n")
    assert process.returncode == 0, process.stdout[-3000:]
    lines = process.stdout.splitlines(keepends=True)
    imported = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time")}
    assert "plumbline.specs.study_config" in imported
    assert not HEAVY & {name.split(".")[0] for name in imported}
    output = "".join(line for line in lines if not line.startswith("import time"))
    assert jobs_by_rule(output)["tokenize"] == 512 and jobs_by_rule(output)["pretrain"] == 26
    page = output[output.index("Building DAG") :].splitlines()
    assert len(page) < 50 and "rule pretrain:" not in output and "Reasons:" not in output
    table = page[page.index("What each job would ask for (?: known when its inputs are there):") :]
    rows = {line.split()[0]: line.split()[1:] for line in table if line and line[0].isalpha()}
    assert rows["pretrain"][:3] == ["26", "1", "gpu:8"] and rows["evaluate"][:3] == ["26", "1", "gpu:1"]
    (rule,) = (line for line in table if line.startswith("---"))
    assert len(rule.split()) == 1 + len(rows["pretrain"]), "every number stands under its own heading"
    assert float(rows["pretrain"][4].split("-")[-1]) == 24.0, "a slice of the profile"
    assert rows["documents"][:3] == ["1", "1", "-"] and max(map(len, table)) <= 110


def test_one_key_can_be_set_for_one_invocation(project: Project) -> None:
    """A nested key, its neighbours left alone: documents then come from a folder, and no corpus is fetched."""
    documents = "work/demo/corpora/climbmix/documents/documents.json"
    setting = "data={source: local}"
    project.local_corpus()
    process = project.snakemake("-n", "-p", documents, "--config", setting)
    project.edit("config/corpora/climbmix.yaml", "local: {folder: texts}", 'local: {folder: ""}')
    assert jobs_by_rule(process.stdout) == {"documents": 1}
    assert "--documents-source local" in process.stdout and "--local-texts-folder texts" in process.stdout
    unset = project.snakemake("-n", documents, "--config", setting)
    assert "climbmix.yaml: local.folder: missing" in unset.stdout


def test_the_paper_preset_plans_from_a_folder_in_hub_layout(project: Project) -> None:
    """`hub.path` may be a copy of the data set's repository; its files are what the documents are made from."""
    (project.root / "copies/mix/data").mkdir(parents=True)
    (project.root / "copies/mix/data/train-00000-of-00001.jsonl").write_text('{"text": "A text."}\n')
    documents = "work/paper/corpora/climbmix/documents/documents.json"
    project.edit("config/corpora/climbmix.yaml", "path: OptimalScale/ClimbMix", "path: copies/mix")
    process = project.snakemake("-n", "-p", documents, "--config", "preset=paper")
    project.edit("config/corpora/climbmix.yaml", "path: copies/mix", "path: OptimalScale/ClimbMix")
    assert jobs_by_rule(process.stdout) == {"documents": 1}
    assert "copies/mix/data/train-00000-of-00001.jsonl" in process.stdout
    assert re.search(r"--hub-dataset copies/mix .* --token-budget \d+ --tokenizer-kind byte_level_bpe", process.stdout)


def test_a_mistake_is_told_before_anything_runs(project: Project) -> None:
    """A misspelt name of anything chosen by name must not cost a job. (Every kind of it: tests/specs.)"""
    before, after = "model: {mixer: {name: softpick}}", "model: {mixer: {name: softpik}}"
    project.edit(STUDY, before, after)
    process = project.snakemake("-n", "results/table2.csv")
    project.edit(STUDY, after, before)
    assert process.returncode == 1
    assert (
        STUDY in process.stdout and "did you mean 'softpick'?" in process.stdout and "Traceback" not in process.stdout
    )


def test_the_target_smoke_is_for_its_preset(project: Project) -> None:
    assert project.planned("smoke", "--config", "preset=smoke", "studies=[key_norms]")["pretrain"] > 0

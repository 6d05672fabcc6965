"""What every rule's jobs ask for at `paper` under profiles/slurm, at each attempt, is what
benchmarks/job_resources.yaml states that they take."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from plumbline.data import split
from plumbline.operate.preflight import dry_run
from plumbline.operate.preflight.method_checks import finished_run_checks
from plumbline.plan import data_stage, job_needs, machines, run_estimate, target_costs
from plumbline.plan.job_needs import amount
from plumbline.plan.run_estimate import JobRequests, RunEstimator, estimator
from plumbline.project import Project, load, snakemake_internals
from plumbline.specs.study_config import Run
from plumbline.specs.yaml_files import ROOT, load_config

NEEDS: dict[str, Any] = yaml.safe_load((ROOT / "benchmarks" / "job_resources.yaml").read_text(encoding="utf-8"))
#: Rows that are not rules.
FACTS = {"distinct_words", "no_jobs_of_a_cluster"}
#: Jobs of `profiles/slurm`'s attempts, and of its longest time limit.
ATTEMPTS, SLICE = (1, 2, 3), 24 * 60
#: A first attempt asks for so many times what its job needs, and no more except for what is so little that no scheduler
#: minds: MB of memory, minutes, and MB of disk.
MOST, LITTLE_MB, LITTLE_MINUTES, LITTLE_DISK_MB = 3, 1500, 30, 500
#: At least so many rows have a law that was measured, whatever is added to it.
MEASURED = 15


@dataclass(frozen=True)
class Need:
    """Megabytes of memory, minutes, and megabytes of disk."""

    mb: float
    minutes: float
    disk_mb: float


def law(terms: dict[str, float], units: dict[str, float]) -> float:
    """A sum of so much whatever the size, and for each unit."""
    return sum(value if name == "fixed" else value * units[name] for name, value in terms.items())


def compute_need(row: dict[str, Any], units: dict[str, float], planned_seconds: float = 0.0) -> Need:
    """What a row says of a job of this size: the memory of its largest step, and the time of all, or that of a network
    where it waits for one."""
    steps = row.get("steps", {}).values()
    for name in row.keys() & {"adds", "waits"}:
        assert row[name]["extrapolated"], "what is not measured says so"
    adds, waits = row.get("adds", {}), row.get("waits", {})
    memory = max((law(step["mb"], units) for step in steps), default=0.0) + law(adds.get("mb", {}), units)
    seconds = sum(law(step["cpu_seconds"], units) for step in steps) + law(adds.get("cpu_seconds", {}), units)
    disk, speed = row.get("disk", {}), machines.load("h100").disk_mb_per_second
    before, moved = (law(disk.get(name, {}), units) / speed for name in ("before", "mb"))
    together = units.get("together", 1)
    seconds = before + together * max(seconds, law(waits.get("seconds", {}), units) + moved)
    if row.get("seconds") == "plan":
        seconds = planned_seconds
    return Need(memory, seconds / 60, units.get("disk_mb", 0.0))


def units_of(project: Project, priced: RunEstimator, job: Any) -> tuple[dict[str, float], float]:
    """The size of a job, and the seconds that the plan states, where it states some."""
    rule, wildcards = job.rule.name, job.wildcards
    if rule in ("documents", "tokenizer", "tokenize", "pack"):
        corpus = project.corpora[wildcards.corpus]
        text, total = data_stage.text_bytes(project, corpus.name) / 1e6, data_stage.tokens(project, corpus.name)
        shards, context = project.preset["tokenize_shards"], max(project.contexts[corpus.name])
        size = (2 if corpus.tokenizer.vocabulary <= 2**16 else 4) * total / 1e6
        written = {"documents": 2 * text, "tokenize": size / shards, "pack": size}
        return {
            "text_mb": text,
            "network_mb": text,
            "pack_mb": size,
            "stored_mb": 1.05 * text if rule != "tokenizer" or corpus.tokenizer.kind == "byte_level_bpe" else 0.0,
            "split_mb": 1.05 * text if 1.05 * text > 256 * split.SORT_BYTES / 1e6 else 0.0,
            "local_mb": 0.0,
            "tokens_mb": size / shards,
            "file_mb": data_stage.READ_AHEAD,
            "sample_words_m": data_stage.distinct_words(32) / 1e6,
            "sorted_mb": split.SORT_BYTES / 1e6,
            "words_m": data_stage.distinct_words(corpus.tokenizer.training_megabytes) / 1e6,
            "training_mb": corpus.tokenizer.training_megabytes,
            "remembered": 1,
            "shard_mb": text / shards,
            "together": data_stage.TOGETHER if rule == "tokenize" else 1,
            "file_tokens_m": min(corpus.sequences_per_shard * context, total) / 1e6,
            "tokens_m": total / 1e6,
            "disk_mb": written.get(rule, 0.0),
        }, 0.0
    items = max(amount(project, run)[0] for run in project.scored_runs.values() if run.suite) / 1000
    units = {"items_k": items, "answers_k": items}
    if rule == "measure":
        units |= {"devices": 1}
        return units, project.measurements.one(wildcards.study, wildcards.measurement).seconds
    if not hasattr(wildcards, "seed"):
        return units, 0.0
    run = project.run(wildcards.study, wildcards.scale, wildcards.method, wildcards.seed)
    millions, ranks = priced.size(run).parameters / 1e6, {"one_gpu": 1}.get(run.size, 8)
    units |= {"parameters_m": millions, "devices": 1, "rank_devices": ranks, "other_ranks": ranks - 1}
    units |= {"other_rank_parameters_m": (ranks - 1) * millions}
    if rule == "pretrain":
        return units | {"disk_mb": priced.disk_bytes(run) / 1e6}, priced.pretrain_seconds(run)
    return units, priced.evaluate_seconds(run) if rule == "evaluate" else priced.probe_seconds(run)


@pytest.fixture(scope="module")
def planned(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Project, list[Any]]:
    """Snakemake's workflow of a dry run at `paper`: a run of every scale with its scores and probes, all corpora and
    measurements, and a product of each kind."""
    work, plans = tmp_path_factory.mktemp("work"), list[tuple[Any, Project, list[Any]]]()

    def capture(workflow: Any, project: Project) -> bool:
        plans.append((workflow, project, snakemake_internals.list_needed_jobs(workflow)))
        return True

    project = load(load_config() | {"preset": "paper", "machine": "h100", "work": str(work)})
    by_scale = {(run.spec.study, run.spec.scale): run for run in project.runs.values()}.values()
    targets = [project.paths.run(run, "outcome.json") for run in by_scale]
    targets += [project.paths.scores(run) for run in by_scale if run.suite]
    targets += [project.paths.probes(run) for run in by_scale if run.spec.probes]
    targets += [project.paths.measurement(entry) for entry in project.measurements.all.values()]
    targets += [
        f"{project.paths.results}/{name}"
        for name in ("transfer/table1.csv", "key_norms/fig1.png", "key_norms/claims.csv", "audit.csv")
    ]
    args = ["--dry-run", "--quiet", "all", "--profile", "slurm", "--cores", "1000", *targets]
    args += ["--config", f"work={work}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(repository)
        patch.setattr("sys.argv", ["snakemake", *args])
        patch.setattr(dry_run, "tell", capture)
        with pytest.raises(SystemExit) as end:
            snakemake_internals.main(args)
    assert end.value.code in (0, None)
    return plans[-1]


@pytest.mark.workflow
def test_every_rule_asks_for_what_it_needs(planned: tuple[Any, Project, list[Any]]) -> None:
    workflow, project, jobs = planned
    here, priced = set(NEEDS["no_jobs_of_a_cluster"]["here"]), estimator(project)
    rules = {rule.name: rule for rule in workflow.rules if rule.shellcmd}
    assert set(rules) == set(NEEDS) - FACTS | here, "a rule without a row, or a row without a rule"
    jobs = [job for job in jobs if job.rule.shellcmd]
    assert all(snakemake_internals.stays_here(job) == (job.rule.name in here) for job in jobs)
    jobs = [job for job in jobs if job.rule.name not in here]
    jobs = [job for job in jobs if getattr(job.wildcards, "shard", "0000") == "0000"]
    assert set(rules) - here - {job.rule.name for job in jobs} == {"bundle", "verdict"}
    short, much, rows = [], [], []
    for job in jobs:
        need = compute_need(NEEDS[job.rule.name], *units_of(project, priced, job))
        for attempt in ATTEMPTS:
            job.attempt = attempt
            limits = job.resources
            beside = data_stage.WORKER_MB * job.threads if job.rule.name == "documents" else 0
            assert beside != data_stage.WORKER_MB, "the profile has several of them"
            disk = limits["disk_mb"] if isinstance(limits["disk_mb"], int) else 1000
            rows.append((job.rule.name, attempt, dict(job.wildcards), limits["mem_mb"], limits["runtime"], disk, need))
            if (
                limits["mem_mb"] < need.mb + beside
                or limits["runtime"] < min(need.minutes, SLICE)
                or disk < need.disk_mb
                or job.threads < 1
            ):
                short.append(rows[-1])
            if attempt == 1 and (
                limits["mem_mb"] > max(MOST * (need.mb + beside), LITTLE_MB)
                or limits["runtime"] > max(MOST * need.minutes, 0) + LITTLE_MINUTES
                or (need.disk_mb and disk > MOST * need.disk_mb + LITTLE_DISK_MB)
            ):
                much.append(rows[-1])
    print(*rows, sep="\n")
    assert not short, "asks for less than it needs:\n" + "\n".join(map(str, short))
    assert not much, f"asks for over {MOST} times what it needs:\n" + "\n".join(map(str, much))


def test_what_no_job_at_paper_makes_asks_by_the_same_laws(planned: tuple[Any, Project, list[Any]]) -> None:
    """`bundle`, which needs all products, and `verdict`, which needs a user's own method: of 300 M parameters, three
    seeds of two arms."""
    _, project, _ = planned
    priced = estimator(project)
    run = next(run for run in project.runs.values() if priced.size(run).parameters > 3e8)
    requests = JobRequests(priced)
    millions = priced.size(run).parameters / 1e6
    arms = [replace_spec(run, method=method, init_seed=seed) for method in ("baseline", "mine") for seed in (1, 2, 3)]
    units = {"parameters_m": millions, "looked_at_m": 2 * millions, "all_runs_m": 6 * millions}
    units |= {"states_m": finished_run_checks.LARGE / 1e6}  # it has more than are held
    for name, request in (("bundle", requests.product("bundle")), ("verdict", requests.verdict(arms))):
        need = compute_need(NEEDS[name], units)
        assert need.mb <= request.choose_mb(1) <= MOST * need.mb and request.extrapolated
        assert need.minutes <= request.choose_minutes() <= MOST * need.minutes + LITTLE_MINUTES
    looked_at = (run_estimate.LOOKED_AT_STATES, run_estimate.LOOKED_AT_TOKENS)
    assert looked_at == (finished_run_checks.LARGE, finished_run_checks.TOKENS)


def replace_spec(run: Run, **changes: Any) -> Run:
    """A run with another spec."""
    return dataclasses.replace(run, spec=msgspec.structs.replace(run.spec, **changes))


def test_most_rules_are_measured() -> None:
    rows = {name: row for name, row in NEEDS.items() if name not in FACTS}
    for name, row in rows.items():
        assert "steps" in row or "extrapolated" in row["adds"], name
        if "steps" in row:
            assert row["measured"] == f"python benchmarks/job_resources.py --only-rules {name}"
            for step in row["steps"].values():
                for point in step["points"]:
                    by_law = law(step["mb"], point["units"])
                    assert by_law >= 0.99 * point["mb"], (name, point, "is above its law")
    assert len([row for row in rows.values() if "steps" in row]) >= MEASURED


def test_the_plan_and_the_rules_read_these_laws_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that is twice as steep doubles what both state."""
    project = load(load_config() | {"preset": "paper", "machine": "h100"})
    before = data_stage.tokenizer(project, "climbmix")
    laws = copy.deepcopy(NEEDS)
    for step in laws["tokenizer"]["steps"].values():
        step["mb"] = {name: 2 * value for name, value in step["mb"].items()}
    monkeypatch.setattr(job_needs, "laws", lambda: laws)
    after = data_stage.tokenizer(project, "climbmix")
    assert after.megabytes == pytest.approx(2 * before.megabytes)
    assert after.choose_mb(1) == pytest.approx(2 * before.choose_mb(1), abs=1)
    assert target_costs.make_table(estimator(project))["data_memory_gb"].max() > 0


def test_no_text_that_was_counted_has_more_words_than_law_says() -> None:
    counted = [point for points in NEEDS["distinct_words"]["texts"].values() for point in points]
    assert len(counted) > 12
    for megabytes, count in counted:
        assert megabytes < 5 or count <= data_stage.distinct_words(megabytes), (megabytes, count)


def test_as_many_shards_go_together_as_the_time_limit_counts(repository: Path) -> None:
    profile = yaml.safe_load((repository / "profiles" / "slurm" / "config.v9+.yaml").read_text(encoding="utf-8"))
    assert profile["group-components"]["tokenize"] == data_stage.TOGETHER
    assert "tokenize" not in profile["set-threads"], "a shard takes one processor, by needs.yaml no faster on more"

"""Shows a plan as one page of 80 columns: what each stage takes, where the time goes, and what of it is estimated.

Every figure of such a page is an estimate: of data jobs by measured laws, of runs by a stated or measured speed.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from math import ceil

import pandas as pd
from tabulate import tabulate

from plumbline.core.formats import format_duration, format_number
from plumbline.plan import data_stage, job_needs, step_memory, target_costs
from plumbline.plan.data_stage import DataRule
from plumbline.plan.machines import group
from plumbline.plan.plan_page import WIDTH, describe_measured_jobs
from plumbline.plan.run_estimate import KEPT, STATE_BYTES, WEIGHT_BYTES, RunEstimator
from plumbline.plan.target_costs import WHOLE, RunClass, describe_memory, describe_speed
from plumbline.project import Project
from plumbline.specs.study_config import Run


def terminal(prices: RunEstimator, frame: pd.DataFrame) -> str:
    """Write the page; `frame` is the plan's table, whose rows of whole studies it shows last."""
    project, classes = prices.project, target_costs.run_classes(prices)
    to_do = [run for run in project.runs.values() if not prices.is_trained(run)]
    corpora = [_Corpus.of(project, name) for name in data_stage.to_make(project, to_do)]
    corpora.sort(key=lambda corpus: corpus.most, reverse=True)
    parts = [
        _fill(
            f"Preset `{project.name}` on {prices.machine.label}, {prices.machine.devices_at_once} at once. Estimates: "
            "see the last section."
        ),
        f"DATA, on processors\n{_describe_data(prices, corpora)}",
        f"RUNS, by size class\n{_fill(_describe_runs(prices))}\n{_tabulate_runs(classes)}" if classes else "",
        _describe_memory(prices, to_do),
        f"DISK, GB\n{_describe_disk(prices, classes, [corpus.name for corpus in corpora])}",
        f"BY STUDY, device-hours (by target: --by targets)\n{_tabulate_studies(frame)}",
        "RECKONED, not measured\n" + "\n".join(_fill(f"- {line}", 2) for line in list_assumptions(prices, corpora)),
    ]
    return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Corpus:
    """A corpus that is to be made: by each of its packs, as if it had no larger one, the project and the rules."""

    name: str
    source: str
    by_pack: dict[str, tuple[Project, list[DataRule]]]

    @classmethod
    def of(cls, project: Project, name: str) -> _Corpus:
        corpus = project.corpora[name]
        projects = {pack: data_stage.up_to_pack(project, name, pack) for pack in data_stage.packs(project, name)}
        return cls(
            name=name,
            source=corpus.hub.path if corpus.source == "hub" else corpus.source,
            by_pack={pack: (limited, data_stage.rules(limited, name)) for pack, limited in projects.items()},
        )

    @property
    def most(self) -> float:
        """Seconds to its largest pack; none if they are not known."""
        _, rules = list(self.by_pack.values())[-1]
        return sum(rule.seconds or 0.0 for rule in rules)


def tabulate_sizes(prices: RunEstimator) -> str:
    """Write the models of a plan, each once: parameters, operations and bytes of a checkpoint."""
    runs: dict[tuple[str, str, str], Run] = {}
    for run in prices.project.every_run.values():
        runs.setdefault((run.spec.study, run.spec.scale, run.spec.method), run)
    rows = [
        [
            f"{study}/{scale}",
            method,
            f"{'' if (cost := prices.size(run)).exact else 'about '}{cost.parameters:,}",
            f"{cost.training / 1e9:.3g}",
            f"{cost.parameters * STATE_BYTES / 1e9:.3g}",
        ]
        for (study, scale, method), run in runs.items()
    ]
    heads = ["study/scale", "method", "parameters", "GFLOP\na token", "checkpoint,\nGB"]
    widths = [15, 22, None, None, None]
    table = _grid(heads, rows, left_columns=2, widths=widths)
    return f"{_fill(_WHAT_SIZES_ARE)}\n\n{table}"


_WHAT_DATA_IS = (
    "Hours are those of jobs that wait for one another, {shards} of `tokenize` {why}, with waits for net and disk; "
    "corpora are made side by side. Text is what is read at most, GB of disk what is written (documents twice, as "
    "while they are shuffled), RAM a job's at its peak."
)
_WHAT_SIZES_ARE = (
    "Parameters and operations of training a token, counted from each model's modules on the meta device (without "
    "memory or a GPU); where a row says *about*, from its sizes as if it were a baseline. A checkpoint holds weights "
    "and two moments in float32."
)


def _describe_data(prices: RunEstimator, corpora: list[_Corpus]) -> str:
    """A line for each pack of each corpus, and the rules of the corpus that takes longest."""
    if not corpora:
        return "Nothing is to be made."
    heads = ["corpus/pack", "tokens", "text,\nGB", "CPU-\nhours", "hours", "disk,\nGB", "most of\nthe time", ""]
    rows = []
    for corpus in corpora:
        for pack, (project, rules) in corpus.by_pack.items():
            text = data_stage.text_bytes(project, corpus.name)
            slowest, wall = data_stage.bottleneck(rules), data_stage.path_seconds(rules)
            share = f"{(slowest.seconds or 0.0) / wall:.0%}" if slowest and wall else "?"
            rows.append(
                [
                    f"{corpus.name}/{pack}",
                    _format_tokens(data_stage.tokens(project, corpus.name)),
                    "?" if text is None else _format_figure(text / 1e9),
                    _format_figure(sum(rule.cpu_seconds for rule in rules) / 3600),
                    _hours(wall),
                    _format_figure(sum(rule.disk for rule in rules) / 1e9),
                    slowest.rule if slowest else "?",
                    share,
                ]
            )
    first, chained = corpora[0], data_stage.count_chained_shards(prices.project)
    shards = f"{chained} shards" if chained > 1 else "a shard"
    why = "on each core" if prices.machine.device == "cpu" else "one after another as profiles/slurm packs them"
    intro = _fill(_WHAT_DATA_IS.format(shards=shards, why=why))
    return f"{intro}\n{_grid(heads, rows, left_columns=1)}\n\n{_tabulate_rules(prices, first)}"


def _tabulate_rules(prices: RunEstimator, corpus: _Corpus) -> str:
    """What every rule takes for a corpus, for each of its packs."""
    heads = ["rule", "pack", "jobs", "CPU-\nhours", "hours", "net,\nhours", "disk,\nhours", "disk,\nGB", "RAM,\nGB"]
    items = target_costs.price_items(prices)
    rows = [
        [rule.rule, pack, *_format_cells(rule)]
        for place in range(len(next(iter(corpus.by_pack.values()))[1]))
        for pack, (_, rules) in corpus.by_pack.items()
        for rule in [rules[place]]
    ]
    rows += [[items.rule, "(aside)", *_format_cells(items)]] if items else []
    _, rules = list(corpus.by_pack.values())[-1]
    table, slowest = _grid(heads, rows, left_columns=2), _fill(_describe_bottleneck(rules))
    return f"Rules of {corpus.name}, from {corpus.source}:\n{table}\n{slowest}"


def _format_cells(row: DataRule) -> list[str]:
    memory = f"{row.cost.megabytes / 1e3:.2g}{'*' if row.cost.extrapolated else ''}"
    times = [_format_figure(row.cpu_seconds / 3600), *map(_hours, (row.seconds, row.network, row.disk_seconds))]
    return [str(row.jobs), *times, _format_figure(row.disk / 1e9), memory]


def _describe_bottleneck(rules: list[DataRule]) -> str:
    """Which rule takes most of the time to the packs, and why."""
    rule, wall = data_stage.bottleneck(rules), data_stage.path_seconds(rules)
    if rule is None or not wall:
        return "Bottleneck: not known, since the configuration does not say how many tokens there are."
    total, share = rule.seconds or 0.0, (rule.seconds or 0.0) / wall
    sources = ((rule.network, "a network"), (rule.disk_seconds, "a disk"))
    waits = [f"{_hours(seconds)} h for {source}" for seconds, source in sources if seconds > 0.01 * total]
    waiting_seconds = rule.network + rule.disk_seconds
    why = f"waits {' and '.join(waits)}" if waiting_seconds > total / 2 else "computes, on one core a job"
    return f"Bottleneck: {rule.rule}, {share:.0%} of the time to the first training; it {why}."


def _tabulate_runs(classes: list[RunClass]) -> str:
    heads = ["study/scale", "size", "runs", "device-\nhours", "hours\na run", "limit", "jobs\na run", "GB a\nnode"]
    rows = [
        [
            f"{size_class.study}/{size_class.scale}",
            size_class.size,
            str(size_class.runs),
            _format_figure(size_class.device_hours),
            _format_figure(size_class.longest / 3600),
            f"{size_class.limit / 60:.3g}",
            _format_jobs(size_class),
            _format_figure(size_class.node_mb / 1e3),
        ]
        for size_class in classes
    ]
    return _grid(heads, rows, left_columns=2)


def _format_jobs(size_class: RunClass) -> str:
    """Over how many jobs a run is chained, and in brackets over how many a slower one, while anybody would count."""
    counted = size_class.jobs == size_class.jobs_slower or size_class.jobs >= 100
    return f"{size_class.jobs:,}" if counted else f"{size_class.jobs} ({size_class.jobs_slower})"


def _describe_memory(prices: RunEstimator, to_do: list[Run]) -> str:
    """What steps take of a device's memory, and which runs are therefore started otherwise."""
    lines = step_memory.describe(prices.machine, to_do)
    if not lines:
        return ""
    return "\n".join([f"MEMORY OF A DEVICE, {prices.machine.memory_gib:g} GiB", *map(_fill, lines)])


def _describe_disk(prices: RunEstimator, classes: list[RunClass], names: list[str]) -> str:
    corpora = sum(data_stage.corpus_bytes(prices.project, name) for name in names)
    states = sum(size_class.state for size_class in classes)
    rows = [
        ["corpora: documents, tokens, packs", _format_figure(corpora / 1e9)],
        [f"checkpoints, {KEPT} of each run (work/*/state)", _format_figure(states / 1e9)],
        [
            "weights, those for probes among them",
            _format_figure(sum(size_class.weights for size_class in classes) / 1e9),
        ],
    ]
    table = tabulate(rows, tablefmt="plain", disable_numparse=True, colalign=["left", "right"])
    return "\n".join([table, *map(_fill, describe_saving(prices, classes))])


def describe_saving(prices: RunEstimator, classes: list[RunClass]) -> list[str]:
    """Describe how fast a disk must save stopped runs of several GPUs, and for which this machine's is too slow."""
    speed, most, limit = prices.machine.disk_mb_per_second, dict[str, float](), target_costs.SAVE_SECONDS
    for size_class in classes:
        if size_class.devices > 1 and prices.machine.device == "cuda":
            most[size_class.size] = max(most.get(size_class.size, 0.0), size_class.checkpoint / 1e6)
    sizes = [f"{size} {_format_figure(most[size] / 1e3)} GB ({ceil(most[size] / limit)} MB/s)" for size in most]
    lines = [f"A run that is told to stop has {limit} s to save its checkpoint: {', '.join(sizes)}."] if sizes else []
    late_sizes = [f"{size} takes {most[size] / speed:.0f} s" for size in most if most[size] / speed > limit]
    if late_sizes:
        lines.append(
            f"WARNING: at {speed:g} MB/s {', '.join(late_sizes)}: killed, it repeats what came after its last "
            "checkpoint. Give it more time (docs/on-your-cluster.md)."
        )
    return lines


def _tabulate_studies(frame: pd.DataFrame) -> str:
    rows = frame[frame["target"].isin([WHOLE, "(all studies)"])]
    columns = {
        "study": rows["study"],
        "to do": rows["runs_to_do"].astype(str),
        "done": rows["runs_done"].astype(str),
        "training": rows["training_device_hours"].map(_format_figure),
        "scores,\nprobes": (rows["evaluation_device_hours"] + rows["probe_device_hours"]).map(_format_figure),
        "all": rows["device_hours"].map(_format_figure),
        "wall time": (3600 * rows["wall_hours"]).map(format_duration),
    }
    if rows["price"].notna().any():
        columns["price"] = rows["price"].map(format_number)
    return _grid(list(columns), list(map(list, zip(*columns.values()))), left_columns=1)


def list_assumptions(prices: RunEstimator, corpora: list[_Corpus]) -> list[str]:
    """Name what of a page's figures is assumed or extrapolated, each with the file that states it."""
    machine, project = prices.machine, prices.project
    names = [corpus.name for corpus in corpora]
    lines = [f"training speed: {describe_speed(prices)} (config/machines.yaml)"]
    lines.append(f"step times of methods: {machine.relative_in_words} (same file)")
    lines.append(
        f"evaluation, probes: {machine.evaluation_mfu:g} of {machine.evaluation_tflops:g} TFLOP/s, float32; a "
        f"job's start {machine.start_seconds.pretrain:g} s; no queues"
    )
    if sent := step_memory.describe_sent(machine, _list_unmeasured(prices)):
        lines.append(f"what ranks send one another takes no time here: in a step at most {sent} from each")
    if any(project.corpora[name].source == "hub" for name in names):
        lines.append(f"the hub: {job_needs.laws()['documents']['waits']['extrapolated']}")
    if names:
        lines.append(
            f"the disk: {machine.disk_mb_per_second:g} MB/s a job, assumed (same file), for every pass that was counted"
        )
        lines.append(f"* laws of {describe_measured_jobs()}, extrapolated (benchmarks/job_resources.yaml)")
    if any(not prices.size(run).exact for run in project.runs.values()):
        lines.append("operations of some runs, estimated from their models' sizes and not counted from the modules")
    return lines


def _list_unmeasured(prices: RunEstimator) -> list[tuple[Run, float]]:
    """The runs that are to do whose speed was not measured, with the bytes of their parameters."""
    runs = [run for run in prices.project.runs.values() if group(run) not in prices.calibration.speed]
    return [(run, prices.size(run).parameters * WEIGHT_BYTES) for run in runs if not prices.is_trained(run)]


def _describe_runs(prices: RunEstimator) -> str:
    machine, memory = prices.machine, describe_memory(prices)
    peak = f" Memory of a finished run at its most: {memory}." if memory else ""
    devices = ", ".join(f"{size} {machine.devices[size]}" for size in target_costs.CLASSES if size in machine.devices)
    return (
        f"Devices of a run: {devices}, of {machine.memory_gib:g} GiB. Jobs a run: slices of {machine.slice_hours:g} h "
        "at most that it is cut into (in brackets: if half as long again). Hours a run: the longest, and the limit of "
        f"a job; GB a node: memory of a job.{peak}"
    )


def _format_figure(value: float) -> str:
    if 0 < value < 0.01:
        return "<0.01"
    return f"{value / 1e6:.3g} M" if value >= 1e6 else format_number(value)


def _hours(seconds: float | None) -> str:
    return "?" if seconds is None else f"{seconds / 3600:.2f}"


def _format_tokens(value: float | None) -> str:
    if value is None:
        return "?"
    for unit, size in (("B", 1e9), ("M", 1e6)):
        if value >= 0.1 * size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e3:.3g} k"


def _fill(text: str, indent: int = 0) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)


def _grid(heads: list[str], rows: list[list[str]], *, left_columns: int, widths: list[int | None] | None = None) -> str:
    """A table whose first columns are `left_columns`, aligned to the left."""
    align = ["left"] * left_columns + ["right"] * (len(heads) - left_columns)
    return tabulate(rows, headers=heads, tablefmt="simple", disable_numparse=True, colalign=align, maxcolwidths=widths)

"""Estimates what each target costs on a named machine, before it is run (``plumbline plan``)."""

from __future__ import annotations

import argparse
import json
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from msgspec import structs

from plumbline.core.command_line import HIDDEN, Parser, positive, run
from plumbline.core.csv_text import write_frame
from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import atomic_write_text
from plumbline.plan import machines, model_counts, plan_page, stage_page
from plumbline.plan.run_estimate import estimator
from plumbline.plan.target_costs import make_table
from plumbline.project import Project, load
from plumbline.project.paths import RESULTS
from plumbline.specs.study_config import Run
from plumbline.specs.yaml_files import PRESETS, load_config


def arguments() -> Parser:
    """Build the command-line parser of `plumbline plan`."""
    parser = Parser(__doc__)
    targets = "a table or figure by its file, such as results/table2.csv; its row alone is shown (default: all)"
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=targets)
    parser.add_argument("--preset", choices=PRESETS, help="default: config/config.yaml's")
    machine = (
        f"an entry of config/machines.yaml (default: config/config.yaml's, and {machines.PAPER_MACHINE} at paper where "
        "that is a processor)"
    )
    parser.add_argument("--machine", help=machine)
    nodes = "wall time on N nodes at once, of as many GPUs each as the entry's devices.node (default: devices_at_once)"
    parser.add_argument("--nodes", type=positive, metavar="N", help=nodes)
    parser.add_argument("--device-hour-price", type=float, help="price of a device-hour, in any currency")
    config_help = "as snakemake --config: a part of a nested value leaves the others unchanged"
    parser.add_argument("--config", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=config_help)
    profiles = "as for snakemake, in the same order: the configuration in these profiles"
    parser.add_argument("--profile", action="append", default=[], metavar="PROFILE", help=profiles)
    parser.add_argument("--configuration-json", metavar="JSON", help=HIDDEN)
    views = "what is shown: stages (default at paper), targets (default elsewhere), or sizes of the models"
    parser.add_argument("--by", choices=("stages", "targets", "sizes"), help=views)
    parser.add_argument("--out", type=Path, metavar="PLAN.csv", help="also write PLAN.csv and PLAN.md")
    return parser


def main() -> None:
    """Run `plumbline plan`: print the plan for a terminal, by stage at the preset paper, else by target.

    With ``--out`` the plan is also written, with all columns, as csv and md.

    Raises:
        PlumblineError: ``--out`` is not a CSV, or the configuration, the machine or a target cannot be meant.
    """
    options = arguments().parse_args()
    if options.out is not None and options.out.suffix != ".csv":
        raise PlumblineError(f"--out {options.out} must end in .csv; the page next to it ends in .md")
    config = _load_configuration(options)
    project = load(config)  # checks what the machine is called, too
    machine = machines.load(config["machine"])
    if options.device_hour_price is not None:
        machine = machines.replace_price(machine, options.device_hour_price)
    if options.nodes is not None:
        targets = [] if options.out else options.targets  # that file has all of them
        machine = _replace_nodes(machine, options.nodes, _list_runs(project, targets, config["main_study"]))
    counts = model_counts.update(Path(project.paths.counts), project.every_run.values())
    prices = estimator(project, machine, sizes=model_counts.ModelCostLookup(counts))
    frame = make_table(prices)
    view = options.by or ("stages" if project.name == "paper" and not options.targets else "targets")
    if options.targets and view != "targets":
        raise PlumblineError(f"--by {view} is of a whole plan; leave it or {' '.join(options.targets)} out")
    if view == "stages" and not project.runs:
        raise PlumblineError("--by stages is of what whole studies train, which is nothing here; see --by targets")
    if view == "sizes":
        print(stage_page.tabulate_sizes(prices))
    elif options.targets:
        rows = _choose_rows(frame, options.targets, config["main_study"], project.name)
        print(plan_page.terminal_of_targets(prices, rows))
    else:
        print((stage_page if view == "stages" else plan_page).terminal(prices, frame))
    if options.out:
        text = plan_page.markdown(prices, frame)
        atomic_write_text(options.out.with_suffix(".md"), f"# What each target costs\n\n{text}\n")
        atomic_write_text(options.out, write_frame(frame))


def _replace_nodes(machine: machines.Machine, nodes: int, runs: Iterable[Run]) -> machines.Machine:
    """Copy a machine with the devices of so many nodes at once.

    Raises:
        PlumblineError: it is a processor, or its entry states no devices of a node, or a run takes more than there are.
    """
    prefix = f"--nodes {nodes}: config/machines.yaml: {machine.name}"
    if machine.device == "cpu":
        raise PlumblineError(f"{prefix} is a processor; name an entry of GPUs (--machine {machines.PAPER_MACHINE})")
    if "node" not in machine.devices:
        raise PlumblineError(f"{prefix}.devices has no number for the size 'node'; add it")
    devices = nodes * machine.devices["node"]
    if large_runs := [run for run in runs if machine.devices_of(run) > devices]:
        largest_run = max(large_runs, key=machine.devices_of)
        raise PlumblineError(
            f"{prefix}.devices.{largest_run.size}: {largest_run.key} takes {machine.devices_of(largest_run)} devices, "
            f"and there are {devices}; name more nodes, or an entry whose runs of that size take fewer"
        )
    return structs.replace(machine, devices_at_once=devices)


def _list_runs(project: Project, targets: Sequence[str], main_study: str) -> list[Run]:
    """List the runs of the targets that are named, or of all studies where none is; of an unknown target, none."""
    if not targets:
        return list(project.runs.values())
    studies = {study.name: study for study in project.planned_studies}
    named_targets = [_split_target(target, studies, main_study) for target in targets]
    entries = [
        (studies[study], studies[study].definition["targets"].get(name))
        for study, name in named_targets
        if study in studies
    ]
    return [run for study, entry in entries if entry for run in study.group(*entry["runs"])]


def _split_target(target: str, studies: Container[str], main_study: str) -> tuple[str, str]:
    """The study and the name of a target; one directly below the folder of results is of the main study."""
    path = Path(target)
    folder = path.parent.name
    return main_study if folder in ("", RESULTS, *PRESETS) and folder not in studies else folder, path.stem


def _choose_rows(frame: pd.DataFrame, targets: Sequence[str], main_study: str, preset: str) -> pd.DataFrame:
    """Choose the rows of targets, in the order asked for.

    Raises:
        PlumblineError: a target of another preset, of a study that is not planned, or one that it does not have.
    """
    rows, studies = [], set(frame["study"])
    for target in targets:
        if other_presets := set(Path(target).parts[:-1]) & set(PRESETS) - {preset}:
            raise PlumblineError(f"{target} is planned at preset {preset}: add --preset {other_presets.pop()}")
        study, name = _split_target(target, studies, main_study)
        if study not in studies:
            raise PlumblineError(
                f"{target}: no study {study!r} is planned{nearest(study, studies)} (planned: {sorted(studies)}); name "
                "one of these, or change `studies` (--config)"
            )
        names = list(frame.loc[frame["study"] == study, "target"])
        if name not in names:
            raise PlumblineError(f"{target}: {study} has no target {name!r}{nearest(name, names)}; see --by targets")
        rows.append(frame[(frame["study"] == study) & (frame["target"] == name)])
    return pd.concat(rows)


def _load_configuration(options: argparse.Namespace) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(options.configuration_json) if options.configuration_json else load_config()
    machine_named = options.machine is not None or options.configuration_json
    if options.profile or options.config:
        from plumbline.project import config_arguments

        files = map(config_arguments.profile_file, options.profile)
        of_profiles = [word for file in files for word in config_arguments.profile_words(file)]
        config = config_arguments.change_config(config, [*of_profiles, *options.config])
        machine_named = machine_named or any(word.startswith("machine=") for word in [*of_profiles, *options.config])
    if options.preset:
        config["preset"] = options.preset
    if options.machine is not None:
        config["machine"] = options.machine
    return machines.for_preset(config, machine_is_named=bool(machine_named))


if __name__ == "__main__":
    run(main)

"""Every table and figure is a target, and finds its runs at every preset: a group that a preset leaves out has another
in its place."""

from __future__ import annotations

import itertools
from collections import defaultdict
from functools import cache

import pytest

from plumbline.project import Project, load
from plumbline.specs import study_parts
from plumbline.specs.yaml_files import PRESETS, load_config
from tests.studies.made_targets import STUDIES


@cache
def project(preset: str) -> Project:
    return load(load_config() | {"preset": preset, "mine": "", "experiment": {}})


def list_overlooked(study: str, read: dict[str, list[str]]) -> list[str]:
    """Presets at which a target has no run at a scale where it has some elsewhere, and where the study has such runs.

    Args:
        read: for each target, the groups of runs that it reads.
    """
    runs = {preset: [run for run in project(preset).runs.values() if run.spec.study == study] for preset in PRESETS}
    messages = []
    for target, groups in read.items():
        methods: dict[str, set[str]] = defaultdict(set)
        for run in itertools.chain(*runs.values()):
            if set(groups) & set(run.groups):
                methods[run.spec.scale].add(run.spec.method)
        for preset in PRESETS:
            for scale, needed_methods in methods.items():
                there = [run for run in runs[preset] if run.spec.scale == scale and run.spec.method in needed_methods]
                if there and not any(set(groups) & set(run.groups) for run in there):
                    messages.append(f"{target} at {preset} reads none of {len(there)} runs at {scale}")
    return messages


@pytest.mark.parametrize("study", STUDIES)
def test_every_table_and_figure_is_a_target(study: str) -> None:
    targets = project("demo").studies[study].definition["targets"].items()
    for kind in ("table", "figure"):
        target_names = sorted(name for name, target in targets if target["kind"] == kind)
        assert target_names == study_parts.targets(study, f"{kind}s")


@pytest.mark.parametrize("study", STUDIES)
def test_every_target_reads_runs_that_are_there_at_every_preset(study: str) -> None:
    targets = project("demo").studies[study].usual_targets
    assert list_overlooked(study, {name: target["runs"] for name, target in targets.items()}) == []


def test_a_figure_of_a_group_that_a_preset_lacks_is_seen() -> None:
    assert list_overlooked("transfer", {"fig1": ["large"]}) == ["fig1 at evening reads none of 14 runs at large"]

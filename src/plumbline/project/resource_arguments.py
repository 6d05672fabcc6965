"""Puts together what Snakemake's command line and its profiles say of the resources of jobs.

Snakemake takes a profile's options for defaults of its command line: `--set-resources tokenizer:mem_mb=20000` drops a
profile's whole `set-resources:`, and with it the GPUs, launchers and time limits of every training, without a word; so
does a later profile that names one of them. Here every resource survives that nothing later names, and so with
`set-threads` and `default-resources`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.project import config_arguments, snakemake_internals

#: Option, which is also a profile's key -> its other spelling on the command line, if any.
OPTIONS = {"set-resources": (), "set-threads": (), "default-resources": ("--default-res",)}


def merge_resource_arguments(workflow: Any) -> None:
    """Make a workflow use the resources of all profiles and of its command line, the last word of each winning.

    To be called before the first rule. The processes that run jobs are given what is in force here.

    Raises:
        PlumblineError: the words cannot be told from the command line.
    """
    if not (snakemake_internals.is_main_process(workflow) and config_arguments.is_snakemake_command()):
        return
    argv = sys.argv[1:]
    profiles = snakemake_internals.profile_files(argv)
    known = snakemake_internals.resources_in_force(workflow)
    last, merged = {}, {}
    for option in OPTIONS:
        told = _told(argv, profiles, option)
        last[option] = told[-1] if told else []
        merged[option] = list({word.partition("=")[0]: word for words in told for word in words}.values())
    if snakemake_internals.parsed_resources(last) != known:
        raise PlumblineError(
            f"which words of the command line belong to {', '.join(f'--{option}' for option in OPTIONS)} cannot be "
            "determined, nor what of the profiles they leave; write each option once and in full, as "
            "--set-resources RULE:NAME=VALUE ..."
        )
    snakemake_internals.use_resources(workflow, merged)


def _told(argv: Sequence[str], profiles: Sequence[Path], option: str) -> list[list[str]]:
    """The words of each profile for an option, in the order of the profiles, and those of the command line."""
    of_profiles = [config_arguments.profile_words(path, option) for path in profiles]
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(f"--{option}", *OPTIONS[option], nargs="*", action="append", default=[], dest="given")
    return [words for words in (*of_profiles, *parser.parse_known_args(list(argv))[0].given) if words]

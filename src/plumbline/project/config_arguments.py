"""Puts together what Snakemake's command line and its profiles state of the configuration, and of jobs' resources.

Snakemake takes a profile's options for defaults of its command line: `--config work=/scratch` drops a profile's whole
`config:`, a later profile that of an earlier one, and a second `--config` the first. On a cluster that plans another
preset than the profile names, or another machine, without a word. `--set-resources tokenizer:mem_mb=20000` drops a
profile's `set-resources:` likewise, and with it the GPUs, launchers and time limits of every training. Here every word
survives that nothing later names, of `set-threads` and `default-resources` too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.project import snakemake_internals
from plumbline.specs.yaml_files import parse_yaml, read_yaml

CONFIG = Path("config") / "config.yaml"
#: Option of resources, which is also a profile's key -> its other spelling on the command line, if any.
RESOURCES = {"set-resources": (), "set-threads": (), "default-resources": ("--default-res",)}


def merge_config_arguments(workflow: Any) -> None:
    """Make a workflow use the KEY=VALUE words of all profiles and of every `--config`.

    To be called before `configfile:`. The processes that run jobs read no profiles. They are given what is in force
    here on their command line, by every executor, and change nothing.

    Raises:
        PlumblineError: the words cannot be found in the command line, or a file's YAML cannot be meant.
    """
    for path in (CONFIG, *snakemake_internals.config_files(workflow)):
        if path.exists() and not isinstance(read_yaml(path), dict):
            raise PlumblineError(f"{path}: top level: not a mapping; write `key: value`, a line each")
    if snakemake_internals.is_main_process(workflow) and is_snakemake_command():
        pairs = collect_words(sys.argv[1:], snakemake_internals.config_words(workflow))
        snakemake_internals.use_config(workflow, parse_words(pairs), pairs)


def merge_resource_arguments(workflow: Any) -> None:
    """Make a workflow use the resources of all profiles and of its command line, the last word of each winning.

    To be called before the first rule. The processes that run jobs are given what is in force here.

    Raises:
        PlumblineError: the words cannot be found in the command line.
    """
    if not (snakemake_internals.is_main_process(workflow) and is_snakemake_command()):
        return
    argv = sys.argv[1:]
    profiles = snakemake_internals.profile_files(argv)
    in_force = snakemake_internals.resources_in_force(workflow)
    last, merged = {}, {}
    for option in RESOURCES:
        uses = _collect_option(argv, profiles, option)
        last[option] = uses[-1] if uses else []
        merged[option] = list({word.partition("=")[0]: word for use in uses for word in use}.values())
    if snakemake_internals.parse_resources(last) != in_force:
        raise PlumblineError(
            f"which words of the command line belong to {', '.join(f'--{option}' for option in RESOURCES)} cannot be "
            "determined, nor what of the profiles they leave; write each option once and in full, as "
            "--set-resources RULE:NAME=VALUE ..."
        )
    snakemake_internals.use_resources(workflow, merged)


def _collect_option(argv: Sequence[str], profiles: Sequence[Path], option: str) -> list[list[str]]:
    """The words of each profile for an option, in the order of the profiles, and those of the command line."""
    of_profiles = [profile_words(path, option) for path in profiles]
    return [use for use in (*of_profiles, *_read_option(argv, option, *RESOURCES[option])) if use]


def is_snakemake_command() -> bool:
    """Whether `sys.argv` are Snakemake's words; what uses it from Python has no profiles."""
    program = Path(sys.argv[0])
    return program.stem == "snakemake" or program.parts[-2:] == ("snakemake", "__main__.py")


def collect_words(argv: Sequence[str], in_force: list[str]) -> list[str]:
    """Collect the KEY=VALUE words of all profiles in their order, then those of the command line: a later word wins.

    Args:
        argv: Snakemake's command line, without the program.
        in_force: the words that Snakemake itself uses.

    Raises:
        PlumblineError: Snakemake goes by other words than this reads.
    """
    files = snakemake_internals.profile_files(argv)
    of_profiles = [use for use in map(profile_words, files) if use]
    uses = _read_option(argv, "config", "-C")
    if in_force != (uses[-1] if uses else of_profiles[-1] if of_profiles else []):
        raise PlumblineError(
            f"which words of the command line belong to --config cannot be determined ({in_force} or {uses}), nor "
            "what of the "
            f"`config:` of {[str(path) for path in files]} they leave; write: --config KEY=VALUE KEY=VALUE ..."
        )
    return [word for use in (*of_profiles, *uses) for word in use]


def profile_file(profile: str | Path) -> Path:
    """Find the file of a profile that is named as for Snakemake: a directory, a file, or a name that it searches for.

    Raises:
        PlumblineError: there is none.
    """
    path = snakemake_internals.find_profile(str(profile))
    if path is None:
        raise PlumblineError(f"--profile {profile}: no config.v9+.yaml in that directory")
    return path


def profile_words(path: Path, key: str = "config") -> list[str]:
    """Read the words of a profile's `config:`, or of another of its keys, as Snakemake reads them.

    Raises:
        PlumblineError: the file is not YAML, has a key twice, or an expression of it cannot be worked out here.
    """
    from configargparse import ConfigFileParserException

    read_yaml(path)
    try:
        arguments = snakemake_internals.read_profile(path).get(key, [])
    except ConfigFileParserException as error:
        # Snakemake keeps our message and not the error: what stands after its name is the remedy.
        _, ours, remedy = str(error).partition("PlumblineError: ")
        raise PlumblineError(remedy if ours else f"--profile {path}: {error}; fix that file") from error
    return [arguments] if isinstance(arguments, str) else [str(word) for word in arguments]


def _read_option(argv: Sequence[str], option: str, *spellings: str) -> list[list[str]]:
    """The words of each time that an option stands on a command line; `spellings`: its other spellings."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(f"--{option}", *spellings, nargs="*", action="append", default=[], dest="given")
    uses: list[list[str]] = parser.parse_known_args(list(argv))[0].given
    return uses


def parse_words(arguments: Iterable[str]) -> dict[str, Any]:
    """Parse KEY=VALUE words into a configuration as Snakemake does: a part of a nested value leaves its other parts
    alone.

    Raises:
        PlumblineError: a word is not of that form, has a key twice, or YAML takes a part of it for a comment or the
            like.
    """
    config: dict[str, Any] = {}
    for word in arguments:
        try:
            entry = snakemake_internals.parse_config_word(word)
        except (ValueError, RecursionError) as error:
            raise PlumblineError(f"--config {word[:80]}: write KEY=VALUE ({error})") from error
        key, _, text = word.partition("=")
        if isinstance(entry[key], str) and entry[key] != text.strip("'\""):
            raise PlumblineError(
                f"--config {word[:80]}: YAML reads {entry[key][:80]!r} there (a comment begins with ` #`, and &, ! and "
                "spaces at an end mean something else); write it into config/config.yaml, between quotation marks"
            )
        if not isinstance(entry[key], str):  # of a key that stands twice, Snakemake takes the last
            parse_yaml(text, f"--config {key}=...")
        _update(config, entry)
    return config


def change_config(config: dict[str, Any], arguments: Iterable[str]) -> dict[str, Any]:
    """Change a configuration by KEY=VALUE words, as `snakemake --config` would.

    Raises:
        PlumblineError: a word is not of that form.
    """
    _update(config, parse_words(arguments))
    return config


def _update(config: dict[str, Any], change: dict[str, Any]) -> None:
    from snakemake.utils import update_config

    update_config(config, change)

"""Makes runs as jobs of a Snakemake profile, each the job of a small Snakefile that lies next to this file.

Snakemake is imported when runs are made, and not before: no other folder needs it.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from plumbline.core import locks, package_data
from plumbline.core.called_program import call
from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.pipeline_packages import explain_missing_package
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.own_trainer.processes import say_progress
from plumbline.verdict.own_trainer.requests import interruption_file
from plumbline.verdict.own_trainer.trainer_file import TrainerFile

SNAKEFILE = Path(__file__).with_name("Snakefile")
#: Minutes that a job may take beyond its run's timeout: to start, to read its data, to end.
MARGIN = 10
#: Attempts after the first at a run that the machine broke, where the profile states no number.
RETRIES = "3"
#: Snakemake states what it submits and what fails, and neither its machine nor how far it is.
_WORDS = ("--nolock", "--rerun-incomplete", "--keep-going", "--quiet", "host", "rules", "progress")


@dataclass(frozen=True)
class ProfileRuns:
    """What makes the runs of a folder whose `plumbline.toml` names a profile, or several, the last one strongest.

    One Snakemake at a time makes a folder's runs. One whose `try` was killed goes on, and is waited for.
    """

    file: TrainerFile
    folder: Folder

    def __post_init__(self) -> None:
        try:
            importlib.import_module("snakemake")
        except ModuleNotFoundError as error:
            raise explain_missing_package(error, f"{self.file.path}: where.profile") or error from None

    @cached_property
    def profiles(self) -> list[Path]:
        """The profiles' files: in the folder, where Snakemake searches for its own, or with Plumbline.

        Raises:
            PlumblineError: there is none of a name.
        """
        from plumbline.project import snakemake_internals

        ours, folders = package_data.folder() / "profiles", []
        for name in (word.strip() for word in self.file.where.profile.split(",")):
            tried = (str(self.file.folder / name), name, str(ours / name))
            path = next(filter(None, map(snakemake_internals.find_profile, tried)), None)
            if path is None:
                names = sorted(each.name for each in ours.iterdir() if each.is_dir())
                raise PlumblineError(
                    f"{self.file.path}: where.profile: there is no profile {name!r}{nearest(name, names)}: neither "
                    f"{self.file.folder / name}, nor one of your own for Snakemake, nor one of {names}"
                )
            folders.append(path.absolute())
        return folders

    @cached_property
    def settings(self) -> dict[str, object]:
        """What the profiles contain.

        Raises:
            PlumblineError: one cannot be read.
        """
        from configargparse import ConfigFileParserException

        from plumbline.project import snakemake_internals

        merged: dict[str, object] = {}
        for path in self.profiles:
            try:
                merged |= snakemake_internals.read_profile(path)
            except ConfigFileParserException as error:
                raise PlumblineError(f"{path}: {error}; fix that file") from error
        return merged

    @property
    def at_once(self) -> int:
        """How many runs are made concurrently: the profile's `jobs`, or else its `cores`; fewer where
        `plumbline.toml` limits it.

        Raises:
            PlumblineError: it contains neither, or cannot be read.
        """
        number = str(self.settings.get("jobs") or self.settings.get("cores"))
        if not number.isdecimal() or not int(number):
            raise PlumblineError(f"{self.profiles[-1]}: says no number of `jobs`; write how many may run at once")
        return min(int(number), self.file.where.at_once or int(number))

    def wait_for_killed_command(self) -> None:
        """Wait for the runs of a `try` that was killed, so that their results can be read."""
        with self._hold_jobs():
            pass

    def __call__(self, requests: Sequence[Path], tell: Callable[[str], None]) -> Iterator[Path]:
        """Have requests made, and give each one when Snakemake has ended.

        Raises:
            PlumblineError: Snakemake did not come to a run.
            KeyboardInterrupt: Snakemake was interrupted.
            SystemExit: after a SIGTERM.
        """
        seconds = self.file.run.timeout_seconds
        minutes = 0 if seconds is None else math.ceil(seconds / 60) + MARGIN
        home = self.folder.own
        results = {path: path.with_name(path.name.replace(".request.", ".result.")) for path in requests}
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE), "--directory", str(home)]
        command += [word for path in self.profiles for word in ("--profile", str(path))]
        # Not in the Snakefile: the Snakemake within a job would then try again as well, while the job is being ended.
        command += [] if "retries" in self.settings else ["--retries", RETRIES]
        command += ["--workflow-profile", "none", *_WORDS, "--config", f"minutes={minutes}"]
        with self._hold_jobs() as lock:
            targets = [str(path.relative_to(home)) for path in results.values()]
            code = call([*command, "--", *targets], keeps=[lock], meanwhile=lambda: _say(results, tell))
        lost_count = 0
        for path, result in results.items():
            if result.exists() or interruption_file(result).exists():
                yield path
            else:
                lost_count += 1
        if lost_count:
            raise PlumblineError(
                f"{lost_count} of {len(results)} runs were not made, for a reason of {self.file.where.profile} and not "
                f"of their arm: Snakemake ended with {code}, as it says above; put that right and repeat the command: "
                "what is finished is used"
            )

    def _hold_jobs(self) -> AbstractContextManager[int]:
        """Hold the folder's jobs by an open file, which Snakemake then holds too."""
        self.folder.make()
        path = self.folder.own / "jobs.lock"
        message = "a try was killed here, and its Snakemake still makes the runs that it was at"
        return locks.hold(path, f"{message} (it has {path} open): waiting for it", must=True)


def _say(results: Mapping[Path, Path], tell: Callable[[str], None]) -> None:
    """Report how far the runs are that have not ended."""
    for path, result in results.items():
        if not result.exists():
            say_progress(path, tell)

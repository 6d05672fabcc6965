"""Lists the runs that a target expects: those of the study's configuration, or those on disk."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.files import parse_json
from plumbline.specs.study_config import Study, hash_expected_runs

#: On the command line: the runs that are there, whichever spec or version they were made with.
FOUND = "found"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedRun:
    """A run that a target needs: its folder (``study/scale/method/sSEED``) and the spec that it must have.

    `instead_of`: the run id by the present configuration, if `run_id` is another one that lies in its place. `scores`:
    the key of its scores, if that is not its own.
    """

    key: str
    run_id: str
    groups: tuple[str, ...] = ()
    instead_of: str = ""
    scores: str = ""

    @property
    def scores_key(self) -> str:
        """The key under which its scores lie."""
        return self.scores or self.key

    @property
    def study(self) -> str:
        """The study that the run belongs to."""
        return self.key.split("/")[0]

    @property
    def scale(self) -> str:
        """The run's scale."""
        return self.key.split("/")[1]

    @property
    def method(self) -> str:
        """The run's method."""
        return self.key.split("/")[2]

    @property
    def seed(self) -> int:
        """The run's init seed."""
        return int(self.key.split("/")[3].removeprefix("s"))


def list_expected_runs(source: str | None, study: Study, groups: Iterable[str], work: str | Path) -> list[ExpectedRun]:
    """List the runs that are expected of `groups`: the study's own (None), or those below `work` with any spec
    (`found`).

    Raises:
        PlumblineError: another source; or the outcome.json in the place of a run names no run.
    """
    if source not in (None, FOUND):
        raise PlumblineError(f"expected_runs: {source!r} is neither None, the study's own runs, nor {FOUND!r}")
    expected = [
        ExpectedRun(key=run.key, run_id=run.spec.run_id, groups=run.groups, scores=run.scores_key)
        for run in study.group(*groups)
    ]
    return expected if source is None else [_find_run_on_disk(run, Path(work)) for run in expected]


def require_expected(digest: str, study: Study, groups: Iterable[str]) -> None:
    """Refuse to read other runs than those that the job was planned with, whose digest it was given.

    Raises:
        PlumblineError: configuration or code was edited between the plan and the job.
    """
    if hash_expected_runs(study.group(*groups)) != digest:
        raise PlumblineError(
            f"the runs of {study.name} differ from those that this job was planned with: {study.file}, what it "
            "extends, its corpus or a component's code was edited since; "
            "start Snakemake again"
        )


def _find_run_on_disk(run: ExpectedRun, work: Path) -> ExpectedRun:
    """Return the run that lies in the folder where `run` is expected."""
    path = work / "runs" / run.key / "outcome.json"
    if not path.exists():
        return run
    try:
        run_id = parse_json(path.read_text(encoding="utf-8"))["run_id"]
    except (json.JSONDecodeError, KeyError) as error:
        raise PlumblineError(f"{path} names no run ({error!r}); remove the run's directory and rerun it") from error
    if run_id == run.run_id:
        return run
    return dataclasses.replace(run, run_id=run_id, instead_of=run.run_id)

"""Names the pages of the verdict on a user's own file, and the files that they read."""

from __future__ import annotations

from pathlib import Path

from plumbline.core.errors import PlumblineError, nearest
from plumbline.project.configuration import Configuration
from plumbline.project.paths import VERDICTS, WorkflowPaths
from plumbline.specs.study_config import hash_expected_runs


class VerdictPages:
    """The verdict that a configuration asks for; without a user's own file (`mine`) there is none."""

    def __init__(self, configuration: Configuration, paths: WorkflowPaths) -> None:
        self.configuration, self.paths = configuration, paths

    @property
    def pages(self) -> list[str]:
        """The verdict's page, picture and numbers, as files below a folder of results; none without a user's own
        file.
        """
        return (
            [f"{VERDICTS}/{self.configuration.mine.name}{ending}" for ending in (".md", ".svg", ".json")]
            if self.configuration.mine
            else []
        )

    def files(self) -> list[str]:
        """List the files that the verdict's page reads: runs of its study, their scores, and printed numbers."""
        if self.configuration.mine is None:
            return []
        runs = list(self.configuration.mine.study.runs.values())
        names = ("outcome.json", "manifest.json", "metrics.parquet")
        paths = [self.paths.run(run, name) for run in runs for name in names]
        paths += [self.paths.scores(run) for run in runs if run.suite]
        return paths + [self.configuration.mine.asked["published"]] * bool(self.configuration.mine.asked["published"])

    def hash_runs(self) -> str:
        """Hash the runs that the verdict's page needs."""
        return hash_expected_runs(list(self.configuration.mine.study.runs.values())) if self.configuration.mine else ""

    def refuse(self, path: str) -> None:
        """Refuse a path of a verdict's page that no user's file was given for; other paths pass.

        Raises:
            PlumblineError: the path is of such a page.
        """
        parts = path.split("/")[1:]
        if VERDICTS not in parts[:2] or len(parts) > 3:
            return
        name = Path(path).stem
        if self.configuration.mine is None:
            raise PlumblineError(f"{path} is a verdict on your own file: add --config mine=my/{name}.yaml")
        raise PlumblineError(
            f"{path}: the verdict on {self.configuration.mine.path} is "
            f"{'/'.join(path.split('/')[:-1])}/{self.configuration.mine.name}.md"
            f"{nearest(name, [self.configuration.mine.name])}"
        )

"""Names the files that the report shows."""

from __future__ import annotations

from plumbline.project.configuration import Configuration
from plumbline.project.paths import WorkflowPaths
from plumbline.project.study_targets import StudyTargets
from plumbline.project.verdict_pages import VerdictPages


class ReportFiles:
    """Names the files that the report of a configuration is made from."""

    def __init__(
        self, configuration: Configuration, paths: WorkflowPaths, targets: StudyTargets, verdicts: VerdictPages
    ) -> None:
        self.configuration, self.paths, self.targets, self.verdicts = configuration, paths, targets, verdicts

    def files(self) -> list[str]:
        """List the files of the report: every product of the configured studies, the audit, and the verdict that is
        asked for.
        """
        made = [path for study in self.configuration.studies for path in self.targets.products(study)]
        verdict = [path for path in self.verdicts.pages if path.endswith(".md")]
        return [f"{self.paths.results}/{path}" for path in [*made, "audit.csv", *verdict]]

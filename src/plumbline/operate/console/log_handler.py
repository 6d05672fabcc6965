"""Hands the records of Snakemake's log to the display, so that a person sees what matters of a run, and no more.

Snakemake finds the handler through the package `snakemake_logger_plugin_plumbline`. Where a person asks for Snakemake's
own words (a dry run, --verbose, --printshellcmds, --debug-dag, --quiet) they get them as ever, but of a dry run of very
many jobs, which is a page (`dry_run_page`) unless more or less is requested; the log file in .snakemake/log always has
them all. snakemake-logger-plugin-rich draws bars as well; it replaces the job table of a dry run, and knows neither
runs nor their steps, nor how long anything takes.
"""

from __future__ import annotations

import re
import sys
from logging import INFO, WARNING, LogRecord, makeLogRecord
from os.path import relpath
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

#: Lines of Snakemake's that are passed on although they are not warnings.
_TOLD = ("Nothing to be done", "Terminating processes on user request", "Will exit after finishing")
#: Lines that repeat what was printed of the failed job, and two that help nobody.
_DROPPED = re.compile(
    r"Assuming unrestricted shared filesystem usage|Config file .* is extended|Exiting because a job execution failed|"
    r"WorkflowError:\nAt least one job did not complete successfully|RuleException:\nCalledProcessError"
)
#: How Snakemake names a job that ended well and did not make its outputs.
_GIVEN_UP = re.compile(r"^Job (\d+) +completed successfully, but", re.MULTILINE)


class LogHandler(LogHandlerBase):
    """The logger plugin `plumbline` of Snakemake: hands records to the console, or to Snakemake's own handler."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        # Snakemake imports every plugin, whichever it uses: what costs time is imported when this one is used.
        from plumbline.operate.console import dry_run_page
        from plumbline.operate.console.job_display import JobDisplay
        from plumbline.project import snakemake_messages

        settings = self.common_settings
        self.default, self.formatter = snakemake_messages.own_log_handler(settings)
        self.plain = bool(settings.dryrun) or not dry_run_page.are_usual(settings)
        self.page = dry_run_page.DryRunPage() if dry_run_page.is_requested(settings) else None
        self.long = False
        self.console = JobDisplay(sys.stderr, color=not settings.nocolor)
        self.begun = False
        self.told = ""

    def emit(self, record: LogRecord) -> None:
        """Show a person what a record means.

        If that fails, the failure is printed, and records are shown as Snakemake would.
        """
        try:
            if self.page and self._in_page(record):
                return
        except Exception as problem:
            self.page = None
            print(f"warning: no page of this dry run: {type(problem).__name__}: {problem}", file=sys.stderr)
        if not self.plain:
            try:
                self._tell(record)
                return
            except Exception as problem:
                self.plain = True
                self.console.abandon()
                print(f"warning: no more short messages: {type(problem).__name__}: {problem}", file=sys.stderr)
        self.default.handle(record)

    def _in_page(self, record: Any) -> bool:
        """Whether a record of a dry run is a part of its page, and not shown by itself. The page comes after the last
        job, where Snakemake counts the jobs again.
        """
        assert self.page is not None
        event = getattr(record, "event", None)
        if event == LogEvent.RUN_INFO and not self.page.kinds:
            self.long = sum(record.stats.values()) - record.stats.get("total", 0) > self.page.readable
            return False
        if not self.long:
            return False
        if event == LogEvent.JOB_INFO:
            self.page.add(record)
        elif event == LogEvent.RUN_INFO:
            self.default.handle(makeLogRecord({"msg": self.page.text(), "levelno": INFO, "levelname": "INFO"}))
        elif event not in (LogEvent.GROUP_INFO, LogEvent.SHELLCMD) and not record.getMessage().startswith("Reasons:"):
            return False
        return True

    def _tell(self, record: Any) -> None:
        event, console, text = getattr(record, "event", None), self.console, record.getMessage()
        if event == LogEvent.WORKFLOW_STARTED:
            self.begun = True
        elif not self.begun:  # nothing is carried out (yet): the answers of --lint, --unlock and the like
            if not _DROPPED.match(text):
                self.default.handle(record)
        elif event == LogEvent.RUN_INFO:
            console.note_plan(record.stats)
        elif event == LogEvent.JOB_INFO:
            console.show_start(record)
        elif event == LogEvent.JOB_FINISHED:
            console.show_finish(record.job_id)
        elif event == LogEvent.GROUP_ERROR or (event == LogEvent.JOB_ERROR and not record.indent):
            console.show_failure(record)
        elif hasattr(record, "plumbline_forecast"):
            console.note_forecast(record)
        elif event in (None, LogEvent.ERROR):
            self._pass_on(record, text)

    def _pass_on(self, record: LogRecord, text: str) -> None:
        console = self.console
        if text.startswith("Complete log(s): "):
            console.logfile = relpath(text.removeprefix("Complete log(s): "))
        elif (match := _GIVEN_UP.search(text)) and console.show_missing_output(int(match[1]), text):
            return
        elif text != self.told and (text.startswith(_TOLD) or (record.levelno >= WARNING and not _DROPPED.match(text))):
            self.told = text  # a request to stop comes once from each signal that arrives
            console.say(self.formatter.format(record))

    def close(self) -> None:
        """Let the console print how it ended: Snakemake closes its handlers when all records were handled."""
        try:
            self.console.show_end()
        except Exception as problem:
            print(f"warning: the short messages have no end: {type(problem).__name__}: {problem}", file=sys.stderr)
        super().close()

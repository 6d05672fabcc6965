"""Holds what is private of Snakemake's messages: the handler of its log, and sentences in place of its errors.

As `snakemake_internals`, this file touches private parts of Snakemake, and the same test fails where another minor
version than it knows is installed.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable
from typing import Any

from plumbline.core.errors import PlumblineError, visible


def logger() -> logging.Logger:
    """Return the logger whose records Snakemake's handlers show."""
    return logging.getLogger("snakemake.logging")


def show_sentences_alone() -> None:
    """Show of an error that a user can fix its sentence, without file, line, wildcards and traceback.

    Snakemake wraps what functions of rules raise. A second call in one process changes nothing.
    """
    import snakemake.exceptions as exceptions

    original, initialize = exceptions.format_exception_to_string, exceptions.InputFunctionException.__init__
    if original.__module__ == __name__:
        return

    def keep_cause(self: Any, error: Any, *arguments: Any, **options: Any) -> None:
        """Of an error that is raised again while another one is handled, the context is that other one."""
        initialize(self, error, *arguments, **options)
        self.__cause__ = error if isinstance(error, PlumblineError) else None

    exceptions.InputFunctionException.__init__ = keep_cause

    def sentence(error: BaseException | None, linemaps: Any = None) -> str:
        cause = error
        while isinstance(cause, exceptions.WorkflowError):
            cause = cause.__cause__ or cause.__context__
        return f"error: {cause}" if isinstance(cause, PlumblineError) else str(original(error, linemaps))

    exceptions.format_exception_to_string = sentence


def answer_unknown_targets(answer: Callable[[str], str]) -> None:
    """Show `answer` of a target's name where no rule makes that, instead of Snakemake's error."""
    import snakemake.exceptions as exceptions

    original = exceptions.format_exception_to_string

    def format_error(error: BaseException | None, linemaps: Any = None) -> str:
        target = re.match(r"No rule to produce (.*) \(", str(error))
        if target and isinstance(error, exceptions.MissingRuleException):
            return f"error: {visible(answer(target[1]))}"
        return str(original(error, linemaps))

    exceptions.format_exception_to_string = format_error


def own_log_handler(settings: Any) -> tuple[logging.Handler, logging.Formatter]:
    """Make the handler that Snakemake itself would show its records with, and its formatter.

    `settings`: those that a logger plugin is given.
    """
    from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter

    quiet = set(settings.quiet or ())
    formatter = DefaultFormatter(quiet, settings.show_failed_logs)
    handler = ColorizingTextHandler(
        nocolor=settings.nocolor,
        stream=sys.stdout if settings.stdout else sys.stderr,
        formatter=formatter,
        filter=DefaultFilter(quiet, settings.debug_dag, settings.verbose, settings.dryrun, settings.printshellcmds),
    )
    return handler, formatter

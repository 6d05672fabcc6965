"""Snakemake's scheduler: its default rate limit is taken away, because with it the driver keeps a core busy.

With any limit Snakemake 9.27.1 starts one more timer each time that it looks for jobs, and each timer makes it look
again (snakemake/snakemake#3744): after some hundred jobs it looks over all that are ready a hundred times a second.
Without a limit it looks when a job has ended. A limit that somebody has chosen is left alone.
"""

from __future__ import annotations

from typing import Any

#: Snakemake's default: so many jobs in so many seconds.
DEFAULT = (100, 1)


def without_default_limit(workflow: Any) -> None:
    """To be called when the scheduler is there and has not begun (`onstart`)."""
    limiter = workflow.scheduler.job_rate_limiter
    if limiter is not None and (limiter.max_jobs, limiter.timespan) == DEFAULT:
        workflow.scheduler.job_rate_limiter = None

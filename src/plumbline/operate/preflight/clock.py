"""Checks that no file that jobs read lies in the future, as it does where a clock was set back since it was made.

What is made from it would be older, and Snakemake throws that away when it has been made.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

#: Seconds by which the clocks of a file server and of its users may differ.
_APART = 60.0


def list_refusals(jobs: Iterable[Any]) -> list[str]:
    """Find what Snakemake's jobs would read that lies in the future: the newest, how many more, the remedy."""
    now = time.time()
    stamps = {path: os.path.getmtime(path) for job in jobs for path in map(str, job.input) if os.path.exists(path)}
    ahead = sorted((stamp, path) for path, stamp in stamps.items() if stamp > now + _APART)
    if not ahead:
        return []
    stamp, path = ahead[-1]
    file_time, clock_time = (time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment)) for moment in (stamp, now))
    more = f" (and {len(ahead) - 1} more)" if len(ahead) > 1 else ""
    places = " ".join(sorted({name.split(os.sep)[0] if not os.path.isabs(name) else name for _, name in ahead}))
    return [
        f"{path}{more} is stamped {file_time}, and here it is {clock_time}: a clock was set back since it was "
        "made. What is made from it now would count as older than it, and Snakemake would throw it away. Wait until "
        f"then, or give what lies in the future one time: find {places} -newermt now -exec touch -d @{int(now)} {{}} +"
    ]

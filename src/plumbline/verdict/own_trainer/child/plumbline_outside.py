"""Notes which files a Python process of a run opens that lie outside of the run's copy, temporary folder and packages.

Each line of a file `PID-WORD.outside` in the folder of reports is JSON: what was done (`r` read, `w` written anew,
`a` written at its end or in place, `u` both read and written), the path, and when it was last written until then (None
of one that was not there). What was last changed before the folder was set up can be no run's doing, and reading it is
not noted: a data set of any size costs one look a file.
"""

import json
import os
import stat
import sys

#: Files of which reading is noted at most, and those of which writing is.
_MOST = 500
_SYSTEM = ("/proc/", "/sys/", "/etc/", "/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/snap/")
_WITHIN = ("/site-packages/", "/dist-packages/", "/__pycache__/")
#: Before this, by how much a file system's clock may lag (seconds).
_LAG = 0.05
_SECOND_IS_WRITTEN = ("os.rename", "os.link", "os.symlink")


def _has_content(path):
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def begin(folder, name):
    """Watch from now on; `name` gives the begin of the names of this process's files."""
    environment = os.environ.get
    variables = [environment(each) for each in environment("PLUMBLINE_CACHES", "").split(os.pathsep)]
    places = [*variables, *environment("PLUMBLINE_SHARED", "").split(os.pathsep)]
    places += [environment("PLUMBLINE_COPY"), environment("PLUMBLINE_TEMPORARY"), folder]
    places += [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.path.abspath(__file__))]
    places += [os.path.realpath(place) for place in places if place]
    skipped = (*_SYSTEM, *{place.rstrip(os.sep) + os.sep for place in places if place and len(place) > 1})
    since = float(environment("PLUMBLINE_SINCE") or 0.0) - _LAG
    noted = {"r": set(), "w": set()}

    def note(kind, path):
        path = os.path.abspath(os.fsdecode(path))
        if path.startswith(skipped) or (path.startswith("/dev/") and not path.startswith("/dev/shm/")):
            return
        if path.endswith(".pyc") or any(part in path for part in _WITHIN):
            return
        try:
            status = os.stat(path)
        except OSError:
            status = None
        if kind == "r" and (status is None or status.st_ctime < since or not stat.S_ISREG(status.st_mode)):
            return
        notes = noted["r" if kind == "r" else "w"]
        if (kind, path) in notes or len(notes) >= _MOST:
            return
        notes.add((kind, path))
        line = json.dumps([kind, path, status and status.st_mtime]) + "\n"
        descriptor = os.open(
            os.path.join(folder, name() + ".outside"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666
        )
        try:
            os.write(descriptor, line.encode(errors="surrogateescape"))
        finally:
            os.close(descriptor)

    events = frozenset(("open", "sqlite3.connect", *_SECOND_IS_WRITTEN))

    def watch(event, arguments):
        if event not in events:  # first, as there are many of others
            return
        try:
            if event == "open":
                path, _, flags = arguments
                if (path.__class__ is str and path.startswith(skipped)) or isinstance(path, int):
                    return
                mode = flags & os.O_ACCMODE
                if mode == os.O_RDONLY:
                    note("r", path)
                elif flags & (os.O_TRUNC | os.O_EXCL):
                    note("w", path)
                else:  # a log that is continued is not read, and of an empty file, as a lock is, nothing can be
                    note("u" if mode == os.O_RDWR and not flags & os.O_APPEND and _has_content(path) else "a", path)
            elif event in _SECOND_IS_WRITTEN:
                note("w", arguments[1])
            else:
                path = os.fsdecode(arguments[0])
                if path and not path.startswith(":"):
                    note("u", path[5:].split("?")[0] if path.startswith("file:") else path)
        except Exception:  # a folder that is gone, a path that is none: the trainer is to go on
            pass

    sys.addaudithook(watch)

"""Notes which Python program of a run reads which files of the arm's copy; `sitecustomize` next to it begins this.

In the folder of reports, `measures` has the names of those that measure, one a line, as the arm's copy has them; of
others so many are noted at most. Each process adds lines `PROGRAM<tab>FILE` to a file of its own, once for each.
"""

import os
import sys

_MOST = 1000
_noted: set = set()
_busy = False


def begin(folder, copy, name):
    """Watch from now on, where there is something to watch; `name` begins the names of this process's files."""
    try:
        with open(os.path.join(folder, "measures")) as file:
            names = file.read().splitlines()
    except OSError:
        return
    paths = {}
    for each in names:
        path = os.path.join(copy, each)
        paths[path] = paths[os.path.realpath(path)] = each
    started = os.getcwd()

    def watch(event, arguments):
        global _busy
        if event != "open" or _busy or not arguments or not isinstance(arguments[0], (str, bytes)):
            return
        if arguments[2] and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            return
        _busy = True
        try:
            path = os.path.abspath(os.fsdecode(arguments[0]))
            file = paths.get(path)
            if file is None and path.startswith(copy + os.sep) and len(_noted) < _MOST and not path.endswith(".pyc"):
                file = path[len(copy) + 1 :]
            if file is not None:
                _note(folder, name(), _program(started, copy), file)
        except Exception:  # a folder that is gone: nobody is left to tell
            pass
        finally:
            _busy = False

    sys.addaudithook(watch)


def _program(started, copy):
    """The script of this process, as the copy has it; else how it was called."""
    called = (getattr(sys, "argv", None) or [""])[0]
    path = os.path.join(started, called)
    return os.path.relpath(path, copy) if path.startswith(copy + os.sep) and os.path.exists(path) else called or "-"


def _note(folder, process_name, program, file):
    line = program + "\t" + file + "\n"
    if (process_name, line) not in _noted and "\n" not in program + file:
        _noted.add((process_name, line))
        with open(os.path.join(folder, process_name + ".measures"), "a") as notes:
            notes.write(line)

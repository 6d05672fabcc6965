"""Notes how a Python process of a run ends, for whoever made the run; `sitecustomize` next to it begins this.

Files in the folder of reports, each named `PID-WORD` and an ending:

- `.began` (JSON): its command line, process, group and host; there from the start on, and taken away by an `exec`;
- `.wrote`: it has written to what the run prints; where a process above it reads that (`$(...)`, `subprocess`) and may
  pass it on or not, lines of which some would then be in the run's log: the first ones, and the last ones;
- `.exit`: one byte, the code that it gave to exit(3), by whatever way it came there (`raise SystemExit`, an exception
  that nobody caught), or to `os._exit`; empty of one that ended by a signal;
- `.at_once`: it ended by `os._exit(0)` and is no forked child; the exception that it was handling then, if any.

A file `PID.ended`, or `group-PID.ended`, has the Python processes of the run that ended it by a signal, one a line;
`PID.signal` has the signal by which it ended, where a Python process of the run waited for it.

A forked child has notes of its own only from its first write on, or from an exit with another code than 0.

The code of an exit is known to the C library alone, after Python's own end: it is asked to write it (`on_exit`). Where
it has no such function, only exceptions that nobody caught are seen.
"""

import contextlib
import functools
import json
import os
import posix
import select
import signal
import stat
import sys

import plumbline_ranks

try:
    import ctypes
except ImportError:  # a Python that was built without it: `_arm` fails then
    ctypes = None  # type: ignore[assignment]

_PROCESS = os.getpid()
_WORD = os.urandom(8).hex()
#: Signals that end a process.
_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGABRT, signal.SIGKILL, signal.SIGTERM)
#: Processes above this one that may read what it prints.
_ABOVE = 8
#: The least characters of a line by which it is known again in a log.
_TELLING = 8
#: Lines of a process that are noted: so many of the first, and so many of the last; and the bytes of each at most.
_FIRST, _LAST, _BYTES = 64, 192, 200
#: Exceptions by which programs go on, or end well.
_NO_ERRORS = (StopIteration, StopAsyncIteration, BrokenPipeError)
#: Where the file of the exit code is kept open, so that a program that closes and opens files has no other there.
_HIGH = 500
_folder = ""
_library = None
_stream = None
_begun = _forked = False
#: The streams that lead somewhere, by their descriptor.
_streams: dict = {}
#: Whether this process has written to the run's output itself, and how many lines to a process above it.
_noticed = False
_lines = 0


def name():
    """The begin of the names of this process's files: another one in a forked child."""
    return f"{os.getpid()}-{_WORD}"


def begin(folder):
    """Note the begin, and see to it that the end is noted."""
    global _folder
    _folder = folder
    _write_began()
    os.register_at_fork(after_in_child=_begin_child)
    with contextlib.suppress(Exception):  # a C library without on_exit, a Python without ctypes
        _arm()
    os.kill = posix.kill = _wrap_with_note(_note_kill, os.kill)
    os.killpg = posix.killpg = _wrap_with_note(_note_killpg, os.killpg)
    if hasattr(signal, "pidfd_send_signal"):
        signal.pidfd_send_signal = _wrap_with_note(_note_pidfd, signal.pidfd_send_signal)
    for waiting in ("wait", "waitpid", "wait3", "wait4"):
        setattr(os, waiting, _wrap_wait(getattr(os, waiting)))
    os._exit, os.write = _wrap_with_note(_note_exit, os._exit), _wrap_with_note(_note_write, os.write)
    os.execv, os.execve = _wrap_exec(os.execv), _wrap_exec(os.execve)
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        way = _way(number)
        if stream is not None and way:
            _streams[number] = stream
            if hasattr(stream, "reconfigure"):  # `print` would write the end of a line apart, after another rank's line
                stream.reconfigure(line_buffering=True, write_through=False)
            _notice(number, stream)


def _begin_child():
    """Let a forked child have notes of its own; the exit code of its parent is none of it."""
    global _PROCESS, _begun, _noticed, _lines, _forked
    if _stream is not None:
        _library.freopen(b"/dev/null", b"w", ctypes.c_void_p(_stream))
    if sys._getframe(1).f_code.co_name == "_execute_child":  # of subprocess: becomes another program at once
        return
    _PROCESS, _begun, _noticed, _lines, _forked = os.getpid(), False, False, 0, True
    for number, stream in _streams.items():
        _notice(number, stream)


def at_exit():
    """What is known of the end while Python is there: whether its code will be known, and what nobody caught."""
    _notice_other_streams()
    plumbline_ranks.end(_path(".rank"))
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    _reopen()
    end = {"exit_known": _stream is not None, "import_failed": isinstance(error, ImportError)}
    end["left"] = _living_children()
    if error is not None:
        end["error"] = f"{type(error).__name__}: {error}".split("\n")[0][:200]
    broken = [number for number in (1, 2) if _reader_is_gone(number)]
    end["reader_gone"] = bool(broken) and (error is None or isinstance(error, BrokenPipeError))
    if broken and isinstance(error, BrokenPipeError) and _library is not None:
        _end_by_sigpipe(broken[0])
    return end


def _write_began():
    global _begun
    _begun = True
    with open("/proc/self/cmdline", "rb") as file:
        command = [word.decode(errors="replace") for word in file.read().split(b"\0")[1:-1]]
    note = {"command": command, "process": _PROCESS, "parent": os.getppid(), "group": os.getpgid(0)}
    _put(".began", json.dumps({**note, "host": os.uname().nodename, "rank": plumbline_ranks.rank()}))


def _path(ending):
    return os.path.join(_folder, name()) + ending


def _put(ending, text=""):
    with open(_path(ending), "w") as file:
        file.write(text)


def _arm():
    """Have the C library write the exit code: fputc(code, stream) is called as on_exit's handlers are."""
    global _library, _stream
    library = ctypes.CDLL(None)
    library.fdopen.restype = library.freopen.restype = ctypes.c_void_p
    descriptor = _move_up(os.open(_path(".exit"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666))
    stream = library.fdopen(descriptor, b"w")
    if not stream or library.on_exit(ctypes.cast(library.fputc, ctypes.c_void_p), ctypes.c_void_p(stream)):
        return
    _library, _stream = library, stream


def _reopen():
    """Open the file of the exit code again where the program has closed what is not its own."""
    if _stream is not None and _begun:
        try:
            os.fstat(_library.fileno(ctypes.c_void_p(_stream)))
        except OSError:
            _library.freopen(os.fsencode(_path(".exit")), b"w", ctypes.c_void_p(_stream))


def _ensure_begun():
    """Begin the notes of a forked child."""
    if not _begun and os.getpid() == _PROCESS:
        _write_began()
        if _stream is not None:
            _library.freopen(os.fsencode(_path(".exit")), b"w", ctypes.c_void_p(_stream))


def _move_up(descriptor):
    import fcntl

    try:
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    except OSError:  # fewer files may be open
        return descriptor
    os.close(descriptor)
    return high


def _wrap_with_note(note, real):
    """The function that leaves a note first; what fails in that is not the caller's."""

    @functools.wraps(real)
    def call(*arguments, **keywords):
        with contextlib.suppress(Exception):
            note(*arguments, **keywords)
        return real(*arguments, **keywords)

    return call


def _note_kill(process, number):
    """Note what kill(2) ends: a group by a number below 0, its own by 0."""
    if number in _ENDING:
        name = process if process > 0 else f"group-{-process or os.getpgid(0)}"
        with open(os.path.join(_folder, f"{name}.ended"), "a") as file:
            file.write(f"{os.getpid()}\n")


def _note_killpg(group, number):
    _note_kill(-group, number)


def _note_pidfd(descriptor, number, *arguments):
    with open(f"/proc/self/fdinfo/{descriptor}") as file:
        process = next(int(line.split()[1]) for line in file if line.startswith("Pid:"))
    if process > 0:  # of this namespace, and not reaped
        _note_kill(process, number)


def _wrap_wait(real):
    """The function that waits for a child, which notes by which signal that ended."""

    @functools.wraps(real)
    def wait(*arguments, **keywords):
        answer = real(*arguments, **keywords)
        if os.WIFSIGNALED(answer[1]):
            with contextlib.suppress(Exception), open(os.path.join(_folder, f"{answer[0]}.signal"), "w") as file:
                file.write(str(os.WTERMSIG(answer[1])))
        return answer

    return wait


def _living_children():
    """The children of this process that have not ended: the system may end them with it."""
    children = []
    with contextlib.suppress(OSError):  # a kernel that does not tell
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children") as file:
                children += [int(child) for child in file.read().split()]
    return [child for child in children if _stat(child)[0] not in ("Z", "")]


def _stat(process):
    """The state of a process, and its parent; "" and 0 of one that is gone."""
    try:
        with open(f"/proc/{process}/stat") as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
            return state, int(parent)
    except OSError:
        return "", 0


def _note_exit(status):
    """Leave the code behind of a process that ends at once, and of one that seems to end well what it handled."""
    if os.getpid() == _PROCESS:
        if status & 255:
            _ensure_begun()
            _notice_other_streams()
        elif _begun and not _forked:
            _notice_other_streams()
            error = sys.exc_info()[1] or getattr(sys, "last_value", None)
            is_error = isinstance(error, Exception) and not isinstance(error, _NO_ERRORS)
            _put(".at_once", f"{type(error).__name__}: {error}".split("\n")[0][:200] if is_error else "")
        if _begun:
            with open(_path(".exit"), "wb") as file:
                file.write(bytes([status & 255]))


def _wrap_exec(real):
    """The function that becomes another program, which takes the note of the begin away."""

    @functools.wraps(real)
    def become(*arguments, **keywords):
        mine = _begun and os.getpid() == _PROCESS
        if mine:
            with contextlib.suppress(OSError):
                os.unlink(_path(".began"))
        try:
            return real(*arguments, **keywords)
        finally:  # there is no such program
            if mine:
                with contextlib.suppress(OSError):
                    _write_began()

    return become


def _way(number):
    """Where a descriptor leads: `output`, to the run's; `captured`, to a process above this one; "" to nowhere."""
    try:
        status = os.fstat(number)
    except OSError:
        return ""
    if stat.S_ISFIFO(status.st_mode):
        return "captured" if _is_read_above(status.st_ino) else "output"
    return "" if stat.S_ISCHR(status.st_mode) and not os.isatty(number) else "output"


def _is_read_above(pipe):
    process, of_pipe = os.getppid(), f"pipe:[{pipe}]"
    for _ in range(_ABOVE):
        if process <= 1:
            return False
        folder = f"/proc/{process}/"
        try:
            for number in os.listdir(folder + "fd"):
                if os.readlink(folder + "fd/" + number) == of_pipe:
                    with open(folder + "fdinfo/" + number) as file:
                        fields = file.read().split()
                    if int(fields[fields.index("flags:") + 1], 8) & os.O_ACCMODE == os.O_RDONLY:
                        return True
        except OSError:  # another user's
            pass
        process = _stat(process)[1]
    return False


def _notice(number, stream):
    """Note that something is written; `write` is the stream's own again once nothing more is to be known."""
    real = stream.write
    if getattr(real, "notices", False):  # of the parent of this forked child
        return
    ways = {}

    def write(text):
        lines = [line.strip() for line in text.split("\n")] if isinstance(text, str) else []
        lines = [line for line in lines if line and not line.startswith(("Traceback (", 'File "'))]
        process = os.getpid()
        if lines and not _noticed and process == _PROCESS:
            with contextlib.suppress(Exception):
                if process not in ways:  # a forked child may have other descriptors
                    ways[process] = _way(number)
                _note(ways[process], lines)
        of_several = process == _PROCESS and plumbline_ranks.rank()
        if of_several and isinstance(text, str):
            with contextlib.suppress(Exception):
                if ways.setdefault(process, _way(number)):
                    plumbline_ranks.note(_path(".rank"), number, text)
        if (
            _noticed and not of_several and stream.__dict__.get("write") is write
        ):  # a library may have put its own there
            del stream.write
        return real(text)

    write.notices = True
    with contextlib.suppress(AttributeError):  # a stream of another kind
        stream.write = write


def _note_write(number, data):
    """Note what is written to the run's output by its descriptor."""
    if not _noticed and number in (1, 2) and os.getpid() == _PROCESS:
        lines = [line.strip() for line in bytes(data).decode(errors="replace").split("\n")]
        if any(lines):
            _note(_way(number), lines)


def _note(way, lines):
    """Note what is written: that it is, to the run's output; the lines themselves, to a process above this one."""
    global _noticed, _lines
    if way == "output":
        _ensure_begun()
        _put(".wrote")
        _noticed = True
    elif way == "captured":
        for line in lines:
            if len(line) < _TELLING:
                continue
            _ensure_begun()
            place = _lines if _lines < _FIRST else _FIRST + (_lines - _FIRST) % _LAST
            _lines += 1
            # Opened each time: a program may close descriptors that are not its own, and open other files by them.
            descriptor = os.open(_path(".wrote"), os.O_WRONLY | os.O_CREAT, 0o666)
            try:
                text = line.encode(errors="replace")[:_BYTES]
                os.pwrite(descriptor, text.ljust(_BYTES) + b"\n", place * (_BYTES + 1))
            finally:
                os.close(descriptor)


def _notice_other_streams():
    """Note as written what has another stream for its output than the first, whose writes are not seen."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        if stream is not _streams.get(number):
            with contextlib.suppress(Exception):  # none with a descriptor
                if os.path.sameopenfile(stream.fileno(), number) and _way(number) == "output":
                    _note("output", [])


def _reader_is_gone(number):
    try:
        if not stat.S_ISFIFO(os.fstat(number).st_mode):
            return False
        poll = select.poll()
        poll.register(number, select.POLLOUT)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False


def _end_by_sigpipe(number):
    """End as other programs do whose reader has read enough (`| head`), when Python has ended: a shell tells it so from
    a failure.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    stream = ctypes.c_void_p(_library.fdopen(os.dup(number), b"w"))
    _library.setvbuf(stream, None, 2, 0)  # 2: without a buffer
    _library.on_exit(ctypes.cast(_library.fputc, ctypes.c_void_p), stream)

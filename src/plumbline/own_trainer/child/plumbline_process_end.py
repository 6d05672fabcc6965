"""Notes how a Python process of a run ends, for whoever made the run; `sitecustomize` beside it begins this.

Files in the folder of reports, each named `PID-WORD` and an ending:

- `.began` (JSON): its command line, process, group and host; there from the start on, and taken away by an `exec`;
- `.wrote`: it has written to what the run prints; where a process above it reads that (`$(...)`, `subprocess`) and may
  pass it on or not, the line that would then be in the run's log;
- `.exit`: one byte, the code that it gave to exit(3), by whatever way it came there (`raise SystemExit`, an exception
  that nobody caught), or to `os._exit`; empty of one that ended by a signal.

A file `PID.ended`, or `group-PID.ended`, says that another Python process of the run has ended it by a signal.

The code of an exit is known to the C library alone, after Python's own end: it is asked to write it (`on_exit`). Where
it has no such function, only exceptions that nobody caught are seen.
"""

import contextlib
import json
import os
import select
import signal
import stat
import sys

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
#: Where the file of the exit code is kept open, so that a program that closes and opens files has no other there.
_HIGH = 500
_folder = ""
_library = None
_stream = None
_descriptor = None


def name():
    """The begin of the names of this process's files: another one in a forked child."""
    return f"{os.getpid()}-{_WORD}"


def begin(folder):
    """Note the begin, and see to it that the end is noted."""
    global _folder
    _folder = folder
    _write_began()
    with contextlib.suppress(Exception):  # a C library without on_exit, a Python without ctypes
        _arm()
    os.kill, os.killpg = _noting(os.kill, ""), _noting(os.killpg, "group-")
    os._exit = _exiting(os._exit)
    os.execv, os.execve = _leaving(os.execv), _leaving(os.execve)
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        way = _way(number)
        if stream is not None and way:
            _notice(stream, way)


def at_exit():
    """What is known of the end while Python is there: whether its code will be known, and what nobody caught."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    known = {"exit_known": _stream is not None, "import_failed": isinstance(error, ImportError)}
    if error is not None:
        known["error"] = f"{type(error).__name__}: {error}".split("\n")[0][:200]
    broken = [number for number in (1, 2) if _reader_is_gone(number)]
    known["reader_gone"] = bool(broken) and (error is None or isinstance(error, BrokenPipeError))
    if broken and isinstance(error, BrokenPipeError) and _library is not None:
        _end_by_sigpipe(broken[0])
    return known


def _write_began():
    with open("/proc/self/cmdline", "rb") as file:
        command = [word.decode(errors="replace") for word in file.read().split(b"\0")[1:-1]]
    known = {"command": command, "process": _PROCESS, "group": os.getpgid(0), "host": os.uname().nodename}
    _put(".began", json.dumps(known))


def _put(ending, text=""):
    with open(os.path.join(_folder, f"{_PROCESS}-{_WORD}{ending}"), "w") as file:
        file.write(text)


def _arm():
    """Have the C library write the exit code: fputc(code, stream) is called as on_exit's handlers are."""
    global _library, _stream, _descriptor
    library = ctypes.CDLL(None)
    library.fdopen.restype = library.freopen.restype = ctypes.c_void_p
    _descriptor = _moved_up(
        os.open(os.path.join(_folder, name()) + ".exit", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    )
    stream = library.fdopen(_descriptor, b"w")
    if not stream or library.on_exit(ctypes.cast(library.fputc, ctypes.c_void_p), ctypes.c_void_p(stream)):
        return
    _library, _stream = library, stream
    os.register_at_fork(after_in_child=_disarm)


def _disarm():
    """A forked child's exit is none of this process."""
    _library.freopen(b"/dev/null", b"w", ctypes.c_void_p(_stream))


def _moved_up(descriptor):
    import fcntl

    try:
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    except OSError:  # fewer files may be open
        return descriptor
    os.close(descriptor)
    return high


def _noting(real, of):
    """The function that sends a signal, which leaves a note of what it ends."""

    def send(process, number, *more):
        if number in _ENDING:
            with contextlib.suppress(OSError), open(os.path.join(_folder, f"{of}{process}.ended"), "w"):
                pass
        return real(process, number, *more)

    return send


def _exiting(real):
    """The function that ends this process at once, which leaves its code behind."""

    def leave(status):
        if os.getpid() == _PROCESS and _stream is not None and isinstance(status, int):
            with contextlib.suppress(OSError):
                os.write(_descriptor, bytes([status & 255]))
        real(status)

    return leave


def _leaving(real):
    """The function that becomes another program, which takes the note of the begin away."""

    def become(*arguments):
        mine = os.getpid() == _PROCESS
        began = os.path.join(_folder, name()) + ".began"
        if mine and os.path.exists(began):
            os.unlink(began)
        try:
            return real(*arguments)
        finally:  # there is no such program
            if mine:
                _write_began()

    return become


def _way(number):
    """Where a descriptor leads: `output`, to the run's; `captured`, to a process above this one; "" to nowhere."""
    try:
        there = os.fstat(number)
    except OSError:
        return ""
    if stat.S_ISFIFO(there.st_mode):
        return "captured" if _is_read_above(there.st_ino) else "output"
    return "" if stat.S_ISCHR(there.st_mode) and not os.isatty(number) else "output"


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
                        words = file.read().split()
                    if int(words[words.index("flags:") + 1], 8) & os.O_ACCMODE == os.O_RDONLY:
                        return True
        except OSError:  # another user's
            pass
        try:
            with open(folder + "stat") as file:
                process = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def _notice(stream, way):
    """Note that something is written; `write` is the stream's own again from then on."""
    real = stream.write

    def write(text):
        line = max(text.split("\n"), key=len).strip() if isinstance(text, str) else ""
        generic = line.startswith(("Traceback (", 'File "'))
        if line and not generic and (way == "output" or len(line) >= _TELLING):
            if stream.__dict__.get("write") is write:  # a library may have put its own in front
                del stream.write
            with contextlib.suppress(OSError):
                _put(".wrote", "" if way == "output" else line[:200])
        return real(text)

    with contextlib.suppress(AttributeError):  # a stream of another kind
        stream.write = write


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

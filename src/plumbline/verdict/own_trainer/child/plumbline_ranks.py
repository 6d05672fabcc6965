"""Notes the lines that a rank of several prints, so that its values are told apart in the log that ranks share.

A file `PID-WORD.rank` in the folder of reports has the last lines, each record of `WIDTH` bytes: the number of the
line, the rank, and the line.
"""

import os

#: By which variables launchers name a rank and the number of ranks: torchrun, Open MPI, Slurm.
_NAMES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
#: Lines that are noted, and bytes of each record.
_LAST, WIDTH = 256, 512
#: Letters of a line without its end that are kept.
_LONGEST = 2 * WIDTH
#: Process and descriptor -> what was printed since the last line end; process -> its lines so far.
_open: dict = {}
_lines: dict = {}


def rank():
    """The rank of this process; "" where it is the only one."""
    for name, size in _NAMES:
        number = os.environ.get(name, "")
        if number.isdecimal() and os.environ.get(size, "") not in ("", "1"):
            return number
    return ""


def note(path, number, text):
    """Note what a rank prints to a descriptor, line by line: a line may come in parts."""
    key = os.getpid(), number
    *lines, _open[key] = (_open.get(key, "") + text).replace("\r", "\n").split("\n")
    _open[key] = _open[key][-_LONGEST:]
    for line in lines:
        if line.strip():
            _write(path, line)


def end(path):
    """Note lines without an end."""
    for key, line in _open.items():
        if key[0] == os.getpid() and line.strip():
            _write(path, line)
    _open.clear()


def _write(path, line):
    process = os.getpid()
    place = _lines[process] = _lines.get(process, -1) + 1
    record = f"{place} {rank()} {line}".encode(errors="replace")[: WIDTH - 1].ljust(WIDTH - 1) + b"\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.pwrite(descriptor, record, place % _LAST * WIDTH)
    finally:
        os.close(descriptor)

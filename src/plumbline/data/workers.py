"""Processes that do the jobs of one stage side by side, while what they make comes back in the order of the jobs.

Job i goes to process i modulo their number, and each has one job at a time: what waits in memory is what they work on.
With one there is no process but this one. They are forked when they are made, so that is to be before any thread is.

`concurrent.futures` has no such pool: where a process is killed it fails every job and names none, a job's results come
together, and its processes go on when this one is killed.
"""

from __future__ import annotations

import mmap
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import Any, Protocol, Self, TypeVar

from plumbline.core.errors import PlumblineError

Result_co = TypeVar("Result_co", covariant=True)

_END = None


class Job(Protocol[Result_co]):
    """What a process is given to do; it, and what it makes, go between processes."""

    def results(self, report: Callable[[int], None]) -> Iterator[Result_co]:
        """Yield what it makes, telling `report` how many of its documents are done."""
        ...

    def describe(self, count: int) -> str:
        """Name the document after the first `count`, and the file that it is in."""
        ...


class Workers:
    """A context in which jobs are done by `count` processes, which end with it or with this process."""

    def __init__(self, count: int = 1) -> None:
        self._count = count
        self._ends: list[Connection] = []
        self._processes: list[multiprocessing.process.BaseProcess] = []
        self._underway = deque[tuple[int, Job[Any]]]()

    @property
    def has_several_processes(self) -> bool:
        """Whether jobs are done in processes of their own."""
        return bool(self._processes)

    def __enter__(self) -> Self:
        if self._count > 1:
            context = multiprocessing.get_context("fork")
            self._done = memoryview(mmap.mmap(-1, 8 * self._count)).cast("q")
            for number in range(self._count):
                here, there = context.Pipe()
                self._ends.append(here)  # before the fork: who holds another's end keeps it from ending
                process = context.Process(
                    target=_serve, args=(there, list(self._ends), self._done, number), daemon=True
                )
                process.start()
                self._processes.append(process)
                there.close()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
        for end, process in zip(self._ends, self._processes):
            end.close()
            process.join()
        self._ends, self._processes = [], []

    def run(self, jobs: Iterable[Job[Result_co]]) -> Iterator[Result_co]:
        """Yield what jobs make, in their order.

        Raises:
            PlumblineError: what a job raises, or a process ended; the message names the document.
        """
        if not self._processes:
            for job in jobs:
                yield from job.results(_ignore)
            return
        for worker, job in self._underway:  # of a run that nobody wanted the rest of
            for _ in self._receive(worker, job):
                pass
        self._underway.clear()
        for number, job in enumerate(jobs):
            waiting: list[Result_co] = []  # the last result, so that its process has work when it is used
            if len(self._underway) == self._count:
                for result in self._receive(*self._underway.popleft()):
                    yield from waiting
                    waiting = [result]
            self._send(number % self._count, job)
            yield from waiting
        while self._underway:
            yield from self._receive(*self._underway.popleft())

    def _send(self, worker: int, job: Job[Any]) -> None:
        self._done[worker] = 0
        try:
            self._ends[worker].send(job)
        except OSError as error:
            raise self._describe_end(worker, job) from error
        self._underway.append((worker, job))

    def _receive(self, worker: int, job: Job[Result_co]) -> Iterator[Result_co]:
        while True:
            try:
                result = self._ends[worker].recv()
            except (EOFError, OSError) as error:
                raise self._describe_end(worker, job) from error
            if result is _END:
                return
            if isinstance(result, BaseException):
                raise result
            yield result

    def _describe_end(self, worker: int, job: Job[Any]) -> PlumblineError:
        process = self._processes[worker]
        process.join()
        return PlumblineError(
            f"{job.describe(self._done[worker])}: the process that worked on it was ended (exit code "
            f"{process.exitcode}; -9: by the kernel, for want of memory, or by hand); the same command again goes on, "
            "and takes less memory with fewer `--workers` (`--set-threads documents=1`)"
        )


def _ignore(_: int) -> None:
    pass


def _serve(end: Connection, others: list[Connection], done: memoryview, number: int) -> None:
    """Do jobs until there is nobody to give any."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others:
        other.close()

    def report(count: int) -> None:
        done[number] = count

    while True:
        try:
            job: Job[Any] = end.recv()
        except (EOFError, OSError):  # the other process is gone, in the middle of a job that it sent perhaps
            return
        try:
            for result in _finish(job, report, done, number):
                end.send(result)
        except (BrokenPipeError, ConnectionResetError):  # the other process is gone
            return


def _finish(job: Job[Any], report: Callable[[int], None], done: memoryview, number: int) -> Iterator[Any]:
    """What a job makes, and its end, or an error of its."""
    try:
        yield from job.results(report)
        yield _END
    except (PlumblineError, OSError) as error:
        yield error
    except Exception as error:
        yield PlumblineError(f"{job.describe(done[number])}: {type(error).__name__}: {error}")

"""Shows a run to MLflow while it trains, where that is asked for (--mlflow): by a process of its own, which no run
waits for.

MLflow and not another service, since it needs no account and no server: a folder will do, and `mlflow ui` shows it.
Its import, its retries (which draw from Python's random numbers) and its waiting are kept out of the trainer: that
starts this module, gives it a line of JSON a step, and goes on whatever becomes of it. What cannot be told MLflow is
said once, and tried again while the run goes on.

A run that goes on after a stop goes on in MLflow as well: `mlflow.json` in the state directory names the one there, and
a step that MLflow has already is not told again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from plumbline.core.files import atomic_write_json
from plumbline.core.system import fcntl

if TYPE_CHECKING:
    from plumbline.specs.spec import RunSpec

RECORD = "mlflow.json"
#: Seconds between two tellings, after one that failed, and that a trainer waits for the last one when it ends.
EVERY, AGAIN, PATIENCE = 5.0, 60.0, 20.0
#: Bytes that are kept for a process that does not read them, before it is given up.
UNSENT = 50_000_000
#: What MLflow takes at most in one go.
METRICS, PARAMETERS = 1000, 100
#: Short, since it is tried again; no reports to MLflow's makers; and a folder, which MLflow 3 wants said, may do.
DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ALLOW_FILE_STORE": "true",
}


def without_password(uri: str) -> str:
    """A tracking URI as it may stand in a log."""
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


class MlflowSink:
    """The trainer's end: a `plumbline.train.monitoring.progress.Sink` that never raises and never waits, but `PATIENCE`
    at its end."""

    def __init__(self, where: str, state: Path, spec: RunSpec, say: Callable[[str], None]) -> None:
        """`where`: a tracking URI, or a folder; `say` tells a person."""
        self.say, self.process, self.unsent = say, None, bytearray()
        content = spec.to_dict()
        head = {
            "uri": where if "://" in where else Path(where).absolute().as_uri(),
            "record": str((state / RECORD).absolute()),
            "experiment": f"plumbline/{spec.preset}/{spec.study}",
            "name": spec.key,
            "steps": spec.train.steps,
            "tags": {"plumbline.run_id": spec.run_id, "plumbline.preset": spec.preset},
            "parameters": dict(_flat({key: content[key] for key in content if key != "components"})),
        }
        command = [sys.executable, "-m", "plumbline.train.monitoring.mlflow"]
        try:
            # In a session of its own: a Ctrl-C for the trainer lets it tell the end.
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
            )
            os.set_blocking(self._pipe(), False)
        except OSError as error:
            self._lost(error)
        self._tell(head)

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """Pass them on."""
        self._tell({"step": step, "time": int(time.time() * 1000), "values": values})

    def close(self) -> None:
        """Let the end be told."""
        if self.process is None:
            return
        deadline = time.monotonic() + PATIENCE
        while self.unsent and time.monotonic() < deadline:
            time.sleep(0.01)
            self._send()
        if self.process is None:
            return
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(deadline - time.monotonic())
        except subprocess.TimeoutExpired:
            self.say(f"MLflow has not taken the last values in {PATIENCE:g} s; training does not wait for it")

    def _pipe(self) -> int:
        assert self.process is not None and self.process.stdin is not None
        return self.process.stdin.fileno()

    def _tell(self, content: dict[str, Any]) -> None:
        if self.process is not None:
            self.unsent += json.dumps(content).encode() + b"\n"
            self._send()

    def _send(self) -> None:
        """As much as the pipe takes: who starts, or is held up, is not waited for."""
        try:
            del self.unsent[: os.write(self._pipe(), self.unsent)]
        except BlockingIOError as error:
            if len(self.unsent) > UNSENT:
                self._lost(error)
        except OSError as error:
            self._lost(error)

    def _lost(self, error: OSError) -> None:
        self.say(f"MLflow gets no more of this run ({error}); training continues")
        self.unsent.clear()
        if self.process is not None and self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        self.process = None


class Telling:
    """The other end: what a trainer said, on its way to MLflow."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.lines = iter(lines)
        self.head: dict[str, Any] = json.loads(next(self.lines))
        self.waiting: list[tuple[str, float, int, int]] = []  # name, value, time, step
        self.last = 0
        self.ended, self.lock = threading.Event(), threading.Lock()
        self.said = self.deaf = False
        self.turn: IO[bytes] | None = None
        self.client: Any = None
        self.run = ""
        self.known: dict[str, int] = {}

    def carry_out(self) -> None:
        """Until the trainer has ended and all is told, or cannot be told."""
        threading.Thread(target=self._listen, daemon=True).start()
        wait = 0.0
        while True:
            ended = self.ended.wait(wait)
            try:
                self._send(ended)
                wait = EVERY
            except ImportError as error:
                self._say(f"{error}; pip install 'plumbline-lm[mlflow]'")
                self.deaf = True
                self.ended.wait()  # who stops listening is heard of a second time
                return
            except Exception as error:  # whatever MLflow raises
                self._say(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
                wait = AGAIN
            if ended:
                return

    def _listen(self) -> None:
        with contextlib.suppress(ValueError):  # half a line, of a trainer that was killed
            for line in self.lines:
                if self.deaf:
                    continue
                said = json.loads(line)
                with self.lock:
                    self.last = max(self.last, said["step"])
                    self.waiting += [
                        (name, value, said["time"], said["step"]) for name, value in said["values"].items()
                    ]
        self.ended.set()

    def _say(self, words: str) -> None:
        if not self.said:
            uri = without_password(self.head["uri"])
            said = words.replace(self.head["uri"], uri)
            print(f"{self.head['name']}: MLflow ({uri}): {said}. The run continues", file=sys.stderr)
        self.said = True

    def _send(self, ended: bool) -> None:
        if self.client is None:
            self._after_earlier_ones()
            self.run, self.client = self._open()
        with self.lock:
            told = len(self.waiting)
        from mlflow.entities import Metric

        fresh = [entry for entry in self.waiting[:told] if entry[3] > self._known(entry[0])]
        for part in _parts(fresh, METRICS):
            self.client.log_batch(self.run, metrics=[Metric(*entry) for entry in part])
        with self.lock:
            del self.waiting[:told]
        if ended:
            done = max(self.last, self._known("loss")) >= self.head["steps"]
            self.client.set_terminated(self.run, status="FINISHED" if done else "KILLED")

    def _known(self, name: str) -> int:
        """The last step of which MLflow had a value when this was opened; -1 for none."""
        if name not in self.known:
            history = self.client.get_metric_history(self.run, name)
            self.known[name] = max((metric.step for metric in history), default=-1)
        return self.known[name]

    def _after_earlier_ones(self) -> None:
        """Wait for what still tells an earlier start of this run, so that both tell of one run there."""
        if self.turn is None:
            self.turn = open(f"{self.head['record']}.lock", "ab")  # noqa: SIM115
            with contextlib.suppress(OSError):  # no locks here
                fcntl.flock(self.turn, fcntl.LOCK_EX)

    def _open(self) -> tuple[str, Any]:
        """The run there: the one that an earlier start made, or a new one."""
        from mlflow import MlflowClient
        from mlflow.entities import Param
        from mlflow.exceptions import MlflowException

        client, head = MlflowClient(tracking_uri=self.head["uri"]), self.head
        record = Path(head["record"])
        try:
            before = json.loads(record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            before = {}
        where = without_password(head["uri"])
        if before.get("uri") == where:
            try:
                client.update_run(before["run"], status="RUNNING")
                return before["run"], client
            except MlflowException as error:  # one that was deleted there is made anew
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
        run = client.create_run(_experiment(client, head["experiment"]), run_name=head["name"], tags=head["tags"])
        atomic_write_json(record, {"uri": where, "run": run.info.run_id})
        for part in _parts(list(head["parameters"].items()), PARAMETERS):
            client.log_batch(run.info.run_id, params=[Param(*entry) for entry in part])
        return run.info.run_id, client


def _experiment(client: Any, name: str) -> str:
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name))
        except MlflowException:  # another run of the same study came first
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    return str(found.experiment_id)


def _parts(entries: list[Any], size: int) -> Iterator[list[Any]]:
    return (entries[begin : begin + size] for begin in range(0, len(entries), size))


def _flat(content: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """A spec as names and texts."""
    if isinstance(content, dict) and content:
        for key, value in content.items():
            yield from _flat(value, f"{name}.{key}" if name else key)
    else:
        yield name, json.dumps(content) if isinstance(content, (list, dict)) else str(content)


def main() -> None:
    """Carry out what a trainer says on standard input, whose end is the end: a TERM for all of a job is not."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    argparse.ArgumentParser(prog="python -m plumbline.train.monitoring.mlflow", description=__doc__).parse_args()
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    try:
        telling = Telling(sys.stdin.buffer)
    except (StopIteration, ValueError):  # the trainer was killed before it had said anything
        return
    telling.carry_out()


if __name__ == "__main__":
    main()

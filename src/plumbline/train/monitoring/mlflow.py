"""Shows a run to MLflow while it trains, if that is requested (--mlflow): a separate process follows the file of
scalars that every trainer writes.

MLflow and not another service, since it needs no account and no server: a folder will do, and `mlflow ui` shows it.
Its import, its retries (which draw from Python's random numbers) and its waiting never reach the trainer, which starts
this module, and waits `PATIENCE` seconds for it at its own end. What MLflow does not take is reported once, and sent
again while the run continues, and when it is started again: the file keeps it.

A run that continues after a stop continues in MLflow as well: `mlflow.json` in the state directory names the one there,
and a step that MLflow has already is not told again.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit, urlunsplit

from plumbline.core import command_line, locks
from plumbline.specs.spec import RunSpec
from plumbline.train.monitoring.progress import SCALARS

RECORD = "mlflow.json"
#: Seconds between two tellings, after one that failed, and that a trainer waits for the last one when it ends.
EVERY, AGAIN, PATIENCE = 5.0, 60.0, 20.0
#: Told in one go: MLflow takes a thousand values, of which a line has three, and a hundred parameters.
LINES, PARAMETERS = 300, 100
#: Short, since it is tried again; no reports to MLflow's makers; and a folder, which MLflow 3 refuses by default.
DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ALLOW_FILE_STORE": "true",
}


def strip_password(uri: str) -> str:
    """Give a tracking URI as it may stand in a log."""
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


@contextlib.contextmanager
def follow_run(tracking: str, state: Path, spec: RunSpec) -> Iterator[None]:
    """Have MLflow see a run while this block carries it out, which continues whatever becomes of that.

    Args:
        tracking: a tracking URI, or a folder.
        state: the run's state directory.
    """
    uri = tracking if "://" in tracking else Path(tracking).absolute().as_uri()
    command = [sys.executable, "-m", "plumbline.train.monitoring.mlflow", uri, str(state), spec.to_json()]
    try:
        # In a session of its own: a Ctrl-C for the trainer lets it tell the end, which is that of its input.
        follower = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        print(f"{spec.key}: MLflow does not see this run ({error}); training continues", file=sys.stderr)
        yield
        return
    try:
        yield
    finally:
        assert follower.stdin is not None
        follower.stdin.close()
        try:
            follower.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            message = f"MLflow has not taken the last values in {PATIENCE:g} s; training does not wait for it"
            print(f"{spec.key}: {message}", file=sys.stderr)


class MLflowFollower:
    """Sends the values in a run's file of scalars to MLflow."""

    def __init__(self, uri: str, state: Path, spec: RunSpec) -> None:
        self.uri, self.state, self.spec = uri, state, spec
        self.record: IO[str] | None = None
        self.client: Any = None
        self.run = ""
        self.offset = 0
        self.last_steps: dict[str, int] = {}  # the last step of which MLflow has a value, by name
        self.warned = False

    def follow(self) -> None:
        """Send new values until standard input has ended and all are sent, or cannot be sent."""
        wait, ended = 0.0, False
        while not ended:
            ended = bool(select.select([sys.stdin], [], [], wait)[0])
            try:
                self._send(ended)
                wait = EVERY
            except ImportError as error:
                self._warn_once(f"{error}; in a clone of Plumbline: pip install '.[mlflow]'")
                return
            except Exception as error:  # whatever MLflow raises
                self._warn_once(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
                wait = AGAIN

    def _warn_once(self, text: str) -> None:
        if not self.warned:
            uri = strip_password(self.uri)
            message = text.replace(self.uri, uri)
            print(f"{self.spec.key}: MLflow ({uri}): {message}. The run continues", file=sys.stderr)
        self.warned = True

    def _send(self, ended: bool) -> None:
        if self.client is None:
            self._open()
        for lines in self._read_unsent_lines():
            self._log(lines)
            self.offset += sum(map(len, lines))
        if ended:
            is_complete = self.last_steps.get("loss", 0) >= self.spec.train.steps
            self.client.set_terminated(self.run, status="FINISHED" if is_complete else "KILLED")

    def _read_unsent_lines(self) -> Iterator[list[bytes]]:
        """Yield the whole lines that were not sent yet, `LINES` at a time."""
        if (self.state / SCALARS).exists():  # from the first step on
            with open(self.state / SCALARS, "rb") as file:
                file.seek(self.offset)
                while lines := [line for line in itertools.islice(file, LINES) if line.endswith(b"\n")]:
                    yield lines

    def _log(self, lines: list[bytes]) -> None:
        from mlflow.entities import Metric

        last_steps, metrics = dict(self.last_steps), []
        for line in lines:
            with contextlib.suppress(ValueError):  # only half written, by a trainer that was killed
                row = json.loads(line)
                for name, value in row["values"].items():
                    if row["step"] > last_steps.get(name, -1):
                        last_steps[name] = row["step"]
                        metrics.append(Metric(name, value, row["time"], row["step"]))
        if metrics:
            self.client.log_batch(self.run, metrics=metrics)
        self.last_steps = last_steps

    def _open(self) -> None:
        """Find the run there: the one that an earlier start made, or a new one."""
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException

        if self.record is None:
            self.record = open(self.state / RECORD, "a+", encoding="utf-8")  # noqa: SIM115
            with contextlib.suppress(OSError):  # no locks here
                locks.lock(self.record, wait=True)  # what still tells of an earlier start does so first
        self.record.seek(0)
        client, last_record = MlflowClient(tracking_uri=self.uri), self.record.read()
        try:
            self.run = json.loads(last_record)["run"]
            client.update_run(self.run, status="RUNNING")
            for name in client.get_run(self.run).data.metrics:
                self.last_steps[name] = max(metric.step for metric in client.get_metric_history(self.run, name))
        except (ValueError, MlflowException) as error:  # none, or one that was deleted, or is another tracker's
            if isinstance(error, MlflowException) and error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            self.run = self._create(client)
            self.record.truncate(0)
            self.record.write(json.dumps({"run": self.run}))
            self.record.flush()
        self.client = client

    def _create(self, client: Any) -> str:
        from mlflow.entities import Param

        tags = {"plumbline.run_id": self.spec.run_id, "plumbline.preset": self.spec.preset}
        experiment = _find_experiment(client, f"plumbline/{self.spec.preset}/{self.spec.study}")
        run = client.create_run(experiment, run_name=self.spec.key, tags=tags).info.run_id
        content = {key: value for key, value in self.spec.to_dict().items() if key != "components"}
        parameters = [Param(*entry) for entry in _flatten(content)]
        for begin in range(0, len(parameters), PARAMETERS):
            client.log_batch(run, params=parameters[begin : begin + PARAMETERS])
        return str(run)


def _find_experiment(client: Any, name: str) -> str:
    from mlflow.exceptions import MlflowException

    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        try:
            return str(client.create_experiment(name))
        except MlflowException:  # another run of the same study came first
            experiment = client.get_experiment_by_name(name)
            if experiment is None:
                raise
    return str(experiment.experiment_id)


def _flatten(content: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """A spec as names and texts."""
    if isinstance(content, dict) and content:
        for key, value in content.items():
            yield from _flatten(value, f"{name}.{key}" if name else key)
    else:
        yield name, json.dumps(content) if isinstance(content, (list, dict)) else str(content)


def main() -> None:
    """Follow a run's scalars until standard input ends. A TERM, which all of a job is given, is not the end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    parser = command_line.Parser(__doc__)
    parser.add_argument("uri", help="tracking URI")
    parser.add_argument("state", type=Path, help="state directory of the run")
    parser.add_argument("spec", help="its spec, as JSON text")
    options = parser.parse_args()
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    MLflowFollower(options.uri, options.state, RunSpec.from_json(options.spec)).follow()


if __name__ == "__main__":
    main()

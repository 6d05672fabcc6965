"""What the console reads of a trainer: events in the state directory, an outcome, a message, an exit code."""

import json
import sys
import time
from pathlib import Path

method, _, state, _, out = sys.argv[1:]
directory = Path(state)
directory.mkdir(parents=True, exist_ok=True)
again = (directory / "progress.jsonl").exists()


def event(kind: str, step: int, **details: object) -> None:
    line = {"event": kind, "step": step, "steps": 6, "time": time.time(), **details}
    with open(directory / "progress.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


event("start", 0)
for step in (1, 2, 3):
    event("step", step, loss=7.0 + 1 / step)
    time.sleep(0.8 if method == "baseline" else 0)
if method == "broken":
    print("loading\nerror: shard-00001.bin of base.json is truncated\nbye")
    sys.exit(1)
if method == "slow" and not again:
    event("stopped", 3)
    print("asked to stop; saved at step 3, run me again")
    sys.exit(75)
if method == "empty":
    sys.exit(0)
result = {"outcome": "completed", "step": 6, "steps": 6, "validation_loss": 7.123456, "reason": None}
if method == "diverging":
    result |= {"outcome": "diverged", "step": 4, "validation_loss": None, "reason": "the loss is not finite"}
Path(out).mkdir(parents=True, exist_ok=True)
(Path(out) / "outcome.json").write_text(json.dumps(result))

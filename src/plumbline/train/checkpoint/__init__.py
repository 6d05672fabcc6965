"""Keeps a run at work on the disk, so that it can continue after anything: all of how that is done is in this
folder.

Two doors, for who trains:

- `saving`: everything that is written of a run (rolling checkpoints, weights at probe points, how a start went)
- `resuming`: everything that is read of it (lock, whose state, newest whole checkpoint, and that put back)

`training_state` goes through both: what a run knows of itself beside weights and optimizer. `records` reads a state
directory for who does not train. Nothing else is imported from outside (a contract in pyproject.toml):

| file                | does                                                                                   |
|---------------------|----------------------------------------------------------------------------------------|
| `run_directory`     | names what lies in a state directory, for both doors                                   |
| `rolling`           | keeps rolling checkpoints: named when whole, damaged ones set aside, old ones dropped  |
| `fit`               | says whether what a whole checkpoint holds can be a state of its run                   |
| `snapshot`          | writes weights and optimizer to files and reads them back                              |
| `shards`            | the same where each rank holds rows                                                    |
| `background`        | writes a checkpoint while steps are taken, by the thread of `writer`                   |
| `probe_checkpoints` | keeps weights at stated fractions of training for good                                 |
| `state`             | keeps records: whose state, starts, why a run was given up                             |
| `run_lock`          | lets one trainer at a time at a run                                                    |

Two checkpoints of one state have the same bytes, metadata included: no clock times, nothing of the process.
"""

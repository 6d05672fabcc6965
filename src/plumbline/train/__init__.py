"""Pretrains: takes one run from its spec to weights, metrics, a manifest and an outcome.

In the order of a run:

| file                | does                                                                                   |
|---------------------|----------------------------------------------------------------------------------------|
| `__main__`          | reads the command line, `settings` holds it                                            |
| `pretrain`          | trains one run: lock, where it stands, training, outputs                               |
| `checkpoint/`       | everything of a run at work on the disk: its doors are `saving` and `resuming`         |
| `batches/`          | sequences: packs, micro-batches, reading ahead                                         |
| `compiling`         | compiles training steps                                                                |
| `optim`             | makes the optimizer: parameter groups and their rates; `optimizers/`, one file each    |
| `schedule`          | gives the learning rate of a step; `schedules/`, one file each                         |
| `interventions/`    | change how a run is trained, one file each                                             |
| `training_context`  | holds all that for the loop                                                            |
| `loop`              | takes the steps                                                                        |
| `randomness`        | sets, takes and puts back random states                                                |
| `held_out`          | reads validation loss and online probes; `online` keeps what probes read               |
| `monitoring/`       | tells of a run at work: metrics, progress, memory, MLflow                              |
| `weights`           | looks at a model's weights as a whole                                                  |
| `outcome`           | leaves the outputs, `manifest` says what made them                                     |
| `disk`              | tells a full disk and an unreadable file from damage                                   |
| `step_time`         | measures steps of several runs side by side, without a run                             |
"""

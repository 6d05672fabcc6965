"""What runs in the processes that tests start and kill. Importing this imports all that a trainer needs."""

from __future__ import annotations

import os
import sys

import torch

from plumbline.cli import PlumblineError
from plumbline.studies.spec import RunSpec
from plumbline.train.settings import Settings
from plumbline.train.stop import StopRequest
from tests.train import standin_loader

standin_loader.install()

import pandas  # noqa: E402, F401
import torch._dynamo  # noqa: E402
import torch.distributed.fsdp  # noqa: E402, F401

from plumbline.train.pretrain import pretrain  # noqa: E402


def child(spec: str, chosen: Settings, environment: dict[str, str]) -> None:
    """Train, and exit as the command line does."""
    stop = StopRequest().install()
    os.environ.update(environment)
    torch.set_num_threads(1)
    try:
        sys.exit(pretrain(RunSpec.from_json(spec), chosen, stop))
    except PlumblineError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)

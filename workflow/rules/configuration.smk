"""Before config/config.yaml is read: what profiles and the command line say of the configuration, put together."""

from pathlib import Path

from plumbline.cli import PlumblineError
from plumbline.operate import invocation
from plumbline.operate.check import sharing
from plumbline.system import unsupported

if unsupported():
    raise WorkflowError(unsupported())
try:
    sharing.require_notes(Path.cwd())
    invocation.settle(workflow)
except PlumblineError as error:
    raise WorkflowError(str(error)) from None

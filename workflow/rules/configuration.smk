"""Before config/config.yaml is read: what profiles and the command line say of the configuration, put together."""

from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.system import unsupported
from plumbline.operate.preflight import sharing
from plumbline.project import invocation

if unsupported():
    raise WorkflowError(unsupported())
try:
    sharing.require_notes(Path.cwd())
    invocation.settle(workflow)
except PlumblineError as error:
    raise WorkflowError(str(error)) from None

"""Before config/config.yaml is read: what profiles and the command line say of the configuration, put together."""

from plumbline.cli import PlumblineError
from plumbline.operate import invocation

try:
    invocation.settle(workflow)
except PlumblineError as error:
    raise WorkflowError(str(error)) from None

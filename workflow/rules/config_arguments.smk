"""Before config/config.yaml is read: what profiles and the command line say, put together."""

from pathlib import Path

from plumbline.core import end_on_ctrl_c
from plumbline.core.errors import PlumblineError
from plumbline.core.command_line import explain_unsupported_system
from plumbline.operate.preflight import sharing
from plumbline.project import config_arguments, snakemake_internals, snakemake_messages

# From here on, Ctrl-C ends Snakemake without a traceback while it reads the rules. And whatever a user can put right is
# raised as a PlumblineError, and its sentence alone is shown.
end_on_ctrl_c.expect()
snakemake_messages.show_sentences_alone()
if explain_unsupported_system():
    raise PlumblineError(explain_unsupported_system())
# Snakemake fills them in, in the paths of rules' environments.
if set("{}") & set(str(snakemake_internals.source_folder(workflow))):
    raise PlumblineError(
        f"{snakemake_internals.source_folder(workflow)} has braces in its name, which Snakemake takes for names of its "
        "own; rename it"
    )
sharing.require_writable_notes(Path.cwd())
config_arguments.merge_config_arguments(workflow)
config_arguments.merge_resource_arguments(workflow)

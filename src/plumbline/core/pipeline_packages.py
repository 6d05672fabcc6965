"""Names the packages of the extra `[pipeline]`, and says in one sentence which of them a command lacks.

The wheel alone brings what a verdict and an audit need; training, tables, pages and the workflow need the rest.
"""

from __future__ import annotations

from plumbline.core.errors import PlumblineError

#: What to type, and where.
INSTALL = "pip install '.[pipeline]' in a clone of Plumbline (nothing is released yet)"

#: Modules that come with the extra: those of its packages, and of theirs those that this package imports itself.
MODULES = frozenset(
    {
        *("accelerate", "configargparse", "datasets", "huggingface_hub", "lm_eval", "matplotlib"),
        *("pandas", "psutil", "pyarrow", "safetensors", "snakemake", "snakemake_executor_plugin_slurm"),
        *("snakemake_interface_common", "snakemake_interface_logger_plugins", "threadpoolctl", "tokenizers", "torch"),
        *("tqdm", "transformers"),
    }
)


def explain_missing_package(error: ModuleNotFoundError, command: str) -> PlumblineError | None:
    """The sentence for a `command` that a module of the extra is missing for; None if it is another module."""
    if error.name not in MODULES:
        return None
    return PlumblineError(f"{command} needs {error.name}, which is not installed: {INSTALL}")

"""A machine with its own torch and little else, made of this one: what it lacks cannot be imported.

`environment` is for a subprocess, and for those that it starts: Python runs the `sitecustomize` beside this file there.
"""

from __future__ import annotations

import json
import os
import re
import sysconfig
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
#: Packages that the check needs and images with torch have not: a bundle carries them.
CARRIED = ("msgspec",)
SITE = Path(sysconfig.get_path("purelib"))

#: Distributions of such an image that the check's sections import, or that these import in turn. Not among them:
#: snakemake, msgspec, datasets, lm_eval, and this project as a package.
_HAS = """
    accelerate annotated-types anyio attrs certifi charset-normalizer click contourpy cycler filelock fonttools
    formulaic fsspec h11 hf-xet httpcore httpcore2 httpx httpx2 huggingface-hub idna interface-meta jinja2 joblib
    kiwisolver markdown-it-py markupsafe matplotlib mdurl mpmath narwhals networkx numpy packaging pandas patsy pillow
    pip psutil pyarrow pydantic pydantic-core pygments pyparsing python-dateutil pyyaml regex requests rich
    safetensors scikit-learn scipy setuptools shellingham six statsmodels sympy tabulate threadpoolctl tokenizers
    torch tqdm transformers triton truststore typer typing-extensions typing-inspection urllib3 wrapt
"""
HAS = frozenset(_HAS.split())


def name_of(distribution: metadata.Distribution) -> str:
    """Its name as an index writes it."""
    return re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()


def environment(**more: str) -> dict[str, str]:
    """This process's, less what names its packages, and as on such a machine."""
    installed = {
        name_of(distribution): _modules(distribution) for distribution in metadata.distributions(path=[str(SITE)])
    }
    names = sorted(installed.keys() - HAS)
    modules = set().union(*(installed[name] for name in names)) - set().union(
        *(installed[name] for name in HAS & installed.keys())
    )
    hides = {"site": str(SITE), "names": names, "modules": sorted(modules)}
    others = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_", "PLUMBLINE"))}
    return others | {"PYTHONPATH": str(HERE / "bare_image_site"), "BARE_IMAGE": json.dumps(hides)} | more


def _modules(distribution: metadata.Distribution) -> set[str]:
    """What of it can be imported from the top."""
    parts = {file.parts[0] for file in distribution.files or []}
    return {part.partition(".")[0] for part in parts if "-" not in part and part != ".."}


def list_device_commands() -> list[str]:
    """The command lines that the page of a bare machine gives for it."""
    text = (HERE.parents[1] / "docs/gpu-first-day.md").read_text()
    return [line.removeprefix("$ ") for line in text.splitlines() if "-m benchmarks.gpu_check --out" in line]

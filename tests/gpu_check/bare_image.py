"""A machine with its own torch and little else: a virtual environment with links to some of this one's packages."""

from __future__ import annotations

import os
import re
import sysconfig
import venv
from importlib import metadata
from pathlib import Path

from tests.conftest import REPOSITORY

SITE = Path(sysconfig.get_path("purelib"))
#: Packages that the check needs and images with torch have not: a bundle carries them.
CARRIED = ("msgspec",)
#: Distributions of such an image that the check's sections import, or that these import in turn. Not among them:
#: snakemake, msgspec, datasets, lm_eval, and this project as a package.
_HAS = """
    accelerate anyio attrs certifi charset-normalizer click contourpy cycler filelock fonttools formulaic fsspec h11
    hf-xet httpcore httpx huggingface-hub idna interface-meta jinja2 joblib kiwisolver markdown-it-py markupsafe
    matplotlib mdurl mpmath narwhals networkx numpy packaging pandas patsy pillow pip psutil pyarrow pygments
    pyparsing python-dateutil pyyaml regex requests rich safetensors scikit-learn scipy setuptools shellingham six
    statsmodels sympy tabulate threadpoolctl tokenizers torch tqdm transformers triton typer typing-extensions
    urllib3 wrapt
"""
HAS = frozenset(_HAS.split())


def make_image(folder: Path) -> dict[str, str]:
    """The environment of a process on such a machine, whose `python3` has these packages alone."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for distribution in metadata.distributions(path=[str(SITE)]):
        if re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower() in HAS:
            for part in {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
                if not (site / part).exists():
                    (site / part).symlink_to(SITE / part)
    others = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_", "PLUMBLINE"))}
    return others | {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}


def list_device_commands() -> list[str]:
    """The command lines that the page of a bare machine gives for it."""
    text = (REPOSITORY / "docs/gpu-first-day.md").read_text()
    return [line.removeprefix("$ ") for line in text.splitlines() if "-m benchmarks.gpu_check --out" in line]

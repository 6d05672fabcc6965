"""Makes the environment of a run: where its seeds, reports and copy are, and temporary files and caches that no other
run has.

What a run leaves behind must not reach the next one. Its temporary folder is its own, and goes with it. So are the
caches of compilers, empty at its begin: in a trainer whose budget is time, the arm that finds its kernels compiled
trains longer. What is downloaded is the same for all, and shared. A command that sets a variable itself is obeyed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from plumbline.core.permissions import find_home
from plumbline.verdict.own_trainer.processes import REPORT, TOKEN
from plumbline.verdict.own_trainer.requests import Request

#: What goes in front of the child's PYTHONPATH.
CHILD = Path(__file__).parent / "child"
#: Variables that name the temporary folder, which is the run's own.
TEMPORARY = ("TMPDIR", "TMP", "TEMP")
#: Variables that name a cache of compiled code, each the run's own: of inductor, triton and C++ extensions of torch.
COMPILED = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR")
#: The same of numba and jax, which keep none but where they are told to.
COMPILED_WHERE_SET = ("NUMBA_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")
#: Variables that name what is downloaded, or the same for every run, and where that is without them.
SHARED: Mapping[str, str] = {
    "HF_HOME": "~/.cache/huggingface",
    "HF_HUB_CACHE": "~/.cache/huggingface/hub",
    "HF_DATASETS_CACHE": "~/.cache/huggingface/datasets",
    "TRANSFORMERS_CACHE": "~/.cache/huggingface/hub",
    "TORCH_HOME": "~/.cache/torch",
    "TIKTOKEN_CACHE_DIR": "{tmp}/data-gym-cache",
    "KERAS_HOME": "~/.keras",
    "NLTK_DATA": "~/nltk_data",
    "MPLCONFIGDIR": "~/.config/matplotlib",
    "WANDB_DIR": "~/.cache/wandb",
    "WANDB_CACHE_DIR": "~/.cache/wandb",
    "WANDB_CONFIG_DIR": "~/.config/wandb",
    "CUDA_CACHE_PATH": "~/.nv",
}
#: Folders below XDG_CACHE_HOME (~/.cache) of what is the same for every run.
SHARED_CACHES = ("huggingface", "torch", "matplotlib", "fontconfig", "wandb", "pip", "uv", "mesa_shader_cache")
#: The begin of a temporary folder's name.
_PREFIX = "plumbline-run-"


@contextmanager
def hold_temporary_folder(note: Path) -> Iterator[Path]:
    """Make a run's temporary folder, and remove it when the block ends.

    It lies where the user's temporary files do, and not in the run's copy: paths of sockets are short, and a folder on
    a network may be slow. `note` keeps its path until it is gone, so that `remove_left` removes what a kill left.
    """
    remove_left(note)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        note.write_text(str(folder))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        note.unlink(missing_ok=True)


def remove_left(note: Path) -> None:
    """Remove the temporary folder that a note names, and the note."""
    with suppress(OSError):
        folder = Path(note.read_text())
        if folder.name.startswith(_PREFIX) and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)
        note.unlink()


def make_environment(request: Request, *, temporary: Path, reports: Path, token: str) -> dict[str, str]:
    """Make the variables of a run's command.

    Args:
        request: of the run.
        temporary: its own folder for temporary files and caches.
        reports: the folder in which its processes report.
        token: by which they are known.
    """
    theirs = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != str(CHILD)]
    devices = {"CUDA_VISIBLE_DEVICES": request.devices} if request.devices else {}
    compiled = (*COMPILED, *(name for name in COMPILED_WHERE_SET if name in os.environ))
    return {
        # Its default is in the temporary folder, which is another one now.
        "TIKTOKEN_CACHE_DIR": os.environ.get("DATA_GYM_CACHE_DIR") or _fill(SHARED["TIKTOKEN_CACHE_DIR"]),
        **os.environ,
        **dict.fromkeys(TEMPORARY, str(temporary)),
        **{name: str(temporary / name.lower()) for name in compiled},
        "PYTHONUNBUFFERED": "1",
        **request.environment,
        **devices,
        "PYTHONPATH": os.pathsep.join([str(CHILD), *theirs]),
        TOKEN: token,
        REPORT: str(reports),
        "PLUMBLINE_TREE": request.top,
        "PLUMBLINE_COPY": request.copy,
        "PLUMBLINE_TEMPORARY": str(temporary),
        "PLUMBLINE_WATCH": "1" if request.watch else "",
        "PLUMBLINE_SEEDED": "",
        "PLUMBLINE_SINCE": repr(request.since),
        "PLUMBLINE_CACHES": os.pathsep.join([*COMPILED, *COMPILED_WHERE_SET, *SHARED]),
        "PLUMBLINE_SHARED": os.pathsep.join(_list_shared()),
    }


def _list_shared() -> list[str]:
    """The folders that runs share by name, where no variable says otherwise."""
    caches = os.environ.get("XDG_CACHE_HOME") or _fill("~/.cache")
    return [*map(_fill, SHARED.values()), *(os.path.join(caches, name) for name in SHARED_CACHES)]


def _fill(place: str) -> str:
    home = find_home()
    return place.replace("{tmp}", tempfile.gettempdir()).replace("~", str(home) if home else "~")

"""Sets, takes and puts back random states of every kind: at a run's start, before each step, on resume.

Nothing of this package draws from them; a component of somebody's own that does (dropout, say) repeats, differs from
seed to seed and from rank to rank, and resumes exactly.
"""

from __future__ import annotations

import contextlib
import random
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch


def seed(init_seed: int, rank: int) -> None:
    """Seed Python's, numpy's and torch's global generators; two ranks of a run never draw the same."""
    python, numpy, torchs = np.random.SeedSequence([init_seed, rank]).generate_state(3)
    random.seed(int(python))
    np.random.seed(int(numpy))
    torch.manual_seed(int(torchs))


def capture(device: torch.device) -> tuple[Any, ...]:
    """Copy the states of this rank's generators, as they are (cheap)."""
    cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    return random.getstate(), np.random.get_state(), torch.get_rng_state(), cuda


def encode(states: tuple[Any, ...]) -> dict[str, Any]:
    """Turn states of generators into JSON."""
    python, numpy, cpu, cuda = states
    return {
        "python": [python[0], list(python[1]), python[2]],
        "numpy": [numpy[0], numpy[1].tolist(), *numpy[2:]],
        "torch": _text(cpu),
        "cuda": None if cuda is None else _text(cuda),
    }


def restore(encoded: dict[str, Any], device: torch.device) -> None:
    """Set this rank's generators to the states that `encode` gave."""
    version, values, gauss = encoded["python"]
    random.setstate((version, tuple(values), gauss))
    name, key, position, has_gauss, cached = encoded["numpy"]
    np.random.set_state((name, np.array(key, dtype=np.uint32), position, has_gauss, cached))
    torch.set_rng_state(_tensor(encoded["torch"]))
    if device.type == "cuda" and encoded["cuda"] is not None:
        torch.cuda.set_rng_state(_tensor(encoded["cuda"]), device)


def require(encoded: dict[str, Any]) -> None:
    """Check that `restore` can set generators to these states; those of this process stay as they are.

    Raises:
        ValueError, TypeError, KeyError: it cannot.
    """
    version, values, gauss = encoded["python"]
    random.Random().setstate((version, tuple(values), gauss))
    name, key, position, has_gauss, cached = encoded["numpy"]
    np.random.RandomState().set_state((name, np.array(key, dtype=np.uint32), position, has_gauss, cached))
    try:
        torch.Generator().set_state(_tensor(encoded["torch"]))
    except RuntimeError as error:  # of a generator in memory: nothing of a GPU's is taken for it
        raise ValueError(str(error).partition("\n")[0]) from error
    if encoded["cuda"] is not None:
        size = len(_tensor(encoded["cuda"]))
        if torch.cuda.is_initialized() and size != (expected := torch.cuda.get_rng_state().numel()):
            raise ValueError(f"the state of a GPU's generator has {size} bytes, not {expected}")


@contextlib.contextmanager
def preserve_random_state(device: torch.device) -> Iterator[None]:
    """Put the generators' states back after a ``with`` block, whatever it draws."""
    states = capture(device)
    try:
        yield
    finally:
        python, numpy, cpu, cuda = states
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state(cuda, device)


def _text(state: torch.Tensor) -> str:
    return b64encode(state.cpu().numpy().tobytes()).decode()


def _tensor(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(b64decode(text)), dtype=torch.uint8)

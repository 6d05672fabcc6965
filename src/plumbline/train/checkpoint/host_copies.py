"""Copies a checkpoint's tensors into the host's memory, so that training goes on changing them.

From a GPU they go into pinned memory, which takes seconds to get where a checkpoint has some ten gigabytes. A thread
gets it while the first steps are taken, and every checkpoint uses it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from plumbline.train.checkpoint.background_thread import BackgroundThread
from plumbline.train.checkpoint.weight_files import TensorFile


class HostCopies:
    """Copies the tensors of one run's checkpoints, one checkpoint at a time."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._held: dict[tuple[str, str], torch.Tensor] = {}
        self._thread = BackgroundThread("pinned memory")

    def prepare(self, files: list[TensorFile]) -> None:
        """Begin to get the memory for tensors like these, in a thread, where it is to be pinned."""
        if self.device.type == "cuda":
            self._thread.start(lambda: self._get(files))

    def copied(self, files: list[TensorFile]) -> tuple[list[TensorFile], Callable[[], None]]:
        """Copy the tensors of files, whose copies before these nobody reads any more.

        Returns the copies, and a function that waits until they are there. From a GPU they are copied in the order of
        its work, so that the caller need not wait.

        Raises:
            RuntimeError: the memory could not be had.
        """
        if self.device.type != "cuda":
            return [
                _with(file, {name: _clone(value) for name, value in file.tensors.items()}) for file in files
            ], _there
        self._thread.wait()
        self._get(files)
        copies = [
            _with(file, {
                name: self._held[str(file.path), name].copy_(value, non_blocking=True)
                for name, value in file.tensors.items()
            })
            for file in files
        ]  # fmt: skip
        there = torch.cuda.Event()
        there.record(torch.cuda.current_stream(self.device))
        return copies, there.synchronize

    def _get(self, files: list[TensorFile]) -> None:
        """Hold memory for each tensor of files, and for no other."""
        torch.cuda.set_device(self.device)  # a thread's own is the first one
        before, self._held = self._held, {}
        for file in files:
            for name, value in file.tensors.items():
                held = before.get((str(file.path), name))
                fits = held is not None and (held.shape, held.dtype) == (value.shape, value.dtype)
                self._held[str(file.path), name] = held if fits else _pinned(value)


def _with(file: TensorFile, tensors: dict[str, torch.Tensor]) -> TensorFile:
    return replace(file, tensors=tensors)


def _clone(value: torch.Tensor) -> torch.Tensor:
    return value.clone(memory_format=torch.contiguous_format)


def _pinned(value: torch.Tensor) -> torch.Tensor:
    return torch.empty(value.shape, dtype=value.dtype, pin_memory=True)


def _there() -> None:
    """Wait for copies that were made at once."""

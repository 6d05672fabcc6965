"""Compiles training steps, keeps what was compiled, and trains without where the compiler fails.

A step is two graphs of torch.compile: the forward pass of one layer, which all layers that are equal share, and what
follows the last one, final norm and loss. (On a processor, 47 CPU seconds at 4 layers and at 12; as one graph the
whole model takes 65 and 95.) Layers that differ have a graph each: all of them where a residual stream reads what
earlier layers wrote (DenseFormer, attention residuals), since each reads more than the one before; the first beside the
others with value residual; the first and the last in hyper-connections' official variant; those with other queries
where the query is the identity in some layers alone; and those that an intervention watches.

What is read without a gradient (held-out losses, probes) goes through the model as it is: compiled, each mode and each
last, smaller micro-batch would be a graph more. So runs of equal shape share what was compiled.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from plumbline.core import processor
from plumbline.model.decoder import Block, Decoder
from plumbline.model.distributed import RankGroup
from plumbline.model.numerics import autocast
from plumbline.model.residual._base import State
from plumbline.specs.spec import Precision
from plumbline.train import randomness


@dataclass(slots=True)
class _CompileState:
    """What a module's forward pass goes by. A wrapper that it could reach would outlive the process group."""

    training: bool = False
    trying: bool = False
    fault: str | None = None


class CompiledModel:
    """Calls a model as the ranks train it, with its forward and backward passes compiled where gradients are wanted.

    Layers, and what follows the last one, are called from within the model, and this from within what makes ranks one
    model: what exchanges gradients, or gathers a layer's sharded parameters, runs between them.
    """

    def __init__(self, wrapped: nn.Module, model: Decoder, ranks: RankGroup, cache: Path | None) -> None:
        """`wrapped` is `model` as `parallel` gives it; `cache` the folder of what is compiled (None: torch's own)."""
        self.wrapped, self.model, self.ranks = wrapped, model, ranks
        self.now = _CompileState(fault=_configure_compiler(cache, model.spec.layers))
        # With either, torch.compile silently returns what it is given.
        if torch._dynamo.config.disable:
            self.now.fault = "TORCH_COMPILE_DISABLE is set"
        elif os.environ.get("TORCHDYNAMO_DISABLE") == "1":
            self.now.fault = "TORCHDYNAMO_DISABLE is set"
        layer = _compile(_recompute_layer if model.recompute else _run_layer, self.now)
        for block in model.blocks:
            block.forward = functools.partial(layer, block)
        model.recompute = False  # within a layer's graph, which knows what it needs again
        model.final_loss = _compile(model.final_loss, self.now)  # type: ignore[method-assign]

    def __call__(self, *arguments: Any, **keywords: Any) -> torch.Tensor:
        """Call the model with these arguments."""
        self.now.training = torch.is_grad_enabled()
        try:
            return self.wrapped(*arguments, **keywords)
        finally:
            self.now.training = False

    @property
    def fault(self) -> str | None:
        """The reason why nothing is compiled; None if the model is compiled."""
        return self.now.fault

    def __getattr__(self, name: str) -> Any:
        """Look up an attribute of the wrapped model, such as how DDP is told when to exchange gradients."""
        return getattr(self.wrapped, name)

    def attempt(self, micro_batch: int, precision: Precision) -> str | None:
        """Compile for micro-batches of so many sequences, by one forward and backward pass of which nothing stays.

        No gradient stays, and no random number is drawn. Where the compiler fails on any rank, all continue without it.
        A graph is compiled, its backward pass included, before any of it runs, so that a rank on which that fails still
        meets the others in what they exchange.

        Returns:
            Why nothing is compiled; None if the model is. Any other failure is raised, and a compiler's in a later
            step.
        """
        tokens_BT = torch.zeros(micro_batch, self.model.spec.context, dtype=torch.long, device=self.ranks.device)
        self.now.trying = True
        try:
            with randomness.preserve_random_state(self.ranks.device):
                with autocast(precision, self.ranks.device):
                    loss = self(tokens_BT, loss=True)
                loss.backward()
        finally:
            self.now.trying = False
            self.model.zero_grad(set_to_none=True)
        faults = {rank: fault for rank, fault in enumerate(self.ranks.gather(self.fault)) if fault is not None}
        if faults:
            rank, fault = next(iter(faults.items()))
            self.now.fault = fault if self.ranks.world == 1 else f"rank {rank}: {fault}"
        return self.fault


def _run_layer(block: Block, *inputs: Any) -> State:
    return Block.forward(block, *inputs)


def _recompute_layer(block: Block, *inputs: Any) -> State:
    """The same, of which only the state before it is kept for the gradient."""
    if not torch.is_grad_enabled():
        return Block.forward(block, *inputs)
    return checkpoint(Block.forward, block, *inputs, use_reentrant=False, preserve_rng_state=False)


def _compile(forward: Callable[..., Any], now: _CompileState) -> Callable[..., Any]:
    """`forward`, compiled in training, and without gradients as it is."""
    # Whole, or not at all: what the compiler cannot see through would else run as it is, and nobody would know.
    compiled = torch.compile(forward, dynamic=False, fullgraph=True)

    def call(*arguments: Any) -> Any:
        if now.training and now.fault is None:
            try:
                return compiled(*arguments)
            except torch._dynamo.exc.TorchDynamoException as error:
                inner = getattr(error, "inner_exception", error)
                if isinstance(inner, (MemoryError, torch.OutOfMemoryError)):
                    raise inner from error
                if not now.trying:
                    raise
                now.fault = _summarise_error(error)
        return forward(*arguments)

    return call


def _configure_compiler(cache: Path | None, layers: int) -> str | None:
    """Configure torch.compile in this process; return the reason if that fails, else None."""
    if cache is not None:
        try:
            cache = cache.absolute() / f"{_processor_name()}-{_version_name()}"
            cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            return f"there is no folder for compiled code: {error}"
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
        os.environ["TRITON_CACHE_DIR"] = str(cache / "triton")
    import torch._dynamo
    import torch._functorch.config
    import torch._inductor.config

    torch._inductor.config.fx_graph_cache = True
    # Else what the processor says of its vectors is tried by compiling three programs in each new folder, as for a
    # torch that an old compiler has made.
    if torch._inductor.config.cpp.vec_isa_ok is None:
        torch._inductor.config.cpp.vec_isa_ok = True
    torch._functorch.config.enable_autograd_cache = True
    # Ours are functions of their inputs alone.
    torch._functorch.config.autograd_cache_allow_custom_autograd_functions = True
    # A backward pass is compiled with its forward pass: where it cannot be, nothing has run yet.
    torch._functorch.config.force_non_lazy_backward_lowering = True
    # One graph a layer, where layers differ, and again for what an intervention watches in some steps.
    torch._dynamo.config.recompile_limit = max(8, 4 * layers)
    # A layer that an intervention watches would else go by the graph of one that it does not, and be missed.
    torch._dynamo.config.skip_nnmodule_hook_guards = False
    # What layers leave for later ones (rotations, the first layer's values) needs no leaving again for the gradient.
    torch._dynamo.config.skip_fwd_side_effects_in_bwd_under_checkpoint = True
    # DDP's own way is a graph for each bucket of 25 MB, hundreds in a model of a billion parameters.
    torch._dynamo.config.optimize_ddp = False
    return None


def _processor_name() -> str:
    """A name for machines that run each other's code: what is compiled uses all instructions of the processor that it
    was compiled on, and another, of the same cluster and on the same disk, may lack some."""
    facts = processor.read_facts()
    keys = ("model name", "flags", "Features", "CPU part")  # x86 and ARM
    text = "\n".join(facts[key] for key in keys if key in facts) or platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _version_name() -> str:
    """A name for installations that read each other's files. What torch keeps of C++ is found by its source and how it
    is compiled: after an upgrade in place that is the same, and the headers that it was compiled with are not."""
    return f"torch{torch.__version__}-{sys.implementation.cache_tag}"


def _summarise_error(error: BaseException) -> str:
    """The first line of what the compiler says, and the last where the first only announces it (a kernel is compiled in
    another process, whose traceback follows); the rest tells of torch's own insides."""
    inner = getattr(error, "inner_exception", error)
    lines = [line.strip() for line in str(inner).splitlines() if line.strip()] or [""]
    message = f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
    return f"torch.compile fails: {type(inner).__name__}: {message}"[:300]

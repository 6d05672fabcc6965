"""The training loop: steps, the divergence check, validation, checkpoints.

Shape suffixes: B sequences of a micro-batch, T tokens, V vocabulary. Steps count from 1; `Loop.step` is the number of
updates made, and the batch of step n is number n - 1 of the data order.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from plumbline.data.loader import Pack, batch_indices
from plumbline.files import atomic_write_json, parse_json
from plumbline.probes import read_all
from plumbline.specs.spec import RunSpec
from plumbline.train import randomness, schedule, snapshot
from plumbline.train.batch import Batching
from plumbline.train.checkpoint import Checkpoint, Checkpoints
from plumbline.train.disk import guarded
from plumbline.train.distributed import Ranks, gradient_sync
from plumbline.train.interventions import Intervention
from plumbline.train.lease import Lease
from plumbline.train.metrics import Metrics
from plumbline.train.numerics import autocast
from plumbline.train.online import Online
from plumbline.train.optim import Optimizer
from plumbline.train.points import Points
from plumbline.train.progress import Progress
from plumbline.train.settings import Settings
from plumbline.train.stop import Stopped, StopRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """What the loop works with. `model` is the decoder, sharded or not; `forward` calls it, wrapped or compiled."""

    spec: RunSpec
    settings: Settings
    ranks: Ranks
    stop: StopRequest
    lease: Lease | None
    checkpoints: Checkpoints
    points: Points
    progress: Progress
    pack: Pack
    validation: Pack
    batching: Batching
    model: nn.Module
    forward: Callable[..., torch.Tensor]
    optimizer: Optimizer
    interventions: list[Intervention]
    made_with: dict[str, str]


class Loop:
    """One run, from the step it is at to its end."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.step = 0
        self.metrics = Metrics()
        self.online = Online(parts.spec)
        self.divergence: dict[str, Any] | None = None
        self.seconds = 0.0
        self.factor = schedule.factor(parts.spec.schedule, parts.spec.train.steps)
        self.began = time.monotonic()
        self.saved_at = self.began
        self.random = randomness.capture(parts.ranks.device)
        default = 15.0 if parts.ranks.device.type == "cpu" else 600.0
        seconds = parts.settings.checkpoint_seconds
        self.save_seconds = default if seconds is None else seconds

    @property
    def tokens(self) -> int:
        """Tokens read so far."""
        return self.step * self.parts.spec.train.batch_tokens

    def run(self) -> None:
        """Train to the last step, or to the step at which the run diverges (`divergence` then says how).

        Raises:
            Stopped: asked to stop. Everything up to `step` is in order and can be saved.
        """
        steps, validate_every = self.parts.spec.train.steps, self.parts.spec.train.validate_every
        self.parts.ranks.poll(self.parts.stop)
        while self.divergence is None:
            self._keep_point()
            due = self.step == steps or (self.step > 0 and self.step % validate_every == 0)
            if due and self.metrics.validated(self.step) is None:
                self._validate()
            if self.step == steps and self._last_update_diverged():
                return
            self._probe()
            if self.step == steps:
                return
            stop, save = self.train_step()
            if stop:
                raise Stopped
            if save and self.divergence is None:
                self.save()

    def train_step(self) -> tuple[bool, bool]:
        """One step; returns whether to stop and whether to save, agreed over the ranks."""
        parts, step = self.parts, self.step + 1
        for intervention in parts.interventions:
            intervention.begin(step)
        learning_rate = parts.spec.optimizer.learning_rate * self.factor(step)
        loss, grad_norm = torch.stack([self._gradients(step), parts.optimizer.clip().float()]).tolist()
        loss, stop, save = parts.ranks.sum([loss, float(parts.stop.asked), float(self._save_due(step))])
        tokens = step * parts.spec.train.batch_tokens
        self.metrics.train(step, loss, grad_norm, learning_rate, tokens)
        if not (math.isfinite(loss) and math.isfinite(grad_norm)):
            self.divergence = {"step": step, "reason": f"step {step}: loss {loss}, gradient norm {grad_norm}"}
            return False, False
        parts.optimizer.step(step, learning_rate)
        parts.optimizer.zero_grad()
        for intervention in parts.interventions:
            intervention.end(step)
        self.step, self.random = step, randomness.capture(parts.ranks.device)
        parts.progress.step(step, loss, grad_norm, learning_rate)
        return stop > 0, save > 0

    def _last_update_diverged(self) -> bool:
        """Whether the last update made weights, or a held-out loss, that are no numbers: no step comes to notice."""
        loss = self.metrics.validated(self.step)
        assert loss is not None
        finite = snapshot.finite(self.parts.model, self.parts.ranks)
        if finite and math.isfinite(loss):
            return False
        what = f"held-out loss {loss}" if finite else "weights that are not finite"
        self.divergence = {"step": self.step, "reason": f"step {self.step}: {what} after its update"}
        return True

    def _gradients(self, step: int) -> torch.Tensor:
        """Accumulate the batch's gradients; returns this rank's part of the batch's mean loss a token."""
        parts, spec = self.parts, self.parts.spec
        targets = spec.sequences_per_batch * (spec.model.context - 1)
        indices = batch_indices(parts.pack, spec.data_seed, step - 1, spec.sequences_per_batch)
        places = parts.batching.micro_batches(parts.ranks.rank)
        total = torch.zeros((), device=parts.ranks.device)
        for number, place in enumerate(places):
            if parts.ranks.world == 1:  # many ranks agree once a step
                parts.stop.poll()
            tokens_BT = self._tokens(parts.pack, indices[place])
            with gradient_sync(parts.forward, number == len(places) - 1):
                loss = self._loss_sum(tokens_BT) / targets
                objective = loss
                for intervention in parts.interventions:
                    extra = intervention.extra_loss(step, tokens_BT)
                    if extra is not None:
                        objective = objective + extra / (len(places) * parts.ranks.world)
                (objective * parts.ranks.world).backward()  # the ranks' gradients are averaged
            total += loss.detach()
        return total

    def _loss_sum(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        """Summed cross-entropy (nats) of the next tokens."""
        with autocast(self.parts.spec.train.precision, self.parts.ranks.device):
            return self.parts.forward(tokens_BT, loss=True)

    def _tokens(self, pack: Pack, indices: np.ndarray) -> torch.Tensor:
        tokens_BT = torch.from_numpy(pack.rows(indices))
        if self.parts.ranks.device.type == "cuda":
            return tokens_BT.pin_memory().to(self.parts.ranks.device, non_blocking=True)
        return tokens_BT

    @torch.no_grad()
    def _validate(self) -> None:
        """Mean loss a token on the first sequences of the validation pack, the same ones every time."""
        parts, sequences = self.parts, self.parts.spec.train.validation_sequences
        parts.model.eval()
        width = parts.batching.micro_batch
        rounds = math.ceil(sequences / (width * parts.ranks.world))
        total = torch.zeros((), dtype=torch.float64, device=parts.ranks.device)
        for number in range(rounds):
            parts.ranks.poll(parts.stop)
            start = (number * parts.ranks.world + parts.ranks.rank) * width
            last = min(start + width, sequences)
            # A rank with nothing left reads something all the same: a sharded model's forward pass needs every rank.
            mine = np.arange(start, last) if start < last else np.arange(min(width, sequences))
            value = self._loss_sum(self._tokens(parts.validation, mine))
            if start < last:
                total += value.double()
        parts.model.train()
        loss = parts.ranks.sum([total.item()])[0] / (sequences * (parts.spec.model.context - 1))
        rate = parts.spec.optimizer.learning_rate * self.factor(self.step)
        self.metrics.validation(self.step, loss, rate, self.tokens)
        parts.progress.validation(self.step, loss)

    def _probe(self) -> None:
        """Read the online probes that are due, on the same sequences every time."""
        parts = self.parts
        due = self.online.due(self.step)
        if not due:
            return
        parts.ranks.poll(parts.stop)
        tokens_BT = self._tokens(parts.validation, np.arange(max(probe.sequences for probe in due)))
        with randomness.preserved(parts.ranks.device):
            readings = read_all(
                parts.model,
                due,
                tokens_BT,
                parts.spec.train.precision,
                init_seed=parts.spec.init_seed,
                separator=parts.validation.separator,
            )
        self.online.add(self.step, parts.ranks.broadcast(readings))

    def _keep_point(self) -> None:
        """Keep the weights for good, where the step is a probe point."""
        parts = self.parts
        if not parts.points.due(self.step):
            return
        if parts.ranks.broadcast(parts.ranks.leader and parts.points.has(self.step, parts.made_with)):
            return
        weights = snapshot.whole_weights(parts.model, parts.ranks)
        lease = parts.lease
        if lease is not None:
            lease.check()
            metadata = {**self._whose(), **parts.made_with}
            guarded(parts.points.kept.directory, lambda: parts.points.keep(self.step, weights, metadata, lease.check))
        parts.ranks.barrier()

    def _save_due(self, step: int) -> bool:
        """Whether rank 0 wants a checkpoint after `step`."""
        if not self.parts.ranks.leader:
            return False
        every = self.parts.settings.checkpoint_steps
        if every is not None:
            return step % every == 0
        return time.monotonic() - self.saved_at >= self.save_seconds

    def save(self) -> None:
        """Write a checkpoint of the state after `step`, unless there is one."""
        parts = self.parts
        diverged = self.divergence is not None
        if parts.ranks.broadcast(parts.checkpoints.has(self.step, diverged)):
            return
        finite = snapshot.finite(parts.model, parts.ranks)
        states = parts.ranks.gather(randomness.encode(self.random))
        temporary: Path | None = None
        if parts.lease is not None:
            parts.lease.check()
            temporary = guarded(parts.checkpoints.directory, lambda: parts.checkpoints.begin(self.step))
        temporary = parts.ranks.broadcast(temporary)
        assert temporary is not None
        guarded(
            parts.checkpoints.directory, lambda: snapshot.save(temporary, parts.model, parts.optimizer, parts.ranks)
        )
        parts.ranks.barrier()
        if parts.lease is not None:
            guarded(parts.checkpoints.directory, lambda: self._finish(temporary, finite, states))
            parts.progress.event("checkpoint", self.step)
        parts.ranks.barrier()
        self.saved_at = time.monotonic()

    def _finish(self, temporary: Path, finite: bool, states: list[dict[str, Any]]) -> None:
        parts = self.parts
        self.metrics.save(temporary / "metrics.npy")
        self.online.save(temporary)
        loop = {
            "step": self.step,
            "seconds": self.seconds + time.monotonic() - self.began,
            "random": states,
            "interventions": [intervention.state() for intervention in parts.interventions],
            "divergence": self.divergence,
        }
        atomic_write_json(temporary / "loop.json", loop)
        metadata = {
            **self._whose(),
            "finite": finite,
            "diverged": self.divergence is not None,
            "ranks": parts.ranks.world,
            "strategy": parts.settings.strategy,
            **parts.made_with,
        }
        assert parts.lease is not None
        diverged = self.divergence is not None
        parts.checkpoints.finish(temporary, self.step, metadata, diverged, check=parts.lease.check)

    def _whose(self) -> dict[str, str]:
        """What says of a checkpoint or a probe point which run's it is."""
        parts = self.parts
        return {
            "run_id": parts.spec.run_id,
            "data_fingerprint": parts.pack.fingerprint,
            "validation_fingerprint": parts.validation.fingerprint,
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint, whoever saved it on however many ranks."""
        parts = self.parts
        assert checkpoint.metadata["run_id"] == parts.spec.run_id, f"{checkpoint.path} is another run's"
        loop = parse_json((checkpoint.path / "loop.json").read_text(encoding="utf-8"))
        snapshot.load(checkpoint.path, parts.model, parts.optimizer)
        self.metrics = Metrics.load(checkpoint.path / "metrics.npy")
        self.online.load(checkpoint.path)
        self.step, self.seconds, self.divergence = loop["step"], loop["seconds"], loop["divergence"]
        for intervention, state in zip(parts.interventions, loop["interventions"], strict=True):
            intervention.load_state(state)
        if parts.ranks.rank < len(loop["random"]):
            randomness.restore(loop["random"][parts.ranks.rank], parts.ranks.device)
            self.random = randomness.capture(parts.ranks.device)

    def settle_divergence(self) -> None:
        """Make the weights the last finite ones, note their step, and save, so that nobody trains this run again.

        The update of the step that diverged was never made (but for the last step's), so the weights are finite as a
        rule.
        """
        parts = self.parts
        assert self.divergence is not None
        self.divergence["weights_step"] = self.step
        if not snapshot.finite(parts.model, parts.ranks):
            found = parts.ranks.broadcast(parts.checkpoints.newest_finite() if parts.ranks.leader else None)
            if found is not None:
                snapshot.load(found.path, parts.model, None)
                self.divergence["weights_step"] = found.step
            else:
                snapshot.initialise_again(parts.model, parts.spec.init_seed)
                self.divergence["weights_step"] = 0
        self.save()

"""The training loop: steps, the divergence check, validation, checkpoints.

Shape suffixes: B sequences of a micro-batch, T tokens, V vocabulary. Steps count from 1; `Loop.step` is the number of
updates made, and the batch of step n is number n - 1 of the data order.
"""

from __future__ import annotations

import math
import time
from typing import Any

import torch

from plumbline.core.files import parse_json, pretty_json
from plumbline.runtime.distributed import gradient_sync
from plumbline.runtime.stop import Stopped
from plumbline.train import held_out, randomness, schedule
from plumbline.train.checkpoint import snapshot
from plumbline.train.checkpoint.disk import guarded
from plumbline.train.checkpoint.rolling import Checkpoint
from plumbline.train.checkpoint.saving import Saved, Saving
from plumbline.train.held_out import loss_sum
from plumbline.train.monitoring.deferred_metrics import Readings, steps_late
from plumbline.train.monitoring.metrics import Metrics
from plumbline.train.online import Online
from plumbline.train.prefetch import Batches
from plumbline.train.training_context import Parts


class Loop:
    """One run, from the step it is at to its end."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.step = 0
        self.metrics = Metrics()
        self.online = Online(parts.spec)
        self.divergence: dict[str, Any] | None = None
        late = steps_late(parts.settings.read_late, parts.ranks, parts.optimizer.can_skip)
        self.readings = Readings(parts.ranks, late)
        self.stop_wanted = self.save_wanted = False
        self.seconds = 0.0
        self.factor = schedule.factor(parts.spec.schedule, parts.spec.train.steps)
        self.began = time.monotonic()
        self.saved_at = self.began
        self.random = randomness.capture(parts.ranks.device)
        default = 15.0 if parts.ranks.device.type == "cpu" else 600.0
        seconds = parts.settings.checkpoint_seconds
        self.save_seconds = default if seconds is None else seconds
        self.saving = Saving(parts.checkpoints, parts.ranks, parts.lease, parts.progress)
        ahead = parts.settings.overlap
        self.batches = Batches(parts.pack, parts.spec, parts.batching, parts.ranks, ahead=ahead)

    @property
    def tokens(self) -> int:
        """Tokens read so far."""
        return self.step * self.parts.spec.train.batch_tokens

    def run(self) -> None:
        """Train to the last step, or to the step at which the run diverges (`divergence` then says how).

        Raises:
            Stopped: asked to stop. Everything up to `step` is in order and can be saved.
        """
        try:
            self._run()
        except Stopped:
            if self.divergence is None and not self.catch_up():
                return  # it had diverged before it was asked to stop
            raise

    def _run(self) -> None:
        steps, validate_every = self.parts.spec.train.steps, self.parts.spec.train.validate_every
        self.parts.ranks.poll(self.parts.stop)
        while self.divergence is None:
            self.saving.look(self.step)
            due = self.step == steps or (self.step > 0 and self.step % validate_every == 0)
            looked_at = due or self.parts.points.due(self.step) or self.online.due(self.step)
            if looked_at and not self.catch_up():
                return
            self._keep_point()
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
            if save and self.catch_up():
                self.save_wanted = False
                self.save(beside=self.parts.settings.overlap)

    def train_step(self) -> tuple[bool, bool]:
        """One step; returns whether to stop and whether to save, agreed over the ranks.

        Its loss is read now, or some steps later; what was read may be that the run has diverged.
        """
        parts, step = self.parts, self.step + 1
        at_once = any(intervention.at_once(step) for intervention in parts.interventions)
        if at_once and not self.catch_up():
            return False, False
        for intervention in parts.interventions:
            intervention.begin(step)
        learning_rate = parts.spec.optimizer.learning_rate * self.factor(step)
        skip = self.readings.add(
            self._gradients(step),
            parts.optimizer.clip(),
            stop=parts.stop.asked,
            save=self._save_wanted(),
            step=step,
            learning_rate=learning_rate,
            random=self.random,
        )
        if not self.catch_up(but=0 if at_once else self.readings.late):
            return False, False
        parts.optimizer.step(step, learning_rate, None if at_once else skip)
        parts.optimizer.zero_grad()
        for intervention in parts.interventions:
            intervention.end(step)
        self.step, self.random = step, randomness.capture(parts.ranks.device)
        return self.stop_wanted, self.save_wanted or self._save_due(step)

    def catch_up(self, but: int = 0) -> bool:
        """Read the steps that were not read yet, but for the last `but`; returns whether the run goes on.

        Where one of them is not finite, the run is as if that had been seen before its update: nothing has changed
        since, and what was counted is taken back.
        """
        for found in self.readings.read(but):
            step = found.step
            tokens = step * self.parts.spec.train.batch_tokens
            self.metrics.train(step, found.loss, found.grad_norm, found.learning_rate, tokens)
            if not found.finite:
                reason = f"step {step}: loss {found.loss}, gradient norm {found.grad_norm}"
                self.divergence = {"step": step, "reason": reason}
                self.step, self.random = step - 1, found.random
                self.readings.drop()
                if self.step == 0:
                    self.parts.optimizer.load({})  # zeros that skipped steps have made
                break
            self.stop_wanted |= found.stop
            self.save_wanted |= found.save
            self.parts.progress.step(step, found.loss, found.grad_norm, found.learning_rate)
        return self.divergence is None

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
        batch = self.batches.take(step)
        total = torch.zeros((), device=parts.ranks.device)
        for number, rows_BT in enumerate(batch):
            if parts.ranks.world == 1:  # many ranks agree once a step
                parts.stop.poll()
            tokens_BT = rows_BT.to(parts.ranks.device, non_blocking=True)
            with gradient_sync(parts.forward, number == len(batch) - 1):
                loss = loss_sum(parts, tokens_BT) / targets
                objective = loss
                for intervention in parts.interventions:
                    extra = intervention.extra_loss(step, tokens_BT)
                    if extra is not None:
                        objective = objective + extra / (len(batch) * parts.ranks.world)
                (objective * parts.ranks.world).backward()  # the ranks' gradients are averaged
            total += loss.detach()
        return total

    def _validate(self) -> None:
        """The held-out loss after `step`."""
        loss = held_out.loss(self.parts)
        rate = self.parts.spec.optimizer.learning_rate * self.factor(self.step)
        self.metrics.validation(self.step, loss, rate, self.tokens)
        self.parts.progress.validation(self.step, loss)

    def _probe(self) -> None:
        """Read the online probes that are due."""
        due = self.online.due(self.step)
        if due:
            self.online.add(self.step, held_out.readings(self.parts, due))

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
        """Whether a checkpoint is due after `step` by its number, which every rank knows at once."""
        every = self.parts.settings.checkpoint_steps
        return every is not None and step % every == 0

    def _save_wanted(self) -> bool:
        """Whether rank 0 wants a checkpoint by the clock."""
        if not self.parts.ranks.leader or self.parts.settings.checkpoint_steps is not None:
            return False
        return time.monotonic() - self.saved_at >= self.save_seconds and not self.saving.under_way

    def save(self, *, beside: bool = False) -> None:
        """Write a checkpoint of the state after `step`, unless there is one. It is there on return; with `beside` it
        may still be written while further steps are taken.

        Raises:
            Exception: as `Saving.wait`, of this checkpoint or of the one before.
        """
        parts = self.parts
        assert not self.readings, "a step that was not read may not have been made"
        diverged = self.divergence is not None
        self.saving.wait(self.step)
        if parts.ranks.broadcast(parts.checkpoints.has(self.step, diverged)):
            return
        finite = snapshot.finite(parts.model, parts.ranks)
        loop = {
            "step": self.step,
            "seconds": self.seconds + time.monotonic() - self.began,
            "random": parts.ranks.gather(randomness.encode(self.random)),
            "interventions": [intervention.state() for intervention in parts.interventions],
            "divergence": self.divergence,
        }
        metadata = {
            **self._whose(),
            "finite": finite,
            "diverged": diverged,
            "ranks": parts.ranks.world,
            "strategy": parts.settings.strategy,
            **parts.made_with,
        }
        saved = Saved(
            step=self.step,
            diverged=diverged,
            sharded=snapshot.is_sharded(parts.model),
            files=snapshot.files(parts.model, parts.optimizer, parts.ranks),
            metrics=self.metrics.so_far(),
            online=self.online.so_far(),
            loop=pretty_json(loop),
            metadata=metadata,
        )
        self.saving.begin(saved, beside=beside)
        self.saved_at = time.monotonic()

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
        self.saving.wait(self.step)
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

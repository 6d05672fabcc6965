"""Takes the steps of a run: gradients, the divergence check, validation, probes, when to save.

Shape suffixes: B sequences of a micro-batch, T tokens, V vocabulary. Steps count from 1; `TrainingLoop.step` is the
number of updates made, and the batch of step n is number n - 1 of the data order."""

from __future__ import annotations

import math

import torch

from plumbline.core.stop_request import StopRequested
from plumbline.model.distributed import all_finite, gradient_sync
from plumbline.train import held_out_loss, randomness
from plumbline.train.batches.batch_prefetch import BatchReader
from plumbline.train.checkpoint.training_state import TrainingState
from plumbline.train.held_out_loss import loss_sum
from plumbline.train.learning_rate import make_schedule
from plumbline.train.monitoring.deferred_metrics import DeferredMetrics, choose_lag
from plumbline.train.training_context import TrainingContext


class TrainingLoop:
    """Trains one run, from the step it is at to its end."""

    def __init__(self, parts: TrainingContext) -> None:
        self.parts = parts
        self.state = TrainingState(parts.spec, parts.ranks.device)
        late = choose_lag(parts.settings.metric_lag_steps, parts.ranks, parts.optimizer.can_skip)
        self.deferred = DeferredMetrics(parts.ranks, late)
        self.stop_wanted = self.save_wanted = False
        self.share_of_peak = make_schedule(parts.spec.schedule, parts.spec.train.steps)
        ahead = parts.settings.background_io
        self.batches = BatchReader(parts.pack, parts.spec, parts.batching, parts.ranks, ahead=ahead)

    @property
    def step(self) -> int:
        """The number of updates made so far."""
        return self.state.step

    @property
    def tokens(self) -> int:
        """The number of training tokens read so far."""
        return self.step * self.parts.spec.train.batch_tokens

    def run(self) -> None:
        """Train to the last step, or to the step at which the run diverges (`divergence` then says how).

        Raises:
            StopRequested: asked to stop. Everything up to `step` is in order and can be saved.
        """
        try:
            self._run()
        except StopRequested:
            if self.state.divergence is None and not self.catch_up():
                return  # it had diverged before it was asked to stop
            raise

    def _run(self) -> None:
        steps, validate_every = self.parts.spec.train.steps, self.parts.spec.train.validate_every
        self.parts.ranks.poll(self.parts.stop)
        while self.state.divergence is None:
            self.parts.saver.note_progress(self.step)
            due = self.step == steps or (self.step > 0 and self.step % validate_every == 0)
            needs_losses = due or self.parts.saver.point_due(self.step) or self.state.online.list_due(self.step)
            if needs_losses and not self.catch_up():
                return
            self.parts.saver.keep_point(self.step)
            if due and self.state.metrics.find_validation_loss(self.step) is None:
                self._validate()
            if self.step == steps and self._last_update_diverged():
                return
            self._probe()
            if self.step == steps:
                return
            stop, save = self.train_step()
            if stop:
                raise StopRequested
            if save and self.catch_up():
                self.save_wanted = False
                self.save(background=self.parts.settings.background_io)

    def train_step(self) -> tuple[bool, bool]:
        """Take one step; returns whether to stop and whether to save, agreed over the ranks.

        Its loss is read now, or some steps later; what was read may be that the run has diverged.
        """
        parts, step = self.parts, self.step + 1
        needs_loss = any(intervention.needs_loss(step) for intervention in parts.interventions)
        if needs_loss and not self.catch_up():
            return False, False
        for intervention in parts.interventions:
            intervention.begin(step)
        learning_rate = parts.spec.optimizer.learning_rate * self.share_of_peak(step)
        skip = self.deferred.add(
            self._gradients(step),
            parts.optimizer.clip(),
            stop=parts.stop.requested,
            save=parts.saver.is_overdue(),
            step=step,
            learning_rate=learning_rate,
            random=self.state.random,
        )
        if not self.catch_up(unread=0 if needs_loss else self.deferred.late):
            return False, False
        parts.optimizer.step(step, learning_rate, None if needs_loss else skip)
        parts.optimizer.zero_grad()
        for intervention in parts.interventions:
            intervention.end(step)
        self.state.step, self.state.random = step, randomness.capture(parts.ranks.device)
        return self.stop_wanted, self.save_wanted or parts.saver.due(step)

    def catch_up(self, unread: int = 0) -> bool:
        """Read the losses of steps that were not read yet, except the last `unread`.

        Returns whether the run continues. Where one of them is not finite, the run is as if that had been seen before
        its update: nothing has changed since, and what was counted is taken back.
        """
        for metrics in self.deferred.read(unread):
            step = metrics.step
            tokens = step * self.parts.spec.train.batch_tokens
            self.state.metrics.add_training(step, metrics.loss, metrics.grad_norm, metrics.learning_rate, tokens)
            if not metrics.finite:
                reason = f"step {step}: loss {metrics.loss}, gradient norm {metrics.grad_norm}"
                self.state.divergence = {"step": step, "reason": reason}
                self.state.step, self.state.random = step - 1, metrics.random
                self.deferred.drop()
                if self.step == 0:
                    self.parts.optimizer.load({})  # zeros that skipped steps have made
                break
            self.stop_wanted |= metrics.stop
            self.save_wanted |= metrics.save
            self.parts.progress.step(step, metrics.loss, metrics.grad_norm, metrics.learning_rate)
        return self.state.divergence is None

    def _last_update_diverged(self) -> bool:
        """Whether the last update made weights, or a held-out loss, not finite, which no later step detects."""
        loss = self.state.metrics.find_validation_loss(self.step)
        assert loss is not None
        finite = all_finite(self.parts.model, self.parts.ranks)
        if finite and math.isfinite(loss):
            return False
        fault = f"held-out loss {loss}" if finite else "weights that are not finite"
        self.state.divergence = {"step": self.step, "reason": f"step {self.step}: {fault} after its update"}
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
        loss = held_out_loss.loss(self.parts)
        rate = self.parts.spec.optimizer.learning_rate * self.share_of_peak(self.step)
        self.state.metrics.add_validation(self.step, loss, rate, self.tokens)
        self.parts.progress.validation(self.step, loss)

    def _probe(self) -> None:
        """Read the online probes that are due."""
        due = self.state.online.list_due(self.step)
        if due:
            self.state.online.add(self.step, held_out_loss.probe_values(self.parts, due))

    def save(self, *, background: bool = False) -> None:
        """Write a checkpoint of the state after `step`, unless there is one (see `CheckpointSaver.save`)."""
        assert not self.deferred, "a step that was not read may not have been made"
        self.parts.saver.save(self.state, background=background)

    def settle_divergence(self) -> None:
        """Make the weights of a diverged run the last finite ones, note their step, and save, so that nobody trains it
        again.

        The update of the step that diverged was never made (but for the last step's), so the weights are finite as a
        rule.
        """
        assert self.state.divergence is not None
        self.parts.saver.wait(self.step)
        weights_step = self.parts.resumption.make_finite(self.parts.model, self.step)
        self.state.divergence["weights_step"] = weights_step
        self.save()

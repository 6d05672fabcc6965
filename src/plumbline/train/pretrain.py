"""One run: take the lease, find out where it stands, train on, leave the outputs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import create
from plumbline.model.kernel_choice import choose
from plumbline.runtime import provenance
from plumbline.runtime.distributed import Ranks, parallel, ranks
from plumbline.runtime.numerics import numerics
from plumbline.runtime.stop import Stopped, StopRequest
from plumbline.specs.spec import RunSpec, require_present_code
from plumbline.train import interventions, outcome, packs, randomness
from plumbline.train.batch import Batching
from plumbline.train.checkpoint import snapshot
from plumbline.train.checkpoint.disk import NoRoom, Unreadable, guarded, is_full, readable
from plumbline.train.checkpoint.probe_checkpoints import Points
from plumbline.train.checkpoint.rolling import Checkpoint, Checkpoints
from plumbline.train.checkpoint.run_lock import Lease, LeaseError
from plumbline.train.checkpoint.state import COUNTED, StateDirectory, afresh
from plumbline.train.compiling import Compiled
from plumbline.train.loop import Loop
from plumbline.train.manifest import manifest
from plumbline.train.micro_batch_search import fitted
from plumbline.train.monitoring import peak_memory
from plumbline.train.monitoring.mlflow import MlflowSink
from plumbline.train.monitoring.progress import Progress, TensorBoardSink
from plumbline.train.optim import Optimizer
from plumbline.train.settings import Settings
from plumbline.train.training_context import Parts


def pretrain(spec: RunSpec, settings: Settings, stop: StopRequest) -> int:
    """Carry out `spec`, or go on with it. Returns the exit code: 0 carried out, 75 asked to stop.

    Raises:
        PlumblineError: something a user can mend.
    """
    require_present_code(spec)
    with ranks(settings.device) as group, contextlib.ExitStack() as stack:
        numerics(group.device)
        try:
            lease = None
            if group.leader:
                mine = Lease(settings.state, limit=settings.lease_seconds, wait=settings.wait_seconds, stop=stop)
                with readable(settings.state):
                    lease = guarded(settings.state, lambda: stack.enter_context(mine))
            group.barrier()
            group.poll(stop)
            return _Run(spec, settings, stop, group, lease).carry_out()
        except Stopped:
            return EXIT_RUN_AGAIN


def untrained(spec: RunSpec, settings: Settings, stop: StopRequest, group: Ranks) -> Loop:
    """The loop of a run before its first step, as `pretrain` builds it, for who takes steps without making a run of
    them: nothing was claimed, and nothing is saved.

    Raises:
        PlumblineError: a pack that does not fit the spec, or a batch that cannot be cut.
    """
    return _Run(spec, settings, stop, group, lease=None).build(None)


class _Run:
    def __init__(self, spec: RunSpec, settings: Settings, stop: StopRequest, group: Ranks, lease: Lease | None) -> None:
        self.spec, self.settings, self.stop, self.group, self.lease = spec, settings, stop, group, lease
        self.packages = peak_memory.held()
        self.state = StateDirectory(settings.state)
        self.checkpoints = Checkpoints(settings.state, settings.keep)
        self.pack = packs.open_pack(settings.data, spec, "--data", spec.sequences_per_batch)
        self.validation = packs.open_pack(settings.validation, spec, "--validation", spec.train.validation_sequences)
        self.points = Points(settings.state, spec)
        self.made_with = provenance.made_with()
        self.circumstances = settings.circumstances() | {"ranks": group.world} | self.made_with
        self.how: dict[str, Any] = {}  # the settings as they came out
        self.in_loop = False
        self.started = False

    def carry_out(self) -> int:
        found = self.group.broadcast(self._claim_on_disk() if self.group.leader else None)
        self.group.poll(self.stop)
        with self._deterministic_faults():
            loop = self.build(found)
        progress = loop.parts.progress
        started_at = loop.step
        try:
            try:
                self._train(loop)
            except Stopped:
                self.in_loop = False
                loop.save()
                self._end("stopped", loop.step, peak_memory.recorded(self.group, self.packages))
                progress.event("stopped", loop.step)
                progress.say(f"asked to stop; saved at step {loop.step}, run me again")
                return EXIT_RUN_AGAIN
        except Exception as error:
            loop.saving.let_end()
            reason = f"{type(error).__name__}: {error}"
            progress.event("fault", loop.step, reason=reason)
            ended = "disk full" if is_full(error) else "lease lost" if isinstance(error, LeaseError) else "error"
            how = COUNTED if self.in_loop and ended == "error" else ended
            self._end(how, loop.step, peak_memory.recorded(self.group, self.packages, alone=True), reason)
            self._memory_fault(error, made_progress=loop.step > started_at)
            raise
        finally:
            progress.close()
        self._leave(loop)
        return 0

    def _train(self, loop: Loop) -> None:
        """From where the loop is to the end of the run, which is then saved."""
        if loop.step < self.spec.train.steps and loop.divergence is None:
            packs.verify([self.pack, self.validation], self.group, self.stop)
            loop.parts.progress.start(loop.step, micro_batch=loop.parts.batching.micro_batch)
        peak_memory.begin(self.group)
        self.in_loop = True
        loop.run()
        self.in_loop = False
        if loop.divergence is None:
            loop.save()
        elif "weights_step" not in loop.divergence:
            loop.settle_divergence()
        self._end(
            "completed" if loop.divergence is None else "diverged",
            loop.step,
            peak_memory.recorded(self.group, self.packages),
        )

    def _end(self, how: str, step: int, facts: dict[str, Any], reason: str | None = None) -> None:
        """Record how the start that this process recorded has ended, with `facts` of it; what cannot be written is not
        worth a fault."""
        if not self.started or self.lease is None:
            return
        with contextlib.suppress(LeaseError, OSError):
            self.lease.check()
            facts = facts if reason is None else facts | {"reason": reason}
            self.state.amend(ended=how, ended_at=step, **facts)

    def _claim_on_disk(self) -> Checkpoint | None:
        """As `_claim`; what a disk can have against it is said in a sentence, and nothing is given up for it."""
        with readable(self.settings.state):
            found: Checkpoint | None = guarded(self.settings.state, self._claim)
        return found

    def _claim(self) -> Checkpoint | None:
        """Under the lease: make the state directory this run's, and find the checkpoint to go on from."""
        identity = {
            "run_id": self.spec.run_id,
            "key": self.spec.key,
            "preset": self.spec.preset,
            "steps": self.spec.train.steps,
            "spec": self.spec.to_dict(),
            "data_fingerprint": self.pack.fingerprint,
            "validation_fingerprint": self.validation.fingerprint,
        }
        self.state.claim(identity)
        self.state.refuse_if_given_up(self.circumstances)
        found = self.checkpoints.newest()
        if found is None and self.checkpoints.found_any():
            raise PlumblineError(
                f"{self.settings.state}: none of its checkpoints is whole; put a copy in their place, or "
                f"{afresh(self.settings.state)}"
            )
        lost = self.points.lost(found.step, found.metadata["diverged"]) if found is not None else []
        if lost:
            raise PlumblineError(
                f"{self.settings.state}: the weights of its probe point at step {lost[0]} are lost, which only "
                f"training makes: put a copy in their place, or {afresh(self.settings.state)}"
            )
        step = 0 if found is None else found.step
        threads, before = torch.get_num_threads(), [entry["threads"] for entry in self.state.starts][-1:]
        if before and before != [threads]:
            print(
                f"{self.spec.key}: {threads} threads where there were {before[0]}: the same up to rounding, "
                f"not to the bit",
                file=sys.stderr,
            )
        if step < self.spec.train.steps:
            details = provenance.code() | provenance.machine(self.group.device) | self.made_with
            details |= {"threads": threads, "resumed": found is not None}
            details |= {"packages": provenance.packages(), "lock_sha256": provenance.lock_sha256()}
            self.state.start(step, self.settings.starts_without_progress, details, self.circumstances)
            self.started = True
        elif found is not None and not self.state.starts:
            self.state.restore_start(found.metadata)
        return found

    def build(self, found: Checkpoint | None) -> Loop:
        """Everything that the loop works with, at the checkpoint `found` or at the start."""
        spec, settings, group = self.spec, self.settings, self.group
        batching = Batching.derive(spec.sequences_per_batch, settings.micro_batch, group.world)
        hooks = interventions.build(spec.interventions)
        randomness.seed(spec.init_seed, group.rank)
        model = create(spec.model, spec.init_seed, group.device)
        model.recompute = settings.recompute
        dtype = torch.bfloat16 if spec.train.precision == "bfloat16" else torch.float32
        attention = choose(model, settings.attention, group.device.type, dtype)
        if settings.micro_batch is None and group.device.type == "cuda" and settings.strategy == "ddp":
            batching = fitted(batching, model, spec, group)
        group.poll(self.stop)
        forward: Callable[..., torch.Tensor] = parallel(model, group, settings.strategy)
        progress = Progress(
            title=spec.key,
            steps=spec.train.steps,
            tokens_per_step=spec.train.batch_tokens,
            path=settings.state / "progress.jsonl",
            every=settings.report_seconds,
            silent=not group.leader,
        )
        if settings.tensorboard is not None and group.leader:
            progress.sinks.append(TensorBoardSink(settings.tensorboard, 0 if found is None else found.step))
        if settings.mlflow is not None and group.leader:
            progress.sinks.append(MlflowSink(settings.mlflow, settings.state, spec, progress.say))
        for hook in hooks:
            hook.attach(
                interventions.Attachment(
                    spec=spec, model=model, ranks=group, validation=self.validation, progress=progress
                )
            )
        compilation: dict[str, Any] = {"compiled": False, "not_compiled": None}
        over = found is not None and (found.step == spec.train.steps or found.metadata["diverged"])
        if over:  # its steps were taken by earlier starts, which know
            earlier: dict[str, Any] = next((start for start in reversed(self.state.starts) if "compiled" in start), {})
            compilation = {name: earlier.get(name) for name in compilation}
        elif settings.compile:
            forward = compiled = Compiled(forward, model, settings.strategy, group, settings.compile_cache)
            if compiled.fault is None:
                progress.say(f"compiling for {batching.micro_batch} sequences: seconds, minutes the first time")
            reason = compiled.attempt(batching.micro_batch, spec.train.precision)
            compilation = {"compiled": reason is None, "not_compiled": reason}
            group.poll(self.stop)
        optimizer = Optimizer(model, model.parameter_roles, spec.optimizer, hooks)
        loop = Loop(
            Parts(
                spec=spec,
                settings=settings,
                ranks=group,
                stop=self.stop,
                lease=self.lease,
                checkpoints=self.checkpoints,
                points=self.points,
                progress=progress,
                pack=self.pack,
                validation=self.validation,
                batching=batching,
                model=model,
                forward=forward,
                optimizer=optimizer,
                interventions=hooks,
                made_with=self.made_with,
            )
        )
        parameters = sum(value.numel() for value in model.parameters())
        progress.say(
            f"{parameters:,} parameters on {group.device}; attention by {attention['kernel']}; "
            f"{batching.describe()}; {optimizer.describe()}"
        )
        if attention["notice"]:
            progress.say(attention["notice"])
        if compilation["not_compiled"]:
            progress.say(f"going on without being compiled: {compilation['not_compiled']}")
        self.how = {
            "strategy": settings.strategy,
            **compilation,
            "recompute": settings.recompute,
            "attention": attention,
            "read_late": loop.readings.late,
            "micro_batch": batching.micro_batch,
            "accumulation": batching.accumulation,
            "world_size": group.world,
        }
        if self.started:
            guarded(settings.state, lambda: self.state.amend(**self.how))
        if found is not None:
            with readable(found.path):
                loop.restore(found)
            progress.say(f"resumed at step {found.step} from {found.path}")
        return loop

    def _leave(self, loop: Loop) -> None:
        weights = snapshot.whole_weights(loop.parts.model, self.group)
        if self.lease is None:
            return
        hooks = loop.parts.interventions
        result = outcome.outcome(self.spec, loop.metrics, loop.divergence, loop.step)
        result["interventions"] = [hook.report(loop.step) for hook in hooks]
        loop.online.add_measured(measured for hook in hooks for measured in hook.measured())
        outcome.write(
            self.settings.out,
            weights=weights,
            metrics=loop.metrics,
            points=self.points,
            online=loop.online,
            last=loop.step,
            manifest=manifest(loop, self.state.starts, self.how),
            result=result,
            check=self.lease.check,
        )
        loop.parts.progress.event(result["outcome"], result["step"], loss=result["validation_loss"])
        loss = result["validation_loss"]
        loop.parts.progress.say(
            result["outcome"] + (f", validation loss {loss:.4f}" if loss is not None else f": {result['reason']}")
        )

    @contextlib.contextmanager
    def _deterministic_faults(self) -> Iterator[None]:
        """A spec that cannot be built, or a batch that cannot be cut, will not be mended by trying again."""
        try:
            yield
        except (NoRoom, Unreadable):
            raise
        except PlumblineError as error:
            if self.group.leader:
                self.state.give_up(str(error), self.circumstances)
            raise
        except Exception as error:
            self._memory_fault(error, made_progress=False)
            raise

    def _memory_fault(self, error: BaseException, made_progress: bool) -> None:
        """Out of memory before the first step of a start happens again at every start."""
        text = str(error)
        memory = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in text
        if not memory or made_progress:
            return
        reason = (
            f"{self.spec.key}: out of memory in the first step: {text.splitlines()[0] if text else 'MemoryError'}. "
            f"Use a smaller --micro-batch, more ranks or --strategy fsdp"
        )
        if self.group.leader:
            self.state.give_up(reason, self.circumstances)
        raise PlumblineError(reason) from error

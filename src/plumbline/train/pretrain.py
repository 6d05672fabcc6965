"""Trains one run: takes the lock, finds out where it stands, trains on, writes the outputs."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.core.stop_request import StopRequest, StopRequested
from plumbline.model.decoder import create
from plumbline.model.distributed import RankGroup, gather_weights, join_ranks, parallel
from plumbline.model.kernel_choice import choose
from plumbline.model.numerics import numerics, require_precision
from plumbline.specs.spec import RunSpec, require_present_code
from plumbline.train import interventions, randomness, run_outputs
from plumbline.train.batches import packs
from plumbline.train.batches.micro_batch_search import (
    TooLarge,
    find_largest_batch,
    is_out_of_memory,
    needs_search,
    next_smaller,
)
from plumbline.train.batches.micro_batches import MicroBatching
from plumbline.train.batches.packs import restrict_validation
from plumbline.train.checkpoint.checkpoint_saver import CheckpointSaver
from plumbline.train.checkpoint.resume_run import RunLock, RunResumer, hold_run_lock
from plumbline.train.compiling import CompiledModel
from plumbline.train.disk_faults import describe_disk_error, require_writable
from plumbline.train.loop import TrainingLoop
from plumbline.train.monitoring import peak_memory
from plumbline.train.monitoring.mlflow import follow_run
from plumbline.train.monitoring.progress import SCALARS, ScalarsFile, TensorBoardSink, TrainingProgress
from plumbline.train.run_optimizer import RunOptimizer
from plumbline.train.trainer_settings import TrainerSettings
from plumbline.train.training_context import TrainingContext


def pretrain(spec: RunSpec, settings: TrainerSettings, stop: StopRequest) -> int:
    """Train the run of `spec`, or continue it. Returns the exit code: 0 trained to its end, 75 asked to stop.

    Raises:
        PlumblineError: something a user can fix.
    """
    require_present_code(spec)
    with join_ranks(settings.device) as group, contextlib.ExitStack() as stack:
        numerics(group.device)
        require_precision(spec.train.precision, group.device)
        try:
            run_lock = stack.enter_context(hold_run_lock(settings, stop)) if group.leader else None
            group.barrier()
            group.poll(stop)
            if settings.mlflow is not None and group.leader:
                stack.enter_context(follow_run(settings.mlflow, settings.state, spec))
            largest_batch: int | None = None
            while True:
                try:
                    return _Run(spec, settings, stop, group, run_lock, largest_batch).carry_out()
                except TooLarge as error:
                    largest_batch = error.smaller
                # What the error's traceback held is gone with it; what holds itself is not.
                gc.collect()
                if group.device.type == "cuda":
                    torch.cuda.empty_cache()
        except StopRequested:
            if group.leader:
                print(f"{spec.key}: asked to stop before a step was taken; run me again", file=sys.stderr)
            return EXIT_RUN_AGAIN


def build_loop(
    spec: RunSpec, settings: TrainerSettings, stop: StopRequest, group: RankGroup, run_lock: RunLock | None = None
) -> TrainingLoop:
    """Build the loop of a run before its first step, as `pretrain` does, for callers that take steps without a run.

    Nothing is claimed, and nothing is saved unless there is a `run_lock`.

    Raises:
        PlumblineError: a pack that does not fit the spec, or a batch that cannot be cut.
    """
    return _Run(spec, settings, stop, group, run_lock).build()


class _Run:
    def __init__(
        self,
        spec: RunSpec,
        settings: TrainerSettings,
        stop: StopRequest,
        group: RankGroup,
        run_lock: RunLock | None,
        largest_micro_batch: int | None = None,
    ) -> None:
        """`largest_micro_batch`: the most sequences at a time, if more were tried and did not fit."""
        self.spec, self.settings, self.stop, self.group, self.largest_micro_batch = (
            spec,
            settings,
            stop,
            group,
            largest_micro_batch,
        )
        self.batching: MicroBatching | None = None
        self.packages = peak_memory.count_resident_bytes()
        self.pack = packs.open_pack(settings.training_pack, spec, "--training-pack", spec.sequences_per_batch)
        self.validation = packs.open_pack(
            settings.validation_pack, spec, "--validation-pack", spec.train.validation_sequences
        )
        packs.require_one_corpus(self.pack, self.validation)
        fingerprints = {
            "data_fingerprint": self.pack.fingerprint,
            "validation_fingerprint": self.validation.fingerprint,
        }
        self.resumption = RunResumer(spec, settings, group, run_lock, fingerprints)
        self.used_settings: dict[str, Any] = {}  # the settings that are in effect
        self.in_loop = False

    def carry_out(self) -> int:
        if self.group.leader:
            require_writable(self.settings.out)
        self.resumption.find()
        with self._record_early_end(), self._give_up_on_faults():
            self.group.poll(self.stop)
            loop = self.build()
        progress, saver, directory = loop.parts.progress, loop.parts.saver, self.resumption.directory
        started_at = loop.step
        try:
            try:
                self._train(loop)
            except StopRequested:
                self.in_loop = False
                loop.save()
                directory.end("stopped", loop.step, peak_memory.report_peak(self.group, self.packages))
                progress.event("stopped", loop.step)
                progress.say(f"asked to stop; saved at step {loop.step}, run me again")
                return EXIT_RUN_AGAIN
        except Exception as error:
            saver.let_end()
            reason = self.group.explain(error)
            progress.event("fault", loop.step, reason=f"{type(reason).__name__}: {reason}")
            memory = peak_memory.report_peak(self.group, self.packages, alone=True)
            less = next_smaller(error, self.batching, self.settings.micro_batch) if loop.step == started_at else None
            if less is None:
                directory.end_by(reason, loop.step, memory, in_loop=self.in_loop)
            else:
                directory.end("out of memory", loop.step, memory | {"reason": str(error)})
                progress.say(str(TooLarge(less)))
            self._give_up_if_too_large(error, made_progress=loop.step > started_at)
            self._raise_disk_error(error)
            raise
        except KeyboardInterrupt as error:  # a second Ctrl-C, which waits for nothing
            directory.end_by(error, loop.step, {}, in_loop=False)
            raise
        finally:
            progress.close()
        self._write_outputs(loop)
        return 0

    def _train(self, loop: TrainingLoop) -> None:
        """Train from where the loop is to the end of the run, and save the run."""
        if loop.step < self.spec.train.steps and loop.state.divergence is None:
            packs.verify([self.pack, self.validation], self.group, self.stop)
            loop.parts.progress.start(loop.step, micro_batch=loop.parts.batching.micro_batch)
        peak_memory.begin(self.group)
        self.in_loop = True
        loop.run()
        self.in_loop = False
        if loop.state.divergence is None:
            loop.save()
        elif "weights_step" not in loop.state.divergence:
            loop.settle_divergence()
        self.resumption.directory.end(
            "completed" if loop.state.divergence is None else "diverged",
            loop.step,
            peak_memory.report_peak(self.group, self.packages),
        )

    def build(self) -> TrainingLoop:
        """Build everything that the loop works with, at the checkpoint that was found or at the start."""
        spec, settings, group = self.spec, self.settings, self.group
        requested = self.largest_micro_batch if settings.micro_batch is None else settings.micro_batch
        batching = self.batching = MicroBatching.derive(spec.sequences_per_batch, requested, group.world)
        hooks = interventions.build(spec.interventions)
        randomness.seed(spec.init_seed, group.rank)
        model = create(spec.model, spec.init_seed, group.device)
        model.recompute = settings.recompute_activations
        dtype = torch.bfloat16 if spec.train.precision == "bfloat16" else torch.float32
        attention = choose(model, settings.attention, group.device.type, dtype)
        if needs_search(requested, group.device.type, settings.strategy):
            batching = self.batching = find_largest_batch(batching, model, spec, group)
        group.poll(self.stop)
        forward: Callable[..., torch.Tensor] = parallel(model, group, settings.strategy)
        progress = TrainingProgress(
            title=spec.key,
            steps=spec.train.steps,
            tokens_per_step=spec.train.batch_tokens,
            path=settings.state / "progress.jsonl",
            every=settings.report_seconds,
            silent=not group.leader,
        )
        if group.leader:
            progress.sinks.append(ScalarsFile(settings.state / SCALARS))
        if settings.tensorboard is not None and group.leader:
            progress.sinks.append(TensorBoardSink(settings.tensorboard, self.resumption.step))
        for hook in hooks:
            hook.attach(
                interventions.InterventionInputs(
                    spec=spec,
                    model=model,
                    ranks=group,
                    validation=restrict_validation(hook, self.validation, spec.train.validation_sequences),
                    progress=progress,
                )
            )
        compilation: dict[str, Any] = {"compiled": False, "not_compiled": None}
        if self.resumption.has_taken_all_steps:  # the starts that took its steps know
            starts = self.resumption.starts
            earlier: dict[str, Any] = next((start for start in reversed(starts) if "compiled" in start), {})
            compilation = {name: earlier.get(name) for name in compilation}
        elif settings.compile:
            forward = compiled = CompiledModel(forward, model, group, settings.compile_cache)
            if compiled.fault is None:
                progress.say(f"compiling for {batching.micro_batch} sequences: seconds, minutes the first time")
            reason = compiled.attempt(batching.micro_batch, spec.train.precision)
            compilation = {"compiled": reason is None, "not_compiled": reason}
            group.poll(self.stop)
        optimizer = RunOptimizer(model, model.parameter_roles, spec.optimizer, hooks, precision=spec.train.precision)
        saver = CheckpointSaver(
            self.resumption.directory, model=model, optimizer=optimizer, interventions=hooks, progress=progress
        )
        loop = TrainingLoop(
            TrainingContext(
                spec=spec,
                settings=settings,
                ranks=group,
                stop=self.stop,
                resumption=self.resumption,
                saver=saver,
                progress=progress,
                pack=self.pack,
                validation=self.validation,
                batching=batching,
                model=model,
                forward=forward,
                optimizer=optimizer,
                interventions=hooks,
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
            progress.say(f"continuing without being compiled: {compilation['not_compiled']}")
        self.used_settings = {
            "strategy": settings.strategy,
            **compilation,
            "recompute": settings.recompute_activations,
            "attention": attention,
            "metric_lag_steps": loop.deferred.late,
            "micro_batch": batching.micro_batch,
            "accumulation": batching.accumulation,
            "world_size": group.world,
        }
        saver.note(**self.used_settings)
        checkpoint = self.resumption.put_back(loop.state, model, optimizer, hooks)
        if checkpoint is not None:
            progress.say(f"resumed at step {loop.step} from {checkpoint}")
        return loop

    def _write_outputs(self, loop: TrainingLoop) -> None:
        weights = gather_weights(loop.parts.model, self.group)
        if not self.group.leader:
            return
        hooks, state = loop.parts.interventions, loop.state
        result = run_outputs.outcome(self.spec, state.metrics, state.divergence, state.step)
        result["interventions"] = [hook.report(loop.step) for hook in hooks]
        state.online.add_measurements(values for hook in hooks for values in hook.measurements())
        run_outputs.write(
            self.settings.out,
            weights=weights,
            metrics=state.metrics,
            saver=loop.parts.saver,
            online=state.online,
            last=state.step,
            manifest=run_outputs.compose_manifest(loop, self.resumption.starts, self.used_settings),
            result=result,
        )
        loop.parts.progress.event(result["outcome"], result["step"], loss=result["validation_loss"])
        loss = result["validation_loss"]
        loop.parts.progress.say(
            result["outcome"] + (f", validation loss {loss:.4f}" if loss is not None else f": {result['reason']}")
        )

    @contextlib.contextmanager
    def _record_early_end(self) -> Iterator[None]:
        """Record how a start ends that does not reach its loop, which would otherwise seem to have been killed."""
        directory, step = self.resumption.directory, self.resumption.step
        try:
            yield
        except StopRequested:
            directory.end("stopped", step, {})
            raise
        except (Exception, KeyboardInterrupt) as error:
            directory.end_by(error, step, {}, in_loop=False)
            self._raise_disk_error(error)
            raise

    def _raise_disk_error(self, error: BaseException) -> None:
        """Raise a message that names the file if an error is the disk's.

        Raises:
            DiskFull, UnreadableFile: the error is the disk's.
        """
        disk_error = describe_disk_error(error, self.settings.state)
        if disk_error is not None and disk_error is not error:
            raise disk_error from error

    @contextlib.contextmanager
    def _give_up_on_faults(self) -> Iterator[None]:
        """Give the run up at an error that trying again cannot fix, such as a batch that cannot be cut."""
        try:
            yield
        except PlumblineError as error:
            if (
                describe_disk_error(error, self.settings.state) is None
            ):  # what only the disk has against a spec may be fixed
                self.resumption.give_up(str(error))
            raise
        except Exception as error:
            self._give_up_if_too_large(error, made_progress=False)
            raise

    def _give_up_if_too_large(self, error: BaseException, made_progress: bool) -> None:
        """Give the run up if memory ran out before its first step, which happens again with as large a micro-batch."""
        if not is_out_of_memory(error) or made_progress:
            return
        if (less := next_smaller(error, self.batching, self.settings.micro_batch)) is not None:
            raise TooLarge(less) from error
        text = str(error)
        reason = (
            f"{self.spec.key}: out of memory in the first step: {text.splitlines()[0] if text else 'MemoryError'}. "
            f"Use a smaller --micro-batch, more ranks or --strategy fsdp"
        )
        self.resumption.give_up(reason)
        raise PlumblineError(reason) from error

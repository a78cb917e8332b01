"""A callback for Hugging Face's Trainer that records some steps of a training, and its settings.

```python
from transformers import Trainer
from stepscope.recording.transformers import StepscopeCallback

Trainer(model, args, callbacks=[StepscopeCallback("log/run")], ...)  # stepscope advise log/run
```
Works with transformers 4.40 and later, and with trainers built on it (trl, peft, setfit).
"""

import atexit
from collections.abc import Mapping
from os import PathLike
from typing import Any

from transformers import TrainerCallback
from transformers import __version__ as transformers_version

from stepscope.recording import settings
from stepscope.recording.callback_profiler import CallbackProfiler, Schedule, profiler_options
from stepscope.recording.handler import TraceHandler
from stepscope.recording.live_objects import Given
from stepscope.recording.schedules import schedule_for
from stepscope.recording.subjects._fields import fields

AUTOCAST_DTYPES = {"fp16": "float16", "bf16": "bfloat16"}


class StepscopeCallback(TrainerCallback):
    """Records steps of `Trainer.train` with torch's profiler, for stepscope to read.

    A step is an optimizer step: with `gradient_accumulation_steps=4` it contains four batches. It
    begins when the Trainer calls `on_step_begin`, so it contains its own forward and backward
    passes, logging and checkpoints, and the fetch of the next step's batches. Evaluation is never
    recorded: if it runs between the steps of a span, the span is saved before it, and the remaining
    steps become a separate span.

    Errors never reach the training: they are logged once (logger `stepscope.recording`), and
    recording stops. If another torch profiler runs, nothing is recorded. The Trainer does not
    notify callbacks of an exception: a span in progress is saved when the process ends, when the
    next training begins, or by `close()`.

    Args:
        log_dir: The run's folder; the file names of each rank contain its number.
        schedule: The steps to record, from `torch.profiler.schedule(…)` or
            `stepscope.schedule_for(…)`. Default: `schedule_for` with the number of steps of the
            Trainer.
        worker_name: Name of this process instead of host, process id and rank.
        use_gzip: Whether to compress the files.
        **profiler: Further arguments of `torch.profiler.profile`: `with_stack`, `profile_memory`,
            …. `record_shapes` is True by default.

    Raises:
        UsageError: `torch.profiler.profile` has no such argument.
    """

    def __init__(
        self,
        log_dir: str | PathLike[str],
        *,
        schedule: Schedule | None = None,
        worker_name: str | None = None,
        use_gzip: bool = True,
        **profiler: Any,
    ) -> None:
        self._log_dir = log_dir
        self._schedule = schedule
        self._worker_name = worker_name
        self._use_gzip = use_gzip
        self._options = profiler_options(profiler)
        self._driven: CallbackProfiler | None = None

    def close(self) -> None:
        """Save the span of a training that an exception ended."""
        atexit.unregister(self.close)
        driven, self._driven = self._driven, None
        if driven:
            driven.aborted()

    def on_train_begin(self, args: Any, state: Any, _control: Any, **objects: Any) -> None:
        """Create the profiler."""
        self.close()
        handler = TraceHandler(
            self._log_dir,
            name=self._worker_name,
            use_gzip=self._use_gzip,
            collect=lambda profiler: _collected(profiler, args, state, objects),
        )
        schedule = self._schedule or schedule_for(_steps_ahead(state))
        self._driven = CallbackProfiler(schedule, handler, self._options)
        atexit.register(self.close)

    def on_step_begin(self, _args: Any, _state: Any, _control: Any, **_objects: Any) -> None:
        """Begin a step."""
        if self._driven:
            self._driven.begin_step()

    def on_step_end(self, _args: Any, _state: Any, control: Any, **_objects: Any) -> None:
        """End the step if work outside of steps follows."""
        is_last = control.should_training_stop or control.should_epoch_stop
        if self._driven and (is_last or control.should_evaluate):
            self._driven.interrupted()

    def on_epoch_end(self, _args: Any, _state: Any, control: Any, **_objects: Any) -> None:
        """End the step if an evaluation follows."""
        if self._driven and (control.should_training_stop or control.should_evaluate):
            self._driven.interrupted()

    def on_prediction_step(self, _args: Any, _state: Any, _control: Any, **_objects: Any) -> None:
        """End the step: an unannounced evaluation runs."""
        if self._driven:
            self._driven.interrupted()

    def on_train_end(self, _args: Any, _state: Any, _control: Any, **_objects: Any) -> None:
        """Save the span."""
        driven, self._driven = self._driven, None
        atexit.unregister(self.close)
        if driven:
            driven.ended()


def _steps_ahead(state: Any) -> int | None:
    """Return the number of optimizer steps of the training, or None if unknown."""
    ahead = int(state.max_steps) - int(state.global_step)
    return ahead if ahead > 0 else None


def _collected(
    profiler: Any, args: Any, state: Any, objects: Mapping[str, Any]
) -> Mapping[str, Any]:
    collected = settings.collect(profiler, _given(args, state, objects))
    collected["settings"]["framework"] = _framework(args, state)
    return collected


def _given(args: Any, state: Any, objects: Mapping[str, Any]) -> Given:
    loader, optimizer = objects.get("train_dataloader"), objects.get("optimizer")
    batch = state.train_batch_size or args.train_batch_size
    return Given(
        dataloaders=(loader,) if loader is not None else (),
        optimizers=(getattr(optimizer, "optimizer", optimizer),) if optimizer is not None else (),
        model=objects.get("model"),
        batch_size=batch * args.gradient_accumulation_steps,
        settings={"precision": _autocast(args), "model": {"training": True}},
    )


def _autocast(args: Any) -> dict[str, Any]:
    dtype = next((name for flag, name in AUTOCAST_DTYPES.items() if getattr(args, flag)), None)
    autocast = {"enabled": True, "device": args.device.type, "dtype": dtype}
    return {"autocast": autocast} if dtype else {}


def _framework(args: Any, state: Any) -> dict[str, Any]:
    """Return the Trainer's options by its names."""
    return fields(
        name=lambda: "transformers",
        version=lambda: transformers_version,
        accumulated_batch_count=lambda: int(args.gradient_accumulation_steps),
        precision=lambda: next((flag for flag in AUTOCAST_DTYPES if getattr(args, flag)), None),
        strategy=lambda: _strategy(args),
        max_step_count=lambda: int(state.max_steps) if state.max_steps > 0 else None,
        gradient_checkpointing=lambda: bool(args.gradient_checkpointing),
    )


def _strategy(args: Any) -> str | None:
    """Return the distribution strategy that the arguments select."""
    if args.deepspeed:
        return "deepspeed"
    return "fsdp" if args.fsdp else None

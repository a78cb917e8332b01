"""A callback for Lightning's Trainer that records some steps of a training, and its settings.

```python
from lightning.pytorch import Trainer
from stepscope.recording.lightning import StepscopeCallback

Trainer(callbacks=[StepscopeCallback("log/run")])  # then: stepscope advise log/run
```
Works with `lightning` and with `pytorch_lightning`; importing this module imports the installed
one.
"""

import sys
from collections.abc import Mapping
from os import PathLike
from typing import Any

from stepscope.recording import settings
from stepscope.recording.callback_profiler import CallbackProfiler, Schedule, profiler_options
from stepscope.recording.handler import TraceHandler
from stepscope.recording.live_objects import Given
from stepscope.recording.schedules import schedule_for
from stepscope.recording.subjects._fields import fields, whole

if "lightning.pytorch" not in sys.modules and "pytorch_lightning" in sys.modules:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

AUTOCAST_DTYPES = {"16-mixed": "float16", "bf16-mixed": "bfloat16"}
"""Autocast dtype by Lightning's name of the precision."""
UNLIMITED = -1


class StepscopeCallback(Callback):
    """Records steps of `Trainer.fit` with torch's profiler, for stepscope to read.

    A step is an optimizer step: with `accumulate_grad_batches=4` it contains four batches. It
    begins when Lightning calls `on_train_batch_start`, so it contains its own forward and backward
    passes and the fetch of the next batch. Validation is never recorded: if it runs between the
    steps of a span, the span is saved before it, and the remaining steps become a separate span.

    Errors never reach the training: they are logged once (logger `stepscope.recording`), and
    recording stops. If another torch profiler runs, such as Lightning's `PyTorchProfiler`, nothing
    is recorded.

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
        self._global_step: int | None = None
        self._first_global_step = 0

    def on_train_start(self, trainer: Any, _module: Any) -> None:
        """Create the profiler."""
        self._abort()
        self._global_step = None
        handler = TraceHandler(
            self._log_dir,
            name=self._worker_name,
            use_gzip=self._use_gzip,
            collect=lambda profiler: _collected(trainer, profiler),
        )
        schedule = self._schedule or schedule_for(_steps_ahead(trainer))
        self._driven = CallbackProfiler(schedule, handler, self._options)
        if any(kind.__name__ == "PyTorchProfiler" for kind in type(trainer.profiler).__mro__):
            self._driven.stop_recording(
                "the Trainer has a PyTorchProfiler, and torch supports only one profiler"
            )

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, _batch: Any, _batch_idx: int
    ) -> None:
        """Begin a step if the optimizer has stepped since the last one began."""
        if self._driven and self._is_new_step(int(trainer.global_step), pl_module):
            self._driven.begin_step()

    def on_train_batch_end(
        self, trainer: Any, _module: Any, _outputs: Any, _batch: Any, _batch_idx: int
    ) -> None:
        """End the last step before Lightning's work at the end of the training."""
        if self._driven and _is_last(trainer):
            self._driven.interrupted()

    def on_validation_start(self, _trainer: Any, _module: Any) -> None:
        """End the step: validation belongs to no step."""
        if self._driven:
            self._driven.interrupted()

    def on_train_end(self, _trainer: Any, _module: Any) -> None:
        """Save the span."""
        driven, self._driven = self._driven, None
        if driven:
            driven.ended()

    def on_exception(self, _trainer: Any, _module: Any, _exception: BaseException) -> None:
        """Save the span."""
        self._abort()

    def _abort(self) -> None:
        driven, self._driven = self._driven, None
        if driven:
            driven.aborted()

    def _is_new_step(self, global_step: int, pl_module: Any) -> bool:
        """Return whether the optimizer has stepped since the last call, or this is the first call.

        With manual optimization, Lightning may not count the optimizer's steps: while its count is
        0, every batch is a step.
        """
        if self._global_step is None:
            self._global_step = self._first_global_step = global_step
            return True
        is_unseen = not pl_module.automatic_optimization and global_step == self._first_global_step
        is_new = global_step != self._global_step or is_unseen
        self._global_step = global_step
        return is_new


def _steps_ahead(trainer: Any) -> int | None:
    """Return the number of optimizer steps of the training, or None if unknown."""
    try:
        ahead = int(trainer.estimated_stepping_batches) - int(trainer.global_step)
    except Exception:  # infinite, or accumulation that changes with the epoch
        return None
    return ahead if ahead > 0 else None


def _is_last(trainer: Any) -> bool:
    """Return whether the training ends after this batch, as far as the Trainer's state shows."""
    if trainer.should_stop or trainer.global_step >= trainer.max_steps > UNLIMITED:
        return True
    epochs = trainer.max_epochs
    is_last_epoch = epochs not in (None, UNLIMITED) and trainer.current_epoch + 1 >= epochs
    return bool(is_last_epoch and trainer.is_last_batch)


def _collected(trainer: Any, profiler: Any) -> Mapping[str, Any]:
    collected = settings.collect(profiler, _given(trainer))
    collected["settings"]["framework"] = _framework(trainer)
    return collected


def _given(trainer: Any) -> Given:
    loaders = tuple(_loaders(trainer.train_dataloader))
    batches = [loader.batch_size for loader in loaders if whole(loader.batch_size)]
    is_one = len(loaders) == len(batches) == 1
    return Given(
        dataloaders=loaders,
        optimizers=tuple(getattr(wrapper, "optimizer", wrapper) for wrapper in trainer.optimizers),
        model=trainer.lightning_module,
        batch_size=batches[0] * trainer.accumulate_grad_batches if is_one else None,
        settings=_given_settings(trainer),
    )


def _loaders(given: Any) -> list[Any]:
    """Return the DataLoaders in an object or in nested lists and dicts."""
    from torch.utils.data import DataLoader

    if isinstance(given, DataLoader):
        return [given]
    if isinstance(given, Mapping):
        given = list(given.values())
    return (
        [loader for argument in given for loader in _loaders(argument)]
        if isinstance(given, (list, tuple))
        else []
    )


def _given_settings(trainer: Any) -> dict[str, dict[str, Any]]:
    dtype = AUTOCAST_DTYPES.get(str(trainer.precision))
    device = trainer.strategy.root_device.type
    autocast = {"enabled": True, "device": device, "dtype": dtype}
    precision = {"precision": {"autocast": autocast}} if dtype else {}
    return {"model": {"training": True}, **precision}


def _framework(trainer: Any) -> dict[str, Any]:
    """Return the Trainer's options by Lightning's names."""
    name = type(trainer).__module__.partition(".")[0]
    return fields(
        name=lambda: name,
        version=lambda: str(sys.modules[name].__version__),
        accumulated_batch_count=lambda: int(trainer.accumulate_grad_batches),
        precision=lambda: str(trainer.precision),
        strategy=lambda: type(trainer.strategy).__name__,
        max_step_count=lambda: trainer.max_steps if trainer.max_steps > UNLIMITED else None,
    )

"""`trace_handler`: saves each span of a profiler as a trace file, with the training's settings.

The settings are written after the last event once the file is complete, before it is renamed. A
handler cannot use `add_metadata_json`: kineto collects metadata when it stops a trace, and calls
the handler only afterwards. (Tried with torch 2.13: a key added in `on_trace_ready` is in no file,
including that of the next span.) Earlier access would require replacing a method of
`torch.profiler.profile` or checking for the profiler at every step. All torch versions since 2.4
end a trace in the same way, for every schedule and number of spans, with kineto's exporter and with
the Python one; a file that ends differently is left unchanged.

Failures are logged once per handler and kind (nothing saved, saved without settings) at level
WARNING on the logger `stepscope.recording`, which Python prints to stderr unless logging is
configured. `warnings` are not used, because `-W error` would turn them into exceptions that end the
training.
"""

import logging
import os
import re
import socket
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from stepscope.base.errors import UsageError
from stepscope.recording import autocast_detection, writing
from stepscope.recording.host_sampler import KEY as HOST_SAMPLES
from stepscope.recording.host_sampler import HostSampler
from stepscope.recording.live_objects import Given
from stepscope.recording.settings import COLLECTORS, KEY, as_json, collect
from stepscope.recording.step_times import KEY as UNRECORDED_STEPS
from stepscope.recording.step_times import TENSOR_VALUES, StepTimes, follow_profilers
from stepscope.recording.worker_samples import KEY as WORKER_SAMPLES
from stepscope.recording.worker_samples import WorkerSamples

SUFFIX = ".pt.trace.json"
FORBIDDEN_IN_WINDOWS = re.compile(r'[<>:"/\\|?*]')
WHOLE_RUN = "whole_run"
COMMAND = "command"
FREE_SPACE = "Free space there, or pass another folder"
MORE_STEPS = (
    "fewer than 3 steps before the span ran without the profiler, so their time is unknown. Pass "
    "schedule=stepscope.schedule_for(…), or torch.profiler.schedule(wait=10, …)"
)
COMPARE = "Check whether torch.profiler.tensorboard_trace_handler can save it"

logger = logging.getLogger("stepscope.recording")


class TraceHandler:
    """The callable that `trace_handler` returns, for `profile(on_trace_ready=…)`."""

    def __init__(  # noqa: PLR0913 (as `trace_handler`)
        self,
        folder: str | os.PathLike[str],
        *,
        name: str | None = None,
        use_gzip: bool = False,
        use_python_export: bool = False,
        collect: Callable[[Any], Mapping[str, Any]] = collect,
        is_sampled: bool = True,
        has_values: bool = False,
    ) -> None:
        self.folder = Path(folder)
        self.name = name
        self.use_gzip = use_gzip
        self.use_python_export = use_python_export
        self.saved: list[Path] = []
        """The files written so far."""
        self.whole_run: Mapping[str, int] = {}
        """Facts on a recording without steps, as written into the trace; empty: it has steps."""
        self.command = ""
        """The command that records the program; empty: the program calls the handler."""
        self.step_times = StepTimes(
            sampler=HostSampler(is_possible=is_sampled), has_values=has_values
        )
        self._worker_samples = WorkerSamples(is_possible=is_sampled)
        self._collect = collect
        self._reported: set[str] = set()

    def __call__(self, profiler: Any) -> None:
        """Save a span. Never raises: an error is logged once, and training continues."""
        try:
            self._save(profiler)
            self._follow(profiler)
        except OSError as error:
            file_suffix = f": {error.filename}" if error.filename else ""
            reason = f"{error.strerror or error}{file_suffix}"
            self._warn_once("not saved", f"to {self.folder}: {reason}. {FREE_SPACE}")
        except Exception as error:  # torch's exporter may raise anything
            logger.debug("a span was not saved", exc_info=True)
            reason = f"{type(error).__name__}: {str(error).rstrip('.')}"
            self._warn_once("not saved", f"to {self.folder}: {reason}. {COMPARE}")

    def ended(self) -> None:
        """Sample no further workers: the last span is saved."""
        self._worker_samples.stop()

    def _save(self, profiler: Any) -> None:
        path = self.folder / self._file_name()
        export = partial(profiler.export_chrome_trace, **self._options(profiler))
        is_added = writing.write(path, export, KEY, self._settings(profiler))
        self.saved.append(path)
        if not is_added:
            self._warn_once("saved without the training's settings", f"as {path}")

    def _file_name(self) -> str:
        """Return the name that torch's own handler uses, with the rank in a process group."""
        name = self.name or f"{_rank_prefix()}{socket.gethostname()}_{os.getpid()}"
        if os.name == "nt":  # a colon would write into a hidden stream of another file
            name = FORBIDDEN_IN_WINDOWS.sub("_", name)
        return f"{name}.{time.time_ns()}{SUFFIX}{'.gz' if self.use_gzip else ''}"

    def _options(self, profiler: Any) -> dict[str, bool]:
        """Return `use_python_export` if requested and supported by torch (since 2.13)."""
        if not self.use_python_export:
            return {}
        has_option = "use_python_export" in signature(profiler.export_chrome_trace).parameters
        return {"use_python_export": True} if has_option else {}

    def _settings(self, profiler: Any) -> str | None:
        try:
            return as_json({**self._collect(profiler), **self._unrecorded_steps()})
        except Exception:  # a trace matters more than its settings
            logger.debug("the settings were not collected", exc_info=True)
            return None

    def _unrecorded_steps(self) -> Mapping[str, Any]:
        """Return times and samples of the steps before the span that were not recorded."""
        summary = self.step_times.summary
        if not summary and "unrecorded" not in self._reported:
            self._reported.add("unrecorded")
            logger.info("stepscope: %s", MORE_STEPS)
        notes = {
            HOST_SAMPLES: self.step_times.samples,
            WORKER_SAMPLES: self._worker_samples.summary(self.step_times.measured_ns),
            TENSOR_VALUES: self.step_times.values,
            WHOLE_RUN: self.whole_run,
            COMMAND: self.command,
        }
        return {
            UNRECORDED_STEPS: summary or {"count": 0},
            **{name: noted for name, noted in notes.items() if noted},
        }

    def _follow(self, profiler: Any) -> None:
        """Measure the steps after this span, if `profile.start` did not see the handler."""
        if hasattr(profiler, "schedule"):
            self.step_times.follow(profiler)

    def _warn_once(self, kind: str, more: str) -> None:
        """Log a warning once per kind, so that a minor one does not hide a major one."""
        if kind in self._reported:
            return
        self._reported.add(kind)
        with suppress(Exception):  # a logging filter or handler of the user may raise
            logger.warning(
                "stepscope: a recorded span was %s %s. Training continues; this is logged once.",
                kind,
                more,
            )


def _rank_prefix() -> str:
    """Return `rank3_` in a process group of several ranks, zero-padded for sorting."""
    try:
        import torch.distributed as group

        if not (group.is_available() and group.is_initialized()) or group.get_world_size() < 2:
            return ""
        width = len(str(group.get_world_size() - 1))
        return f"rank{group.get_rank():0{width}}_"
    except Exception:  # a trace matters more than its name
        return ""


def trace_handler(  # noqa: PLR0913 (each is something a user may say)
    dir_name: str | os.PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,  # noqa: FBT001, FBT002 (as torch's own handler takes it)
    use_python_export: bool = False,  # noqa: FBT001, FBT002
    *,
    dataloader: Any = None,
    model: Any = None,
    optimizer: Any = None,
    batch_size: int | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    leave_out: Collection[str] = (),
    is_searched: bool = True,
    is_sampled: bool = True,
    has_values: bool = False,
) -> TraceHandler:
    """Return a handler for `torch.profiler.profile(on_trace_ready=…)` that also saves settings.

    ```python
    import stepscope
    from torch.profiler import profile

    with profile(
        schedule=stepscope.schedule_for(1000),  # the steps of your training
        on_trace_ready=stepscope.trace_handler("log/run", use_gzip=True),
        record_shapes=True,
    ) as prof:
        for batch in loader:
            train_step(batch)
            prof.step()
    ```

    Then: `stepscope advise log/run`, or `tensorboard --logdir log`.

    It replaces `torch.profiler.tensorboard_trace_handler`, with the same arguments and file names,
    and adds settings that rules would otherwise infer: versions, processors and GPUs, the settings
    of DataLoaders, optimizers and the model, precision, torch.compile, DDP and FSDP, and a fixed
    list of environment variables that affect speed. DataLoaders, optimizers and models are found
    among live objects; arguments take precedence. No data, weights, code or paths are recorded
    beyond those that torch records. Settings are collected when a span is saved. Of unrecorded
    steps (`wait` and `skip_first` of the schedule), the time is noted, which shows the step without
    the profiler, and samples of the host's source lines, which show where it goes.

    It never raises: if a span cannot be saved, training continues and the reason is logged to
    stderr once. A file is written under a temporary name and then renamed, so that no trace is
    incomplete.

    Args:
        dir_name: The folder for the traces of this run; created if missing.
        worker_name: Name of this process. Default: host and process id, prefixed with the rank in a
            process group.
        use_gzip: Whether to compress the files (to about a tenth of the size).
        use_python_export: As in torch; ignored before torch 2.13.
        dataloader: The DataLoader of the loop, or several.
        model: The trained model.
        optimizer: The optimizer, or several.
        batch_size: Samples per step of this process, over all batches of the step.
        settings: Further settings, by subject and field, as `{"precision": {"autocast":
            {"enabled": True, "device": "cuda", "dtype": "bfloat16"}}}`; they override all others.
        leave_out: Subjects to omit, of `torch`, `host`, `devices`, `dataloaders`,
            `batch`, `precision`, `cudnn`, `allocator`, `environment`, `compile`, `distributed`,
            `optimizers`, `model`, `profiler`.
        is_searched: Whether to search live objects for DataLoaders, optimizers and models that are
            not passed.
        is_sampled: Whether to note every 10 ms where the host is in unrecorded steps, at a cost of
            some 20 µs each: files, lines and functions, as in stacks; and so in forked DataLoader
            workers, for which torch's `_worker_loop` is wrapped.
        has_values: Whether to read the values of tensors in two unrecorded steps, with a dispatch
            mode of torch, where six more unrecorded steps follow: which results the step computes
            twice or every step has, zeros, padding, and unused gradients. The trace gets lines,
            shapes and fractions, no values. These steps are slower.

    Raises:
        UsageError: `leave_out` contains an unknown subject. Raised only here, before the training.
    """
    if unknown := sorted(set(leave_out) - set(COLLECTORS)):
        message = f"leave_out={unknown}: the subjects are {', '.join(COLLECTORS)}."
        raise UsageError(message)
    given = Given(
        dataloaders=_several(dataloader),
        optimizers=_several(optimizer),
        model=model,
        batch_size=batch_size,
        settings=settings or {},
    )
    autocast_detection.start()
    follow_profilers()
    collected = partial(collect, given=given, leave_out=leave_out, is_searched=is_searched)
    return TraceHandler(
        dir_name,
        name=worker_name,
        use_gzip=use_gzip,
        use_python_export=use_python_export,
        collect=collected,
        is_sampled=is_sampled,
        has_values=has_values,
    )


def _several(given: Any) -> tuple[Any, ...]:
    if given is None:
        return ()
    return tuple(given) if isinstance(given, (list, tuple)) else (given,)

"""Hooks on torch in a recorded script: optimizers, batches, profilers.

Each wrapper notifies the recorder and calls the original. When `torch.compile` traces a wrapper, it
sees the original. After recording has ended, a wrapper costs one check of a flag.
"""

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any, cast

import torch
import torch.autograd.profiler
import torch.profiler.profiler
import torch.utils.data.dataloader
from torch.amp.grad_scaler import GradScaler
from torch.optim.optimizer import Optimizer

from stepscope.recording.inference_steps import CallState
from stepscope.recording.profiler_cycle import Profiled
from stepscope.recording.record_request import parse_request
from stepscope.recording.script_recorder import ScriptRecorder

Call = Callable[..., Any]
_backward_under_way = torch._C._current_graph_task_id  # noqa: SLF001
"""Looked up at import: a torch without it disables recording instead of failing in a step."""
NO_BACKWARD = -1


def start(request: str) -> None:
    """Record this process by a request's text; called once, right after torch is imported."""
    recorder = ScriptRecorder(parse_request(request))
    try:
        watch(recorder)
    except BaseException:  # hooks already installed must do nothing
        recorder.is_watching = False
        raise
    recorder.torch_imported()


def watch(recorder: ScriptRecorder) -> None:
    """Install the hooks for steps, evaluations and other profilers."""
    watch_optimizers(recorder)
    watch_batches(recorder)
    watch_profilers(recorder)
    watch_evaluation(recorder)
    recorder.calls = CallHook(recorder)


def watch_optimizers(recorder: ScriptRecorder) -> None:
    """Notify the recorder when the outermost of nested optimizer steps ends.

    An optimizer may wrap another (ZeroRedundancyOptimizer), and a GradScaler may skip the step.
    """
    watch = _Depth(recorder)
    hooked = Optimizer.profile_hook_step

    def profile_hook_step(step: Call) -> Call:
        recorder.optimizer_created()
        return watch.around(hooked(step), optimizer_at=0)

    setattr(Optimizer, "profile_hook_step", staticmethod(profile_hook_step))  # noqa: B010
    GradScaler.step = watch.around(GradScaler.step, optimizer_at=1)  # type: ignore[method-assign]


class _Depth:
    """Nesting depth of `step` calls in the main thread."""

    def __init__(self, recorder: ScriptRecorder) -> None:
        self._recorder = recorder
        self._depth = 0

    def around(self, step: Call, *, optimizer_at: int) -> Call:
        """Wrap a step to notify when it is the outermost and returns without raising."""
        recorder = self._recorder

        @functools.wraps(step)
        def watched(*arguments: Any, **named: Any) -> Any:
            if (
                torch.compiler.is_compiling()
                or not recorder.is_watching
                or _cannot_end_step(recorder)
            ):
                return step(*arguments, **named)
            self._depth += 1
            try:
                came = step(*arguments, **named)
            finally:
                self._depth -= 1
            if not self._depth:
                is_positional = len(arguments) > optimizer_at
                recorder.optimizer_stepped(
                    arguments[optimizer_at] if is_positional else named.get("optimizer")
                )
            return came

        return watched


def _cannot_end_step(recorder: ScriptRecorder) -> bool:
    """Return whether a step cannot end here: in another thread, or during a backward pass."""
    return threading.get_ident() != recorder.main_thread or _backward_under_way() != NO_BACKWARD


def watch_batches(recorder: ScriptRecorder) -> None:
    """Notify the recorder when the next batch is requested, and when the data is exhausted."""
    iterator = torch.utils.data.dataloader._BaseDataLoaderIter  # noqa: SLF001
    following = iterator.__next__

    @functools.wraps(following)
    def watched(self: Any) -> Any:
        if not recorder.is_watching or _cannot_end_step(recorder):
            return following(self)
        recorder.batch_requested(self, has_gradients=torch.is_grad_enabled())
        try:
            return following(self)
        except StopIteration:
            recorder.epoch_ended(self)
            raise

    iterator.__next__ = watched  # type: ignore[method-assign]


def watch_profilers(recorder: ScriptRecorder) -> None:
    """Stop the recorder when the script creates a profiler: torch supports only one."""

    def notify_before(profiler: type, is_on: Callable[[Any], bool]) -> None:
        made = cast("Call", profiler.__init__)  # type: ignore[misc]

        @functools.wraps(made)
        def watched(self: Any, *arguments: Any, **named: Any) -> None:
            made(self, *arguments, **named)
            if recorder.is_watching and not Profiled.is_being_made and is_on(self):
                recorder.other_profiler_created()

        profiler.__init__ = watched  # type: ignore[misc]

    notify_before(torch.profiler.profiler._KinetoProfile, lambda _: True)  # noqa: SLF001
    for other in ("profile", "emit_nvtx", "emit_itt"):
        kind = getattr(torch.autograd.profiler, other, None)
        if kind is not None:
            notify_before(kind, lambda profiler: bool(profiler.enabled))


def watch_evaluation(recorder: ScriptRecorder) -> None:
    """Notify the recorder when a model enters evaluation mode, which may be a script's only work.

    `eval()` calls `train(False)`, which calls itself for each module inside; `transformers` has an
    `eval` of its own. A model that freezes layers in its `train()` evaluates nothing. No module
    hooks: with torch.compile, those cause recompilations and errors (`live_objects.py`). `CallHook`
    replaces a method instead, only while calls may be steps.
    """
    prepare = torch.nn.Module.train
    is_inside = False

    @functools.wraps(prepare)
    def watched(self: torch.nn.Module, mode: bool = True) -> torch.nn.Module:  # noqa: FBT001, FBT002 (torch's signature)
        nonlocal is_inside
        if (
            torch.compiler.is_compiling()
            or is_inside
            or not recorder.is_watching
            or _cannot_end_step(recorder)
        ):
            return prepare(self, mode)
        is_inside = True
        try:
            prepared = prepare(self, mode)
        finally:
            is_inside = False
        if not mode:
            recorder.model_set_to_evaluate()
        return prepared

    setattr(torch.nn.Module, "train", watched)  # noqa: B010 (mypy has a type for each method)


class CallHook:
    """Notifies the recorder when an outermost call of a module begins, in any thread.

    It replaces `Module.__call__` between `start` and `stop`. Calls of inner modules then cost one
    more Python call, 0.3 µs. What torch.compile traced with the hook would be compiled again
    without it: where torch.compile is in use, the hook stays, and does nothing.
    """

    def __init__(self, recorder: ScriptRecorder) -> None:
        self._recorder = recorder
        self._is_on = False
        self._original: Call | None = None
        self._hook: Call | None = None

    def start(self) -> None:
        """Install the hook, once."""
        if self._original is not None:
            return
        self._is_on = True
        self._original = original = torch.nn.Module.__call__
        hook, recorder, state = self, self._recorder, CallState()
        is_compiling = torch.compiler.is_compiling

        @functools.wraps(original)
        def watched(self: torch.nn.Module, *arguments: Any, **named: Any) -> Any:
            if is_compiling() or state.is_inside or not hook._is_on:
                return original(self, *arguments, **named)
            state.is_inside = True
            try:
                recorder.model_called(self, state)
                return original(self, *arguments, **named)
            finally:
                state.call_ended()

        self._hook = watched
        setattr(torch.nn.Module, "__call__", watched)  # noqa: B010 (mypy)

    def stop(self) -> None:
        """Restore the method, unless another program has replaced it since."""
        self._is_on = False
        is_replaced = torch.nn.Module.__call__ is not self._hook
        if self._original is not None and not is_replaced and not _has_compiled():
            setattr(torch.nn.Module, "__call__", self._original)  # noqa: B010


def _has_compiled() -> bool:
    """Return whether torch.compile has traced a function; creating an optimizer imports it, too."""
    return bool(getattr(sys.modules.get("torch._dynamo.utils"), "counters", None))

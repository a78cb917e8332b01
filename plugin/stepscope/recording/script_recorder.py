"""Recorder of an unchanged script, in one of its processes.

`script_hooks.py` notifies it of the script's calls, `step_detection.py` finds the ends of steps,
and `record_request.py` holds the request. It never raises into the script.

- An evaluation during a cycle ends it: with 3 complete steps the trace is saved; with fewer it is
  dropped, and the cycle restarts after the evaluation.
- A cycle whose steps no longer end is ended by a timer, unless there are other ranks, which must
  record the same steps; so is a cycle whose calls of a model move to another thread of a server.
- A script that creates its own profiler is not recorded from then on.
- Processes that `multiprocessing` started are recorded only if they take steps: a rank does, a
  DataLoader worker does not.
"""

import atexit
import functools
import multiprocessing.util
import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, Protocol

from stepscope.recording import autocast_detection
from stepscope.recording.cycles import CallCycles, CycleEnd, Cycles
from stepscope.recording.handler import TraceHandler
from stepscope.recording.inference_steps import CallState, InferenceSteps
from stepscope.recording.main_thread import LATER_SECONDS, MainThreadTimer
from stepscope.recording.messages import AccountWriter, program, rank
from stepscope.recording.profiler_cycle import all_threads, is_profiler_running
from stepscope.recording.record_request import ACCOUNTS, Account, RecordRequest, accounts_in
from stepscope.recording.step_detection import StepBoundary, StepDetector
from stepscope.recording.step_periods import period
from stepscope.recording.step_times import is_graph_captured
from stepscope.recording.termination import Termination
from stepscope.recording.whole_run import WholeRun

LAUNCHERS = ("torchrun", "torch.distributed", "accelerate", "deepspeed")
"""Programs that import torch only to start other processes."""
CALLS_OF_INFERENCE = 4
"""Calls of a model without an optimizer or a DataLoader that are an inference."""
CAPTURE_SECONDS = 1.0
"""Time after which a graph's capture may have ended."""
FIRST = 1000
"""Runs before the other exit finalizers of `multiprocessing`."""

Given = ParamSpec("Given")


def _stop_on_error(
    method: Callable[Concatenate["ScriptRecorder", Given], None],
) -> Callable[Concatenate["ScriptRecorder", Given], None]:
    """Make a method a no-op after recording has ended; stop recording if it raises.

    It is also a no-op when called during another of these methods: by a timer, by a signal handler,
    or because the profiler itself calls a hooked function.
    """

    @functools.wraps(method)
    def guarded(self: "ScriptRecorder", /, *arguments: Given.args, **named: Given.kwargs) -> None:
        if not self.is_watching or self._is_busy:
            return
        self._is_busy = True
        try:
            method(self, *arguments, **named)
        except Exception as error:
            self._stop_after_error(f"{type(error).__name__}: {error}")
        finally:
            self._is_busy = False

    return guarded


class CallHook(Protocol):
    """Reports the calls of models between `start` and `stop`."""

    def start(self) -> None:
        """Report calls from now on."""

    def stop(self) -> None:
        """Report no more calls."""


class ScriptRecorder:
    """The recorder of one process."""

    def __init__(self, request: RecordRequest) -> None:
        self._request = request
        self.calls: CallHook | None = None
        self._termination = Termination(self.ended)
        self._is_helper = _is_multiprocessing_child()
        self._begin()

    def _begin(self) -> None:
        self.is_watching = True
        """Whether the script's calls still matter."""
        self._is_busy = False
        self.main_thread = threading.main_thread().ident
        """The only thread with detected steps: a profiler records the thread that starts it."""
        self._overdue = MainThreadTimer(self._check_overdue)
        self._have_steps_moved = False
        """Whether another thread has taken over the steps of the current cycle."""
        self._account_writer = AccountWriter(self._request)
        self._detector = StepDetector(
            is_by_optimizer=self._request.steps_from in ("auto", "optimizer"),
            is_by_batch=self._request.steps_from in ("auto", "dataloader"),
        )
        handler = self._new_handler()
        self._cycles = Cycles(self._request, handler)
        self._whole = WholeRun(self._request, handler)
        self._inference = InferenceSteps()
        self._early_call_count = 0
        """Outermost calls of models before anything is recorded."""
        self._step = 0
        """Number of the current step; 0 during the script's start."""
        self._epoch_length = 0
        self._has_recorded_batches = False
        """Whether batches were recorded as requested; steps of an optimizer take precedence."""

    def _new_handler(self) -> TraceHandler:
        """Return a handler for new counts of steps; this recorder reports the steps to it."""
        autocast_detection.start()
        handler = TraceHandler(
            self._request.log_dir,
            use_gzip=True,
            is_sampled=self._request.samples,
            has_values=self._request.values,
        )
        handler.command = "stepscope record"
        handler.step_times.is_driven = True
        self._handler, self._times = handler, handler.step_times
        return handler

    # --- calls from the hooks -----------------------------------------------------------------

    @_stop_on_error
    def torch_imported(self) -> None:
        """Begin; the script has imported torch."""
        self._account_writer.account.has_torch = True
        self._account_writer.save()
        atexit.register(self.ended)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._forks, after_in_child=self._forked)
        if not self._is_helper and not program().startswith(LAUNCHERS):
            self._whole.await_end_of_start(self.startup_ended)
            if self._whole.is_possible and self.calls is not None:
                self.calls.start()

    @_stop_on_error
    def model_set_to_evaluate(self) -> None:
        """Handle a model's `eval()`: during a training, or as the script's only work."""
        if self._detector.model_set_to_evaluate() is StepBoundary.EVALUATION:
            self._evaluation_begins()
        else:
            self._inference_begins()

    @_stop_on_error
    def startup_ended(self) -> None:
        """Handle the end of the script's start: it is working, though it has taken no step."""
        self._inference_begins()

    @_stop_on_error
    def model_called(self, model: Any, thread: CallState) -> None:
        """Handle the begin of an outermost call of a model, while nothing trains."""
        if all_threads() is None and threading.get_ident() != self.main_thread:
            return
        if is_graph_captured():  # torch waits for the device when it stops recording
            return
        is_begun = self._inference.is_begun
        boundary = self._inference.called(
            model,
            thread.key,
            is_after_pause=thread.is_after_pause(),
            is_recording=self._cycles.is_recording,
        )
        self._calls_move()
        if not self._inference.is_begun:
            self._call_is_no_step(model)
        if boundary is StepBoundary.NONE:
            return
        if not is_begun:
            self._calls_become_steps()
        if boundary is StepBoundary.EVALUATION:
            self._evaluation_begins()
        if self.is_watching and (self._request.is_stopping or not self._cycles.is_complete):
            self._step_begins(model)

    @_stop_on_error
    def optimizer_created(self) -> None:
        """Handle the first construction of an optimizer."""
        self._detector.has_optimizer = True
        self._forget_inference()

    @_stop_on_error
    def optimizer_stepped(self, optimizer: object) -> None:
        """Handle a step of an optimizer."""
        leader = self._detector.leader
        boundary = self._detector.optimizer_stepped(optimizer)
        if boundary is StepBoundary.RESTART or self._inference.is_begun:
            self._discard_batches()
        if boundary is not StepBoundary.NONE:
            if leader not in (None, optimizer) and self._detector.is_training:
                self._steps_change()
            self._step_begins(optimizer)

    @_stop_on_error
    def batch_requested(self, iterator: object, *, has_gradients: bool) -> None:
        """Handle a request for the next batch."""
        if self._has_recorded_batches:
            return
        if not self._epoch_length:
            self._first_batch_requested(iterator)
        boundary = self._detector.batch_requested(iterator, has_gradients=has_gradients)
        if boundary is StepBoundary.STEP:
            self._step_begins(iterator)
        elif boundary is StepBoundary.EVALUATION:
            self._evaluation_begins()

    @_stop_on_error
    def epoch_ended(self, iterator: object) -> None:
        """Handle an exhausted DataLoader."""
        self._detector.epoch_ended(iterator)

    @_stop_on_error
    def cycle_overdue(self) -> None:
        """End a cycle whose steps no longer end; the next step, if any, begins anew."""
        if not self._cycles.is_recording:
            return
        left_s = 0.0 if self._have_steps_moved else self._cycles.overdue_in_s()
        if is_graph_captured():
            self._overdue.start(CAPTURE_SECONDS)
        elif left_s > 0:
            self._overdue.start(left_s)
        else:
            self._times.interrupted()
            self._cycle_ended(self._cycles.end_overdue())
            if self._cycles.is_complete and not self._request.is_stopping:
                self._stop_if_complete()

    def _check_overdue(self) -> None:
        """End an overdue cycle, after a call of a hook in another thread."""
        if self._is_busy:
            self._overdue.start(LATER_SECONDS)
        else:
            self.cycle_overdue()

    @_stop_on_error
    def other_profiler_created(self) -> None:
        """Stop recording: the script creates a profiler of its own."""
        self._stop_for_other_profiler()

    @_stop_on_error
    def ended(self) -> None:
        """Write the trace when the process ends."""
        if _is_parent_of_ranks():
            self._whole.forget()
        self._finish()

    def _stop_after_error(self, why: str) -> None:
        self.is_watching = False
        with suppress(Exception):
            self._times.ended()
            self._account_writer.note(f"recording failed ({why}); the script continues")
            self._termination.disarm()
            self._overdue.cancel()
            self._cycles.finish(is_saved=False)
            self._handler.ended()

    def _stop_for_other_profiler(self) -> None:
        self._whole.forget()
        self._finish()
        self._account_writer.note(
            "the script uses its own torch profiler: stepscope stops recording"
        )

    # --- recording ---------------------------------------------------------------------------

    def _calls_move(self) -> None:
        """Begin anew if other calls are the steps by now; first end a step that is recorded."""
        if self._inference.are_others:
            self._steps_change()
        elif self._inference.has_moved and self._cycles.is_recording and rank() is None:
            self._have_steps_moved = True
            self._overdue.start(0.0)

    def _call_is_no_step(self, model: Any) -> None:
        """Count a call for the recording of the whole run, which the fourth one begins."""
        if self._inference.are_others:
            self._whole.resume()
        if not self._inference.is_model(model):
            return
        if not self._whole.is_recording:
            self._early_call_count += 1
            if self._early_call_count >= CALLS_OF_INFERENCE:
                self._inference_begins()
        self._whole.model_called()

    def _inference_begins(self) -> None:
        """Record the whole run, until calls of a model are steps."""
        if self._whole.is_possible and self.calls is not None:
            self.calls.start()
        if not self._is_helper:
            self._whole.begin()

    def _calls_become_steps(self) -> None:
        self._whole.suspend()
        if not isinstance(self._cycles, CallCycles):
            self._cycles = CallCycles(self._request, self._new_handler())

    def _steps_change(self) -> None:
        """Begin anew, unless all is recorded: the steps so far were others."""
        if not self._cycles.is_complete:
            self._times.interrupted()
            self._cycle_ended(self._cycles.steps_changed())

    def _forget_inference(self) -> None:
        """Drop what was recorded as an inference: there is a sign of other steps."""
        self._whole.forget()
        if self.calls is not None:
            self.calls.stop()
        if self._inference.is_begun and not self._has_recorded_batches:
            self._discard_batches()

    def _first_batch_requested(self, iterator: object) -> None:
        self._forget_inference()
        self._epoch_length = -1
        with suppress(Exception):  # a sampler without a length, or an exception of the user's code
            self._epoch_length = len(iterator)  # type: ignore[arg-type]

    def _step_begins(self, detected_by: object) -> None:
        if self._cycles.is_recording and is_graph_captured():
            return
        self._times.step_ended()
        self._step += 1
        if self._step == 1:
            if _is_dataloader_worker():
                self._stop()
                return
            if not self._inference.is_begun:
                self._whole.forget()
            multiprocessing.util.Finalize(None, self.ended, exitpriority=FIRST)
            self._name_step_source(detected_by)
        if self._cycles.is_recording:
            self._name_step_source(detected_by)
            self._cycle_ended(self._cycles.step())
        self._stop_if_complete()  # also if the timer has ended the last cycle
        if self.is_watching and self._cycles.is_due(self._step, max(self._epoch_length, 0)):
            self._start_cycle(detected_by)
        if self.is_watching and not self._cycles.is_recording:
            room = self._cycles.room(self._step, max(self._epoch_length, 0))
            is_main = threading.get_ident() == self.main_thread
            self._times.step_started(room if is_main else 0)

    def _start_cycle(self, detected_by: object) -> None:
        if is_graph_captured():
            return
        if is_profiler_running():
            self._stop_for_other_profiler()
            return
        self._account_writer.account.step_count = self._step - 1
        self._name_step_source(detected_by)
        self._account_writer.save()
        least_active = period(self._times.durations_ns)
        self._times.stretch_ended()
        self._cycles.start(self._step, max(self._epoch_length, 0), least_active=least_active)
        self._termination.arm()
        if not self._cycles.is_early:
            self._account_writer.recording(*self._cycles.steps_to_record)
        # another thread's profiler can be ended here only if it records all threads
        is_main = threading.get_ident() == self.main_thread
        if rank() is None and (is_main or isinstance(self._cycles, CallCycles)):
            self._overdue.start(self._cycles.overdue_in_s())

    def _evaluation_begins(self) -> None:
        self._times.interrupted()
        self._cycle_ended(self._cycles.evaluation())
        self._stop_if_complete()

    def _name_step_source(self, detected_by: object) -> None:
        by_optimizer = f"step of the optimizer {type(detected_by).__name__}"
        by_batch = "batch of a DataLoader"
        by_call = f"call of the model {type(detected_by).__name__}"
        self._account_writer.account.steps_from = (
            by_optimizer
            if self._detector.is_training
            else by_call
            if self._inference.is_begun
            else by_batch
        )

    def _cycle_ended(self, ended: CycleEnd | None) -> None:
        if ended is None:
            return
        self._termination.disarm()
        self._overdue.cancel()
        self._have_steps_moved = False
        if ended is not CycleEnd.DROPPED:
            self._whole.forget()
            self._account_writer.written(self._cycles.written, is_reserve=self._cycles.is_early)
            self._account_writer.remove(self._cycles.replaced)

    def _stop_if_complete(self) -> None:
        """Stop if nothing is left to record, and end the script if requested."""
        if self._cycles.are_evaluations_too_frequent and self._inference.is_begun:
            self._finish()
        elif self._cycles.are_evaluations_too_frequent:
            if self._cycles.reserve is None:
                text = "evaluations are too frequent to record a step between them"
                self._account_writer.note(text)
            self._stop()
        elif self._cycles.is_complete:
            self._account_writer.account.is_complete = True
            if self._detector.is_training or self._request.is_stopping:
                self._stop()
            self._has_recorded_batches = True
            if self.calls is not None:
                self.calls.stop()
            if self._request.is_stopping:
                raise SystemExit(0)

    def _discard_batches(self) -> None:
        """Discard counts and traces of batches: an optimizer has stepped."""
        self._cycles.finish(is_saved=False)
        self._termination.disarm()
        self._overdue.cancel()
        self._have_steps_moved = False
        self._account_writer.remove_batch_traces()
        self._has_recorded_batches = False
        self._inference = InferenceSteps()
        self._times.ended()
        self._cycles = Cycles(self._request, self._new_handler())
        self._step = 0

    def _finish(self) -> None:
        self._cycle_ended(self._cycles.finish(is_saved=True))
        if written := self._whole.finish():
            self._account_writer.written(written)
            self._account_writer.remove(self._cycles.reserve)
        self._stop()

    def _stop(self) -> None:
        self.is_watching = False
        if self.calls is not None:
            self.calls.stop()
        self._times.ended()
        self._handler.ended()
        self._termination.disarm()
        self._overdue.cancel()
        self._account_writer.account.step_count = max(self._step - 1, 0)
        self._account_writer.save()

    # --- other processes ---------------------------------------------------------------------

    def _forks(self) -> None:
        if self.is_watching:
            self._whole.forget()

    def _forked(self) -> None:
        """Restart in a forked child, unless its parent was being recorded.

        torch's profiler does not survive a fork.
        """
        was_recording = self._cycles.is_recording or self._whole.is_recording
        self._termination.forget()
        self._termination = Termination(self.ended)
        self._left_to_parent = self._cycles, self._whole, self._overdue
        self._is_helper = True
        self._begin()
        self._account_writer.account.has_torch = True
        self.is_watching = not was_recording


def _is_multiprocessing_child() -> bool:
    """Return whether `multiprocessing` started this interpreter."""
    command = sys.orig_argv
    return any(word.startswith("from multiprocessing.") for word in command) or (
        "--multiprocessing-fork" in command
    )


def _is_dataloader_worker() -> bool:
    """Return whether this process is a DataLoader worker."""
    from torch.utils.data import get_worker_info

    return get_worker_info() is not None


def _is_parent_of_ranks() -> bool:
    """Return whether descendants of this process took steps."""
    folder = os.environ.get(ACCOUNTS)
    accounts = {account.process: account for account in accounts_in(folder)} if folder else {}
    return any(
        _is_below_this(account, accounts) for account in accounts.values() if account.step_count
    )


def _is_below_this(account: Account | None, accounts: Mapping[int, Account]) -> bool:
    seen: set[int] = set()
    while account is not None and account.process not in seen:
        if account.parent == os.getpid():
            return True
        seen.add(account.process)
        account = accounts.get(account.parent)
    return False

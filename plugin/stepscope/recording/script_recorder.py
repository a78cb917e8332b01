"""Recorder of an unchanged script, in one of its processes.

`script_hooks.py` notifies it of the script's calls, `step_detection.py` finds the ends of steps,
and `record_request.py` holds the request. It never raises into the script.

- An evaluation during a cycle ends it: with 3 complete steps the trace is saved; with fewer it is
  dropped, and the cycle restarts after the evaluation.
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
from typing import Concatenate, ParamSpec

from stepscope.recording.cycles import Cycles, Ended
from stepscope.recording.handler import trace_handler
from stepscope.recording.messages import Teller, program
from stepscope.recording.profiler_cycle import another_runs
from stepscope.recording.record_request import ACCOUNTS, Account, Order, accounts_in
from stepscope.recording.step_detection import Border, StepFinder
from stepscope.recording.termination import Termination
from stepscope.recording.whole_run import WholeRun

LAUNCHERS = ("torchrun", "torch.distributed", "accelerate", "deepspeed")
"""Programs that import torch only to start other processes."""
FIRST = 1000
"""Runs before the other exit finalizers of `multiprocessing`."""

Given = ParamSpec("Given")


def _harmless(
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
            self._give_up(f"{type(error).__name__}: {error}")
        finally:
            self._is_busy = False

    return guarded


class ScriptRecorder:
    """The recorder of one process."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._termination = Termination(self.ended)
        self._is_helper = _is_of_multiprocessing()
        self._begin()

    def _begin(self) -> None:
        self.is_watching = True
        """Whether the script's calls still matter."""
        self._is_busy = False
        self.main_thread = threading.main_thread().ident
        """The only thread with detected steps: a profiler records the thread that starts it."""
        self._teller = Teller(self._order)
        self._finder = StepFinder(
            is_by_optimizer=self._order.steps_from in ("auto", "optimizer"),
            is_by_batch=self._order.steps_from in ("auto", "dataloader"),
        )
        handler = trace_handler(self._order.log_dir, use_gzip=True)
        self._cycles = Cycles(self._order, handler)
        self._whole = WholeRun(self._order, handler)
        self._step = 0
        """Number of the current step; 0 during the script's start."""
        self._epoch_length = 0
        self._is_content = False
        """Whether batches were recorded as requested; steps of an optimizer take precedence."""

    # --- calls from the hooks -----------------------------------------------------------------

    @_harmless
    def torch_is_there(self) -> None:
        """Begin; the script has imported torch."""
        self._teller.account.has_torch = True
        self._teller.save()
        atexit.register(self.ended)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._forks, after_in_child=self._forked)
        if not self._is_helper and not program().startswith(LAUNCHERS):
            self._whole.await_end_of_start(self.start_is_over)

    @_harmless
    def model_is_ready(self) -> None:
        """Handle a model's `eval()`: during a training, or as the script's only work."""
        if self._finder.model_set_to_evaluate() is Border.EVALUATION:
            self._evaluation_begins()
        elif not self._is_helper:
            self._whole.begin()

    @_harmless
    def start_is_over(self) -> None:
        """Handle the end of the script's start: it is working, though it has taken no step."""
        self._whole.begin()

    @_harmless
    def optimizer_is_made(self) -> None:
        """Handle the first construction of an optimizer."""
        self._finder.has_optimizer = True
        self._whole.forget()

    @_harmless
    def optimizer_stepped(self, optimizer: object) -> None:
        """Handle a step of an optimizer."""
        border = self._finder.optimizer_stepped(optimizer)
        if border is Border.ANEW:
            self._begin_anew()
        if border is not Border.NONE:
            self._step_begins(optimizer)

    @_harmless
    def batch_requested(self, iterator: object, *, has_gradients: bool) -> None:
        """Handle a request for the next batch."""
        if self._is_content:
            return
        if not self._epoch_length:
            self._first_batch_requested(iterator)
        border = self._finder.batch_requested(iterator, has_gradients=has_gradients)
        if border is Border.STEP:
            self._step_begins(iterator)
        elif border is Border.EVALUATION:
            self._evaluation_begins()

    @_harmless
    def epoch_ended(self, iterator: object) -> None:
        """Handle an exhausted DataLoader."""
        self._finder.epoch_ended(iterator)

    @_harmless
    def step_back(self) -> None:
        """Stop recording: the script creates a profiler of its own."""
        self._leave_alone()

    @_harmless
    def ended(self) -> None:
        """Write the trace when the process ends."""
        if _is_parent_of_ranks():
            self._whole.forget()
        self._finish()

    def _give_up(self, why: str) -> None:
        self.is_watching = False
        with suppress(Exception):
            self._teller.note(f"recording failed ({why}); the script continues")
            self._termination.disarm()
            self._cycles.finish(is_saved=False)

    def _leave_alone(self) -> None:
        self._whole.forget()
        self._finish()
        self._teller.note("the script uses its own torch profiler: stepscope stops recording")

    # --- recording ---------------------------------------------------------------------------

    def _first_batch_requested(self, iterator: object) -> None:
        self._whole.forget()
        self._epoch_length = -1
        with suppress(Exception):  # a sampler without a length, or an exception of the user's code
            self._epoch_length = len(iterator)  # type: ignore[arg-type]

    def _step_begins(self, detected_by: object) -> None:
        self._step += 1
        if self._step == 1:
            if _is_loading():
                self._stop()
                return
            self._whole.forget()
            multiprocessing.util.Finalize(None, self.ended, exitpriority=FIRST)
        if self._cycles.is_recording:
            self._name_step_source(detected_by)
            self._cycle_ended(self._cycles.step())
            self._go_on()
        if self.is_watching and self._cycles.is_due(self._step, max(self._epoch_length, 0)):
            self._start_cycle(detected_by)

    def _start_cycle(self, detected_by: object) -> None:
        if another_runs():
            self._leave_alone()
            return
        self._teller.account.step_count = self._step - 1
        self._name_step_source(detected_by)
        self._teller.save()
        self._cycles.start(self._step)
        self._termination.arm()
        self._teller.recording(*self._cycles.steps_to_record)

    def _evaluation_begins(self) -> None:
        self._cycle_ended(self._cycles.evaluation())
        self._go_on()

    def _name_step_source(self, detected_by: object) -> None:
        by_optimizer = f"step of the optimizer {type(detected_by).__name__}"
        by_batch = "batch of a DataLoader"
        self._teller.account.steps_from = by_optimizer if self._finder.is_training else by_batch

    def _cycle_ended(self, ended: Ended | None) -> None:
        if ended is None:
            return
        self._termination.disarm()
        if ended is not Ended.DROPPED:
            self._teller.written(self._cycles.written)

    def _go_on(self) -> None:
        """Stop if nothing is left to record, and end the script if requested."""
        if self._cycles.is_hopeless:
            self._teller.note("evaluations are too frequent to record a step between them")
            self._stop()
        elif self._cycles.is_complete:
            self._teller.account.is_complete = True
            if self._finder.is_training or self._order.is_stopping:
                self._stop()
            self._is_content = True
            if self._order.is_stopping:
                raise SystemExit(0)

    def _begin_anew(self) -> None:
        """Discard counts and traces of batches: an optimizer has stepped."""
        self._cycles.finish(is_saved=False)
        self._termination.disarm()
        self._teller.take_back()
        self._is_content = False
        self._cycles = Cycles(self._order, trace_handler(self._order.log_dir, use_gzip=True))
        self._step = 0

    def _finish(self) -> None:
        self._cycle_ended(self._cycles.finish(is_saved=True))
        if written := self._whole.finish():
            self._teller.written(written)
        self._stop()

    def _stop(self) -> None:
        self.is_watching = False
        self._termination.disarm()
        self._teller.account.step_count = max(self._step - 1, 0)
        self._teller.save()

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
        self._left_to_parent = self._cycles, self._whole
        self._is_helper = True
        self._begin()
        self._teller.account.has_torch = True
        self.is_watching = not was_recording


def _is_of_multiprocessing() -> bool:
    """Return whether `multiprocessing` started this interpreter."""
    command = sys.orig_argv
    return any(word.startswith("from multiprocessing.") for word in command) or (
        "--multiprocessing-fork" in command
    )


def _is_loading() -> bool:
    """Return whether this process is a DataLoader worker."""
    from torch.utils.data import get_worker_info

    return get_worker_info() is not None


def _is_parent_of_ranks() -> bool:
    """Return whether descendants of this process took steps."""
    folder = os.environ.get(ACCOUNTS)
    accounts = {one.process: one for one in accounts_in(folder)} if folder else {}
    return any(_is_below_this(one, accounts) for one in accounts.values() if one.step_count)


def _is_below_this(account: Account | None, accounts: Mapping[int, Account]) -> bool:
    seen: set[int] = set()
    while account is not None and account.process not in seen:
        if account.parent == os.getpid():
            return True
        seen.add(account.process)
        account = accounts.get(account.parent)
    return False

"""Detection of step boundaries from the calls of a script.

The rules, by precedence:

1. A step ends when the outermost call of `Optimizer.step` or `GradScaler.step` returns. Thus
   gradient accumulation makes one step of several batches, a step that the scaler skips for
   infinite gradients counts, and LBFGS with its many closures makes one step. With several
   optimizers (a GAN), the one that steps least often defines the step, so that all steps are alike,
   if it steps at least once in 20 of another's; among equals, the one that stepped first. An
   optimizer that was deleted, or did not step for 20 turns, loses this role.
2. If no optimizer steps, a step ends when the next batch of a DataLoader is requested; among
   several DataLoaders, one is selected by the same rule. If an optimizer was created, its first
   step is awaited for 200 batches.

An optimizer's first step overrides batches, and counting restarts. A training step that contains an
evaluation is detected by a model set to evaluate (`eval()`), by batches requested without
gradients, or by many more batches than in the steps before.
"""

import weakref
from enum import Enum, auto

MOST_TURNS = 20
"""An optimizer or DataLoader with fewer than one turn in this number defines no step."""
BATCHES_BEFORE_OPTIMIZER = 200
"""Number of batches to wait for the first step of an optimizer that was created."""
MANY_TIMES = 2
SOME_BATCHES = 2
"""A step with over `MANY_TIMES` the batches of any before, plus these, is an evaluation."""
RARE = 4
"""Signs of an evaluation (a model set to evaluate, batches without gradients, many batches) count
only if fewer than one in this number of steps has them.
"""


class StepBoundary(Enum):
    """Effect of a call on steps."""

    NONE = auto()
    """No effect."""
    STEP = auto()
    """A step ends here and the next begins."""
    RESTART = auto()
    """As `STEP`, and all earlier steps were batches of an evaluation."""
    EVALUATION = auto()
    """The current step differs from the others: an evaluation began in it."""


class Leader:
    """Selects the optimizer or DataLoader that defines the step, of several."""

    def __init__(self) -> None:
        self._leader: weakref.ref[object] | None = None
        self._turns = 0
        """Turns of the leader."""
        self._turns_of_others = 0
        """Turns of others since the leader's last turn."""
        self._seen: list[tuple[weakref.ref[object], int]] = []
        """The others, each with the count of the leader's turns at its own last turn."""

    @property
    def leader(self) -> object | None:
        """Return the candidate that defines the step; None before the first, or if deleted."""
        return None if self._leader is None else self._leader()

    def count_turn(self, candidate: object) -> bool:
        """Count a turn of the candidate; return whether it defines the step."""
        if self._leader is None or self._leader() is not candidate:
            if not self._is_to_lead(candidate):
                return False
            self._leader = weakref.ref(candidate)
            self._turns = 0
            self._seen = []
        self._turns += 1
        self._turns_of_others = 0
        return True

    def _is_to_lead(self, candidate: object) -> bool:
        if self._leader is None or self._leader() is None:
            return True
        self._turns_of_others += 1
        last = next((turns for seen, turns in self._seen if seen() is candidate), None)
        self._seen = [(seen, turns) for seen, turns in self._seen if seen() is not candidate]
        self._seen.append((weakref.ref(candidate), self._turns))
        is_slower = last is not None and 2 <= self._turns - last <= MOST_TURNS
        return is_slower or self._turns_of_others >= MOST_TURNS


class StepDetector:
    """Receives optimizer steps and batch requests, and returns the step boundaries."""

    def __init__(self, *, is_by_optimizer: bool = True, is_by_batch: bool = True) -> None:
        self._is_by_optimizer = is_by_optimizer
        self._is_by_batch = is_by_batch
        self._leader = Leader()
        self._waited_batches = 0
        self._has_boundary = False
        self._is_in_ended_epoch = False
        self._evaluations = _Evaluations()
        self.has_optimizer = False
        """Whether an optimizer was created."""
        self.is_training = False
        """Whether an optimizer has stepped; from then on batches define no step."""

    @property
    def leader(self) -> object | None:
        """Return the optimizer or DataLoader that defines the step; None before the first."""
        return self._leader.leader

    def optimizer_stepped(self, optimizer: object) -> StepBoundary:
        """Handle a step of an optimizer."""
        self.has_optimizer = True
        if not self._is_by_optimizer:
            return StepBoundary.NONE
        if not self.is_training:
            self.is_training = True
            self._leader = Leader()
            self._leader.count_turn(optimizer)
            self._evaluations = _Evaluations()
            return StepBoundary.RESTART if self._has_boundary else StepBoundary.STEP
        leader = self.leader
        if not self._leader.count_turn(optimizer):
            return StepBoundary.NONE
        if leader is not optimizer and leader is not None:  # other steps, of more batches
            self._evaluations = _Evaluations()
        self._evaluations.step_ended()
        return StepBoundary.STEP

    def batch_requested(self, loader: object, *, has_gradients: bool) -> StepBoundary:
        """Handle a request for the next batch, with gradients enabled or not."""
        if self.is_training:
            is_begun = self._evaluations.is_begun_by_batch(has_gradients=has_gradients)
            return StepBoundary.EVALUATION if is_begun else StepBoundary.NONE
        if not self._is_by_batch or self._is_waiting() or not self._leader.count_turn(loader):
            return StepBoundary.NONE
        if self._is_in_ended_epoch:  # the step began when the last epoch was exhausted
            self._is_in_ended_epoch = False
            return StepBoundary.NONE
        self._has_boundary = True
        return StepBoundary.STEP

    def model_set_to_evaluate(self) -> StepBoundary:
        """Handle a call of a model's `eval`."""
        is_begun = self.is_training and self._evaluations.is_begun_by_sign()
        return StepBoundary.EVALUATION if is_begun else StepBoundary.NONE

    def epoch_ended(self, loader: object) -> None:
        """Record that the DataLoader is exhausted: the last requested batch does not exist."""
        if not self.is_training and self._has_boundary and self._leader.count_turn(loader):
            self._is_in_ended_epoch = True
            self._leader = Leader()

    def _is_waiting(self) -> bool:
        if not (self.has_optimizer and self._is_by_optimizer) or self._has_boundary:
            return False
        self._waited_batches += 1
        return self._waited_batches <= BATCHES_BEFORE_OPTIMIZER


class _Evaluations:
    """Detects training steps that contain an evaluation.

    The time before the first boundary is the script's start, not a step.
    """

    def __init__(self) -> None:
        self._step_count = 0
        self._sign_step_count = 0
        self._most_batches = 0
        self._batch_count = 0
        self._has_sign = False
        self._is_reported = False

    def step_ended(self) -> None:
        self._step_count += 1
        self._sign_step_count += self._has_sign
        if not self._is_reported:
            self._most_batches = max(self._most_batches, self._batch_count)
        self._batch_count = 0
        self._has_sign = self._is_reported = False

    def is_begun_by_batch(self, *, has_gradients: bool) -> bool:
        """Return whether this is the step's first batch that is not for training.

        True at most once per step.
        """
        self._batch_count += 1
        if not has_gradients and self.is_begun_by_sign():
            return True
        most = MANY_TIMES * self._most_batches + SOME_BATCHES
        return self._batch_count > most and self.is_begun_by_sign()

    def is_begun_by_sign(self) -> bool:
        """Count a step with an evaluation, once per step."""
        self._has_sign = True
        return self._decided(is_begun=self._sign_step_count * RARE <= self._step_count)

    def _decided(self, *, is_begun: bool) -> bool:
        if self._is_reported or not self._step_count or not is_begun:
            return False
        self._is_reported = True
        return True

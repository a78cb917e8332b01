"""Detection of step boundaries from the calls of a script.

The rule, in order of trust:

1. A step ends when the optimizer has stepped: when the outermost call of `Optimizer.step`, or of
   `GradScaler.step`, returns. So gradient accumulation makes one step of several batches, a step
   that the scaler skips for infinite gradients counts, and so does LBFGS with its many closures.
   Of several optimizers (a GAN), the one that steps least often defines the step, so that all
   steps are alike, if it steps once in 20 of another's; of equals, the one that stepped first. One
   that is gone, or was not seen for 20 turns, hands over.
2. Where no optimizer steps, a step ends when a DataLoader is asked for the next batch; of several
   DataLoaders it is one by the same rule. Where an optimizer was made, it is
   waited for during 200 batches.

An optimizer's first step takes over from batches, and counting starts anew. A step of training in
which an evaluation runs is noticed by a model that is set to evaluate (`eval()`), by batches that
are asked for without gradients, or by many more batches than the steps before had.
"""

import weakref
from enum import Enum, auto

MOST_TURNS = 20
"""An optimizer or DataLoader that comes less often than once in so many turns defines no step."""
BATCHES_BEFORE_OPTIMIZER = 200
"""So many batches are waited for the first step of an optimizer that was made."""
MANY_TIMES = 2
SOME_BATCHES = 2
"""A step with more than `MANY_TIMES` the batches of any before, and these, is an evaluation."""
RARE = 4
"""A model set to evaluate, and batches without gradients, are signs of an evaluation if fewer than
one step in so many has them."""


class Border(Enum):
    """Effect of a call on steps."""

    NONE = auto()
    """Nothing."""
    STEP = auto()
    """A step ends here and the next begins."""
    ANEW = auto()
    """The same, and all steps so far were batches of an evaluation."""
    EVALUATION = auto()
    """The step that is under way is not like the others: an evaluation began in it."""


class _Lead:
    """The optimizer or DataLoader, of several, that defines the step."""

    def __init__(self) -> None:
        self._leader: weakref.ref[object] | None = None
        self._turns = 0
        """Of the leader."""
        self._turns_of_others = 0
        """Since the leader's last turn."""
        self._seen: list[tuple[weakref.ref[object], int]] = []
        """The others, each with the count of the leader's turns when it had its own last one."""

    def is_led_by(self, candidate: object) -> bool:
        """Return whether this one defines the step, now that it has its turn."""
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


class StepFinder:
    """Sees each step of an optimizer and each request for a batch, and tells the borders."""

    def __init__(self, *, is_by_optimizer: bool = True, is_by_batch: bool = True) -> None:
        self._is_by_optimizer = is_by_optimizer
        self._is_by_batch = is_by_batch
        self._lead = _Lead()
        self._waited_batches = 0
        self._has_border = False
        self._is_in_ended_epoch = False
        self._evaluations = _Evaluations()
        self.has_optimizer = False
        """Whether an optimizer was made."""
        self.is_training = False
        """Whether an optimizer stepped; then batches define nothing."""

    def optimizer_stepped(self, optimizer: object) -> Border:
        """Take note that an optimizer has stepped."""
        self.has_optimizer = True
        if not self._is_by_optimizer:
            return Border.NONE
        if not self.is_training:
            self.is_training = True
            self._lead = _Lead()
            self._lead.is_led_by(optimizer)
            self._evaluations = _Evaluations()
            return Border.ANEW if self._has_border else Border.STEP
        if not self._lead.is_led_by(optimizer):
            return Border.NONE
        self._evaluations.step_ended()
        return Border.STEP

    def batch_requested(self, loader: object, *, has_gradients: bool) -> Border:
        """Take note that the next batch is asked for, with gradients enabled or not."""
        if self.is_training:
            is_begun = self._evaluations.is_begun_by_batch(has_gradients=has_gradients)
            return Border.EVALUATION if is_begun else Border.NONE
        if not self._is_by_batch or self._is_waiting() or not self._lead.is_led_by(loader):
            return Border.NONE
        if self._is_in_ended_epoch:  # the step began when the last epoch had no batch any more
            self._is_in_ended_epoch = False
            return Border.NONE
        self._has_border = True
        return Border.STEP

    def model_set_to_evaluate(self) -> Border:
        """Take note that a model's `eval` was called."""
        is_begun = self.is_training and self._evaluations.is_begun_by_sign()
        return Border.EVALUATION if is_begun else Border.NONE

    def epoch_ended(self, loader: object) -> None:
        """Take note that the batch that was asked for last is not there: the data ended."""
        if not self.is_training and self._has_border and self._lead.is_led_by(loader):
            self._is_in_ended_epoch = True
            self._lead = _Lead()

    def _is_waiting(self) -> bool:
        if not (self.has_optimizer and self._is_by_optimizer) or self._has_border:
            return False
        self._waited_batches += 1
        return self._waited_batches <= BATCHES_BEFORE_OPTIMIZER


class _Evaluations:
    """Notices the steps of training in which an evaluation runs.

    The time before the first border is the script's start, not a step.
    """

    def __init__(self) -> None:
        self._step_count = 0
        self._odd_step_count = 0
        self._most_batches = 0
        self._batch_count = 0
        self._is_odd = False
        self._is_told = False

    def step_ended(self) -> None:
        self._step_count += 1
        self._odd_step_count += self._is_odd
        if not self._is_told:
            self._most_batches = max(self._most_batches, self._batch_count)
        self._batch_count = 0
        self._is_odd = self._is_told = False

    def is_begun_by_batch(self, *, has_gradients: bool) -> bool:
        """Tell, once a step, that this batch is the first that is not for training."""
        self._batch_count += 1
        if not has_gradients and self.is_begun_by_sign():
            return True
        most = MANY_TIMES * self._most_batches + SOME_BATCHES
        return self._decided(is_begun=self._batch_count > most)

    def is_begun_by_sign(self) -> bool:
        """Count a step with an evaluation, once per step."""
        self._is_odd = True
        return self._decided(is_begun=self._odd_step_count * RARE <= self._step_count)

    def _decided(self, *, is_begun: bool) -> bool:
        if self._is_told or not self._step_count or not is_begun:
            return False
        self._is_told = True
        return True

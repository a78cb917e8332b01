"""Savings of claims in two steps: the recorded one, and the step without the profiler.

The profiler slows the host, not the device: a saving may be large in one of the two steps and next
to nothing in the other. Severity and order rest on the *decisive* one: the unrecorded step where
the recorder measured it, else the step in which the claims save the smaller part.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stepscope.analyses.core.window import window
from stepscope.base.findings import HoldsIn, Severity, TimedStep, severity_of
from stepscope.model.trace import Trace
from stepscope.replay.unrecorded import unrecorded_world
from stepscope.rules import INFO_SHARE, Claim
from stepscope.rules.shared.claimable_time import (
    alone,
    claimed_ns,
    summed_ns,
    unchanged,
    unrecorded,
    unrecorded_ns,
)

OTHER_SAVING = 0.2
"""Relative difference below which a saving counts as the same in both steps: the cost of recorded
events is an estimate."""
SURE = 2
"""A saving counts as far as half of it is sure."""


@dataclass(frozen=True, kw_only=True)
class StepShares:
    """The greatest saving of claims as a fraction of the recorded and of the unrecorded step."""

    recorded: float
    unrecorded: float | None = None
    """None: no replay describes the trace."""
    is_measured: bool = False
    """Whether the recorder measured unrecorded steps; else their time is estimated."""

    @property
    def differ(self) -> bool:
        """Whether the two differ by 20 % or more, and by 1 % of the step."""
        if self.unrecorded is None:
            return False
        difference = abs(self.unrecorded - self.recorded)
        largest = max(self.unrecorded, self.recorded)
        return difference >= INFO_SHARE and difference >= OTHER_SAVING * largest

    @property
    def decisive_step(self) -> TimedStep:
        """The step whose saving decides: the measured one, else that of the smaller fraction.

        The recorded step, where the fractions do not differ and nothing was measured.
        """
        if self.unrecorded is None:
            return "recorded"
        is_smaller = self.differ and self.unrecorded < self.recorded
        return "unrecorded" if self.is_measured or is_smaller else "recorded"

    @property
    def decisive(self) -> float:
        """The fraction of the decisive step."""
        if self.unrecorded is None or self.decisive_step == "recorded":
            return self.recorded
        return self.unrecorded

    @property
    def holds_in(self) -> HoldsIn:
        """The steps of which 1 % or more is saved; one alone only where the fractions differ."""
        if self.unrecorded is None or not self.differ:
            return "both" if self.decisive >= INFO_SHARE else "neither"
        if min(self.recorded, self.unrecorded) >= INFO_SHARE:
            return "both"
        return "recorded" if self.recorded > self.unrecorded else "unrecorded"


def claimed_shares(trace: Trace, claims: Sequence[Claim]) -> StepShares:
    """Return what claims save of either step, without all other findings."""
    return shares(trace, claimed_ns(trace, claims), unrecorded_ns(trace, claims))


def shares(trace: Trace, recorded_ns: float, without_profiler_ns: float | None) -> StepShares:
    """Return savings in the window as fractions of either step."""
    recorded = min(1.0, recorded_ns / window(trace).reference_ns)
    if without_profiler_ns is None:
        return StepShares(recorded=recorded)
    return StepShares(
        recorded=recorded,
        unrecorded=min(1.0, without_profiler_ns / unrecorded_reference_ns(trace)),
        is_measured=unrecorded_world(trace).measured_ns is not None,
    )


def unrecorded_reference_ns(trace: Trace) -> float:
    """Return the whole of percentages of the window as it runs without the profiler; at least 1.

    The recorded one where no replay describes the trace.
    """
    recorded, without_profiler = unchanged(trace).simulation, unrecorded(trace)
    whole_ns = window(trace).reference_ns
    if recorded is None or without_profiler is None:
        return whole_ns
    return max(1.0, whole_ns * without_profiler.simulated_ns / max(1, recorded.simulated_ns))


def sure_share(trace: Trace, claims: Sequence[Claim]) -> float:
    """Return the least that claims save alone, as a fraction of the decisive step."""
    step = claimed_shares(trace, claims).decisive_step
    is_unrecorded = step == "unrecorded"
    whole_ns = unrecorded_reference_ns(trace) if is_unrecorded else window(trace).reference_ns
    return alone(trace, claims, step).low_ns / whole_ns


def sure_severity(trace: Trace, claims: Sequence[Claim]) -> Severity | None:
    """Return the severity by `SURE` times what claims save at least; None: not worth reporting."""
    at_most = claimed_shares(trace, claims).decisive
    return severity_of(min(at_most, SURE * sure_share(trace, claims)))


def is_worth_reporting(trace: Trace, claims: Sequence[Claim]) -> bool:
    """Return whether claims could save enough of either step for a finding."""
    return claimed_shares(trace, claims).holds_in != "neither"


def is_refuted(trace: Trace, claims: Sequence[Claim]) -> bool:
    """Return whether claims of enough time for a finding save next to nothing of both steps."""
    is_long = summed_ns(trace, claims) >= INFO_SHARE * window(trace).reference_ns
    return is_long and not is_worth_reporting(trace, claims)

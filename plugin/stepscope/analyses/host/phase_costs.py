"""Phases besides forward, backward and optimizer, by the time in which no device works."""

from dataclasses import dataclass, replace

from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.window import window
from stepscope.analyses.host.phase_names import FORWARD_ONLY, HOST_CODE, PHASES, RUNTIME, TRAINING
from stepscope.analyses.host.sampled_lines import SampledLine, lines_in, no_grad_lines
from stepscope.analyses.host.step_phases import PhaseLocation, step_phases
from stepscope.base.findings import WARNING_SHARE
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True, eq=False)
class PhaseCost:
    """A phase's time in the steps, without the times in which a device works."""

    phase: str
    times: Intervals
    time_ns: int
    share: float
    """Of the window."""
    location: PhaseLocation

    @property
    def label(self) -> str:
        """Name of the phase in texts."""
        return PHASES[self.phase]


@computed
def phase_costs(trace: Trace) -> tuple[PhaseCost, ...]:
    """Return the phases that training does not need, the largest first.

    Waits in runtime calls are left out: they end with the device's work. So are gaps that few steps
    have, in which another process may have had the processor. Without operators nothing is known of
    the host.
    """
    if not trace.host_calls["is_operator"].any():
        return ()
    phases, busy = step_phases(trace), all_busy(trace)
    costs = []
    for phase in PHASES:
        if phase in (*TRAINING, RUNTIME) or not phases.total_ns(phase):
            continue
        if phase == HOST_CODE and not phases.is_usual(phase):
            continue
        times = intervals.difference(phases.times(phase), busy)
        time_ns = intervals.duration_ns(times)
        cost = PhaseCost(
            phase=phase,
            times=times,
            time_ns=time_ns,
            share=time_ns / window(trace).reference_ns,
            location=_location(trace, phase),
        )
        costs.append(cost)
    return tuple(sorted(costs, key=lambda cost: -cost.time_ns))


def _location(trace: Trace, phase: str) -> PhaseLocation:
    """Return the largest line of a phase: of recorded stacks, else by samples."""
    location = step_phases(trace).locations(phase)[0]
    sampled = () if location.line else lines_of(trace, phase)
    return replace(location, line=sampled[0].frame) if sampled else location


def lines_of(trace: Trace, phase: str) -> tuple[SampledLine, ...]:
    """Return the sampled lines of a phase; of forward without backward also those by autograd."""
    lines = lines_in(trace, phase)
    return lines or (no_grad_lines(trace) if phase == FORWARD_ONLY else ())


def largest_phase(trace: Trace) -> PhaseCost | None:
    """Return the largest of these phases; None where none takes 5 % of the window."""
    costs = phase_costs(trace)
    return costs[0] if costs and costs[0].share >= WARNING_SHARE else None

"""Time that recording one event costs the host, with its source.

`make overhead` measures them (tests/benchmarks/event_costs.py): small trainings with and without
the profiler, in turns, for each option of the profiler; the costs are those that explain the
differences of process time best (least squares, none below 0). An event costs more there than in a
loop of one call, where the profiler's code and data stay in the cache: 0.29 us for an operator.

With twenty trainings, each judged by the costs that the other nineteen give, four of five recorded
steps cost 0.8 to 1.7 times the sum of their events: what tensors lose to the profiler in caches and
in the allocator depends on the program. Of 100 steps (five sets of options), 73 are predicted to
10 %; the median error is 6 %. Another processor scales all kinds alike.
"""

from dataclasses import dataclass

MEASURED = "20 small trainings on one core of an EPYC, Python 3.11, torch 2.13"


@dataclass(frozen=True)
class EventCost:
    """Cost of one recorded event on the host."""

    ns: float
    source: str


OPERATOR = EventCost(540, f"{MEASURED}: an operator or an annotation, with no further options")
OPERATOR_SHAPES = EventCost(360, f"{MEASURED}: added by record_shapes")
OPERATOR_STACKS = EventCost(160, f"{MEASURED}: added by with_stack")
PYTHON_CALL = EventCost(
    550, f"{MEASURED}: a call of a Python function, a module or a function in C, with with_stack"
)
MEMORY = EventCost(500, f"{MEASURED}: an allocation or a release, with profile_memory")
RUNTIME_CALL = EventCost(
    1000,
    "an estimate: no device was measured, and no public figure per call exists. As a whole, "
    "intel/torch-xpu-ops#1784 reports 3.2 s of text generation on CUDA as 6.2 s when recorded",
)
LEAST_FACTOR, MOST_FACTOR = 0.8, 1.7
"""Range of a program's cost, as factors of the sum of its events: four of five are inside."""

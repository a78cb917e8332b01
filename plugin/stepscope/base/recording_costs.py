"""Time that recording costs the host, with its source.

Each event costs time. `make overhead` measures it (tests/benchmarks/event_costs.py): small
trainings with and without the profiler, in turns, for each option of the profiler. Besides, all of
the host's time becomes longer, since the profiler's memory lies between that of tensors: the
allocator gives pages back and takes fresh ones, and caches hold less. A U-Net with steps of 39 ms
has 740 to 930 page faults in a step, and 3,400 while it is recorded; a ResNet of 10 ms none, and
2,900. Another processor scales all kinds alike.

Of 100 steps of 20 small trainings with five sets of options, each judged by the costs that the
other nineteen give, 88 are predicted to 10 % (73 by events alone); of 130 of the larger jobs in
`sample_logs/record/pairs`, with the recorder's time of unrecorded steps, 81 (41 by events alone).
"""

from dataclasses import dataclass

MEASURED = "20 small trainings on one core of an EPYC, Python 3.11, torch 2.13"


@dataclass(frozen=True)
class EventCost:
    """Cost of one recorded event on the host."""

    ns: float
    source: str


OPERATOR = EventCost(270, f"{MEASURED}: an operator or an annotation, with no further options")
OPERATOR_SHAPES = EventCost(260, f"{MEASURED}: added by record_shapes")
OPERATOR_STACKS = EventCost(40, f"{MEASURED}: added by with_stack")
PYTHON_CALL = EventCost(
    390, f"{MEASURED}: a call of a Python function, a module or a function in C, with with_stack"
)
MEMORY = EventCost(200, f"{MEASURED}: an allocation or a release, with profile_memory")
RUNTIME_CALL = EventCost(
    1000,
    "an estimate: no device was measured, and no public figure per call exists. As a whole, "
    "intel/torch-xpu-ops#1784 reports 3.2 s of text generation on CUDA as 6.2 s when recorded",
)
LOCAL_PART = 0.7
"""Of an event's cost, the part that is lost at the event itself: loops of small operators in
`sample_logs/record/pairs` lose 0.36 to 0.41 us per operator with shapes; eight loops on a thread of
a Xeon beside other work 0.38 to 0.57. The rest is spread as `HOST_SLOWDOWN` is."""
CALL_NS = 5_000
"""Time of an operator that is its call, in which it writes no large result."""
PAGE_BYTES = 4096
FRESH_PAGE = EventCost(
    2500,
    "a page of 4 KiB that an operator writes first: measured on one thread of a Xeon, with "
    "ru_minflt. A page fault takes 1.8 to 2.6 us, with recording up to 32 in a result of 64 pages; "
    "without faults results of 16 to 256 kB lose 0.1 to 0.4 us per page, since they are no longer "
    "in a cache",
)
MOST_MEMORY_PART = 0.8
"""Of an operator's time after its call, the most that fresh memory takes: recorded results of
256 kB took 4.4 times as long as they did without faults."""
HOST_SLOWDOWN = 0.12
"""Fraction of all of the host's time, besides the events' cost, that recording costs: in 130
recordings of 12 jobs on a CPU (`sample_logs/record/pairs`) 0.13 in the median, in the 20 small
trainings 0.10."""
HOST_SLOWDOWN_WITH_DEVICE = 0.0
"""Unknown, since no device was measured: its tensors are not in the host's memory."""

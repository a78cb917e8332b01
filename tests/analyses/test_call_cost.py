"""What host calls cost: idle time of the device meanwhile, and work that it does for them alone."""

import numpy as np

from loading import trace_of
from stepscope.analyses.idle.call_cost import call_cost

US = 1000
NO_EVENTS = np.zeros(0, dtype=np.int64)


def times(*ranges: tuple[int, int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(ranges, dtype=np.int64).reshape(-1, 2) * US


def test_on_a_device_it_is_the_late_idle_time_and_the_work_that_runs_alone() -> None:
    trace = trace_of(
        [
            ["user_annotation", "ProfilerStep#1", 0, 100],
            ["cuda_runtime", "cudaLaunchKernel", 0, 5, {"correlation": 1}],
            ["kernel", "a", 10, 10, {"correlation": 1}],
            ["cuda_runtime", "cudaLaunchKernel", 40, 5, {"correlation": 2}],
            ["kernel", "b", 50, 20, {"correlation": 2}],
            ["kernel", "c", 60, 20, {"correlation": 3, "stream": 9}],
            ["cuda_runtime", "cudaLaunchKernel", 41, 5, {"correlation": 3}],
        ]
    )
    cost = call_cost(trace, times((30, 200)), np.array([1]))
    assert cost.host.tolist() == times((30, 100)).tolist(), "the window ends"
    assert cost.idle.tolist() == times((30, 50)).tolist(), "behind 80 us nothing follows"
    assert cost.work.tolist() == times((50, 60)).tolist(), "then c runs beside it"
    assert (cost.host_ns, cost.idle_ns, cost.work_ns) == (70 * US, 20 * US, 10 * US)


def test_without_a_device_it_is_the_hosts_time() -> None:
    trace = trace_of([["cpu_op", "aten::zero_", 0, 100]])
    cost = call_cost(trace, times((10, 30)), NO_EVENTS)
    assert cost.idle.tolist() == cost.host.tolist() == times((10, 30)).tolist()
    assert cost.work_ns == 0

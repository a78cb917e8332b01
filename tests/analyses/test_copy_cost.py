"""What copies to a device cost, and what asked for them."""

from loading import trace_of
from stepscope.analyses.core import requirements
from stepscope.analyses.devices.host_copies import copies_to_device
from stepscope.analyses.idle.copy_cost import OUTSIDE, CopySite, copy_cost, copy_sites

US = 1000
# Two copies: the first beside a kernel for 10 us, with a wait behind it; the second while the
# device is idle, asked for by nothing.
ROWS = [
    ["user_annotation", "ProfilerStep#1", 0, 400],
    ["kernel", "gemm", 20, 40, {"correlation": 1, "stream": 20}],
    ["cuda_runtime", "cudaLaunchKernel", 10, 5, {"correlation": 1}],
    ["python_function", "train.py(7): step", 30, 80],
    ["cpu_op", "aten::to", 35, 70],
    ["cpu_op", "aten::copy_", 40, 60],
    ["cuda_runtime", "cudaMemcpyAsync", 42, 5, {"correlation": 2}],
    [
        "gpu_memcpy",
        "Memcpy HtoD (Pinned -> Device)",
        50,
        40,
        {"correlation": 2, "bytes": 256},
    ],
    ["cuda_runtime", "cudaStreamSynchronize", 48, 44, {"correlation": 3}],
    ["cuda_runtime", "cudaMemcpyAsync", 200, 20, {"correlation": 4}],
    ["gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 230, 10, {"correlation": 4, "bytes": 8}],
]


def test_copying_that_no_kernel_hides_and_idle_time_in_the_calls_and_behind_waits() -> None:
    trace = trace_of(ROWS)
    device = requirements.main_device(trace)
    cost = copy_cost(trace, device, copies_to_device(trace, device))
    assert (cost.exposed // US).tolist() == [[60, 90], [230, 240]]
    assert (cost.behind // US).tolist() == [[90, 230]], "all of the gap, which is below 1 ms"
    assert (cost.late // US).tolist() == []
    second = copies_to_device(trace, device).select(cost.exposed[:, 0] > 100 * US)
    alone = copy_cost(trace, device, second)
    assert (alone.behind // US).tolist() == [], "the wait is not for this one"
    assert (alone.exposed // US).tolist() == [[230, 240]]


def test_idle_time_while_the_host_asks_for_a_copy_is_the_copys() -> None:
    rows = [row for row in ROWS if row[1] != "cudaStreamSynchronize"]
    trace = trace_of(rows)
    device = requirements.main_device(trace)
    cost = copy_cost(trace, device, copies_to_device(trace, device))
    assert (cost.idle // US).tolist() == [[200, 220]]


def test_copies_are_listed_by_operator_and_size_the_costliest_first() -> None:
    trace = trace_of(ROWS)
    copies = copies_to_device(trace, requirements.main_device(trace))
    of_step = CopySite(
        operator="aten::to",
        line="train.py(7): step",
        bytes=256,
        count=1,
        device_ns=40 * US,
        host_ns=5 * US,
    )
    of_none = CopySite(
        operator=OUTSIDE, line="", bytes=8, count=1, device_ns=10 * US, host_ns=20 * US
    )
    assert copy_sites(trace, copies) == (of_step, of_none)
    assert copy_sites(trace, copies, most=1) == (of_step,)

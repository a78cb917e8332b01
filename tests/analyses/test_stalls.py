"""Long stalls of a device: two gaps, the whole answer."""

import loading
import tracebuild
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.idle.ledger import late_times, long_gaps


def test_gaps_that_hold_enough_are_stalls_the_longest_first() -> None:
    trace = loading.trace_of(
        document=tracebuild.document(
            rows=[
                ["user_annotation", "ProfilerStep#1", 0, 9000],
                ["cuda_runtime", "cudaLaunchKernel", 0, 5, {"correlation": 1}],
                ["kernel", "gemm", 5, 995, {"correlation": 1}],
                ["cuda_runtime", "cudaLaunchKernel", 2990, 5, {"correlation": 2}],
                ["kernel", "gemm", 3000, 1000, {"correlation": 2}],
                ["cuda_runtime", "cudaLaunchKernel", 7990, 5, {"correlation": 3}],
                ["kernel", "gemm", 8000, 1000, {"correlation": 3}],
            ]
        )
    )
    device = main_device(trace)
    assert device is not None
    late = late_times(trace, device)
    assert late.tolist() == [[1_000_000, 3_000_000], [4_000_000, 8_000_000]]
    stalls = long_gaps(trace, device, late, 2_000_000)
    assert stalls.longest.tolist() == [[4_000_000, 8_000_000], [1_000_000, 3_000_000]]
    assert sorted(stalls.idle_ns.tolist()) == [2_000_000, 4_000_000]
    assert long_gaps(trace, device, late, 2_000_001).times.tolist() == [[4_000_000, 8_000_000]]

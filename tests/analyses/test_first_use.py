"""When code was loaded: a few calls, the whole answer."""

import loading
import tracebuild
from stepscope.analyses.idle.lazy_loading import first_use_times


def test_long_first_launches_and_loading_calls_count_and_others_do_not() -> None:
    trace = loading.trace_of(
        document=tracebuild.document(
            rows=[
                ["cuda_runtime", "cudaLaunchKernel", 0, 2000, {"correlation": 1}],
                ["cuda_runtime", "cudaLaunchKernel", 3000, 2000, {"correlation": 2}],
                ["cuda_runtime", "cudaLaunchKernel", 6000, 900, {"correlation": 3}],
                ["cuda_runtime", "cudaStreamCreateWithFlags", 8000, 1000],
                ["cuda_runtime", "cudaDeviceSynchronize", 9500, 4000],
                ["kernel", "gemm", 2010, 10, {"correlation": 1}],
                ["kernel", "gemm", 5010, 10, {"correlation": 2}],
                ["kernel", "conv", 7000, 10, {"correlation": 3}],
            ]
        )
    )
    assert first_use_times(trace).tolist() == [[0, 2_000_000], [8_000_000, 9_000_000]]

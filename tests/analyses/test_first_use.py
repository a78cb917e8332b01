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


def test_the_time_in_an_operator_before_its_kernels_first_launch_counts() -> None:
    """Not what an inner operator or a wait takes, nor where later launches take as long."""
    rows = [
        # 1,500 us until an inner operator, 2,000 us in it, 500 us behind it, 300 us in a wait
        ["cpu_op", "aten::mm", 0, 6000],
        ["cpu_op", "aten::empty", 1500, 2000],
        ["cuda_runtime", "cudaStreamSynchronize", 4000, 300],
        ["cuda_runtime", "cudaLaunchKernel", 5900, 5, {"correlation": 1}],
        ["kernel", "gemm", 5910, 10, {"correlation": 1}],
        ["cpu_op", "aten::mm", 7000, 20],
        ["cuda_runtime", "cudaLaunchKernel", 7010, 5, {"correlation": 2}],
        ["kernel", "gemm", 7020, 10, {"correlation": 2}],
        # as long for the second launch
        ["cpu_op", "aten::sort", 8000, 2000],
        ["cuda_runtime", "cudaLaunchKernel", 9900, 5, {"correlation": 3}],
        ["kernel", "sort", 9910, 10, {"correlation": 3}],
        ["cpu_op", "aten::sort", 10_000, 2000],
        ["cuda_runtime", "cudaLaunchKernel", 11_900, 5, {"correlation": 4}],
        ["kernel", "sort", 11_910, 10, {"correlation": 4}],
        # once, in an operator that is not torch's
        ["cpu_op", "mine::decode", 13_000, 2000],
        ["cuda_runtime", "cudaLaunchKernel", 14_900, 5, {"correlation": 5}],
        ["kernel", "decode", 14_910, 10, {"correlation": 5}],
        # twice, in one that is not torch's; the first takes 999 us in the other
        ["cpu_op", "mine::encode", 16_000, 2000],
        ["cuda_runtime", "cudaLaunchKernel", 17_900, 5, {"correlation": 6}],
        ["kernel", "encode", 17_910, 10, {"correlation": 6}],
        ["cpu_op", "mine::encode", 18_000, 20],
        ["cuda_runtime", "cudaLaunchKernel", 18_010, 5, {"correlation": 7}],
        ["kernel", "encode", 18_020, 10, {"correlation": 7}],
        ["cpu_op", "aten::add", 19_000, 1010],
        ["cuda_runtime", "cudaLaunchKernel", 19_999, 5, {"correlation": 8}],
        ["kernel", "add", 20_005, 10, {"correlation": 8}],
    ]
    trace = loading.trace_of(document=tracebuild.document(rows=rows))
    assert first_use_times(trace).tolist() == [
        [0, 1_500_000],
        [4_300_000, 5_900_000],
        [16_000_000, 17_900_000],
    ]

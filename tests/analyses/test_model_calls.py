"""Where heavy operators ran: a few calls, the whole answer."""

import loading
import tracebuild
from stepscope.analyses.operators.model_calls import model_calls


def test_only_outermost_heavy_calls_of_the_window_count() -> None:
    trace = loading.trace_of(
        document=tracebuild.document(
            rows=[
                ["cpu_op", "aten::mm", 0, 10],  # before the first step
                ["user_annotation", "ProfilerStep#1", 100, 900],
                ["cpu_op", "aten::linear", 110, 90],
                ["cpu_op", "aten::addmm", 120, 70],
                ["user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter", 300, 100],
                ["cpu_op", "aten::conv2d", 310, 50],  # a blur of the dataset's
                ["cpu_op", "aten::conv2d", 500, 50],
                ["cuda_runtime", "cudaLaunchKernel", 510, 5, {"correlation": 1}],
                ["kernel", "conv", 600, 40, {"correlation": 1}],
                ["cpu_op", "aten::relu", 700, 50],
            ]
        )
    )
    calls = model_calls(trace)
    names = trace.host_calls["name"].iloc[calls.rows].tolist()
    assert names == ["aten::linear", "aten::conv2d"]
    assert calls.on_device.tolist() == [False, True]
    assert calls.on_host_count == 1
    assert calls.host_times.tolist() == [[110_000, 200_000]]

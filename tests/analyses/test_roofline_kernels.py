"""Which kernels the rows of the roofline's table are of."""

import pandas as pd

from loading import trace_of
from stepscope.analyses.devices.roofline import roofline_kernels

SQUARE, WIDE = [[8, 8], [8, 8]], [[8, 8], [8, 99]]


def test_kernels_are_of_the_calls_with_the_same_name_and_shapes() -> None:
    rows = []
    calls = (("aten::mm", SQUARE), ("aten::mm", WIDE), ("aten::bmm", SQUARE))
    for place, (name, dims) in enumerate(calls):
        start = 20 * place
        rows += [
            ["cpu_op", name, start, 10, {"Input Dims": dims, "Input type": ["float", "float"]}],
            ["cuda_runtime", "cudaLaunchKernel", start + 2, 2, {"correlation": place + 1}],
            ["kernel", f"kernel {place}", start + 5, 5, {"correlation": place + 1}],
        ]
    rows.append(["kernel", "launched before", 0, 1, {"correlation": 99}])
    trace = trace_of(rows)
    groups = pd.DataFrame({"name": ["aten::mm"], "input_dims": ["[[8,8],[8,8]]"]})
    names = trace.device_events["name"].astype(str)
    assert names[roofline_kernels(trace, groups)].tolist() == ["kernel 0"]
    assert not roofline_kernels(trace, groups.iloc[:0]).any()

"""Checks for NaN that autograd's engine makes, and those of the program."""

from loading import trace_of
from stepscope.analyses.host.profiler_cost import anomaly_checks

ENGINE = "autograd::engine::evaluate_function: MmBackward0"


def test_only_what_stands_right_in_the_engines_range_is_the_engines() -> None:
    trace = trace_of(
        [
            ["cpu_op", ENGINE, 0, 100],
            ["cpu_op", "MmBackward0", 10, 20],
            ["cpu_op", "aten::isnan", 12, 5],
            ["cpu_op", "aten::isnan", 40, 5],
            ["cpu_op", "aten::_is_any_true", 50, 9],
            ["cpu_op", "aten::any", 52, 5],
            ["cpu_op", "aten::item", 60, 5],
            ["cpu_op", "aten::isnan", 200, 5],
            ["cpu_op", ENGINE, 300, 100],
            ["cpu_op", "aten::item", 310, 5],
        ]
    )
    found = anomaly_checks(trace)
    start = trace.host_calls["start_ns"].to_numpy() / 1000
    assert start[found.nan_checks].tolist() == [40]
    assert start[found.calls].tolist() == [40, 50, 60]

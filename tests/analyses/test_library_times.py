"""NumPy, pandas and PIL beside torch: times, places and labels of a few calls."""

from typing import Any

import loading
import tracebuild
from stepscope.analyses.host.library_detection import (
    costliest_functions,
    function_name,
    is_user_label,
    label_times,
    library_times,
    program_locations,
    without_operators,
)
from stepscope.model.trace import Trace

STEP = ["user_annotation", "ProfilerStep#1", 0, 1000]
LABEL = ["user_annotation", "masking", 200, 600]
USER = ["python_function", "train.py(7): mask", 210, 580]


def trace_of(*rows: list[Any]) -> Trace:
    return loading.trace_of(document=tracebuild.document(rows=rows))


def test_a_stretch_without_operators_counts_whole_where_numpy_fills_most_of_it() -> None:
    trace = trace_of(
        STEP,
        LABEL,
        USER,
        ["cpu_op", "aten::mm", 0, 200],
        ["python_function", "numpy/_core/numeric.py(1): argwhere", 300, 400],
        ["python_function", "numpy/_core/fromnumeric.py(2): nonzero", 310, 380],
        ["cpu_op", "aten::mm", 800, 200],
    )
    times = library_times(trace)
    assert len(times.calls) == 1  # what argwhere calls is its own
    assert times.inside.tolist() == [[300_000, 700_000]]
    assert times.with_gaps.tolist() == [[200_000, 800_000]]
    assert without_operators(trace).tolist() == [[200_000, 800_000]]
    assert costliest_functions(trace, times.with_gaps) == (("numpy", "argwhere", 400_000),)
    # 10 us before and 10 us behind the function are the label's alone
    assert [
        (each.label, each.frame, each.time_ns) for each in program_locations(trace, times.with_gaps)
    ] == [
        ("masking", "train.py(7): mask", 580_000),
        ("masking", None, 20_000),
    ]


def test_a_stretch_that_numpy_fills_less_than_half_counts_for_what_numpy_has() -> None:
    trace = trace_of(STEP, ["python_function", "pandas/core/frame.py(1): merge", 100, 300])
    assert library_times(trace).with_gaps.tolist() == [[100_000, 400_000]]


def test_what_lies_between_the_hand_overs_of_one_call_is_numpys() -> None:
    trace = trace_of(
        STEP,
        ["python_function", "train.py(7): mask", 100, 300],
        ["python_function", "<built-in method numpy of Tensor object at 0x7f01>", 110, 10],
        ["python_function", "<built-in method from_numpy of type object at 0x7f02>", 350, 20],
        ["python_function", "train.py(9): other", 500, 300],
        ["python_function", "<built-in method from_numpy of type object at 0x7f02>", 700, 20],
    )
    times = library_times(trace)
    assert times.inside.tolist() == [[110_000, 120_000]]
    assert times.with_gaps.tolist() == [[110_000, 350_000]]


def test_operators_that_numpy_calls_and_loading_are_left_out() -> None:
    trace = trace_of(
        STEP,
        ["python_function", "<built-in function asarray of numpy>", 100, 300],
        ["cpu_op", "aten::copy_", 150, 200],
        ["user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter", 500, 300],
        ["python_function", "PIL/Image.py(1): resize", 550, 200],
    )
    assert library_times(trace).inside.tolist() == [[100_000, 150_000], [350_000, 400_000]]


def test_a_label_has_the_time_without_operators_that_no_label_within_has() -> None:
    trace = trace_of(
        STEP,
        LABEL,
        ["user_annotation", "inner", 500, 100],
        ["cpu_op", "aten::gt", 700, 50],
    )
    assert [
        (each.label, each.total_ns, each.without_operators.tolist()) for each in label_times(trace)
    ] == [
        ("masking", 600_000, [[200_000, 500_000], [600_000, 700_000], [750_000, 800_000]]),
        ("inner", 100_000, [[500_000, 600_000]]),
    ]


def test_labels_of_torch_are_not_the_users() -> None:
    torchs = (
        "ProfilerStep#3",
        "Optimizer.step#SGD.step",
        "nccl:all_reduce",
        "gloo:broadcast",
        "Torch-Compiled Region: 0/0",
        "## Call CompiledFxGraph fabc ##",
        "TorchDynamo Cache Lookup",
        "DistributedDataParallel.forward",
    )
    assert not any(is_user_label(name) for name in torchs)
    assert is_user_label("LABEL2: masking")


def test_functions_are_known_by_their_own_names() -> None:
    assert function_name("numpy/_core/numeric.py(624): argwhere") == "argwhere"
    assert function_name("<built-in method resize of ImagingCore object at 0x7f>") == "resize"
    assert function_name("something else") == "something else"


def test_a_trace_without_python_functions_has_no_such_times() -> None:
    trace = trace_of(STEP, ["cpu_op", "aten::mm", 0, 200])
    assert len(library_times(trace).with_gaps) == 0
    assert label_times(trace) == ()

"""What the calls for a batch spend their time in."""

import numpy as np

from loading import trace_of
from stepscope.analyses.idle.data_stalls import loading_costs

US = 1000
LOAD = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
ROWS = [
    ["user_annotation", LOAD, 0, 100],
    ["python_function", "data.py(8): __getitem__", 10, 60],
    ["python_function", "data.py(20): decode", 20, 40],
    ["python_function", "torch/utils/data/_utils/collate.py(9): collate", 70, 30],
    ["cpu_op", "aten::stack", 75, 20],
    ["cpu_op", "aten::cat", 80, 10],
    ["user_annotation", LOAD, 200, 100],
    ["python_function", "data.py(8): __getitem__", 210, 20],
    ["python_function", "train.py(3): step", 320, 900],
]


def test_functions_of_the_user_and_operators_right_within_are_summed_over_all_calls() -> None:
    trace = trace_of(ROWS)
    rows = np.flatnonzero((trace.host_calls["name"] == LOAD).to_numpy())
    found = [(cost.name, cost.time_ns, cost.is_function) for cost in loading_costs(trace, rows)]
    assert found == [
        ("data.py(8): __getitem__", 80 * US, True),
        ("data.py(20): decode", 40 * US, True),
        ("aten::stack", 20 * US, False),
    ]
    assert [cost.name for cost in loading_costs(trace, rows, most=1)] == ["data.py(8): __getitem__"]


def test_without_calls_or_stacks_nothing_is_known() -> None:
    trace = trace_of([["user_annotation", LOAD, 0, 100]])
    assert loading_costs(trace, np.array([0])) == ()
    assert loading_costs(trace, np.array([], dtype=np.int64)) == ()

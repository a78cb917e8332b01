"""The names that the page's search finds: `traces/<trace>/names`."""

from hypothesis import given
from hypothesis import strategies as st

from loading import trace_of
from stepscope.api.endpoints import names as names_endpoint
from stepscope.api.endpoints.names import Names, NamesQuery
from tracebuild import Row

ROWS = (
    ("user_annotation", "ProfilerStep#1", 0, 1000),
    ("cpu_op", "aten::mm", 10, 20),
    ("cpu_op", "aten::mm", 40, 20),
    ("cpu_op", "aten::add", 70, 30),
    ("cuda_runtime", "cudaLaunchKernel", 12, 5, {"correlation": 1}),
    ("kernel", "gemm", 30, 40, {"correlation": 1}),
)


def names(*rows: Row, limit: int = 100) -> Names:
    return names_endpoint.names(trace_of(rows), NamesQuery(limit=limit))


def told(found: Names) -> dict[str, list[tuple[str, int]]]:
    return {each.kind: list(zip(each.names, each.times_ns, strict=True)) for each in found.kinds}


def test_names_come_by_kind_with_their_times_and_the_longest_first() -> None:
    assert told(names(*ROWS)) == {
        "operator": [("aten::mm", 40_000), ("aten::add", 30_000)],
        "annotation": [("ProfilerStep*", 1_000_000)],
        "kernel": [("gemm", 40_000)],
    }


def test_what_is_left_out_is_counted() -> None:
    [operators, *_] = names(*ROWS, limit=1).kinds
    assert (operators.names, operators.all_count) == (("aten::mm",), 2)


def test_modules_and_source_lines_are_named_where_they_were_recorded() -> None:
    found = told(
        names(
            *ROWS,
            ("python_function", "train.py(12): step", 5, 900, {"Python id": 1}),
            (
                "python_function",
                "nn.Module: Linear_0",
                6,
                100,
                {"Python id": 2, "Python parent id": 1, "Python module id": 0},
            ),
        )
    )
    assert found["module"][0][0] == "Linear_0"
    assert found["source-line"][0] == ("train.py:12 step", 900_000)


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=30), st.integers(1, 8))
def test_never_more_names_than_asked_for_and_never_one_twice(calls: list[str], limit: int) -> None:
    rows = [("cpu_op", name, at * 10, 5) for at, name in enumerate(calls)]
    [operators] = names(*rows, limit=limit).kinds
    assert len(operators.names) == min(limit, len(set(calls)))
    assert len(set(operators.names)) == len(operators.names)
    assert operators.all_count == len(set(calls))
    assert list(operators.times_ns) == sorted(operators.times_ns, reverse=True)


def test_kinds_that_were_not_recorded_are_left_out() -> None:
    assert told(names(("kernel", "gemm", 30, 40, {"correlation": 1}))) == {
        "kernel": [("gemm", 40_000)]
    }

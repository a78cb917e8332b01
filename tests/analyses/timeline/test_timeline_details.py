"""What is known of one slice, and which slices are around it."""

from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from loading import trace_of
from stepscope.analyses.timeline.slice_details import Details, details
from stepscope.analyses.timeline.slice_neighbors import around, children, neighbour
from stepscope.analyses.timeline.timeline import timeline
from stepscope.model.trace import Trace

CALLS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), min_size=1, max_size=12)


def named(trace: Trace, name: str) -> int:
    """The event of a name."""
    code = trace.columns.strings.index(name)
    return int((trace.columns.name == code).argmax())


def of(trace: Trace, name: str) -> Details:
    return details(trace, named(trace, name))


def linked(trace: Trace, name: str) -> dict[str, list[str]]:
    strings = trace.columns.strings
    return {
        each.kind: [strings[trace.columns.name[event]] for event in each.events.tolist()]
        for each in of(trace, name).links
    }


def test_a_kernels_stack_and_module_are_those_of_its_launch() -> None:
    trace = trace_of(
        [
            ["python_function", "train.py(7): main", 0, 100],
            ["python_function", "nn.Module: Linear_0", 10, 50],
            ["python_function", "<built-in function linear>", 15, 40],
            ["cpu_op", "aten::mm", 20, 20],
            ["cuda_runtime", "cudaLaunchKernel", 22, 4, {"correlation": 1}],
            ["kernel", "gemm", 70, 5, {"correlation": 1}],
        ]
    )

    found = of(trace, "gemm")

    assert [(frame.function, frame.file, frame.line) for frame in found.stack] == [
        ("main", "train.py", 7),
        ("nn.Module: Linear_0", "", 0),
        ("<built-in function linear>", "", 0),
    ]
    assert (found.stack_of, found.module) == ("launch", "Linear_0")
    assert of(trace, "aten::mm").stack_of == "itself"


def test_stacks_that_are_texts_are_read_the_outermost_first() -> None:
    trace = trace_of(
        [["cpu_op", "aten::mm", 0, 9, {"Call stack": "model.py(3): forward;train.py(9): main"}]]
    )

    found = of(trace, "aten::mm")

    assert [(frame.function, frame.line) for frame in found.stack] == [("main", 9), ("forward", 3)]


def test_forward_and_backward_lead_to_each_other() -> None:
    trace = trace_of(
        [
            ["python_function", "train.py(7): main", 0, 100],
            ["cpu_op", "aten::addmm", 5, 10, {"Sequence number": 4, "Fwd thread id": 0}],
            ["cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 50, 20,
             {"Sequence number": 4, "Fwd thread id": 1, "tid": 9}],
            ["cpu_op", "AddmmBackward0", 52, 10,
             {"Sequence number": 4, "Fwd thread id": 1, "tid": 9}],
        ]
    )  # fmt: skip

    assert linked(trace, "AddmmBackward0") == {"forward": ["aten::addmm"]}
    assert linked(trace, "aten::addmm") == {"backward": ["AddmmBackward0"]}
    backward = of(trace, "AddmmBackward0")
    assert ([frame.function for frame in backward.stack], backward.stack_of) == (
        ["main"],
        "forward",
    )


def test_work_leads_to_the_other_pass_of_the_operator_that_launched_it() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::linear", 0, 40, {"Sequence number": 4, "Fwd thread id": 0}],
            ["cpu_op", "aten::copy_", 5, 10],
            ["cuda_runtime", "cudaLaunchKernel", 6, 2, {"correlation": 1}],
            ["kernel", "copy", 60, 5, {"correlation": 1}],
            ["cpu_op", "LinearBackward0", 70, 20,
             {"Sequence number": 4, "Fwd thread id": 1, "tid": 9}],
            ["cpu_op", "aten::mm", 72, 10, {"tid": 9}],
            ["cuda_runtime", "cudaLaunchKernel", 74, 2, {"correlation": 2, "tid": 9}],
            ["kernel", "gemm", 90, 5, {"correlation": 2}],
        ]
    )  # fmt: skip

    assert linked(trace, "gemm") == {
        "launched by": ["cudaLaunchKernel"],
        "launched by operator": ["aten::mm"],
        "forward": ["aten::linear"],
    }
    assert linked(trace, "copy") == {
        "launched by": ["cudaLaunchKernel"],
        "launched by operator": ["aten::copy_"],
        "backward": ["LinearBackward0"],
    }


def test_a_call_that_waits_leads_to_what_it_waited_for() -> None:
    trace = trace_of(
        [
            ["user_annotation", "ProfilerStep#1", 0, 100],
            ["user_annotation", "ProfilerStep#2", 100, 100],
            ["cuda_runtime", "cudaLaunchKernel", 5, 2, {"correlation": 1}],
            ["kernel", "gemm", 10, 40, {"correlation": 1}],
            ["cuda_runtime", "cudaDeviceSynchronize", 20, 31, {"correlation": 2}],
        ]
    )

    assert linked(trace, "cudaDeviceSynchronize") == {"waits for": ["gemm"]}
    assert linked(trace, "gemm") == {
        "launched by": ["cudaLaunchKernel"],
        "awaited by": ["cudaDeviceSynchronize"],
    }


def test_own_time_is_without_what_is_within_and_a_step_is_the_one_it_began_in() -> None:
    trace = trace_of(
        [
            ["user_annotation", "ProfilerStep#4", 0, 50],
            ["cpu_op", "aten::linear", 10, 30],
            ["cpu_op", "aten::t", 12, 5],
            ["cpu_op", "aten::addmm", 20, 15],
            ["cpu_op", "aten::view", 60, 5],
        ]
    )

    found = of(trace, "aten::linear")
    assert (found.self_ns, found.child_count, found.step) == (10_000, 2, 4)
    assert of(trace, "aten::view").step is None


@examples(25)
@given(CALLS)
def test_what_is_around_a_slice_contains_it_and_children_are_within(
    calls: list[tuple[int, int]],
) -> None:
    trace = trace_of([["cpu_op", f"f{place}", *call] for place, call in enumerate(calls)])
    found = timeline(trace)
    slices = found.slices
    start = slices.times.start_ns.tolist()

    def span(place: int) -> tuple[int, int]:
        before = slices.times.busy_before_ns
        return start[place], start[place] + int(before[place + 1] - before[place])

    for place in range(len(slices)):
        over = around(slices, place)
        for above in over:
            assert span(above)[0] <= span(place)[0]
            assert span(place)[1] <= span(above)[1]
        for inner in children(slices, place).tolist():
            assert around(slices, inner)[-1] == place
        if over:
            assert neighbour(slices, place, "up") == over[-1]
            assert place in children(slices, over[-1]).tolist()

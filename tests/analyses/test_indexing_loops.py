"""Loops of Python that take a tensor apart."""

from typing import Any

import tracebuild
from loading import trace_of
from stepscope.analyses.host.indexing_loops import IndexingLoops, indexing_loops


def loops(*body: dict[str, Any], least: int = 3) -> IndexingLoops:
    schedule = {"machine": "cpu", "actions": list(body)}
    return indexing_loops(trace_of(document=tracebuild.document(schedule=schedule)), least)


def ops(*names: str) -> list[dict[str, Any]]:
    return [{"op": f"aten::{name}", "us": 5} for name in names]


def test_a_loop_begins_with_its_first_select_and_ends_with_its_last_operator() -> None:
    """At 5 us the first select of four turns of 10 us."""
    found = loops(*ops("add"), {"repeat": 4, "body": ops("select", "add")}, *ops("mm"))
    assert found.patterns == (("aten::select", "aten::add"),)
    assert (found.repeats.tolist(), found.start_ns.tolist()) == ([4], [5_000])
    assert (found.second_ns.tolist(), found.end_ns.tolist()) == ([15_000], [45_000])


def test_the_shortest_pattern_that_explains_a_stretch_counts() -> None:
    found = loops({"repeat": 8, "body": ops("select")})
    assert found.patterns == (("aten::select",),)
    assert found.repeats.tolist() == [8]


def test_several_loops_have_their_own_patterns() -> None:
    first = {"repeat": 3, "body": ops("select", "add")}
    second = {"repeat": 5, "body": ops("select", "select", "item")}
    found = loops(first, *ops("mm"), second, *ops("mm"), first)
    by_pattern = {
        found.patterns[pattern]: found.repeats[found.pattern == pattern].tolist()
        for pattern in range(len(found.patterns))
    }
    assert by_pattern == {
        ("aten::select", "aten::add"): [3, 3],
        ("aten::select", "aten::item"): [5],
    }


def test_turns_of_two_callers_are_no_loop() -> None:
    two = ops("select", "add") * 2
    assert len(loops({"op": "A", "body": two}, {"op": "B", "body": two}).first) == 0


def test_a_function_of_the_users_may_loop() -> None:
    turns = {"repeat": 3, "body": ops("select", "add")}
    assert loops({"op": "MyFunctionBackward", "body": [turns]}).repeats.tolist() == [3]
    assert len(loops({"op": "SelectBackward0", "body": [turns]}).first) == 0


def test_eight_operators_of_a_turn_are_shown() -> None:
    found = loops({"repeat": 5, "body": ops("select", *"abcdefgh")})
    assert found.repeats.tolist() == [5]
    assert found.patterns == (("aten::select", *(f"aten::{name}" for name in "abcdefg"), "…"),)
    found = loops({"repeat": 5, "body": ops("select", *"abcdefg")})
    assert found.patterns == (("aten::select", *(f"aten::{name}" for name in "abcdefg")),)


def test_more_than_48_operators_are_no_pattern() -> None:
    turn = ops("select", *(f"a{number}" for number in range(48)))
    assert len(loops({"repeat": 5, "body": turn}).first) == 0
    assert loops({"repeat": 5, "body": turn[:48]}).repeats.tolist() == [5]


def test_inner_loops_may_have_fewer_and_fewer_turns() -> None:
    """Overlapping boxes are dropped: 6, 5, 4, 3 and 2 values are read in the turns."""
    turns = [
        [{"repeat": number, "body": ops("select", "item")}, *ops("slice", "maximum")]
        for number in (6, 5, 4, 3, 2)
    ]
    found = loops(*(action for turn in turns for action in turn))
    assert found.repeats.tolist() == [5]
    assert found.patterns == (("aten::select", "aten::item", "aten::slice", "aten::maximum"),)
    assert (found.start_ns.tolist(), found.second_ns.tolist()) == ([0], [70_000])


def test_inner_loops_count_where_the_outer_one_does_a_models_work() -> None:
    inner = {"repeat": 4, "body": ops("select", "add")}
    found = loops({"repeat": 3, "body": [inner, *ops("linear")]})
    assert found.repeats.tolist() == [4, 4, 4]


def test_operators_of_other_libraries_may_be_a_models_work() -> None:
    turn = [*ops("select"), {"op": "vllm::rotary_embedding", "us": 5}]
    assert len(loops({"repeat": 4, "body": turn}).first) == 0


def test_tensors_that_are_joined_one_by_one_are_a_loop() -> None:
    found = loops({"repeat": 4, "body": ops("full_like", "stack", "sub")})
    assert found.patterns == (("aten::stack", "aten::sub", "aten::full_like"),)
    assert len(loops({"repeat": 4, "body": ops("mul_", "add_")}).first) == 0


def test_loops_of_loaders_and_optimizers_are_theirs() -> None:
    turns = {"repeat": 4, "body": ops("select", "add")}
    names = (
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "Optimizer.step#SGD.step",
    )
    for name in names:
        assert len(loops({"annotation": name, "body": [turns]}).first) == 0
    assert len(loops({"annotation": "metrics", "body": [turns]}).first) == 1


def test_without_operators_there_are_none() -> None:
    kernels = trace_of([["kernel", "gemm", 0, 10]])
    assert len(indexing_loops(kernels, 3).first) == 0


def test_an_annotation_in_a_turn_is_no_operator() -> None:
    turn = [*ops("select"), {"annotation": "row", "us": 1}, *ops("add")]
    assert loops({"repeat": 4, "body": turn}).patterns == (("aten::select", "aten::add"),)


def test_turns_are_counted_from_the_first_select() -> None:
    assert len(loops({"repeat": 3, "body": ops("add", "select")}).first) == 0
    assert loops({"repeat": 4, "body": ops("add", "select")}).repeats.tolist() == [3]


def test_what_repeats_beside_selects_is_no_loop_over_a_tensor() -> None:
    found = loops(*ops("select", "mm", "select", "mm", "mm", "select", "cat", "mul", "mul", "mul"))
    assert len(found.first) == 0


def unbind(rows: int) -> dict[str, Any]:
    """5 us, and 1 us for each row."""
    selects = {"repeat": rows, "body": [{"op": "aten::select", "us": 1}]}
    return {"op": "aten::unbind", "us": 5, "body": [selects]}


def test_a_loop_over_rows_begins_where_they_are_taken_apart() -> None:
    """At 5 us the first of two unbinds of 9 us, and four turns of 10."""
    loop = {"repeat": 4, "body": ops("argmax", "item")}
    found = loops(*ops("add"), unbind(4), unbind(4), loop, *ops("mm"))
    assert found.patterns == (("aten::argmax", "aten::item"),)
    assert (found.repeats.tolist(), found.start_ns.tolist()) == ([4], [5_000])
    assert (found.second_ns.tolist(), found.end_ns.tolist()) == ([33_000], [63_000])


def test_no_more_turns_than_rows_are_counted() -> None:
    found = loops(unbind(4), {"repeat": 7, "body": ops("item")})
    assert (found.repeats.tolist(), found.end_ns.tolist()) == ([4], [29_000])
    assert len(loops(unbind(2), {"repeat": 7, "body": ops("item")}).first) == 0


def test_rows_of_rows_are_loops_of_their_own() -> None:
    within = [unbind(3), {"repeat": 3, "body": ops("item")}]
    found = loops(unbind(2), {"repeat": 2, "body": within})
    assert (found.repeats.tolist(), found.start_ns.tolist()) == ([3, 3], [0, 30_000])


def test_what_is_read_elsewhere_is_no_loop_over_rows() -> None:
    reads = {"repeat": 4, "body": ops("item")}
    apart = [reads, unbind(4), *ops("stack"), reads, unbind(4)]
    assert len(loops(*apart).first) == 0
    assert len(loops({"op": "A", "body": [unbind(4)]}, {"op": "B", "body": [reads]}).first) == 0


def test_rows_of_which_none_is_read_may_be_a_models_work() -> None:
    assert len(loops(unbind(4), {"repeat": 4, "body": ops("argmax", "add")}).first) == 0


def test_a_condition_reads_a_value() -> None:
    found = loops(unbind(4), {"repeat": 4, "body": ops("is_nonzero")})
    assert found.repeats.tolist() == [4]

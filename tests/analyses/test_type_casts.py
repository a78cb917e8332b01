"""Kernels that only convert, and who asked for them."""

import pytest

from loading import trace_of
from stepscope.analyses.operators.type_casts import TypeCasts, type_casts
from stepscope.model.trace import Trace


def recorded(types: object, around: str = "aten::mm") -> Trace:
    given = {} if types is None else {"Input Dims": [[8], [8]], "Input type": types}
    return trace_of(
        [
            ["cpu_op", around, 0, 60],
            ["cpu_op", "aten::to", 1, 50],
            ["cpu_op", "aten::_to_copy", 2, 40],
            ["cpu_op", "aten::copy_", 3, 30, given],
            ["cuda_runtime", "cudaLaunchKernel", 10, 5, {"correlation": 1}],
            ["kernel", "cast", 20, 30, {"correlation": 1}],
            ["kernel", "other", 50, 10, {"correlation": 2}],
        ]
    )


def casts(types: object, around: str = "aten::mm") -> TypeCasts:
    return type_casts(recorded(types, around))


@pytest.mark.parametrize(
    ("types", "pairs"),
    [
        (["float", "c10::BFloat16"], ["bfloat16 → float32"]),
        (["c10::Half", "double"], ["float64 → float16"]),
        (["float", "float"], []),
        (["float", "long int"], []),
        (["c10::Float8_e4m3fn", "float"], []),
        (["float"], []),
        ([], []),
        (None, ["not recorded"]),
    ],
)
def test_a_copy_is_between_its_two_types(types: object, pairs: list[str]) -> None:
    assert casts(types).pairs.tolist() == pairs


def test_who_asked_is_above_all_parts_of_a_conversion() -> None:
    found = casts(["float", "c10::Half"])
    assert (found.callers.tolist(), found.owners.tolist()) == ([0], [3])
    assert (found.duration_ns.tolist(), found.kernel_ns) == ([30_000], 40_000)


def test_below_a_conversion_of_the_program_there_is_no_asker() -> None:
    assert casts(["float", "c10::Half"], around="aten::type_as").callers.tolist() == [-1]

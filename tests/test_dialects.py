"""Every dialect on its own cases, and no dialect on another's.

A case's event is `[category, name, kind]`, with its arguments behind them where those tell.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from loading import ROOT, document_at, trace_of
from stepscope.dialects import (
    LAUNCH_NAME,
    TERMS,
    Dialect,
    Kind,
    all_dialects,
    detect,
    kind_of,
    of_device,
)

CASES_FOLDER = Path(__file__).parent / "dialects"
CASES: dict[str, Any] = {
    path.stem: document_at(path) for path in sorted(CASES_FOLDER.glob("*.yml"))
}
PATTERNS = (
    "blocking_call",
    "staged_copy_call",
    "allocator_call",
    "matrix_unit_kernel",
    "collective",
    "layout_kernel",
    "generic_convolution",
    "plain_product",
    "alignment",
    "older_matrix_unit_kernel",
)
FALLBACKS = {"cpu", "generic"}
DEVICE_KINDS = {"kernel", "copy", "memory_set"}


def _signs(case: Any) -> list[str]:
    calls = [f"{row[0]}/{row[1]}" for row in case["events"] if row[2] == "runtime_call"]
    arguments = {key for row in case["events"] for more in row[3:] for key in more}
    signs = calls + [f"argument/{key}" for key in sorted(arguments)]
    return signs + [f"metadata/{key}" for key in case["metadata"]]


def _has_device(case: Any) -> bool:
    return any(row[2] in DEVICE_KINDS for row in case["events"])


def _trace_rows(case: Any) -> list[list[Any]]:
    rows = []
    for place, row in enumerate(case["events"]):
        more = dict(row[3]) if len(row) > 3 else {}
        if row[2] == "flow":
            more["ph"] = "s"
        rows.append([row[0], row[1], 10 * place, 5, more])
    return rows


def test_every_dialect_has_cases_and_every_case_a_dialect() -> None:
    assert set(CASES) == set(all_dialects())
    for name, case in CASES.items():
        assert case["dialect"] == name == all_dialects()[name].name
        assert case["device"] == all_dialects()[name].device


@pytest.mark.parametrize("name", CASES)
def test_events_are_of_their_kinds(name: str) -> None:
    for category, event, kind, *arguments in CASES[name]["events"]:
        expected = "other" if arguments else kind
        assert kind_of(category, event).name.lower() == expected, (category, event)
        assert kind_of(category.upper(), event) is kind_of(category, event)


def test_every_kind_stands_in_some_case() -> None:
    seen = {row[2] for case in CASES.values() for row in case["events"]}
    assert seen == {kind.name.lower() for kind in Kind}


@pytest.mark.parametrize("name", CASES)
def test_a_dialect_knows_its_own(name: str) -> None:
    case = CASES[name]
    assert detect(_signs(case), has_device=_has_device(case)).name == name


@pytest.mark.parametrize("name", CASES)
def test_no_other_dialect_takes_its_cases(name: str) -> None:
    for other, dialect in all_dialects().items():
        matching = [sign for sign in _signs(CASES[name]) if dialect.signature.search(sign)]
        assert bool(matching) == (other == name and name not in FALLBACKS), (other, matching)


@pytest.mark.parametrize("name", CASES)
def test_a_trace_of_its_events_is_read_in_its_words(name: str) -> None:
    case = CASES[name]
    trace = trace_of(_trace_rows(case))
    assert trace.dialect is all_dialects()[name]
    found = [Kind(kind).name.lower() for kind in trace.source.kinds]
    assert found == [row[2] for row in case["events"]]
    assert len(trace.runtime_calls) == sum(row[2] == "runtime_call" for row in case["events"])
    assert len(trace.device_events) == sum(row[2] in DEVICE_KINDS for row in case["events"])


def _cases_of(pattern: str) -> list[tuple[str, str, bool]]:
    return [
        (name, text, answer == "matching")
        for name, case in CASES.items()
        for answer, texts in case.get(pattern, {}).items()
        for text in texts
    ]


@pytest.mark.parametrize(
    ("pattern", "name", "text", "expected"),
    [(pattern, *case) for pattern in PATTERNS for case in _cases_of(pattern)],
)
def test_names_are_told_apart(pattern: str, name: str, text: str, expected: bool) -> None:  # noqa: FBT001
    found = getattr(all_dialects()[name], pattern).search(text)
    assert bool(found) == expected


@pytest.mark.parametrize("name", sorted(set(all_dialects()) - FALLBACKS))
def test_a_vendors_own_patterns_have_cases_of_both_answers(name: str) -> None:
    dialect = all_dialects()[name]
    default = {field: getattr(all_dialects()["cpu"], field) for field in PATTERNS}
    for pattern in PATTERNS:
        if getattr(dialect, pattern) != default[pattern]:
            assert set(CASES[name][pattern]) == {"matching", "other"}, pattern
            assert all(CASES[name][pattern].values()), pattern


def test_the_vendor_with_most_signs_wins() -> None:
    signs = ["cuda_runtime/hipLaunchKernel", "cuda_runtime/hipMemcpyAsync", "metadata/cuda_version"]
    assert detect(signs, has_device=True).name == "rocm"


def test_without_device_events_a_trace_is_of_the_cpu() -> None:
    assert detect(["metadata/cuda_runtime_version"], has_device=False).name == "cpu"


def test_nothing_outside_the_dialects_asks_for_a_vendor() -> None:
    asks = re.compile(
        r"dialect\.(?:name|vendor)\s*(?:==|!=|in\b|not in\b)|import (?:cuda|rocm|xpu|mtia|npu)\b"
    )
    package = ROOT / "plugin" / "stepscope"
    for path in package.rglob("*.py"):
        if path.parent.name != "dialects":
            assert not asks.search(path.read_text(encoding="utf-8")), path


def test_a_vendors_words_are_those_that_advice_asks_for() -> None:
    for name in set(all_dialects()) - FALLBACKS:
        dialect = all_dialects()[name]
        assert set(dialect.terms) <= set(TERMS)
        assert {"module", "activity"} <= set(dialect.terms), name
        assert dialect.vendor


@pytest.mark.parametrize(
    ("call", "is_launch"),
    [
        ("cudaLaunchKernel", True),
        ("hipExtModuleLaunchKernel", True),
        ("cudaGraphLaunch", True),
        ("urEnqueueKernelLaunch", True),
        ("urEnqueueKernelLaunchWithArgsExp", True),
        ("zeCommandListAppendLaunchKernel", False),  # urEnqueueKernelLaunch makes it
        ("Node@launch", True),
        ("AscendCL@aclrtLaunchKernelWithHostArgs", False),  # within Node@launch
        ("runFunction - job_prep_and_submit_for_execution", True),
        ("cudaMemcpyAsync", False),
    ],
)
def test_a_launch_is_counted_once(call: str, is_launch: bool) -> None:  # noqa: FBT001
    assert bool(LAUNCH_NAME.search(call)) == is_launch


def test_dialects_are_data() -> None:
    for dialect in all_dialects().values():
        assert isinstance(dialect, Dialect)
        with pytest.raises(AttributeError):
            dialect.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        ("NVIDIA H100 80GB HBM3", "cuda"),
        ("Tesla V100-DGXS-32GB", "cuda"),
        ("AMD Instinct MI250X", "rocm"),
        ("AMD Radeon Graphics", "rocm"),
        ("Intel(R) Data Center GPU Max 1550", "xpu"),
        ("ARTEMIS", "mtia"),
        ("Ascend910B", "npu"),
        ("Something Else", "generic"),
    ],
)
def test_a_device_in_the_header_tells_the_vendor(name: str, dialect: str) -> None:
    assert of_device(name).name == dialect

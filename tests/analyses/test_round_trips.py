"""Tensors that go to the host and come straight back."""

from typing import Any

import tracebuild
from loading import trace_of
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.devices.host_copies import operators_between, round_trips
from stepscope.model.trace import Trace


def pairs(*body: dict[str, Any]) -> tuple[Trace, list[tuple[int, int]]]:
    schedule = {"actions": [{"steps": 2, "body": list(body)}]}
    trace = trace_of(document=tracebuild.document(schedule=schedule))
    device = main_device(trace)
    assert device is not None
    found = round_trips(trace, device, 4096)
    return trace, list(zip(found.out.tolist(), found.back.tolist(), strict=True))


def test_each_copy_out_has_the_next_copy_back_of_its_size_in_its_step() -> None:
    big, small = 8000, 5000
    _, found = pairs({"to_cpu": big}, {"to_cpu": small}, {"to_cuda": small}, {"to_cuda": big})
    assert found == [(0, 1), (1, 0), (2, 3), (3, 2)]


def test_what_comes_in_before_is_no_copy_back() -> None:
    assert pairs({"to_cuda": 8000}, {"to_cpu": 8000})[1] == []


def test_what_the_host_computes_in_between_is_named_the_longest_first() -> None:
    trace, _ = pairs(
        {"to_cpu": 8000}, {"op": "aten::add", "us": 5}, {"op": "aten::topk", "us": 90},
        {"to_cuda": 8000},
    )  # fmt: skip
    device = main_device(trace)
    assert device is not None
    assert operators_between(trace, round_trips(trace, device, 4096)) == ("aten::topk", "aten::add")

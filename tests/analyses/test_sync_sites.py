"""Where the program waits, and what the device does for reads alone."""

from typing import Any

import pytest

import tracebuild
from loading import trace_of
from stepscope.analyses.idle.sync_cost import SyncSite, sync_cost, sync_sites, value_reads
from stepscope.model.trace import Trace

GEMM = {"op": "aten::mm", "us": 0, "body": [{"kernel": "gemm", "us": 1000}]}


def scheduled(*actions: dict[str, Any], record: tuple[str, ...] = (), **more: Any) -> Trace:
    schedule = {"record": record, "actions": [{"steps": 3, "body": list(actions)}], **more}
    return trace_of(document=tracebuild.document(schedule=schedule))


@pytest.mark.parametrize("machine", ["h100", "v100-2021", "mi250"])
def test_one_read_is_one_wait_of_its_operator(machine: str) -> None:
    trace = scheduled(GEMM, {"item": 4}, machine=machine)
    [site] = sync_sites(trace, sync_cost(trace, "item")).sites
    assert (site.name, site.line, site.operator, site.count) == ("aten::item", "", "aten::item", 3)


@pytest.mark.parametrize("machine", ["h100", "v100-2021"])
def test_with_stacks_each_line_of_the_user_has_its_waits(machine: str) -> None:
    """The first line waits for a kernel in each of 3 steps, the second for its copy alone."""
    first = {"python": "train.py(12): train", "body": [GEMM, {"item": 4}]}
    second = {"python": "train.py(30): log", "body": [{"item": 4}, {"item": 4}]}
    trace = scheduled(first, second, record=("stacks",), machine=machine)
    found = sync_sites(trace, sync_cost(trace, "item"))
    counts = {site.name: site.count for site in found.sites}
    assert counts == {"train.py(12): train": 3, "train.py(30): log": 6}
    assert {site.operator for site in found.sites} == {"aten::item"}


def test_a_wait_outside_any_operator_is_named_by_its_call() -> None:
    """Each step waits from the launch's end to the kernel's; 8 us later the next kernel runs."""
    trace = scheduled(GEMM, {"sync": "stream", "us": 0})
    found = sync_sites(trace, sync_cost(trace, "explicit"))
    assert found.sites == (
        SyncSite(
            line="",
            operator="cudaStreamSynchronize",
            count=3,
            blocked_ns=3 * 1_003_000,
            idle_ns=2 * 8_000,
        ),
    )
    assert found.site_of.tolist() == [0, 0, 0]


def test_no_wait_has_no_place() -> None:
    trace = scheduled(GEMM)
    found = sync_sites(trace, sync_cost(trace, "item"))
    assert (found.sites, found.site_of.tolist()) == ((), [])


def names(trace: Trace) -> tuple[list[str], list[str]]:
    found = value_reads(trace, sync_cost(trace, "item"))
    events = trace.device_events["name"]
    return events.iloc[found.copies].tolist(), events.iloc[found.makers].tolist()


def operator(name: str, kernel: str, **more: Any) -> dict[str, Any]:
    return {"op": f"aten::{name}", "body": [{"kernel": kernel}], **more}


def test_comparisons_and_reductions_in_front_of_a_read_are_for_it_alone() -> None:
    check = [operator("isnan", "compare"), operator("any", "reduce")]
    trace = scheduled(operator("relu", "relu"), *check, {"item": 1})
    copies, makers = names(trace)
    assert len(copies) == 3
    assert makers == ["compare", "reduce"] * 3


def test_what_autograd_recorded_is_wanted_by_the_backward_pass() -> None:
    trace = scheduled(operator("mean", "mean", seq=1), {"item": 4})
    assert names(trace)[1] == []


def test_what_lies_between_cuts_the_chain() -> None:
    trace = scheduled(operator("sum", "sum"), operator("relu", "relu"), {"item": 4})
    assert names(trace)[1] == []


def test_an_annotation_around_the_read_cuts_nothing() -> None:
    read = {"annotation": "logging", "us": 1, "after_us": 1, "body": [{"item": 4}]}
    trace = scheduled(operator("sum", "sum"), read)
    assert names(trace)[1] == ["sum"] * 3
